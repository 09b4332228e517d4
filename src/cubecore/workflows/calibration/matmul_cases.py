"""Points of matmuls as cases: which kernel, which types, and a tiling of our own if need be."""

import re
from dataclasses import replace
from functools import partial

from cubecore.aliases import Json
from cubecore.chips import Chip
from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError
from cubecore.isa.program.launch import Launch
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.kernels.operators.named import ASCEND_950
from cubecore.kernels.operators.products.scaled import QuantShape, scaled
from cubecore.kernels.operators.tile import LANES
from cubecore.kernels.operators.wide import FROM_FLOAT
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import SCALE_TYPE, Problem
from cubecore.tiling.solver.solver import solve
from cubecore.units import align_up
from cubecore.workflows.calibration.cases import (
    CalibrationCase,
    Notes,
    Unmapped,
    as_measured,
    because,
    chip_of,
    has_automatic_flags,
    require_cores,
)
from cubecore.workflows.calibration.columns import FRACTAL, layouts
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.stated_tilings import has_tiling, stated_case

_TYPES = {
    "half": "float16",
    "float": "float32",
    "fp8": "float8_e4m3fn",
    "fp4x2_e1m2": "float4_e1m2",
    **{name: name for name in ("float16", "float32", "bfloat16", "int8")},
    **{name: name for name in ("float8_e4m3fn", "float8_e5m2", "float4_e1m2", "float4_e2m1")},
}
_START = "BASIC"
"""The kind of kernel whose start a library's matmuls have: they are written by hand."""
_PADDED_BYTES = 512
_POSSIBLE = 0.9
"""Of the time at the Cube's peak: a clock may be higher than the one that is configured."""
_SCALED_TYPES = ("float8", "float4")
_BY_TILING = {
    "enableKdimReorderLoad": "loads staggered over cores along K are not in the kernel",
    "fused": "the kernel has no part on vector cores",
    "groups": "grouped products are not in the kernel",
}
_SCALED_BY_FIXPIPE = "a result of int8 inputs is written as float16 by fixpipe, whoever scales it"
_EPILOGUE, _VECTOR_CORES = "epilogue", "vector cores"
_AS_HALF = {"c": "float16", "epilogue": Epilogue(quant="DEQF16", scale=1.0)}


def matmul_case(point: Point, on: Chip | None = None) -> CalibrationCase:
    """Return the case of a matmul; `on` is its chip with other constants.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    _require_plain(point)
    notes = Notes()
    chip = on or chip_of(point, notes)
    require_cores(point, chip, chip.aic_count, "AIC")
    types = _types(point, notes)
    _require_possible(point, chip, types)
    stated = point
    point, scaling = _scaled_point(point, chip, types, notes)
    try:
        if has_tiling(point):
            case = stated_case(point, chip, _problem(point, chip, types, notes), notes)
        else:
            case = _planned_case(point, chip, types, notes)
    except CubecoreError as error:
        raise because(error) from None
    how = Notes()
    timed = case.launch if scaling is None else lambda: scaled(case.launch(), scaling)
    return replace(
        case,
        launch=as_measured(point, timed, how),
        assumed=(*how.done(), *case.assumed),
        planned_on=None if has_tiling(point) else partial(matmul_case, stated),
    )


def _require_plain(point: Point) -> None:
    """Refuse what is more than a matmul of stated sizes."""
    for key, reason in _BY_TILING.items():
        if key in point.tiling:
            raise Unmapped(reason)
    if "vector" in point.kind:
        raise Unmapped("vector cores work beside the product")
    if point.tiling.get("nd2nz") == "on AIV":
        raise Unmapped("vector cores bring B into fractals beside the product")
    if None in (point.m, point.n, point.k):
        raise Unmapped("the extents are not stated")


def _require_possible(point: Point, chip: Chip, types: Json) -> None:
    """Refuse a time that the Cubes of the stated cores cannot reach."""
    peak = peak_ops_per_cycle(chip, element_type(types["a"]))
    if point.wall_us is None or point.cores is None or peak is None:
        return
    m, n, k = point.m or 0, point.n or 0, point.k or 0
    work = 2 * m * n * k * int(point.tiling.get("batch", 1))
    cycles = work / peak * chip.aic_count / point.cores
    least = cycles * 1e6 / chip.require("frequency_hz", "timing")
    if types["a"] != "float32" and point.wall_us < _POSSIBLE * least:
        cores = f"{point.cores} cores take at least {least:.4g} us"
        raise Unmapped(f"cores contradicts the time of {point.wall_us:.4g} us: {cores}")


def _types(point: Point, notes: Notes) -> Json:
    a, b, c = (
        _type(name, text, notes)
        for name, text in zip(("dtype_a", "dtype_b", "dtype_c"), point.types, strict=True)
    )
    if a not in _TYPES or b not in _TYPES or c not in _TYPES:
        raise Unmapped(f"types must be ones of the kernel, got {a} x {b} -> {c}")
    if (_TYPES[a] == "int8") != (_TYPES[b] == "int8"):
        raise Unmapped("weights are dequantised on vector cores")
    types: Json = {"a": _TYPES[a], "c": _TYPES[c]}
    if types["a"].startswith(_SCALED_TYPES):
        types["scale_a"] = SCALE_TYPE
    return types


def _scaled_point(
    point: Point, chip: Chip, types: Json, notes: Notes
) -> tuple[Point, QuantShape | None]:
    """Return the point of a matmul's sums, and how vector cores scale them after, if they do.

    Sets the type of C in `types` to that of what the matmul writes.
    """
    if not _vector_cores_scale(point, types):
        if types["a"] == "int8" and types["c"] != "int32":
            notes.add(_SCALED_BY_FIXPIPE)
            types |= _AS_HALF
        return point, None
    result, types["c"] = element_type(types["c"]), "int32"
    if chip.arch == ASCEND_950:
        notes.add("vector cores write sums of int32, which fixpipe leaves in their buffers")
        return replace(point, tiling={**point.tiling, _EPILOGUE: _VECTOR_CORES}), None
    notes.add("vector cores scale the sums of int32 when all are there")
    n = align_up(point.n or 0, LANES)
    plain = {key: value for key, value in point.tiling.items() if key != _EPILOGUE}
    scaling = QuantShape(point.m or 0, n, point.k or 0, result)
    return replace(point, n=n, tiling=plain), scaling


def _vector_cores_scale(point: Point, types: Json) -> bool:
    """True if vector cores scale sums of int8: as stated, or as a library does for bfloat16."""
    if types["a"] != "int8" or types["c"] not in FROM_FLOAT or point.left_out:
        return False
    by_library = types["c"] == "bfloat16" and not has_tiling(point)
    stated = point.tiling.get(_EPILOGUE) == _VECTOR_CORES
    return (stated or by_library) and point.tiling.get("batch", 1) == 1


def _type(column: str, text: str, notes: Notes) -> str:
    """Return a type without what is said beside it; float16 where it is not stated."""
    name = text.split("(", maxsplit=1)[0].split("/", maxsplit=1)[0].strip(" ?")
    if not name:
        notes.add(f"float16: {column} is not stated")
        return "float16"
    if name != text and "(MX" not in text:
        notes.add(f"{column} {text} is {name}")
    return name


def _problem(point: Point, chip: Chip, types: Json, notes: Notes, **keys: object) -> Problem:
    layout = f"{point.trans} {point.formats}"
    stored_nk = re.search(r"B:(T|\[N,K\]|DN)|/Col|\[n,k\]", layout)
    silent = point.trans in {"", "?"} and point.formats not in {"Row/Row", "Row/zN"}
    if silent and not stored_nk:
        notes.add("B is stored [k, n]")
    formats = ("NZ" if name in FRACTAL else "ND" for name in layouts(point.formats))
    stored = dict(zip(("format_a", "format_b", "format_c"), formats, strict=False))
    return Problem(
        chip=chip.name,
        m=point.m or 0,
        n=point.n or 0,
        k=point.k or 0,
        trans_a=layout.startswith("A:T"),
        trans_b=stored_nk is not None,
        batch=point.tiling.get("batch", 1),
        **{**types, **stored, **keys},
    )


def _planned_case(point: Point, chip: Chip, types: Json, notes: Notes) -> CalibrationCase:
    """Return the case of a kernel without a stated tiling: the planner's is taken."""
    keys: Json = {"cores": point.cores} if point.cores else {}
    if point.tiling.get("split_k"):
        keys |= {"split_k": True}
        accumulator = "int32" if types["a"] == "int8" else "float32"
        if types["c"] != accumulator:
            notes.add(f"slices of K add up in {accumulator}; the last conversion is left out")
            keys |= {"c": accumulator, "epilogue": Epilogue()}
    if point.tiling.get("pads"):
        notes.add("rows are padded to 512 B before; the time of the copy is left out")
        each = _PADDED_BYTES * 8 // element_type(types["a"]).bits
        point = replace(point, k=align_up(point.k or 0, each), n=align_up(point.n or 0, each))
    problem = _problem(point, chip, types, notes, **keys)
    step = "BASIC" if point.api == "basic" else "CONSTANT"
    if step == "CONSTANT":
        notes.add("tiling known to the compiler")
    tiling = solve(problem, chip, 1).best.tiling
    notes.add("our planner's tiling")
    if point.left_out:
        notes.add(f"{point.left_out}: left out")
    options: Json = {
        "by_vector_cores": point.tiling.get(_EPILOGUE) == _VECTOR_CORES,
        "drains_l0": has_automatic_flags(point, notes),
    }

    def launch() -> Launch:
        return replace(matmul_launch(problem, tiling, chip, step, **options), kind=_START)

    return CalibrationCase(
        chip,
        launch,
        "partial" if point.left_out else "library",
        assumed=notes.done(),
    )

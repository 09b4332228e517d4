"""Points of products as cases: which kernel, which types, and a tiling of our own if need be."""

import re
from collections.abc import Callable
from dataclasses import replace

from cubecore.aliases import Json
from cubecore.chips import Chip
from cubecore.errors import CubecoreError
from cubecore.isa.program.launch import Launch
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import SCALE_TYPE, Epilogue, Problem
from cubecore.tiling.solver.solver import solve
from cubecore.workflows.calibration.cases import (
    CalibrationCase,
    Notes,
    Unmapped,
    because,
    chip_of,
    without_launch,
)
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.stated_tilings import has_tiling, stated_case

_TYPES = {
    "half": "float16",
    "half?": "float16",
    "float": "float32",
    "float16": "float16",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "int8": "int8",
    "half/bf16": "float16",
}
_BY_TILING = {
    "enableKdimReorderLoad": "loads staggered over cores along K are not in the kernel",
    "fused": "the kernel has no part on vector cores",
    "groups": "grouped products are not in the kernel",
}
_SCALED_BY_FIXPIPE = "a result of int8 inputs is written as float16 by fixpipe, whoever scales it"
_AS_HALF = {"c": "float16", "epilogue": Epilogue(quant="DEQF16", scale=1.0)}
_SCALED_BY_VECTOR = "catlass_quant"
"""Samples 12, 44 and 52 of catlass: their pages have a part on AIV that dequantises the result, and
in 52 adds up the slices of K before."""
_IN_A_LOOP = ("catlass_tune", "torch", "tilelang", "qwen3")
"""Publications whose kernel runs many times in a row: a tuner's or a host's loop."""


def matmul_case(point: Point) -> CalibrationCase:
    """Return the case of a product.

    Raises:
        Unmapped: why there is none.
    """
    _require_plain(point)
    notes = Notes()
    chip = chip_of(point, notes)
    types = _types(point, notes)
    warm = _is_warm(point, notes)
    try:
        if has_tiling(point):
            case = stated_case(point, chip, _problem(point, chip, types, notes), notes)
        else:
            case = _planned_case(point, chip, types, notes)
    except CubecoreError as error:
        raise because(error) from None
    return replace(case, launch=_warmed(case.launch)) if warm else case


def _warmed(launch: Callable[[], Launch]) -> Callable[[], Launch]:
    return lambda: replace(launch(), warm=True)


def _require_plain(point: Point) -> None:
    """Refuse what is more than a product of stated extents."""
    for key, reason in _BY_TILING.items():
        if key in point.tiling:
            raise Unmapped(reason)
    if "vector" in point.kind and "Matmul_Computation" not in point.id:
        raise Unmapped("GELU runs beside the product on vector cores")
    if "weight" in point.id:
        raise Unmapped("weights are dequantised on vector cores")
    if point.tiling.get("nd2nz") == "on AIV":
        raise Unmapped("vector cores bring B into fractals beside the product")
    if None in (point.m, point.n, point.k):
        raise Unmapped("the extents are not stated")


def _is_warm(point: Point, notes: Notes) -> bool:
    warm = "hot L2" in point.note or point.id.startswith(_IN_A_LOOP)
    if warm:
        notes.add("L2 holds what fits from the run before")
    return warm


def _types(point: Point, notes: Notes) -> Json:
    a, b, c = point.types
    if a.startswith("float32"):
        if "hf32" in a:
            notes.add("float32 proper: its rate is above what HF32's label allows")
        return {"a": "float32", "c": "float32"}
    if a.startswith(("fp8", "fp4", "mxfp4")):
        return _scaled(a, c, notes)
    if a == "?":
        notes.add("inputs of float16")
        a = b = "half"
    if c in {"?", "half/bf16"} or not c:
        notes.add("C is float16")
        c = "float16"
    if a not in _TYPES or b not in _TYPES or c not in _TYPES:
        raise Unmapped(f"types must be ones of the kernel, got {a} x {b} -> {c}")
    made: Json = {"a": _TYPES[a], "c": _TYPES[c]}
    if made["a"] == "int8" and made["c"] != "int32":
        notes.add(_SCALED_BY_FIXPIPE)
        made |= _AS_HALF
    return made


def _scaled(a: str, c: str, notes: Notes) -> Json:
    """Return the types of a product of small floats, which have scales."""
    kind = "float8_e4m3fn"
    if a.startswith("mxfp4"):
        notes.add("8-bit floats: their share of Cube time is that of the 8-bit rate")
    if a.startswith("fp4"):
        kind = "float4_e1m2"
    if c == "half/bf16":
        notes.add("C is float16")
    return {"a": kind, "scale_a": SCALE_TYPE, "c": _TYPES[c]}


def _problem(point: Point, chip: Chip, types: Json, notes: Notes, **keys: object) -> Problem:
    layout = f"{point.trans} {point.formats}"
    stored_nk = re.search(r"B:(T|\[N,K\]|DN)|/Col|\[n,k\]", layout)
    silent = point.trans in {"", "?"} and point.formats not in {"Row/Row", "Row/zN"}
    if silent and not stored_nk:
        notes.add("B is stored [k, n]")
    return Problem(
        chip=chip.name,
        m=point.m or 0,
        n=point.n or 0,
        k=point.k or 0,
        trans_a=layout.startswith("A:T"),
        trans_b=stored_nk is not None,
        format_b="NZ" if "zN" in point.formats else "ND",
        batch=point.tiling.get("batch", 1),
        **{**types, **keys},
    )


def _planned_case(point: Point, chip: Chip, types: Json, notes: Notes) -> CalibrationCase:
    """Return the case of a kernel whose tiling nobody states: the planner's."""
    text = f"{point.tiling.get('kernel', '')} {point.id}".lower()
    keys: Json = {"cores": point.cores} if point.cores else {}
    single_core = "scsplitk" in text or "single_core_splitk" in text
    if ("splitk" in text or "split-k" in text) and not single_core:
        keys |= {"split_k": True}
        accumulator = "int32" if types["a"] == "int8" else "float32"
        if types["c"] != accumulator:
            notes.add(f"slices of K add up in {accumulator}; the last conversion is left out")
            keys |= {"c": accumulator, "epilogue": Epilogue()}
    problem = _problem(point, chip, types, notes, **keys)
    step = "BASIC" if point.origin in {"catlass", "pto"} else "CONSTANT"
    if step == "CONSTANT":
        notes.add("tiling known to the compiler")
    tiling = solve(problem, chip, 1).best.tiling
    alone = without_launch(point, notes)
    notes.add("our planner's tiling")
    in_part = point.id.startswith(_SCALED_BY_VECTOR)
    if in_part:
        notes.add("vector cores scale the result by rows and columns: left out")
    return CalibrationCase(
        chip,
        lambda: matmul_launch(problem, tiling, chip, step),
        "partial" if in_part else "library",
        without_launch=alone,
        assumed=notes.done(),
    )

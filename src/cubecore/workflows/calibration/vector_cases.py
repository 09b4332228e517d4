"""Points of vector kernels, loads and launches as cases."""

from collections.abc import Callable
from dataclasses import replace

from cubecore.chips import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Location, Loop, Program
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign
from cubecore.kernels.elementwise import (
    KIND,
    Elementwise,
    elementwise_launch,
    loads_launch,
    vector_instruction,
)
from cubecore.kernels.operators.functions import FUNCTIONS, OperatorProblem
from cubecore.kernels.operators.named import A2, ASCEND_950, function_launch
from cubecore.units import ceil_div
from cubecore.workflows.calibration.cases import (
    CalibrationCase,
    Notes,
    Unmapped,
    as_measured,
    chip_of,
    has_automatic_flags,
    require_cores,
)
from cubecore.workflows.calibration.columns import ATTENTION, HALVED
from cubecore.workflows.calibration.measured_points import Point
from cubecore.workflows.calibration.operator_cases import OPERATORS, STAND_IN, operator_case

_HERE = Location("points", 0, "case")


def vector_case(point: Point) -> CalibrationCase:
    """Return the case of an element-wise kernel.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    notes = Notes()
    chip = chip_of(point, notes)
    require_cores(point, chip, chip.aiv_count, "AIV")
    cases = {"add": _add_case, "muls": _scaled_case, "nd2nz": _nd2nz_case}
    if not point.op:
        raise Unmapped("op must be stated for kind vector")
    if point.op in OPERATORS:
        return operator_case(point, chip, notes)
    if point.op not in {*cases, *FUNCTIONS}:
        raise Unmapped(f"op must be one that `cubecore time --op` takes, got {point.op!r}")
    for column, value in (("M", point.m), ("N", point.n), ("cores", point.cores)):
        if value is None:
            raise Unmapped(f"{column} must be stated for kind vector")
    return cases.get(point.op, _function_case)(point, chip, notes)


def head_case(point: Point) -> CalibrationCase:
    """Return the case of attention of one head, whose queries, keys and width are M, N and K.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    shape = [1, point.m, point.n, point.k]
    if None in shape:
        raise Unmapped(f"M, N and K must be stated for kind {point.kind}")
    return vector_case(
        replace(point, op=ATTENTION, cores=None, tiling={**point.tiling, "shape": shape})
    )


def _function_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of a function of each element, or of rows."""
    notes.add("instructions by the formula, in float32; two buffers")
    if chip.arch == ASCEND_950:
        notes.add("one vector function a tile")
    columns = point.n or 0
    if point.op in HALVED:
        if columns % 2:
            raise Unmapped(f"N must be even for op {point.op}, whose rows have two halves")
        columns //= 2
    problem = OperatorProblem(point.op, point.m or 0, columns, _type(point))
    function, kind = problem.function, problem.dtype.name
    if kind not in function.takes:
        taken = " or ".join(function.takes)
        raise Unmapped(f"dtype_a must be {taken} for op {point.op}, got {kind}")
    group = "vector" if point.api == "basic" else "vector library"
    if function.by_rows:
        group = "operator"
    return _case(point, chip, lambda: function_launch(problem, chip, point.cores), group, notes)


def _scaled_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of an array times a number."""
    dtype = _type(point)
    work = (("vmuls", 1, dtype),)
    elements = (point.m or 0) * (point.n or 0)
    tile = chip.ub_user_bytes // (6 * dtype.size_bytes) // 128 * 128
    whole = has_automatic_flags(point, notes)
    cores = point.cores or 1
    kernel = Elementwise(elements, dtype, 1, work, tile, 2, cores, drains_rings=whole)
    notes.add("two buffers")
    group = "vector" if point.api == "basic" else "vector library"
    return _case(point, chip, lambda: elementwise_launch(kernel), group, notes)


def _case(
    point: Point, chip: Chip, launch: Callable[[], Launch], group: str, notes: Notes
) -> CalibrationCase:
    if chip.arch != A2 and point.op not in FUNCTIONS:
        notes.add(STAND_IN)
    launch = as_measured(point, launch, notes)
    return CalibrationCase(chip, launch, group, assumed=notes.done())


def _type(point: Point) -> ElementType:
    return element_type(point.types[0])


def _add_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of a sum of two arrays: one core or all, one buffer or two."""
    dtype = _type(point)
    tile = point.tiling["dataCopyLen"]
    buffers, past_l2 = point.tiling.get("buffers", 1), point.tiling.get("past_l2", False)
    work = (("vadd", 1, dtype),)
    elements = (point.m or 0) * (point.n or 0)
    whole = has_automatic_flags(point, notes)
    kernel = Elementwise(
        elements,
        dtype,
        2,
        work,
        tile,
        buffers,
        point.cores or 1,
        past_l2=past_l2,
        drains_rings=whole,
    )
    return _case(point, chip, lambda: elementwise_launch(kernel), "vector", notes)


def _nd2nz_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of rows to fractals inside UB: each element is read and written once."""
    rows, columns = point.tiling["tile"]
    dtype = _type(point)
    notes.add("the copy inside UB as one vmuls; its bank conflicts are left out; two buffers")
    elements = (point.m or 0) * (point.n or 0)
    work = (("vmuls", 1, dtype),)
    kernel = Elementwise(elements, dtype, 1, work, rows * columns, 2, point.cores or 1)
    return _case(point, chip, lambda: elementwise_launch(kernel), "vector", notes)


# --- loads

_STREAM_BYTES = 512
"""Bytes of a row of the tiles that weight streams are taken to load, 64 rows at a time."""


def dma_case(point: Point) -> CalibrationCase:
    """Return the case of a kernel that only loads.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    notes = Notes()
    chip = chip_of(point, notes)
    if "MB" in point.measured:
        return _stream_case(point, chip, notes)
    tiling = point.tiling
    for column in ("tensor", "tile", "into"):
        if tiling.get(column) is None:
            raise Unmapped(f"tiling.{column} must be stated for kind dma_read")
    if point.cores is None:
        raise Unmapped("cores must be stated for kind dma_read")
    into_ub = tiling["into"] == "UB"
    units = (chip.aiv_count, "AIV") if into_ub else (chip.aic_count, "AIC")
    require_cores(point, chip, *units)
    (rows, columns), (tile_rows, tile_columns) = tiling["tensor"], tiling["tile"]
    order = tiling.get("order", "own")
    if order == "same":
        raise Unmapped("that cores hold each other up at one address is not modelled")
    total = rows * columns // (tile_rows * tile_columns)
    each = max(total // point.cores, 1)
    repeats, slices = tiling.get("repeats", 1), tiling.get("slices", 1)
    tiles = [ceil_div(each, slices)]
    if order == "staggered":
        notes.add("L2 is passed by: no two cores ask for the same block at a time")
        tiles = [total]
    if repeats > 1:
        tiles = [-repeats, *tiles]
    if slices > 1:
        tiles = [slices, *tiles]
    template = _transfer(into_ub, tile_rows, tile_columns, columns)
    return _loads_case(point, chip, template, tiles, tile_rows * tile_columns * 2, notes)


def _stream_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of weights that stream through all cores."""
    rows, columns = 64, _STREAM_BYTES // 2
    notes.add(f"tiles of {rows} rows of {_STREAM_BYTES} B, on all cores")
    size = rows * _STREAM_BYTES
    cores = chip.aic_count
    tiles = [ceil_div(int(point.measured["MB"] * 1e6), size * cores)]
    template = _transfer(False, rows, columns, columns)
    return _loads_case(replace(point, cores=cores), chip, template, tiles, size, notes)


def _loads_case(
    point: Point, chip: Chip, template: Instruction, trips: list[int], tile_bytes: int, notes: Notes
) -> CalibrationCase:
    """Return the case of a transfer of a tile in loops of so many trips."""
    cores = point.cores or 1
    return _case(
        point, chip, lambda: loads_launch(template, trips, cores, tile_bytes), "dma", notes
    )


def _transfer(into_ub: bool, rows: int, columns: int, pitch: int) -> Instruction:
    """Return the load of a tile of 16-bit elements out of rows of `pitch`."""
    if not into_ub:
        half = element_type("float16")
        return CopyGmToCbufMultiNd2Nz(
            dtype=half, n_value=rows, d_value=columns, src_d_value=pitch, dst_nz_c0_stride=rows
        )
    gap = (pitch - columns) * 2 if rows > 1 else 0
    half = element_type("float16")
    return CopyGmToUbufAlign(dtype=half, n_burst=rows, len_burst=columns * 2, src_gap=gap)


# --- micro-benchmarks and launches


def bench_case(point: Point) -> CalibrationCase:
    """Return the case of a thousand Adds of 4096 floats at stated addresses.

    Raises
    ------
    Unmapped
        If the point cannot be timed, with the reason.
    """
    notes = Notes()
    chip = chip_of(point, notes)
    if "src0" not in point.tiling or "cycles_1000_add" not in point.measured:
        raise Unmapped("register-vector code of architecture 3510 has no instructions here")
    if any(name.endswith("Stride") for name in point.tiling):
        raise Unmapped("the strides of the repeated block are not stated in full")
    addresses = [int(str(point.tiling[name]), 0) for name in ("dst", "src0", "src1")]
    notes.add("the counter ticks at 50 MHz")
    add = vector_instruction("vadd", element_type("float32"), 64)
    issue = Issue(add, tuple(Expr(address) for address in addresses), _HERE)
    program = Program((Loop(Var("i", 0), Expr(1000), (issue,)),))
    launch = Launch((TensorSpec("x", 1),), (CoreProgram(0, program, {}),), KIND)
    return CalibrationCase(chip, lambda: launch, "bench", assumed=notes.done())


def launch_case(point: Point) -> CalibrationCase:
    """Return the case of an empty kernel.

    Raises
    ------
    Unmapped
        If there are more blocks than the chip has cores.
    """
    notes = Notes()
    chip = chip_of(point, notes)
    blocks = point.cores or 1
    if blocks > (chip.aiv_count or 0):
        raise Unmapped("more blocks than cores: how they queue is not modelled")
    program = Program(())
    cores = tuple(CoreProgram(i, program, {}) for i in range(blocks))
    empty = replace(chip, short_start_cycles={KIND: 1})
    notes.add("an empty kernel starts nothing")
    launch = Launch((TensorSpec("x", 1),), cores, KIND)
    return CalibrationCase(empty, lambda: launch, "launch", assumed=notes.done())

"""Points of operators as cases: named ones, and any that reads, computes and writes arrays."""

from cubecore.advice.intervals import ATTENTION_LIBRARY
from cubecore.chips import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.kernels.elementwise import Elementwise, elementwise_launch
from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.kernels.operators.attention.shape import KEYS as ATTENTION_KEYS
from cubecore.kernels.operators.attention.shape import ROWS
from cubecore.kernels.operators.functions import FUNCTIONS
from cubecore.kernels.operators.named import (
    A2,
    attention_on,
    counts_of,
    operator_names,
    operator_of,
)
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div
from cubecore.workflows.calibration.cases import (
    CalibrationCase,
    Notes,
    Unmapped,
    as_measured,
    has_automatic_flags,
)
from cubecore.workflows.calibration.columns import ATTENTION, ATTENTION_CUTS, ELEMENTWISE, is_extent
from cubecore.workflows.calibration.measured_points import Point

_SHAPED = tuple(name for name in operator_names() if name not in FUNCTIONS and name != ATTENTION)
OPERATORS = (ATTENTION, ELEMENTWISE, *_SHAPED)
"""Operators whose sizes are in the tiling's columns."""
STAND_IN = "unary and binary instructions of architecture 2201"
_TYPES = {"half": "float16", "float": "float32"}
_BY_RESULT, _RESULT = ("quant_matmul",), 2
_COMPUTED = ("float16", "float32", "int16", "int32")
"""Types that the Vector unit adds to; others are computed in float32."""
_COUNTED = ("reads", "writes", "instructions")
_BUFFERS, _LANES = 2, 128
_FUSED = 3
"""Of so many instructions one goes to UB where code computes in registers."""


def operator_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of an operator of `OPERATORS`.

    Raises
    ------
    Unmapped
        If a size that it needs is not stated.
    """
    if point.op == ELEMENTWISE:
        return _elementwise_case(point, chip, notes)
    if point.op == ATTENTION:
        return _attention_case(point, chip, notes)
    return _named_case(point, chip, notes)


def _named_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of an operator of `time --op`, on all cores of the chip."""
    shape, counts = point.tiling.get("shape"), counts_of(point.op)
    if not isinstance(shape, list) or len(shape) != len(counts) or not all(map(is_extent, shape)):
        raise Unmapped(f"tiling.shape must be {' x '.join(counts)} of {point.op}, got {shape!r}")
    # A and B of a quantised matmul are int8, so that the type in question is the result's.
    number = _RESULT if point.op in _BY_RESULT else 0
    operator = operator_of(point.op, shape, _type(point, number).name)
    if operator.cores == "mix":
        chip.require("cross_core_cycles", "timing")
    notes.add("the operator as time --op has it, on all cores")
    launch_of = as_measured(point, lambda: operator.timed_launch(chip), notes)
    return CalibrationCase(chip, launch_of, "operator", assumed=notes.done())


def _elementwise_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of an operator that reads and writes whole arrays and computes between."""
    for name in _COUNTED:
        if point.tiling.get(name) is None:
            raise Unmapped(f"tiling.{name} must be stated for op {ELEMENTWISE}")
    reads, writes, work = (int(point.tiling[name]) for name in _COUNTED)
    if point.m is None or point.n is None or point.cores is None:
        raise Unmapped(f"M, N and cores must be stated for op {ELEMENTWISE}")
    dtype, elements = _type(point), point.m * point.n
    computed = dtype if dtype.name in _COMPUTED else element_type("float32")
    if computed is not dtype:
        notes.add(f"{dtype.name} computed in float32, whose conversions are among the instructions")
    if chip.arch != A2:
        work = ceil_div(work, _FUSED)
        notes.add("fused in registers: a third of the instructions")
        notes.add(STAND_IN)
    # Tiles of a narrow type are as far apart as those of the type that is computed in, so that the
    # instructions on all of a tile touch no other tile's bytes.
    size = max(dtype.size_bytes, computed.size_bytes)
    room = chip.ub_user_bytes // (_BUFFERS * (reads + 1) * size) // _LANES * _LANES
    share = align_up(ceil_div(elements, point.cores), DATA_BLOCK_BYTES)
    tile = min(room, align_up(share, _LANES))
    notes.add("two buffers")
    kernel = Elementwise(
        elements,
        dtype,
        reads,
        (("vadds", work, computed),) if work else (),
        tile,
        _BUFFERS,
        point.cores,
        skew_bytes=tile * (size - dtype.size_bytes),
        outputs=writes,
        drains_rings=has_automatic_flags(point, notes),
    )
    launch = as_measured(point, lambda: elementwise_launch(kernel), notes)
    group = "vector" if point.api == "basic" else "vector library"
    return CalibrationCase(chip, launch, group, assumed=notes.done())


def _attention_case(point: Point, chip: Chip, notes: Notes) -> CalibrationCase:
    """Return the case of attention, with the cuts that the point states."""
    heads, queries, keys, width = point.tiling["shape"]
    tiling, by_hand = point.tiling, point.api == "basic"
    notes.add("attention on the AI Cores")
    if by_hand:
        notes.add("two blocks of keys ahead, as in kernels tuned by hand")
    stated = {name: tiling[name] for name in ATTENTION_CUTS if name in tiling}
    options = AttentionOptions(
        causal=bool(tiling.get("causal")), **{"ahead": 1 + by_hand, **stated}
    )
    # A mask needs as many keys before the rows that are added as before the last one.
    rows = options.rows or ROWS
    if queries * options.group(heads) > ROWS and (rest := -queries % rows):
        queries, keys = queries + rest, keys + rest * options.causal
        notes.add("queries in whole blocks of rows")
    shape = options.shape((heads, queries, align_up(keys, ATTENTION_KEYS), width), _type(point))
    chip.require("cross_core_cycles", "timing")
    launch = as_measured(point, lambda: attention_on(shape, chip), notes)
    return CalibrationCase(
        chip, launch, ATTENTION if by_hand else ATTENTION_LIBRARY, assumed=notes.done()
    )


def _type(point: Point, number: int = 0) -> ElementType:
    name = point.types[number]
    return element_type(_TYPES.get(name, name))

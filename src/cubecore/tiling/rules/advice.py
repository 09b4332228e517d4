"""Advice: recommendations, and legal but wasteful choices. Never a violation."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cubecore.citations import EDITIONS, cite_row
from cubecore.tiling.model.problem import SCALE_GROUP
from cubecore.tiling.model.tcubetiling import RESERVED_FIELDS
from cubecore.tiling.rules.buffers import l0a_capacity, l0b_capacity
from cubecore.tiling.rules.extents import ND_INNER_LIMIT, NO_INTRINSICS_CHECK_ARCH
from cubecore.tiling.rules.l1 import l1_capacity
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.rules.ub import converts_in_ub
from cubecore.units import INT32_MAX, ceil_div, plural

RECOMMENDED_BASE = (128, 256, 64)
ROWS = {
    "BASE": ("000/rec/base", "001/rec/base"),
    "DOUBLE-BUFFER-L0": ("000/rec/dbL0", "001/rec/dbL0"),
    "DOUBLE-BUFFER-A1": ("000/rec/depthA1", "001/rec/depthA1"),
    "DOUBLE-BUFFER-B1": ("000/rec/depthB1", "001/rec/depthB1"),
    "K-FULL-LOAD": ("000/rec/k-full-load", "001/rec/k-full-load"),
    "MN-FULL-LOAD": ("000/rec/k-full-load", "001/rec/k-full-load"),
    "INTRINSICS-CHECK": ("000/t1/M",),
    "MX-SCALE-PADDING": ("000/t2/mx",),
    "MX-TYPE-PARA-UNUSED": ("000/t1/mxTypePara",),
    "RESERVED-FIELD": tuple(
        f"{page}/t1/{name}" for page in EDITIONS.values() for name in RESERVED_FIELDS
    ),
}
"""The pages' rows that each piece of advice carries; the others are cubecore's own."""

MEANINGS = {
    "BASE": "the base block is not the one that the page recommends",
    "CORES-CAPPED": "more cores are asked for than the chip has",
    "DOUBLE-BUFFER-A1": "A has one buffer in L1, so that loads and Mmad take turns",
    "DOUBLE-BUFFER-B1": "B has one buffer in L1, so that loads and Mmad take turns",
    "DOUBLE-BUFFER-L0": "L0A or L0B has one buffer, so that loads and Mmad take turns",
    "IDLE-CORES": "fewer cores are used than may be",
    "INTRINSICS-CHECK": "a stored row is longer than a load takes without intrinsicsCheck",
    "K-FULL-LOAD": "L1 has room for all of K, which is then loaded once",
    "L1-RESERVED": "the tiling takes L1 that the vendor's tiling library keeps for itself",
    "MN-FULL-LOAD": "L1 has room for M or N beside all of K",
    "MX-SCALE-PADDING": "scales must be stored in whole pairs along K",
    "MX-TYPE-PARA-UNUSED": "mxTypePara is set where nothing reads it",
    "POSITION": "the vendor's Matmul object does not take the operand from there",
    "POSITION-TIME": "the prediction counts an operand as if it lay in GM",
    "RESERVED-FIELD": "a reserved field holds another value than the vendor's library writes",
    "TRANSPOSED-INT8": "the vendor's Matmul object does not take a transposed A of int8 here",
}
"""The advice by its id, in one line."""


_INFERENCE_ARCH = "2002"
"""Atlas inference matmuls, which SetAType excepts from a transposed A of int8."""
_FROM_ANY = ("GM", "VECOUT", "TSCM")
TAKEN_FROM: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("2201", "3510", "3003"), _FROM_ANY),
        "2002": ("GM", "VECOUT"),
        "3002": ("GM",),
        "3113": ("TSCM",),
    }
)
"""The positions of A and B of a Matmul object, by architecture (vendor's Matmul pages, MatmulType);
others have no Matmul objects."""
LEFT_IN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("2201", "3510", "2002"), ("GM", "VECIN")),
        **dict.fromkeys(("3002", "3113", "3003"), ("GM",)),
    }
)
"""The positions of C (same page; CO1, which the page names too, is not a position of ours)."""


@dataclass(frozen=True)
class Advice:
    """One piece of advice: its id, one sentence, and where it comes from."""

    id: str
    message: str
    source: str

    def to_json(self) -> dict[str, str]:
        """Return the three parts."""
        return {"id": self.id, "message": self.message, "source": self.source}


def advise(case: RuleCase) -> tuple[Advice, ...]:
    """Return the advice for one tiling. Extents or blocks that are not positive get none."""
    t = case.tiling
    sizes = (t.baseM, t.baseN, t.baseK, t.stepM, t.stepN, t.stepKa, t.stepKb, t.singleCoreK)
    texts = [*_cores(case), *_intrinsics(case), *_scales(case), *_transposed(case)]
    texts += [*_positions(case), *_unread(case)]
    if min(sizes) > 0:
        texts += [*_free_l1(case), *_buffers(case), *_blocks(case)]
    return tuple(Advice(name, text, _source(name, case.edition)) for name, text in texts)


def advise_plan(case: RuleCase) -> tuple[Advice, ...]:
    """Return the advice about what was asked for, and a full L1.

    How the tiling could be otherwise is the planner's.
    """
    texts = [*_capped(case), *_intrinsics(case), *_scales(case), *_transposed(case)]
    texts += [*_positions(case), *_free_l1(case)]
    for key in ("pos_a", "pos_b", "pos_c"):
        position = getattr(case.problem, key)
        if position != "GM":
            text = f"the prediction counts {key[-1].upper()} in {position} as if it lay in GM"
            texts.append(("POSITION-TIME", text))
    return tuple(Advice(name, text, _source(name, case.edition)) for name, text in texts)


def _source(name: str, edition: str) -> str:
    """Return the page and table that say so in `edition`; else the advice is our own."""
    for row in ROWS.get(name, ()):
        if row.startswith(EDITIONS[edition]):
            return cite_row(row)
    return "cubecore"


def _capped(case: RuleCase) -> Iterator[tuple[str, str]]:
    asked, limit = case.problem.cores, case.problem.core_limit(case.chip)
    if asked is not None and asked > limit:
        yield "CORES-CAPPED", f"cores = {asked} is more than {case.chip.name} has: {limit} are used"


def _cores(case: RuleCase) -> Iterator[tuple[str, str]]:
    yield from _capped(case)
    count = case.problem.core_count(case.chip)
    used = case.tiling.usedCoreNum
    if 0 < used < count:
        yield "IDLE-CORES", f"usedCoreNum = {used} leaves {plural(count - used, 'core')} idle"


def _intrinsics(case: RuleCase) -> Iterator[tuple[str, str]]:
    if case.problem.intrinsics_check or case.chip.arch == NO_INTRINSICS_CHECK_ARCH:
        return
    t, p = case.tiling, case.problem
    for operand, name in (("A", "M" if p.trans_a else "Ka"), ("B", "Kb" if p.trans_b else "N")):
        value = getattr(t, name)
        if value > ND_INNER_LIMIT:
            text = f"{name} = {value} is longer than {ND_INNER_LIMIT}, a stored row of {operand}"
            yield "INTRINSICS-CHECK", f"{text}: enable intrinsicsCheck in MatmulConfig"


def _scales(case: RuleCase) -> Iterator[tuple[str, str]]:
    p, t = case.problem, case.tiling
    groups = ceil_div(t.singleCoreK, SCALE_GROUP)
    if p.mx and {p.pos_a, p.pos_b} == {"GM"} and groups % 2:
        text = f"ceil(singleCoreK / {SCALE_GROUP}) = {groups} is odd"
        yield "MX-SCALE-PADDING", f"{text}: store scaleA and scaleB with a 0 more along K"
    if t.mxTypePara and not (p.mx and p.template == "MDL"):
        why = f"the {p.template} template" if p.mx else "a matmul without scales"
        yield "MX-TYPE-PARA-UNUSED", f"mxTypePara = {t.mxTypePara} has no effect in {why}"


def _transposed(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Name what the vendor's Matmul pages exclude, though its tiling library plans it."""
    p = case.problem
    if p.trans_a and p.a == "int8" and case.chip.arch == _INFERENCE_ARCH:
        text = f"Matmul takes no transposed A of int8 on {case.chip.name}"
        yield "TRANSPOSED-INT8", f"{text} (vendor's SetAType)"


def _positions(case: RuleCase) -> Iterator[tuple[str, str]]:
    arch = case.chip.arch
    for key, allowed in (("pos_a", TAKEN_FROM), ("pos_b", TAKEN_FROM), ("pos_c", LEFT_IN)):
        position = getattr(case.problem, key)
        if arch in allowed and position not in allowed[arch]:
            verb = "leaves" if key == "pos_c" else "takes"
            text = f"Matmul {verb} {key[-1].upper()} {'in' if key == 'pos_c' else 'from'}"
            yield (
                "POSITION",
                f"{text} {' or '.join(allowed[arch])} on {case.chip.name}, not {position}",
            )


def _unread(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Name the reserved fields that hold neither 0 nor the value of the vendor's library."""
    for name, written in _written(case).items():
        value = getattr(case.tiling, name)
        if value and value not in written:
            text = f"{name} = {value} is in a reserved field: leave it as the library wrote it"
            yield "RESERVED-FIELD", f"{text}, or 0"


def _written(case: RuleCase) -> dict[str, Container[int]]:
    """Return the values that the vendor's library writes into each reserved field.

    By its recorded answers: L0C's block of C; A's and B's blocks in L1 with or without the bias;
    batches of 1. Where layouts change in UB its sizes of L1 and UB are known by bounds only: what
    these blocks and that of C take, and the whole memories.
    """
    t, p, chip = case.tiling, case.problem, case.chip
    a = 0 if p.pos_a == "TSCM" else case.a.bytes_of(t.depthA1 * t.baseM * t.baseK)
    b = 0 if p.pos_b == "TSCM" else case.b.bytes_of(t.depthB1 * t.baseN * t.baseK)
    l1: Container[int] = {a + b, a + b + (p.bias_type.bytes_of(t.baseN) if p.bias_type else 0)}
    ub: Container[int] = {0}
    if converts_in_ub(case):
        l1 = range(a + b, chip.l1_bytes + 1)
        least = p.c_type.bytes_of(t.baseM * t.baseN) if p.pos_c == "GM" else 0
        ub = range(least, chip.ub_bytes + 1)
    return {
        "shareMode": {0},
        "shareL1Size": l1,
        "shareL0CSize": {case.accumulator.bytes_of(t.baseM * t.baseN)},
        "shareUbSize": ub,
        **{name: {1} for name in RESERVED_FIELDS if "atch" in name},
    }


def _free_l1(case: RuleCase) -> Iterator[tuple[str, str]]:
    measure, free = l1_capacity(case), case.chip.l1_user_bytes
    if measure is not None and measure.holds() and measure.used > free:
        text = f"L1 use = {measure.used} B is more than the {free} B that the tiling library plans"
        text = f"{text}: measured to work, but leaves no room for anything else"
        yield "L1-RESERVED", f"{text}; a budget of {free} B for L1 plans with less"


def _buffers(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Advise two buffers where one serialises pipes: so as they fit."""
    t = case.tiling
    for name, capacity in (("dbL0A", l0a_capacity), ("dbL0B", l0b_capacity)):
        if getattr(t, name) == 1:
            text = f"{name} = 1 serialises MTE1 and the Cube"
            measure = capacity(case.with_tiling({name: 2}))
            fits = measure is not None and bool(measure.holds())
            yield "DOUBLE-BUFFER-L0", f"{text}: {_recommended(2, name[2:], fits=fits)}"
    for side, depth, product in (
        ("A", t.depthA1, t.stepM * t.stepKa),
        ("B", t.depthB1, t.stepN * t.stepKb),
    ):
        if depth == product:
            text = f"depth{side}1 = {depth} is one step, which serialises MTE2 and MTE1"
            fits = _fits_l1(case, {f"depth{side}1": 2 * product})
            said = _recommended(2 * product, "L1", fits=fits)
            yield f"DOUBLE-BUFFER-{side}1", f"{text}: {said}"


def _recommended(value: int, memory: str, *, fits: bool) -> str:
    """Return the value that is recommended, or that it needs a shorter step or block to fit."""
    if fits:
        return f"{value} is recommended"
    smaller = "a shorter step" if memory == "L1" else "a smaller block"
    return f"{value} does not fit {memory}, {smaller} in two buffers would"


def _blocks(case: RuleCase) -> Iterator[tuple[str, str]]:
    t = case.tiling
    base = (t.baseM, t.baseN, t.baseK)
    single = (t.singleCoreM, t.singleCoreN, t.singleCoreK)
    fills = all(extent >= best for extent, best in zip(single, RECOMMENDED_BASE, strict=True))
    if base != RECOMMENDED_BASE and fills:
        text = " x ".join(str(x) for x in base)
        best = " x ".join(str(x) for x in RECOMMENDED_BASE)
        yield "BASE", f"base {text} is not the recommended {best}"
    yield from _full_loads(case)


def _full_loads(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Advise to hold all of K in L1; where both operands do, all of M or of N as well."""
    t = case.tiling
    blocks = ceil_div(t.singleCoreK, t.baseK)
    for step, depth, other in (("stepKa", "depthA1", t.stepM), ("stepKb", "depthB1", t.stepN)):
        if getattr(t, step) < blocks and _fits_l1(case, {step: blocks, depth: other * blocks}):
            yield "K-FULL-LOAD", f"{step} = {getattr(t, step)}: all {blocks} blocks of K fit L1"
    if min(t.stepKa, t.stepKb) < blocks:
        return
    for axis, depth, all_blocks, along_k in (
        ("M", "depthA1", ceil_div(t.singleCoreM, t.baseM), t.stepKa),
        ("N", "depthB1", ceil_div(t.singleCoreN, t.baseN), t.stepKb),
    ):
        step = getattr(t, f"step{axis}")
        buffers = 2 if getattr(t, depth) >= 2 * step * along_k else 1
        wanted = {f"step{axis}": all_blocks, depth: buffers * all_blocks * along_k}
        if step < all_blocks and _fits_l1(case, wanted):
            text = f"step{axis} = {step}: all {all_blocks} blocks of {axis} fit L1 with all of K"
            yield "MN-FULL-LOAD", text


def _fits_l1(case: RuleCase, changes: Mapping[str, int]) -> bool:
    """Return whether L1 holds the blocks of a tiling with other steps and depths."""
    if max(changes.values()) > INT32_MAX:
        return False
    measure = l1_capacity(case.with_tiling(changes))
    return measure is not None and bool(measure.holds())

"""Reasons for the time of a matmul, in words: most are timed again with their cause left out.

A cause is left out on the chip or in the tiling, whether or not such a chip or tiling could be; the
difference is the cost that is told. Costs of several reasons do not add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cubecore.chips.costs import DEPENDENT_MAD_FRACTALS, LINE_BYTES, are_dependent
from cubecore.isa.mte.copies import ND2NZ_PITCH_LIMIT
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.presented.text import table
from cubecore.tiling.cost.closed_form import start_cycles
from cubecore.tiling.model.core_grid import problem_blocks
from cubecore.units import align_up, ceil_div, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cubecore.aliases import Json
    from cubecore.dtypes import ElementType
    from cubecore.planning.timed_product import TimedProduct
    from cubecore.timing.records import Timeline

LEAST_SHARE = 0.02
"""Share of the time below which a cause is not told."""
START_SHARE, SCALAR_SHARE, EVEN = 0.1, 0.8, 0.9
READ_AGAIN = 1.1
"""Times A and B that device memory brings before it is told."""
MEASURED_HEIGHTS = {"rows": 2.59, "blocks": 1.62, "chunks": 1.62}
"""Factors by which rows that begin off 256 B slow the published matmul that they slow most, as the
model has it: where rows lie so apart, and where blocks begin so. More rests on no measurement."""
ROW_STARTS, LONG_ROWS = "row starts", "long rows"
_MANY_L2 = 1 << 50


@dataclass(frozen=True, slots=True)
class Reason:
    """One cause of a matmul's time.

    `cause` names the kind and `text` says what it is, with the field to change where one helps.
    `cycles` are those that are saved without it, None where it cannot be left out alone.
    `fields` are values that fix it, `rough` says that no measurement has a cost of this size.
    """

    cause: str
    text: str
    cycles: int | None = None
    fields: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    rough: bool = False

    def to_json(self) -> Json:
        """Return the reason as JSON."""
        return {
            "cause": self.cause,
            "text": self.text,
            "cycles": self.cycles,
            "fields": dict(self.fields),
            "rough": self.rough,
        }


def reasons(product: TimedProduct, line: Timeline) -> tuple[Reason, ...]:
    """Return why a matmul whose timeline is `line` takes its time, the dearest cause first."""
    kinds = _read_again, _serial_products, _scalar_unit
    others = [reason for kind in kinds for reason in kind(product, line)]
    return dearest([*_without_line(product, line.cycles), *others], line.cycles)


def reasons_without_line(product: TimedProduct, cycles: int) -> tuple[Reason, ...]:
    """Return those of the reasons for so many cycles that are known without a timeline."""
    return dearest(_without_line(product, cycles), cycles)


def _without_line(product: TimedProduct, cycles: int) -> list[Reason]:
    kinds = _long_rows, _row_starts, _one_buffer, _start_up, _idle_cores
    return [reason for kind in kinds for reason in kind(product, cycles)]


def dearest(candidates: Sequence[Reason], cycles: int) -> tuple[Reason, ...]:
    """Return what costs enough to be told, the dearest first."""
    least = LEAST_SHARE * cycles
    significant = [one for one in candidates if one.cycles is None or one.cycles >= least]
    return tuple(sorted(significant, key=lambda one: -(one.cycles or 0)))


def _cycles(product: TimedProduct) -> int:
    """Return the cycles of a matmul, without its trees where that is known."""
    if product.step is None and not product.padded:
        closed_form = launch_time(product.problem, product.tiling, product.chip)
        if closed_form is not None:
            return closed_form.cycles
    return product.line.cycles


# --- rows


def _long_rows(product: TimedProduct, cycles: int) -> Iterator[Reason]:
    """Rows of A or B so long that a load cannot step from one to the next."""
    for operand in "ab":
        row = _stored_row(product, operand)
        if row is None or not _is_long(row.extent, row.dtype):
            continue
        whole = f"rows of {operand.upper()} have {row.extent:,} elements"
        why = f"over {ND2NZ_PITCH_LIMIT:,} each is a load of its own"
        orders: list[tuple[str, Json]] = []
        if not _is_long(row.other, row.dtype):
            text = f"stored {row.other_order} it has rows of {row.other:,}"
            orders.append((text, {f"trans_{operand}": not row.transposed}))
        orders.append(("stored NZ it has none", {f"format_{operand}": "NZ"}))
        for text, change in orders:
            stored = replace(product, problem=replace(product.problem, **change))
            if stored.legal:
                yield Reason(LONG_ROWS, f"{whole}; {why}; {text}", cycles - _cycles(stored))
                break
        else:
            yield Reason(LONG_ROWS, f"{whole}; {why}")


@dataclass(frozen=True, slots=True)
class _StoredRow:
    """The rows of an ND operand: their elements, and those of rows if it were stored otherwise."""

    axis: str
    extent: int
    other: int
    transposed: bool
    other_order: str
    dtype: ElementType

    @property
    def along_k(self) -> bool:
        """True if a row runs along K."""
        return self.axis == "K"


def _stored_row(product: TimedProduct, operand: str) -> _StoredRow | None:
    """Return the rows of "a" or "b" as they are stored; None where they are fractals."""
    p, t = product.problem, product.tiling
    if (p.format_a, p.format_b)["ab".index(operand)] == "NZ":
        return None
    if operand == "a":
        outer, k, axis, along_k, dtype = t.M, t.Ka, "M", not p.trans_a, p.a_type
    else:
        outer, k, axis, along_k, dtype = t.N, t.Kb, "N", p.trans_b, p.b_type
    transposed = p.trans_a if operand == "a" else p.trans_b
    if along_k:
        return _StoredRow("K", k, outer, transposed, f"[k, {axis.lower()}]", dtype)
    return _StoredRow(axis, outer, k, transposed, f"[{axis.lower()}, k]", dtype)


def _is_long(extent: int, dtype: ElementType) -> bool:
    """True if rows of so many elements are loaded one by one; pairs of 4 bits move as bytes."""
    each = max(8 // dtype.bits, 1)
    return extent > each * ND2NZ_PITCH_LIMIT


def _row_starts(product: TimedProduct, cycles: int) -> Iterator[Reason]:
    """Rows of A or B that begin off the boundary on which they cost nothing more."""
    penalised = _all_off_boundary(product)
    if not penalised or not _has_boundary(product):
        return
    table = product.chip.gm_to_l1_misaligned_block_cycles or {}
    free = MappingProxyType(dict.fromkeys(table, 0.0))
    level = replace(product.chip, gm_to_l1_misaligned_block_cycles=free)
    without = _cycles(replace(product, chip=level))
    height = max(MEASURED_HEIGHTS[off.what] for off in penalised)
    rough = cycles > height * without
    text = _together(penalised)
    yield Reason(ROW_STARTS, text, cycles - without, on_boundary(product), rough)


def _has_boundary(product: TimedProduct) -> bool:
    """Return whether it costs something where rows begin, and they are not padded already."""
    return bool(product.chip.gm_to_l1_misaligned_block_cycles) and not product.padded


def _together(penalised: Sequence[_OffBoundary]) -> str:
    return "; ".join(f"{off.what} of {off.text}" for off in penalised)


def padded_extents(product: TimedProduct) -> tuple[str, Mapping[str, int]] | None:
    """Return how rows of A or B begin off the boundary, and the sizes that put them on it.

    The sizes are those of the problem that change, "n" or another. None where rows begin on it,
    or where the chip has no cost for it.
    """
    off = [one for one in _all_off_boundary(product) if one.extents]
    if not off or not _has_boundary(product):
        return None
    return _together(off), {axis: value for one in off for axis, value in one.extents.items()}


def on_boundary(product: TimedProduct) -> Mapping[str, int]:
    """Return the shares of the cores with which blocks of A and B begin on the boundary."""
    off = _all_off_boundary(product)
    return {name: value for one in off for name, value in one.fields.items()}


@dataclass(frozen=True, slots=True)
class _OffBoundary:
    """Rows, blocks or chunks of an operand that begin off a boundary: `what` they are, and how.

    `fields` of the tiling, or `extents` of the problem, put them on it.
    """

    what: str
    text: str
    fields: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    extents: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def _all_off_boundary(product: TimedProduct) -> list[_OffBoundary]:
    """Return those of A and of B."""
    operands = [_off_boundary(product, operand) for operand in "ab"]
    return [off for off in operands if off is not None]


def _off_boundary(product: TimedProduct, operand: str) -> _OffBoundary | None:
    """Return what of an operand begins off a boundary, how, and the value that puts it on one."""
    row = _stored_row(product, operand)
    if row is None:
        return None
    t, name, axis_name = product.tiling, operand.upper(), "M" if operand == "a" else "N"
    along_k, extent, dtype = row.along_k, row.extent, row.dtype
    off = f"B apart, off the boundary of {LINE_BYTES} B"
    line = 8 * LINE_BYTES // dtype.bits
    pitch = int(dtype.bytes_of(extent))
    if pitch % LINE_BYTES:
        padded = align_up(extent, line)
        begin = f"{name} begin {pitch:,} {off}"
        if _is_long(padded, dtype) and not _is_long(extent, dtype):
            text = f"{begin}; padded to {padded:,} each row would be a load of its own"
            return _OffBoundary("rows", text)
        text = f"{begin}; {row.axis} padded to {padded:,} puts them on it"
        return _OffBoundary("rows", text, extents={row.axis.lower(): padded})
    step, base = (
        (getattr(t, f"stepK{operand}"), t.baseK)
        if along_k
        else (getattr(t, f"step{axis_name}"), getattr(t, f"base{axis_name}"))
    )
    share = "singleCoreK" if along_k else f"singleCore{axis_name}"
    size = getattr(t, share)
    if size < extent and size % line:
        apart, value = int(dtype.bytes_of(size)), align_up(size, line)
        text = f"{name} begin {apart:,} {off}; {share} = {value:,} puts them on it"
        return _OffBoundary("blocks", text, {share: value})
    if step * base < min(size, extent) and step * base % line:
        fields = f"stepK{operand} x baseK" if along_k else f"step{axis_name} x base{axis_name}"
        apart, value = int(dtype.bytes_of(step * base)), align_up(step * base, line)
        text = f"{name} begin {apart:,} {off}; {fields} = {value:,} puts them on it"
        return _OffBoundary("chunks", text)
    return None


# --- buffers and memory


def _one_buffer(product: TimedProduct, cycles: int) -> Iterator[Reason]:
    """Places with one buffer, for which two pipes take turns."""
    for name, value, text in _lone_buffers(product):
        second = product.with_tiling(**{name: value})
        room = "" if second.legal else ", for which there is no room"
        fields = {name: value} if second.legal else {}
        saved = cycles - _cycles(second)
        yield Reason("one buffer", f"{text}; {name} = {value} gives two{room}", saved, fields)


def _lone_buffers(product: TimedProduct) -> Iterator[tuple[str, int, str]]:
    """Yield the field of each, the value for two, and which pipes wait for each other."""
    p, t = product.problem, product.tiling
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    m, n = min(t.singleCoreM, t.M), min(t.singleCoreN, t.N)
    tiles = ceil_div(m, t.baseM) * ceil_div(n, t.baseN)
    for name, blocks, step, step_k in (
        ("A", ceil_div(m, t.baseM), t.stepM, t.stepKa),
        ("B", ceil_div(n, t.baseN), t.stepN, t.stepKb),
    ):
        depth = f"depth{name}1"
        loads = ceil_div(blocks, step) * ceil_div(k_steps, step_k)
        if p.template == "MDL" and loads > 1 and getattr(t, depth) < 2 * step * step_k:
            text = f"{name} has one buffer in L1, so that loads wait for the moves out of it"
            yield depth, 2 * step * step_k, text
    for name in ("dbL0A", "dbL0B"):
        if getattr(t, name) == 1 and k_steps * tiles > 1:
            yield name, 2, f"{name[2:]} has one buffer, so that moves wait for the Mmad before"
    if t.dbL0C == 1 and tiles > 1 and not p.shares_unit_flag:
        yield "dbL0C", 2, "L0C has one buffer, so that a tile waits for the store of the one before"


def _read_again(product: TimedProduct, line: Timeline) -> Iterator[Reason]:
    """A and B that L2 does not hold until they are used again."""
    p, chip = product.problem, product.chip
    whole = p.batch * (p.a_type.bytes_of(p.m * p.k) + p.b_type.bytes_of(p.shared_k * p.n))
    again = line.hbm_read_bytes / whole
    if again < READ_AGAIN:
        return
    without = _cycles(replace(product, chip=replace(chip, l2_bytes=_MANY_L2)))
    size = (chip.l2_bytes or 0) / 1e6
    text = f"device memory brings A and B {again:.1f} times; L2 has {size:,.0f} MB"
    yield Reason("read again", text, line.cycles - without)


# --- cores and instructions


def _start_up(product: TimedProduct, cycles: int) -> Iterator[Reason]:
    chip = product.chip
    started = start_cycles(chip, product.step)
    if started >= START_SHARE * cycles:
        text = f"launch and core start cost {chip.microseconds(started):.1f} us, whatever the shape"
        yield Reason("start-up", text, started)


def _idle_cores(product: TimedProduct, cycles: int) -> Iterator[Reason]:
    """Cores without work, and blocks of which one is larger than the others."""
    del cycles
    p, chip = product.problem, product.chip
    blocks, limit = problem_blocks(p, chip, product.tiling), p.core_limit(chip)
    if len(blocks) < limit:
        text = f"{plural(limit - len(blocks), 'core')} of {limit} have no block of C"
        yield Reason("idle cores", text)
    work = [block.m_len * block.n_len * block.k_len * block.batches for block in blocks]
    uneven = max(work) * len(work) / sum(work)
    if EVEN * uneven > 1:
        yield Reason("uneven blocks", f"the largest block is {uneven:.2f} times the mean one")


def _serial_products(product: TimedProduct, line: Timeline) -> Iterator[Reason]:
    """Mmads that wait for each other, since a base block is small."""
    t = product.tiling
    serial = are_dependent(t.baseM, t.baseN) and ceil_div(t.singleCoreK, t.baseK) > 1
    if serial and line.limited_by in {"M", "MTE1", "S"}:
        text = (
            f"a base block of {t.baseM} x {t.baseN} has fewer than {DEPENDENT_MAD_FRACTALS} "
            "fractals, so that each Mmad waits for the one before"
        )
        yield Reason("serial products", text)


def _scalar_unit(product: TimedProduct, line: Timeline) -> Iterator[Reason]:
    busy = line.pipes.get("S", 0) / line.cycles
    if busy >= SCALAR_SHARE:
        t = product.tiling
        text = (
            f"the scalar unit is busy {busy:.0%} of the run with {line.issued:,} instructions; "
            f"a longer baseK than {t.baseK} makes fewer"
        )
        yield Reason("scalar unit", text)


def reasons_lines(reasons: Sequence[Reason], cycles: int) -> list[str]:
    """Return why a matmul takes its cycles, with the share that is saved without each cause."""
    rows = []
    for one in reasons:
        share = "" if one.cycles is None else f"{one.cycles / cycles:.0%}"
        rough = " (rough: no measurement has a cost of this size)" if one.rough else ""
        rows.append((share, f"{one.cause}: {one.text}{rough}"))
    return ["Where the time goes (share saved if removed)", *table(rows)]

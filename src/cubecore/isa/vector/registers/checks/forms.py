"""Checks of a program's calls one by one: alignment, registers never written, forms that lack."""

from collections.abc import Iterator

import numpy as np

from cubecore.isa.declare.remark import Remark
from cubecore.isa.vector.registers.operation import MERGING, Form
from cubecore.isa.vector.registers.operations.convert import CASTS, LAYOUTS
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import NONE, RegisterStep, ValueSource

_MERGES = frozenset({"Duplicate", "DuplicateLane", "Move", "Add", "Max", "Min"})
"""Instructions that can keep the lanes of dst that the mask does not let through."""
_ASKED = frozenset({Form.CAST, Form.TRUNCATE, Form.REDUCE})
"""Forms whose mode is taken: a scalar of 1 says that merging was asked for."""
_BY_WIDTH = frozenset({"BRC", "E2B", "US", "DS", "UNPACK", "DINTLV", "INTLV", "FIRST_ELEMENT"})
"""Distributions that are for elements of the width that they end in."""
_WIDTHS = frozenset({16, 32})
_BY_AR = frozenset({Form.STORE_COUNTED, Form.AR})
"""Forms whose sources are judged by the order of squeezes and stores."""
_FREE = frozenset({"CAST_NONE", "CAST_UNKNOWN"})
_SOFT = frozenset({"CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC"})
"""Roundings that a conversion without loss bears."""
_AMOUNT_BITS = 16
_INDEXED_BYTES = 32
"""Alignment of the address that indices count from."""


def call_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield what is wrong with the calls of a program, in their order."""
    for step in program.steps.values():
        yield from _alignment(step)
        yield from _distribution(step)
        yield from _unwritten(step)
        yield from _merging(step)
        yield from _casts(step)
        yield from _amounts(step, program)
        yield from _same_results(step, program)


def _remark(step: RegisterStep, kind: str, message: str, *, stops: bool = False) -> Remark:
    return Remark(kind, f"{step.call.operation.name} must {message}", "", step.location, (), stops)


def _alignment(step: RegisterStep) -> Iterator[Remark]:
    if not (step.loads or step.stores):
        return
    form, mode = step.call.operation.form, step.call.mode
    if form is Form.STORE_COUNTED:
        return
    if step.by_values:
        align, mode = _INDEXED_BYTES, step.call.operation.spelling
    else:
        align = (STORES[mode] if step.stores else LOADS[mode]).align
    off = (step.addresses.reshape(-1) % align).astype(int)
    wrong = np.flatnonzero(off)
    if wrong.size:
        first = int(wrong[0])
        trip = f" on trip {first + 1}" if off.size > 1 else ""
        unaligned = "StoreUnAlign" if step.stores else "LoadUnAlign"
        remedy = f"; {unaligned} takes any address" if mode == "NORM" else ""
        yield _remark(
            step,
            "misaligned",
            f"start at a multiple of {align} B in UB ({mode}), got one {off[first]} B behind"
            f"{trip}{remedy}",
        )


def _distribution(step: RegisterStep) -> Iterator[Remark]:
    """Yield a load or store whose distribution is for elements of another width."""
    name, _, bits = step.call.mode.rpartition("_B")
    if step.by_values:
        return
    own = 8 * step.call.width
    if name not in _BY_WIDTH or own not in _WIDTHS or int(bits) == own:
        return
    yield _remark(
        step,
        "parameter",
        f"have a distribution for the {own} bits of {step.call.dtype.name}, got {step.call.mode}",
    )


# --- registers that no call has written


def never_written(source: ValueSource | None) -> bool:
    """Return whether a value is none that a call made, on the first trip at least."""
    while source is not None:
        if source.leaf == NONE:
            return True
        source = source.initial
    return False


def merges_into(step: RegisterStep) -> bool:
    """Return whether the last source of a call is the old dst, of which some lanes are kept."""
    return step.call.mode == MERGING or step.call.operation.form is Form.MOVE


def _unwritten(step: RegisterStep) -> Iterator[Remark]:
    if step.call.operation.name == "LoadBlock" or step.call.operation.form in _BY_AR:
        return
    sources = step.sources[:-1] if merges_into(step) else step.sources
    for number, source in enumerate(sources):
        if never_written(source):
            which = "dst" if number == 2 else f"src{number}" if len(sources) > 1 else "src"
            first = "" if source.leaf == NONE else " on the first trip of the loop"
            yield _remark(
                step,
                "register-uninitialised",
                f"read a register that was written in the vector function, got {which}, which no"
                f" call has written{first}",
            )
    if never_written(step.mask):
        yield _remark(
            step,
            "register-uninitialised",
            "have a mask that was made in the vector function, got a MaskReg that no call has"
            " written; CreateMask or UpdateMask makes one",
        )


# --- forms that lack


def _merging(step: RegisterStep) -> Iterator[Remark]:
    call = step.call
    asked = call.operation.form in _ASKED and bool(step.scalars.reshape(-1)[0])
    if (call.mode == MERGING and call.operation.name not in _MERGES) or asked:
        kept = ", ".join(sorted(_MERGES - {"DuplicateLane"}))
        yield _remark(
            step,
            "mask-merge",
            f"be used with MaskMergeMode::ZEROING, got MERGING, which {kept} have; Select takes"
            " lanes of two registers",
        )


def _casts(step: RegisterStep) -> Iterator[Remark]:
    call = step.call
    if call.operation.name != "Cast":
        return
    source, target = call.source, call.dtype
    layout, _, rounding = call.mode.split(".")
    roundings = CASTS.get((source.name, target.name))
    if roundings is None:
        to = ", ".join(b for a, b in CASTS if a == source.name) or "nothing"
        yield _remark(
            step,
            "cast-form",
            f"convert {source.name} to {to}, got {target.name}",
            stops=True,
        )
        return
    # A conversion to another width fills or reads every `ratio`-th lane; the layout says which.
    ratio = max(source.bits, target.bits) // min(source.bits, target.bits)
    if LAYOUTS.index(layout) >= ratio:
        words = ", ".join(LAYOUTS[:ratio]) if ratio > 1 else LAYOUTS[0]
        yield _remark(
            step,
            "cast-form",
            f"have the layout {words} from {source.name} to {target.name}, got {layout}",
            stops=True,
        )
    exact = roundings == ("CAST_NONE",)
    if rounding not in {*roundings, *_FREE, *(_SOFT if exact else ())}:
        yield _remark(
            step,
            "cast-form",
            f"round by {', '.join(roundings)} from {source.name} to {target.name}, got {rounding}",
        )


def _amounts(step: RegisterStep, program: RegisterProgram) -> Iterator[Remark]:
    """Yield a shift by less than 0: by a scalar, or by lanes that are one scalar's."""
    form, bits, scalars = step.call.operation.form, _AMOUNT_BITS, step.scalars
    if form is Form.SHIFT and len(step.sources) > 1 and step.sources[1].leaf != NONE:
        maker = program.steps[step.sources[1].leaf]
        if maker.call.operation.form is not Form.FILL:
            return
        bits, scalars = 8 * maker.call.width, maker.scalars
    elif form is not Form.SHIFT_SCALAR:
        return
    amounts = scalars.reshape(-1) & np.uint64(2**bits - 1)
    negative = amounts[amounts >> np.uint64(bits - 1) != 0]
    if negative.size:
        yield _remark(
            step, "shift-amount", f"shift by 0 or more bits, got {int(negative[0]) - 2**bits}"
        )


def _same_results(step: RegisterStep, program: RegisterProgram) -> Iterator[Remark]:
    form = step.call.operation.form
    same = form is Form.PAIR and step.scalars.any()
    if form is Form.LOAD_PAIR:
        same = step.scalars.reshape(-1)[0] == program.entries.variables[step.entries.reshape(-1)[0]]
    if same:
        yield _remark(step, "overlap", "have two registers for its two results, got one for both")

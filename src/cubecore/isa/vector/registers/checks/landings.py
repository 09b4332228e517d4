"""Checks of accesses of UB where values of registers say: bounds, indices, the order with AR."""

from collections.abc import Iterator

import numpy as np

from cubecore.isa.declare.remark import Remark
from cubecore.isa.vector.registers.checks.forms import never_written
from cubecore.isa.vector.registers.landing import ub_bytes
from cubecore.isa.vector.registers.operation import Form
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep

_BLOCK_BYTES = 32


def landing_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield what is wrong with the bytes that indices have picked, step by step."""
    for step in program.steps.values():
        if step.landed is None or not step.landed.sizes.size:
            continue
        yield from _leaving(step)
        yield from _blocks(step)
        yield from _twice(step)


def _index(step: RegisterStep, at: int) -> str:
    """Return the lane of a piece in words, and the trip where there are several."""
    assert step.landed is not None
    trip, lane = divmod(at, step.landed.low.shape[-1])
    of_trip = f" on trip {trip + 1}" if step.entries.size > 1 else ""
    return f"lane {lane}{of_trip}"


def _leaving(step: RegisterStep) -> Iterator[Remark]:
    """Yield a finding for the first piece outside of UB; the function is not made then."""
    assert step.landed is not None
    low, sizes = step.landed.low.reshape(-1), step.landed.sizes.reshape(-1)
    most = ub_bytes()[0]
    outside = np.flatnonzero((sizes > 0) & ((low < 0) | (low + sizes > most)))
    if outside.size:
        at = int(outside[0])
        message = (
            f"{step.call.operation.spelling} must stay inside UB (0 to {most} B), got bytes "
            f"[{low[at]}, {low[at] + sizes[at]}) by {_index(step, at)}"
        )
        yield Remark("out-of-bounds", message, "indices", step.location, (), stops=True)


def _blocks(step: RegisterStep) -> Iterator[Remark]:
    assert step.landed is not None
    if step.call.operation.name != "GatherB":
        return
    offsets = (step.landed.low - step.addresses[..., None]).reshape(-1)
    wrong = np.flatnonzero((step.landed.sizes.reshape(-1) > 0) & (offsets % _BLOCK_BYTES != 0))
    if wrong.size:
        at = int(wrong[0])
        message = (
            f"GatherB must have indices of whole blocks, multiples of {_BLOCK_BYTES} B, got "
            f"{offsets[at]} in {_index(step, at)}"
        )
        yield Remark("misaligned", message, "indices", step.location)


def _twice(step: RegisterStep) -> Iterator[Remark]:
    """Yield a finding for a scatter that stores to an element twice: which one stays is unknown."""
    assert step.landed is not None
    if step.call.operation.form is not Form.SCATTER:
        return
    pieces = step.landed.low.shape[-1]
    low, sizes = step.landed.low.reshape(-1, pieces), step.landed.sizes.reshape(-1, pieces)
    order = np.argsort(np.where(sizes > 0, low, -1), axis=-1, kind="stable")
    rising = np.take_along_axis(low, order, axis=-1)
    both = np.take_along_axis(sizes, order, axis=-1) > 0
    same = (rising[:, 1:] == rising[:, :-1]) & both[:, 1:] & both[:, :-1]
    found = np.argwhere(same)
    if found.size:
        trip, at = found[0].tolist()
        first, second = sorted(order[trip, at : at + 2].tolist())
        index = (rising[trip, at] - step.addresses.reshape(-1)[trip]) // step.landed.unit
        message = (
            f"Scatter must have an index of its own in each active lane, got {index} in "
            f"{_index(step, trip * pieces + first)} and in lane {second}; which of the two is "
            "stored is unknown"
        )
        yield Remark("scatter-duplicate", message, "indices", step.location)


# --- squeezes that count, and stores by AR


def squeeze_order_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield what breaks the order of ClearSpr, squeezes that count, and stores by AR."""
    counted = [s for s in program.steps.values() if s.call.operation.form is Form.COUNTED]
    stores = [s for s in program.steps.values() if s.call.operation.form is Form.STORE_COUNTED]
    for step in stores:
        if never_written(step.sources[1]):
            yield _order(
                step,
                "follow Squeeze<T, GatherMaskMode::STORE_REG>() or asc_squeeze_v2() in its vector"
                " function, got none before the first store by AR",
            )
        elif never_written(step.sources[2]):
            yield _order(
                step,
                "follow ClearSpr<SpecialPurposeReg::AR>() or asc_clear_ar_spr() in its vector"
                " function, got none before the first store by AR",
            )
    columns = [(s, s.entries.reshape(-1)) for s in (*counted, *stores)]
    if not columns:
        return
    entries = np.concatenate([each for _, each in columns])
    of = np.repeat(np.arange(len(columns)), [each.size for _, each in columns])
    before: RegisterStep | None = None
    for number in of[np.argsort(entries)].tolist():
        step = columns[number][0]
        if before is not None and step.call.operation.form is before.call.operation.form:
            word = "StoreUnAlign by AR" if step.call.operation.form is Form.COUNTED else "Squeeze"
            yield _order(
                step,
                f"take turns with {word}: got two behind each other; AR's count is of one squeeze",
            )
            return
        before = step


def _order(step: RegisterStep, message: str) -> Remark:
    name = "StoreUnAlign" if step.call.operation.form is Form.STORE_COUNTED else "Squeeze"
    return Remark("squeeze-order", f"{name} must {message}", name, step.location)

"""The protocol of unaligned streams: what a buffer holds, and when (*Reg*, LoadUnAlign ...).

A stream of loads fills its buffer (Pre) and then goes on from where it was; a stream of stores
goes on from where it ended, and at last stores what its buffer still holds (Post).
"""

from collections.abc import Iterator

import numpy as np

from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import REGISTER_BYTES, Form
from cubecore.isa.vector.registers.operations.moves import MASK_STREAM
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep

_KIND = "unalign-protocol"
_BUFFERS = 4
"""Buffers of loads that the hardware has, and of stores."""
_BLOCK = 32
BY_AR = "AR"
"""The mode of the end of a stream whose end AR has."""


def stream_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield what breaks the protocol, in the order of the calls; each line is named once."""
    steps = [s for s in program.steps.values() if _buffers(s) is not None]
    if not steps:
        return
    # A step stands for a call with all of its trips. The buffers' state is only right in the order
    # of issue, so that the trips of all steps are laid out in rows and walked by entry number.
    entries = np.concatenate([step.entries.reshape(-1) for step in steps])
    of = np.repeat(np.arange(len(steps)), [step.entries.size for step in steps])
    walk, said = _Walk(), set[tuple[str, Location]]()
    columns = [
        np.concatenate([column.reshape(-1) for column in columns])
        for columns in zip(*((s.scalars, s.addresses, s.extents) for s in steps), strict=True)
    ]
    for at in np.argsort(entries):
        step = steps[of[at]]
        buffer, address, extent = (int(column[at]) for column in columns)
        for message in walk.take(step, buffer, address, extent):
            if (message, step.location) not in said:
                said.add((message, step.location))
                yield Remark(_KIND, message, message, step.location)
    for step in walk.open_stores():
        message = (
            "StoreUnAlign must be followed by StoreUnAlignPost (asc_storeunalign_"
            "post) behind the last store of its stream, got none; bytes stay in the buffer"
        )
        yield Remark(_KIND, message, message, step.location)
    yield from _too_many(steps)


def _buffers(step: RegisterStep) -> bool | None:
    """Return whether a step is of a stream of stores; None if it is of none."""
    call = step.call
    if call.operation.form is Form.STREAM:
        return call.operation.name.startswith("Store")
    of_stream = call.mode == "UNALIGNED" or call.mode.startswith(MASK_STREAM)
    if not of_stream and call.operation.form is not Form.STORE_COUNTED:
        return None
    return step.stores


class _Walk:
    """The buffers as the calls leave them."""

    def __init__(self) -> None:
        self._loads: dict[int, int] = {}
        """By buffer: the address that its stream has come to."""
        self._stores: dict[int, tuple[int, RegisterStep]] = {}
        """By buffer: the end of what was stored, and the last store."""

    def take(self, step: RegisterStep, buffer: int, address: int, extent: int) -> Iterator[str]:
        """Take a call; yield what it breaks."""
        name = step.call.operation.name
        if name == "LoadUnAlignPre":
            self._loads[buffer] = address
        elif name == "StoreUnAlignPost":
            yield from self._post(name, buffer, address, by_ar=step.call.mode == BY_AR)
        elif step.call.operation.form is Form.STORE_COUNTED:
            self._stores[buffer] = address, step
        elif buffer == 0:  # Load and Store fill and empty one of their own
            return
        elif step.stores:
            yield from self._store(step, buffer, address, extent)
        else:
            yield from self._load(buffer, address)

    def _load(self, buffer: int, address: int) -> Iterator[str]:
        at = self._loads.get(buffer)
        if at is None:
            yield (
                "LoadUnAlign must follow LoadUnAlignPre (asc_loadunalign_pre) of its buffer, got "
                "none before the first load of the stream"
            )
        elif not at // _BLOCK * _BLOCK <= address <= at + REGISTER_BYTES:
            yield (
                "LoadUnAlign must go on where its buffer's stream is, got an address "
                f"{_apart(address - at)} it; each stream needs a buffer of its own, or "
                "LoadUnAlignPre anew"
            )
        self._loads[buffer] = address

    def _store(self, step: RegisterStep, buffer: int, address: int, extent: int) -> Iterator[str]:
        # The first store of a stream is right wherever it is.
        end, _ = self._stores.get(buffer, (address, step))
        if end != address:
            yield (
                "StoreUnAlign must go on where its buffer's stream ended, got an address "
                f"{_apart(address - end)} it; each stream needs a buffer of its own, or "
                "StoreUnAlignPost before"
            )
        self._stores[buffer] = address + extent, step

    def _post(self, name: str, buffer: int, address: int, *, by_ar: bool) -> Iterator[str]:
        if buffer not in self._stores:
            yield f"{name} must follow a StoreUnAlign of its buffer, got none"
            return
        end, _ = self._stores.pop(buffer)
        if end != address and not by_ar:
            yield (
                f"{name} must be given the end of what was stored, got an address "
                f"{_apart(address - end)} it"
            )

    def open_stores(self) -> Iterator[RegisterStep]:
        """Yield the last stores of streams that were not ended."""
        return (step for _, step in self._stores.values())


def _apart(distance: int) -> str:
    return f"{abs(distance)} B {'behind' if distance > 0 else 'before'}"


def _too_many(steps: list[RegisterStep]) -> Iterator[Remark]:
    """Yield a finding for more buffers at a time than there are, at the first that is too many."""
    for stores, word in ((False, "load"), (True, "store")):
        # A buffer lives from its first use to its last. The number alive is largest where one
        # begins, so that only the starts are looked at.
        spans: dict[int, list[int]] = {}
        where: dict[int, Location] = {}
        for step in steps:
            if _buffers(step) is not stores:
                continue
            numbers = zip(step.scalars.reshape(-1), step.entries.reshape(-1), strict=True)
            for buffer, entry in ((int(b), int(e)) for b, e in numbers if b):
                span = spans.setdefault(buffer, [entry, entry])
                if entry <= span[0]:
                    where[buffer] = step.location
                span[:] = min(span[0], entry), max(span[1], entry)
        for buffer, (start, _) in sorted(spans.items(), key=lambda item: item[1]):
            count = sum(a <= start <= b for a, b in spans.values())
            if count > _BUFFERS:
                message = (
                    f"unaligned {word} buffers must be at most {_BUFFERS} at a time, got {count}"
                )
                yield Remark(_KIND, message, word, where[buffer])
                break

"""One core under test, and a plain image of its memories that an oracle changes byte by byte.

An oracle moves bytes between images with Python loops, from the documented meaning alone. `check`
then compares every byte of every memory, and whether it was ever written, with the image: a stray
write or a wrongly initialised byte fails like a wrong value.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import Chip, chip
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.tree import Location
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core, CoreId
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.sanitize.finding_log import FindingLog

A2 = chip("Ascend910B3")
HERE = Location("bench.py", 1, "test")
ALL_ONES = 2**64 - 1
_DRAWN = np.random.default_rng(0)
BYTES = _DRAWN.integers(0, 256, 2**22, np.uint8)
MARKS = (_DRAWN.random(2**22) >= 0.25).astype(np.uint8)
"""Noise, and which of it counts as written: three quarters."""


@dataclass
class Image:
    """Bytes, and for each 1 where anything was ever written."""

    data: bytearray
    valid: bytearray

    def copy_from(self, source: "Image", there: int, here: int, count: int) -> None:
        """Copy `count` bytes, one by one, with what is known of them."""
        for i in range(count):
            self.data[here + i] = source.data[there + i]
            self.valid[here + i] = source.valid[there + i]

    def put(self, here: int, raw: bytes, valid: int = 1) -> None:
        """Store bytes."""
        for i, byte in enumerate(raw):
            self.data[here + i] = byte
            self.valid[here + i] = valid

    def get(self, here: int, count: int) -> bytes:
        """Return bytes."""
        assert here >= 0
        assert here + count <= len(self.data)
        return bytes(self.data[here : here + count])

    def written(self, here: int, count: int) -> bool:
        """Return whether every one of some bytes was written."""
        return all(self.valid[here : here + count])


@dataclass
class Bench:
    """A core whose memories hold noise, part of it never written."""

    sub: int = 0
    seed: int = 0
    gm_bytes: int = 0
    on: Chip = A2
    gm: GlobalMemory = field(default_factory=GlobalMemory)
    log: FindingLog = field(default_factory=FindingLog)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.core = Core(
            CoreId(0, self.sub), self.on, self.gm, self.log, one_core.execute, _never, _never
        )
        self.base = 0
        if self.gm_bytes:
            self.tensor = self.gm.allocate("tensor", self.gm_bytes)
            self.base = self.tensor.address

    def buffer(self, mem: Mem) -> MemoryBuffer:
        """Return a memory; for GM the bench's one tensor."""
        found = self.tensor.buffer if mem is Mem.GM else self.core.memory(mem)
        assert found is not None
        return found

    def noise(self, *mems: Mem, written: bool = False) -> None:
        """Fill memories with random bytes; a quarter of them count as never written."""
        for mem in mems:
            buffer = self.buffer(mem)
            buffer.data[:] = self._stretch(BYTES, buffer.size_bytes)
            buffer.valid[:] = 1 if written else self._stretch(MARKS, buffer.size_bytes)

    def _stretch(self, drawn: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
        """Return so many of what was drawn once, from a random place on."""
        first = int(self.rng.integers(max(drawn.size - size, 1)))
        found = drawn[first : first + size]
        return found if found.size == size else np.resize(drawn, size)

    def poke(self, mem: Mem, address: int, raw: bytes) -> None:
        """Put bytes into a memory (for GM, from the tensor's start)."""
        buffer = self.buffer(mem)
        buffer.data[address : address + len(raw)] = np.frombuffer(raw, np.uint8)
        buffer.valid[address : address + len(raw)] = 1

    def image(self, mem: Mem) -> Image:
        """Return a copy of a memory for an oracle to change."""
        buffer = self.buffer(mem)
        return Image(bytearray(buffer.data), bytearray(buffer.valid))

    def do(self, template: Instruction, *addresses: int) -> None:
        """Execute one instruction; addresses in GM are absolute."""
        self.core.execute(self.core, (template, addresses, HERE))

    def check(self, mem: Mem, expected: Image) -> None:
        """Compare a memory with an image, byte for byte."""
        buffer = self.buffer(mem)
        wrong = np.flatnonzero(buffer.data != np.frombuffer(bytes(expected.data), np.uint8))
        assert wrong.size == 0, f"{mem.label}: {wrong.size} bytes differ, first {wrong[0]}"
        wrong = np.flatnonzero(buffer.valid != np.frombuffer(bytes(expected.valid), np.uint8))
        assert wrong.size == 0, f"{mem.label}: {wrong.size} marks differ, first {wrong[0]}"

    @property
    def messages(self) -> list[str]:
        """What was found: ``id: sentence``."""
        return [f"{finding.id}: {finding.message}" for finding in self.log]


def _never(core: Core, sync: Instruction) -> None:
    raise AssertionError(f"{core.id} met {sync}")

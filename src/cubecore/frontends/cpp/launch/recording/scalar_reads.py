"""Reads of scalars by C++ kernels: those that Python answers, and those that the runtime does.

An answer from UB brings bytes around it with it, from which the runtime answers later reads: what
the core has issued since drops the bytes that it may write. Such a read is recorded with its
value, and judged like any other where it was made.
"""

from collections.abc import Callable

import numpy as np

from cubecore.cache import BoundedCache
from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.cpp.launch.messages import reads_of
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import LoadScalar
from cubecore.machine.execute.core import Core
from cubecore.machine.group.recorder import Asked, Recorder


class ScalarReads:
    """The reads of a launch: each element type is known by the address of its text."""

    def __init__(self, names: Names) -> None:
        self._names, self.answered_any = names, False
        self._elements: dict[int, ElementType] = {}
        self._loads: BoundedCache[tuple[Mem, int, int, bool], LoadScalar] = BoundedCache()

    def load(
        self, mem: Mem, kind: int, at: int, name: Callable[[], str], *, past: bool = False
    ) -> LoadScalar:
        """Return a read at a line, of a type by the address of its text, which has its name.

        `past`: past the data cache.
        """
        if kind not in self._elements:
            self._elements[kind] = element_type(name())
        return self._load(mem, kind, at, past=past)

    def answered(self, raw: bytes, begin: int) -> list[Asked]:
        """Return what the runtime has answered from UB, behind issues from `begin` on."""
        self.answered_any = True
        found = []
        for behind, where, kind, address, bits in reads_of(raw):
            load = self._load(Mem.UB, kind, where)
            element, size = load.element, 8 * load.element.size_bytes
            value = bits - (1 << size) if element.kind == "int" and bits >> size - 1 else bits
            found.append(Asked(begin + behind, load, None, address, value, ahead=True))
        return found

    def _load(self, mem: Mem, kind: int, at: int, *, past: bool = False) -> LoadScalar:
        key = mem, kind, at, past
        load = self._loads.get(key)
        if load is None:
            element, where = self._elements[kind], self._names.locations[at]
            load = self._loads[key] = LoadScalar(
                Var("value", 0), mem, element, Expr(0), where, cached=not past
            )
        return load


def around(core: Core, load: LoadScalar, address: int, wanted: int) -> tuple[int, bytes]:
    """Return written bytes around a value that was read, and where they begin.

    `wanted` are those from its address on; there are some before it, too. None if it was read
    wrongly.
    """
    if not wanted or not isinstance(core, Recorder):
        return 0, b""
    size, memory = load.element.size_bytes, core.memory(load.mem)
    if memory is None or not 0 <= address <= memory.size_bytes - size or address % size:
        return 0, b""
    low, high = max(address - wanted // 4, 0), min(address + wanted, memory.size_bytes)
    if not memory.written(low, high):
        gaps = low + np.flatnonzero(memory.valid[low:high] == 0)
        behind = int(np.searchsorted(gaps, address))
        low = int(gaps[behind - 1]) + 1 if behind else low
        high = int(gaps[behind]) if behind < gaps.size else high
    return (low, memory.data[low:high].tobytes()) if high >= address + size else (0, b"")

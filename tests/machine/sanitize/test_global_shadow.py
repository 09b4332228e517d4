"""Shadow of global memory: accesses of any width meet those that share a byte with them."""

from types import SimpleNamespace

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.global_shadow import GlobalShadow
from cubecore.machine.sanitize.shadow_memory import MemoryAccess

ORDER = SimpleNamespace(foreign=np.full((1, 2, 8), -1), done=np.full((8, 8), 1 << 20))


def test_each_access_meets_what_a_list_of_all_bytes_says() -> None:
    """Two cores that nothing orders: by a list of the last writer and the readers of each byte."""
    rng = np.random.default_rng(51)
    shadow, met = GlobalShadow(), set()
    report = (lambda clash: met.add((clash.earlier.operand, clash.later.operand))), lambda *_: False
    writer = np.full(9 << 12, -1)
    readers: list[set[int]] = [set() for _ in range(writer.size)]
    wanted = set()
    cores = []
    for number in range(600):
        width = int(rng.choice([1, 2, 4, 8, 32, 63, 64, 65, 256, 4096, 9000]))
        low, writes = int(rng.integers(0, writer.size - width)), bool(rng.integers(2))
        core = int(rng.integers(2))
        cores.append(core)
        before = {int(one) for one in np.unique(writer[low : low + width]) if one >= 0}
        if writes:
            before = before.union(*readers[low : low + width])
        wanted |= {(str(one), str(number)) for one in before if cores[one] != core}
        touch = MemoryAccess(None, str(number), Mem.GM, not writes, writes, None)
        shadow.touch(core, ORDER, report, Footprint.run(0, width), low, 0, number, touch)
        for byte in range(low, low + width):
            if writes:
                writer[byte] = number
                readers[byte] = set()
            else:
                own = {one for one in readers[byte] if cores[one] != core}
                readers[byte] = {*own, number}
    assert wanted <= met
    assert all(cores[int(one)] != cores[int(other)] for one, other in met)


def test_writes_of_a_line_come_in_their_order() -> None:
    shadow = GlobalShadow()
    report = (lambda _: None), lambda *_: True
    for number, (low, width) in enumerate([(60, 8), (0, 4096), (128, 4), (120, 12), (128, 2)]):
        touch = MemoryAccess(None, str(number), Mem.GM, False, True, None)
        shadow.touch(0, ORDER, report, Footprint.run(0, width), low, 0, number, touch)
    found = [(low, high, one.number) for low, high, one in shadow.written(126, 140)]
    assert found == [(0, 4096, 1), (120, 132, 3), (128, 130, 4)]

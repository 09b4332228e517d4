"""Work of a core's threads, by kind, and the rough time that it takes.

A block's time is a sum: its longest chain of loads that wait for each other, at the latency of
global memory; the lines that its warps ask for; the rows of UB's banks; operations; barriers. A
core's blocks follow each other, and each start waits for the starts of the other cores. Atomics on
one line of global memory follow each other, whichever core they come from. The constants are
`thread_cycles` of the chip; the page of the validation has the error.
"""

from dataclasses import dataclass, fields

from cubecore.chips.model import Chip


@dataclass(frozen=True, slots=True)
class ThreadWork:
    """The work of the threads of one core. Accesses are a warp's, of up to 8 B a lane.

    `starts` are blocks that begin, each counted once for each core that the launch has; `calls`
    calls of threads. `miss_rounds` are trips of loops, of the block's slowest warp, of which a load
    leaves the data cache; the loads of `hit_rounds` stay in it. `lines` of 128 B are those that
    accesses ask for, `traffic` those of stores and of loads that leave the cache. `ub_rows` are the
    rows of the fullest bank of each access of UB. `operations` are those of warps, `divisions`
    those of integers, `functions` series of mathematics. `line_atomics` and `line_results` are
    lanes' atomics on the busiest line of the launch, and those whose old value is used.
    """

    starts: float = 0
    calls: float = 0
    miss_rounds: float = 0
    hit_rounds: float = 0
    accesses: float = 0
    lines: float = 0
    traffic: float = 0
    ub_accesses: float = 0
    ub_rows: float = 0
    operations: float = 0
    divisions: float = 0
    functions: float = 0
    barriers: float = 0
    line_atomics: float = 0
    line_results: float = 0

    def cycles(self, chip: Chip) -> int:
        """Return the rough time on a chip, in cycles.

        Raises
        ------
        RequestError
            If the chip's catalogue has no costs of threads.
        """
        costs = chip.require("thread_cycles", "the time of threads")
        own, shared = (
            sum(float(costs[name]) * float(getattr(self, name)) for name in names)
            for names in (_ON_CORE, _SHARED)
        )
        return round(max(own, shared))


_SHARED = ("line_atomics", "line_results")
_ON_CORE = tuple(each.name for each in fields(ThreadWork) if each.name not in _SHARED)

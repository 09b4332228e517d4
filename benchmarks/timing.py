"""How long timing takes: one large product, growth with size, and events a second of the full walk.

Prints one JSON object; each figure stands beside its target. Everything is measured in this
process, warm, sizes interleaved; the least of the repeats counts, since other work only adds.
Ratios mean the same on any machine. Nothing here is a test.
"""

import json
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from targets import against, arguments

import cubecore

CHIP, CORES = "Ascend910B1", 24
SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
FULL = 4096


def least(repeats: int, sizes: Sequence[int], tilings: dict[int, Any] | None) -> dict[int, float]:
    """Return the least seconds for each size, planned or with its tiling given."""
    found = dict.fromkeys(sizes, float("inf"))
    for _ in range(repeats):
        for size in sizes:
            tiling = None if tilings is None else tilings[size]
            begin = perf_counter()
            # A timing that records is walked anew; the latest others are kept.
            cubecore.time(m=size, n=size, k=size, chip=CHIP, cores=CORES, tiling=tiling, record=1)
            found[size] = min(found[size], perf_counter() - begin)
    return found


def full_walk(repeats: int, tiling: Any) -> dict[str, Any]:
    """Return the events a second of a walk that skips nothing; one group's cores are one walk."""
    seconds = float("inf")
    for _ in range(repeats):
        begin = perf_counter()
        timed = cubecore.time(
            m=FULL, n=FULL, k=FULL, chip=CHIP, cores=CORES, tiling=tiling, full=True
        )
        seconds = min(seconds, perf_counter() - begin)
    line = timed.timeline
    groups, cores = len(line.groups), sum(len(group.cores) for group in line.groups)
    events = line.issued * groups // cores
    return {"events": events, "seconds": seconds, "events_per_second": events / seconds}


def main(repeats: int, largest: int) -> dict[str, Any]:
    """Return every figure."""
    sizes = [size for size in SIZES if size <= largest]
    tilings = {
        size: cubecore.plan(m=size, n=size, k=size, chip=CHIP, cores=CORES).tiling for size in sizes
    }
    planned, given = least(repeats, sizes, None), least(repeats, sizes, tilings)
    walk = full_walk(repeats, tilings[FULL])
    first, last = sizes[0], sizes[-1]
    return {
        "chip": CHIP,
        "cores": CORES,
        "repeats": repeats,
        "seconds_planned_and_timed": planned,
        "seconds_timed": given,
        "full_walk": walk,
        "figures": {
            "seconds_8192_planned_and_timed": against(planned[8192], 0.05),
            "seconds_8192_timed": against(given[8192], 0.05),
            f"growth_{first}_to_{last}": against(planned[last] / planned[first], 1.5),
            "events_per_second": against(walk["events_per_second"], 500_000, least=True),
        },
    }


if __name__ == "__main__":
    told = arguments(__doc__ or "", repeats=7, largest=SIZES[-1]).parse_args()
    print(json.dumps(main(told.repeats, told.largest), indent=2))

"""How long timing takes: one large product, growth with size, and events a second of the full walk.

Prints one JSON object; each figure stands beside its target. Everything is measured in this
process, warm, sizes interleaved; the least of the repeats counts, since other work only adds.
Ratios mean the same on any machine. Nothing here is a test.
"""

import json
from time import perf_counter
from typing import Any

from figures import against, arguments

import cubecore

CHIP, CORES = "Ascend910B1", 24
SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
FULL = 4096


def least(repeats: int, tilings: dict[int, Any] | None) -> dict[int, float]:
    """Return the least seconds for each size, planned or with its tiling given."""
    found = dict.fromkeys(SIZES, float("inf"))
    for _ in range(repeats):
        for size in SIZES:
            tiling = None if tilings is None else tilings[size]
            begin = perf_counter()
            cubecore.time(m=size, n=size, k=size, chip=CHIP, cores=CORES, tiling=tiling)
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


def main(repeats: int) -> dict[str, Any]:
    """Return every figure."""
    tilings = {
        size: cubecore.plan(m=size, n=size, k=size, chip=CHIP, cores=CORES).tiling for size in SIZES
    }
    planned, given = least(repeats, None), least(repeats, tilings)
    walk = full_walk(repeats, tilings[FULL])
    first, last = SIZES[0], SIZES[-1]
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
            "growth_1024_to_65536": against(planned[last] / planned[first], 1.5),
            "events_per_second": against(walk["events_per_second"], 500_000, least=True),
        },
    }


if __name__ == "__main__":
    print(json.dumps(main(arguments(__doc__ or "", repeats=7).parse_args().repeats), indent=2))

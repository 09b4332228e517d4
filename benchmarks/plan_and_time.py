"""From a cold start to a time: cold start, help, planning, timing without a list of issues.

Prints one JSON object. Each figure stands beside its target; `met` says whether it holds here, on
this machine, now. Ratios are of measurements made in one process, interleaved, so that they mean
the same on a slower machine. Nothing here is a test.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from targets import arguments

_COLD = """
import json
import cubecore
problem = {"m": 64, "n": 64, "k": 64}
run, timed = cubecore.run(problem), cubecore.time(problem)
print(json.dumps({"verified": run.verified, "us": timed.timeline.us}))
"""

_TIME = """
import json, resource, sys
from time import perf_counter
import cubecore
scale = 1 if sys.platform == "darwin" else 1024
cubecore.time(m=256, n=256, k=256, chip="Ascend910B2")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
begin = perf_counter()
timed = cubecore.time(m=8192, n=8192, k=8192, chip="Ascend910B2")
seconds = perf_counter() - begin
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
print(json.dumps({"seconds": seconds, "issued": timed.timeline.issued, "us": timed.timeline.us,
                  "cores": timed.tiling.usedCoreNum, "peak_bytes": after,
                  "grown_bytes": after - before}))
"""

PROBLEMS: tuple[dict[str, Any], ...] = (
    {"m": 64, "n": 64, "k": 64},
    {"m": 4096, "n": 5120, "k": 4096},
    {"m": 1, "n": 4096, "k": 4096},
    {"m": 16, "n": 50257, "k": 768, "bias": "float32"},
    {"m": 8192, "n": 8192, "k": 8192},
    {"m": 333, "n": 777, "k": 555, "trans_a": True},
    {"m": 1000, "n": 1000, "k": 1000, "a": "int8", "bias": "int32"},
    {"m": 17, "n": 33, "k": 65, "c": "float16"},
    {"m": 65536, "n": 256, "k": 128, "trans_b": True},
    {"m": 128, "n": 128, "k": 100_000},
    {"m": 512, "n": 512, "k": 512, "cores": 1},
    {"m": 2047, "n": 4095, "k": 1023, "a": "int8", "trans_a": True, "trans_b": True},
)
"""A dozen shapes: small, large, flat, long, ragged, every operand's type and transposition."""


def child(*arguments: str) -> tuple[float, str]:
    """Return the seconds from start to end of a Python process, and what it printed."""
    begin = perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return perf_counter() - begin, done.stdout


def against(seconds: float, target: float, **more: Any) -> dict[str, Any]:
    """Return a figure beside its target."""
    return {"seconds": seconds, "target_seconds": target, "met": seconds < target, **more}


def cold_start(repeats: int) -> dict[str, Any]:
    """64 x 64 x 64 from a cold process to verified and timed."""
    runs = [child("-c", _COLD) for _ in range(repeats)]
    answer = json.loads(runs[0][1])
    return against(statistics.median(s for s, _ in runs), 1.0, **answer)


def show_help(repeats: int) -> dict[str, Any]:
    """``cubecore --help``, a process of its own."""
    seconds = [child("-m", "cubecore", "--help")[0] for _ in range(repeats)]
    return against(statistics.median(seconds), 0.3)


def plan_warm(repeats: int) -> dict[str, Any]:
    """Planning in a process that has planned before: the median and the slowest of a dozen."""
    import cubecore

    cubecore.plan(m=100, n=100, k=100)
    seconds = [
        statistics.median(_seconds(lambda p=problem: cubecore.plan(p)) for _ in range(repeats))
        for problem in PROBLEMS
    ]
    slowest = max(range(len(seconds)), key=seconds.__getitem__)
    return against(
        seconds[slowest],
        0.05,
        median_seconds=statistics.median(seconds),
        slowest=PROBLEMS[slowest],
        problems=len(PROBLEMS),
    )


def time_large(repeats: int) -> dict[str, Any]:
    """8192 x 8192 x 8192 on 24 cores in a process of its own, with what its memory grew by.

    A list of the issues would need 8 bytes for each pointer alone.
    """
    runs = [json.loads(child("-c", _TIME)[1]) for _ in range(repeats)]
    seconds = statistics.median(run.pop("seconds") for run in runs)
    found = runs[0]
    per_issue = found["grown_bytes"] / found["issued"]
    return against(seconds, 2.0, **found, grown_bytes_per_issue=per_issue)


def ratios(repeats: int) -> dict[str, Any]:
    """Ratios of interleaved measurements in this process."""
    import cubecore

    jobs: Mapping[str, Callable[[], Any]] = {
        "time 2048^3": lambda: cubecore.time(m=2048, n=2048, k=2048),
        "time 4096^3": lambda: cubecore.time(m=4096, n=4096, k=4096),
        "plan 4096^3": lambda: cubecore.plan(m=4096, n=4096, k=4096),
        "check 4096^3": lambda: cubecore.check(tiling, m=4096, n=4096, k=4096),
    }
    tiling = cubecore.plan(m=4096, n=4096, k=4096).tiling
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            taken[name].append(_seconds(job))
    middle = {name: statistics.median(values) for name, values in taken.items()}
    issued = [cubecore.time(m=s, n=s, k=s).timeline.issued for s in (2048, 4096)]
    run = cubecore.run(m=512, n=512, k=512, reference=True)
    return {
        "time_4096_over_2048": middle["time 4096^3"] / middle["time 2048^3"],
        "issued_4096_over_2048": issued[1] / issued[0],
        "plan_over_check_4096": middle["plan 4096^3"] / middle["check 4096^3"],
        "time_over_plan_4096": middle["time 4096^3"] / middle["plan 4096^3"],
        "run_512_over_numpy_product": run.wall_s / run.reference_wall_s,
        "run_512_issues_per_second": run.issued / run.wall_s,
    }


def _seconds(job: Callable[[], Any]) -> float:
    from cubecore.planning.event_ranking import solved

    solved.cache_clear()  # plans that are known are not made
    begin = perf_counter()
    job()
    return perf_counter() - begin


def main(repeats: int) -> dict[str, Any]:
    """Return every figure."""
    return {
        "machine": {
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "repeats": repeats,
        "figures": {
            "run_and_time_64_cubed_cold": cold_start(repeats),
            "help": show_help(repeats),
            "plan_warm": plan_warm(repeats),
            "time_8192_cubed_on_24_cores": time_large(repeats),
        },
        "ratios": ratios(repeats),
    }


if __name__ == "__main__":
    print(json.dumps(main(arguments(__doc__ or "", repeats=5).parse_args().repeats), indent=2))

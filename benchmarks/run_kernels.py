"""How fast kernels in Python run: in lockstep, with checks and without, and over a long trace.

Prints one JSON object. Each figure stands beside its target; `met` says whether it holds here, on
this machine, now. Seconds are processor time of this process. SHARE scales the work; the
targets are for 1.
"""

import json
from time import process_time
from typing import Any

import numpy as np
from targets import against, arguments

import cubecore
from cubecore.dtypes import element_type
from cubecore.isa.program.trace import InstructionTrace

FULL = 2**64 - 1
CORES = 40
FLOAT = element_type("float32")
BLOCK = 1024
"""Bytes that one turn of a loop takes: four repeats of float32."""


# --- a kernel of vector work


@cubecore.kernel(outputs="z", types={"x": "float32"})
def normalised(core: Any, x: Any, z: Any, turns: int) -> None:
    """exp(x - max) / sum of each 256, on two buffers in turns."""
    buffers = [[core.ubuf("float", 256) for _ in range(3)] for _ in range(2)]
    rows, total = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_set_vector_mask(0, FULL)
    core.asc_duplicate(rows, 0.0, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    for turn in range(turns):
        (a, b, c), event = buffers[turn % 2], turn % 2
        at = (core.block_idx * turns + turn) * 256
        if turn > 1:
            core.asc_sync_wait("PIPE_V", "PIPE_MTE2", event)
            core.asc_sync_wait("PIPE_MTE3", "PIPE_V", event)
        core.asc_copy_gm2ub(a, x + at, BLOCK)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", event)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", event)
        core.asc_exp(b, a, 4, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_repeat_reduce_sum(rows, b, 4, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_repeat_reduce_sum(total, rows, 1, 1, 1, 8)
        core.asc_mul(c, b, a, 4, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(c, c, a, 4, 1, 1, 1, 8, 8, 8)
        if turn < turns - 2:
            core.asc_sync_notify("PIPE_V", "PIPE_MTE2", event)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", event)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", event)
        core.asc_copy_ub2gm(z + at, c, BLOCK)
        if turn < turns - 2:
            core.asc_sync_notify("PIPE_MTE3", "PIPE_V", event)


def kernel_runs(turns: int) -> dict[str, Any]:
    """Run the kernel on both engines, with every check and with none."""
    x = np.random.default_rng(0).random(CORES * turns * 256).astype(np.float32)
    found = {}
    for engine in ("fast", "reference"):
        for checks in ("usual", "none"):
            blocks = CORES if engine == "fast" else 1
            launch = normalised.using(engine=engine, checks=checks)[blocks]
            own = x if blocks == CORES else x[: turns * 256]
            begin = process_time()
            run = launch(own, np.zeros_like(own), turns)
            seconds = process_time() - begin
            if checks == "usual" and run.findings:
                raise SystemExit(run.findings[0].message)
            found[engine, checks] = run.engine, run.issued / seconds
    names = {"fast": "lockstep_40_cores", "reference": "reference_1_core"}
    rates = {
        f"{names[engine]}_checks_{checks}": rate for (engine, checks), (_, rate) in found.items()
    }
    return {
        "engines": {name: found[name, "usual"][0] for name in names},
        "kernel_issues_per_s": against(found["fast", "usual"][1], 200_000, least=True, **rates),
        "checks_on_over_off_lockstep": against(
            found["fast", "none"][1] / found["fast", "usual"][1], 2
        ),
        "checks_on_over_off_reference": against(
            found["reference", "none"][1] / found["reference", "usual"][1], 2
        ),
    }


# --- a long trace


def recorded(turns: int) -> InstructionTrace:
    """Return what one core issues in so many turns."""
    x = np.zeros(turns * 256, np.float32)
    run = normalised.using(trace=True)[1](x, np.zeros_like(x), turns)
    (trace,) = run.traces.values()
    return trace


def trace_size(turns: int) -> dict[str, Any]:
    """Return the memory that a trace takes, for a million instructions."""
    trace = recorded(turns)
    held = sum(part.itemsize * len(part) for part in (trace.kinds, trace.wheres, trace.addresses))
    return against(held / len(trace), 100, issues=len(trace))


def main() -> None:
    """Print the figures."""
    share = arguments(__doc__ or "", share=1.0).parse_args().share

    def scaled(turns: int) -> int:
        return max(int(turns * share), 3)

    normalised.using()[2](np.zeros(1536, np.float32), np.zeros(1536, np.float32), 3)  # warm
    kernels = kernel_runs(scaled(250))
    engines = kernels.pop("engines")
    figures = {
        **kernels,
        "trace_megabytes": trace_size(scaled(10_000)),
    }
    print(json.dumps({"cores": CORES, "engines": engines, "figures": figures}, indent=2))


if __name__ == "__main__":
    main()

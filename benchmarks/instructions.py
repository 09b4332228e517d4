"""What one issue of an instruction costs beside NumPy's own time for the same elements.

Prints one JSON object: for an instruction of each family, with one repeat and with 64, the best
time of an issue in the reference engine and of the NumPy call that does the same work on arrays at
hand, in microseconds, their difference, and nanoseconds for each element. Of the Cube's side a
repeat is a fractal of 16 x 16: 64 of them are 128 x 128. `lockstep` is an issue with the usual
checks and the barrier behind it in lockstep, on one core and on 40, for each core. The target of
20 us is for the difference with one repeat, in lockstep on one core, which is how kernels run;
`reference_met` says it of the reference engine. Every case is tried for SECONDS.
"""

import json
import time
from collections.abc import Callable

import numpy as np
from instruction_cases import APART, CASES, Array, Case
from targets import arguments
from threadpoolctl import threadpool_limits

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import CorePosition
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core
from cubecore.machine.finding_kinds import USUAL
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.sanitize.aliasing import Snapshots
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.racecheck import Sanitizer

TARGET_US = 20.0
MANY = 64
CORES = 40
HERE = Location("instructions.py", 1, "benchmark")
GM_BYTES = 1 << 16


def filled(case: Case, core: Core, tensor: GlobalTensor) -> tuple[int, ...]:
    """Fill every memory of the instruction's operands with its elements; return the addresses."""
    addresses = []
    many = case.template(MANY).resolved(core.registers)
    given = len(case.template(MANY).operands())
    for place, operand in enumerate(many.operands()):
        local = core.memory(operand.mem)
        buffer = tensor.buffer if local is None else local
        size = element_type(case.dtype).size_bytes
        values = sample(case.dtype, buffer.size_bytes // size)
        buffer.data[:], buffer.valid[:] = values.view(np.uint8), 1
        spread = APART * place if operand.mem is Mem.UB else 0
        addresses.append(tensor.address if local is None else spread)
    if case.offsets:
        spread_out = np.random.default_rng(1).permutation(4096).astype(np.uint32) * 4
        buffer.data[addresses[-1] :][: spread_out.nbytes] = spread_out.view(np.uint8)
    return tuple(addresses[:given])


def bench(case: Case) -> tuple[Core, tuple[int, ...], FindingLog]:
    """Return a core whose memories hold the case's elements, and addresses."""
    log, gm = FindingLog(), GlobalMemory()
    unmet: Callable[..., None] = lambda *_: None  # noqa: E731 - nobody signals or waits
    tensor = gm.allocate("tensor", GM_BYTES)
    core = Core(CoreId(0, case.sub), chip(case.chip), gm, log, one_core.execute, unmet, unmet)
    for template in case.before:
        core.execute(core, (template, (), HERE))
    return core, filled(case, core, tensor), log


def lockstep(case: Case, repeat: int, cores: int) -> Callable[[], None]:
    """Return an issue and a barrier on a group of cores, each with its part of global memory."""
    each = 2 if case.sub else 1
    on = [
        (CoreId(n // each, case.sub and 1 + n % each), CorePosition(n, cores)) for n in range(cores)
    ]
    gm = GlobalMemory()
    sanitizer = Sanitizer(gm, FindingLog(USUAL), [core for core, _ in on])
    tensor = gm.allocate("tensor", GM_BYTES * cores)
    group = LockstepGroup(chip(case.chip), sanitizer, Snapshots(), on)
    single, addresses, _ = bench(case)
    tensor.buffer.data[:], tensor.buffer.valid[:] = 0, 1
    group.aliasing.agree(tensor.address, np.arange(cores) * GM_BYTES)
    template = case.template(repeat)
    for operand in template.resolved(single.registers).operands():
        held = single.memory(operand.mem)
        if held is not None:
            stack = group.memory(operand.mem)
            assert stack is not None
            stack.data[:], stack.valid[:] = held.data, held.valid
    pipe = template.pipe.value
    barrier = PipeBarrier(on=pipe)
    for setting in case.before:
        group.issue(setting, (), HERE)

    def issue() -> None:
        group.issue(template, addresses, HERE)
        group.issue(barrier, (), HERE)

    return issue


def sample(dtype: str, count: int) -> Array:
    """Return random elements, none of them below 0."""
    return (np.random.default_rng(0).random(count) * 80).astype(element_type(dtype).numpy)


def best_us(call: Callable[[], object], seconds: float) -> float:
    """Return the best time of a call, tried for so long."""
    best, stop = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        for _ in range(20):
            call()
        best = min(best, (time.perf_counter() - start) / 20)
    return best * 1e6


def measure(case: Case, repeat: int, seconds: float) -> dict[str, float]:
    """Time one case with so many repeats."""
    core, addresses, log = bench(case)
    recorded = (case.template(repeat), addresses, HERE)
    core.execute(core, recorded)
    if findings := [finding.message for finding in log]:
        raise SystemExit(f"{case.name}: {findings[0]}")
    count = case.elements(repeat)
    x, y = sample(case.dtype, 2 * count).reshape(2, count)
    issue = best_us(lambda: core.execute(core, recorded), seconds)
    own = best_us(lambda: case.numpy(x, y), seconds)
    alone = best_us(lockstep(case, repeat, 1), seconds)
    together = best_us(lockstep(case, repeat, CORES), seconds) / CORES
    return {
        "elements": count,
        "lockstep_us": round(alone, 2),
        "lockstep_overhead_us": round(alone - own, 2),
        "lockstep_40_us": round(together, 2),
        "issue_us": round(issue, 2),
        "numpy_us": round(own, 2),
        "overhead_us": round(issue - own, 2),
        "issue_ns_per_element": round(issue * 1e3 / count, 3),
        "numpy_ns_per_element": round(own * 1e3 / count, 3),
    }


def main() -> None:
    """Print the figures."""
    seconds = arguments(__doc__ or "", seconds=0.2).parse_args().seconds
    with threadpool_limits(1):  # products this small are slower on two
        figures = [
            {"name": case.name, "dtype": case.dtype}
            | {"one": measure(case, 1, seconds), "many": measure(case, MANY, seconds)}
            for case in CASES
        ]
    for figure in figures:
        figure["met"] = figure["one"]["lockstep_overhead_us"] <= TARGET_US
        figure["reference_met"] = figure["one"]["overhead_us"] <= TARGET_US
    print(json.dumps({"target_us": TARGET_US, "repeats": [1, MANY], "figures": figures}, indent=2))


if __name__ == "__main__":
    main()

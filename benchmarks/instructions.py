"""What one issue of a vector instruction costs beside NumPy's own time for the same elements.

usage: instructions.py [SECONDS]

Prints one JSON object: for an instruction of each family, with one repeat and with 64, the best
time of an issue in the reference engine and of the NumPy call that does the same work on arrays at
hand, in microseconds, their difference, and nanoseconds for each element. `lockstep` is an issue
with every check and the barrier behind it in lockstep, on one core and on 40, for each core. The
target of 20 us is for the difference with one repeat, in lockstep on one core, which is how kernels
run; `reference_met` says it of the reference engine. Every case is tried for SECONDS (0.2 unless
told).
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.program import Location
from cubecore.isa.registers import Place
from cubecore.isa.spec import Instruction, Mem, instruction_named
from cubecore.isa.sync import PipeBarrier
from cubecore.isa.topology import CoreId
from cubecore.machine import reference
from cubecore.machine.core import Core
from cubecore.machine.findings import CHECKS, FindingLog
from cubecore.machine.groupwatch import StrictLog
from cubecore.machine.lockstep import Group
from cubecore.machine.memory import GlobalMemory
from cubecore.machine.reach import Snapshots

TARGET_US = 20.0
MANY = 64
CORES = 40
HERE = Location("instructions.py", 1, "benchmark")
APART = 40960
"""Bytes from one operand to the next."""
Array = np.ndarray[Any, Any]
THREE = 0x40400000
"""3 as a float32's bits."""


@dataclass(frozen=True)
class Case:
    """An instruction, NumPy's call on as many random elements of `dtype`, and its parameters."""

    name: str
    dtype: str
    numpy: Callable[[Array, Array], Any]
    params: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] | None = None
    lanes: int = 0
    offsets: bool = False

    def template(self, repeat: int) -> Instruction:
        """Return the instruction with as many repeats."""
        types = {"dtype": self.dtype} if self.types is None else self.types
        named = {parameter: element_type(name) for parameter, name in types.items()}
        return instruction_named(self.name)(**named, **self.params, repeat=repeat)

    def elements(self, repeat: int) -> int:
        """Return the elements that so many repeats take."""
        return repeat * (self.lanes or 256 // element_type(self.dtype).size_bytes)


def keep_alternate(x: Array, _: Array) -> Array:
    """Every other element."""
    return x[x.size % 2 :: 2].copy()


def sort_each(x: Array, _: Array) -> Array:
    """The order of each 32, from the largest down."""
    return np.argsort(-x.reshape(-1, 32), axis=1, kind="stable")


CASES = (
    Case("vadd", "float16", lambda x, y: x + y),
    Case("vadd", "float32", lambda x, y: x + y),
    Case("vadd", "int16", lambda x, y: x + y),
    Case("vmuls", "float32", lambda x, _: x * np.float32(3), {"value": THREE}),
    Case("vshl", "int16", lambda x, _: x << 3, {"distance": 3}),
    Case("vexp", "float32", lambda x, _: np.exp(x)),
    Case("vsqrt", "float32", lambda x, _: np.sqrt(x)),
    Case(
        *("vaxpy", "float32", lambda x, y: x * np.float32(3) + y, {"value": THREE}),
        types={"dst_type": "float32", "src_type": "float32"},
    ),
    Case("vconv_f322f16", "float32", lambda x, _: x.astype(np.float16), types={}),
    Case("vconv_f162s8", "float16", lambda x, _: np.rint(x).astype(np.int8), types={}),
    Case("vcadd", "float32", lambda x, _: x.reshape(-1, 64).sum(axis=1)),
    Case("vcmax", "float32", lambda x, _: x.reshape(-1, 64).max(axis=1)),
    Case("vcgmax", "float32", lambda x, _: x.reshape(-1, 8).max(axis=1)),
    Case("vcmpv_lt", "float32", lambda x, y: np.packbits(x < y, bitorder="little")),
    Case("vsel", "float32", lambda x, y: np.where(x < y, x, y)),
    Case("vector_dup", "float32", lambda x, _: np.full(x.shape, 3, x.dtype), {"value": THREE}),
    Case("vcopy", "uint16", lambda x, _: x.copy()),
    Case("vbrcb", "uint32", lambda x, _: np.repeat(x, 8), lanes=8),
    Case("vgather", "float32", lambda x, y: x.take(y.view(np.int32), mode="clip"), offsets=True),
    Case("vreducev2", "uint16", keep_alternate, {"pattern": 1}),
    Case("vbitsort", "float32", sort_each, lanes=32),
)


def bench(case: Case) -> tuple[Core, tuple[int, ...], FindingLog]:
    """Return a vector core whose Unified Buffer holds the case's elements, and addresses."""
    log = FindingLog()
    unmet: Callable[..., None] = lambda *_: None  # noqa: E731 - nobody signals or waits
    core = Core(
        CoreId(0, 1), chip("Ascend910B3"), GlobalMemory(), log, reference.execute, unmet, unmet
    )
    buffer = core.memory(Mem.UB)
    assert buffer is not None
    values = sample(case.dtype, buffer.size_bytes // element_type(case.dtype).size_bytes)
    buffer.data[:], buffer.valid[:] = values.view(np.uint8), 1
    addresses = tuple(APART * i for i in range(len(case.template(1).operands())))
    if case.offsets:
        spread = np.random.default_rng(1).permutation(4096).astype(np.uint32) * 4
        buffer.data[addresses[-1] :][: spread.nbytes] = spread.view(np.uint8)
    return core, addresses, log


def lockstep(case: Case, repeat: int, cores: int) -> Callable[[], None]:
    """Return an issue and a barrier on a group of cores."""
    on = [(CoreId(n // 2, 1 + n % 2), Place(n, cores)) for n in range(cores)]
    log, barrier = StrictLog(frozenset(CHECKS)), PipeBarrier(on="V")
    group = Group(chip("Ascend910B3"), GlobalMemory(), log, Snapshots(), on)
    single, addresses, _ = bench(case)
    held, stack = single.memory(Mem.UB), group.stack(Mem.UB)
    assert held is not None
    stack.data[:], stack.valid[:] = held.data, held.valid
    template = case.template(repeat)

    def issue() -> None:
        group.issue(template, addresses)
        group.issue(barrier, ())

    return issue


def sample(dtype: str, count: int) -> Array:
    """Return random elements, none of them below 0."""
    return (np.random.default_rng(0).random(count) * 80).astype(dtype)


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
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
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

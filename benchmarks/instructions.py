"""What one issue of an instruction costs beside NumPy's own time for the same elements.

usage: instructions.py [SECONDS]

Prints one JSON object: for an instruction of each family, with one repeat and with 64, the best
time of an issue in the reference engine and of the NumPy call that does the same work on arrays at
hand, in microseconds, their difference, and nanoseconds for each element. Of the Cube's side a
repeat is a fractal of 16 x 16: 64 of them are 128 x 128. `lockstep` is an issue with the checks
(but usecheck: nobody reads what is computed) and the barrier behind it in lockstep, on one core and
on 40, for each core. The target of 20 us is for the difference with one repeat, in lockstep on one
core, which is how kernels run; `reference_met` says it of the reference engine. Every case is tried
for SECONDS (0.2 unless told).
"""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.load3d import SetFmatrix
from cubecore.isa.moves_3510 import NzPara, SetMte2NzPara
from cubecore.isa.program import Location
from cubecore.isa.registers import Place
from cubecore.isa.spec import Instruction, Mem, instruction_named
from cubecore.isa.sync import PipeBarrier
from cubecore.isa.topology import CoreId
from cubecore.machine import reference
from cubecore.machine.core import Core
from cubecore.machine.findings import CHECKS, USECHECK, FindingLog
from cubecore.machine.groupwatch import StrictLog
from cubecore.machine.lockstep import Group
from cubecore.machine.memory import GlobalMemory, GlobalTensor
from cubecore.machine.reach import Snapshots

TARGET_US = 20.0
MANY = 64
CORES = 40
HERE = Location("instructions.py", 1, "benchmark")
GM_BYTES = 1 << 16
APART = 40960
"""Bytes from one operand to the next."""
Array = np.ndarray[Any, Any]
THREE = 0x40400000
"""3 as a float32's bits."""


@dataclass(frozen=True)
class Case:
    """An instruction, NumPy's call on as many random elements of `dtype`, and its parameters.

    `sub` is the part of a core that runs it, `before` what is issued once ahead of it.
    """

    name: str
    dtype: str
    numpy: Callable[[Array, Array], Any]
    params: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] | None = None
    lanes: int = 0
    offsets: bool = False
    chip: str = "Ascend910B3"
    sub: int = 1
    before: tuple[Instruction, ...] = ()

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


@dataclass(frozen=True)
class CubeCase(Case):
    """An instruction of the Cube's side; `sized` gives the parameters of `edge` fractals a side."""

    sized: Callable[[int], dict[str, Any]] = dict
    sub: int = 0

    def template(self, repeat: int) -> Instruction:
        """Return the instruction on as many fractals."""
        named = {name: element_type(kind) for name, kind in (self.types or {}).items()}
        sizes = self.sized(math.isqrt(repeat))
        return instruction_named(self.name)(**named, **self.params, **sizes)

    def elements(self, repeat: int) -> int:
        """Return the elements of so many fractals."""
        return 256 * repeat


def extents(edge: int) -> dict[str, Any]:
    """A product with a K of 64."""
    return {"m": 16 * edge, "n": 16 * edge, "k": 64}


def multiply(x: Array, y: Array) -> Array:
    """A product of as many rows and columns, with a K of 64."""
    rows = math.isqrt(x.size)
    a, b = (np.resize(v, (rows, 64)).astype(np.float32) for v in (x, y))
    return a @ b.T


def turn(x: Array, _: Array) -> Array:
    """Each fractal transposed."""
    return x.reshape(-1, 16, 16).transpose(0, 2, 1).copy()


def into_nz(x: Array, _: Array) -> Array:
    """Row-major to columns of 16 elements."""
    rows = math.isqrt(x.size)
    return x.reshape(rows, -1, 16).transpose(1, 0, 2).copy()


def window(edge: int) -> dict[str, Any]:
    """As many fractals a side."""
    return {"m_step": edge, "k_step": edge, "src_stride": edge, "dst_stride": edge}


NZ_PARA = SetMte2NzPara(config=NzPara(1, 1, 128, 0).pack())
HALF = {"dtype": "float16"}
A5 = "Ascend950PR_9599"
PRODUCT = {"a_type": "float16", "b_type": "float16", "c_type": "float32"}
CUBE_CASES = (
    CubeCase("mad", "float16", multiply, types=PRODUCT, sized=extents),
    CubeCase(
        *("mad", "int8", multiply),
        types={"a_type": "int8", "b_type": "int8", "c_type": "int32"},
        sized=extents,
    ),
    CubeCase(
        *("mad_mx", "float8_e5m2", multiply),
        types={"a_type": "float8_e5m2", "b_type": "float8_e5m2"},
        sized=extents,
        chip=A5,
    ),
    CubeCase(
        *("copy_gm_to_cbuf", "float16", lambda x, _: x.copy()),
        sized=lambda edge: {"n_burst": edge, "len_burst": 16 * edge},
    ),
    CubeCase(
        *("copy_gm_to_cbuf_multi_nd2nz", "float16", into_nz),
        types=HALF,
        sized=lambda edge: (
            dict.fromkeys(("n_value", "d_value", "src_d_value"), 16 * edge)
            | {"dst_nz_c0_stride": 16 * edge}
        ),
    ),
    CubeCase(
        *("copy_gm_to_cbuf_multi_dn2nz", "float16", into_nz),
        types=HALF,
        sized=lambda edge: (
            {"n_value": 16 * edge, "d_value": 16 * edge} | {"loop1_src_stride": 32 * edge}
        ),
        chip=A5,
        before=(NZ_PARA,),
    ),
    CubeCase(
        *("load_cbuf_to_ca", "float16", lambda x, _: x.copy()),
        sized=lambda edge: {"repeat": edge * edge},
    ),
    CubeCase(
        *("load_cbuf_to_cb_transpose", "float16", turn),
        types=HALF,
        sized=lambda edge: {"repeat": edge * edge},
    ),
    CubeCase("load_cbuf_to_ca_v2", "float16", lambda x, _: x.copy(), sized=window, chip=A5),
    CubeCase(*("load_cbuf_to_ca_v2_transpose", "float16", turn), types=HALF, sized=window, chip=A5),
    CubeCase(
        *("load_cbuf_to_ca_mx", "float16", lambda x, _: x.copy()),
        sized=lambda edge: (
            {"x_step": edge, "y_step": edge, "src_stride": edge} | {"dst_stride": edge, "dst_at": 0}
        ),
        chip=A5,
    ),
    CubeCase(
        *("img2colv2_cbuf_to_ca", "float16", lambda x, _: x.copy()),
        types=HALF,
        sized=lambda edge: (
            {"k_extension": 16 * edge, "m_extension": 16 * edge} | {"channel_size": 16 * edge}
        ),
        before=(SetFmatrix(l1_height=16, l1_width=8),),
    ),
    CubeCase(
        *("create_cbuf_matrix", "float16", lambda x, _: np.zeros_like(x), {"bits": 0}),
        types=HALF,
        sized=lambda edge: {"repeat": 1, "blk_num": 16 * edge * edge},
    ),
    CubeCase(
        *("copy_matrix_cc_to_gm", "float32", lambda x, _: x.astype(np.float16)),
        {"quant_pre": "F322F16", "nz2nd_en": True},
        types={"src_type": "float32"},
        sized=lambda edge: dict.fromkeys(
            ("n_size", "m_size", "dst_stride", "src_stride"), 16 * edge
        ),
    ),
    CubeCase(
        *("copy_matrix_cc_to_cbuf", "float32", lambda x, _: x.astype(np.float16)),
        {"quant_pre": "F322F16"},
        types={"src_type": "float32"},
        sized=lambda edge: dict.fromkeys(
            ("n_size", "m_size", "dst_stride", "src_stride"), 16 * edge
        ),
    ),
)
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
    *CUBE_CASES,
)


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
    core = Core(CoreId(0, case.sub), chip(case.chip), gm, log, reference.execute, unmet, unmet)
    for template in case.before:
        core.execute(core, (template, (), HERE))
    return core, filled(case, core, tensor), log


def lockstep(case: Case, repeat: int, cores: int) -> Callable[[], None]:
    """Return an issue and a barrier on a group of cores, each with its part of global memory."""
    each = 2 if case.sub else 1
    on = [(CoreId(n // each, case.sub and 1 + n % each), Place(n, cores)) for n in range(cores)]
    log, gm = StrictLog(frozenset(CHECKS) - {USECHECK}), GlobalMemory()
    tensor = gm.allocate("tensor", GM_BYTES * cores)
    group = Group(chip(case.chip), gm, log, Snapshots(), on)
    single, addresses, _ = bench(case)
    tensor.buffer.data[:], tensor.buffer.valid[:] = 0, 1
    group.reach.agree(tensor.address, np.arange(cores) * GM_BYTES)
    template = case.template(repeat)
    for operand in template.resolved(single.registers).operands():
        held = single.memory(operand.mem)
        if held is not None:
            stack = group.stack(operand.mem)
            stack.data[:], stack.valid[:] = held.data, held.valid
    pipe = template.pipe.value
    barrier = PipeBarrier(on=pipe)
    for setting in case.before:
        group.issue(setting, ())

    def issue() -> None:
        group.issue(template, addresses)
        group.issue(barrier, ())

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
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
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

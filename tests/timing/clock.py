"""A chip of round numbers, and programs timed on one core."""

from dataclasses import replace
from types import MappingProxyType

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies import CopyGmToCbuf, LoadCbufToCa
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreGroup, CoreProgram
from cubecore.isa.program.tree import Issue, Location, Program
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.timing.memory.global_accesses import accesses
from cubecore.timing.memory.l2_reuse import Traffic
from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.pipes.core_clock import CoreClock
from cubecore.timing.pipes.queues import NAMES
from cubecore.timing.records import Timeline

A2 = chip("Ascend910B3")
HERE = Location("kernel.py", 1, "kernel")
HALF, WORD = element_type("float16"), element_type("float32")

ROUND = replace(
    A2,
    name="Round",
    frequency_hz=1_000_000_000,
    cube_k=MappingProxyType({"float16": 16, "int8": 32}),
    mad_queued_cycles=9,
    mad_head_cycles=59,
    l1_to_l0a_bytes_per_cycle=256,
    l1_to_l0b_bytes_per_cycle=128,
    l1_to_l0_queued_cycles=2,
    l1_to_l0_head_cycles=30,
    scalar_issue_cycles=1,
    pipe_queue_depth=32,
    gm_to_l1_transfer_cycles=10,
    gm_to_l1_row_cycles=0,
    gm_to_l1_pitch_row_cycles=0,
    gm_to_l1_bytes_per_cycle=64,
    gm_to_l1_misaligned_block_cycles=MappingProxyType({}),
    hbm_bytes_per_second=32_000_000_000,
    hbm_row_bytes=0,
    hbm_slack_cycles=0,
    hbm_latency_cycles=1000,
    l2_latency_cycles=20,
    gm_latency_overlap=1.0,
    gm_miss_bytes_per_cycle=None,
    gm_miss_ub_bytes_per_cycle=None,
    hbm_write_weight=None,
    l2_write_reach=None,
    hbm_ub_latency_cycles=None,
    hbm_ub_row_bytes=None,
    l2_survival_power=1,
    l1_to_l0_contention=0.0,
    l2_bytes=1 << 20,
    start_cycles=100,
    short_start_cycles=None,
    launch_cycles=1000,
    l0c_to_gm_head_cycles=20,
    l0c_to_gm_row_cycles=1,
    l0c_to_gm_bytes_per_cycle=64,
)
"""One cycle is a nanosecond; HBM gives 32 B a cycle, MTE2 takes 64, L2 holds 1 MiB."""


def mad(k: int = 16) -> Instruction:
    """Return a 16 x k x 16 product: k / 16 + 9 cycles, 50 more when M had to wait."""
    return Mad(a_type=HALF, b_type=HALF, c_type=WORD, m=16, k=k, n=16)


def load(fractals: int = 4) -> Instruction:
    """Return a load of L0A: 2 cycles a fractal and 2, 28 more when MTE1 had to wait."""
    return LoadCbufToCa(repeat=fractals)


def fetch(blocks: int = 16) -> Instruction:
    """Return a load of L1: 10 cycles and half a cycle a block."""
    return CopyGmToCbuf(n_burst=1, len_burst=blocks)


def raises(src: str, dst: str, event: int = 0) -> Instruction:
    return SetFlag(src=src, dst=dst, event_id=event)


def waits(src: str, dst: str, event: int = 0) -> Instruction:
    return WaitFlag(src=src, dst=dst, event_id=event)


def barrier(on: str = "ALL") -> Instruction:
    return PipeBarrier(on=on)


def issue(template: Instruction, *addresses: int) -> Issue:
    """Return a leaf; operands without an address get 0."""
    places = [*addresses, *[0] * len(template.operands())][: len(template.operands())]
    return Issue(template, tuple(Expr(a) for a in places), HERE)


def clock_of(*steps: Instruction | Issue, on=ROUND) -> CoreClock:
    """Walk a flat program on one core."""
    program = Program(tuple(s if isinstance(s, Issue) else issue(s) for s in steps))
    traffic = traffic_of(program, on=on)
    clock = CoreClock(
        chip=on, memory=MemoryPort(on, 1.0, traffic.written_back), shares=traffic.shares(0)
    )
    program.run(clock, {})
    return clock


def traffic_of(*programs: Program, cores: int = 1, on=ROUND, slots=None) -> Traffic:
    """Return the traffic of a launch: each program on `cores` cores, their slots all alike."""
    groups = []
    for program in programs:
        own = [slots[i] if slots else {} for i in range(cores)]
        made = tuple(CoreProgram(i, program, {}) for i in range(cores))
        groups.append(CoreGroup(program, made, tuple(own)))
    return Traffic(groups, [accesses(program, on) for program in programs], on)


def busy(clock: CoreClock) -> dict[str, int]:
    """Return the busy cycles of the pipes that were busy."""
    return {pipe.name: pipe.busy for pipe in clock.pipes if pipe.busy}


def done(clock: CoreClock, pipe: str) -> int:
    """Return when a pipe's last result was complete."""
    return clock.pipes[NAMES.index(pipe)].done


def assert_adds_up(timeline: Timeline) -> None:
    """The lines' cycles, instructions and bytes are the launch's, to the cycle."""
    lines = timeline.lines
    for pipe, cycles in timeline.pipes.items():
        assert sum(line.busy_cycles.get(pipe, 0) for line in lines) == cycles
    by_reason: dict[tuple[str, str], int] = {}
    for stall in (stall for line in lines for stall in line.stalls):
        key = stall.pipe, stall.reason
        by_reason[key] = by_reason.get(key, 0) + stall.cycles
    assert by_reason == {(stall.pipe, stall.reason): stall.cycles for stall in timeline.stalls}
    assert sum(line.instructions for line in lines) == timeline.issued
    assert sum(line.bytes for line in lines) == timeline.read_bytes + timeline.written_bytes

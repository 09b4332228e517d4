"""Cores in lockstep against the reference engine, one instruction at a time, bit for bit."""

from dataclasses import MISSING, fields, replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import FULL_MASK, LEFT, CorePosition, Registers
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.topology import CoreId
from cubecore.isa.scalar.sync import Sync
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core
from cubecore.machine.finding_kinds import CHECKS
from cubecore.machine.group.batching import picks
from cubecore.machine.group.group_operations import prepares
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.sanitize.aliasing import Snapshots
from cubecore.machine.group.sanitize.divergence import AgainError, UnlikeError
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.core_schedule import CoreSchedule, IssuedSyncs
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.racecheck import Sanitizer
from harness import A2
from isa import vector_rows
from isa.bench import HERE
from parts import part

UB_BYTES = 192 * 1024
FAR = 131072
"""Bytes of each core in global memory."""
SCALES = 4000
"""Where scales by lanes lie, in 32 B."""
CORES = [CoreId(n // 2, 1 + n % 2) for n in range(3)]
NAMES = sorted(
    name
    for name, kind in instructions().items()
    if "2201" in kind.archs
    and kind.declared
    and not issubclass(kind, Sync)
    and {o.mem for o in kind.declared} <= {Mem.UB, Mem.GM}
    and any(o.mem is Mem.UB for o in kind.declared)
)
OLDER = chip("Ascend310P3")
OF_OLDER_CHIPS = sorted(
    name
    for name, kind in instructions().items()
    if OLDER.arch in kind.archs
    and "2201" not in kind.archs
    and {o.mem for o in kind.declared} <= {Mem.UB}
)
ALL_AT_ONCE = (
    *vector_rows.BINARY,
    *vector_rows.UNARY,
    *vector_rows.SCALAR,
    *vector_rows.SHIFTS,
    *("vcadd", "vcmax", "vcgmax", "vcpadd", "vcmpv_lt", "vcmpvs_eq", "vaxpy", "vmla", "vmadd"),
    *("vector_dup", "vci", "vbrcb", "vcopy", "vbitsort", "vtranspose", "vconv_f322f16"),
    *("vconv_deq", "copy_gm_to_ubuf_align", "copy_ubuf_to_gm_align", "copy_ubuf_to_ubuf"),
)


def number(rng, meta):
    """A parameter in its range, most often a small one."""
    low, high = meta["low"], meta["high"]
    if high > 2**20 or low < 0:
        return int(rng.integers(max(low, -(2**31)), min(high, 2**32 - 1), endpoint=True))
    return int(np.clip(rng.choice([0, 1, 1, 2, 8, 8, 3, 4]), low, high))


def draw(name, rng):
    """A template with random parameters; most are legal."""
    kind, values = instructions()[name], {}
    for f in fields(kind):
        meta = f.metadata
        if "taken" in meta:
            continue
        if "types" in meta:
            if f.default is not MISSING:
                continue  # blocks of bytes, which are of one type
            values[f.name] = element_type(str(rng.choice(meta["types"])))
        elif "options" in meta:
            values[f.name] = rng.choice(np.array(meta["options"], object))
        else:
            values[f.name] = number(rng, meta)
    if "len_burst" in values:
        values["len_burst"] = int(rng.integers(1, 5))
    for gap in ("src_gap", "dst_gap"):
        if gap in values:
            values[gap] = int(rng.integers(0, 4))
    if "valid_bit" in values:
        values["valid_bit"] = int(rng.choice([3, 7, 15]))
    return kind(**values)


def mask(rng):
    """Registers with the mask full, random or counting, and CTRL's bits at random."""
    ctrl = sum(1 << bit for bit in (48, 53, 59, 60) if rng.random() < 0.3)
    way = rng.integers(3)
    if way == 0:
        return Registers(ctrl=ctrl)
    if way == 1:
        high, low = (int(rng.integers(0, FULL_MASK, dtype=np.uint64)) for _ in range(2))
        return Registers(ctrl=ctrl, mask_high=high, mask_low=low | 1)
    return Registers(ctrl=ctrl | 1 << 56, mask_high=0, mask_low=int(rng.integers(1, 300)))


NOISE = np.random.default_rng(0).integers(0, 256, 2**21, np.uint8)


def noise(rng, size):
    """Random bytes, from a random place on of what was drawn once."""
    first = int(rng.integers(NOISE.size - size))
    return NOISE[first : first + size].copy()


class Pair:
    """The same cores twice: apart under the reference engine, and in lockstep."""

    def __init__(self, rng, registers, on=A2):
        self.rng, self.registers, self.chip = rng, registers, on
        self.log = FindingLog()
        size, _ = memory_bytes(on, Mem.UB)
        self.raw = noise(rng, 3 * size).reshape(3, size)
        self.raw[:, 32 * SCALES + 5 : 32 * SCALES + 128 : 8] &= 0xBF  # scales of uint8
        self.known = np.ones(size, np.uint8)
        if rng.random() < 0.3:
            self.known[rng.random(size) < 0.0005] = 0
        self.values = noise(rng, 4 * FAR)
        self.own = [self.left(n) for n in range(3)]
        far = np.array([0, 1, 2] if rng.random() < 0.5 else [0, 2, 1], np.int64) * FAR
        self.far = [int(f) for f in far]
        self.gm, self.tensor = self.memory()
        self.apart = [self.core(number) for number in range(3)]
        self.other, _ = self.memory()
        self.snapshots = Snapshots()
        places = [(core, CorePosition(n, 3)) for n, core in enumerate(CORES)]
        log = FindingLog(frozenset(CHECKS) - {"usecheck"})
        sanitizer = Sanitizer(self.other, log, CORES)
        self.group = LockstepGroup(on, sanitizer, self.snapshots, places)
        self.group.aliasing.agree(self.tensor.address, far)
        stack = self.group.memory(Mem.UB)
        stack.data[:], stack.valid[:] = self.raw, self.known
        rows = self.group.rows()
        before = [row.registers for row in rows]
        for row, own in zip(rows, self.own, strict=True):
            row.registers = own
        self.group._take(before)

    def left(self, n):
        own = {"cmp_mask": 32 * int(self.rng.integers(3000)), "kept": n, "extreme": (n, n)}
        own["suppressed"] = 0x8421 << n & 0xFFFF
        return replace(self.registers, position=CorePosition(n, 3), deq_scale=SCALES, **own)

    def memory(self):
        gm = GlobalMemory()
        return gm, gm.allocate_from("tensor", self.values)

    def core(self, n):
        def unmet(*_):
            raise AssertionError

        core = Core(CORES[n], self.chip, self.gm, self.log, one_core.execute, unmet, unmet)
        core.registers = self.own[n]
        buffer = core.memory(Mem.UB)
        buffer.data[:], buffer.valid[:] = self.raw[n], self.known
        return core

    def run(self, template, addresses):
        """Run on both; say whether lockstep took it."""
        mems = [operand.mem for operand in template.operands()]
        with np.errstate(all="ignore"):
            for core, far in zip(self.apart, self.far, strict=True):
                own = [
                    a + (far if m is Mem.GM else 0) for a, m in zip(addresses, mems, strict=True)
                ]
                core.execute(core, (template, tuple(own), HERE))
            try:
                self.group.issue(template, tuple(addresses), HERE)
            except (AgainError, UnlikeError):
                return False
        return True

    def assert_equal(self, about):
        stack = self.group.memory(Mem.UB)
        for n, (core, row) in enumerate(zip(self.apart, self.group.rows(), strict=True)):
            buffer = core.memory(Mem.UB)
            assert np.array_equal(buffer.data, stack.data[n]), about
            assert np.array_equal(buffer.valid, stack.valid), about
            assert core.registers == row.registers, about
        found = FindingLog()
        assert CoreSchedule(list(map(IssuedSyncs, CORES))).log(found, self.group.found())
        told = [f for f in found if f.check in {"memcheck", "initcheck"}]
        assert told == list(self.log), about
        here, there = (gm.at(self.tensor.address).buffer for gm in (self.gm, self.other))
        assert np.array_equal(here.data, there.data), about
        assert np.array_equal(here.valid, there.valid), about


def places(template, tensor, rng):
    found = []
    for number_, operand in enumerate(template.operands()):
        unit = operand.alignment
        span = 24576 // unit
        start = number_ * 32768 if operand.mem is Mem.UB else tensor.address
        found.append(start + unit * int(rng.integers(0, max(span // 8, 1))))
    mems = [operand.mem for operand in template.operands()]
    if len(found) > 1 and mems[0] is mems[1] and rng.random() < 0.15:
        found[0] = found[1]
    return found


@pytest.mark.parametrize("name", [*NAMES, *OF_OLDER_CHIPS])
@pytest.mark.thinned(10)
def test_every_instruction_in_lockstep_is_the_reference(name):
    seed, on = sum(map(ord, name)), A2 if name in NAMES else OLDER
    rng = np.random.default_rng(seed)
    taken = 0
    for step in range(part(24, 2)):
        template = draw(name, rng)
        pair = Pair(rng, mask(rng), on)
        at = places(template, pair.tensor, rng)
        offsets = [o.name for o in template.operands()]
        if "offset" in offsets and len(at) == len(offsets):
            start = at[offsets.index("offset")]
            raw = (rng.integers(0, 500, (3, 4096), np.uint32) * 32).view(np.uint8)
            pair.group.memory(Mem.UB).data[:, start : start + raw.shape[1]] = raw
            for core, row in zip(pair.apart, raw, strict=True):
                core.memory(Mem.UB).data[start : start + raw.shape[1]] = row
        about = f"seed {seed}, step {step}: {template} at {at}, {pair.registers}"
        took = pair.run(template, at)
        steered = bool(template.steering)
        assert took or steered or len(pair.log), about  # what cores find, and maps, may differ
        if took:
            taken += 1
            pair.assert_equal(about)
    assert taken > step / 2, f"seed {seed}"


@pytest.mark.parametrize("name", ALL_AT_ONCE)
def test_these_are_done_for_all_cores_at_once(name):
    examples = vector_rows.EXAMPLES
    template = instructions()[name](**examples[name])
    assert prepares(template.resolved(Registers()), Registers())


STEERED = {
    "vgather": {"dtype": element_type("float32"), "repeat": 2},
    "vgatherb": {"dtype": element_type("uint32"), "repeat": 2},
    "vreducev2": {"dtype": element_type("uint16"), "repeat": 2, "pattern": 0},
    "vreduce": {"dtype": element_type("uint32"), "repeat": 2},
}


@pytest.mark.parametrize("name", STEERED)
@pytest.mark.parametrize("shared", [True, False])
def test_values_that_steer_are_prepared_for_once_all_cores_share_them(name, shared):
    template = instructions()[name](**STEERED[name])
    rng = np.random.default_rng(len(name))
    pair = Pair(rng, Registers())
    pair.raw[:], pair.known[:] = rng.integers(0, 256, (3, UB_BYTES), np.uint8), 1
    names = [operand.name for operand in template.operands()]
    steering = names.index(template.steering[0])
    table = (rng.integers(0, 500, (3, 256), np.uint32) * 32).view(np.uint8)
    if shared:
        table[:] = table[0]
    pair.raw[:, 32768 * steering :][:, : table.shape[1]] = table
    stack = pair.group.memory(Mem.UB)
    stack.data[:], stack.valid[:] = pair.raw, pair.known
    for core, raw in zip(pair.apart, pair.raw, strict=True):
        buffer = core.memory(Mem.UB)
        buffer.data[:], buffer.valid[:] = raw, 1
    alone = []
    each = pair.group._each
    pair.group._each = lambda *issue: alone.append(issue) or each(*issue)
    for turn in range(3):
        at = [32768 * place for place in range(len(names))]
        at[0] += 4096 * turn
        assert pair.run(template, at)
    assert not len(pair.log)
    pair.assert_equal(f"{name}, shared {shared}")
    assert len(alone) == (1 if shared else 0 if picks(type(template)) else 3)


class Probe:
    """Registers that note which of those that values decide are looked at."""

    def __init__(self, registers):
        object.__setattr__(self, "inner", registers)
        object.__setattr__(self, "seen", set())

    def __getattr__(self, name):
        if name in LEFT:
            self.seen.add(name)
        return getattr(self.inner, name)


@pytest.mark.parametrize("name", NAMES)
def test_instructions_say_whether_values_in_registers_decide_them(name):
    rng = np.random.default_rng(1)
    for _ in range(6):
        template = draw(name, rng)
        if template.copies:
            continue
        probe = Probe(Registers())
        try:
            resolved = template.resolved(probe)
            sizes = {o.name: o for o in resolved.operands()}
            inputs = {
                n: np.zeros(resolved.offsets(n).shape, resolved.element(o).numpy)
                for n, o in sizes.items()
                if o.access.reads
            }
            with np.errstate(all="ignore"):
                resolved.compute(inputs, probe)
        except (ValueError, IndexError, KeyError, TypeError, AttributeError):
            continue
        if probe.seen:
            assert template.reads_left, name

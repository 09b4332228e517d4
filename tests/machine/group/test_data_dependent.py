"""Vector instructions that values decide, for all cores at once, against the reference engine."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.scalar.sync import PipeBarrier
from isa.bench import HERE
from machine.group.test_group import UB_BYTES, Pair

F16, F32 = element_type("float16"), element_type("float32")
LENGTHS = {f"element_length_{i}": count for i, count in enumerate((8, 5, 12, 3))}
CASES = [
    ("vsel_scalar", {"dtype": F32, "repeat": 3}),
    ("vsel_scalar", {"dtype": F16, "repeat": 2, "src0_block_stride": 2}),
    ("vsel_tensor", {"dtype": F32, "repeat": 3}),
    ("vsel_tensor", {"dtype": F16, "repeat": 2, "dst_repeat_stride": 9}),
    ("vmrgsort4", {"dtype": F32} | LENGTHS),
    ("vmrgsort4", {"dtype": F16} | LENGTHS),
    ("vmrgsort4", {"dtype": F32, "valid_bit": 3} | LENGTHS),
]
SEL_AT = 163_840
"""Where vsel_tensor's bits lie."""


def pair_of(seed, name):
    """Three cores with bytes of their own; what CMPMASK holds is the same for vsel_tensor alone."""
    pair = Pair(np.random.default_rng(seed), Registers())
    raw = np.random.default_rng(seed).integers(0, 256, (3, UB_BYTES), np.uint8)
    stack = pair.group.memory(Mem.UB)
    stack.data[:], stack.valid[:] = raw, 1
    for core, own in zip(pair.apart, raw, strict=True):
        core.memory(Mem.UB).data[:], core.memory(Mem.UB).valid[:] = own, 1
    if name == "vsel_tensor":
        for rows in (pair.apart, pair.group.rows()):
            for core in rows:
                core.registers = core.registers.leaving("cmp_mask", SEL_AT)
        pair.group.left["cmp_mask"] = [SEL_AT] * 3
    return pair


def watched(pair):
    """Return the list of what goes core by core from here on."""
    alone, each = [], pair.group._each
    pair.group._each = lambda *issue: alone.append(issue) or each(*issue)
    return alone


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{n}-{CASES[n][0]}")
def test_cores_with_values_of_their_own_are_done_at_once(number):
    name, params = CASES[number]
    pair, template = pair_of(number, name), instructions()[name](**params)
    alone = watched(pair)
    for turn in range(3):
        at = [24576 * place + 2048 * turn for place in range(len(template.operands()))]
        assert pair.run(template, at)
        assert [finding.message for finding in pair.log] == []
        pair.assert_equal(f"{name}, turn {turn}")
    assert alone == []


def test_bits_that_lie_elsewhere_on_each_core_are_taken_core_by_core():
    pair = pair_of(1, "vsel_scalar")
    template = instructions()["vsel_tensor"](dtype=F32, repeat=1)
    alone = watched(pair)
    pair.run(template, [0, 4096, 8192])
    assert len(alone) == 1


def test_lanes_that_no_core_takes_may_stay_unwritten_and_others_not():
    template = instructions()["vsel_scalar"](dtype=F32, repeat=1)
    for bits, clean in ((0xFE, True), (0x01, False)):
        pair = pair_of(2, "vsel_scalar")
        for memory in (pair.group.memory(Mem.UB), *(core.memory(Mem.UB) for core in pair.apart)):
            memory.data[..., 32768:32776] = bits
            memory.valid[4096:4100] = 0  # the first lane of src0
        assert pair.run(template, [0, 4096, 32768])
        assert bool(len(pair.log)) != clean
        pair.assert_equal("lanes that no core takes")


def test_a_merge_of_what_one_byte_leaves_unwritten_is_a_finding():
    template = instructions()["vmrgsort4"](dtype=F32, **LENGTHS)
    pair = pair_of(3, "vmrgsort4")
    for memory in (pair.group.memory(Mem.UB), *(core.memory(Mem.UB) for core in pair.apart)):
        memory.valid[24576 + 9] = 0
    assert pair.run(template, [24576 * place for place in range(5)])
    pair.assert_equal("a byte that nobody wrote")
    assert {finding.id for finding in pair.log} == {"uninitialised"}
    assert [finding.count for finding in pair.log] == [3]


# --- gathers, each core by offsets of its own

GATHERS = [
    ("vgather", {"dtype": F32, "repeat": 2}, 4),
    ("vgather", {"dtype": F16, "repeat": 3, "dst_repeat_stride": 9}, 2),
    ("vgatherb", {"dtype": element_type("uint16"), "repeat": 3, "dst_block_stride": 2}, 32),
    ("vgatherb", {"dtype": element_type("uint32"), "repeat": 2}, 32),
]
MASKS = [Registers(), Registers(mask_high=0, mask_low=0x0F0F_1234), Registers(ctrl=1 << 56)]
DST, SRC, OFFSET = 0, 65536, 131072


def gathering(seed, unit, registers=MASKS[0]):
    """Three cores with offsets of their own, multiples of `unit`."""
    if registers.ctrl:
        registers = Registers(ctrl=registers.ctrl, mask_high=0, mask_low=75)
    rng = np.random.default_rng(seed)
    pair = Pair(rng, registers)
    raw = rng.integers(0, 256, (3, UB_BYTES), np.uint8)
    table = rng.integers(0, 16384 // unit, (3, 512), np.uint32) * unit
    raw[:, OFFSET : OFFSET + 2048] = table.view(np.uint8)
    everywhere(pair, np.copyto, raw)
    everywhere(pair, lambda valid, _: valid.fill(1), raw, maps=True)
    return pair


def everywhere(pair, change, raw, *, maps=False):
    """Change every core's bytes, or maps, in lockstep and apart."""
    stack = pair.group.memory(Mem.UB)
    change(stack.valid if maps else stack.data, raw)
    for core, own in zip(pair.apart, raw, strict=True):
        memory = core.memory(Mem.UB)
        change(memory.valid if maps else memory.data, own)


@pytest.mark.parametrize("mask", range(3), ids=["full", "some", "count"])
@pytest.mark.parametrize("number", range(len(GATHERS)), ids=lambda n: f"{n}-{GATHERS[n][0]}")
def test_gathers_by_offsets_of_their_own_are_done_at_once(number, mask):
    name, params, unit = GATHERS[number]
    pair, template = gathering(number, unit, MASKS[mask]), instructions()[name](**params)
    alone = watched(pair)
    for turn in range(3):
        assert pair.run(template, [DST + 4096 * turn, SRC + 32 * turn, OFFSET + 64 * (turn // 2)])
        assert [finding.message for finding in pair.log] == []
        pair.assert_equal(f"{name}, turn {turn}")
    assert alone == []


def put(pair, core, offset):
    """Let one lane of a core have another offset."""
    raw = np.frombuffer(np.uint32(offset).tobytes(), np.uint8)
    for data in (pair.group.memory(Mem.UB).data[core], pair.apart[core].memory(Mem.UB).data):
        data[OFFSET + 20 : OFFSET + 24] = raw


@pytest.mark.parametrize("offset", [7, UB_BYTES - SRC, UB_BYTES - SRC - 256, 2**32 - 4])
def test_a_wrong_offset_on_one_core_is_that_cores_finding(offset):
    pair = gathering(5, 4)
    put(pair, 2, offset)
    template = instructions()["vgather"](dtype=F32, repeat=1)
    assert pair.run(template, [DST, SRC, OFFSET])
    assert len(pair.log) == 1
    pair.assert_equal("a wrong offset")


@pytest.mark.parametrize("name", ["vgather", "vgatherb"])
def test_what_one_core_gathers_unwritten_stays_unwritten_there(name):
    kind = {"vgather": F32, "vgatherb": element_type("uint32")}[name]
    pair, template = gathering(6, 32), instructions()[name](dtype=kind, repeat=1)
    put(pair, 1, 20000)
    for memory in (pair.group.memory(Mem.UB), *(core.memory(Mem.UB) for core in pair.apart)):
        memory.valid[SRC + 20000 : SRC + 20032] = 0
        memory.valid[DST : DST + 4096] = 0
    alone = watched(pair)
    assert not pair.run(template, [DST, SRC, OFFSET])  # maps that differ
    assert len(alone) == 1
    maps = [core.memory(Mem.UB).valid[DST : DST + 256].all() for core in pair.apart]
    assert maps == [True, False, True]


@pytest.mark.parametrize("core", range(3))
@pytest.mark.parametrize("waits", [True, False])
def test_a_gather_races_if_one_core_reads_what_was_written_just_before(core, waits):
    pair = gathering(7, 4)
    put(pair, core, 24000)
    made = instructions()["vector_dup"](dtype=F32, value=0, repeat=1)
    assert pair.run(made, [SRC + 24000 - 24000 % 32])
    if waits:
        pair.group.issue(PipeBarrier(on="V"), (), HERE)
    template = instructions()["vgather"](dtype=F32, repeat=1)
    assert pair.run(template, [DST, SRC, OFFSET]) == waits
    if waits:
        pair.assert_equal("after the barrier")


@pytest.mark.parametrize("core", range(3))
def test_what_one_core_gathers_is_read_before_it_is_written_again(core):
    pair = gathering(8, 4)
    put(pair, core, 24000)
    template = instructions()["vgather"](dtype=F32, repeat=1)
    assert pair.run(template, [DST, SRC, OFFSET])
    made = instructions()["vector_dup"](dtype=F32, value=0, repeat=1)
    assert not pair.run(made, [SRC + 24000 - 24000 % 32])


def test_a_gather_onto_its_own_source_is_the_reference_engines():
    pair = gathering(9, 4)
    template = instructions()["vgather"](dtype=F32, repeat=1)
    alone = watched(pair)
    pair.run(template, [SRC, SRC, OFFSET])
    assert len(alone) == 1

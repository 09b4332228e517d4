"""Vector instructions that values decide, for all cores at once, against the reference engine."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.registers import Registers
from cubecore.isa.spec import Mem, instructions
from machine.test_lockstep import UB_BYTES, Pair

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
    stack = pair.group.stack(Mem.UB)
    stack.data[:], stack.valid[:] = raw, 1
    for core, own in zip(pair.apart, raw, strict=True):
        core.memory(Mem.UB).data[:], core.memory(Mem.UB).valid[:] = own, 1
    if name == "vsel_tensor":
        for rows in (pair.apart, pair.group.rows()):
            for core in rows:
                core.registers = core.registers.leaving("cmp_mask", SEL_AT)
        pair.group._own["cmp_mask"] = [SEL_AT] * 3
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
        for memory in (pair.group.stack(Mem.UB), *(core.memory(Mem.UB) for core in pair.apart)):
            memory.data[..., 32768:32776] = bits
            memory.valid[4096:4100] = 0  # the first lane of src0
        took = pair.run(template, [0, 4096, 32768])
        assert took == clean
        assert bool(len(pair.log)) != clean
        if clean:
            pair.assert_equal("lanes that no core takes")


def test_a_merge_of_what_one_byte_leaves_unwritten_is_a_finding():
    template = instructions()["vmrgsort4"](dtype=F32, **LENGTHS)
    pair = pair_of(3, "vmrgsort4")
    for memory in (pair.group.stack(Mem.UB), *(core.memory(Mem.UB) for core in pair.apart)):
        memory.valid[24576 + 9] = 0
    assert not pair.run(template, [24576 * place for place in range(5)])
    assert {finding.id for finding in pair.log} == {"uninitialised"}
    assert [finding.count for finding in pair.log] == [3]

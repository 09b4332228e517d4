"""The C API's general notes (seed 003): alignment, iterations, strides and the mask."""

from functools import partial

import numpy as np
import pytest

from cubecore.dtypes import FLOAT16, FLOAT32, INT8, INT16, INT32
from cubecore.isa.catalogue import instruction_named, instructions
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    CopyGmToCbuf,
    CopyGmToUbuf,
    CopyUbufToGm,
    LoadCbufToCa,
    LoadCbufToCb,
)
from cubecore.isa.program.check import template_violations
from cubecore.isa.vector.common.mask import SetVectorMask
from harness import A2, AIC, AIV, run_core

VADD = instruction_named("vadd")
BLOCK = 32
SRC0, SRC1, DST = 0, 0x8000, 0x10000
"""Byte addresses of the operands in the Unified Buffer, far apart."""
OLD = -7
PRINTED_MASK = 6148914691236517205
FULL_WORD = 2**64 - 1
NO_LANE = "vadd: the vector mask must have an active lane, got all lanes off"


def add(src0, src1, template, *, mask=None, old=None):
    """Run one vadd; `old` elements of dst hold OLD before, the others nothing."""
    local = {(Mem.UB, SRC0): src0, (Mem.UB, SRC1): src1}
    if old:
        local[Mem.UB, DST] = np.full(old, OLD, src0.dtype)

    def build(builder, _):
        if mask is not None:
            builder.issue(SetVectorMask(mask_high=mask[0], mask_low=mask[1]))
        builder.issue(template, DST, SRC0, SRC1)

    return run_core(build, local=local, sub=AIV)


def written_blocks(ran):
    """Return which 32 B blocks from DST on hold a written byte, up to the last one."""
    valid = ran.local[Mem.UB].valid[DST:]
    blocks = valid[: valid.size // BLOCK * BLOCK].reshape(-1, BLOCK)
    assert np.array_equal(blocks.any(axis=1), blocks.all(axis=1))
    return np.flatnonzero(blocks.any(axis=1)).tolist()


def blocks_of(values, dtype):
    """Return values as [blocks, elements of a block]."""
    return values.reshape(-1, BLOCK // dtype.size_bytes)


def numbers(blocks, dtype=FLOAT32, start=0):
    """Return as many blocks of distinct values."""
    count = blocks * BLOCK // dtype.size_bytes
    return np.arange(start, start + count).astype(dtype.numpy)


# --- alignment, table 1


def from_gm(builder, gm, address):
    builder.issue(CopyGmToUbuf(n_burst=1, len_burst=1), 0, gm["in"] + address)


def gm_to_ub(builder, gm, address):
    builder.issue(CopyGmToUbuf(n_burst=1, len_burst=1), address, gm["in"])


def gm_to_l1(builder, gm, address):
    builder.issue(CopyGmToCbuf(n_burst=1, len_burst=1), address, gm["in"])


def l1_to_l0a(builder, _, address):
    builder.issue(LoadCbufToCa(repeat=1), address, 0)


def l1_to_l0b(builder, _, address):
    builder.issue(LoadCbufToCb(repeat=1), address, 0)


def l0c_to_gm(builder, gm, address):
    tile = CopyMatrixCcToGm(src_type=FLOAT32, n_size=16, m_size=1, dst_stride=16, src_stride=16)
    builder.issue(tile, gm["out"], address)


def l1_to_bt(builder, _, address):
    builder.issue(CopyCbufToBt(src_type=FLOAT32, len_burst=2), address, 0)


MEMORIES = {
    "GM": (1, AIV, from_gm, "copy_gm_to_ubuf.src"),
    "UB": (32, AIV, gm_to_ub, "copy_gm_to_ubuf.dst"),
    "L1": (32, AIC, gm_to_l1, "copy_gm_to_cbuf.dst"),
    "L0A": (512, AIC, l1_to_l0a, "load_cbuf_to_ca.dst"),
    "L0B": (512, AIC, l1_to_l0b, "load_cbuf_to_cb.dst"),
    "L0C": (64, AIC, l0c_to_gm, "copy_matrix_cc_to_gm.src"),
    "BiasTable": (64, AIC, l1_to_bt, "copy_cbuf_to_bt.dst"),
}


def test_the_fixpipe_buffer_has_its_alignment_and_what_uses_it_asks_for_more():
    """128 B for scales (asc-devkit, DataCopy to the Fixpipe buffer); an instruction goes first.

    Architecture 3510 copies them in units of 64 B, its memory's own (asc_copy_l12fb, 3510).
    """
    assert Mem.FB.align_bytes == 64
    used = {
        (name, operand.alignment)
        for name, declared in instructions().items()
        for operand in declared.declared
        if operand.mem is Mem.FB
    }
    assert {alignment for name, alignment in used if name != "copy_cbuf_to_fbuf_v2"} == {128}
    assert ("copy_cbuf_to_fbuf_v2", 64) in used


@pytest.mark.parametrize("memory", MEMORIES)
def test_each_memory_has_its_alignment(memory):
    multiple, sub, build, operand = MEMORIES[memory]

    def messages(address):
        return run_core(
            lambda builder, gm: build(builder, gm, address),
            inputs={"in": np.zeros(64, np.uint8)},
            outputs={"out": ((64,), "float32")},
            sub=sub,
        ).messages

    for aligned in (multiple, 3 * multiple):
        assert messages(aligned) == []
    for off in (multiple // 2, multiple + 1) if multiple > 1 else ():
        assert messages(off) == [
            f"{operand} must start at a multiple of {multiple} B in {memory}, got {off}"
        ]


@pytest.mark.parametrize("offset", [1, 2, 31, 33])
def test_global_memory_has_no_alignment(offset):
    values = np.arange(96, dtype=np.uint8)

    def build(builder, gm):
        builder.issue(CopyGmToUbuf(n_burst=1, len_burst=1), 0, gm["in"] + offset)
        builder.issue(CopyUbufToGm(n_burst=1, len_burst=1), gm["out"] + offset, 0)

    ran = run_core(build, inputs={"in": values}, outputs={"out": ((96,), "uint8")}, sub=AIV)
    assert ran.findings == ()
    moved = ran.tensors["out"][offset : offset + BLOCK]
    assert np.array_equal(moved, values[offset : offset + BLOCK])
    assert ran.written["out"].sum() == BLOCK


def test_an_instruction_overrides_its_memorys_alignment():
    template = Mad(a_type=INT8, b_type=INT8, c_type=INT32, m=16, k=32, n=16)
    local = {(mem, 0): np.ones(512, np.int8) for mem in (Mem.L0A, Mem.L0B)}
    local[Mem.L0C, 0] = np.zeros(1024, np.int32)
    store = CopyMatrixCcToGm(src_type=INT32, n_size=16, m_size=1, dst_stride=16, src_stride=16)

    def messages(*issue):
        def build(builder, gm):
            builder.issue(issue[0], *(gm.get(a, a) for a in issue[1:]))

        return run_core(build, outputs={"out": ((16,), "int32")}, local=local).messages

    # 64 B is enough for L0C, and for a fixpipe; Mmad asks for 256 elements.
    assert messages(store, "out", 64) == []
    assert messages(template, 1024, 0, 0) == []
    assert messages(template, 64, 0, 0) == [
        "mad.c must start at a multiple of 1024 B in L0C, got 64"
    ]


def test_an_instruction_overrides_the_alignment_of_bias_table():
    types = {"a_type": INT8, "b_type": INT8, "c_type": INT32}
    start = {"c_matrix_init_val": False, "c_matrix_source": True}
    biased = Mad(**types, **start, m=16, k=32, n=16)
    local = {(mem, 0): np.ones(512, np.int8) for mem in (Mem.L0A, Mem.L0B)}
    local[Mem.L1, 0] = np.zeros(16, np.int32)

    def messages(address):
        def build(builder, _):
            builder.issue(CopyCbufToBt(src_type=INT32, len_burst=2), address, 0)
            builder.issue(biased, 0, 0, 0, address)

        return run_core(build, local=local).messages

    assert messages(128) == []
    assert messages(64) == ["mad.bias must start at a multiple of 128 B in BiasTable, got 64"]


# --- iterations and repeatTime

every_type = pytest.mark.parametrize("dtype", [INT16, FLOAT16, INT32, FLOAT32], ids=str)


@every_type
def test_an_iteration_is_eight_blocks(dtype):
    ran = add(numbers(8, dtype), numbers(8, dtype, 100), VADD(dtype=dtype, repeat=1))
    assert ran.findings == ()
    assert written_blocks(ran) == list(range(8))
    count = 8 * BLOCK // dtype.size_bytes
    sums = np.arange(count) * 2 + 100
    assert ran.at(Mem.UB, dtype.name, count, DST).tolist() == sums.tolist()


def test_an_iteration_reads_no_ninth_block():
    short = add(numbers(8), numbers(7), VADD(dtype=FLOAT32))
    assert short.messages == [
        "vadd.src1 must be initialised in UB, got 8 of 64 elements never written, "
        "first repeat 0, lane 56"
    ]


def test_two_iterations_make_512_bytes():
    src0, src1 = numbers(16, FLOAT16), numbers(16, FLOAT16, 1000)
    for repeat in (1, 2):
        ran = add(src0, src1, VADD(dtype=FLOAT16, repeat=repeat))
        assert ran.findings == ()
        assert len(written_blocks(ran)) * BLOCK == repeat * 8 * 32
        count = repeat * 128
        sums = ran.at(Mem.UB, "float16", count, DST)
        assert np.array_equal(sums, (src0 + src1)[:count])


def test_no_iteration_does_nothing():
    ran = add(numbers(8), numbers(8), VADD(dtype=FLOAT32, repeat=0))
    assert ran.findings == ()
    assert written_blocks(ran) == []


def test_repeat_times_is_at_most_255():
    still = {"src0_repeat_stride": 0, "src1_repeat_stride": 0}
    most = add(numbers(8), numbers(8), VADD(dtype=FLOAT32, repeat=255, **still))
    assert most.findings == ()
    assert written_blocks(most) == list(range(255 * 8))
    more = add(numbers(8), numbers(8), VADD(dtype=FLOAT32, repeat=256, **still))
    assert more.messages == ["vadd.repeat must be in [0, 255], got 256"]
    assert written_blocks(more) == []


# --- strides


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_strides_count_blocks_of_32_bytes(stride):
    short = add(numbers(8), numbers(8), VADD(dtype=FLOAT32, dst_block_stride=stride, repeat=1))
    starts = [block * 32 for block in written_blocks(short)]
    assert starts == [i * stride * 32 for i in range(8)]
    far = VADD(dtype=INT16, repeat=2, dst_repeat_stride=8 * stride)
    ran = add(numbers(16, INT16), numbers(16, INT16), far)
    assert written_blocks(ran)[8] * 32 == 8 * stride * 32


def test_data_block_stride_1_is_contiguous():
    src0, src1 = numbers(8), numbers(8, start=500)
    strides = {f"{x}_block_stride": 1 for x in ("dst", "src0", "src1")}
    ran = add(src0, src1, VADD(dtype=FLOAT32, **strides))
    assert written_blocks(ran) == list(range(8))
    assert np.array_equal(ran.at(Mem.UB, "float32", 64, DST), src0 + src1)


@pytest.mark.parametrize("operand", ["src0", "src1"])
def test_data_block_stride_2_skips_every_other_block(operand):
    values = {"src0": numbers(16), "src1": numbers(16, start=500)}
    ran = add(**values, template=VADD(dtype=FLOAT32, **{f"{operand}_block_stride": 2}))
    taken = {name: blocks_of(v, FLOAT32)[:8] for name, v in values.items()}
    taken[operand] = blocks_of(values[operand], FLOAT32)[::2]
    assert ran.findings == ()
    sums = blocks_of(ran.at(Mem.UB, "float32", 64, DST), FLOAT32)
    assert np.array_equal(sums, taken["src0"] + taken["src1"])


def test_data_block_stride_2_of_dst_leaves_every_other_block():
    src0, src1 = numbers(8, INT32), numbers(8, INT32, 500)
    ran = add(src0, src1, VADD(dtype=INT32, dst_block_stride=2), old=16 * 8)
    found = blocks_of(ran.at(Mem.UB, "int32", 128, DST), INT32)
    assert np.array_equal(found[::2].reshape(-1), src0 + src1)
    assert (found[1::2] == OLD).all()


def repeated(stride, repeats=3, operand="src0"):
    """Run vadd with one source's repeat stride; return (sums by repeat, that source's blocks)."""
    source, other = numbers(40), numbers(8 * repeats, start=5000)
    values = {"src0": other, "src1": other} | {operand: source}
    template = VADD(dtype=FLOAT32, repeat=repeats, **{f"{operand}_repeat_stride": stride})
    ran = add(**values, template=template)
    assert ran.findings == ()
    sums = ran.at(Mem.UB, "float32", 64 * repeats, DST).reshape(repeats, 8, 8)
    return sums - other.reshape(repeats, 8, 8), blocks_of(source, FLOAT32)


either_source = pytest.mark.parametrize("operand", ["src0", "src1"])


@either_source
def test_repeat_stride_8_is_contiguous(operand):
    read, blocks = repeated(8, operand=operand)
    assert np.array_equal(read.reshape(24, 8), blocks[:24])


def test_repeat_stride_8_in_place_covers_the_data():
    # The seed's figure: one tensor is source and destination.
    values = numbers(24)

    def build(builder, _):
        builder.issue(VADD(dtype=FLOAT32, repeat=3), SRC0, SRC0, SRC1)

    local = {(Mem.UB, SRC0): values, (Mem.UB, SRC1): np.full(192, 1000, np.float32)}
    ran = run_core(build, local=local, sub=AIV)
    assert ran.findings == ()
    assert np.array_equal(ran.at(Mem.UB, "float32", 192, SRC0), values + 1000)


def test_repeat_stride_9_leaves_one_block():
    src0, src1 = numbers(17, INT32), numbers(17, INT32, 1000)
    strides = {f"{x}_repeat_stride": 9 for x in ("dst", "src0", "src1")}
    ran = add(src0, src1, VADD(dtype=INT32, repeat=2, **strides), old=17 * 8)
    assert ran.findings == ()
    found = blocks_of(ran.at(Mem.UB, "int32", 17 * 8, DST), INT32)
    sums = blocks_of(src0 + src1, INT32)
    # src1 of the figure is block 0, src9 block 9: the first blocks of two iterations.
    for first in (0, 9):
        assert np.array_equal(found[first : first + 8], sums[first : first + 8])
    assert (found[8] == OLD).all()


@either_source
def test_repeat_stride_10_leaves_two_blocks(operand):
    read, blocks = repeated(10, operand=operand)
    assert np.array_equal(read, np.stack([blocks[at : at + 8] for at in (0, 10, 20)]))


@either_source
def test_repeat_stride_0_repeats_the_first_blocks(operand):
    read, blocks = repeated(0, operand=operand)
    assert np.array_equal(read, np.stack([blocks[:8]] * 3))


@either_source
def test_repeat_stride_4_reads_blocks_twice(operand):
    read, blocks = repeated(4, operand=operand)
    assert np.array_equal(read, np.stack([blocks[at : at + 8] for at in (0, 4, 8)]))
    assert np.array_equal(read[0, 4:], read[1, :4])


# --- the mask


def test_the_int16_mask_example():
    ones_to_128 = np.arange(1, 129, dtype=np.int16)
    ones = dict.fromkeys(("dst_block_stride", "src0_block_stride", "src1_block_stride"), 1)
    eights = dict.fromkeys(("dst_repeat_stride", "src0_repeat_stride", "src1_repeat_stride"), 8)
    template = VADD(dtype=INT16, repeat=1, **ones, **eights)
    mask = [PRINTED_MASK, PRINTED_MASK]
    ran = add(ones_to_128, ones_to_128, template, mask=(mask[1], mask[0]), old=128)
    assert ran.findings == ()
    found = ran.at(Mem.UB, "int16", 128, DST)
    assert found[::2].tolist() == list(range(2, 255, 4))
    assert (found[1::2] == OLD).all()
    # The high word comes first, and bits run upwards: one bit, one lane.
    for words, lane in (((0, 1), 0), ((0, 2**63), 63), ((1, 0), 64), ((2**63, 0), 127)):
        ran = add(ones_to_128, ones_to_128, template, mask=words, old=128)
        found = ran.at(Mem.UB, "int16", 128, DST)
        assert np.flatnonzero(found != OLD).tolist() == [lane]
        assert found[lane] == 2 * (lane + 1)


def test_lanes_that_the_mask_excludes_stay_unwritten():
    values = np.arange(1, 129, dtype=np.int16)
    ran = add(values, values, VADD(dtype=INT16), mask=(PRINTED_MASK, PRINTED_MASK))
    valid = ran.local[Mem.UB].valid[DST : DST + 256].reshape(128, 2)
    assert (valid[::2] == 1).all()
    assert (valid[1::2] == 0).all()


def test_the_int32_mask_example():
    ones_to_64 = np.arange(1, 65, dtype=np.int32)
    ones = dict.fromkeys(("dst_block_stride", "src0_block_stride", "src1_block_stride"), 1)
    eights = dict.fromkeys(("dst_repeat_stride", "src0_repeat_stride", "src1_repeat_stride"), 8)
    template = VADD(dtype=INT32, repeat=1, **ones, **eights)
    ran = add(ones_to_64, ones_to_64, template, mask=(0, PRINTED_MASK), old=64)
    assert ran.findings == ()
    found = ran.at(Mem.UB, "int32", 64, DST)
    assert found[::2].tolist() == list(range(2, 127, 4))
    assert (found[1::2] == OLD).all()
    # A mask of 32-bit lanes is the low word: in the high word it selects nothing.
    swapped = add(ones_to_64, ones_to_64, template, mask=(PRINTED_MASK, 0), old=64)
    assert swapped.messages == [NO_LANE]


@every_type
def test_mask_bits_select_elements(dtype):
    count = 256 // dtype.size_bytes
    rng = np.random.default_rng(3)
    src0, src1 = numbers(16, dtype), numbers(16, dtype, 50)
    chosen = rng.integers(0, 2, count).astype(bool)
    bits = sum(1 << int(lane) for lane in np.flatnonzero(chosen))
    mask = (bits >> 64, bits & FULL_WORD)
    ran = add(src0, src1, VADD(dtype=dtype, repeat=2), mask=mask, old=2 * count)
    assert ran.findings == ()
    found = ran.at(Mem.UB, dtype.name, 2 * count, DST)
    # The same mask holds in every iteration.
    assert np.array_equal(found, np.where(np.tile(chosen, 2), src0 + src1, OLD))


def test_a_word_of_the_mask_is_64_bits():
    for word in ("mask_high", "mask_low"):
        mask = partial(SetVectorMask, mask_high=1, mask_low=1)
        assert template_violations(mask(**{word: FULL_WORD}), A2) == ()
        for value in (-1, 2**64):
            found = [str(v) for v in template_violations(mask(**{word: value}), A2)]
            assert found == [f"set_vector_mask.{word} must be in [0, {FULL_WORD}], got {value}"]


MASKS = {
    (INT16, (0, 1)): True,
    (INT16, (1, 0)): True,
    (INT16, (FULL_WORD, FULL_WORD)): True,
    (INT16, (0, 0)): False,
    (INT32, (0, 1)): True,
    (INT32, (0, FULL_WORD)): True,
    (INT32, (0, 0)): False,
    (INT32, (1, 0)): False,
}


@pytest.mark.parametrize("case", MASKS, ids=lambda case: f"{case[0]}-{case[1][0]:x}-{case[1][1]:x}")
def test_mask_ranges_by_width(case):
    dtype, mask = case
    count = 256 // dtype.size_bytes
    ran = add(numbers(8, dtype), numbers(8, dtype), VADD(dtype=dtype), mask=mask, old=count)
    found = ran.at(Mem.UB, dtype.name, count, DST)
    if MASKS[case]:
        assert ran.findings == ()
        assert (found != OLD).any()
    else:
        assert ran.messages == [NO_LANE]
        assert (found == OLD).all()

"""The C API's calls: every documented order of arguments, every form, and what is refused."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.frontends.capi.calls.binding import bind, forms
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.catalogue import instruction_named, spellings
from cubecore.isa.declare.instruction import Mem

FORMS = tomllib.loads((Path(__file__).parent / "signatures.toml").read_text(encoding="utf-8"))[
    "form"
]
ROWS = [
    (call, form["order"], form.get("arch", "2201"))
    for form in FORMS
    for call in form["calls"].split()
]

# The page's word for a parameter, and the declaration's, where they are two.
SYNONYMS = {
    "left_height": "m",
    "n_dim": "k",
    "right_width": "n",
    "dst_stride_dst_d": "dst_stride",
    "unit_flag_mode": "unit_flag",
    "enable_channel_split": "channel_split",
    "enable_nz2nd": "nz2nd_en",
    "enable_unit_flag": "reset_unit_flags",
    "quant_pre": "quant_pre",
    "src_gap_size": "src_stride",
    "dst_gap_size": "dst_stride",
    "enable_addr_decrement": "decrement",
    "config": "scale",
    "pad_value": "value",
    "pattern_mode": "pattern",
    "pipe": "on",
    "tpipe": "dst",
    "id": "event_id",
    "mask1": "mask_high",
    "mask0": "mask_low",
    "src_offset": "offset",
    "sel_mask": "src",
    "arg": "memory",
    "base_idx": "start_index",
}
TWO_MEANINGS = {
    ("asc_set_l0c2gm_config", "quant_pre"): "scales_at",
    ("asc_set_l0c2gm_config", "relu_pre"): "relu_at",
    ("asc_set_l0c2gm_lrelu_alpha", "config"): "alpha",
    ("asc_set_l13d_padding", "config"): "config",
    **{(f"asc_fill_{where}", "value"): "bits" for where in ("l0a", "l0b", "l1")},
    ("asc_sync_notify", "pipe"): "src",
    ("asc_sync_wait", "pipe"): "src",
    ("asc_sync_block_wait", "pipe"): "pipe",
    ("asc_sync_inter_wait", "pipe"): "pipe",
    ("asc_sync_subblock_wait", "pipe"): "pipe",
    ("asc_set_ctrl", "config"): "value",
    ("asc_duplicate", "src"): "value",
    ("asc_shiftright", "value"): "distance",
    ("asc_shiftright_round", "value"): "distance",
}
OPERANDS = {"c_matrix": "c", "a_matrix": "a", "b_matrix": "b"} | SYNONYMS


def word(call, name, arch):
    """Return the declaration's word for a parameter; 3510's are the pages' but for one."""
    if arch == "3510":
        extents = {"left_height": "m", "n_dim": "k", "right_width": "n"}
        if call == "asc_copy_gm2l1":
            extents = {"src_stride": "src_gap", "dst_stride": "dst_gap"}
        return "dst_at" if call.endswith("_mx") and name == "dst" else extents.get(name, name)
    return SYNONYMS.get(name, name)


@pytest.mark.parametrize(("call", "order", "arch"), ROWS, ids=str)
def test_the_documented_order(call, order, arch):
    """Pointers are operands and numbers parameters, each at its documented place."""
    pointers, numbers = (part.split() for part in f" {order} ".split("|"))
    if call.startswith("asc_transto5hd"):
        pointers, numbers = [], ["dst_va", "src_va", *numbers[2:]]
    fitting = [f for f in forms(call, arch) if len(f.operands) == len(pointers)]
    assert fitting
    known = [f for f in fitting if all(f.knows(word(call, n, arch)) for n in numbers)]
    sized = [f for f in known or fitting if len(f.parameters) == len(numbers)]
    form = (sized or fitting)[0]
    assert [OPERANDS.get(p, p) for p in pointers] == list(form.operands)
    if numbers[-1:] in (["count"], ["size"]):
        assert len(numbers) - 1 == len(form.scalars)
        has = form.kind.count_form is not None if numbers[-1] == "count" else form.kind.size_unit
        assert has
        return
    wanted = [TWO_MEANINGS.get((call, n), word(call, n, arch)) for n in numbers]
    assert [p.removeprefix("_") for p in form.parameters[: len(wanted)]] == wanted


def see(name):
    """The end of a refusal: the page of the instruction."""
    return f"; see {instruction_named(name).source}"


def pointer(mem=Mem.UB, dtype="float16", address=0):
    return Pointer(mem, element_type(dtype), address, None)


def steps(call, *arguments, **keywords):
    """Return what is issued: (name, fields that are not defaults' names, addresses' sources)."""
    return [
        (template.name, template, places)
        for template, places in bind(call, arguments, keywords).steps
    ]


def names(call, *arguments, **keywords):
    return [name for name, _, _ in steps(call, *arguments, **keywords)]


# --- forms


def test_the_form_with_repeats_and_strides():
    ((name, template, places),) = steps(
        "asc_add", pointer(), pointer(), pointer(), 3, 1, 2, 4, 8, 16, 0
    )
    assert name == "vadd"
    assert places == (0, 1, 2)
    assert template.dtype is element_type("float16")
    fields = ("repeat", "dst_block_stride", "src0_block_stride", "src1_block_stride")
    assert [getattr(template, f) for f in fields] == [3, 1, 2, 4]
    fields = ("dst_repeat_stride", "src0_repeat_stride", "src1_repeat_stride")
    assert [getattr(template, f) for f in fields] == [8, 16, 0]


def test_the_form_with_a_struct():
    """Seed 003's example: the strides in a struct, the mask set before."""
    strides = {"dst_block_stride": 1, "src0_block_stride": 2, "dst_repeat_stride": 9}
    for config in (strides, SimpleNamespace(**strides)):
        ((_, template, _),) = steps("asc_add", pointer(), pointer(), pointer(), config)
        assert {k: getattr(template, k) for k in strides} == strides
        assert template.repeat == 1


@pytest.mark.parametrize(("given", "word"), [(-1, 2**64 - 1), (-(2**63), 2**63), (5, 5)])
def test_a_negative_word_is_what_c_makes_of_it(given, word):
    ((mask, _),) = bind("asc_set_vector_mask", (given, given), {}).steps
    assert (mask.mask_high, mask.mask_low) == (word, word)


def test_other_parameters_stay_negative_and_are_findings():
    ((mask, _),) = bind("asc_set_vector_mask", (-(2**63) - 1, 1), {}).steps
    assert mask.mask_high == -(2**63) - 1
    ((wait, _),) = bind("asc_sync_wait", ("PIPE_V", "PIPE_MTE2", -1), {}).steps
    assert wait.event_id == -1


def test_the_form_with_a_count_sets_the_mask_and_leaves_it():
    issued = steps("asc_add", pointer(), pointer(), pointer(), 100)
    assert [name for name, _, _ in issued] == [
        "set_mask_count",
        "set_vector_mask",
        "vadd",
        "set_mask_norm",
    ]
    mask = issued[1][1]
    assert (mask.mask_high, mask.mask_low) == (0, 100)


def test_the_form_with_a_size_drops_what_is_no_whole_block():
    ((_, template, _),) = steps("asc_copy_gm2ub", pointer(), pointer(Mem.GM), 100)
    assert (template.n_burst, template.len_burst) == (1, 3)


@pytest.mark.parametrize(("call", "order", "arch"), ROWS, ids=str)
def test_every_synchronous_form_is_the_plain_one_and_a_barrier(call, order, arch):
    """Of each documented order: the same steps, then a wait for all pipes."""
    form = next(f for f in forms(call, arch) if len(f.operands) == order.split("|")[0].count(" "))
    declared = {o.name: o for o in form.kind.declared}
    pointers = [pointer(declared[name].mem) for name in form.operands]
    arguments = [*[1] * form.leading, *pointers, *[1] * (len(form.parameters) - form.leading)]

    def steps_of(name):
        try:
            return bind(name, arguments, {}, arch).steps
        except RequestError as error:
            return str(error).replace("_sync", "")

    plain, synchronous = steps_of(call), steps_of(f"{call}_sync")
    if isinstance(plain, str):
        assert synchronous == plain
    else:
        assert synchronous[:-1] == plain
        assert synchronous[-1][0].name == "pipe_barrier"


def test_a_padding_mode_of_3510_is_a_finding_of_its_argument():
    """Mode 0 is the copy; the others are on 2201 under names of their own."""
    pointers = [pointer(Mem.L1), pointer(Mem.GM)]
    ((template, _),) = bind("asc_copy_gm2l1", (*pointers, 2, 3, 4, 5, 6), {}, "3510").steps
    assert (template.n_burst, template.len_burst) == (2, 3)
    assert (template.pad_func_mode, template.src_gap, template.dst_gap) == (4, 5, 6)
    assert [str(v) for v in template.violations(chip("Ascend950PR_9599"))] == [
        "copy_gm_to_cbuf.pad_func_mode must be one of 0, got 4"
    ]
    with pytest.raises(RequestError) as error:
        bind("asc_copy_gm2l1", (*pointers, 0, 0, 1, 1, 1, 0, 0), {}, "3510")
    assert str(error.value).startswith(
        "asc_copy_gm2l1 takes dst, src, n_burst, len_burst, pad_func_mode, src_gap, dst_gap; got "
        "9 arguments"
    )


def test_the_synchronous_form_waits_for_all_pipes():
    assert names("asc_add_sync", pointer(), pointer(), pointer(), 3, 1, 1, 1, 8, 8, 8) == [
        "vadd",
        "pipe_barrier",
    ]
    assert names("asc_exp_sync", pointer(), pointer(), 64)[-1] == "pipe_barrier"
    assert names("asc_sync") == ["pipe_barrier"]


def test_scalar_operands_become_bits_of_the_sources_type():
    for dtype, value, bits in (
        ("float16", 1.5, 0x3E00),
        ("float32", -2, 0xC0000000),
        ("int16", -3, -3),
        ("float16", np.float32(70000), 0x7C00),
    ):
        p = pointer(dtype=dtype)
        ((_, template, _),) = steps("asc_add_scalar", p, p, value, 1, 1, 1, 8, 8)
        assert template.value == bits


def test_a_name_that_fixes_a_parameter():
    p, q = pointer(), pointer(dtype="float32")
    rounding = {
        call: steps(call, p, q, 1, 1, 1, 4, 8)[0][1].rounding
        for call in ("asc_float2half_rn", "asc_float2half_rz")
    }
    assert len(set(rounding.values())) == 2


def test_one_name_for_several_instructions():
    """asc_eq with two pointers compares into a register, with three into memory."""
    p, bits = pointer(), pointer(dtype="uint8")
    strides = (1, 1, 1, 1, 8, 8, 8)
    assert names("asc_eq", p, p, *strides) == ["vcmp_eq"]
    assert names("asc_eq", bits, p, p, *strides) == ["vcmpv_eq"]


def test_mmad_in_the_apis_order_m_k_n():
    c, a, b = pointer(Mem.L0C, "float32"), pointer(Mem.L0A), pointer(Mem.L0B)
    ((_, mad, places),) = steps("asc_mmad", c, a, b, 16, 48, 32, 0, False, False, True)
    assert (mad.m, mad.k, mad.n, mad.c_matrix_init_val) == (16, 48, 32, True)
    assert places == (0, 1, 2)


def test_mmads_longer_form_takes_three_arguments_that_do_nothing():
    c, a, b = pointer(Mem.L0C, "float32"), pointer(Mem.L0A), pointer(Mem.L0B)
    ((_, mad, _),) = steps("asc_mmad", c, a, b, 16, 48, 32, 9, 7, 2, False, True, False, True)
    assert (mad.m, mad.k, mad.n, mad.unit_flag, mad.c_matrix_init_val) == (16, 48, 32, 2, True)


def test_products_of_4_bits_have_a_name_of_their_own():
    c, a, b = (pointer(m, t) for m, t in ((Mem.L0C, "int32"), (Mem.L0A, "int4"), (Mem.L0B, "int4")))
    ((_, mad, _),) = steps("asc_mmad_s4", c, a, b, 16, 64, 16, 0, False, False, True)
    assert {mad.a_type.name, mad.b_type.name} == {"int4"}
    with pytest.raises(RequestError) as error:
        bind("asc_mmad_s4", (c, pointer(Mem.L0A, "int8"), b, 16, 64, 16), {})
    assert str(error.value) == f"asc_mmad_s4.a must point to int4, got int8{see('mad')}"


def test_runs_and_fractals_share_a_name():
    """Four numbers mean runs; the parameters' names tell the form with fractals."""
    to, at = pointer(Mem.L1), pointer(Mem.GM)
    assert names("asc_copy_gm2l1", to, at, 1, 2, 0, 0) == ["copy_gm_to_cbuf"]
    ((name, load, _),) = steps("asc_copy_gm2l1", to, at, start_index=1, repeat=2, src_stride=3)
    assert (name, load.start_index, load.repeat, load.src_stride) == ("load_gm_to_cbuf", 1, 2, 3)


def test_fractals_and_windows_share_a_name():
    """How many numbers there are tells load2d and load3d apart, whichever form they have."""
    to, at = pointer(Mem.L0A), pointer(Mem.L1)
    assert names("asc_copy_l12l0a", to, at, 0, 1, 1, 0) == ["load_cbuf_to_ca"]
    window = (16, 32, 0, 16, 1, 2, 3, 3, 1, 1, False, True, False, False, 20)
    ((name, load, _),) = steps("asc_copy_l12l0a", to, at, *window)
    assert name == "img2colv2_cbuf_to_ca"
    assert (load.k_extension, load.m_extension, load.m_start_pt, load.stride_h) == (16, 32, 16, 2)
    assert (load.filter_size_h, load.channel_size, load.dtype.name) == (True, 20, "float16")
    assert names("asc_copy_l12l0b_sync", pointer(Mem.L0B), at, *window) == [
        "img2colv2_cbuf_to_cb",
        "pipe_barrier",
    ]


@pytest.mark.parametrize(
    ("given", "bits"), [(1.0, 0x3C00), (np.float16(-2), 0xC000), (-1, -1), (7, 7)]
)
def test_padding_of_load3d(given, bits):
    ((_, setter, _),) = steps("asc_set_l13d_padding", given)
    assert setter.config == bits


def test_structs_of_load3d():
    """The vendor's structs; what is left out has its default there, too."""
    ((_, setter, _),) = steps("asc_set_l13d_fmatrix", {"l1_height": 3, "l1_width": 4})
    assert (setter.l1_height, setter.l1_width, setter.padding_top_size) == (3, 4, 0)
    ((_, setter, _),) = steps("asc_set_l13d_rpt", SimpleNamespace(rpt_stride=2))
    assert (setter.rpt_stride, setter.rpt_time, setter.rpt_mode) == (2, 1, 0)


def test_padding_modes_are_names():
    to, at = pointer(Mem.L1), pointer(Mem.GM)
    for mode in range(1, 9):
        ((_, pad, _),) = steps(f"asc_copy_gm2l1_pad{mode}", to, at, 1, 2, 3, 4)
        assert (pad.mode, pad.len_burst, pad.dst_gap) == (mode, 2, 4)
        ((_, pad, _),) = steps(f"asc_copy_gm2l1_pad{mode}", to, at, 100)
        assert (pad.mode, pad.n_burst, pad.len_burst) == (mode, 1, 3)


@pytest.mark.parametrize(
    ("dtype", "given", "bits"),
    [
        ("float16", 1.0, 0x3C00),
        ("bfloat16", 1.0, 0x3F80),
        ("float32", 1.0, 0x3F800000),
        ("float32", 0x3F800000, 0x3F800000),
        ("uint16", 0x3C00, 0x3C00),
    ],
)
def test_a_fill_takes_bits_or_a_float_of_its_type(dtype, given, bits):
    """The struct has the defaults 0, as the vendor's."""
    ((_, fill, _),) = steps("asc_fill_l0a", pointer(Mem.L0A, dtype), given, {"repeat": 2})
    assert (fill.bits, fill.repeat, fill.blk_num, fill.dst_gap) == (bits, 2, 0, 0)


@pytest.mark.parametrize("given", [0.5, np.float16(0.5), np.float32(0.5), 0x3F000000])
def test_a_float_where_a_parameter_holds_bits(given):
    ((_, setter, _),) = steps("asc_set_l0c2gm_lrelu_alpha", given)
    assert setter.alpha == 0x3F000000


def test_a_bias_lies_at_the_start_of_its_buffer():
    c, a, b = pointer(Mem.L0C, "float32"), pointer(Mem.L0A), pointer(Mem.L0B)
    ((_, mad, places),) = steps("asc_mmad", c, a, b, 16, 48, 32, 0, False, True, False)
    assert [o.name for o in mad.operands()] == ["c", "a", "b", "bias"]
    assert places == (0, 1, 2, None)


def test_a_list_stands_for_its_elements():
    p = pointer(dtype="float32")
    issued = steps("asc_mrgsort4", p, [p, p, p, p], 1, 8, 8, 8, 8, False, 15)
    assert issued[0][2] == (0, 1, 2, 3, 4)
    addresses = [pointer(address=32 * n) for n in range(8)]
    ((_, template, _),) = steps("asc_set_va_reg", 0, addresses)
    assert template.address7 == 224
    assert not bind("asc_set_va_reg", (0, addresses), {}).reusable


def test_pipes_with_and_without_their_prefix():
    for prefix in ("", "PIPE_"):
        ((_, flag, _),) = steps("asc_sync_notify", f"{prefix}MTE2", f"{prefix}V", 3)
        assert (flag.src, flag.dst, flag.event_id) == ("MTE2", "V", 3)


def test_signals_between_cores():
    for call, mode in (
        ("asc_sync_inter_arrive", 0),
        ("asc_sync_subblock_arrive", 1),
        ("asc_sync_block_arrive", 2),
    ):
        ((name, sync, _),) = steps(call, "MTE3", 5)
        assert (name, sync.mode, sync.on, sync.flag_id) == ("ffts_cross_core_sync", mode, "MTE3", 5)
    for call in ("asc_sync_inter_wait", "asc_sync_subblock_wait", "asc_sync_block_wait"):
        ((name, sync, _),) = steps(call, "V", 5)
        assert (name, sync.flag_id) == ("wait_flag_dev", 5)


# --- what is refused


@pytest.mark.parametrize(
    ("call", "arguments", "keywords", "line"),
    [
        (
            "asc_ad",
            (),
            {},
            "asc_ad must be a name of the C API that an instruction has, got none; "
            "did you mean asc_and?",
        ),
        (
            "asc_add",
            (pointer(), pointer()),
            {},
            "asc_add needs the operands dst, src0, src1; got 2",
        ),
        (
            "asc_add",
            (pointer(), 3, pointer()),
            {},
            "asc_add.src0 must be a pointer into UB, got 3; core.ubuf.at(type, "
            "address) makes one of an address",
        ),
        (
            "asc_add",
            (pointer(), pointer(Mem.GM), pointer(), 8),
            {},
            f"asc_add.src0 must point into UB, got float16* 0 in GM{see('vadd')}",
        ),
        (
            "asc_add",
            (pointer(), pointer(), pointer(dtype="float32"), 8),
            {},
            f"asc_add.src1 must point to float16, as dst does, got float32{see('vadd')}",
        ),
        (
            "asc_half2float",
            (pointer(), pointer(), 8),
            {},
            f"asc_half2float.dst must point to float32, got float16{see('vconv_f162f32')}",
        ),
        (
            "asc_add",
            (pointer(), pointer(), pointer(), 1, 1, 1, 1, 8, 8, 8, 9),
            {},
            "asc_add takes dst, src0, src1, repeat, dst_block_stride, src0_block_stride, "
            "src1_block_stride, dst_repeat_stride, src0_repeat_stride, src1_repeat_stride; got 11 "
            "arguments",
        ),
        (
            "asc_add",
            (pointer(), pointer(), pointer()),
            {"dst_block_strid": 2},
            "asc_add has no parameter dst_block_strid; did you mean dst_block_stride?",
        ),
        (
            "asc_add",
            (pointer(), pointer(), pointer(), 1.5),
            {},
            "asc_add.count must be an integer, got 1.5",
        ),
        (
            "asc_add_scalar",
            (pointer(dtype="int16"), pointer(dtype="int16"), 0.5, 8),
            {},
            "asc_add_scalar.value must be an integer for int16, got 0.5",
        ),
        (
            "asc_mmad",
            (pointer(Mem.L0C, "float32"), pointer(Mem.L0A), pointer(Mem.L0B), 16),
            {},
            "asc_mmad needs k, n",
        ),
        (
            "asc_eq_scalar",
            (pointer(dtype="uint8"), pointer(), 1.0, 100),
            {"count": 3},
            "asc_eq_scalar has no parameter count",
        ),
    ],
)
def test_what_fits_no_form_is_refused(call, arguments, keywords, line):
    with pytest.raises(RequestError) as error:
        bind(call, arguments, keywords)
    assert str(error.value) == line


def test_a_comparison_has_no_form_with_a_count():
    p, bits = pointer(), pointer(dtype="uint8")
    assert names("asc_eq", bits, p, p, 2) == ["vcmpv_eq"]


# --- what holds for every name: a buffer in the wrong memory

CALLS = sorted({call for call in spellings() if call.startswith("asc_")})
PLACES = sorted(
    {
        (form.call, len(form.operands), place)
        for call in CALLS
        for form in forms(call)
        for place in range(len(form.operands))
    }
)


@pytest.mark.parametrize(("call", "count", "place"), PLACES)
def test_a_buffer_in_the_wrong_memory(call, count, place):
    """The refusal names the argument, the memory and the page, whatever comes behind it."""
    form = next(f for f in forms(call) if len(f.operands) == count)
    declared = {o.name: o for o in form.kind.declared}
    name = form.operands[place]
    right = declared[name].mem
    wrong = Mem.L0C if right is not Mem.L0C else Mem.UB
    pointers = [pointer(declared[n].mem) for n in form.operands]
    pointers[place] = pointer(wrong)
    with pytest.raises(RequestError) as error:
        bind(call, (*[1] * form.leading, *pointers, 1, 1), {})
    assert str(error.value) == (
        f"{call}.{name} must point into {right.label}, got float16* 0 in {wrong.label}"
        f"{see(form.kind.name)}"
    )


FRACTALS = "int4 int8 uint8 float16 bfloat16 int32 uint32 float32"
WINDOWS = (
    "int4 float4_e2m1fn int8 uint8 float8_e4m3fn float8_e5m2 float16 bfloat16 int16 uint16 float32 "
    "int32 uint32 hifloat8 float4_e1m2"
)


@pytest.mark.parametrize(
    ("call", "arch", "mems", "numbers", "allowed"),
    [
        ("asc_copy_gm2l0a", "2201", (Mem.L0A, Mem.GM), 4, FRACTALS),
        ("asc_copy_gm2l0b", "2201", (Mem.L0B, Mem.GM), 4, FRACTALS),
        ("asc_copy_l12l0a", "2201", (Mem.L0A, Mem.L1), 4, FRACTALS),
        ("asc_copy_l12l0b", "2201", (Mem.L0B, Mem.L1), 4, FRACTALS),
        ("asc_copy_l12l0a", "3510", (Mem.L0A, Mem.L1), 6, WINDOWS),
        ("asc_copy_l12l0b", "3510", (Mem.L0B, Mem.L1), 6, WINDOWS),
        ("asc_copy_l12l0b_sparse", "2201", (Mem.L0B, Mem.L1, Mem.L1), 2, "int8"),
    ],
    ids=str,
)
def test_what_moves_whole_has_the_types_of_the_prototypes(call, arch, mems, numbers, allowed):
    """The pages' rows; bytes would arrive whatever they are called."""
    for dtype in (*WINDOWS.split(), "int64", "uint64", "float8_e8m0fnu"):
        pointers = [pointer(mem, dtype) for mem in mems]
        if dtype in allowed.split():
            assert bind(call, (*pointers, *[1] * numbers), {}, arch).steps
            continue
        with pytest.raises(RequestError) as error:
            bind(call, (*pointers, *[1] * numbers), {}, arch)
        line = str(error.value)
        need = f"{call}.dst must point to one of {', '.join(allowed.split())}, got {dtype}; see "
        assert line.startswith(need), line


def test_scales_are_e8m0():
    src = pointer(Mem.L1, "uint8")
    with pytest.raises(RequestError) as error:
        bind("asc_copy_l12l0a_mx", (0, src, 0, 0, 1, 1, 1, 1), {}, "3510")
    must = "asc_copy_l12l0a_mx.src must point to one of float8_e8m0fnu, got uint8"
    assert str(error.value) == must + see("load_cbuf_to_ca_mx")


@pytest.mark.parametrize(
    ("call", "arch", "line"),
    [
        (
            *("asc_copy_l0c2gm", "2201"),
            "copy_matrix_cc_to_gm.src_type must be one of float32, int32, float16, got int64",
        ),
        (
            *("asc_copy_l0c2l1", "3510"),
            "copy_matrix_cc_to_cbuf_v2.src_type must be one of float32, int32, got int64",
        ),
    ],
)
def test_a_source_of_another_type_is_what_is_named(call, arch, line):
    """Dst's type follows from src's; it is not dst that is wrong."""
    dst = pointer(Mem.GM if call.endswith("gm") else Mem.L1, "float32")
    tile = (16, 16, 256, 16)
    bound = bind(call, (dst, pointer(Mem.L0C, "int64"), *tile), {}, arch)
    ((template, _),) = bound.steps
    home = chip("Ascend910B3" if arch == "2201" else "Ascend950PR_9599")
    assert [str(v) for v in template.violations(home)] == [line]


@pytest.mark.parametrize(
    ("call", "side"), [("asc_copy_gm2ub_align", "src"), ("asc_copy_ub2gm_align", "dst")]
)
def test_a_gap_that_splits_elements_is_named_with_its_unit(call, side):
    """asc-devkit, DataCopyPad: gaps are bytes in global memory, 32 B in UB."""
    mems = (Mem.UB, Mem.GM) if side == "src" else (Mem.GM, Mem.UB)
    pointers = [pointer(mem) for mem in mems]
    words = {"n_burst": 2, "len_burst": 64, f"{side}_gap": 3}
    with pytest.raises(RequestError) as refused:
        bind(call, pointers, words, "2201")
    assert str(refused.value) == (
        f"{call}.{side}_gap must be a multiple of float16's 2 B, got 3 B; gaps in global memory "
        "count bytes"
    )
    for fine in ({"n_burst": 1}, {f"{side}_gap": 4}):
        assert bind(call, pointers, words | fine, "2201").steps
    assert bind(call, [p.cast("uint8") for p in pointers], words, "2201").steps

"""Every prototype of the C API's pages for architecture 2201, called from its own signature."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from cubecore import capi
from cubecore.chips.products import FIXPIPE_ROWS
from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.frontends.capi.calls.binding import MODES, bind
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.cpp.files import INCLUDE
from cubecore.isa.declare.instruction import Mem

DATA = Path(__file__).parents[2] / "data/c_api_prototypes.json"
PROTOTYPES = {
    name: forms
    for name, forms in json.loads(DATA.read_text(encoding="utf-8")).items()
    if not name.startswith("_")
}
CASES = [(name, form) for name, forms in PROTOTYPES.items() for form in forms]
MEMORIES = {
    "ubuf": Mem.UB,
    "cbuf": Mem.L1,
    "ca": Mem.L0A,
    "cb": Mem.L0B,
    "cc": Mem.L0C,
    "gm": Mem.GM,
    "biasbuf": Mem.BT,
    "fbuf": Mem.FB,
}
TYPES = {
    "half": "float16",
    "float": "float32",
    "bfloat16_t": "bfloat16",
    "int4b_t": "int4",
    "fp8_e4m3fn_t": "float8_e4m3fn",
    "fp8_e5m2_t": "float8_e5m2",
    "hifloat8_t": "hifloat8",
    "void": "uint8",
    "double": "uint64",
}
STRUCTS = {
    "asc_fill_value_config&": capi.asc_fill_value_config(repeat=1, blk_num=1, dst_gap=0),
    "asc_l13d_fmatrix_config&": capi.asc_l13d_fmatrix_config(l1_height=1, l1_width=1),
    "asc_load3d_v2_config&": capi.asc_load3d_v2_config(rpt_stride=0, rpt_time=1, rpt_mode=0),
}
FLOATS = {"half": np.float16(1), "float": np.float32(1)}
LISTED = {
    "asc_load_image_to_cbuf": "the image is where AIPP's registers say, which nothing here sets",
    "asc_set_deq_scale": "a table of 16 words in UB that the scalar unit writes: words are copied "
    "there, and their address in 32 B is given",
    "asc_copy_l0c2gm": "no page says which mode makes int16 of int32",
    "asc_copy_l0c2l1": "no page says which mode makes int16, or leaves 32 bits as they are, in L1",
}
"""Calls of which a prototype is not taken, and why."""


def mode_of(call, form):
    """Return the mode of fixpipe that makes the destination's type of the source's, if any does."""
    target, source = (TYPES.get(t, t.removesuffix("_t")) for t in re.findall(r"(\w+)\*", form)[:2])
    wanted = {"int8", "uint8"} if target in {"int8", "uint8"} else {target}
    if target == "uint8" and "void*" in form:
        wanted = {"float16"}
    to = "GM" if "gm" in call else "L1"
    return next(
        (
            row.mode
            for row in FIXPIPE_ROWS
            if row.source == source and row.target in wanted and to in row.to
            if "2201" in row.archs
        ),
        None,
    )


def argument(call, form, kind, name):
    """Return a value of a parameter's type; None for what a call in Python returns."""
    if (found := re.fullmatch(r"(\w+) (\w+)\*(\[\w+\]|\*)?", kind)) is not None:
        mem, element, many = found.groups()
        dtype = element_type(TYPES.get(element, element.removesuffix("_t")))
        if element == "void" and call.startswith("asc_copy_l0c2"):
            dtype = element_type("float16")
        one = Pointer(MEMORIES[mem], dtype, 0, None)
        count = {None: 0, "*": 8}.get(many, 4)
        return [one] * count if many else one
    if kind in STRUCTS:
        return STRUCTS[kind]
    if kind in {"half&", "float&"} and "lrelu" in call:
        return FLOATS[kind[:-1]]
    if kind.endswith(("&", "]")):
        return None
    if name == "quant_pre" and "*" in form:
        return mode_of(call, form)
    if kind == "ub_addr8_t":
        return capi.VA3
    if kind == "bfloat16_t":
        return np.array(1, element_type("bfloat16").numpy)[()]
    if kind == "bool":
        return False
    return FLOATS.get(kind, 0 if name == "op" else 1)


def arguments(call, form):
    given = []
    for part in form.split(", ") if form else ():
        kind, _, name = part.rpartition(" ")
        given.append(argument(call, form, kind, name))
    return [value for value in given if value is not None]


def is_taken(call, form):
    """Return whether a call of a prototype is an instruction; one that is listed may not be."""
    if "quant_pre" in form and "*" in form and mode_of(call, form) is None:
        return False
    if "scale_arr" in form:
        return False
    try:
        return bool(bind(call, arguments(call, form), {}, "2201").steps)
    except RequestError as error:
        if "is not modelled" in str(error):
            return False
        raise


def test_how_many_are_taken():
    taken = sum(is_taken(*case) for case in CASES)
    assert len(CASES) == 1359
    assert taken >= 1340


@pytest.mark.parametrize("call", PROTOTYPES)
def test_every_prototype_is_taken_or_listed(call):
    refused = [form for form in PROTOTYPES[call] if not is_taken(call, form)]
    assert bool(refused) == (call.removesuffix("_sync") in LISTED), refused


def value_of(call, *given):
    """Return the first parameter of the one instruction of a call, and the instruction's name."""
    ((template, _),) = bind(call, given, {}, "2201").steps
    return template


def test_the_forms_of_asc_set_deq_scale():
    """Bits 31 to 0 a float scale, 45 to 37 the offset, 46 the sign; or a half alone."""
    packed = value_of("asc_set_deq_scale", 0.5, -3, True).value
    assert packed == 0x3F000000 | (-3 & 0x1FF) << 37 | 1 << 46
    assert value_of("asc_set_deq_scale", np.float32(0.5), 3, False).value == 0x3F000000 | 3 << 37
    assert value_of("asc_set_deq_scale", np.float16(0.5)).value == 0x3800
    assert value_of("asc_set_deq_scale", 77).value == 77


def test_pad_values_are_bits_of_their_own_type():
    brain = element_type("bfloat16").numpy
    assert value_of("asc_set_copy_pad_val", np.float16(1)).value == 0x3C00
    assert value_of("asc_set_copy_pad_val", np.float32(1)).value == 0x3F800000
    assert value_of("asc_set_copy_pad_val", 1.0).value == 0x3F800000
    assert value_of("asc_set_copy_pad_val", np.array(1, brain)[()]).value == 0x3F80
    assert value_of("asc_set_copy_pad_val", 7).value == 7


@pytest.mark.parametrize(
    ("number", "kind"),
    [*enumerate(("", "float32", "float16", "int16", "int32", "int8", "bfloat16"))],
)
def test_atomic_types_by_number(number, kind):
    template = value_of("asc_set_store_atomic_config_v1", number, 0)
    assert template.operation == ("add" if kind else "none")
    assert not kind or template.dtype.name == kind


def test_an_address_in_bias_table_may_be_a_number():
    single = Pointer(Mem.L1, element_type("float32"), 0, None)
    half = single.cast("float16")
    ((template, places),) = bind("asc_copy_l12bt", (128, single, 64), {}, "2201").steps
    assert (template.name, places) == ("copy_cbuf_to_bt", (0, 1))
    of_c = Pointer(Mem.BT, element_type("uint8"), 128, None)  # a number, by the header's words
    ((same, places),) = bind("asc_copy_l12bt", (of_c, single, 64), {}, "2201").steps
    assert (same, places) == (template, (0, 1))
    ((template, _),) = bind("asc_copy_l12bt", (64, half, 1, 1, 2, 0, 0), {}, "2201").steps
    assert template.conv_control


def test_modes_have_the_numbers_that_the_header_gives_them():
    text = (INCLUDE / "cubecore/cube/params.h").read_text("utf-8")
    assert re.findall(r"WRITE\((\w+)\)", text) == [*MODES["quant_pre"], *MODES["quant_post"]]
    out, sums = (
        Pointer(m, element_type(t), 0, None) for m, t in ((Mem.GM, "float16"), (Mem.L0C, "int32"))
    )
    numbers = (16, 16, 16, 16, 0, 0, 0, MODES["quant_pre"].index("DEQF16"), 0)
    ((template, _),) = bind("asc_copy_l0c2gm", (out, sums, *numbers), {}, "3510").steps
    assert (template.quant_pre, template.quant_post) == ("DEQF16", "NoConv")


def test_a_count_of_asc_reduce_takes_the_pattern_of_src1():
    ub = Pointer(Mem.UB, element_type("uint16"), 0, None)
    steps = [t for t, _ in bind("asc_reduce", (ub, ub, ub, 128), {}, "2201").steps]
    assert [t.name for t in steps] == [
        *("set_mask_count", "set_vector_mask", "vreducev2", "set_mask_norm")
    ]
    assert (steps[1].mask_low, steps[2].pattern, steps[2].repeat) == (128, 0, 1)


@pytest.mark.parametrize(
    ("call", "given", "line"),
    [
        ("asc_set_deq_scale", ("x", 1, True), "asc_set_deq_scale.scale must be a number, got 'x'"),
        (
            "asc_set_deq_scale",
            (1.0, 1.5, 0),
            "asc_set_deq_scale.offset must be an integer, got 1.5",
        ),
        (
            "asc_set_store_atomic_config_v1",
            (7, 0),
            "asc_set_store_atomic_config_v1.type must be in [0, 6], got 7",
        ),
        (
            "asc_set_store_atomic_config_v1",
            (1, 2),
            "asc_set_store_atomic_config_v1.op must be 0, which adds, got 2",
        ),
    ],
)
def test_what_the_forms_refuse(call, given, line):
    with pytest.raises(RequestError) as refused:
        bind(call, given, {}, "2201")
    assert str(refused.value) == line

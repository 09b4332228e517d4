"""Faults inside vector functions: each is found at its line, and the right form of it is clean."""

import re

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import FUNCTION, HEAD, kernels, needs_compiler
from frontends.cpp.register_faults import (
    ALL_PAIRS,
    CHIP,
    COUNT,
    FRAME,
    PAIRS,
    PARAMETERS,
    SHORT,
    SHORT_PAIRS,
)

pytestmark = needs_compiler


def bodies():
    made = {}
    for name, (_, right, wrong) in ALL_PAIRS.items():
        made[f"{name}_right"] = FRAME.format(body=re.sub(" *//!", "", right))
        made[f"{name}_wrong"] = FRAME.format(body=wrong)
    return made


@pytest.fixture(scope="module")
def built():
    return kernels(bodies(), PARAMETERS, chip=CHIP, auto_sync=False, checks="all")


def run(kernel, count=COUNT):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=count).astype(np.float32) for _ in range(2))
    z = np.zeros_like(x)
    return kernel[1](x, y, z, count), z


def marked_lines(name):
    """Return the lines of a file of all kernels that are marked in one of them."""
    text, made = HEAD.format(before=""), bodies()
    for each, body in made.items():
        begin = text.count("\n")
        text += FUNCTION.format(name=each, parameters=PARAMETERS, body=body)
        if each == name:
            return [
                n for n, line in enumerate(text.split("\n")[begin:], begin + 1) if "//!" in line
            ]
    raise AssertionError(name)


def count_of(name):
    return SHORT if name in SHORT_PAIRS else COUNT


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", ALL_PAIRS)
def test_the_right_form_is_clean(built, name):
    outcome, _ = run(built[f"{name}_right"], count_of(name))
    assert outcome.findings == ()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ALL_PAIRS)
def test_the_fault_is_found_at_its_line(built, name):
    kernel = f"{name}_wrong"
    outcome, _ = run(built[kernel], count_of(name))
    found = [f.location.line for f in outcome.findings if f.id == ALL_PAIRS[name][0]]
    assert sorted(set(found)) == marked_lines(kernel)


ORDERS = {"vf-race", "vf-store-order"}
SAME = {"broadcast_beside", "data_of_another"}
"""Faults whose race changes nothing that is copied out."""
RACES = [name for name, (kind, *_) in PAIRS.items() if kind in ORDERS and name not in SAME]


@pytest.fixture(scope="module")
def late():
    options = {"chip": CHIP, "auto_sync": False, "checks": "all", "order": "late"}
    return kernels(bodies(), PARAMETERS, **options)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", RACES)
def test_another_order_shows_a_missing_barrier(built, late, name):
    for side, same in (("right", True), ("wrong", False)):
        (_, first), (outcome, other) = (run(each[f"{name}_{side}"]) for each in (built, late))
        assert np.array_equal(first, other, equal_nan=True) is same
        assert [f.id for f in outcome.findings] == ([] if same else [PAIRS[name][0]])


def finding(built, name):
    outcome, _ = run(built[f"{name}_wrong"], count_of(name))
    (found,) = outcome.findings
    (line,) = marked_lines(f"{name}_wrong")
    return found, line


def test_a_race_names_both_lines_and_the_barrier(built):
    found, line = finding(built, "store_then_load")
    assert found.message == (
        f"LoadAlign must load bytes of UB behind StoreAlign (inline.cpp:{line - 2}), which stores "
        "them, got no order between the two in one vector function; call LocalMemBar<MemType::"
        "VEC_STORE, MemType::VEC_LOAD>() or asc_mem_bar(VST_VLD) between them"
    )
    accesses = [(a.how, a.instruction, a.start, a.end, a.location.line) for a in found.accesses]
    assert accesses == [
        ("write", "StoreAlign", 16384, 16640, line - 2),
        ("read", "LoadAlign", 16384, 16640, line),
    ]


def test_an_access_behind_ub_names_its_line_and_bytes(built):
    found, line = finding(built, "behind_ub")
    assert found.location.line == line
    assert found.message == (
        "LoadAlign must stay inside UB (0 to 262144 B), got bytes [262144, 262400)"
    )


IN_ARRAYS = """  __ubuf__ float first[512];
  __ubuf__ float second[512];
  __ubuf__ float *xu = first, *yu = second;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, n * 4);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  __VEC_SCOPE__ {
    Reg::RegTensor<float> a;
    Reg::MaskReg all = Reg::CreateMask<float>();
    for (uint16_t i = 0; i < n / 64; ++i) {
      Reg::LoadAlign(a, xu + 64 * i);
      Reg::StoreAlign(yu + 64 * i + OFF, a, all);
    }
  }
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)yu, n * 4);"""


def test_arrays_that_meet_are_each_their_own_buffer():
    made = {name: IN_ARRAYS.replace("OFF", off) for name, off in (("in", "0"), ("out", "8"))}
    built = kernels(made, PARAMETERS, chip=CHIP, auto_sync=False, checks="all")
    outcome, z = run(getattr(built, "in"))
    assert outcome.findings == ()
    assert z.any()
    outcome, _ = run(built.out)
    found = [(f.id, f.location.line, f.message) for f in outcome.findings]
    stray = "StoreAlign must stay inside its buffer of 2048 B, bytes [2048, 4096) of UB, got bytes "
    assert ("out-of-bounds", 32, stray + "[3872, 4128)") in found


MESSAGES = {
    "unaligned_load": (
        "LoadAlign must start at a multiple of 32 B in UB (NORM), got one 4 B behind; LoadUnAlign "
        "takes any address"
    ),
    "never_loaded": (
        "Add must read a register that was written in the vector function, got src1, which no call"
        " has written"
    ),
    "sum_from_nothing": (
        "Add must read a register that was written in the vector function, got src0, which no call"
        " has written on the first trip of the loop"
    ),
    "merged_product": (
        "Mul must be used with MaskMergeMode::ZEROING, got MERGING, which Add, Duplicate, Max, Min,"
        " Move have; Select takes lanes of two registers"
    ),
    "no_pre": (
        "LoadUnAlign must follow LoadUnAlignPre (asc_loadunalign_pre) of its buffer, got none "
        "before the first load of the stream"
    ),
    "no_post": (
        "StoreUnAlign must be followed by StoreUnAlignPost (asc_storeunalign_post) behind the last "
        "store of its stream, got none; bytes stay in the buffer"
    ),
    "five_buffers": "unaligned load buffers must be at most 4 at a time, got 5",
    "types_that_lack": (
        "Cast must convert float32 to int16, int32, int64, bfloat16, float16, hifloat8, "
        "float8_e4m3fn, float8_e5m2, got uint32"
    ),
    "layout_beyond": "Cast must have the layout ZERO, ONE from float32 to float16, got TWO",
    "shift_backwards": "ShiftLefts must shift by 0 or more bits, got -3",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_fault_is_one_sentence(built, name):
    assert finding(built, name)[0].message == MESSAGES[name]

"""Pairs of registers (RegTraitNumTwo): 64 lanes of 64 bits, against NumPy on all lanes."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
COUNT = 100
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z"
FRAME = """  __ubuf__ int64_t* xu = (__ubuf__ int64_t*)0;
  __ubuf__ int64_t* yu = (__ubuf__ int64_t*)4096;
  __ubuf__ int64_t* zu = (__ubuf__ int64_t*)8192;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 1024);
  asc_copy_gm2ub((__ubuf__ void*)yu, (__gm__ void*)y, 1024);
  asc_copy_gm2ub((__ubuf__ void*)zu, (__gm__ void*)x, 1024);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  __VEC_SCOPE__ {
    Reg::RegTensor<int64_t, Reg::RegTraitNumTwo> a, b, c;
    Reg::RegTensor<int32_t> s;
    Reg::RegTensor<float> f;
    Reg::MaskReg mask, some;
    uint32_t left = 100;
    for (uint16_t k = 0; k < 2; ++k) {
      mask = Reg::UpdateMask<int64_t, Reg::RegTraitNumTwo>(left);
      Reg::LoadAlign(a, xu + 64 * k);
      Reg::LoadAlign(b, yu + 64 * k);
      @
      Reg::StoreAlign(zu + 64 * k, c, mask);
    }
  }
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, 1024);"""
CAST = """static constexpr Reg::CastTrait how = {{Reg::RegLayout::ZERO, Reg::SatMode::{sat},
        Reg::MaskMergeMode::ZEROING, RoundMode::{rounding}}};"""
NARROW = CAST.format(sat="NO_SAT", rounding="CAST_NONE") + (
    " Reg::Cast<int32_t, int64_t, how>(s, a, mask);"
)
WIDEN = "Reg::Cast<int64_t, int32_t, how>(c, s, mask);"
LOW = np.int64(2**32 - 1)


def low_words(x, _):
    return (x & LOW).astype(np.uint32).view(np.int32).astype(np.int64)


def by_trips(work, x, y, *, cut=False):
    """Work on 64 lanes at a time; `cut`: on those that the mask lets through."""
    x, y = (np.concatenate([each, np.zeros(128 - each.size, np.int64)]) for each in (x, y))
    ends = (64, COUNT) if cut else (64, 128)
    pairs = [(x[at:end], y[at:end]) for at, end in zip((0, 64), ends, strict=True)]
    return np.concatenate([work(*pair) for pair in pairs])[:COUNT]


def lanes_of(*values):
    return np.array([*values, *[0] * (64 - len(values))], np.int64)


BODIES = {
    "add": ("Reg::Add(c, a, b, mask);", lambda x, y: x + y),
    "in_place": ("c = a; Reg::Sub(c, c, b, mask);", lambda x, y: x - y),
    "muls": ("Reg::Muls(c, a, 3, mask);", lambda x, _: x * 3),
    "max": ("Reg::Max(c, a, b, mask);", np.maximum),
    "divide": ("Reg::Div(c, a, b, mask);", lambda x, y: np.trunc(x / y).astype(np.int64)),
    "bits": ("Reg::And(c, a, b, mask);", np.bitwise_and),
    "fill": ("Reg::Duplicate(c, int64_t(-5), mask);", lambda x, _: np.full_like(x, -5)),
    "arange": (
        "Reg::Arange(c, int64_t(64 * k - 7));",
        lambda x, _: np.arange(x.size) - 7,
    ),
    "shift": ("Reg::ShiftLefts(c, a, (int16_t)3, mask);", lambda x, _: x << 3),
    "select": (
        "Reg::Compare<int64_t, CMPMODE::GT>(some, a, b, mask); Reg::Select(c, a, b, some);",
        np.maximum,
    ),
    "select_scalar": (
        "Reg::Compares<int64_t, CMPMODE::LT>(some, a, int64_t(0), mask);"
        " Reg::Select(c, b, a, some);",
        lambda x, y: np.where(x < 0, y, x),
    ),
    "interleave": (
        "Reg::Interleave(c, b, a, b);",
        lambda x, y: by_trips(lambda a, b: np.stack([a, b], 1).reshape(-1)[:64], x, y),
    ),
    "interleave_upper": (
        "Reg::Interleave(a, b, a, b); c = b;",
        lambda x, y: by_trips(lambda a, b: np.stack([a, b], 1).reshape(-1)[64:], x, y),
    ),
    "deinterleave": (
        "Reg::DeInterleave(a, b, a, b); c = a;",
        lambda x, y: by_trips(lambda a, b: np.concatenate([a, b])[::2], x, y),
    ),
    "deinterleave_odd": (
        "Reg::DeInterleave(a, b, a, b); c = b;",
        lambda x, y: by_trips(lambda a, b: np.concatenate([a, b])[1::2], x, y),
    ),
    "sum": (
        "Reg::Reduce<Reg::ReduceType::SUM>(c, a, mask);",
        lambda x, _: by_trips(lambda a, _: lanes_of(a.sum()), x, x, cut=True),
    ),
    "largest": (
        "Reg::Reduce<Reg::ReduceType::MAX>(c, a, mask);",
        lambda x, _: by_trips(lambda a, _: lanes_of(a.max(), a.argmax()), x, x, cut=True),
    ),
    "least": (
        "Reg::Reduce<Reg::ReduceType::MIN>(c, b, mask);",
        lambda _, y: by_trips(lambda a, _: lanes_of(a.min(), a.argmin()), y, y, cut=True),
    ),
    "packed": (
        CAST.format(sat="NO_SAT", rounding="CAST_NONE")
        + " Reg::RegTensor<uint32_t> w; Reg::Pack<uint32_t, int64_t>(w, a);"
        " Reg::Cast<int64_t, int32_t, how>(c, (Reg::RegTensor<int32_t>&)w, mask);",
        low_words,
    ),
    "gather": (
        "Reg::Arange(s, int32_t(63)); Reg::Muls(s, s, -1, Reg::CreateMask<int32_t>());"
        " Reg::Adds(s, s, 126, Reg::CreateMask<int32_t>());"
        " Reg::Gather(c, xu, (Reg::RegTensor<uint32_t>&)s, mask);",
        lambda x, _: np.concatenate([x[63::-1], x[63::-1]])[: x.size],
    ),
    "words": (
        NARROW + " s = (Reg::RegTensor<int32_t>&)a.reg[0];" + WIDEN,
        low_words,
    ),
    "words_are_taken": (
        "c = a; Reg::Duplicate((Reg::RegTensor<uint32_t>&)c.reg[1], 0u,"
        " Reg::CreateMask<uint32_t>());",
        lambda x, _: x & LOW,
    ),
    "there_and_back": (NARROW + WIDEN, low_words),
    "to_float": (
        CAST.format(sat="NO_SAT", rounding="CAST_RINT")
        + " Reg::Cast<float, int64_t, how>(f, a, mask);"
        " static constexpr Reg::CastTrait back = how;"
        " Reg::Cast<int64_t, float, back>(c, f, mask);",
        lambda x, _: x.astype(np.float32).astype(np.int64),
    ),
}


@pytest.fixture(scope="module")
def built():
    bodies = {f"on_{name}": FRAME.replace("@", body) for name, (body, _) in BODIES.items()}
    return kernels(bodies, PARAMETERS, chip=CHIP, auto_sync=False, checks="all")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", BODIES)
def test_lanes_of_pairs(built, name):
    """Lanes up to the count are computed in both registers; the others stay in memory."""
    rng = np.random.default_rng(6)
    x = rng.integers(-(2**40), 2**40, 128)
    y = rng.integers(1, 2**20, 128) * rng.choice([-1, 1], 128)
    z = np.zeros_like(x)
    run = built[f"on_{name}"][1](x, y, z)
    wanted = x.copy()
    wanted[:COUNT] = BODIES[name][1](x, y)[:COUNT]
    assert np.array_equal(z, wanted)
    assert run.findings == ()

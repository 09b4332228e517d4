"""Complex numbers in pairs of registers, against NumPy on all lanes."""

import re

import numpy as np
import pytest

from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
COUNT = 100
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR w"
TYPES = {"complex64": ("float", 4, 64), "complex32": ("half", 2, 128)}
FRAME = """  using C = COMPLEX;
  using P = PART;
  __ubuf__ C* xu = (__ubuf__ C*)0;
  __ubuf__ C* yu = (__ubuf__ C*)4096;
  __ubuf__ C* zu = (__ubuf__ C*)8192;
  __ubuf__ P* wu = (__ubuf__ P*)16384;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 1024);
  asc_copy_gm2ub((__ubuf__ void*)yu, (__gm__ void*)y, 1024);
  asc_copy_gm2ub((__ubuf__ void*)zu, (__gm__ void*)x, 1024);
  asc_copy_gm2ub((__ubuf__ void*)wu, (__gm__ void*)x, 1024);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  __VEC_SCOPE__ {
    Reg::RegTensor<C, Reg::RegTraitNumTwo> a, b, c;
    Reg::RegTensor<P> s;
    uint32_t left = 100;
    for (uint16_t k = 0; k < DivCeil(100, LANES); ++k) {
      Reg::MaskReg mask = Reg::UpdateMask<C, Reg::RegTraitNumTwo>(left);
      Reg::LoadAlign(a, xu + LANES * k);
      Reg::LoadAlign(b, yu + LANES * k);
      @
      Reg::StoreAlign(zu + LANES * k, c, mask);
      Reg::Abs(s, c, mask);
      Reg::StoreAlign(wu + LANES * k, s, mask);
    }
  }
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, 1024);
  asc_copy_ub2gm((__gm__ void*)w, (__ubuf__ void*)wu, 512);"""
BODIES = {
    "add": ("Reg::Add(c, a, b, mask);", np.add),
    "in_place": ("c = a; Reg::Sub(c, c, b, mask);", np.subtract),
    "mul": ("c = a; Reg::Mul(c, c, b, mask);", np.multiply),
    "div": ("Reg::Div(c, a, b, mask);", np.divide),
    "adds": ("Reg::Adds(c, a, C(2, -1), mask);", lambda x, _: x + (2 - 1j)),
    "muls": ("Reg::Muls(c, a, C(2, -1), mask);", lambda x, _: x * (2 - 1j)),
    "fill": ("Reg::Duplicate(c, C(3), mask);", lambda x, _: np.full_like(x, 3)),
    "parts": (
        "c = a; Reg::Neg((Reg::RegTensor<P>&)c.reg[1], (Reg::RegTensor<P>&)c.reg[1], mask);",
        lambda x, _: x.conj(),
    ),
}


@pytest.fixture(scope="module")
def built():
    bodies = {
        f"{kind}_{name}": FRAME.replace("COMPLEX", kind).replace("PART", part)
        .replace("LANES", str(lanes)).replace("@", body)
        for kind, (part, _, lanes) in TYPES.items()
        for name, (body, _) in BODIES.items()
    }  # fmt: skip
    return kernels(bodies, PARAMETERS, chip=CHIP)


def stored(numbers, kind):
    """Return complex numbers as their parts in turn."""
    part = np.float32 if kind == "complex64" else np.float16
    parts = np.stack([numbers.real, numbers.imag], 1).astype(part).reshape(-1)
    return np.concatenate([parts, np.zeros(1024 // part().itemsize - parts.size, part)])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", TYPES)
def test_complex_numbers_in_pairs(built, kind, name):
    """Small whole numbers, so that all but quotients and magnitudes are exact."""
    rng = np.random.default_rng(8)
    x, y = (rng.integers(-9, 10, (COUNT, 2)) @ [1, 1j] for _ in "xy")
    y = np.where(y == 0, 1, y)
    z = stored(np.zeros(1), kind)
    w = np.zeros(512 // z.itemsize, z.dtype)
    run = getattr(built, f"{kind}_{name}")[1](stored(x, kind), stored(y, kind), z, w)
    assert [f.message for f in run.findings] == []
    expected = BODIES[name][1](x, y)
    found = z[: 2 * COUNT].astype(np.float64)
    close = 1e-6 if kind == "complex64" else 4e-3
    np.testing.assert_allclose(found[::2] + 1j * found[1::2], expected, rtol=close, atol=close)
    np.testing.assert_allclose(w[:COUNT], abs(expected), rtol=close, atol=close)
    np.testing.assert_array_equal(z[2 * COUNT :], stored(x, kind)[2 * COUNT :])


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "Reg::RegTensor<C> one; Reg::Add(one, one, one, mask); c = a;",
            "a call on complex numbers must take pairs of registers (RegTraitNumTwo); those in "
            "one register are only moved",
        ),
        (
            "Reg::Max(c, a, b, mask);",
            "Max must take numbers that are not complex, got complex ones",
        ),
    ],
)
def test_what_complex_numbers_do_not_do(body, sentence):
    text = FRAME.replace("COMPLEX", "complex64").replace("PART", "float")
    text = text.replace("LANES", "64").replace("@", body)
    with pytest.raises(CubecoreError, match=re.escape(sentence)):
        kernels({"wrong": text}, PARAMETERS, chip=CHIP).wrong[1](*[np.zeros(256, np.float32)] * 4)

"""Transpose between [N, C, H, W] and [N, H, W, C], against NumPy."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
BODY = """
  using T = {kind};
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x);
  to.SetGlobalBuffer((__gm__ T*)z);
  const uint32_t all = n * c * h * w, units = {units};
  TPipe pipe;
  TBuf<TPosition::VECCALC> held, shared;
  pipe.InitBuffer(held, 2 * all * sizeof(T));
  pipe.InitBuffer(shared, units * (sizeof(T) == 1 ? 32 : 16) * 32);
  LocalTensor<T> a = held.Get<T>(), b = a[all];
  DataCopy(a, from, all);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  TransposeParamsExt p(n, c, h, w, TransposeType::{way});
  Transpose(b, a, shared.Get<uint8_t>(), p);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, b, all);
"""
WAYS = {"TRANSPOSE_NCHW2NHWC": "c + 2", "TRANSPOSE_NHWC2NCHW": "2 * c + 1"}
KINDS = {"int8_t": "i1", "half": "f2", "int32_t": "i4", "float": "f4"}
LAST, FIRST = WAYS
BODIES = {
    f"{kind}_{way}": BODY.format(kind=kind, way=way, units=units)
    for kind in KINDS
    for way, units in WAYS.items()
}
BODIES["small"] = BODY.format(kind="half", way=LAST, units="c + 1")
BODIES["other"] = BODY.format(kind="half", way="TRANSPOSE_NZ2ND_0213", units="1")
BODIES["blocks"] = BODY.format(kind="float", way="TRANSPOSE_ND2ND_B16", units="1")
WAIT = "  SetFlag<HardEvent::V_MTE3>(0);\n  WaitFlag<HardEvent::V_MTE3>(0);\n"
BODIES["unordered"] = BODIES[f"half_{LAST}"].replace(WAIT, "")
BODIES["none"] = (
    BODIES[f"half_{LAST}"]
    .replace("all = n * c * h * w", "all = 64")
    .replace("DataCopy(a, from, all);", "DataCopy(b, from, all);")
)
SHAPES = [
    (3, 5, 1, 32),
    (1, 33, 2, 80),
    *(
        pytest.param(shape, marks=pytest.mark.sweep)
        for shape in ((1, 3, 4, 8), (2, 16, 8, 20), (1, 1, 1, 32), (5, 2, 3, 32))
    ),
]
"""Runs of 32 B that do and do not fill a turn of 16 or 32, channels odd, even and whole blocks."""


@pytest.fixture(scope="module")
def module():
    return kernels(BODIES, "GM_ADDR x, GM_ADDR z, uint32_t n, uint32_t c, uint32_t h, uint32_t w")


@pytest.mark.thinned(8)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_channels_come_last_and_first_again(module, kind, shape):
    x = np.random.default_rng(3).integers(-100, 100, shape).astype(KINDS[kind])
    if x[0, 0].nbytes % 32:
        x = np.concatenate([x] * 4, axis=3)
    shape = x.shape
    last = np.zeros_like(x)
    assert module[f"{kind}_{LAST}"][1](x, last, *shape).findings == ()
    np.testing.assert_array_equal(last.ravel(), np.moveaxis(x, 1, 3).ravel())
    first = np.zeros_like(x)
    assert module[f"{kind}_{FIRST}"][1](last, first, *shape).findings == ()
    np.testing.assert_array_equal(first, x)


@pytest.mark.parametrize("empty", range(4))
def test_without_elements_nothing_happens(module, empty):
    """The page: where nSize, cSize, hSize or wSize is 0, nothing is written."""
    shape = [2, 3, 4, 4]
    shape[empty] = 0
    x = np.arange(64, dtype="f2")
    z = np.zeros_like(x)
    assert module["none"][1](x, z, *shape).findings == ()
    np.testing.assert_array_equal(z, x)


def test_a_copy_that_does_not_wait_for_it_races(module):
    x = np.zeros((1, 3, 4, 8), "f2")
    found = module["unordered"][1](x, x.copy(), *x.shape).findings
    assert {finding.id for finding in found} == {"race-raw"}


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        (
            f"half_{LAST}",
            (1, 2, 2, 4),
            "Transpose.hSize * wSize must be whole blocks of 32 B, got ",
        ),
        (f"half_{LAST}", (1, 4096, 1, 16), "Transpose.cSize must be at most 4095, got 4096"),
        (f"half_{FIRST}", (1, 1, 64, 64), "Transpose.hSize * wSize must be at most 4095, got 4096"),
        ("small", (1, 2, 4, 4), "Transpose.sharedTmpBuffer must have 2048 B, got 1536 B"),
        ("blocks", (1, 1, 16, 16), "Transpose must take elements of 16 bits with "),
        (
            "other",
            (1, 1, 16, 16),
            "Transpose.transposeType must be TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC or "
            "TRANSPOSE_NHWC2NCHW, got another",
        ),
    ],
)
def test_shapes_that_the_page_excludes(module, name, shape, sentence):
    x = np.zeros(np.prod(shape), "f4" if name == "blocks" else "f2")
    with pytest.raises(cubecore.CubecoreError) as caught:
        module[name][1](x, x.copy(), *shape)
    assert f"): {sentence}" in str(caught.value)

"""TIK's calls that pick elements, against plain indexing."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile
from cubecore.frontends.tik.trace.target import Platform

GM, UB = "global", "local.UB"
V310P = Dprofile("v200", "aic")


def picked(body, count, t=None, dtype="float16", **inputs):
    """Run a kernel whose inputs are in UB and that fills `dst`; return it."""
    t = t or Tik(V310P)
    dst = t.Tensor(dtype, (count,), UB, "dst")
    out, made = t.Tensor(dtype, (count,), GM, "out"), {}
    for name, values in inputs.items():
        source = t.Tensor(str(values.dtype), values.shape, GM, name)
        made[name] = t.Tensor(str(values.dtype), values.shape, UB, f"{name}_ub")
        t.data_move(made[name], source, 0, 1, values.nbytes // 32, 0, 0)
    t.vec_dup(2048 // dst.record.bits, dst, 0, count * dst.record.bits // 2048, 8)
    body(t, dst, **made)
    t.data_move(out, dst, 0, 1, count * dst.record.bits // 256, 0, 0)
    t.BuildCCE("k", [t.gm_tensors[name] for name in inputs], [out])
    ran = t.launch(inputs)
    assert ran.findings == ()
    return ran.outputs["out"]


RNG = np.random.default_rng(11)
HALVES = RNG.integers(-99, 100, 256).astype(np.float16)
PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_keeps_every_so_many(pattern):
    every, first = PATTERNS[pattern]
    got = picked(lambda t, dst, x: t.vreduce(128, dst, x, pattern, 2, 1, 8, 0), 256, x=HALVES)
    kept = HALVES[first::every]
    assert np.array_equal(got[: kept.size], kept)
    assert not got[kept.size :].any()


def test_bits_keep_what_they_name_and_counter_mode_counts():
    keep = RNG.integers(0, 2, 256).astype(bool)
    bits = np.zeros(32, np.uint16)
    bits[:16] = np.packbits(keep, bitorder="little").view(np.uint16)

    def normal(t, dst, x, b):
        t.vreduce(128, dst, x, b, 1, 1, 8, 1)

    def counted(t, dst, x, b):
        t.vreduce(200, dst, x, b, 1, 1, 8, 0, mask_mode="counter")
        t.vec_adds(1, dst[240], dst[240], 7.0, 1, 8, 8)

    got = picked(normal, 256, x=HALVES, b=bits)
    want = HALVES[:128][keep[:128]]
    assert np.array_equal(got[: want.size], want)
    got = picked(counted, 256, x=HALVES, b=bits)
    want = HALVES[:200][keep[:200]]
    assert np.array_equal(got[: want.size], want)
    assert got[240] == 7


def test_offsets_gather():
    places = RNG.integers(0, 256, 128).astype(np.int32)
    got = picked(
        lambda t, dst, x, at: t.vgather(100, dst, x, at, 1, 8), 128, x=HALVES, at=2 * places
    )
    assert np.array_equal(got[:100], HALVES[places[:100]])
    assert not got[100:].any()
    shifted = picked(
        lambda t, dst, x, at: t.vgather(128, dst, x, at, 1, 8, 64),
        128,
        x=HALVES,
        at=places % 224 * 2,
    )
    assert np.array_equal(shifted, HALVES[places % 224 + 32])


def test_scores_sort_and_merge():
    scores = RNG.permutation(128).astype(np.float32)
    index = np.arange(128, dtype=np.uint32)

    def body(t, dst, scores, index):
        parts = t.Tensor("float32", (256,), UB, "parts")
        t.vsort32(parts, scores, index, 4)
        t.vmrgsort(dst, [parts[i * 64] for i in range(4)], 32, False, 1)

    Platform.soc = "Ascend910B3"
    got = picked(body, 256, Tik(), "float32", scores=scores, index=index)
    Platform.soc = "Ascend310"
    order = np.argsort(-scores)
    assert np.array_equal(got[0::2], scores[order])
    assert np.array_equal(got.view(np.uint32)[1::2], order)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_selections_with_bits_for_every_repeat(dtype):
    one, two = (RNG.integers(-9, 10, 256).astype(dtype) for _ in range(2))
    keep = RNG.integers(0, 2, 256).astype(bool)
    bits = np.zeros(32, np.uint8)
    bits[:32] = np.packbits(keep, bitorder="little")
    lanes = 256 // np.dtype(dtype).itemsize
    repeats = 256 // lanes

    def tensors(t, dst, one, two, bits):
        t.vec_sel(lanes, 2, dst, bits, one, two, repeats, 8, 8, 8)

    def scalar(t, dst, one, bits):
        t.vsel(lanes, 1, dst, bits, one, 2.5, repeats, 1, 1, 1, 8, 8, 8)

    feeds = {"one": one, "two": two, "bits": bits}
    got = picked(tensors, 256, dtype=dtype, **feeds)
    assert np.array_equal(got, np.where(keep, one, two))
    got = picked(scalar, 256, dtype=dtype, one=one, bits=bits)
    assert np.array_equal(got, np.where(keep, one, np.dtype(dtype).type(2.5)))


# ruff: noqa: E501 - whole lines
REFUSED = [
    (lambda t, x: t.vreduce(128, x, x, 8, 1, 1, 8, 0), "vreduce.src1_pattern must be in [1, 7], got 8"),
    (lambda t, x: t.vreduce(128, x, x, 1, 1, 1, 8, 0, 1), "vreduce must have stride_unit 0 and mask_mode normal or counter, got 1 and 'normal'"),
    (lambda t, x: t.vmrgsort(x, [x], 1), "vmrgsort.src_list must have two to four queues, got 1"),
    (lambda t, x: t.vec_sel(128, 3, x, x, x, x, 1), "vec_sel.mode must be 0, 1 or 2, got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "message"), REFUSED)
def test_refusals(broken, message):
    t = Tik(V310P)
    x = t.Tensor("float16", (128,), UB, "x")
    with pytest.raises(RequestError) as caught:
        broken(t, x)
    assert str(caught.value).partition(": ")[2] == message

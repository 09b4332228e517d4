"""Region proposals through TIK's calls, against plain lists."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
RNG = np.random.default_rng(21)


def done(body, dtype, proposals, shape):
    """Run `body(t, dst, src)` on proposals in UB; return dst, -1 where nothing was written."""
    t = Tik(Dprofile("v100", "cloud"))
    x, y = t.Tensor(dtype, proposals.shape, GM, "x"), t.Tensor(dtype, shape, GM, "y")
    src, dst = t.Tensor(dtype, proposals.shape, UB, "src"), t.Tensor(dtype, shape, UB, "dst")
    size, lanes = int(np.prod(shape)), 256 // np.dtype(dtype).itemsize
    t.data_move(src, x, 0, 1, proposals.nbytes // 32, 0, 0)
    for first in range(0, size, lanes):
        t.vec_dup(min(lanes, size - first), dst[first:], -1.0, 1, 8)
    body(t, dst, src)
    t.data_move(y, dst, 0, 1, size * np.dtype(dtype).itemsize // 32, 0, 0)
    t.BuildCCE("k", [x], [y])
    ran = t.launch({"x": proposals})
    assert ran.findings == ()
    return ran.outputs["y"]


def sorted_queues(dtype, lengths):
    """Return proposals whose scores fall within each queue; other elements say which one it is."""
    made = np.arange(sum(lengths) * 8).reshape(-1, 8).astype(dtype) % 999
    start = 0
    for length in lengths:
        made[start : start + length, 4] = np.sort(RNG.choice(400, length, replace=False))[::-1]
        start += length
    return made


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("mode", range(6))
def test_components(dtype, mode):
    given = RNG.integers(0, 99, (32, 8)).astype(dtype)
    got = done(lambda t, dst, src: t.vextract(dst, src, 2, mode), dtype, given, (32,))
    assert got.tolist() == [row[mode] for row in given.tolist()]
    flat = RNG.integers(0, 99, (4, 8)).astype(dtype)
    got = done(lambda t, dst, src: t.vconcat(dst, src, 2, mode), dtype, flat, (32, 8))
    for number, row in enumerate(got.tolist()):
        assert row == [flat.reshape(-1)[number] if e == mode else -1 for e in range(8)]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_groups_are_sorted(dtype):
    given = RNG.integers(0, 9, (48, 8)).astype(dtype)  # with equal scores
    got = done(lambda t, dst, src: t.vrpsort16(dst, src, 3), dtype, given, (48, 8))
    want = [sorted(given[i : i + 16].tolist(), key=lambda row: -row[4]) for i in (0, 16, 32)]
    assert got.tolist() == [row for group in want for row in group]


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize(
    ("lengths", "valid"), [((5, 7), 3), ((4, 2, 6), "0111"), ((3, 8, 2, 5), 15)]
)
def test_queues_are_merged(lengths, valid, suspends):
    given = sorted_queues("float16", lengths)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]

    def body(t, dst, src):
        queues = [src[start * 8 :] for start in starts]
        t.vmrgsort4(dst, queues, list(lengths), suspends, valid, 1)

    got = done(body, "float16", given, given.shape).tolist()
    queues = [given[s : s + length].tolist() for s, length in zip(starts, lengths, strict=True)]
    want = []
    while any(queues) and not (suspends and not all(queues)):
        best = max((q for q in queues if q), key=lambda queue: queue[0][4])
        want.append(best.pop(0))
    assert got == want + [[-1] * 8] * (len(given) - len(want))


def test_repeats_merge_one_behind_another():
    given = sorted_queues("float32", (4,) * 8)
    got = done(
        lambda t, dst, src: t.vmrgsort4(dst, [src[i * 32 :] for i in range(4)], 4, False, 15, 2),
        "float32",
        given,
        given.shape,
    )
    halves = [sorted(part.tolist(), key=lambda row: -row[4]) for part in (given[:16], given[16:])]
    assert got.tolist() == halves[0] + halves[1]


def test_a_bit_for_each_queue():
    t = Tik(Dprofile("v100", "cloud"))
    x = t.Tensor("float16", (64,), UB, "x")
    with pytest.raises(RequestError, match="valid_bit must be 3, 7 or 15, one bit for each queue"):
        t.vmrgsort4(x, [x, x], 1, False, 15)

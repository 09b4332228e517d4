"""PhiloxRandom of Ascend 950 against Philox4x32 in Python, and published answers of it."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP, SIZE = "Ascend950PR_9589", 1024
KEY, COUNTER = (0x12345678, 0x9ABCDEF0), (0xFFFFFFE0, 0xFFFFFFFF, 7, 9)
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 4096);
  auto d = memory.Get<{T}>();
  GlobalTensor<{T}> zg;
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  Duplicate(d.template ReinterpretCast<int32_t>(), 0, 1024);
  PipeBarrier<PIPE_ALL>();
  PhiloxRandom{rounds}(d, {{{key}}}, {{{counter}}}, {last});
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, d, 1024);
"""


def body(word, rounds, last, key=(0, 0), counter=(0, 0, 0, 0)):
    given = {"key": ", ".join(f"{n}u" for n in key), "counter": ", ".join(f"{n}u" for n in counter)}
    return FRAME.format(T=word, rounds=rounds, last=last, **given)


BODIES = {
    "ten": body("uint32_t", "<10>", "(uint16_t)4"),
    "seven": body("int32_t", "", "(uint16_t)4"),
    "carries": body("uint32_t", "<10>", "(uint16_t)530", KEY, COUNTER),
    "floats": body("float", "<10>", "(uint16_t)1000", KEY),
    "rows": body("uint32_t", "<7>", "{40, 6, 12}", KEY, COUNTER),
    "narrow": body("uint32_t", "<7>", "{8, 6, 12}"),
}


@pytest.fixture(scope="module")
def made():
    return kernels(BODIES, "GM_ADDR z", chip=CHIP)


def block(key, counter, rounds):
    """Return the four words of a counter."""
    a, b, c, d = ((counter >> 32 * n) & 0xFFFFFFFF for n in range(4))
    k0, k1 = key
    for _ in range(rounds):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ d ^ k1, p & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def words(count, rounds, key, counter, offset=0):
    begin = sum(word << 32 * n for n, word in enumerate(counter)) + offset
    blocks = [block(key, (begin + n) % 2**128, rounds) for n in range(-(-count // 4))]
    return np.array(blocks, np.uint32).ravel()[:count]


def ran(made, name, kind):
    z = np.zeros(SIZE, kind)
    assert [f.message for f in made[name][1](z).findings] == []
    return z


def test_published_answers(made):
    """Random123's known answers of key and counter 0."""
    ten, seven = ran(made, "ten", np.uint32), ran(made, "seven", np.int32).view(np.uint32)
    assert [f"{n:08x}" for n in ten[:4]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert [f"{n:08x}" for n in seven[:4]] == ["5f6fb709", "0d893f64", "4f121f81", "4f730a48"]
    assert not ten[4:].any()
    assert not seven[4:].any()


def test_a_counter_carries_through_its_words(made):
    z = ran(made, "carries", np.uint32)
    np.testing.assert_array_equal(z[:530], words(530, 10, KEY, COUNTER))
    assert not z[530:].any()


def test_floats_are_the_low_bits_of_words(made):
    z = ran(made, "floats", np.float32)
    expected = (words(1000, 10, KEY, (0, 0, 0, 0)) & 0x7FFFFF) / np.float64(2**23)
    np.testing.assert_array_equal(z[:1000], expected.astype(np.float32))
    assert not z[1000:].any()


def test_rows_begin_a_stride_apart(made):
    z = ran(made, "rows", np.uint32)
    rows = [words(12, 7, KEY, COUNTER, 10 * row) for row in range(6)]
    np.testing.assert_array_equal(z[:72].reshape(6, 12), rows)
    assert not z[72:].any()


def test_a_stride_below_a_row_is_refused(made):
    with pytest.raises(CubecoreError) as raised:
        made.narrow[1](np.zeros(SIZE, np.uint32))
    need = "have column and stride that are multiples of 4, and column at most stride"
    assert f"PhiloxRandom.params must {need}, got others" in str(raised.value)

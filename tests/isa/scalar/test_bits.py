"""What the scalar unit computes on words: counted in the word's 64 digits."""

import random

import pytest

from cubecore.isa.catalogue import instruction_named
from isa.bench import A2, Bench

RUNS = [
    (2**length - 1) << low & 2**64 - 1
    for low in range(64)
    for length in range(65 - low if low else 65)
]
"""Every word whose ones are neighbours, and 0."""
SEED = 90
NOISE = [random.Random(SEED + i).getrandbits(64) for i in range(500)]
WORDS = [*RUNS, *(~word & 2**64 - 1 for word in RUNS), *NOISE]


def digits(word):
    """The word's digits, the highest first."""
    return f"{word:064b}"


def first(text, digit):
    """How far `digit` is from the text's start; the text's length where it is not there."""
    for place, found in enumerate(text):
        if found == digit:
            return place
    return len(text)


def from_below(word, digit):
    place = first(digits(word)[::-1], digit)
    return -1 if place == 64 else place


def like_the_sign(word):
    sign, *rest = digits(word)
    place = first(rest, "1" if sign == "0" else "0")
    return -1 if place == 63 else place


COUNTS = {
    "clz": lambda word: first(digits(word), "1"),
    "ffs": lambda word: from_below(word, "1"),
    "ffz": lambda word: from_below(word, "0"),
    "popc": lambda word: digits(word).count("1"),
    "zero_bits_cnt": lambda word: digits(word).count("0"),
    "sflbits": like_the_sign,
}


def ask(name, **params):
    return Bench(1).core.scalars(instruction_named(name)(**params))


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    """Both as an unsigned word and as the signed integer of the same bits."""
    bench, kind = Bench(1), instruction_named(f"asc_{name}")
    for word in WORDS:
        expected = (COUNTS[name](word),)
        assert bench.core.scalars(kind(value=word)) == expected, hex(word)
        assert bench.core.scalars(kind(value=word - (word >> 63 << 64))) == expected, hex(word)


@pytest.mark.parametrize(
    ("name", "word", "answer"),
    [
        ("CountLeadingZero", 0x0100000000000020, 7),
        ("CountLeadingZero", 0xFFFF, 48),
        ("CountLeadingZero", 0, 64),
        ("asc_clz", 0x0FFFFFFFFFFFFFFF, 4),
        ("asc_ffs", 10, 1),
        ("asc_ffz", 33, 1),
        ("GetSFFValue<1>", 0x1000000000000100, 8),
        ("GetSFFValue<0>", 2**64 - 1, -1),
        ("GetSFFValue<1>", 0, -1),
        ("GetSFFValue<0>", 0xFF00, 0),
        ("GetSFFValue<0>", 0x00FF, 8),
        ("asc_popc", 33, 2),
        ("GetBitCount<0>", 0xFFFF, 48),
        ("asc_sflbits", 0x0F00000000000000, 3),
        ("asc_sflbits", 0x000F00FF0FF0FFFF, 11),
        ("CountBitsCntSameAsSignBit", 0x0100000000000020, 6),
        ("CountBitsCntSameAsSignBit", 0x7FFFFFFFFFFFFFFF, 0),
        ("CountBitsCntSameAsSignBit", -(2**63), 0),
        ("CountBitsCntSameAsSignBit", 1, 62),
        ("CountBitsCntSameAsSignBit", 0x00F0000000000000, 7),
        ("CountBitsCntSameAsSignBit", 0, -1),
        ("CountBitsCntSameAsSignBit", -1, -1),
    ],
)
def test_the_pages_examples(name, word, answer):
    assert ask(name, value=word) == (answer,)


@pytest.mark.parametrize(("name", "digit"), [("asc_set_nthbit", "1"), ("asc_clear_nthbit", "0")])
def test_one_bit(name, digit):
    """Indices outside a word wrap around it."""
    for word in (0, 2**64 - 1, *NOISE[:20], -5):
        for idx in [*range(-130, 200), -(2**63), 2**63 - 1]:
            text = list(digits(word % 2**64)[::-1])
            text[(idx % 64 + 64) % 64] = digit
            assert ask(name, bits=word, idx=idx) == (int("".join(reversed(text)), 2),)


def test_a_word_has_64_bits():
    kind = instruction_named("clz")
    assert [str(v) for v in kind(value=2**64).violations(A2)] == [
        "clz.value must be in [-9223372036854775808, 18446744073709551615], "
        "got 18446744073709551616"
    ]

"""Findings that bytes depend on, against one set for each byte."""

import random

from cubecore.frontends.diagnosis.dependence import DependentBytes

SIZE = 64


def test_ranges_tell_what_single_bytes_do():
    random_source = random.Random(53)
    for _ in range(200):
        held, plain = DependentBytes(), [frozenset()] * SIZE
        for _ in range(40):
            start = random_source.randrange(SIZE)
            end = random_source.randrange(start, SIZE) + 1
            numbers = frozenset(random_source.sample(range(3), random_source.randrange(3)))
            held.write(start, end, numbers)
            plain[start:end] = [numbers] * (end - start)
            start = random_source.randrange(SIZE)
            end = random_source.randrange(start, SIZE) + 1
            assert held.read(start, end) == frozenset().union(*plain[start:end])


def test_tiles_behind_each_other_are_one_range():
    """200,000 of them: a list of their own would take hours."""
    held, one = DependentBytes(), frozenset({1})
    for tile in range(200_000):
        held.write(32 * tile, 32 * tile + 32, one)
    assert held.read(0, 1) == held.read(6_399_999, 6_400_000) == one
    assert held.read(6_400_000, 6_400_001) == frozenset()
    held.write(64, 96, frozenset())
    assert held.read(64, 96) == frozenset()
    assert held.read(63, 64) == held.read(96, 97) == one

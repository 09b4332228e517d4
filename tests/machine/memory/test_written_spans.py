"""Spans of bytes found by address, against a list of all of them."""

import random

import pytest

from cubecore.machine.memory.written_spans import WrittenSpans

EXTENTS = (1, 4, 40, 1024, 9000, 300_000)


@pytest.mark.parametrize("seed", range(6))
def test_a_span_is_found_where_it_meets_and_nowhere_else(seed):
    rng = random.Random(seed)
    spans, added, end = WrittenSpans[str](), [], 0
    for number in range(120):
        low = end if rng.random() < 0.4 else rng.randrange(2_000_000)
        end = low + rng.choice(EXTENTS if rng.random() < 0.1 else EXTENTS[:4])
        added.append((low, end, f"w{number // 7}"))
        spans.add(*added[-1])
        for _ in range(20):
            first = rng.choice((low, end, rng.randrange(2_000_000))) - rng.randrange(80)
            last = first + rng.choice(EXTENTS)
            met = {by for start, stop, by in added if start < last and first < stop}
            found = spans.meeting(first, last)
            assert found in met if met else found is None
    spans.clear()
    assert not spans
    assert spans.meeting(0, 3_000_000) is None


def test_stores_that_follow_each_other_are_found_however_long_they_grow():
    spans = WrittenSpans[str]()
    for number in range(1000):
        spans.add(700 * number, 700 * (number + 1), "copies")
    for at in (0, 699_999, 262_143, 262_144, 350_000):
        assert spans.meeting(at, at + 1) == "copies"
    assert spans.meeting(700_000, 700_001) is None

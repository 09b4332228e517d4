"""The bounded cache: what it keeps, and when it forgets."""

from cubecore.cache import BoundedCache


def test_a_full_cache_forgets_all_before_it_takes_one_more():
    cache = BoundedCache[int, str](2)
    cache[1], cache[2] = "a", "b"
    cache[2] = "c"
    assert cache == {1: "a", 2: "c"}
    cache[3] = "d"
    assert cache == {3: "d"}

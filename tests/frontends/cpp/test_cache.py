"""The cache of compiled kernels keeps to its size, and gives up whole things that nobody uses."""

import os
import time

import pytest

from cubecore.frontends.cpp.toolchain import cache

SIZE = 100
HOURS = 3600


@pytest.fixture
def holding(tmp_path, monkeypatch):
    """Return what puts files into a cache, by the hours since they were used, and trims it."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)

    def made(ages, most):
        for name, hours in ages.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(SIZE))
            when = time.time() - hours * HOURS
            os.utime(path, (when, when))
        monkeypatch.setattr(cache, "MOST_BYTES", most * SIZE)
        cache.trim()
        return sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*"))

    return made


def test_a_cache_within_its_size_is_left_alone(holding):
    assert holding({"a.so": 9, "a.json": 9}, 2) == ["a.json", "a.so"]


def test_what_was_used_longest_ago_goes_as_a_whole(holding):
    """A record that is old goes by its library; of a folder the file that was used last counts."""
    ages = {"a.so": 5, "a.json": 50, "pch-b/prefix.h.gch": 2, "pch-b/lib/old.h": 90}
    ages |= {"tmpc/unit.cpp": 20, "pch-d/prefix.h": 30, "pch-d/lib/x.h": 30}
    left = ["a.json", "a.so", "pch-b", "pch-b/lib", "pch-b/lib/old.h", "pch-b/prefix.h.gch"]
    assert holding(ages, 6) == left
    assert holding({}, 3) == left[2:]


def test_what_was_used_a_moment_ago_stays(holding):
    assert holding({"a.so": 0, "b.so": 0, "c.so": 1}, 1) == ["a.so", "b.so"]


def test_use_is_noted(holding, tmp_path):
    holding({"a.so": 9, "b.so": 8}, 2)
    cache.used(tmp_path / "a.so")
    cache.used(tmp_path / "no.so")
    assert holding({}, 1) == ["a.so"]

"""The odometer, against itertools.product and against loops."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.isa.mte.copies import CopyGmToCbuf
from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.loop_cursor import Cursor

COPY = CopyGmToCbuf(n_burst=1, len_burst=1)


def walk(builder: Builder, cursor: Cursor, names: list[str], steps: int) -> list[tuple[int, ...]]:
    """Return the cursor's positions over some steps, each read from one address."""
    packed = Expr(0)
    for place, name in enumerate(names):
        packed = packed + cursor.at(name) * 100**place
    with builder.loop("step", steps):
        builder.issue(COPY, packed, 0)
        cursor.advance()
    seen = [at[0] for _, at in builder.finish().listing({})]
    return [tuple(v // 100**place % 100 for place in range(len(names))) for v in seen]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_it_counts_like_an_odometer(trips):
    names = [f"w{i}" for i in range(len(trips))]
    builder = Builder("test")
    cursor = Cursor(builder, "c", list(zip(names, trips, strict=True)))
    steps = 1
    for count in trips:
        steps *= count
    # the fastest wheel comes first, product's fastest last
    wanted = [turn[::-1] for turn in product(*(range(t) for t in reversed(trips)))]
    assert walk(builder, cursor, names, 2 * steps) == wanted * 2


@pytest.mark.parametrize("whole", [1, 2, 3, 4])
@pytest.mark.parametrize("tail", [1, 2, 3])
def test_a_ragged_limit(whole, tail):
    """The last row of blocks is shorter: the fast wheel's limit depends on the slow one."""
    rows = 3
    builder = Builder("test")
    cursor = Cursor(builder, "c", [("fast", 9), ("slow", rows)])
    last = cursor.at("slow") // (rows - 1)  # 1 in the last row
    cursor.limit("fast", Expr(whole) + last * (tail - whole))
    wanted = [(f, s) for s in range(rows) for f in range(tail if s == rows - 1 else whole)]
    assert walk(builder, cursor, ["fast", "slow"], 2 * len(wanted)) == wanted * 2


def test_a_limit_that_depends_on_two_slower_wheels():
    builder = Builder("test")
    cursor = Cursor(builder, "c", [("k", 9), ("m", 3), ("n", 2)])
    cursor.limit("k", cursor.at("m") + cursor.at("n") * 2 + 1)
    wanted = [(k, m, n) for n in range(2) for m in range(3) for k in range(m + 2 * n + 1)]
    assert walk(builder, cursor, ["k", "m", "n"], len(wanted) + 1) == [*wanted, (0, 0, 0)]


def test_wheels_with_one_position_cost_nothing():
    builder = Builder("test")
    cursor = Cursor(builder, "c", [("a", 1), ("b", 1)])
    assert cursor.at("a").constant == cursor.at("b").constant == 0
    cursor.advance()
    assert builder.finish().body == ()


def test_it_runs_apart_from_the_loops_around_it():
    """A load that is two steps ahead of its use."""
    builder = Builder("test")
    cursor = Cursor(builder, "ahead", [("k", 3), ("m", 2)])
    for _ in range(2):
        cursor.advance()
    with builder.loop("m", 2) as m, builder.loop("k", 3) as k:
        builder.issue(COPY, cursor.at("k") + 10 * cursor.at("m"), k + 10 * m)
        cursor.advance()
    places = [at for _, at in builder.finish().listing({})]
    order = [here for _, here in places]
    assert order == [0, 1, 2, 10, 11, 12]
    assert [there for there, _ in places] == (order * 2)[2:8]


def test_an_unknown_wheel():
    cursor = Cursor(Builder("test"), "c", [("k", 2)])
    with pytest.raises(KeyError):
        cursor.at("m")

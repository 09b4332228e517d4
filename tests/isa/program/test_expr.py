"""Symbolic integers, against Python's own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.isa.program.expr import Condition, Expr, Var

A, B, C = VARS = (Var("a", 0), Var("b", 1), Var("c", 2))
small = st.integers(-7, 7)
values = st.fixed_dictionaries({var: st.integers(-50, 50) for var in VARS})
quick = settings(max_examples=300, deadline=None, database=None)


def grow(inner):
    """Pairs of an expression and the same in Python, from smaller pairs."""
    pair = st.tuples(inner, inner)
    nonzero = st.integers(1, 9) | st.integers(-9, -1)
    return st.one_of(
        pair.map(lambda p: (p[0][0] + p[1][0], lambda v: p[0][1](v) + p[1][1](v))),
        pair.map(lambda p: (p[0][0] - p[1][0], lambda v: p[0][1](v) - p[1][1](v))),
        pair.map(lambda p: (p[0][0] * p[1][0], lambda v: p[0][1](v) * p[1][1](v))),
        pair.map(lambda p: (p[0][0].minimum(p[1][0]), lambda v: min(p[0][1](v), p[1][1](v)))),
        pair.map(lambda p: (p[0][0].maximum(p[1][0]), lambda v: max(p[0][1](v), p[1][1](v)))),
        inner.map(lambda e: (-e[0], lambda v: -e[1](v))),
        st.tuples(inner, small).map(lambda p: (p[1] + p[0][0], lambda v: p[1] + p[0][1](v))),
        st.tuples(inner, small).map(lambda p: (p[1] - p[0][0], lambda v: p[1] - p[0][1](v))),
        st.tuples(inner, small).map(lambda p: (p[1] * p[0][0], lambda v: p[1] * p[0][1](v))),
        st.tuples(inner, nonzero).map(lambda p: (p[0][0] // p[1], lambda v: p[0][1](v) // p[1])),
        st.tuples(inner, nonzero).map(lambda p: (p[0][0] % p[1], lambda v: p[0][1](v) % p[1])),
    )


leaves = st.one_of(
    small.map(lambda n: (Expr.of(n), lambda _: n)),
    st.sampled_from(VARS).map(lambda var: (Expr.of(var), lambda v: v[var])),
)
pairs = st.recursive(leaves, grow, max_leaves=12)


@quick
@given(pairs, values)
def test_expressions_are_pythons_integers(pair, at):
    expression, python = pair
    wanted = python(at)
    assert expression.at(at) == wanted
    names = {var.source(): value for var, value in at.items()}
    assert eval(expression.source(), {"min": min, "max": max}, names) == wanted
    if expression.constant is not None:
        assert expression.constant == wanted


@quick
@given(pairs, pairs, values, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
def test_conditions_are_pythons_comparisons(left, right, at, sign):
    condition = Condition.of(left[0], sign, right[0])
    wanted = eval(f"x {sign} y", {}, {"x": left[1](at), "y": right[1](at)})
    assert condition.at(at) is wanted
    names = {var.source(): value for var, value in at.items()}
    assert eval(condition.source(), {"min": min, "max": max}, names) is wanted
    assert condition.constant in {None, wanted}


def test_a_condition_takes_pythons_signs_only():
    with pytest.raises(ValueError) as caught:
        Condition.of(1, "=", 2)
    assert str(caught.value) == "comparison must be one of ==, !=, <, <=, >, >="


def test_equal_expressions_are_equal_and_hash_alike():
    a, b = Expr.of(A), Expr.of(B)
    same = [2 * a + 3 * b + 1, a + (1 + 3 * b) + a, (a + b) * 2 + b + 1, 2 * a + 4 * b - b + 1]
    assert len(set(same)) == 1
    assert a - a == Expr(0)
    assert a * 0 == Expr(0)
    assert (a // 1, a % 1) == (a, Expr(0))
    assert a // 4 == a // 4
    assert a // 4 != a // 5


def test_the_order_of_a_sum_does_not_matter():
    a, b = Expr.of(A), Expr.of(B)
    assert a + b == b + a


def test_constants_fold():
    seven, two = Expr.of(7), Expr.of(2)
    folded = [seven + two, seven - two, seven * two, seven // two, seven % two]
    folded += [seven.minimum(two), seven.maximum(2), -seven]
    assert [e.constant for e in folded] == [9, 5, 14, 3, 1, 2, 7, -7]


def test_negative_division_is_pythons():
    a = Expr.of(A)
    assert (a // 4).at({A: -5}) == -2
    assert (a % 4).at({A: -5}) == 3
    assert (a // -4).at({A: 5}) == -2


def test_affine_expressions_stay_affine():
    a, b = Expr.of(A), Expr.of(B)
    expression = 512 * (3 * a + b) - 512 * a + 64
    assert expression.const == 64
    assert dict(expression.terms) == {A: 1024, B: 512}

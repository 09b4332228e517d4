"""Programs as trees: running one, listing it, and walking it with a naive interpreter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToCbuf
from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.tree import (
    Assign,
    Branch,
    Issue,
    LoadScalar,
    Location,
    Loop,
    Program,
)
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag
from parts import examples

HERE = Location("kernel.py", 1, "kernel")
INT = element_type("int32")
SLOTS = (Var("x", 0), Var("y", 1))
SCALARS = (Var("s", 2), Var("t", 3))
COPY = CopyGmToCbuf(n_burst=1, len_burst=1)
FLAG = SetFlag(src="MTE2", dst="MTE1", event_id=0)


class Recorder:
    """A sink that writes down what it is given; memory holds f(address)."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def handler(self, issue: Issue):
        late = len(issue.late)
        return lambda *v: self.seen.append((issue.bound(v[:late]), v[late:]))

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        self.seen.append(("load", load.mem, address))
        return address % 5


def walk(body, variables: dict, seen: list) -> None:
    """Interpret a tree one node at a time."""
    for node in body:
        if isinstance(node, Issue):
            late = {name: e.at(variables) for name, e in node.late}
            template = type(node.template)(**(vars(node.template) | late))
            seen.append((template, tuple(e.at(variables) for e in node.addresses)))
        elif isinstance(node, Loop):
            for i in range(node.trips.at(variables)):
                variables[node.index] = i
                walk(node.body, variables, seen)
        elif isinstance(node, Branch):
            taken = node.then if node.condition.at(variables) else node.otherwise
            walk(taken, variables, seen)
        elif isinstance(node, Assign):
            variables[node.target] = node.value.at(variables)
        else:
            address = node.address.at(variables)
            seen.append(("load", node.mem, address))
            variables[node.target] = address % 5


def affine(variables):
    parts = st.lists(
        st.tuples(st.sampled_from(variables), st.integers(-3, 3)), min_size=0, max_size=2
    )
    return st.tuples(parts, st.integers(0, 9)).map(
        lambda p: sum((Expr.of(v) * f for v, f in p[0]), Expr(p[1]))
    )


@st.composite
def bodies(draw, depth=3, variables=SLOTS + SCALARS, numbers=None):
    """Random trees; loop indices are fresh, trip counts small and maybe none."""
    numbers = numbers or iter(range(10, 10_000))
    nodes = []
    for _ in range(draw(st.integers(0, 4))):
        kinds = ["copy", "flag", "assign", "load"] + (["loop", "branch"] if depth else [])
        kind = draw(st.sampled_from(kinds))
        expression = affine(variables)
        if kind == "copy":
            nodes.append(Issue(COPY, (draw(expression), draw(expression)), HERE))
        elif kind == "flag":
            late = (("event_id", draw(expression) % 8),)
            nodes.append(Issue(FLAG, (), HERE, late if draw(st.booleans()) else ()))
        elif kind == "assign":
            target = draw(st.sampled_from(SCALARS))
            nodes.append(Assign(target, (draw(expression) * draw(st.integers(1, 2))) % 100))
        elif kind == "load":
            target = draw(st.sampled_from(SCALARS))
            nodes.append(LoadScalar(target, Mem.GM, INT, draw(expression), HERE))
        elif kind == "loop":
            index = Var("i", next(numbers))
            trips = draw(st.integers(0, 3).map(Expr) | expression.map(lambda e: e % 4))
            nodes.append(
                Loop(index, trips, tuple(draw(bodies(depth - 1, (*variables, index), numbers))))
            )
        else:
            sign = draw(st.sampled_from(["<", ">=", "==", "!="]))
            condition = Condition.of(draw(expression), sign, draw(expression))
            sides = [tuple(draw(bodies(depth - 1, variables, numbers))) for _ in range(2)]
            nodes.append(Branch(condition, *sides))
    return nodes


@examples(200)
@given(bodies(), st.integers(-20, 20), st.integers(-20, 20))
def test_running_is_what_a_naive_interpreter_does(body, x, y):
    start = tuple(Assign(s, Expr(1)) for s in SCALARS)
    program = Program((*start, *body), SLOTS)
    slots = dict(zip(SLOTS, (x, y), strict=True))
    wanted: list[Any] = []
    walk(program.body, dict(slots), wanted)
    sink = Recorder()
    program.run(sink, slots)
    assert sink.seen == wanted
    again = Recorder()
    program.run(again, slots)  # a program is a value: running it changes nothing
    assert again.seen == wanted
    if not any(kind == "load" for kind, *_ in wanted):
        assert list(program.listing(slots)) == wanted


def test_a_listing_has_no_memory():
    load = LoadScalar(Var("n", 9), Mem.GM, INT, Expr(512), HERE)
    with pytest.raises(TypeError) as caught:
        list(Program((load,)).listing({}))
    assert str(caught.value) == "a listing has no memory for n at 512"


def test_leaves_are_in_program_order():
    issues = [Issue(PipeBarrier(), (), HERE) for _ in range(5)]
    first, second, third, fourth, fifth = issues
    branch = Branch(Condition.of(Expr.of(SLOTS[0]), "<", 3), (second,), (third,))
    loop = Loop(Var("i", 5), Expr(2), (branch, fourth))
    assert Program((first, loop, fifth), SLOTS).issues == (first, second, third, fourth, fifth)


def test_one_leaf_in_two_places():
    copy = Issue(COPY, (Expr.of(SLOTS[0]), Expr(0)), HERE)
    other = Issue(COPY, (Expr(1), Expr(1)), HERE)
    got = list(Program((copy, other, copy), SLOTS[:1]).listing({SLOTS[0]: 7}))
    assert [addresses for _, addresses in got] == [(7, 0), (1, 1), (7, 0)]


def test_late_parameters_replace_the_templates():
    index = Var("i", 4)
    late = (("event_id", Expr.of(index) * 2), ("src", Expr(0)))[:1]
    program = Program((Loop(index, Expr(3), (Issue(FLAG, (), HERE, late),)),))
    got = [template for template, _ in program.listing({})]
    assert [t.event_id for t in got] == [0, 2, 4]
    assert [(t.src, t.dst) for t in got] == [("MTE2", "MTE1")] * 3
    assert FLAG.event_id == 0


def test_late_parameters_and_addresses_do_not_mix():
    index = Var("i", 4)
    copy = Issue(COPY, (Expr(64), Expr(512)), HERE, (("len_burst", Expr.of(index) + 1),))
    program = Program((Loop(index, Expr(2), (copy,)),))
    got = [(t.len_burst, t.n_burst, a) for t, a in program.listing({})]
    assert got == [(1, 1, (64, 512)), (2, 1, (64, 512))]


def test_an_index_is_gone_from_the_next_loop_only_by_being_set_again():
    """Two loops may share an index variable: each sets it anew."""
    index = Var("i", 4)
    copy = Issue(COPY, (Expr.of(index), Expr(0)), HERE)
    program = Program((Loop(index, Expr(2), (copy,)), Loop(index, Expr(3), (copy,))))
    assert [a[0] for _, a in program.listing({})] == [0, 1, 0, 1, 2]


def test_no_slots_one_slot_and_an_empty_program():
    assert list(Program(()).listing({})) == []
    one = Program((Issue(COPY, (Expr.of(SLOTS[0]), Expr(0)), HERE),), SLOTS[:1])
    assert [a for _, a in one.listing({SLOTS[0]: 3})] == [(3, 0)]
    empty_loop = Program((Loop(Var("i", 4), Expr(3), ()),))
    assert list(empty_loop.listing({})) == []


def test_a_walk_needs_no_list():
    """A billion trips cannot be unrolled; the first one arrives at once."""

    class StopError(Exception):
        pass

    class Once(Recorder):
        def handler(self, issue):
            def stop(*_):
                raise StopError

            return stop

    program = Program((Loop(Var("i", 4), Expr(10**9), (Issue(COPY, (Expr(0),) * 2, HERE),)),))
    with pytest.raises(StopError):
        program.run(Once(), {})


def test_a_location_in_words():
    assert str(HERE) == "kernel.py:1 (kernel)"

"""The builder: what it folds, what it keeps, and where it says that things were written."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.isa.mte.copies import CopyGmToCbuf
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Assign, Branch, Issue, Loop
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag
from cubecore.kernels.build.builder import Builder

COPY = CopyGmToCbuf(n_burst=1, len_burst=1)


def addresses(builder: Builder, **slots: int) -> list[int]:
    """Return the first address of everything issued, in order."""
    program = builder.finish()
    values = {var: slots[var.name] for var in program.slots}
    return [at[0] for _, at in program.listing(values)]


def mark(builder: Builder, at) -> None:
    builder.issue(COPY, at, 0)


def test_a_loop():
    builder = Builder("test")
    with builder.loop("i", 3) as i, builder.loop("j", 2) as j:
        mark(builder, 10 * i + j)
    program = builder.finish()
    assert [type(node) for node in program.body] == [Loop]
    assert [at[0] for _, at in program.listing({})] == [0, 1, 10, 11, 20, 21]


def test_a_loop_of_one_trip_is_its_body():
    builder = Builder("test")
    with builder.loop("i", 1) as i:
        assert i.constant == 0
        mark(builder, i + 5)
    program = builder.finish()
    assert [type(node) for node in program.body] == [Issue]
    assert [at[0] for _, at in program.listing({})] == [5]


def test_a_loop_of_no_trips_or_without_a_body_is_nothing():
    builder = Builder("test")
    with builder.loop("i", 0) as i:
        mark(builder, i)
    with builder.loop("i", 3):
        pass
    assert builder.finish().body == ()


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_loop_whose_trips_each_core_knows(trips):
    builder = Builder("test")
    count = Expr.of(builder.slot("count"))
    with builder.loop("i", count) as i:
        mark(builder, i * 4)
    assert addresses(builder, count=trips) == [4 * i for i in range(trips)]


@settings(max_examples=60)
@given(total=st.integers(0, 40), block=st.integers(1, 12))
def test_split_covers_everything_once(total, block):
    builder = Builder("test")
    lengths = []
    for index, length in builder.split("i", total, block):
        lengths.append(length)
        for inside in range(length):
            mark(builder, index * block + inside)
    assert addresses(builder) == list(range(total))
    whole, tail = divmod(total, block)
    assert lengths == [block] * bool(whole) + [tail] * bool(tail)


@pytest.mark.parametrize(("left", "taken"), [(2, True), (3, False)])
def test_a_condition_of_constants_is_decided_while_building(left, taken):
    builder = Builder("test")
    with builder.when(left, "<", 3):
        mark(builder, 1)
    for inside in builder.choose(left, "<", 3):
        mark(builder, 2 if inside else 3)
    program = builder.finish()
    assert all(isinstance(node, Issue) for node in program.body)
    assert [at[0] for _, at in program.listing({})] == ([1, 2] if taken else [3])


@pytest.mark.parametrize(("x", "wanted"), [(2, [1, 2, 9]), (3, [3, 9])])
def test_a_condition_that_each_core_decides(x, wanted):
    builder = Builder("test")
    slot = Expr.of(builder.slot("x"))
    with builder.when(slot, "<", 3):
        mark(builder, 1)
    for inside in builder.choose(slot, "<", 3):
        mark(builder, 2 if inside else 3)
    mark(builder, 9)
    assert addresses(builder, x=x) == wanted


def test_an_empty_branch_is_nothing():
    builder = Builder("test")
    slot = Expr.of(builder.slot("x"))
    with builder.when(slot, "<", 3):
        pass
    for _ in builder.choose(slot, "<", 3):
        pass
    assert builder.finish().body == ()


def test_a_branch_with_one_side():
    builder = Builder("test")
    slot = Expr.of(builder.slot("x"))
    for inside in builder.choose(slot, "==", 0):
        if not inside:
            mark(builder, 7)
    program = builder.finish()
    (branch,) = program.body
    assert isinstance(branch, Branch)
    assert (branch.then, len(branch.otherwise)) == ((), 1)
    assert [list(program.listing({program.slots[0]: x}))[:1] != [] for x in (0, 1)] == [False, True]


def test_scalars_count():
    builder = Builder("test")
    scalar = builder.scalar("s", 3)
    with builder.loop("i", 4):
        mark(builder, scalar.value)
        scalar.set(scalar.value * 2 - 1)
    mark(builder, scalar.value)
    assert addresses(builder) == [3, 5, 9, 17, 33]


def test_a_scalar_is_set_where_it_is_made():
    builder = Builder("test")
    with builder.loop("i", 2):
        scalar = builder.scalar("s")
        mark(builder, scalar.value)
        scalar.set(5)
        mark(builder, scalar.value)
    program = builder.finish()
    assert sum(isinstance(node, Assign) for node in program.body[0].body) == 2
    assert [at[0] for _, at in program.listing({})] == [0, 5, 0, 5]


def test_late_parameters():
    builder = Builder("test")
    flag = SetFlag(src="MTE2", dst="MTE1", event_id=0)
    with builder.loop("i", 2) as i:
        builder.issue(flag, event_id=i + 1)
        builder.issue(flag, event_id=5)
    program = builder.finish()
    assert [t.event_id for t, _ in program.listing({})] == [1, 5, 2, 5]
    # what is known while building is part of the template
    assert [issue.late != () for issue in program.issues] == [True, False]


def test_addresses_are_as_many_as_operands():
    builder = Builder("test")
    with pytest.raises(TypeError) as caught:
        builder.issue(COPY, 0)
    assert str(caught.value) == "copy_gm_to_cbuf takes 2 addresses, got 1"
    with pytest.raises(TypeError) as caught:
        builder.issue(PipeBarrier(), 0)
    assert str(caught.value) == "pipe_barrier takes 0 addresses, got 1"


def test_variables_are_never_shared():
    builder = Builder("test")
    made = [builder.slot("x"), builder.slot("x")]
    with builder.loop("x", 2) as i, builder.loop("x", 2) as j:
        mark(builder, 2 * i + j)
    assert len({var.number for var in made}) == 2
    assert addresses(builder, x=0) == [0, 1, 2, 3]


def test_slots_keep_their_order():
    builder = Builder("kernel")
    names = ["a", "b", "c"]
    for name in names:
        builder.slot(name)
    program = builder.finish()
    assert [var.name for var in program.slots] == names
    assert program.name == "kernel"


def test_an_issue_knows_where_it_was_written():
    builder = Builder("test")
    builder.issue(PipeBarrier())
    (issue,) = builder.finish().issues
    line = issue.location.line
    source = Path(__file__).read_text().splitlines()[line - 1]
    assert source.strip() == "builder.issue(PipeBarrier())"
    assert issue.location.function == "test_an_issue_knows_where_it_was_written"


def test_a_users_file_may_be_called_builder_too():
    code = "def kernel(builder, barrier):\n    builder.issue(barrier)\n"
    space: dict = {}
    exec(compile(code, "/home/user/builder.py", "exec"), space)
    builder = Builder("test")
    space["kernel"](builder, PipeBarrier())
    (issue,) = builder.finish().issues
    assert str(issue.location) == "builder.py:2 (kernel)"

"""What L2 still holds, read off loops, against arithmetic by hand and a walk over addresses."""

import math
from dataclasses import replace
from itertools import product

import pytest

from cubecore.isa.mte.copies import CopyUbufToGm
from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.tree import Assign, Branch, Issue, Loop, Program
from cubecore.tiling.model.problem import Problem
from cubecore.timing.memory.global_accesses import accesses
from cubecore.timing.memory.l2_reuse import STEPS
from cubecore.timing.memory.reuse_marks import ReuseMark, marked
from cubecore.workflows.time import time
from timing.clock import HERE, ROUND, fetch, traffic_of

MIB = 1 << 20
I, J, K, BASE, COUNT = (Var(name, i) for i, name in enumerate(("i", "j", "k", "base", "count")))


def load(address, blocks=16, walk=None) -> Issue:
    return Issue(fetch(blocks), (Expr(0), Expr.of(address)), HERE, (), walk)


def loop(var, trips, *body) -> Loop:
    return Loop(var, Expr(trips), body)


def gone(program, l2=MIB, **keys) -> list[tuple[int, ...]]:
    """Return what is gone by level, for each load in program order."""
    traffic = traffic_of(program, on=replace(ROUND, l2_bytes=l2), **keys)
    shares = traffic.shares(0)
    return [shares[issue].gone for issue in program.issues if issue in shares]


def sixty_fourths(since: float, l2: int = MIB) -> int:
    return STEPS - int(STEPS * math.exp(-since / l2) + 0.5)


def test_what_is_read_once_is_read_from_device_memory():
    assert gone(Program((load(0), loop(I, 7, load(Expr.of(I) * 512 + 4096))))) == [(64,), (64,)]


def test_what_is_read_again_at_once_is_still_there():
    assert gone(Program((load(0), load(0)))) == [(64,), (0,)]


def test_between_two_reads_in_a_row_lie_the_bytes_in_between():
    """Half a MiB of the block itself is 1 of 64; 16 times 64 KiB and the block are the rest."""
    big = loop(I, 16, load(Expr.of(I) * 65536 + MIB, 2048))
    assert gone(Program((load(0), big, load(0)))) == [(64,), (64,), (sixty_fourths(MIB + 512),)]


def test_the_sides_of_a_branch_do_not_follow_each_other():
    either = Branch(Condition.of(Expr.of(BASE), "==", 0), (load(0),), (load(0),))
    assert gone(Program((either,), (BASE,)), slots=[{BASE: 0}]) == [(64,), (64,)]


@pytest.mark.parametrize("blocks", [1, 16, 256, 2048])
def test_a_loop_that_reads_everything_again(blocks):
    """4 rounds over 8 blocks: a round of them lies between two touches, there or not."""
    size = blocks * 32
    body = loop(I, 4, loop(J, 8, load(Expr.of(J) * size, blocks)))
    assert gone(Program((body,))) == [(64, sixty_fourths(8 * size))]


def touched_between(trips, follows):
    """Return by level how many blocks a walk over a nest touches from one touch to the next."""
    order: list[tuple[int, ...]] = []
    found: dict[int, set[int]] = {}
    carriers = [i for i, moves in enumerate(follows) if not moves]
    last: dict[tuple[int, ...], tuple[int, ...]] = {}
    for place in product(*(range(n) for n in trips)):
        block = tuple(at for at, moves in zip(place, follows, strict=True) if moves)
        if block in last:
            since = order[len(order) - 1 - order[::-1].index(block) :]
            turned = [n for n, i in enumerate(carriers, 1) if place[i] > 0][-1]
            found.setdefault(turned, set()).add(len(set(since)))
        last[block] = place
        order.append(block)
    return found


@pytest.mark.parametrize("follows", list(product((False, True), repeat=3))[1:])
def test_between_two_touches_lie_the_blocks_of_a_turn_each_once(follows):
    """Against a walk that remembers every block, for every nest of three loops."""
    trips, size = (3, 4, 2), 65536
    steps = {I: 8 * size, J: 2 * size, K: size}
    moving = [v for v, moves in zip(steps, follows, strict=True) if moves]
    address = sum((Expr.of(v) * steps[v] for v in moving), Expr(0))
    nest = load(address, size // 32)
    for var, n in zip((K, J, I), reversed(trips), strict=True):
        nest = loop(var, n, nest)
    ((cold, *levels),) = gone(Program((nest,)))
    want = touched_between(trips, follows)
    assert cold == 64
    for level, left in enumerate(levels, 1):
        (blocks,) = want[level]
        assert left == sixty_fourths(blocks * size)


def test_the_innermost_loop_that_has_turned_decides():
    """i and k repeat, j moves: one turn of k is 1/(4 * 8 * 2) of all, one of i a quarter."""
    body = loop(I, 4, loop(J, 8, loop(K, 2, load(Expr.of(J) * 65536, 2048))))
    ((cold, outer, inner),) = gone(Program((body,)))
    assert cold == 64
    assert 0 < inner < outer < 64


def marked_levels(program: Program, *gone: tuple[int, ...]) -> list[int]:
    """Return the level that is marked before each load, in order; `gone` is its levels' part."""
    program = marked(accesses(program, ROUND), gone)
    levels = []
    handlers = [
        (lambda *_, level=issue.template.level: levels.append(level))
        if isinstance(issue.template, ReuseMark)
        else (lambda *_: None)
        for issue in program.issues
    ]
    program._run(handlers, [0] * len(program.slots), None)
    return levels


@pytest.mark.parametrize("gone", [(30, 20, 10), (30, 30, 10), (30, 10, 10), (30, 10, 30)])
def test_marks_say_where_a_block_was_last_asked_for(gone):
    """Against a walk that remembers in which trips each address was asked for."""
    body = loop(I, 3, loop(J, 4, loop(K, 2, load(Expr.of(J) * 512))))
    levels = marked_levels(Program((body,)), gone)
    last: dict[int, tuple[int, int, int]] = {}
    want = []
    for i in range(3):
        for j in range(4):
            for k in range(2):
                before = last.get(j)
                # 0 never; 1 in another turn of i; 2 in another turn of k
                want.append(0 if before is None else 1 if before[0] != i else 2)
                last[j] = (i, j, k)
    assert [gone[level] for level in levels] == [gone[level] for level in want]


def test_a_level_that_makes_no_difference_is_not_asked_for():
    body = loop(I, 3, loop(J, 4, loop(K, 2, load(Expr.of(J) * 512))))
    assert marked_levels(Program((body,)), (64, 64, 64)) == []
    assert len(marked_levels(Program((body,)), (64, 64, 10))) == 24


def test_a_load_that_runs_ahead_says_what_it_walks():
    """The loops around it are not the ones that its address follows."""
    own, again = Expr.of(COUNT), Expr.of(K)
    issue = load(own * 512, walk=((own, 5), (again, 3)))
    carry = Branch(Condition.of(again, "==", 0), (Assign(COUNT, own + 1),))
    start = Assign(COUNT, Expr(0)), Assign(K, Expr(0))
    body = *start, loop(I, 15, issue, Assign(K, (again + 1) % 3), carry)
    assert marked_levels(Program(body), (30, 20)) == [0, 1, 1] * 5


def test_an_address_that_a_scalar_moves_is_not_read_again():
    step = Assign(COUNT, Expr.of(COUNT) + 512)
    body = Assign(COUNT, Expr(0)), loop(I, 15, load(COUNT), step)
    assert gone(Program(body)) == [(64,)]


def test_copies_of_a_walking_load_are_one_walk():
    """The first chunk is loaded before the loop; both leaves together load each chunk once."""
    walk = ((Expr.of(COUNT), 8),)
    ahead, inside = (load(Expr.of(COUNT) * 512, walk=walk) for _ in range(2))
    program = Program((ahead, loop(I, 7, inside)))
    traffic = traffic_of(program)
    assert traffic.brought_bytes == pytest.approx(8 * 512)


def test_a_branch_on_the_walk_takes_its_part_of_it():
    last = Branch(Condition.of(Expr.of(I), "==", 7), (load(I, 2048),), (load(I, 16),))
    traffic = traffic_of(Program((loop(I, 8, last),)))
    assert traffic.brought_bytes == pytest.approx(7 * 512 + 65536)


def test_every_fourth_trip_is_a_quarter():
    some = Branch(Condition.of(Expr.of(I) % 4, "==", 0), (load(Expr.of(I) * 512, 16),))
    assert traffic_of(Program((loop(I, 32, some),))).brought_bytes == pytest.approx(8 * 512)


def test_cores_that_read_one_block_bring_it_in_once():
    program = Program((load(BASE),), (BASE,))
    for bases, blocks in (((0, 0, 0), 1), ((0, 512, 512), 2), ((0, 512, 1024), 3)):
        slots = [{BASE: base} for base in bases]
        traffic = traffic_of(program, cores=3, slots=slots)
        (share,) = traffic.shares(0).values()
        assert (share.cores, share.blocks) == (3, blocks)
        assert traffic.brought_bytes == pytest.approx(512 * blocks)


def test_what_is_written_stays_the_less_the_more_comes_in():
    def written(total):
        store = Issue(CopyUbufToGm(n_burst=1, len_burst=32), (Expr.of(I) * 1024, Expr(0)), HERE)
        return traffic_of(Program((loop(I, total // 1024, store),))).written_back

    for parts in (0.125, 0.5, 1, 2, 4):
        assert written(int(parts * MIB)) == STEPS - int(STEPS * math.exp(-(parts**2)) + 0.5)


def test_what_was_written_can_be_read_from_l2():
    store = Issue(CopyUbufToGm(n_burst=1, len_burst=16), (Expr(0), Expr(0)), HERE)
    assert gone(Program((store, load(0)))) == [(64,), (0,)]


@pytest.mark.parametrize("power", [1, 4])
def test_the_oldest_go_first_the_more_the_power(power):
    """Two rounds over 0.75 of L2: that much lies in between, and what is gone comes again."""
    body = loop(I, 2, loop(J, 12, load(Expr.of(J) * 65536, 2048)))
    traffic = traffic_of(Program((body,)), on=replace(ROUND, l2_survival_power=power))
    ((cold, again),) = [share.gone for share in traffic.shares(0).values()]
    left = 1 - math.exp(-(0.75**power))
    assert (cold, again) == (64, STEPS - int(STEPS * (1 - left) + 0.5))
    assert traffic.brought_bytes == pytest.approx(0.75 * MIB * (1 + left))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("trans", [False, True])
def test_no_launch_brings_in_less_than_its_operands(trans):
    """Bands with a ragged last one, and copies of a load with loops of their own."""
    for m, n, k in ((392, 1682, 35), (551, 2332, 700), (915, 700, 333)):
        p = Problem(m=m, n=n, k=k, a="float32", b="float32", trans_a=trans, trans_b=trans)
        line = time(p).timeline
        assert line.hbm_read_bytes >= 0.99 * 4 * k * (m + n)

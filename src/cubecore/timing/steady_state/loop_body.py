"""Summary of a loop body: the pipes, flags and variables that decide its next trip."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Assign, Branch, Issue, LoadScalar, Loop, Node, nodes
from cubecore.isa.scalar.sync import (
    EVENT_IDS,
    FftsCrossCoreSync,
    Lock,
    PipeBarrier,
    SetFlag,
    Unlock,
    WaitFlag,
    WaitFlagDev,
    joined_pipes,
)
from cubecore.timing.memory.reuse_marks import ReuseMark
from cubecore.timing.pipes.flags import FlagKey, mutex_key
from cubecore.timing.pipes.queues import INDEX, PIPES, SCALAR, deciding
from cubecore.timing.steady_state.loop_guards import Guards, increment

_RARE = 32
_OFTEN = 16
"""Trips between two looks at the state: at most, and where the remainders would want more."""


@dataclass(frozen=True, eq=False)
class LoopBody:
    """The effects of a loop, seen from its head.

    `beside` are pipes that slow the loop's own while they are busy. `counters` are the variables
    that it only counts or sets to constants, `given` the others that decide something in it, the
    first `others` of which change, `moving` those that change in it. `resets` are the nodes that
    reset a counter; a further counter, whose index `reset_counters` has beside its own, counts
    them. The state is looked at every `stride` trips; all remainders of the index are the same
    every `whole` trips.
    """

    loop: Loop
    pipes: tuple[int, ...]
    beside: tuple[int, ...]
    flags: tuple[FlagKey, ...]
    memory: bool
    registers: bool
    leaves: int
    stride: int
    whole: int
    counters: tuple[Var, ...]
    resets: frozenset[Node]
    reset_counters: tuple[tuple[int, int], ...]
    others: int
    given: tuple[Var, ...]
    moving: frozenset[Var]

    @staticmethod
    def of(loop: Loop) -> "LoopBody | None":
        """Return the loop's body, or None where it can never recur."""
        # All that may change from trip to trip and decides time must be named here: pipes, flags,
        # memory, registers and variables. What is missing would let two different states look
        # equal.
        inside = list(nodes(loop.body))
        if any(isinstance(node, LoadScalar) for node in inside):
            return None
        leaves = [node for node in inside if isinstance(node, Issue)]
        if any(isinstance(leaf.template, (FftsCrossCoreSync, WaitFlagDev)) for leaf in leaves):
            return None  # what other cores do is no part of this one's state
        issues = [leaf for leaf in leaves if not isinstance(leaf.template, ReuseMark)]
        templates = [issue.template for issue in issues]
        everywhere = any(joined_pipes(t) for t in templates)
        flags = dict.fromkeys(flag for issue in issues for flag in _flags(issue))
        pipes = {pipe for issue in issues for pipe in _pipes(issue)}
        pipes |= {pipe for src, dst, _ in flags for pipe in (src, dst)}
        # MTE1 is slower while MTE2 loads, so MTE2's state decides also where the loop does not use
        # it.
        beside = {INDEX["MTE2"]} if INDEX["MTE1"] in pipes else set()
        counters, others = _assigned(inside)
        resets = _resetting(inside, counters)
        reset = [v for v in counters if any(node.target == v for node in resets)]
        counts = (*counters, *map(resets_of, reset))
        used = {var for expr in _expressions(inside) for var in expr.variables()}
        inner = {node.index for node in inside if isinstance(node, Loop)}
        # Remainders of the index (`k % 3 == 0`) make trips differ: the state is compared where they
        # are alike.
        strides = {s for expr in _expressions(inside) for s in _strides(expr, loop.index)}
        return LoopBody(
            loop=loop,
            pipes=tuple(range(len(PIPES))) if everywhere else tuple(sorted(pipes - {SCALAR})),
            beside=() if everywhere else tuple(beside - pipes),
            flags=tuple(flags),
            memory=any(Mem.GM in {o.mem for o in t.operands()} for t in templates),
            registers=any(t.takes_registers for t in templates),
            leaves=len(issues),
            stride=_often(strides),
            whole=lcm(*strides),
            counters=counts,
            resets=frozenset(resets),
            reset_counters=tuple(
                (counters.index(v), len(counters) + i) for i, v in enumerate(reset)
            ),
            others=len(others),
            given=(*others, *sorted(used - {*counters, *others, *inner, loop.index}, key=_number)),
            moving=frozenset({loop.index, *counts, *others, *inner}),
        )

    def was_reset(self, began: Sequence[int], ended: Sequence[int], now: Sequence[int]) -> bool:
        """True if a counter that is elsewhere `now` was reset where it began and ended there.

        Then it may have been anywhere between, and where it will be is not known.
        """
        return any(
            now[i] != began[i] and ended[turns] != began[turns] for i, turns in self.reset_counters
        )

    @cached_property
    def guards(self) -> Guards:
        """Guards of the nodes that the counters, the index first, can reach."""
        counters = (self.loop.index, *self.counters)
        reached = tuple(_pruned(self.loop.body, set(counters)))
        return Guards(reached, counters, self.moving, self.given)


def resets_of(var: Var) -> Var:
    """Return the variable that counts how often a counter is reset."""
    return Var(f"resets of {var.name}", -1 - var.number)


def _number(var: Var) -> int:
    return var.number


def _flags(issue: Issue) -> Iterator[FlagKey]:
    template = issue.template
    if isinstance(template, (SetFlag, WaitFlag)):
        for event in range(EVENT_IDS) if issue.late else (template.event_id,):
            yield FlagKey(INDEX[template.src], INDEX[template.dst], event)
    elif isinstance(template, (Lock, Unlock)):
        yield mutex_key(template)


def _pipes(issue: Issue) -> Iterator[int]:
    template = issue.template
    if isinstance(template, (PipeBarrier, Lock, Unlock)):
        if template.on in INDEX:
            yield INDEX[template.on]
    else:
        yield INDEX[template.pipe.value]


def _assigned(nodes: Sequence[Node]) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Return the variables that are only counted or set to constants, and the other ones."""
    # A variable is a counter as long as every assignment to it is `v = constant` or `v = v +
    # constant`.
    counts: dict[Var, bool] = {}
    for node in nodes:
        if isinstance(node, Assign):
            plain = node.value.constant is not None or increment(node) is not None
            counts[node.target] = counts.get(node.target, True) and plain
    return (
        tuple(var for var, plain in counts.items() if plain),
        tuple(var for var, plain in counts.items() if not plain),
    )


def _resetting(nodes: Sequence[Node], counters: Sequence[Var]) -> list[Assign]:
    """Return the nodes that set a counter to a constant, or count it in the opposite direction.

    Without them a counter moves one way only, so it stays between where it was and where it is.
    """
    resets = []
    for var in counters:
        assignments = [node for node in nodes if isinstance(node, Assign) and node.target == var]
        steps = [increment(node) for node in assignments]
        forward = 1 if any(step is not None and step > 0 for step in steps) else -1
        resets += [
            node
            for node, step in zip(assignments, steps, strict=True)
            if step is None or step * forward < 0
        ]
    return resets


def _expressions(nodes: Sequence[Node]) -> Iterator[Expr]:
    for node in nodes:
        if isinstance(node, Branch):
            yield node.condition.left
            yield node.condition.right
        elif isinstance(node, Loop):
            yield node.trips
        elif isinstance(node, Assign):
            yield node.value
        elif isinstance(node, Issue):
            yield from deciding(node)


def _strides(expr: Expr, index: Var) -> Iterator[int]:
    """Yield after how many trips each remainder or quotient of an index repeats."""
    for atom, _ in expr.terms:
        if isinstance(atom, Var):
            continue
        divisor = atom.right.constant
        if atom.kind in {"mod", "floordiv"} and divisor:
            for inner, factor in atom.left.terms:
                if inner == index:
                    yield abs(divisor) // gcd(divisor, factor)
        yield from _strides(atom.left, index)
        yield from _strides(atom.right, index)


def _often(strides: set[int]) -> int:
    """Return every how many trips to look at the state: where all remainders are the same.

    Where that is too rare, only the short ones are, and a period ends before a long one wraps.
    """
    whole = lcm(*strides)
    if whole <= _RARE:
        return whole
    result = 1
    for stride in sorted(strides):
        if lcm(result, stride) <= _OFTEN:
            result = lcm(result, stride)
    return result


def _pruned(body: Sequence[Node], counters: set[Var]) -> Iterator[Node]:
    """Yield the nodes that depend on a counter or change one."""
    for node in body:
        if isinstance(node, Loop):
            inside = tuple(_pruned(node.body, counters))
            if inside or not counters.isdisjoint(node.trips.variables()):
                yield Loop(node.index, node.trips, inside)
        elif isinstance(node, Branch):
            sides = [tuple(_pruned(side, counters)) for side in (node.then, node.otherwise)]
            used = {*node.condition.left.variables(), *node.condition.right.variables()}
            if any(sides) or not counters.isdisjoint(used):
                yield Branch(node.condition, *sides)
        elif isinstance(node, Assign):
            if node.target in counters or not counters.isdisjoint(node.value.variables()):
                yield node
        elif isinstance(node, Issue) and any(
            not counters.isdisjoint(value.variables()) for value in deciding(node)
        ):
            yield node

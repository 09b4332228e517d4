"""Marks in a program that is timed: in which loop the next load's blocks were last asked for.

Only where that makes a difference: where L2 holds as much of them either way, there is no mark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cubecore.cache import MOST_PROGRAMS, BoundedCache
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.expr import Condition, Var
from cubecore.isa.program.tree import Branch, Issue, Loop, Node, Program
from cubecore.timing.memory.global_accesses import Accesses, GlobalAccess, is_access

Levels = tuple[int, ...]
"""For each `ReuseMark` level of a load the first that is like it."""


@dataclass(frozen=True)
class ReuseMark(Instruction):
    """A mark in a program that is timed: which loop the next load's blocks were last asked for in.

    Not an instruction: it takes no time and is not issued. 0: never in this core.
    """

    level: int


_MARKED = BoundedCache[tuple[Program, tuple[Levels, ...]], Program](MOST_PROGRAMS)


def marked(accesses: Accesses, gone: Sequence[Sequence[int]]) -> Program:
    """Return the program with a mark before each load for which the level counts.

    `gone` has for each access what L2 no longer holds, by level. Those of the latest programs
    are kept.
    """
    program = accesses.program
    levels = tuple(tuple([parts.index(part) for part in parts]) for parts in gone)
    cached = _MARKED.get((program, levels))
    if cached is None:
        todo = iter(zip(accesses.leaves, levels, strict=True))
        body = tuple(_marked(program.body, todo))
        cached = _MARKED[program, levels] = Program(body, program.slots, program.name)
    return cached


def _marked(body: Sequence[Node], todo: Iterator[tuple[GlobalAccess, Levels]]) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Loop):
            # A load alone in a loop: a mark that this loop's index does not decide moves out of it,
            # so that the loop stays one instruction again and again (`EqualLoads`).
            body_marked = tuple(_marked(node.body, todo))
            if len(body_marked) == 2 and _is_fixed_mark(body_marked[0], node.index):
                yield body_marked[0]  # the same in every trip
                body_marked = body_marked[1:]
            yield Loop(node.index, node.trips, body_marked)
        elif isinstance(node, Branch):
            sides = [tuple(_marked(side, todo)) for side in (node.then, node.otherwise)]
            yield Branch(node.condition, *sides)
        elif isinstance(node, Issue) and is_access(node):
            leaf, levels = next(todo)
            if any(levels) and not leaf.traffic.writes:
                yield _mark(leaf, levels)
            yield node
        else:
            yield node


def _mark(leaf: GlobalAccess, levels: Levels) -> Node:
    """Return the branches that find the innermost repeating loop that has turned."""
    # Nested branches, the innermost loop outermost: `if inner > 0: its level, else if outer > 0:
    # ..., else: level 0`. Equal marks on both sides need no branch.
    node: Node = _touch(leaf, 0)
    for level, carrier in zip(levels[1:], leaf.carriers, strict=True):
        if not isinstance(node, Issue) or node.template != ReuseMark(level):
            turned = Condition.of(leaf.nest[carrier].position, ">", 0)
            node = Branch(turned, (_touch(leaf, level),), (node,))
    return node


def _is_fixed_mark(node: Node, index: Var) -> bool:
    """True if a node is a mark that does not depend on an index."""
    if isinstance(node, Issue):
        return isinstance(node.template, ReuseMark)
    if not isinstance(node, Branch) or index in node.condition.left.variables():
        return False
    return all(_is_fixed_mark(inner, index) for inner in (*node.then, *node.otherwise))


def _touch(leaf: GlobalAccess, level: int) -> Issue:
    return Issue(ReuseMark(level), (), leaf.issue.location)

"""Bodies of loops and branches, and leaving them: what is behind depends on a variable."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.tree import Branch, Node


@dataclass(eq=False, slots=True)
class TracedBody:
    """The nodes of a loop's or a branch's body while it is traced.

    `in_outer`: the branch that contains it stands in the outer body already (an else of it). `left`
    are the places from which on nodes are done only while a variable is 0, `whole` the variables
    for all of a loop's body; `breaks` is the variable of leaving this loop.
    """

    loops: bool = False
    in_outer: bool = False
    nodes: list[Node] = field(default_factory=list)
    left: list[tuple[int, Var]] = field(default_factory=list)
    whole: list[Var] = field(default_factory=list)
    breaks: Var | None = None

    def closed(self) -> tuple[Node, ...]:
        """Return the nodes, those behind a place that may leave under its condition."""
        # From the last place to the first: each wraps all nodes behind it in `if variable == 0`, so
        # that indices of earlier places stay valid. `whole` wraps a loop's body, for the trips that
        # follow.
        nodes = list(self.nodes)
        for index, variable in [*reversed(self.left), *((0, v) for v in self.whole)]:
            if rest := tuple(nodes[index:]):
                nodes[index:] = [Branch(Condition.of(Expr.of(variable), "==", 0), rest, ())]
        return tuple(nodes)


def leave(bodies: Sequence[TracedBody], variable: Var) -> None:
    """Note in bodies, from the one that is left inward, that `variable` says it from here on."""
    # In each enclosing body everything behind the branch or loop that is being traced depends on
    # the variable. An else-branch's node is in the outer body already, any other will be the next
    # one.
    for outer, inner in itertools.pairwise(bodies):
        outer.left.append((len(outer.nodes) + (not inner.in_outer), variable))
    bodies[-1].left.append((len(bodies[-1].nodes), variable))
    for body in bodies:
        if body.loops and variable not in body.whole:
            body.whole.append(variable)

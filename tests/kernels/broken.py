"""The same launch with something wrong in its tree."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Branch, Issue, Loop, Node, Program

Change = Callable[[Issue], Issue | None]
"""What becomes of a leaf: another one, or nothing."""


def changed(launch: Launch, change: Change) -> Launch:
    """Return the launch with every leaf of every tree changed."""
    trees = {program: _program(program, change) for program in launch.programs}
    return replace(
        launch, cores=tuple(replace(core, program=trees[core.program]) for core in launch.cores)
    )


def leaves(launch: Launch) -> list[Issue]:
    """Return the leaves of the launch's trees."""
    return [issue for program in launch.programs for issue in program.issues]


def _program(program: Program, change: Change) -> Program:
    return Program(_body(program.body, change), program.slots, program.name)


def _body(body: Sequence[Node], change: Change) -> tuple[Node, ...]:
    made: list[Node] = []
    for node in body:
        if isinstance(node, Issue):
            leaf = change(node)
            if leaf is not None:
                made.append(leaf)
        elif isinstance(node, Loop):
            made.append(replace(node, body=_body(node.body, change)))
        elif isinstance(node, Branch):
            made.append(
                replace(
                    node,
                    then=_body(node.then, change),
                    otherwise=_body(node.otherwise, change),
                )
            )
        else:
            made.append(node)
    return tuple(made)

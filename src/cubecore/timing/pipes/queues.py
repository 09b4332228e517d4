"""Queues of a core's pipes, and the reasons for their stalls."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cubecore.errors import DeadlockError, Violation
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import Mem, Pipe
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Issue
from cubecore.timing.pipes.pipe_clock import PipeClock
from cubecore.units import FRACTAL_ROWS, ceil_div

PIPES = tuple(p for p in Pipe if p is not Pipe.ALL)
NAMES: tuple[str, ...] = tuple(p.value for p in PIPES)
INDEX = {name: i for i, name in enumerate(NAMES)}
SCALAR = INDEX["S"]
ISSUE = "scalar issue"
UNIT_FLAG = "unit flag"
CROSS_CORE = "cross-core"
"""The beginning of the reason for which a core waits for another."""
DEVICE_MEMORY = "device memory"
"""The name of the limit of a core whose loads mostly wait to be served."""
Queued = tuple[Callable[..., bool], tuple[Any, ...], int]


@dataclass(eq=False, slots=True, kw_only=True)
class PipeState(PipeClock):
    """One pipe of a walk over a tree: when it may start its next instruction, and why not before.

    `blocked` are the instructions behind a wait whose flag is not set yet. `uses` counts what was
    started.
    """

    name: str
    when_full: str
    reason: str = ISSUE
    uses: int = 0
    blocked: deque[Queued] = field(default_factory=deque)


def deciding(issue: Issue) -> tuple[Expr, ...]:
    """Return the expressions that time depends on: late parameters, L0C under the unit flag."""
    return (*(value for _, value in issue.late), *_l0c(issue))


def _l0c(issue: Issue) -> Iterator[Expr]:
    template = issue.template
    if isinstance(template, (CubeProduct, CopyMatrixCcToGm)) and template.unit_flag:
        for operand, address in zip(template.operands(), issue.addresses, strict=True):
            if operand.mem is Mem.L0C:
                yield address


def overfull(pipe: PipeState, depth: int) -> DeadlockError:
    """Return the error of a queue that is full of instructions behind a wait."""
    sentence = f"deadlock: {depth} instructions fill {pipe.name}'s queue behind a wait_flag"
    return DeadlockError([Violation(f"pipe {pipe.name}", "", str(depth), sentence=sentence)])


def unit_part(m: int, n: int, busy: int) -> int:
    """Return the cycles of one fractal of L0C: how far the unit flag lets pipes follow each other.

    The flag is kept for each 512 B (Mmad, table 3); all fractals take equal time.
    """
    fractals: int = ceil_div(m, FRACTAL_ROWS) * ceil_div(n, FRACTAL_ROWS)
    return -(-busy // max(fractals, 1))


def unmet(pipes: str) -> DeadlockError:
    """Return the error of pipes that wait for a flag for ever."""
    sentence = f"deadlock: no set_flag for a wait_flag on {pipes}"
    return DeadlockError([Violation("every wait_flag", "", pipes, sentence=sentence)])

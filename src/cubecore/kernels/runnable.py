"""Chips that kernels can be executed and timed on."""

from cubecore.chips.model import Chip
from cubecore.errors import refuse, unable

TIMED_ARCHS = ("2201", "3510")
"""Architectures whose rates are published, or measured."""
RUNNABLE_ARCHS = (*TIMED_ARCHS, "3003", "3113")
"""Architectures whose instructions of a matmul are declared."""
_LARGEST_BUFFER = 2**30


def require_runnable(target: Chip) -> None:
    """Refuse a chip that cannot be executed or timed: another architecture, or absurd buffers."""
    for name in ("l0a_bytes", "l0b_bytes", "l0c_bytes", "l1_bytes", "ub_bytes"):
        if getattr(target, name) > _LARGEST_BUFFER:
            need = f"be at most {_LARGEST_BUFFER} to execute or time a kernel"
            raise refuse(f"{target.name}.{name}", need, getattr(target, name))
    if target.arch not in RUNNABLE_ARCHS:
        *most, last = RUNNABLE_ARCHS
        raise unable(
            target.name,
            f"run supports architectures {', '.join(most)} and {last}; {target.name} is "
            f"{target.arch} (plan and check support it)",
        )


def require_timed(target: Chip) -> None:
    """Refuse a chip that cannot be timed.

    Raises
    ------
    RequestError
        If it is of another architecture, or its buffers are absurd.
    """
    if target.arch not in TIMED_ARCHS:
        others = "plan, check and run" if target.arch in RUNNABLE_ARCHS else "plan and check"
        raise unable(
            target.name,
            f"time supports architectures {' and '.join(TIMED_ARCHS)}; {target.name} is "
            f"{target.arch} ({others} support it)",
        )
    require_runnable(target)

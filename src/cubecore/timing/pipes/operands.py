"""The operand that an instruction moves, for who looks at a timeline: A, B, C, bias."""

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Issue

_OF_BUFFER = {Mem.L0A: "A", Mem.L0B: "B"}
"""The operand that a buffer holds whatever the kernel."""
_SHORT = 2
"""Names of tensors up to this length are matrices, written in capitals."""


def moved_operand(issue: Issue, template: Instruction) -> str:
    """Return the operand that a copy moves: its tensor's name; empty where nothing says it.

    A tensor of global memory is named by the variable that its address starts from; what goes to
    L0A or L0B is A or B.
    """
    operands = template.operands()
    for operand, address in zip(operands, issue.addresses, strict=False):
        if operand.mem is Mem.GM and (name := _base(address)):
            return name.upper() if len(name) <= _SHORT else name
    held = (_OF_BUFFER.get(operand.mem) for operand in operands if len(operands) > 1)
    names = [name for name in held if name is not None]
    return names[0] if len(names) == 1 else ""


def _base(address: Expr) -> str:
    """Return the name of the first variable that an address has once."""
    return next(
        (var.name for var, times in address.terms if times == 1 and hasattr(var, "name")), ""
    )

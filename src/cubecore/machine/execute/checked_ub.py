"""Accesses to UB at which a kernel has its core stop (CheckLocalMemoryIA)."""

from collections.abc import Iterator, Sequence

from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.declare.registers import UbCheck
from cubecore.machine.memory.footprint import Footprint, footprints

_UNITS = {Pipe.S: "scalar", Pipe.V: "vector"}
"""Units by their pipes; the others copy."""


def checked_accesses(
    checks: Sequence[UbCheck], template: Instruction, addresses: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """Yield the operands of a resolved template that a check meets, with a sentence each."""
    unit = _UNITS.get(template.pipe, "mte")
    for operand, address, touched in zip(
        template.operands(), addresses, footprints(template), strict=True
    ):
        if operand.mem is not Mem.UB or touched is None:
            continue
        ways = {"read": operand.access.reads, "write": operand.access.writes}
        for how in (how for how, done in ways.items() if done):
            found = checked_at(checks, f"{unit} {how}", touched.at(address))
            if found is not None:
                yield operand.name, f"{template.name}.{operand.name} must {found}"


def checked_at(checks: Sequence[UbCheck], kind: str, touched: Footprint) -> str | None:
    """Return the sentence's end about bytes that a check meets; None where none does."""
    for check in checks:
        if kind not in check.kinds or check.start >= check.end:
            continue
        common = touched.first_common(Footprint.run(check.start, check.end))
        if common is not None:
            return (
                f"leave bytes [{check.start}, {check.end}) of UB alone, where CheckLocalMemoryIA "
                f"stops at a {kind}, got bytes [{common[0]}, {common[1]})"
            )
    return None

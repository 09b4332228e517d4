"""Checks of UB that a kernel asks for: the chip stops at an access to bytes that it names."""

from dataclasses import replace

from cubecore.isa.declare.instruction import Instruction, Pipe, instruction, param
from cubecore.isa.declare.registers import Registers, UbCheck
from cubecore.units import DATA_BLOCK_BYTES

_BLOCKS = 65535


@instruction(
    "check_ub",
    Pipe.S,
    names={"cpp": "CheckLocalMemoryIA"},
    source="basic API, CheckLocalMemoryIA",
    uncertain=(
        "the access that is checked for is made, with a finding; the chip stops there",
        "lanes that a mask leaves out are no access, nor are gaps between elements",
        "no byte is checked where the end is not behind the start",
    ),
    archs=("2201",),
)
class CheckUb(Instruction):
    """Let one of four registers check accesses to a range of UB, or let it rest.

    The range is counted in blocks of 32 B: the first one is behind `start`, `end` is the last one.
    """

    number: int = param(0, 3, "the register")
    start: int = param(0, _BLOCKS, "the block before the range")
    end: int = param(0, _BLOCKS, "the last block of the range")
    scalar_read: bool = param(0, 1, "check reads of the scalar unit")
    scalar_write: bool = param(0, 1, "check writes of the scalar unit")
    vector_read: bool = param(0, 1, "check reads of vector instructions")
    vector_write: bool = param(0, 1, "check writes of vector instructions")
    mte_read: bool = param(0, 1, "check reads of copies")
    mte_write: bool = param(0, 1, "check writes of copies")
    enable: bool = param(0, 1, "check; else the register rests")

    def apply(self, registers: Registers) -> Registers:
        """Keep the check in place of the register's last one."""
        others = [check for check in registers.ub_checks if check.number != self.number]
        if self.enable:
            units = ("scalar", "vector", "mte")
            kinds = [f"{unit} {how}" for unit in units for how in ("read", "write")]
            checked = frozenset(k for k in kinds if getattr(self, k.replace(" ", "_")))
            low, high = (DATA_BLOCK_BYTES * (block + 1) for block in (self.start, self.end))
            others.append(UbCheck(self.number, low, high, checked))
        return replace(registers, ub_checks=tuple(sorted(others, key=lambda one: one.number)))

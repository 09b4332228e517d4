"""System variables: values of the launch and the core that a kernel may read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.family import member
from cubecore.isa.declare.instruction import Instruction, Pipe, instruction, param
from cubecore.isa.declare.registers import Registers


class Variable(Instruction):
    """The scalar unit reads the result at once; nothing else changes."""

    of_launch: ClassVar[bool] = False
    """True if the launch alone decides it, and no instruction before."""

    @staticmethod
    def reads(registers: Registers) -> int:
        """Return the variable; each line of the table has its own."""
        raise NotImplementedError

    def result(self, registers: Registers) -> tuple[int, ...]:
        """One integer."""
        return (self.reads(registers),)


@dataclass(frozen=True)
class _Line:
    name: str
    doc: str
    reads: Callable[[Registers], int]
    cpp: str = ""
    uncertain: tuple[str, ...] = ()
    of_launch: bool = False
    archs: tuple[str, ...] = ("2201", "3510")


_BEFORE_SET = ("it is 0 before set_fpc: the page says nothing",)
_VARIABLES = (
    _Line("get_ctrl", "Read CTRL", lambda r: r.ctrl, "GetCtrlSpr"),
    _Line(
        "get_block_idx",
        "Read the index of this part of a core among those of its kind in the launch",
        lambda r: r.position.block * r.position.parts + r.position.part,
        "GetBlockIdx",
        uncertain=(
            "an AIV of a mix launch counts AIVs, as the C++ page has it; the C API's page only "
            "speaks of the running core",
        ),
        of_launch=True,
    ),
    _Line(
        "get_block_num",
        "Read how many cores the launch has; AIVs where it has no AIC",
        lambda r: r.position.blocks,
        "GetBlockNum",
        of_launch=True,
    ),
    _Line(
        "get_sub_block_id",
        "Read which of its core's AIVs this is",
        lambda r: r.position.part,
        "GetSubBlockIdx",
        of_launch=True,
    ),
    _Line(
        "get_sub_block_num",
        "Read how many AIVs, or on an AIC how many AICs, the core has in this launch",
        lambda r: r.position.parts,
        "GetSubBlockNum",
        of_launch=True,
    ),
    _Line(
        "get_core_id",
        "Read the number of the core",
        lambda r: r.position.block,
        uncertain=("cores are numbered as in the launch; the hardware's numbers may differ",),
        of_launch=True,
    ),
    _Line(
        "get_ffts_base_addr",
        "Read the base address of the flags between cores",
        lambda r: r.ffts_base,
        archs=("2201",),
    ),
    _Line(
        "get_l0c2gm_prequant",
        "Read where in the Fixpipe buffer the scales are, as set_fpc said",
        lambda r: r.scales_at or 0,
        uncertain=_BEFORE_SET,
        archs=("2201",),
    ),
    _Line(
        "get_l0c2gm_relu",
        "Read where in the Fixpipe buffer the ReLU factors are, as set_fpc said",
        lambda r: r.relu_at,
        uncertain=_BEFORE_SET,
        archs=("2201",),
    ),
    _Line(
        "get_l0c2gm_unitflag",
        "Read the unit flags' bit that set_fpc set",
        lambda r: int(r.resets_units),
        uncertain=_BEFORE_SET,
        archs=("2201",),
    ),
)

for _line in _VARIABLES:
    member(
        Variable,
        _line.name,
        Pipe.S,
        doc=_line.doc,
        body={
            "__module__": __name__,
            "reads": staticmethod(_line.reads),
            "of_launch": _line.of_launch,
        },
        names={"c_api": f"asc_{_line.name}"} | ({"cpp": _line.cpp} if _line.cpp else {}),
        source=f"asc-devkit, asc_{_line.name}{f' and {_line.cpp}' if _line.cpp else ''} "
        f"({', '.join(_line.archs)})",
        uncertain=_line.uncertain,
        archs=_line.archs,
    )


@instruction(
    "set_ffts_base_addr",
    Pipe.S,
    names={"c_api": "asc_set_ffts_base_addr"},
    source="asc-devkit, asc_set_ffts_base_addr (2201)",
    uncertain=("signals between cores work without it here; the page asks for it before them",),
)
class SetFftsBaseAddr(Instruction):
    """Set the base address of the flags between cores. Nothing but get_ffts_base_addr reads it."""

    config: int = param(0, 2**48 - 1, "the address that the host was given")

    def apply(self, registers: Registers) -> Registers:
        """Keep the address."""
        return replace(registers, ffts_base=self.config)


@instruction(
    "get_phy_buf_addr",
    Pipe.S,
    names={"c_api": "asc_get_phy_buf_addr"},
    source="asc-devkit, asc_get_phy_buf_addr (2201, 3510)",
    uncertain=("local memories start at address 0",),
    archs=("2201", "3510"),
)
class GetPhyBufAddr(Instruction):
    """Turn an offset into a local memory into an address there: the same number."""

    offset: int = param(0, 2**64 - 1, "bytes from the memory's start")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The offset lies in a memory; the largest is asked, as nothing says which one is meant."""
        most = max(chip.ub_bytes, chip.l1_bytes)
        if self.offset <= most:
            return []
        return [Violation(f"{self.name}.offset", f"be {most} at most", str(self.offset))]

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The address."""
        return (self.offset,)


@instruction(
    "init",
    Pipe.S,
    names={"c_api": "asc_init"},
    source="asc-devkit, asc_init (2201, 3510)",
    archs=("2201", "3510"),
)
class Init(Instruction):
    """Take back what a kernel before may have left: no atomic stores, normal mask, all lanes on."""

    def apply(self, registers: Registers) -> Registers:
        """Reset these registers; others keep their values."""
        return registers.initialised()

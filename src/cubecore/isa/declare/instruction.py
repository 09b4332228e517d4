"""The declaration of an instruction, which every layer reads.

An instruction is a frozen dataclass of its parameters other than addresses (a *template*) with
operands declared as class attributes. Its meaning has two parts: for each operand the offsets of
the elements that it touches (`offsets`), and either a pure function of arrays (`compute`) or a copy
(`moves`). Bounds, alignment, initialisation, races and byte counts are derived from the offsets.
Nothing here knows of engines or of time beyond the declared cost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare import common_3510, ranges
from cubecore.isa.declare.archs import Kirin, from_on
from cubecore.isa.declare.capi_forms import CapiForms
from cubecore.isa.declare.placement import Placement
from cubecore.isa.declare.register_use import RegisterUse
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Line, Remark
from cubecore.isa.declare.template import Template, parameters
from cubecore.layouts import Offsets


class Pipe(Enum):
    """The queues of a core; S is the scalar unit, which issues to the others."""

    S = "S"
    V = "V"
    M = "M"
    MTE1 = "MTE1"
    MTE2 = "MTE2"
    MTE3 = "MTE3"
    FIX = "FIX"
    ALL = "ALL"


class Mem(Enum):
    """The memories of a core and global memory, with their alignment (C API notes, table 1)."""

    GM = ("GM", 1)
    UB = ("UB", 32)
    L1 = ("L1", 32)
    L0A = ("L0A", 512)
    L0B = ("L0B", 512)
    L0B_INDEX = ("L0B's indices", 1)  # addressed through L0B
    L0A_MX = ("L0A_MX", 1)  # addressed through L0A
    L0B_MX = ("L0B_MX", 1)
    L0C = ("L0C", 64)
    BT = ("BiasTable", 64)
    FB = ("Fixpipe", 64)

    def __init__(self, label: str, align_bytes: int) -> None:
        self.label = label
        self.align_bytes = align_bytes

    __hash__ = object.__hash__  # an enum's own is several times slower, and this is a common key


class OperandAccess(Enum):
    """The access of an instruction to an operand: read, written, or both."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"

    @property
    def reads(self) -> bool:
        """True if old values matter."""
        return self is not OperandAccess.WRITE

    @property
    def writes(self) -> bool:
        """True if new values are stored."""
        return self is not OperandAccess.READ


@dataclass(slots=True, eq=False)
class Operand:
    """One operand: memory, access, type, axes and layout, alignment.

    `element` names the template's field that holds the element type. `align_bytes` overrides the
    memory's general alignment (C API general notes: what an instruction states goes first). `used`
    says that an uninitialised element is a finding even where the instruction propagates. `idle`
    ones are read, and nothing looks at their values: they race with no other access.
    """

    mem: Mem
    access: OperandAccess
    element: str
    axes: str = ""
    layout: str = ""
    align_bytes: int = 0
    used: bool = False
    name: str = ""
    idle: bool = False

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the attribute's name."""
        self.name = name

    @property
    def alignment(self) -> int:
        """Bytes that the operand's address must be a multiple of."""
        return self.align_bytes or self.mem.align_bytes


def read(mem: Mem, axes: str = "", element: str = "dtype", **kwargs: Any) -> Any:
    """Declare an operand that is read."""
    return Operand(mem, OperandAccess.READ, element, axes, **kwargs)


def write(mem: Mem, axes: str = "", element: str = "dtype", **kwargs: Any) -> Any:
    """Declare an operand that is written."""
    return Operand(mem, OperandAccess.WRITE, element, axes, **kwargs)


def update(mem: Mem, axes: str = "", element: str = "dtype", **kwargs: Any) -> Any:
    """Declare an operand that is read and written."""
    return Operand(mem, OperandAccess.UPDATE, element, axes, **kwargs)


def param(
    low: int, high: int, doc: str, *, default: object = None, multiple: int = 1, bits_of: str = ""
) -> Any:
    """Declare an integer or boolean parameter with its documented range.

    `bits_of` says that it holds a value's bits: those of the element type that it names, or of the
    one that the named parameter has. A call may then give the value as a float.
    """
    metadata = {"low": low, "high": high, "multiple": multiple, "doc": doc, "bits_of": bits_of}
    return (
        field(metadata=metadata) if default is None else field(default=default, metadata=metadata)
    )


def types(
    doc: str,
    *allowed: str,
    default: ElementType | None = None,
    late: common_3510.PageTypes | None = None,
) -> Any:
    """Declare an element-type parameter with the types that the instruction takes.

    `late` are those of architecture 3510, where they are others.
    """
    metadata = {"types": allowed, "doc": doc} | ({"late": late} if late else {})
    return (
        field(metadata=metadata) if default is None else field(default=default, metadata=metadata)
    )


def choice(doc: str, *options: str | int, default: str | int) -> Any:
    """Declare a parameter that is one of a few words or numbers."""
    return field(default=default, metadata={"options": options, "doc": doc})


def taken(doc: str) -> Any:
    """Declare a field read from registers or memory at issue; callers never pass it.

    It is None until `Instruction.resolved` or `Instruction.located` fills it in.
    """
    return field(default=None, metadata={"taken": True, "doc": doc})


@dataclass(frozen=True, slots=True)
class GlobalTraffic:
    """The demand of a transfer on the shared memory system; `of_ub`: from or to the Unified Buffer.

    `row_bytes` are those of a stretch without a gap. `pitch_bytes` is how far rows are apart whose
    starts matter for the time, else 0; `conflict_cycles` is how much longer the transfer takes of
    L2 for it.
    """

    size_bytes: int
    row_bytes: int
    writes: bool
    of_ub: bool = False
    pitch_bytes: int = 0
    conflict_cycles: float = 0.0

    @staticmethod
    def of_rows(
        rows: int, row_bytes: int, pitch_bytes: int, *, writes: bool, of_ub: bool = False
    ) -> "GlobalTraffic":
        """Return the traffic of rows whose starts do not matter.

        Rows that follow without a gap are one stretch.
        """
        size = rows * row_bytes
        stretch = size if size and pitch_bytes == row_bytes else row_bytes
        return GlobalTraffic(size, stretch, writes, of_ub)


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """Whole cycles on the instruction's pipe.

    `busy` when it follows another without a gap, `idle_head` more when the pipe had to wait for it;
    `traffic` goes to L2 and device memory.
    """

    busy: int
    idle_head: int = 0
    traffic: GlobalTraffic | None = None


@dataclass(frozen=True, slots=True)
class InnerCall:
    """An event inside of an instruction: a call on a lane of its own, at a line.

    `start` and `end` are cycles before the instruction's end, so negative. `cause` is what it
    waited for, empty where it started as soon as it could.
    """

    lane: str
    name: str
    start: int
    end: int
    line: Line
    cause: str = ""


class Instruction(Template, CapiForms, RegisterUse, Placement):
    """Base of all templates; subclasses are declared with `@instruction`.

    What it is, its operands' elements, its meaning, its rules and cost; the bases are its parts.
    """

    __slots__ = ()
    name: ClassVar[str]
    pipe: ClassVar[Pipe]
    names: ClassVar[Mapping[str, str]]
    source: ClassVar[str]
    uncertain: ClassVar[tuple[str, ...]]
    archs: ClassVar[tuple[str, ...]]
    arch_types: ClassVar[Mapping[str, tuple[str, ...]]]
    """Element types by architecture, where it takes fewer than the declaration has."""
    declared: ClassVar[tuple[Operand, ...]] = ()
    copies: ClassVar[bool] = False
    carried: ClassVar[bool] = False
    """True if it stands for a function of architecture 3510's class API: its C API lacks it."""
    atomically: ClassVar[str] = ""
    """The common name of accesses of global memory, by any cores, that may meet; "": nothing."""
    to_partner: ClassVar[bool] = False
    """True of a copy into a memory of another part of the AI Core (`isa.mte.partner`)."""
    is_function: ClassVar[bool] = False
    """True of a vector function: where there are any, all vector work is, one behind another."""
    propagates: ClassVar[bool] = False
    """True if an uninitialised element makes the result's element uninitialised, not a finding."""
    pairs: ClassVar[tuple[tuple[str, str], ...]] = (("dst", "src"),)
    """The moves of a copy: operands in pairs, target first."""
    steps: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Strides and gaps, each with the count of repetitions that it lies between.

    One of a single repetition is not judged. What `ranges.STRIDES` names goes without saying."""

    def operands(self) -> tuple[Operand, ...]:
        """Return the operands that this template uses, in the order of its addresses.

        Those whose address comes from a register stand last, and in a resolved template alone.
        """
        return self.declared

    def fill(self, registers: Registers) -> bytes | None:
        """Return what a copy puts where its source's offset is negative: -1 is the first element.

        No bytes stand for zeros; None leaves what is filled unwritten.
        """
        return b""

    def filling(self) -> tuple[NDArray[np.bool_], str] | None:
        """Return which elements of dst a copy writes beyond the data that it was asked for.

        They are shaped as dst's offsets, with the words for what they lie behind. Padding of which
        the caller gives the value is data. None: there is none.
        """
        return None

    def padding(
        self, ready: NDArray[np.bool_], *, whole: bool = False
    ) -> tuple[NDArray[np.bool_], str] | None:
        """Return which unwritten elements of a source are stored because they stand beside data.

        `ready` are those that were written. `whole`: those count too that could have been left out.
        The words say what the padding lies behind, as those of `filling` do. None: there is none.
        """
        return None

    def offsets(self, operand: str) -> Offsets:
        """Return element offsets from the operand's address; negative ones are filled."""
        method: Callable[[], Offsets] = getattr(self, f"offsets_{operand}")
        return method()

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """Return which elements the mask lets through, shaped as the offsets; None means all."""
        return None

    def unmet(self, registers: Registers) -> list[Violation]:
        """Return what this template needs of the registers and does not find there.

        Under set_atomic a store of values has the type that was set.
        """
        wanted = registers.atomic_type
        if not registers.atomic or self.copies:
            return []
        return [
            Violation(f"{self.name}.{o.name}", f"be {wanted}, as set_atomic says", element.name)
            for o in self.operands()
            if o.mem is Mem.GM and o.access.writes and (element := self.element(o)).name != wanted
        ]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Return the written operands' new values; a copy moves its source instead."""
        raise NotImplementedError(f"{self.name} declares no computation")

    def known(self, ready: Mapping[str, NDArray[np.bool_]]) -> Mapping[str, NDArray[np.bool_]]:
        """Return which elements are known of written operands, where it propagates.

        `ready` are those of operands some of whose elements were never written.
        """
        defined = np.logical_and.reduce(list(ready.values()))
        return {o.name: defined for o in self.operands() if o.access.writes}

    def needs(self, ready: Mapping[str, NDArray[np.bool_]]) -> tuple[Remark, ...]:
        """Return findings about elements that were never written, where it propagates.

        `ready` is as of `known`.
        """
        return ()

    def beyond(self, operand: str, address: int, size: int) -> tuple[str, int, int, Line] | None:
        """Return its own first access that leaves `size` bytes, of an operand at an address.

        That is the access's name, its bytes [start, end) and its line; None where the operand is
        all that there is to tell.
        """
        return None

    def calls_inside(self, chip: Chip) -> tuple[InnerCall, ...]:
        """Return what happens inside of it, where it is made of calls of its own."""
        return ()

    def reordered(self, choose: Callable[[int], int]) -> "Instruction":
        """Return it with its own accesses in another legal order, where it has several.

        `choose` says which of so many that may be the next one is.
        """
        return self

    def run(
        self, inputs: Mapping[str, Array], registers: Registers
    ) -> tuple[Mapping[str, Array], Registers]:
        """Return what `compute` and `leaves` do."""
        return self.compute(inputs, registers), self.leaves(inputs, registers)

    @property
    def shares_units(self) -> bool:
        """True if it waits for the flags that L0C has for each 512 B (the unit flag)."""
        return False

    @property
    def hands_units_over(self) -> bool:
        """True if it turns the flags that it has waited for."""
        return False

    def keeps_behind(self, earlier: "Instruction", mem: Mem) -> bool:
        """True if the hardware keeps its accesses to `mem` behind those of an earlier instruction.

        Flags and barriers are not meant; what they order is known without asking. The scalar unit's
        own accesses are in order.
        """
        if self.pipe is Pipe.S and earlier.pipe is Pipe.S:
            return True
        if self.pipe is Pipe.V is earlier.pipe and (self.is_function or earlier.is_function):
            return True
        return mem is Mem.L0C and self.shares_units and earlier.shares_units

    @property
    def size_bytes(self) -> int:
        """Bytes that it moves; 0 where the ranges of its parameters keep them few."""
        return 0

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Return what this template breaks beyond the ranges of its parameters."""
        return []

    def remarks(self, chip: Chip) -> tuple[Remark, ...]:
        """Return the findings that the template alone decides, wherever its operands lie."""
        return ()

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles on the pipe."""
        return InstructionCost(0)

    def element(self, operand: Operand) -> ElementType:
        """Return the operand's element type."""
        element: ElementType = getattr(self, operand.element)
        return element

    def violations(self, chip: Chip, *, letter: bool = False) -> list[Violation]:
        """Return every broken range, type and precondition, in declaration order.

        A stride of repetitions that do not exist is judged to the `letter` of its range alone.
        """
        violations = [
            v
            for f in fields(self)  # type: ignore[arg-type]
            for v in ranges.field_violations(self, f, chip.arch)
            if letter or not self.is_idle(f.name)
        ]
        if chip.arch not in self.archs:
            violations.append(
                Violation(self.name, f"run on architecture {' or '.join(self.archs)}", chip.arch)
            )
        return (
            violations
            or ranges.arch_type_violations(self, self.arch_types.get(chip.arch), chip.name)
            or self.preconditions(chip)
        )

    @property
    def unlisted_types(self) -> tuple[str, ...]:
        """Element types that it takes as it stands, though its page does not list them."""
        return ()

    def is_idle(self, name: str) -> bool:
        """Return whether a parameter is a stride that lies between no two repetitions."""
        count = self.steps.get(name)
        return count is not None and getattr(self, count) <= 1


DECLARED: dict[str, type[Instruction]] = {}
"""Instructions by name, as far as their modules are imported; `isa.catalogue` has them all."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def instruction(
    name: str,
    pipe: Pipe,
    *,
    source: str,
    names: Mapping[str, str] | None = None,
    uncertain: tuple[str, ...] = (),
    archs: tuple[str, ...] = ("2201",),
    since: str = "",
    kirin: Kirin | None = None,
    carried: bool = False,
    copies: bool = False,
    listed: bool = True,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[type[Any]], type[Any]]:
    """Declare an instruction: freeze the class, collect its operands, enter it in the registry.

    `names` gives its name in other dialects; `variants` further names of the C API with the
    parameters that each fixes; `since` the earliest AI Core that has it, if one before 2201's does;
    `kirin` what the Kirin chips' pages say of it, if they have it; `carried` that it also stands
    for a function of architecture 3510's class API; `uncertain` lists inferred
    semantics, which the manual repeats; `copies` says that it moves bytes, so that uninitialised
    bytes travel instead of being a finding; `listed` that the catalogue has it: what no call names
    is not there.
    """

    def declare(cls: type[Any]) -> Any:
        frozen: Any = parameters(cls)
        frozen.name, frozen.pipe, frozen.source = name, pipe, source
        frozen.names = MappingProxyType(dict(names or {}))
        notes = (*(kirin.notes if kirin else ()), *((common_3510.CARRIED,) if carried else ()))
        frozen.uncertain, frozen.copies, frozen.carried = (*uncertain, *notes), copies, carried
        frozen.arch_types = MappingProxyType(kirin.types if kirin else {})
        of_class_api = common_3510.ARCH if carried else ()
        frozen.archs = (*archs, *of_class_api, *from_on(since), *frozen.arch_types)
        frozen.variants = MappingProxyType(dict(variants or {}))
        named = (ranges.attributes_of(each, Operand) for each in reversed(cls.__mro__))
        operands = {n: v for some in named for n, v in some.items()}  # a subclass redeclares one
        frozen.declared = tuple(operands.values())
        frozen.steps = MappingProxyType({**dict(ranges.strides_of(frozen)), **frozen.steps})
        uses = [(o.mem, o.access.writes, o.access.reads) for o in frozen.declared]
        frozen.overlap = frozen.overlap if ranges.may_overlap(uses) else ""
        frozen.offsets = lru_cache(maxsize=64)(frozen.offsets)
        if name in DECLARED:
            raise ValueError(f"instruction {name} is declared twice")
        if listed:
            DECLARED[name] = frozen
        return frozen

    return declare

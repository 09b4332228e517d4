"""Comparisons: into CMPMASK for one repeat, or into the Unified Buffer as bits; and CMPMASK."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import LATE_ANY, Member, declare
from cubecore.isa.vector.common.repeated import Repeated, wide
from cubecore.isa.vector.elementwise.binary import BinaryStrides
from cubecore.isa.vector.elementwise.unary import SCALAR_DOC, UnaryStrides, scalar_violations
from cubecore.layouts import Offsets
from cubecore.numerics.conversion import value_of

UINT8 = element_type("uint8")
CMP_MASK_BYTES = 16


def packed_bits(bits: Array) -> Array:
    """Return booleans as bytes, the first element in the lowest bit."""
    return np.packbits(bits, axis=-1, bitorder="little")


def bytes_of_masks(masks: Sequence[int]) -> NDArray[np.uint8]:
    """Return the bytes of several cores' CMPMASKs, the lowest one first: [cores, 16]."""
    raw = b"".join([mask.to_bytes(CMP_MASK_BYTES, "little") for mask in masks])
    return np.frombuffer(raw, np.uint8).reshape(len(masks), CMP_MASK_BYTES)


def lanes_of_masks(masks: Sequence[int]) -> NDArray[np.bool_]:
    """Return the bits of several cores' CMPMASKs: [cores, 128]."""
    return np.unpackbits(bytes_of_masks(masks), axis=1, bitorder="little").view(np.bool_)


def relation(function: Callable[[Array, Array], Any], x: Array, y: Array) -> Array:
    """Return the relation of two arrays; of NaN every one is false, `not equal` too."""
    with np.errstate(all="ignore"):
        holds = np.asarray(function(x, y))
        if function is np.not_equal and x.dtype.kind == "f":  # the only one that NaN makes true
            return holds & ~(np.isnan(x) | np.isnan(y))
        return holds


@parameters
class CompareToRegister(BinaryStrides):
    """CMPMASK[lane] = whether src0 and src1 relate so; one repeat, whatever `repeat` says.

    Bits of lanes that the mask excludes, and of a 32-bit type the upper 64 bits, keep their old
    value. Of NaN every relation is false, `not equal` too.
    """

    count_form = None
    in_repeats = False
    reads_left = True
    register = "cmp_mask"
    function: ClassVar[Callable[[Array, Array], Any]]
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)

    @property
    def repeats(self) -> int:
        """Always 1."""
        return 1

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Write no memory."""
        return {}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Replace the bits of active lanes."""
        x, y = (wide(inputs[name], self.dtype) for name in ("src0", "src1"))
        results, lanes = self.results(x, y)
        # `lanes` are the bits of this comparison's lanes: the others of the register stay.
        new = int.from_bytes(packed_bits(results).tobytes(), "little")
        return registers.leaving("cmp_mask", registers.cmp_mask & ~lanes | new)

    def results(self, x: Array, y: Array) -> tuple[Array, int]:
        """Return which active lanes relate so, and the bits of all active lanes."""
        results, on = relation(type(self).function, x, y), self.active("src0")
        if on is None or on.all():
            return results, (1 << self.width) - 1
        return results & on, int.from_bytes(packed_bits(on).tobytes(), "little")


class BitsOut(Repeated):
    """Comparisons into memory: without a mask, the bits of one repeat behind the last one's."""

    count_form = None
    in_repeats = False
    dst_type: ClassVar[ElementType] = UINT8
    dtype: ElementType

    @property
    def widest(self) -> ElementType:
        """The sources' type."""
        return self.dtype

    @property
    def repeats(self) -> int:
        """As stated, in counter mode too."""
        return self.repeat

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """Every lane."""
        return None

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The mask does not count."""
        return []

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes], of dst [repeats, lanes / 8]."""
        if operand != "dst":
            return super().offsets(operand)
        size = self.width // 8
        return np.arange(self.repeats * size, dtype=np.intp).reshape(self.repeats, size)


@parameters
class Compare(BitsOut, BinaryStrides):
    """dst = whether src0 and src1 relate so, a bit for each lane; the mask does not count.

    The first lane is the lowest bit of the first byte; each repeat's bits follow the last one's, so
    dst's strides have no effect. Of NaN every relation is false, `not equal` too.
    """

    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat byte", "dst_type")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compare every lane."""
        x, y = (wide(inputs[name], self.dtype) for name in ("src0", "src1"))
        return {"dst": packed_bits(relation(type(self).function, x, y))}


@parameters
class CompareScalar(BitsOut, UnaryStrides):
    """dst = whether src and the scalar relate so, a bit for each lane; the mask does not count.

    The first lane is the lowest bit of the first byte; each repeat's bits follow the last one's, so
    dst's strides have no effect. Of NaN every relation is false, `not equal` too.
    """

    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat byte", "dst_type")
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    value: int = param(-(2**63), 2**64 - 1, SCALAR_DOC)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The scalar has at most the bits of its type, or 32; the mask does not count."""
        return scalar_violations(self.name, self.value, self.dtype)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compare every lane."""
        y = wide(value_of(self.value, self.dtype), self.dtype)
        x = wide(inputs["src"], self.dtype)
        return {"dst": packed_bits(relation(type(self).function, x, y))}


RELATIONS: tuple[tuple[str, str, Callable[[Array, Array], Any]], ...] = (
    ("eq", "src0 is equal to src1", np.equal),
    ("ne", "src0 is not equal to src1", np.not_equal),
    ("lt", "src0 is less than src1", np.less),
    ("le", "src0 is at most src1", np.less_equal),
    ("gt", "src0 is greater than src1", np.greater),
    ("ge", "src0 is at least src1", np.greater_equal),
)
_CONSECUTIVE = (
    "the bits of each repeat follow those of the one before, and a count does not change how many "
    "repeats there are: inferred from the basic API",
)
_PAGE = "boundary values of Memory vector compute, tables 30 and 31"


def _members(suffix: str, doc: str, function: Callable[[Array, Array], Any]) -> None:
    """Declare the three forms of a relation; int32 is compared for equality alone."""
    of = (*HALF_AND_FLOAT, "int32") if suffix == "eq" else HALF_AND_FLOAT
    common: dict[str, Any] = {"does": function, "uncertain": _CONSECUTIVE}
    register = Member(
        name=f"vcmp_{suffix}",
        since="m100",
        c_api=f"asc_{suffix}",
        cpp="Compare",
        tik=f"vec_cmpv_{suffix}",
        doc=f"Note in CMPMASK where {doc}",
        does=function,
        types=HALF_AND_FLOAT,
    )
    tensor = Member(
        name=f"vcmpv_{suffix}",
        since="m100",
        c_api=f"asc_{suffix}",
        cpp="Compare",
        doc=f"Note as bits where {doc}",
        types=of,
        late=LATE_ANY,
        **common,
    )
    scalar = Member(
        name=f"vcmpvs_{suffix}",
        since="2002",
        c_api=f"asc_{suffix}_scalar",
        cpp="Compares",
        doc=f"Note as bits where {doc.replace('src1', 'the scalar').replace('src0', 'src')}",
        types=of,
        late=LATE_ANY,
        **common,
    )
    declare(CompareToRegister, register, __name__, source=_PAGE)
    declare(Compare, tensor, __name__, source=_PAGE)
    declare(CompareScalar, scalar, __name__, source=_PAGE)


for _row in RELATIONS:
    _members(*_row)


@instruction(
    "set_cmpmask",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_set_cmp_mask", "cpp": "SetCmpMask"},
    source="asc-devkit, asc_set_cmp_mask (2201); basic API, SetCmpMask",
    carried=True,
)
class SetCmpmask(Instruction):
    """Load CMPMASK's 128 bits from the Unified Buffer.

    What they are is up to vsel's mode: bits of lanes, a scalar, or the address of bits.
    """

    register = "cmp_mask"
    byte_type: ClassVar[ElementType] = UINT8
    src = read(Mem.UB, "byte", "byte_type", align_bytes=CMP_MASK_BYTES)

    def offsets_src(self) -> Offsets:
        """Shape [16]."""
        return np.arange(CMP_MASK_BYTES, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Write no memory."""
        return {}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Take the bytes, the first one lowest."""
        return registers.leaving("cmp_mask", int.from_bytes(inputs["src"].tobytes(), "little"))


@instruction(
    "get_cmpmask",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_get_cmp_mask", "cpp": "GetCmpMask"},
    source="asc-devkit, asc_get_cmp_mask (2201); basic API, GetCmpMask",
    uncertain=("16 bytes are written, though dst must hold 128 by the basic API's page",),
    carried=True,
)
class GetCmpmask(Instruction):
    """Store CMPMASK's 128 bits in the Unified Buffer; of a 32-bit comparison 8 bytes are new."""

    reads_left = True
    register = "cmp_mask"
    byte_type: ClassVar[ElementType] = UINT8
    dst = write(Mem.UB, "byte", "byte_type", align_bytes=CMP_MASK_BYTES)

    def offsets_dst(self) -> Offsets:
        """Shape [16]."""
        return np.arange(CMP_MASK_BYTES, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Give the bytes, the lowest one first."""
        raw = registers.cmp_mask.to_bytes(CMP_MASK_BYTES, "little")
        return {"dst": np.frombuffer(raw, np.uint8)}

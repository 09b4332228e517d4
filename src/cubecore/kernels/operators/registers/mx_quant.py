"""bfloat16 to mxfp4 in registers: float4_e2m1, and a scale for 32 rows of a column.

Successive rows share a scale, as those of B of an MX product do along K. A scale is a power of two,
of which float8_e8m0fnu keeps the exponent: that of the column's largest magnitude less 2, which is
that of 6, the largest float4_e2m1 (OCP Microscaling Formats 1.0, section 6.3). Groups of 32 rows
are dealt out to the vector cores, parts of rows too where there are fewer groups. Of infinities and
NaN the codes are not those of that document.
"""

from dataclasses import dataclass

from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.errors import refuse
from cubecore.isa.mte.copies_unaligned_3510 import CopyGmToUbufAlignV2, CopyUbufToGmAlignV2
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import Launch, TensorSpec
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.launch import Share, ShareBlock
from cubecore.kernels.operators.registers.lane_calls import LaneCalls, issue_in_region
from cubecore.units import align_up

GROUP = 32
"""Rows of a column that share a scale."""
_LANES = 128
_MOST_COLUMNS = 1024
_UNIT = 64
"""Columns whose codes fill a block of 32 bytes."""
_BF16, _CODES, _BITS, _SIGNED = (
    element_type(name) for name in ("bfloat16", "float4_e2m1fn", "uint16", "int16")
)
_FRACTION = 7
"""Bits of a bfloat16 below its exponent."""
_MAGNITUDE, _EXPONENT = 0x7FFF, 0x7F80
_LARGEST_EXPONENT, _OF_ONE = 2, 127
"""The exponent of 6; that of 1, in bfloat16 and in float8_e8m0fnu."""


@dataclass(frozen=True, slots=True)
class MxQuantShape:
    """`rows` rows of `columns` elements of bfloat16.

    Raises
    ------
    RequestError
        If rows make no whole groups, or a row's codes no whole bytes.
    """

    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows % GROUP:
            need = f"be a multiple of {GROUP}, which share a scale"
            raise refuse("the rows of mx_quant", need, self.rows)
        if self.columns % 2:
            raise refuse("the columns of mx_quant", "be even, two codes a byte", self.columns)

    def share(self, cores: int) -> Share:
        """Return how groups of rows, and parts of them, are dealt out."""
        whole = ShareBlock(self.rows // GROUP, self.columns)
        return Share.in_parts(whole, cores, _UNIT)


def mx_quant_launch(shape: MxQuantShape, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch on the vector cores of a chip of 3510, or on so many of them."""
    trees: dict[ShareBlock, _Tree] = {}
    programs = []
    share = shape.share(cores or chip.require("aiv_count", "an operator"))
    for core, block, first in share.begins():
        tree = trees.setdefault(block, _Tree(shape, block))
        group, column = divmod(first, shape.columns)
        element = group * GROUP * shape.columns + column
        begins = {"x": element * _BF16.size_bytes, "y": element // 2, "scale": first}
        slots = {tree.slots[name]: (name, begin) for name, begin in begins.items()}
        programs.append(on_vector_core(core, tree.program, slots))
    size = shape.rows * shape.columns
    tensors = (
        TensorSpec("x", size * _BF16.size_bytes),
        TensorSpec("y", size // 2, output=True),
        TensorSpec("scale", size // GROUP, output=True),
    )
    return Launch(tensors, tuple(programs), KIND)


class _Tree:
    """The tree of a core with so many groups of rows, and columns of them."""

    def __init__(self, shape: MxQuantShape, block: ShareBlock) -> None:
        b = Builder(f"mx_quant_{block.rows}x{block.columns}", KIND)
        self.shape, self.builder, self.flags = shape, b, Flags(b)
        self.slots = {name: b.slot(name) for name in ("x", "y", "scale")}
        self.width = min(block.columns, _MOST_COLUMNS)
        self.pitch = align_up(self.width, _LANES)
        tile = GROUP * self.pitch
        sizes = {"x": tile * _BF16.size_bytes, "y": tile // 2, "scale": self.pitch}
        self.buffers = DoubleBuffers.in_regions(sizes)
        self.ring = Ring(b, "buffer", 2)
        with self.flags.raised(of_tiles(2)), b.loop("group", block.rows) as group:
            for piece, columns in b.split("piece", block.columns, self.width):
                self._tile(group, piece, columns)
        self.program = b.finish()

    def _tile(self, group: Expr, piece: Expr, columns: int) -> None:
        flags, event, whole = self.flags, self.ring.at, self.shape.columns
        # One tile: MTE2 loads when V has read the buffer; V converts when MTE3 has stored what was
        # there; codes go out row by row, the scales of all 32 rows as one run.
        column = piece * self.width
        element = group * GROUP * whole + column
        flags.wait("V", "MTE2", event)
        self._load(Expr.of(self.slots["x"]) + element * _BF16.size_bytes, columns)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        flags.wait("MTE3", "V", event)
        issue_in_region(self.builder, self._quantising(columns), self.buffers, event)
        flags.set("V", "MTE2", event)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        begin = group * (GROUP * whole // 2) + piece * (self.width // 2)
        self._store("y", Expr.of(self.slots["y"]) + begin, columns // 2, whole // 2)
        self._store("scale", Expr.of(self.slots["scale"]) + group * whole + column, columns, 0)
        flags.set("MTE3", "V", event)
        self.ring.next()

    def _load(self, source: Expr, columns: int) -> None:
        size = _BF16.size_bytes
        copy = CopyGmToUbufAlignV2(
            dtype=_BF16,
            n_burst=GROUP,
            len_burst=columns * size,
            src_stride=self.shape.columns * size,
            dst_stride=self.pitch * size,
        )
        self.builder.issue(copy, self.buffers.of("x", self.ring.at), source)

    def _store(self, name: str, into: Expr, length: int, apart: int) -> None:
        """Store a group's codes, whose rows lie `apart` bytes, or its row of scales."""
        rows = {"n_burst": GROUP, "dst_stride": apart, "src_stride": self.pitch // 2}
        copy = CopyUbufToGmAlignV2(
            dtype=element_type("uint8"), len_burst=length, **(rows if apart else {"n_burst": 1})
        )
        self.builder.issue(copy, into, self.buffers.of(name, self.ring.at))

    def _quantising(self, columns: int) -> Issued:
        """Return the function that converts a group: 128 columns of 32 rows, and the next ones."""
        calls = LaneCalls(Location("mx_quant.py", 0, "mx_quant"))
        x, y, scales = (self.buffers.first(name) for name in ("x", "y", "scale"))
        every = calls.all_halves()
        magnitude, exponent, twice = (
            calls.operate("Duplicate", dtype=_BITS, code=code, mask=every)
            for code in (_MAGNITUDE, _EXPONENT, 2 * _OF_ONE << _FRACTION)
        )
        least = _LARGEST_EXPONENT << _FRACTION
        for first in range(0, columns, _LANES):
            width = min(_LANES, columns - first)
            mask, bytes_on = calls.count(width, _BITS), calls.count(width // 2)
            # Magnitudes have no sign and compare as integers. Their exponents stay where a bfloat16
            # has them: that of the scale is 2 less, that of its inverse has the other sign.
            largest = calls.operate("Duplicate", dtype=_BITS, code=0, mask=every)
            for row in range(GROUP):
                lanes = calls.load(x + 2 * (row * self.pitch + first), _BITS, "NORM", "x")
                size = calls.operate("And", lanes, magnitude, dtype=_BITS, mask=mask)
                largest = calls.operate("Max", largest, size, dtype=_BITS, mask=mask)
            largest = calls.operate("And", largest, exponent, dtype=_BITS, mask=every)
            largest = calls.operate("Maxs", largest, dtype=_SIGNED, code=least, mask=every)
            of_scale = calls.operate("Adds", largest, dtype=_SIGNED, code=-least, mask=every)
            scale = calls.operate("ShiftRights", of_scale, dtype=_BITS, code=_FRACTION, mask=every)
            calls.store(scales + first, scale, element_type("uint8"), "PACK_B16", mask, "scale")
            inverse = calls.operate("Sub", twice, of_scale, dtype=_SIGNED, mask=every)
            for row in range(GROUP):
                lanes = calls.load(x + 2 * (row * self.pitch + first), _BF16, "NORM", "x again")
                lanes = calls.operate("Mul", lanes, inverse, dtype=_BF16, mask=mask)
                codes = calls.operate(
                    "Cast", lanes, mode="ZERO.SAT.CAST_RINT", dtype=_CODES, source=_BF16, mask=mask
                )
                at = y + (row * self.pitch + first) // 2
                calls.store(at, codes, element_type("uint8"), "PACK4_B32", bytes_on, "codes")
        return calls.issued

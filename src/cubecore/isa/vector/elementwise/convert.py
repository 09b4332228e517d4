"""Conversions between element types, as one family; each pair with its rounding modes."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Mem, choice, param, read, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import Member, declare
from cubecore.isa.vector.elementwise.unary import UnaryStrides
from cubecore.numerics import round_float, saturate, wrap
from cubecore.numerics.conversion import to_float, to_integer, to_integral

_LANES_OF_A_BYTE = 0x5555_5555_5555_5555_5555_5555_5555_5555


@parameters
class Convert(UnaryStrides):
    """dst = src in another element type, lane by lane; the wider type decides how many lanes.

    float to integer: NaN gives 0, infinity the largest or smallest integer; what is beyond the
    range too, or its low bits under CTRL[59] and CTRL[60]. Integer to a narrower integer: likewise.
    To half and bfloat16: NaN gives 0 and infinity the largest finite value, unless CTRL[48]. float
    to float: an integral value, -0 becomes +0, as half's does. An int32 that would round to 2^31 in
    float becomes the number below it. Of a 4-bit type, two lanes share a byte: the mask
    must treat them alike.
    """

    src_type: ClassVar[ElementType]
    dst_type: ClassVar[ElementType]
    rounding: str = choice("rounding", "none", default="none")
    dst = write(Mem.UB, "repeat lane", "dst_type")
    src = read(Mem.UB, "repeat lane", "src_type")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Convert."""
        pair = (self.src_type, self.dst_type)
        with np.errstate(all="ignore"):  # signalling NaN
            return {"dst": convert(inputs["src"], *pair, self.rounding, registers)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Both lanes of a byte are on, or both off."""
        violations = super().preconditions(chip)
        lanes = self.lanes
        if violations or lanes is None or min(self.src_type.bits, self.dst_type.bits) >= 8:
            return violations
        mask = f"{self.name}: the vector mask"
        if lanes.counts:
            odd = lanes.count % 2
            return [Violation(mask, "count an even number", str(lanes.count))] if odd else []
        # Bit i of x ^ (x >> 1) says that lanes i and i + 1 differ; every second one is a pair in a
        # byte. `x & -x` isolates the lowest such bit.
        unlike = (lanes.bits ^ lanes.bits >> 1) & _LANES_OF_A_BYTE
        if not unlike:
            return []
        lane = (unlike & -unlike).bit_length() - 1
        return [Violation(mask, "treat both lanes of a byte alike", f"lane {lane} unlike the next")]


_LARGEST_OF_INT32 = np.float32(2147483520)
"""The largest int32 in float32: the number below 2^31 (boundary values, table 32)."""
_EXACT_IN_FLOAT64 = 53
"""Bits of the widest integers that float64 holds."""


def convert(
    values: Array, source: ElementType, target: ElementType, rounding: str, registers: Registers
) -> Array:
    """Return `values` of type `source` in `target`, as `Convert` describes."""
    # Four cases by the two kinds. Each takes an intermediate that holds every source value exactly
    # (float64, int64), so that only the final step rounds.
    if source.kind == "float" and target.kind == "float":
        if target is source:
            whole = to_integral(values.astype(np.float64), rounding).astype(target.numpy)
            return np.where(whole == 0, np.zeros((), target.numpy), whole)
        if target.bits > source.bits:
            wider = values.astype(target.numpy)
            if source.name == "float16":
                wider = np.where(wider == 0, np.zeros((), target.numpy), wider)
            return wider
        finite = not registers.float_ieee
        if rounding in {"none", "rint"}:
            return round_float(values, target, finite=finite)
        return to_float(values.astype(np.float64), target, rounding, finite=finite)
    if source.kind == "float":
        exact = values.astype(np.float64)
        return to_integer(exact, target, rounding, wraps=registers.cast_wraps)
    exact = values.astype(np.int64)
    if target.kind == "float":
        # int64 has more bits than float64 holds: it is rounded to the target straight from the
        # integer, as rounding twice could differ.
        held = exact if source.bits > _EXACT_IN_FLOAT64 else exact.astype(np.float64)
        converted = to_float(held, target, rounding, finite=False)
        return np.minimum(converted, _LARGEST_OF_INT32) if source.name == "int32" else converted
    return (wrap if registers.cast_wraps else saturate)(exact, target)


_SHORT = {
    "s4": "int4",
    "s8": "int8",
    "u8": "uint8",
    "s16": "int16",
    "s32": "int32",
    "s64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
}
_SUFFIXES = {
    "": "none",
    "_rn": "rint",
    "_rna": "round",
    "_rd": "floor",
    "_ru": "ceil",
    "_rz": "trunc",
    "_ro": "odd",
}
_DIRECTED = ("_rn", "_rna", "_rd", "_ru", "_rz")
_ANY = ("", *_DIRECTED)
_OVER = (
    "beyond the largest value every rounding gives infinity (IEEE keeps the largest in some): the "
    "documents do not say for which rounding they give it",
)
_ZERO = ("the page prints 0 for -0 of half, without a sign: +0",)
_BELOW = (
    "the page prints 2147483520 for the largest int32 and names no rounding: it holds in each, and "
    "for every int32 that would round to 2^31",
)
_CTRL_60 = ("CTRL[59] counts under CTRL[60] on this architecture too: documented for both at once",)
_TABLE: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("f16", "f32", "asc_half2float", ("",), _ZERO, "m100"),
    ("bf16", "f32", "asc_bfloat162float", ("",), (), ""),
    ("f32", "f16", "asc_float2half", (*_ANY, "_ro"), _OVER, "m100"),
    ("f32", "bf16", "asc_float2bfloat16", _DIRECTED, _OVER, ""),
    ("f32", "f32", "asc_float2float", _DIRECTED, (), ""),
    ("f32", "s16", "asc_float2int16", _DIRECTED, _CTRL_60, ""),
    ("f32", "s32", "asc_float2int32", _DIRECTED, _CTRL_60, "1001"),
    ("f32", "s64", "asc_float2int64", _DIRECTED, _CTRL_60, ""),
    ("f16", "s4", "asc_half2int4", _ANY, _CTRL_60, ""),
    ("f16", "s8", "asc_half2int8", _ANY, _CTRL_60, "m100"),
    ("f16", "u8", "asc_half2uint8", _ANY, _CTRL_60, "m100"),
    ("f16", "s16", "asc_half2int16", _DIRECTED, _CTRL_60, "2002"),
    ("f16", "s32", "asc_half2int32", _DIRECTED, _CTRL_60, "m100"),
    ("bf16", "s32", "asc_bfloat162int32", _DIRECTED, _CTRL_60, ""),
    ("s4", "f16", "asc_int42half", ("",), (), ""),
    ("s8", "f16", "asc_int82half", ("",), (), "m100"),
    ("u8", "f16", "asc_uint82half", ("",), (), "m100"),
    ("s16", "f16", "asc_int162half", _ANY, (), "2002"),
    ("s16", "f32", "asc_int162float", ("",), (), ""),
    ("s32", "f32", "asc_int322float", _ANY, _BELOW, "1001"),
    ("s64", "f32", "asc_int642float", _DIRECTED, (), ""),
    ("s32", "s16", "asc_int322int16", ("",), _CTRL_60, ""),
    ("s32", "s64", "asc_int322int64", ("",), (), ""),
    ("s64", "s32", "asc_int642int32", ("",), _CTRL_60, ""),
)
"""Source, destination, the C API's name, its suffixes, what is inferred, the earliest AI Core."""


def _dense(element: ElementType, other: ElementType) -> int:
    """Blocks of `element` that hold the lanes of one repeat."""
    return 8 * element.bits // max(element.bits, other.bits)


def _member(
    short_source: str,
    short_target: str,
    c_api: str,
    suffixes: tuple[str, ...],
    uncertain: tuple[str, ...],
    since: str,
) -> Member:
    source, target = (element_type(_SHORT[s]) for s in (short_source, short_target))
    words = tuple(_SUFFIXES[s] for s in suffixes)
    limit = 255 if source.name == "int4" else 65535
    parameters: dict[str, tuple[object, object]] = {
        "rounding": (str, choice("rounding", *words, default=words[0])),
        "dst_repeat_stride": (
            int,
            param(0, limit, "32 B between dst's repeats", default=_dense(target, source)),
        ),
        "src_repeat_stride": (
            int,
            param(0, limit, "32 B between src's repeats", default=_dense(source, target)),
        ),
    }
    return Member(
        name=f"vconv_{short_source}2{short_target}",
        since=since,
        c_api=c_api if "" in suffixes else "",
        cpp="Cast",
        tik="vec_conv",
        doc=f"Convert {source} to {target}",
        uncertain=uncertain,
        variants={c_api + s: {"rounding": _SUFFIXES[s]} for s in suffixes if s},
        fixed={"src_type": source, "dst_type": target},
        fields=parameters,
    )


for _source, _target, _c_api, _suffixes, _uncertain, _since in _TABLE:
    declare(
        Convert,
        _member(_source, _target, _c_api, _suffixes, _uncertain, _since),
        __name__,
        source="basic API, Cast; boundary values of Memory vector compute, table 32",
    )

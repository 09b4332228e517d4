"""Names of the C API for conversions in registers, by their types, roundings and layouts."""

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.c_api.signatures import UNARY, CName, parameters_of
from cubecore.isa.vector.registers.operations.convert import CASTS, LAYOUTS

C_TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "float16": ("half", "half"),
        "bfloat16": ("bfloat16", "bfloat16_t"),
        "float32": ("float", "float"),
        "int4": ("int4x2", "int4x2_t"),
        **{
            f"{sign}int{bits}": (f"{sign}int{bits}", f"{sign}int{bits}_t")
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
        },
        "hifloat8": ("hif8", "hifloat8_t"),
        "float8_e4m3fn": ("e4m3", "fp8_e4m3fn_t"),
        "float8_e5m2": ("e5m2", "fp8_e5m2_t"),
        "float8_e8m0fnu": ("e8m0", "fp8_e8m0_t"),
        "float4_e2m1fn": ("e2m1x2", "fp4x2_e2m1_t"),
        "float4_e1m2": ("e1m2x2", "fp4x2_e1m2_t"),
    }
)
"""By element type: its word in the names of the C API's conversions, and the type in C++.

Registers of it are ``vector_`` with the latter.
"""
_C_ROUNDINGS = {
    "": "CAST_NONE",
    "_rn": "CAST_RINT",
    "_rna": "CAST_ROUND",
    "_rd": "CAST_FLOOR",
    "_ru": "CAST_CEIL",
    "_rz": "CAST_TRUNC",
    "_ro": "CAST_ODD",
    "_rh": "CAST_HYBRID",
}
_IN_CPP_ALONE = frozenset(
    {("int16", "int4"), ("bfloat16", "float8_e8m0fnu"), ("float8_e8m0fnu", "bfloat16")}
)
"""Conversions that the C API has no names for."""


def conversions() -> Iterator[CName]:
    """Yield the names asc_<from>2<to>, with a rounding, `_sat` and a layout each.

    ``asc_float2int16_rna_sat_v2`` rounds ties away, saturates, and fills the odd lanes.
    """
    parameters = parameters_of(UNARY)
    for (source, target), roundings in CASTS.items():
        if (source, target) in _IN_CPP_ALONE:
            continue
        words = f"asc_{C_TYPES[source][0]}2{C_TYPES[target][0]}"
        # All combinations that the C API names: rounding, `_sat` and the layout `_v2`, `_v3`,
        # `_v4`; asc_float2int16_rna_sat_v2 has the mode ONE.SAT.CAST_ROUND.
        saturations = [("", "NO_SAT"), *([("_sat", "SAT")] if _saturates(source, target) else [])]
        for (suffix, rounding), (ending, sat) in product(_C_ROUNDINGS.items(), saturations):
            if rounding not in roundings:
                continue
            for number, layout in enumerate(LAYOUTS[: _positions(source, target)], 1):
                name = f"{words}{suffix}{ending}" + (f"_v{number}" if number > 1 else "")
                mode = f"{layout}.{sat}.{rounding}"
                yield CName(name, "Cast", parameters, mode, source=source, result=target)


def _saturates(source: str, target: str) -> bool:
    """Return whether the C API has names with `_sat`: the source goes beyond the target."""
    given, taken = element_type(source), element_type(target)
    if taken.kind in {"int", "uint"}:
        narrower = taken.bits < given.bits
        return narrower if given.kind != "float" else source != "float16" or taken.bits < 32
    eight = element_type("int8").bits
    if (source, target) == ("bfloat16", "float16"):
        return True
    return given.kind == "float" and eight <= taken.bits < given.bits


def _positions(source: str, target: str) -> int:
    """Return how many narrow elements are in the place of a wide one."""
    widths = sorted(element_type(name).bits for name in (source, target))
    return widths[1] // widths[0]

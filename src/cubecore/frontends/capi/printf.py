"""Output of a kernel while it runs: `dump` and `printf`."""

import re
from collections.abc import Sequence
from typing import Any

from cubecore.errors import refuse, unable
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.declare.instruction import Mem

DUMPS: dict[str, Mem | None] = {
    "asc_dump": None,
    "asc_dump_reg": None,
    "asc_dump_gm": Mem.GM,
    "asc_dump_ubuf": Mem.UB,
    "asc_dump_l1buf": Mem.L1,
    "asc_dump_cbuf": Mem.L0C,
}
"""The C API's names for a dump (asc-devkit, asc_dump), and the memory that each looks into."""
_WORD = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|L|j|z|t)?([diufFxXeEgGscp%])")


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape that was given as one number or as several."""
    if isinstance(shape, int):
        return (int(shape),)
    return tuple(int(extent) for extent in shape)


def formatted(text: str, values: tuple[object, ...]) -> str:
    """Return `text` with `values` in the places of its conversions, as C's printf has them.

    Conversions are d i u f e g x s c p and %%, with flags, width, precision and any length; %p is
    a pointer's address. What prints cannot change a kernel, so that %n is refused.

    Raises
    ------
    RequestError
        If a conversion is not supported, or the values differ from the conversions in number or
        kind.
    """
    if "%" in _WORD.sub("", text):
        raise refuse("printf", "have conversions among %d %i %u %x %f %e %g %s %c %p", repr(text))
    words = [word for word in _WORD.finditer(text) if word[2] != "%"]
    if len(words) != len(values):
        raise refuse("printf", f"have a value for each of {len(words)} conversions", len(values))
    given = tuple(_value(word[2], value) for word, value in zip(words, values, strict=True))
    try:
        return _WORD.sub(lambda word: f"%{word[1]}{_PYTHON.get(word[2], word[2])}", text) % given
    except (TypeError, ValueError, OverflowError) as error:
        raise unable("printf", f"printf of {text!r} fails: {error}") from None


_PYTHON = {"u": "d", "i": "d", "p": "s"}


def _value(kind: str, value: Any) -> Any:
    if kind == "p":
        address = value.address if isinstance(value, Pointer) else int(value)
        return f"{address:#x}"
    if isinstance(value, Pointer) and kind != "s":
        raise refuse("printf", f"print a number as %{kind}", str(value), "%p prints a pointer")
    return value

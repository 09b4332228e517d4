"""Objects of a shared library: those that its functions write, and constants by their address."""

import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_OBJECTS = {1, 6}  # variables, and those of a thread
_OURS = (
    "cubecore",
    "_ZZN8cubecore",
    "_ZN8cubecore",
    "completed.0",
    "__dso_handle",
    "_DYNAMIC",
    "DW.ref",
)


_WRITABLE = 1
_NO_BITS = 8
_SYMBOLS = 2


class LibraryObject(NamedTuple):
    """An object of a library: where it is loaded, and its bytes in the file if it is constant."""

    name: str
    section: str
    address: int
    size: int
    constant: bytes | None


def has_variables(raw: bytes) -> bool:
    """Return whether an ELF file for 64 bits, given its bytes, has objects in writable sections.

    Other formats count as having some.
    """
    if not _is_elf(raw):
        return True
    variables = (o for o in _objects(raw) if o.section in {".data", ".bss", ".tdata", ".tbss"})
    return any(not one.name.startswith(_OURS) for one in variables)


@lru_cache(maxsize=8)
def _objects_of(path: Path) -> tuple[LibraryObject, ...]:
    raw = path.read_bytes()
    return tuple(_objects(raw)) if _is_elf(raw) else ()


def object_at(path: Path, address: int) -> LibraryObject | None:
    """Return the object of a library that holds an address, counted from where it is loaded."""
    for one in _objects_of(path):
        if one.address <= address < one.address + one.size:
            return one
    return None


def _is_elf(raw: bytes) -> bool:
    return raw[:5] == b"\x7fELF\x02"


def _objects(raw: bytes) -> Iterator[LibraryObject]:
    # ELF64 header: e_shoff at 0x28, e_shnum at 0x3C, e_shstrndx at 0x3E. A section header has 64 B:
    # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, alignment, entry
    # size.
    table, count = struct.unpack_from("<Q", raw, 0x28)[0], struct.unpack_from("<H", raw, 0x3C)[0]
    names_at = struct.unpack_from("<H", raw, 0x3E)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", raw, table + 64 * n) for n in range(count)]

    def text(start: int) -> str:
        return raw[start : raw.index(b"\0", start)].decode("utf-8", "replace")

    labels = [text(sections[names_at][4] + section[0]) for section in sections]
    for symbols in sections:
        if symbols[1] != _SYMBOLS:  # the whole symbol table
            continue
        # A symbol has 24 B: st_name, st_info (type in the low four bits), st_other, st_shndx,
        # st_value, st_size; sh_link of the table leads to its names.
        strings = sections[symbols[6]][4]
        for at in range(symbols[4], symbols[4] + symbols[5], 24):
            name, info, _, number, address, size = struct.unpack_from("<IBBHQQ", raw, at)
            if info & 0xF not in _OBJECTS or not size or number >= count:
                continue
            _, kind, flags, start, offset, *_ = sections[number]
            begin = offset + address - start
            constant = None if flags & _WRITABLE or kind == _NO_BITS else raw[begin : begin + size]
            yield LibraryObject(text(strings + name), labels[number], address, size, constant)

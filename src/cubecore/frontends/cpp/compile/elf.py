"""Variables of a shared library that its functions write: each core needs its own then."""

import struct

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


def has_variables(raw: bytes) -> bool:
    """Return whether an ELF file for 64 bits, given its bytes, has objects in writable sections.

    Other formats count as having some.
    """
    if raw[:5] != b"\x7fELF\x02":
        return True
    table, count = struct.unpack_from("<Q", raw, 0x28)[0], struct.unpack_from("<H", raw, 0x3C)[0]
    names_at = struct.unpack_from("<H", raw, 0x3E)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", raw, table + 64 * n) for n in range(count)]

    def text(start: int) -> str:
        return raw[start : raw.index(b"\0", start)].decode("utf-8", "replace")

    labels = [text(sections[names_at][4] + section[0]) for section in sections]
    writable = {
        n for n, label in enumerate(labels) if label in {".data", ".bss", ".tdata", ".tbss"}
    }
    for section in sections:
        if section[1] != 2:  # the whole symbol table
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, section_number, _, size = struct.unpack_from("<IBBHQQ", raw, at)
            kind = info & 0xF
            variable = section_number in writable and kind in _OBJECTS and size
            if variable and not text(strings + name).startswith(_OURS):
                return True
    return False

"""A tiling's 200 bytes as a hex dump, and back from what common tools print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cubecore.errors import RequestError, Violation, refuse
from cubecore.tiling.model.tcubetiling import SIZE_BYTES, TCubeTiling

BYTES_A_LINE = 16
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_PREFIXED = re.compile(r"0[xX]([0-9a-fA-F]{1,2})\Z")
_OFFSET = re.compile(r"\s*([0-9a-fA-F]{4,16}):\s")
_TEXT_AFTER_COLON = re.compile(r"\s{2,}.*")


def to_hex_dump(tiling: TCubeTiling) -> str:
    """Return the struct as `hexdump -C` shows it, no line left out: offset, 16 bytes, text."""
    data = tiling.to_bytes()
    lines = []
    for start in range(0, SIZE_BYTES, BYTES_A_LINE):
        part = data[start : start + BYTES_A_LINE]
        left, right = part[:8].hex(" "), part[8:].hex(" ")
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in part)
        lines.append(f"{start:08x}  {f'{left}  {right}':<48}  |{text}|")
    return "\n".join([*lines, f"{SIZE_BYTES:08x}"]) + "\n"


def from_hex_dump(text: str, subject: str = "hex dump") -> TCubeTiling:
    """Return the tiling that a hex dump holds.

    Read are the layouts of `hexdump -C`, `xxd`, `xxd -p` and `od -A x -t x1`, bytes as 0x14, and
    bare digits. A line `*` stands for repetitions of the line before, as those tools print it.

    Raises
    ------
    RequestError
        If a line is not hexadecimal, has an odd number of digits or an offset that does not fit, or
        the dump does not have 200 bytes.
    """
    data = bytearray()
    repeats = b""
    last = b""
    has_offsets = False
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{subject}, line {number},"
        if line.strip() == "*":
            if not last:
                raise refuse(where, "repeat a line before it", "'*' at the start")
            repeats = last
            continue
        if not line.strip():
            continue
        read = _line(line, where, has_offsets)
        has_offsets = has_offsets or read.offset is not None
        # A '*' says only that lines repeat; how often follows from the offset of the next line.
        if repeats:
            if read.offset is None:
                raise refuse(where, "have an offset after '*'", repr(line.strip()))
            while len(data) < min(read.offset, SIZE_BYTES):
                data += repeats
            repeats = b""
        if read.offset is not None and read.offset != len(data):
            raise refuse(where, f"have the offset {len(data):08x}", f"{read.offset:08x}")
        data += read.data
        last = read.data or last
    if repeats:
        raise refuse(subject, "have an offset after '*'", "the end")
    if len(data) != SIZE_BYTES:
        raise refuse(subject, f"hold {SIZE_BYTES} bytes in hex", len(data))
    return TCubeTiling.from_bytes(bytes(data), subject)


def looks_like_hex(text: str) -> bool:
    """True if the first line that is not blank is a line of a hex dump."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return bool(_line(first, "", has_offsets=False).data) if first else False
    except RequestError as error:
        return any(v.requirement == _WHOLE_BYTES for v in error.violations)


_WHOLE_BYTES = "hold whole bytes of two digits"


@dataclass(frozen=True)
class _Line:
    offset: int | None
    data: bytes


def _line(line: str, where: str, has_offsets: bool) -> _Line:
    """Return what a line of any of the layouts holds."""
    if match := _OFFSET.match(line):
        digits = _TEXT_AFTER_COLON.sub("", line[match.end() :])
        return _Line(int(match[1], 16), _bytes(digits.split(), where))
    # What is behind "|" are the bytes as text. The first word is an offset if it is too long for a
    # byte and pairs of digits follow, or if nothing follows and lines before had offsets (the end
    # of the dump); else it is bytes without blanks, as `xxd -p` prints them.
    words = line.partition("|")[0].replace(",", " ").split()
    alone = len(words) == 1 and has_offsets
    if words and _HEX.match(words[0]) and 6 <= len(words[0]) <= 16:
        pairs = all(len(word) == 2 for word in words[1:])
        if (alone or (len(words) > 1 and pairs)) and len(words[0]) <= 8:
            return _Line(int(words[0], 16), _bytes(words[1:], where))
    return _Line(None, _bytes(words, where))


def _bytes(words: list[str], where: str) -> bytes:
    digits = "".join(_digits(words, where))
    if len(digits) % 2:
        raise RequestError([Violation(where, _WHOLE_BYTES, f"{len(digits)} digits")])
    return bytes.fromhex(digits)


def _digits(words: list[str], where: str) -> Iterator[str]:
    for word in words:
        if prefixed := _PREFIXED.match(word):
            yield prefixed[1].rjust(2, "0")
        elif _HEX.match(word):
            yield word
        else:
            raise refuse(where, "hold hexadecimal digits", repr(word))

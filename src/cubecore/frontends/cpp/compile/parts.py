"""Files that hold one thing for each part of the kernels in them: objects, libraries.

The second part lies behind the first, which readers of the first alone do not notice.
"""

import struct
from pathlib import Path

_MARK = b"cubecore's other part"
_LENGTH = struct.Struct("<Q")


def joined(first: bytes, second: bytes | None) -> bytes:
    """Return the parts as one file."""
    return first if second is None else first + second + _LENGTH.pack(len(second)) + _MARK


def split(raw: bytes) -> tuple[bytes, bytes | None]:
    """Return the parts of a file; None if it has but one."""
    if not raw.endswith(_MARK):
        return raw, None
    end = len(raw) - len(_MARK) - _LENGTH.size
    (length,) = _LENGTH.unpack_from(raw, end)
    return raw[: end - length], raw[end - length : end]


def other_of(path: Path) -> bytes | None:
    """Return the second part of a file, None if it has none or cannot be read."""
    try:
        with path.open("rb") as held:
            held.seek(-len(_MARK), 2)
            if held.read() != _MARK:
                return None
        return split(path.read_bytes())[1]
    except OSError:
        return None

"""Messages to the process of a user's code and from it, which exchange.h writes and reads there."""

import struct
from collections.abc import Iterator, Sequence

from cubecore.frontends.cpp.wire import MAGIC

_HEAD = struct.Struct("<7I")
"""A `wire.Head`."""
_READ = struct.Struct("<2IQqQ")
"""A `wire.Read`."""
_WORD = struct.Struct("<Q")
_WORDS = tuple(struct.Struct(f"<{count}Q") for count in range(9))
"""Numbers of words that most messages have."""
_ALL = 2**64 - 1


def words(*values: int) -> bytes:
    """Return 64-bit words."""
    masked, count = [value & _ALL for value in values], len(values)
    return _WORDS[count].pack(*masked) if count < 9 else struct.pack(f"<{count}Q", *masked)


def text(raw: bytes) -> bytes:
    """Return a text, as the process reads it."""
    return _WORD.pack(len(raw)) + raw


def command(what: int, parts: Sequence[bytes]) -> bytes:
    """Return a command with its parts, behind its length."""
    raw = b"".join(parts)
    return words(16 + len(raw), what) + raw


def is_whole(raw: bytes) -> bool:
    """Return whether a message is all there."""
    if len(raw) < _HEAD.size:
        return False
    magic, size, *_ = _HEAD.unpack_from(raw)
    found: bool = magic == MAGIC and len(raw) == _HEAD.size + size
    return found


def is_other(raw: bytes) -> bool:
    """Return whether bytes are no message: a kernel has written to the pipe."""
    if len(raw) < _HEAD.size:
        return False
    magic, size, *_ = _HEAD.unpack_from(raw)
    found: bool = magic != MAGIC or len(raw) > _HEAD.size + size
    return found


def reads_of(raw: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the reads that a core has recorded, as `wire.Read` has them.

    They are the issues before, the line, the address of the type's text, the address, and the bits.
    """
    return _READ.iter_unpack(raw)


class Message:
    """A message that has come, read from its first word to its last.

    `recorded`, `addresses` and `reads` count what a core has recorded since the message before.
    """

    __slots__ = ("_at", "_raw", "addresses", "core", "reads", "recorded", "what")

    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, _HEAD.size
        head = _HEAD.unpack_from(raw)
        _, _, self.what, self.core, self.recorded, self.addresses, self.reads = head

    def word(self) -> int:
        """Return the next word."""
        (value,) = _WORD.unpack_from(self._raw, self._at)
        self._at += _WORD.size
        found: int = value
        return found

    def signed(self) -> int:
        """Return the next word, as a number with a sign."""
        value = self.word()
        return value - 2**64 if value >= 2**63 else value

    def raw(self, size: int) -> bytes:
        """Return the next bytes."""
        self._at += size
        return bytes(self._raw[self._at - size : self._at])

    def numbers(self, letter: str, count: int) -> tuple[int, ...]:
        """Return the next numbers, of a letter's type."""
        return struct.unpack(f"<{count}{letter}", self.raw(struct.calcsize(letter) * count))

    def text(self) -> bytes | None:
        """Return the next text; None if the process has none there."""
        size = self.word()
        return None if size == _ALL else self.raw(size)

    def said(self) -> str:
        """Return the next text in letters, empty for none."""
        return (self.text() or b"").decode("utf-8", "replace")

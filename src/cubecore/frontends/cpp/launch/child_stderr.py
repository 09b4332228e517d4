"""A child's standard error: passed on, but for what a library says right before it aborts.

Libraries write a line and call abort. That line belongs to the sentence on the child's end, so the
last one that came is held a moment: it is passed on if the child goes on.
"""

import contextlib
import os
import select

HOLD_S = 0.2
"""Seconds for which the last line is held."""
_STANDARD_ERROR = 2


class StandardError:
    """The pipe in the place of a child's standard error."""

    def __init__(self) -> None:
        self.file, self._write = os.pipe()
        self._held = b""

    @property
    def source(self) -> int:
        """The end that the child writes to."""
        return self._write

    def listen(self) -> None:
        """Keep the end that is read, once the child has the other."""
        os.close(self._write)

    @property
    def holds(self) -> bool:
        """True if a line is held."""
        return bool(self._held)

    def pass_on(self) -> bool:
        """Read what has come, and write all but the last line, with the lines that go on with it.

        A line that begins with a blank goes on with the one before it. Return False at the end.
        """
        part = os.read(self.file, 1 << 16)
        held = self._held + part
        last = len(held.rstrip(b"\n"))
        while (last := held.rfind(b"\n", 0, last)) >= 0 and held[last + 1 : last + 2].isspace():
            pass
        self._written(held[: last + 1])
        self._held = held[last + 1 :]
        return bool(part)

    def let_go(self) -> None:
        """Write the line that is held."""
        self._written(self._held)
        self._held = b""

    def close(self, *, keep: bool) -> str:
        """Return the last line if it is to be kept, which is written otherwise."""
        ready = select.poll()
        ready.register(self.file, select.POLLIN)
        while ready.poll(0) and self.pass_on():
            pass
        os.close(self.file)
        if not keep:
            self.let_go()
        return one_line(self._held)

    @staticmethod
    def _written(text: bytes) -> None:
        with contextlib.suppress(OSError):  # nobody reads it
            while text:
                text = text[os.write(_STANDARD_ERROR, text) :]


def one_line(raw: bytes) -> str:
    """Return a text of the child's as one line."""
    return " ".join(raw.decode("utf-8", "replace").split())

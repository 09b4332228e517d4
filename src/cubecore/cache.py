"""A bounded cache: a dictionary that forgets everything when it is full."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_PROGRAMS = 128
"""Programs of which something derived is kept: those of some ten launches."""


class BoundedCache(dict[K, V]):
    """A dictionary of at most `most` entries; one more empties it first.

    Look-ups cost as those of a plain dictionary do. For caches whose values can be made again.
    """

    def __init__(self, most: int = 4096) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Keep a value; the entries before are dropped if there is no room."""
        if len(self) >= self.most and key not in self:
            self.clear()
        super().__setitem__(key, value)

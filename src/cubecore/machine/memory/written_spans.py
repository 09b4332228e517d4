"""Spans of bytes with what wrote them, looked up by address."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from cubecore.lazy_dataclass import dataclass

By = TypeVar("By")
_BUCKET_BYTES = 1 << 10
_MOST_BUCKETS = 256


@dataclass(eq=False, slots=True)
class _Span(Generic[By]):
    low: int
    high: int
    by: By

    @property
    def buckets(self) -> range:
        return range(self.low // _BUCKET_BYTES, (self.high - 1) // _BUCKET_BYTES + 1)


class WrittenSpans(Generic[By]):
    """Spans of bytes, each with what wrote it; those of one writer that follow each other are one.

    A span is found in any of the buckets of 1 KiB that it lies in, a long one among few others.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, list[_Span[By]]] = {}
        self._long: list[_Span[By]] = []
        self._last: _Span[By] | None = None

    def __bool__(self) -> bool:
        return self._last is not None

    def clear(self) -> None:
        """Forget all spans."""
        if self._last is not None:
            self._buckets.clear()
            self._long.clear()
            self._last = None

    def add(self, low: int, high: int, by: By) -> None:
        """Take that bytes [low, high), at least one, are written."""
        last = self._last
        if last is not None and last.high == low and last.by == by:
            held, last.high = last.buckets, high
            self._enter(last, held.stop)
        else:
            self._last = made = _Span(low, high, by)
            self._enter(made, made.buckets.start)

    def _enter(self, span: _Span[By], first: int) -> None:
        """Put a span into its buckets from one on; it is in those before already."""
        buckets = span.buckets
        if len(buckets) <= _MOST_BUCKETS:
            for bucket in buckets[first - buckets.start :]:
                self._buckets.setdefault(bucket, []).append(span)
        elif first - buckets.start <= _MOST_BUCKETS:
            self._long.append(span)

    def meeting(self, low: int, high: int) -> By | None:
        """Return what wrote one of the bytes [low, high); None if nothing did."""
        for span in self._near(low, high):
            if low < span.high and span.low < high:
                return span.by
        return None

    def _near(self, low: int, high: int) -> Iterator[_Span[By]]:
        buckets = range(low // _BUCKET_BYTES, (high - 1) // _BUCKET_BYTES + 1)
        if len(buckets) > len(self._buckets):
            for held in self._buckets.values():
                yield from held
        else:
            for bucket in buckets:
                yield from self._buckets.get(bucket, ())
        yield from self._long

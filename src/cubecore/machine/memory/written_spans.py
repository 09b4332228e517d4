"""Spans of bytes with what wrote them, looked up by address."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

By = TypeVar("By")
_BUCKET_BYTES = 1 << 10
_MOST_BUCKETS = 256


@dataclass(eq=False, slots=True)
class _Span(Generic[By]):
    low: int
    high: int
    by: By
    epoch: int

    @property
    def buckets(self) -> range:
        return range(self.low // _BUCKET_BYTES, (self.high - 1) // _BUCKET_BYTES + 1)


class WrittenSpans(Generic[By]):
    """Spans of bytes, each with what wrote it; those of one writer that follow each other are one.

    Epochs tell earlier spans from later ones: numbers that only grow. A span is found in any of the
    buckets of 1 KiB that it lies in, a long one among few others, later ones behind earlier ones.
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

    def add(self, low: int, high: int, by: By, epoch: int = 0) -> None:
        """Take that bytes [low, high), at least one, are written in an epoch, the last one."""
        last = self._last
        if last is not None and last.high == low and last.epoch == epoch and last.by == by:
            held, last.high = last.buckets, high
            self._enter(last, held.stop)
        else:
            self._last = span = _Span(low, high, by, epoch)
            self._enter(span, span.buckets.start)

    def _enter(self, span: _Span[By], first: int) -> None:
        """Put a span into its buckets from one on; it is in those before already."""
        buckets = span.buckets
        if len(buckets) <= _MOST_BUCKETS:
            for bucket in buckets[first - buckets.start :]:
                self._buckets.setdefault(bucket, []).append(span)
        elif first - buckets.start <= _MOST_BUCKETS:
            self._long.append(span)

    def meeting(self, low: int, high: int, since: int = 0) -> By | None:
        """Return what wrote one of the bytes [low, high) first in an epoch from `since` on.

        None if nothing did.
        """
        first: _Span[By] | None = None
        for spans in self._near(low, high):
            for span in reversed(spans):
                if span.epoch < since:
                    break
                meets = low < span.high and span.low < high
                if meets and (first is None or span.epoch <= first.epoch):
                    first = span
        return None if first is None else first.by

    def _near(self, low: int, high: int) -> Iterator[list[_Span[By]]]:
        """Yield lists of spans, the earlier ones first."""
        buckets = range(low // _BUCKET_BYTES, (high - 1) // _BUCKET_BYTES + 1)
        if len(buckets) > len(self._buckets):
            yield from self._buckets.values()
        else:
            yield from (held for bucket in buckets if (held := self._buckets.get(bucket)))
        yield self._long

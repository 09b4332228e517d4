"""The looks of a timeline: its figures as text, rows and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.advice.intervals import Interval, interval_line
from cubecore.presented.text import duration, number, table

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.timing.records import Link, Timeline

RECORDED = 2000
"""Instructions of each group of cores that the page of a result in Python draws."""
_SHOWN_STALLS = 5


def timeline_lines(timeline: Timeline, interval: Interval | None = None) -> list[str]:
    """Return a timeline's figures."""
    rate = "" if timeline.tflops is None else f", {number(timeline.tflops)} TFLOPS"
    used = timeline.utilisation
    share = "" if used is None else f" ({used:.{1 if used >= 0.01 else 2}%} of the chip)"
    lines = [
        f"{duration(timeline.us)} ({timeline.cycles:,} cycles), limited by "
        f"{timeline.limited_by}{rate}{share}",
        *([] if interval is None else [interval_line(interval)]),
        "",
        "Pipe busy, average over cores",
    ]
    rows = [
        (pipe, f"{busy:,}", f"{busy / timeline.cycles:.0%}")
        for pipe, busy in timeline.pipes.items()
        if busy
    ]
    lines += table(rows)
    if timeline.stalls:
        rows = [
            (s.pipe, f"{s.cycles:,}", f"waiting for {s.reason}")
            for s in timeline.stalls[:_SHOWN_STALLS]
        ]
        lines += ["", "Longest stalls, average cycles", *table(rows)]
    if timeline.links:
        lines += ["", "Links, over the run", *table([_link_row(link) for link in timeline.links])]
    served = timeline.hbm_read_bytes / timeline.read_bytes if timeline.read_bytes else 0
    lines += [
        "",
        f"Read {_size(timeline.read_bytes)}, {served:.0%} of it from device memory; "
        f"wrote {_size(timeline.written_bytes)}; {timeline.issued:,} instructions",
    ]
    return lines


def _link_row(link: Link) -> tuple[str, ...]:
    rate = f"{number(link.bytes_per_second / 1e9)} GB/s"
    share = "" if link.share is None else f"{link.share:.0%}"
    return (link.name, _size(link.bytes), rate, share)


def _size(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def pipe_rows(timeline: Timeline) -> list[Json]:
    """Return a row for each pipe of a timeline."""
    return [
        {"pipe": pipe, "cycles": cycles, "share": cycles / timeline.cycles}
        for pipe, cycles in timeline.pipes.items()
    ]


def pipe_bars(timeline: Timeline) -> str:
    """Return a picture of how busy the pipes are."""
    from cubecore.presented.card import bars

    busy = {pipe: cycles for pipe, cycles in timeline.pipes.items() if cycles}
    return bars({pipe: cycles / timeline.cycles for pipe, cycles in busy.items()})


def time_figures(timeline: Timeline) -> list[tuple[str, str]]:
    """Return the time, and what limits it."""
    time = f"{duration(timeline.us)} ({timeline.cycles:,} cycles)"
    return [("time", time), ("limited by", timeline.limited_by)]

"""Points: published measurements of real chips, one JSON object a line.

A line that cannot be read as a point is listed with its reason; the others are points. What is
measured has its unit in its name: `*_us` microseconds, `*_ratio` of the core's time, and so on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import unreadable as cannot_read
from cubecore.package_data import packaged
from cubecore.workflows.calibration.columns import (
    FIELDS,
    NEEDED,
    OURS,
    STATED,
    kernel_record,
    wrong_value,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PUBLISHED = packaged("workflows", "calibration", "measured", "points.jsonl")
"""The points that come with cubecore; each names its source."""
_LARGEST_LINE = 100_000
_WALL = ("total_us", "wall_us", "derived_us", "npu_us")
_CORE = (
    *("aic_time_max_us", "aic_time_us", "aiv_time_us", "aicore_time_us", "aic_time_avg_us"),
    *("block_avg_us", "avg_us"),
)
_PIPES = {
    "M": ("aic_mac_us",),
    "MTE1": ("aic_mte1_us",),
    "MTE2": ("aic_mte2_us", "aic_mte2_avg_us", "aic_mte2_time_us"),
    "FIX": ("aic_fixpipe_us",),
    "S": ("aic_scalar_us",),
}
_VECTOR_PIPES = {
    "V": ("aiv_vec_us",),
    "MTE2": ("aiv_mte2_us", "aiv_mte2_time_us"),
    "MTE3": ("aiv_mte3_us",),
    "S": ("aiv_scalar_us",),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement as it was published; None or an empty text where a column is not stated.

    `soc` is the SoC that stands for `chip`; `repository` the publication; `api` the kernel's code;
    `cache` and `launch` say how it was measured, `counts` what a rate counts. `left_out` names the
    part of the kernel that the case lacks, `doubt` why the measurement is doubted, and `assumed`
    what was filled in, with who did. `kernels` are those that ran in the time, if they are several;
    `untimed` is why nothing times it, where that is known beforehand.
    """

    id: str
    kind: str
    chip: str
    source: str
    cores: int | None
    m: int | None
    n: int | None
    k: int | None
    types: tuple[str, str, str]
    formats: str
    trans: str
    tiling: JsonMapping
    measured: Mapping[str, float]
    soc: str = ""
    repository: str = ""
    op: str = ""
    api: str = ""
    cache: str = ""
    launch: str = ""
    counts: str = ""
    left_out: str = ""
    doubt: str = ""
    assumed: tuple[str, ...] = ()
    kernels: tuple["Point", ...] = ()
    untimed: str = ""

    @property
    def wall_us(self) -> float | None:
        """Time of the launch with its overhead."""
        return _first(self.measured, _WALL)

    @property
    def core_us(self) -> float | None:
        """Time on the cores."""
        return _first(self.measured, _CORE)

    @property
    def pipes_us(self) -> dict[str, float]:
        """Busy times of pipes, averages over the cores that the kernel runs on."""
        on_vector = not any(name.startswith("aic_mac") for name in self.measured)
        names = _VECTOR_PIPES if on_vector and self.kind in _ON_VECTOR else _PIPES
        times = {pipe: _first(self.measured, keys) for pipe, keys in names.items()}
        return {pipe: us for pipe, us in times.items() if us}


_ON_VECTOR = ("vector", "dma_read", "vector_ubench")


def _first(values: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    return next((values[name] for name in names if values.get(name)), None)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no point, and why."""

    line: int
    id: str
    reason: str

    def to_json(self) -> Json:
        """Return it as JSON."""
        return {"line": self.line, "id": self.id, "reason": self.reason}


def read_points(path: "Traversable") -> tuple[list[Point], list[Unreadable]]:
    """Return the points of a file, and the lines that are none.

    Raises
    ------
    RequestError
        If the file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise cannot_read(f"--points {path}", error) from None
    points: list[Point] = []
    unreadable: list[Unreadable] = []
    seen: set[str] = set()
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            record, reason = _record(raw.decode("utf-8"))
        except UnicodeDecodeError:
            record, reason = {}, "a line must be UTF-8 text, got other bytes"
        name = str(record.get("id", ""))
        reason = reason or (
            f"id must be no other line's, got {name!r} again" if name in seen else ""
        )
        if reason:
            unreadable.append(Unreadable(number, name, reason))
        else:
            seen.add(name)
            points.append(_point(record))
    return points, unreadable


@cache
def published() -> tuple[Point, ...]:
    """Return the points that come with cubecore."""
    points, unreadable = read_points(PUBLISHED)
    assert not unreadable, unreadable
    return tuple(points)


def _record(line: str) -> tuple[Json, str]:
    """Return a line's object, and the sentence about it if it is no point."""
    if len(line) > _LARGEST_LINE:
        return {}, f"a line must be at most {_LARGEST_LINE} characters, got {len(line)}"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}, "a line must be a JSON object, got something else"
    if not isinstance(record, dict):
        return {}, "a line must be a JSON object, got something else"
    for name in record:
        if name not in FIELDS:
            return record, f"a point must have only known fields, got {name!r}"
    for name in NEEDED:
        if not record.get(name):
            return record, f"{name} must be given, got {record.get(name)!r}"
    if isinstance(tiling := record.get("tiling"), dict):
        record["tiling"] = {name: value for name, value in tiling.items() if value is not None}
    return record, wrong_value(record)


def _point(record: JsonMapping) -> Point:
    def text(name: str) -> str:
        return record.get(name) or ""

    return Point(
        id=record["id"],
        kind=record["kind"],
        chip=record["chip"],
        source=text("source"),
        cores=record.get("cores"),
        m=record.get("M"),
        n=record.get("N"),
        k=record.get("K"),
        types=(text("dtype_a"), text("dtype_b"), text("dtype_c")),
        formats=text("formats"),
        trans=text("trans"),
        tiling=record.get("tiling") or {},
        measured={name: value for name, value in record["measured"].items() if value is not None},
        **{name: text(name) for name in STATED},
        assumed=tuple(_assumption_text(one) for one in record.get("assumed") or ()),
        kernels=tuple(
            _point(kernel_record(record, kernel)) for kernel in record.get("kernels") or ()
        ),
    )


def _assumption_text(assumption: JsonMapping) -> str:
    """Return an assumption as it is reported: ours alone, another's with who made it."""
    by = assumption["by"]
    return assumption["text"] if by == OURS else f"{assumption['text']} ({by})"

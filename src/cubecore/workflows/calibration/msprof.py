"""A profiler's table as points: op_summary_*.csv of msprof, and kernel_details.csv made of it.

The columns are those of the vendor's pages on op_summary (Operator Details): one row an operator
that ran, with its shapes, types and formats, how long it took, and how long each pipe was busy. A
matmul's rows become points; what they do not say (the chip, the tiling) is asked for or the
planner's. The times that are no numbers, which the profiler writes as N/A, are left out.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from cubecore.errors import refuse
from cubecore.workflows.calibration.measured_points import Point, Unreadable

_NAMES = {
    "name": ("Op Name", "Name"),
    "type": ("OP Type", "Op Type", "Type"),
    "cores": ("Block Dim", "Block Num"),
    "in shapes": ("Input Shapes",),
    "in types": ("Input Data Types",),
    "in formats": ("Input Formats",),
    "out shapes": ("Output Shapes",),
    "out types": ("Output Data Types",),
}
"""The names of a column, by profiler."""
_TIMES = {
    "total_us": ("Task Duration(us)", "Duration(us)"),
    "aicore_time_us": ("aicore_time(us)", "aic_time(us)"),
    "aic_mac_us": ("aic_mac_time(us)", "aic_cube_time(us)", "mac_time(us)"),
    "aic_scalar_us": ("aic_scalar_time(us)", "scalar_time(us)"),
    "aic_mte1_us": ("aic_mte1_time(us)", "mte1_time(us)"),
    "aic_mte2_us": ("aic_mte2_time(us)", "mte2_time(us)"),
    "aic_fixpipe_us": ("aic_fixpipe_time(us)", "fixpipe_time(us)"),
}
"""The measured value that a column gives."""
_NEEDED = ("name", "type", "in shapes", "out shapes", "in types")
_TYPES = {
    "FLOAT16": "half",
    "FLOAT": "float",
    "FLOAT32": "float",
    "BF16": "bfloat16",
    "BFLOAT16": "bfloat16",
    "INT8": "int8",
    "INT32": "int32",
}
_MISSING = ("", "N/A", "NA", "NULL")
_LARGEST_BYTES = 500_000_000


class _SkippedRow(Exception):  # noqa: N818 - says why a row is no point
    """The reason for which a row is no point."""


def read_profile(path: Path, chip: str) -> tuple[list[Point], list[Unreadable]]:
    """Return the rows of a profiler's CSV as points measured on `chip`, and those that are none.

    A row of another operator than a matmul is a point of its own kind, which nothing times.

    Raises
    ------
    RequestError
        If the file cannot be read, or lacks the columns of a profile.
    """
    lines = _lines(path)
    reader = csv.DictReader(lines)
    columns = [name for name in reader.fieldnames or () if name]
    missing = [_NAMES[what][0] for what in _NEEDED if _column(columns, _NAMES[what]) is None]
    if _column(columns, _TIMES["total_us"]) is None:
        missing.append(_TIMES["total_us"][0])
    if missing:
        raise refuse(
            "--points", "be a profiler's table of operators", f"{path} without {', '.join(missing)}"
        )
    names = {what: _column(columns, accepted) for what, accepted in {**_NAMES, **_TIMES}.items()}
    points: list[Point] = []
    unreadable: list[Unreadable] = []
    try:
        for row in reader:
            cells = {what: _cell(row.get(name or "")) for what, name in names.items()}
            try:
                points.append(_point(len(points) + len(unreadable) + 1, cells, chip))
            except _SkippedRow as reason:
                unreadable.append(Unreadable(reader.line_num, cells["name"], str(reason)))
    except csv.Error as error:
        need = "be a table of comma-separated values"
        raise refuse("--points", need, f"{path} ({error})") from None
    return points, unreadable


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            limit = _LARGEST_BYTES // 1_000_000
            raise refuse("--points", f"be at most {limit} MB", f"{path}")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise refuse("--points", "be a profiler's CSV file", f"{path} ({reason})") from None
    return iter(text.splitlines(keepends=True))


def _column(columns: list[str], accepted: tuple[str, ...]) -> str | None:
    stripped = {name.strip(): name for name in columns}
    return next((stripped[name] for name in accepted if name in stripped), None)


def _cell(value: object) -> str:
    """Return a cell without the quotes that profilers put around lists; missing ones as empty."""
    text = value.strip().strip('"').strip() if isinstance(value, str) else ""
    return "" if text in _MISSING else text


def _point(number: int, cells: Mapping[str, str], chip: str) -> Point:
    measured = {name: us for name in _TIMES if (us := _time(name, cells[name])) is not None}
    if "total_us" not in measured:
        raise _SkippedRow("a row must have a duration, got none")
    is_product = "matmul" in cells["type"].lower()
    m, n, k, trans = _product(cells) if is_product else (None, None, None, "")
    inputs = [_type(text) for text in cells["in types"].split(";")]
    output = _type((cells["out types"] or "").split(";")[0])
    formats = cells["in formats"].split(";")
    fractal = len(formats) > 1 and formats[1].strip().upper().endswith("NZ")
    return Point(
        id=f"row{number}_{cells['name']}",
        kind="matmul" if is_product else cells["type"] or "?",
        chip=chip,
        source="a profiler's table",
        repository="a profiler's table",
        api="library",
        launch="counted",
        cores=_count("Block Dim", cells["cores"]),
        m=m,
        n=n,
        k=k,
        types=(inputs[0], inputs[1] if len(inputs) > 1 else inputs[0], output or inputs[0]),
        formats="Row/zN" if fractal else "Row/Row",
        trans=trans,
        tiling={},
        measured=measured,
    )


def _time(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise _SkippedRow(f"{_TIMES[name][0]} must be a number, not negative, got {text!r}")
    return value


def _count(name: str, text: str) -> int | None:
    try:
        value = int(float(text)) if text else 0
    except (ValueError, OverflowError):
        raise _SkippedRow(f"{name} must be a whole number, got {text!r}") from None
    return value if value > 0 else None


def _type(text: str) -> str:
    name = text.strip().upper().removeprefix("DT_")
    return _TYPES.get(name, text.strip())


def _shapes(name: str, text: str) -> list[tuple[int, ...]]:
    try:
        return [
            tuple(int(part) for part in shape.split(",")) if shape.strip() else ()
            for shape in text.split(";")
        ]
    except ValueError:
        raise _SkippedRow(f"{name} must be numbers as 16,32;32,64, got {text!r}") from None


def _product(cells: Mapping[str, str]) -> tuple[int, int, int, str]:
    """Return m, n, k and how A and B are stored, by the shapes of A, B and C."""
    inputs = _shapes("Input Shapes", cells["in shapes"])
    outputs = _shapes("Output Shapes", cells["out shapes"])
    shapes = f"{cells['in shapes']} -> {cells['out shapes']}"
    need = "the shapes must be of one product of two matrices"
    if len(inputs) < 2 or len(inputs[0]) != 2 or len(outputs[0]) != 2:
        raise _SkippedRow(f"{need}, got {shapes}")
    (m, n), a, b = outputs[0], inputs[0], inputs[1]
    for trans_a, k in ((False, a[1]), (True, a[0])):
        if a != ((k, m) if trans_a else (m, k)):
            continue
        if len(b) == 4:  # fractals, [n1, k1, 16, 16] for a B of [k, n] and padded
            pieces, rows = b[0] * b[3], b[1] * b[2]
            for trans_b, (along_n, along_k) in ((False, (pieces, rows)), (True, (rows, pieces))):
                if n <= along_n < n + 32 and k <= along_k < k + 32:
                    return m, n, k, _stored(trans_a, trans_b)
        for trans_b in (False, True):
            if b == ((n, k) if trans_b else (k, n)):
                return m, n, k, _stored(trans_a, trans_b)
    raise _SkippedRow(f"{need}, got {shapes}")


def _stored(trans_a: bool, trans_b: bool) -> str:
    return f"A:{'T' if trans_a else 'N'} B:{'T' if trans_b else 'N'}"

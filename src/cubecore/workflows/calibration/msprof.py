"""A profiler's table as points: op_summary_*.csv of msprof, and kernel_details.csv made of it.

The columns are those of the vendor's pages on op_summary (Operator Details): one row an operator
that ran, with its shapes, types and formats, how long it took, and how long each pipe was busy. A
row becomes a point of a matmul or of an operator (`msprof_operators`); what it does not say (the
chip, the tiling) is asked for or the planner's. The times that are no numbers, which the profiler
writes as N/A, are left out.
"""

import csv
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path

from cubecore.aliases import Json
from cubecore.chips import chip as named_chip
from cubecore.errors import refuse
from cubecore.workflows.calibration.measured_points import Point, Unreadable
from cubecore.workflows.calibration.msprof_operators import (
    ProfileRow,
    UnnamedOperator,
    operator_of,
)

_NAMES = {
    "name": ("Op Name", "Name"),
    "type": ("OP Type", "Op Type", "Type"),
    "cores": ("Block Dim", "Block Num"),
    "in shapes": ("Input Shapes",),
    "in types": ("Input Data Types",),
    "in formats": ("Input Formats",),
    "out shapes": ("Output Shapes",),
    "out types": ("Output Data Types",),
    "task": ("Task Type", "Accelerator Core"),
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
    "aiv_time_us": ("aiv_time(us)",),
    "aiv_vec_us": ("aiv_vec_time(us)",),
    "aiv_scalar_us": ("aiv_scalar_time(us)",),
    "aiv_mte2_us": ("aiv_mte2_time(us)",),
    "aiv_mte3_us": ("aiv_mte3_time(us)",),
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
_NO_PLAIN_MATMUL = ("grouped", "quant", "allreduce", "allgather", "reducescatter")
"""Words in the types of operators that do more than a matmul of two matrices."""
_MISSING = ("", "N/A", "NA", "NULL")
_LARGEST_BYTES = 500_000_000


class _SkippedRow(Exception):  # noqa: N818 - says why a row is no point
    """The reason for which a row is no point."""


def read_profile(path: Path, chip: str) -> tuple[list[Point], list[Unreadable]]:
    """Return the rows of a profiler's CSV as points measured on `chip`, and those that are none.

    A row that no operator stands for is a point that says why.

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
    while True:
        name = ""
        try:
            row = next(reader)
            cells = {what: _cell(row.get(column or "")) for what, column in names.items()}
            name = cells["name"]
            points.append(_point(len(points) + len(unreadable) + 1, cells, chip))
        except StopIteration:
            return points, unreadable
        except (_SkippedRow, csv.Error) as reason:
            unreadable.append(Unreadable(reader.line_num, name, str(reason)))


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            limit = _LARGEST_BYTES // 1_000_000
            raise refuse("--points", f"be at most {limit} MB", f"{path}")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise refuse("--points", "be a profiler's CSV file", f"{path} ({error.strerror})") from None
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
    named = cells["type"].lower()
    is_product = "matmul" in named and not any(word in named for word in _NO_PLAIN_MATMUL)
    inputs = [_type(text) for text in cells["in types"].split(";")]
    output = _type((cells["out types"] or "").split(";")[0])
    types = (inputs[0], inputs[1] if len(inputs) > 1 else inputs[0], output or inputs[0])
    side = "aic" if is_product else "aiv"
    common: Json = {
        "id": f"row{number}_{cells['name']}",
        "chip": chip,
        "source": "a profiler's table",
        "repository": "a profiler's table",
        "api": "library",
        "launch": "counted",
        "types": types,
        "measured": {name: us for name, us in measured.items() if name.startswith((side, "total"))},
    }
    cores = _count("Block Dim", cells["cores"])
    if is_product:
        m, n, k, batch, trans = _product(cells)
        formats = cells["in formats"].split(";")
        fractal = len(formats) > 1 and formats[1].strip().upper().endswith("NZ")
        return Point(
            kind="matmul",
            cores=cores,
            m=m,
            n=n,
            k=k,
            formats="Row/zN" if fractal else "Row/Row",
            trans=trans,
            tiling={"batch": batch} if batch > 1 else {},
            **common,
        )
    return _of_operator(cells, cores or named_chip(chip).aiv_count, common)


def _of_operator(cells: Mapping[str, str], cores: int | None, common: Json) -> Point:
    """Return the point of an operator of vector cores, or of groups of matmuls."""
    kind = cells["type"] or "?"
    nothing: Json = {"k": None, "formats": "ND", "trans": "", "cores": cores}
    shapes = [_shapes(name, cells[what]) for name, what in _SHAPES.items()]
    try:
        found = operator_of(ProfileRow(kind, cells["task"], *shapes))
    except UnnamedOperator as reason:
        return Point(kind=kind, m=None, n=None, tiling={}, untimed=str(reason), **nothing, **common)
    return Point(
        kind="vector",
        op=found.op,
        m=found.m,
        n=found.n,
        tiling=found.tiling,
        assumed=found.assumed,
        **nothing,
        **common,
    )


_SHAPES = {"Input Shapes": "in shapes", "Output Shapes": "out shapes"}


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


def _product(cells: Mapping[str, str]) -> tuple[int, int, int, int, str]:
    """Return m, n, k, the matmuls of a batch and the storage, by the shapes of A, B and C."""
    inputs, outputs = (_shapes(name, cells[what]) for name, what in _SHAPES.items())
    shapes = f"{cells['in shapes']} -> {cells['out shapes']}"
    need = "the shapes must be of one product of two matrices, or of a batch of them"
    if len(inputs) < 2 or min(len(inputs[0]), len(inputs[1]), len(outputs[0])) < 2:
        raise _SkippedRow(f"{need}, got {shapes}")
    # Four axes of B are fractals where A has two, else the last two axes are a matrix of a batch.
    fractal = len(inputs[1]) == 4 and len(inputs[0]) == 2
    a, b, c = inputs[0], inputs[1], outputs[0]
    batch = prod(a[:-2])
    if len(b) == 2 and batch > 1:  # all rows of A take one B
        a, c, batch = (prod(a[:-1]), a[-1]), (prod(c[:-1]), c[-1]), 1
    elif not fractal and not batch == prod(b[:-2]) == prod(c[:-2]):
        raise _SkippedRow(f"{need}, got {shapes}")
    a, c, b = a[-2:], c[-2:], b if fractal else b[-2:]
    m, n = c
    for trans_a, k in ((False, a[1]), (True, a[0])):
        if a != ((k, m) if trans_a else (m, k)):
            continue
        if fractal:  # [n1, k1, 16, 16] for a B of [k, n] and padded
            pieces, rows = b[0] * b[3], b[1] * b[2]
            for trans_b, (along_n, along_k) in ((False, (pieces, rows)), (True, (rows, pieces))):
                if n <= along_n < n + 32 and k <= along_k < k + 32:
                    return m, n, k, batch, _stored(trans_a, trans_b)
        for trans_b in (False, True):
            if b == ((n, k) if trans_b else (k, n)):
                return m, n, k, batch, _stored(trans_a, trans_b)
    raise _SkippedRow(f"{need}, got {shapes}")


def _stored(trans_a: bool, trans_b: bool) -> str:
    return f"A:{'T' if trans_a else 'N'} B:{'T' if trans_b else 'N'}"

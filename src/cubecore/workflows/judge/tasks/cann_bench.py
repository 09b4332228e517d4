"""Tasks of cann-bench: a folder with golden.py and cases.csv, which are taken as they are.

A case is drawn as the suite's specification of cases says: uniformly from the range of each input.
The submission gets the inputs and the attributes by their names, as arrays and numbers.
"""

import ast
import csv
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import refuse, unable
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.cases import ReferenceCase, called, module_of
from cubecore.workflows.judge.tasks.comparison import (
    RIGHT,
    TOO_LARGE,
    Compared,
    close,
    leaves,
    ordered,
    plain,
    same,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask
from cubecore.workflows.judge.values import tensor_of

RULE = "mean and largest relative error by type; small values by their distance"
_LEAST, _LARGEST = -3.0e38, 3.0e38
_MOST_SMALL = 2
"""Small values that may be off, as the suite allows where its own reference is exact there."""


@dataclass(frozen=True, slots=True)
class _Precision:
    """A type's limits: of the mean relative error, of small values, and of their distance."""

    mean: float
    small: float
    distance: float


_PRECISIONS = {
    "float16": _Precision(2**-10, 2**-11, 2**-16),
    "bfloat16": _Precision(2**-7, 2**-8, 2**-16),
    "float32": _Precision(2**-13, 2**-14, 2**-30),
}
"""The suite's design of the comparison of precision, tables 2.2 and 3.2."""


class CannBenchTask:
    """A task's folder: golden.py with a function of tensors, cases.csv."""

    def __init__(self, task: JudgeTask) -> None:
        self._name = task.name
        self._golden = _golden(module_of(task.path / "golden.py"), task.name)
        self._rows = _rows(task.path / "cases.csv")

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the rows of the task's cases, the small ones first."""
        import torch

        remaining = options.cases
        for row in sorted(self._rows, key=_bytes):
            name = f"case {row['case_id']}"
            if _bytes(row) > options.cap_bytes:
                yield ReferenceCase(name, None, None, outcome=TOO_LARGE)
                continue
            if remaining == 0:
                yield ReferenceCase(name, None, None, outcome="not run")
                continue
            remaining -= 1
            inputs = self._inputs(row, np.random.default_rng((options.seed, int(row["case_id"]))))
            tensors = {n: _tensors(value) for n, value in inputs.items()}
            with torch.no_grad():
                expected = called(self._name, self._golden, "golden.py", **tensors)
            keeps = same({n: _arrays(value) for n, value in tensors.items()}, inputs)
            known = {n: value for n, value in inputs.items() if value is not None}
            yield ReferenceCase(name, known, _arrays(expected), keeps_inputs=keeps)

    def _inputs(self, row: Json, generator: np.random.Generator) -> dict[str, Any]:
        """Return the inputs of a case, then its attributes, by the names of the golden function."""
        attributes = {n: _number(value) for n, value in row["attrs"].items()}
        names = [n for n in inspect.signature(self._golden).parameters if n not in attributes]
        shapes = row["input_shape"]
        if len(names) < len(shapes):
            need = f"take the {len(shapes)} inputs of case {row['case_id']}"
            raise refuse(f"{self._name}: golden.py", need, ", ".join(names) or "none")
        ranges = row["value_range"]
        ranges = ranges if ranges and isinstance(ranges[0], (list, type(None))) else [ranges]
        # A type or a range that stands alone is that of all inputs.
        parts = zip(names, shapes, cycle(row["dtype"]), cycle(ranges), strict=False)
        drawn = {n: _drawn(shape, dtype, span, generator) for n, shape, dtype, span in parts}
        return drawn | attributes

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare by the suite's rule: relative errors, but small values by their distance."""
        wanted, found = leaves(case.expected), ordered(case.expected, got)
        usual = close(case.expected, got)
        if usual.outcome == RIGHT or usual.reason:
            return usual
        for (_, one), (_, other) in zip(wanted, found, strict=True):
            if not is_near(plain(one), plain(other)):
                return replace(usual, rule=RULE)
        return replace(usual, outcome=RIGHT, rule=RULE, wrong=0, where=())


def is_near(wanted: Array, got: Array) -> bool:
    """Return whether a result is as near as the suite asks for; integers are equal."""
    limits = _PRECISIONS.get(wanted.dtype.name)
    if limits is None:
        return close(wanted, got).outcome == RIGHT
    one, other = (each.astype(np.float64).reshape(-1) for each in (wanted, got))
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    if not (np.isfinite(one) & np.isfinite(other) | alike).all():
        return False
    errors = np.where(alike, 0.0, np.abs(np.where(alike, 0.0, other) - np.where(alike, 0.0, one)))
    small = np.abs(one) < limits.small
    if np.count_nonzero(errors[small] > limits.distance) > _MOST_SMALL:
        return False
    with np.errstate(invalid="ignore"):
        relative = np.where(alike, 0.0, errors / np.maximum(np.abs(one), 1e-300))[~small]
    if not relative.size:
        return True
    return bool(relative.mean() < limits.mean and relative.max() < 10 * limits.mean)


def _golden(module: Any, name: str) -> Callable[..., Any]:
    """Return the function of a reference: that of the task's name, or the only one."""
    functions = {
        n: each
        for n, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and n[0] != "_"
    }
    plain_ones = [n for n in functions if not n.endswith(("_oracle", "_bench"))]
    if name in functions:
        return functions[name]
    if len(plain_ones) != 1:
        listed = ", ".join(plain_ones) or "none"
        raise refuse(f"{name}: golden.py", f"have a function {name}, or a single one", listed)
    return functions[plain_ones[0]]


def _rows(path: Path) -> list[Json]:
    """Return the rows of a table of cases.

    Raises
    ------
    RequestError
        If it cannot be read, or a column is none of the suite's.
    """
    columns = "input_shape", "dtype", "attrs", "value_range"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            {"case_id": int(row["case_id"])} | {n: _value(row[n]) for n in columns}
            for row in rows or [{}]  # a table without a row lacks its columns
        ]
    except OSError as error:
        raise unable(str(path), f"cannot read {path.name}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise unable(
            str(path), f"{path.name} is no table of cases of cann-bench: {error}"
        ) from None


def _value(text: str | None) -> Any:
    """Return a column's value, which is written as JSON or as Python writes it."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return ast.literal_eval(text or "None")


def _type(name: str) -> "np.dtype[Any]":
    return np.dtype(np.bool_ if name == "bool" else element_type(name).numpy)


def _number(value: Any) -> Any:
    """Return an attribute; a number that a table has as a text is one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _is_list(shape: Any) -> bool:
    return bool(shape) and isinstance(shape[0], list)


def _first(value: Any) -> Any:
    while isinstance(value, list):
        value = value[0] if value else None
    return value


def _bytes(row: Json) -> int:
    """Return the bytes of the largest input of a case."""
    sizes = [0]
    for shape, dtype in zip(row["input_shape"], cycle(row["dtype"]), strict=False):
        size = _type(_first(dtype) or "float32").itemsize
        parts = shape if _is_list(shape) else [shape or []]
        sizes += [math.prod(each) * size for each in parts]
    return max(sizes)


def _drawn(shape: Any, dtype: Any, span: Any, generator: np.random.Generator) -> Any:
    """Return an input of a case: an array, a list of arrays, or None for one that is left out."""
    if shape is None:
        return None
    if _is_list(shape):
        dtypes = cycle(dtype if isinstance(dtype, list) else [dtype])
        spans = cycle(span if _is_list(span) else [span])
        return [_drawn(each, next(dtypes), next(spans), generator) for each in shape]
    kind = _type(_first(dtype))
    low, high = (float(each) for each in (_first_pair(span) or (0, 1)))
    if kind == np.bool_:
        return generator.integers(0, 2, shape).astype(kind)
    if kind.kind not in "iu":
        low, high = (float(np.clip(np.nan_to_num(each), _LEAST, _LARGEST)) for each in (low, high))
        with np.errstate(over="ignore"):  # beyond the type: infinite, as the suite asks for
            return generator.uniform(low, max(low, high), shape).astype(kind)
    info = np.iinfo(kind)
    return generator.integers(
        int(max(low, info.min)), int(min(high, info.max)), shape, dtype=kind, endpoint=True
    )


def _first_pair(span: Any) -> Any:
    return span[0] if _is_list(span) else span


def _tensors(value: Any) -> Any:
    """Return arrays, in lists too, as tensors of their own."""
    if isinstance(value, np.ndarray):
        return tensor_of(value.copy())
    return [_tensors(each) for each in value] if isinstance(value, list) else value


def _arrays(value: Any) -> Any:
    """Return tensors, in lists too, as arrays."""
    if isinstance(value, Mapping):
        return {n: _arrays(each) for n, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_arrays(each) for each in value]
    return plain(value) if hasattr(value, "detach") else value

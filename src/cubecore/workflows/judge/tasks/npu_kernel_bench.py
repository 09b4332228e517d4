"""Tasks of NPUKernelBench: a folder with `validation`, whose files are taken as they are.

The suite's own framework is not loaded: what its tasks import of it stands here, from the suite's
documentation of its check.
"""

import ast
import csv
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cubecore.errors import refuse, unable
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.cases import ReferenceCase, called, module_of
from cubecore.workflows.judge.tasks.comparison import (
    BLOCK,
    RIGHT,
    WRONG,
    Compared,
    close,
    leaves,
    plain,
    same,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask
from cubecore.workflows.judge.tasks.torch_modules import copied, stand_in
from cubecore.workflows.judge.tasks.torch_tasks import ModelSource

MODULE = "kernel_gen_ops"
"""The name of the tasks' bindings in Python."""
RULE = "|result - expected| <= 1e-3 or <= 1e-3 * |expected|, all finite"
OWN_RULE = "the task's own check"
_LIMIT = 1e-3
_LARGEST_BYTES = 8
"""Bytes of an element, at most."""


class NpuKernelBenchTask:
    """A task's folder: module.py, pybind.cpp, prepare_inputs.py, test_cases.csv."""

    def __init__(self, task: JudgeTask) -> None:
        stand_in()
        _provide_check()
        self._folder = task.path / "validation"
        self._module = module_of(self._folder / "module.py")
        own_inputs = self._folder / "prepare_inputs.py"
        has_inputs = hasattr(self._module, "get_init_inputs") or not own_inputs.is_file()
        self._inputs = self._module if has_inputs else module_of(own_inputs, "cubecore_inputs")
        self._rows = rows_of(self._folder / "test_cases.csv")
        self.model = self._model_source(task)

    def _model_source(self, task: JudgeTask) -> ModelSource:
        text = (self._folder / "module.py").read_text("utf-8")
        binding = self._folder / "pybind.cpp"
        if not binding.is_file():
            raise unable(task.name, f"{task.name} has no binding validation/pybind.cpp")
        called = re.findall(rf"{MODULE}\.(\w+)", re.sub(r"(?m)^\s*#.*$", "", text))
        return ModelSource(
            text=without_reference(text),
            binding=binding_text(binding.read_text("utf-8"), task.name, called),
            module=MODULE,
        )

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the rows of the task's cases, the small ones first."""
        import torch

        # Only a row whose numbers allow for a large tensor is made on the meta device, which torch
        # takes a second to load.
        sized = []
        for number, row in enumerate(self._rows):
            likely = _elements(row) * _LARGEST_BYTES
            sized.append((likely if likely <= options.cap_bytes else self._bytes(row), number))
        chosen = sorted(sized, key=lambda each: (each[0] or 0, each[1]))
        remaining = options.cases
        for size, number in chosen:
            row, name = self._rows[number], f"case {number}"
            if size is not None and size > options.cap_bytes:
                yield ReferenceCase(name, None, None, outcome="too large")
                continue
            if remaining == 0:
                yield ReferenceCase(name, None, None, outcome="not run")
                continue
            torch.manual_seed(options.seed)
            np.random.seed(options.seed)  # noqa: NPY002 - what the tasks draw from
            cpu, task = torch.device("cpu"), self._folder.parent.name
            inputs = called(task, self._inputs, "get_inputs", row, device=cpu)
            made_with = called(task, self._inputs, "get_init_inputs", row, device=cpu)
            copies = copied(inputs)
            model = called(task, self._module, "Model", *copied(made_with))
            expected = called(task, model, "Model.forward", *copies)
            remaining -= 1
            keeps = same(copies, inputs)
            yield ReferenceCase(name, inputs, expected, made_with, keeps_inputs=keeps)

    def _bytes(self, row: Any) -> int | None:
        """Return the bytes of the largest input, None where only making them tells."""
        import torch

        try:
            inputs = self._inputs.get_inputs(row, device=torch.device("meta"))
            sizes = [t.numel() * t.element_size() for _, t in leaves(inputs) if hasattr(t, "numel")]
        except Exception:  # noqa: BLE001 - the task's own code, which may need values
            return None
        return max(sizes, default=0)

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare by the task's own check, or by the suite's."""
        import torch

        row = self._rows[int(case.name.rpartition(" ")[2])]
        wanted, found = case.expected, _tensors(got)
        whole = found if isinstance(wanted, (list, tuple)) or len(found) != 1 else found[0]
        # The suite compares pair by pair: what one side has more does not count, and shapes are its
        # check's to judge. `usual` names the first wrong element.
        count = min(len(found), len(_listed(wanted)))
        usual = close(_listed(wanted)[: count or 1], found[:count], _LIMIT, _LIMIT, either=True)
        if not count:
            return usual
        check = getattr(self._inputs, "custom_check_precision", None)
        rule = RULE if check is None else OWN_RULE
        try:
            with torch.no_grad():
                if check is None:
                    accurate = _all_near(wanted, found, _LIMIT, _LIMIT)
                else:
                    accurate = check(row, wanted, whole)[0]
        except (RuntimeError, IndexError):  # of tensors whose shapes do not fit each other
            if not usual.reason:
                raise
            accurate = False
        reason = usual.reason or f"{rule} does not accept the results"
        reason = "" if accurate or (usual.wrong and not usual.reason) else reason
        return replace(usual, outcome=RIGHT if accurate else WRONG, rule=rule, reason=reason)


def _elements(row: dict[str, Any]) -> int:
    """Return the elements of the largest tensor that the numbers of a row may ask for."""
    most = 1
    for value in row.values():
        for part in re.findall(r"[\[(][\d\s,]*[\])]", str(value)) or [str(value)]:
            most = max(most, math.prod(int(n) for n in re.findall(r"\d+", part)[:8]))
    return most


def _tensors(got: Any) -> list[Any]:
    import torch

    found = [leaf for _, leaf in leaves(got)]
    if found and not isinstance(found[0], torch.Tensor):
        from cubecore.workflows.judge.values import tensor_of

        return [tensor_of(plain(leaf)) for leaf in found]
    return found


def _listed(wanted: Any) -> list[Any]:
    return list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]


def check_precision(
    outputs: Any, outputs_new: Any, max_abs_error: float, max_rel_error: float
) -> Any:
    """Compare tensors as the suite documents it: an element may be off by either limit.

    Returns
    -------
    tuple
        1 if all are near and finite else 0, and the distances of all elements, absolute and
        relative.
    """
    import torch

    distances, relatives = [], []
    for wanted, found in _pairs(outputs, outputs_new):
        distance = torch.abs(wanted - found)
        distances.append(distance.reshape(-1))
        relatives.append((distance / (torch.abs(wanted) + 1e-7)).reshape(-1))
    accurate = _all_near(outputs, outputs_new, max_abs_error, max_rel_error)
    return int(accurate), torch.cat(distances), torch.cat(relatives)


def _all_near(outputs: Any, outputs_new: Any, max_abs_error: float, max_rel_error: float) -> bool:
    """Return whether all elements are near and finite, block by block."""
    import torch

    for wanted, found in _pairs(outputs, outputs_new):
        blocks: Iterable[tuple[Any, Any]] = [(wanted, found)]
        if wanted.shape == found.shape:
            parts = (each.reshape(-1).split(BLOCK) for each in (wanted, found))
            blocks = zip(*parts, strict=True)
        for one, other in blocks:
            distance = torch.abs(one - other)
            relative = distance / (torch.abs(one) + 1e-7)
            if not all(torch.isfinite(each).all() for each in (one, other, distance, relative)):
                return False
            if ((distance > max_abs_error) & (relative > max_rel_error)).any():
                return False
    return True


def _pairs(outputs: Any, outputs_new: Any) -> Iterator[tuple[Any, Any]]:
    """Yield expected tensors beside results, truth values as integers."""
    import torch

    for pair in zip(_listed(outputs), _listed(outputs_new), strict=False):
        wanted, found = (t.int() if t.dtype == torch.bool else t for t in pair)
        yield wanted, found


def _provide_check() -> None:
    """Register the modules that tasks import: of the suite, and of bindings."""
    framework, utils = ModuleType("framework"), ModuleType("framework.utils")
    utils.__dict__["check_precision"] = check_precision
    framework.__dict__["utils"] = utils
    sys.modules.setdefault(MODULE, ModuleType(MODULE))  # only a submission's process calls it
    sys.modules.setdefault("framework", framework)
    sys.modules.setdefault("framework.utils", utils)


def binding_text(text: str, folder: str, called: list[str]) -> str:
    """Return the C++ of a task's binding, with the operator's names in the template's places."""
    text = text.replace("aclnnCustomOp", f"aclnn{folder}")
    return text.replace('"custom_pybind_api"', f'"{called[0]}"') if called else text


def without_reference(text: str) -> str:
    """Return a module without its reference: the submission's process has none."""
    tree = ast.parse(text)
    kept = [n for n in tree.body if not (isinstance(n, ast.ClassDef) and n.name == "Model")]
    tree.body = kept
    return ast.unparse(tree)


class _Row(dict[str, Any]):
    """A row of cases: values by column, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table of cases: numbers, truth values or texts by column.

    Raises
    ------
    RequestError
        If it cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = list(csv.DictReader(file, delimiter=";"))
    except OSError as error:
        raise unable(str(path), f"cannot read {path.name}: {error.strerror}") from None
    columns = list(found[0]) if found else []
    if not columns or any(None in row for row in found):
        need = "be a table with a row for each case, its columns apart by semicolons"
        raise refuse(path.name, need, "rows of other lengths" if columns else "no row")
    typed = {name: _column([row[name] or "" for row in found]) for name in columns}
    return [_Row({name: typed[name][n] for name in columns}) for n in range(len(found))]


def _column(texts: list[str]) -> list[Any]:
    """Return a column's values: whole numbers, numbers with NaN for none, truth values, texts."""
    stripped = [text.strip() for text in texts]
    truths = {"True", "TRUE", "true", "False", "FALSE", "false"}  # as pandas reads them
    if stripped and all(text in truths for text in stripped):
        return [text.lower() == "true" for text in stripped]
    try:
        numbers = [float(text) if text else float("nan") for text in stripped]
    except ValueError:
        return [text or float("nan") for text in texts]
    if all(number.is_integer() for number in numbers):
        return [int(number) for number in numbers]
    return numbers

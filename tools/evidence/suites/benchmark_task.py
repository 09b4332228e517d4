"""One task of a benchmark of operators: its answer run on its own cases, judged by its own check.

`python -m tools.evidence.suites.benchmark_task CHECKOUT TASK --work DIR [--mb N] [--seconds N]
[--chip SOC]` prints a line of JSON for each case; the chip is by default the one that the benchmark
names, whose count of cores some answers are written for. A task is a folder with `answer/0`, an
operator project, and `validation`: a binding (`pybind.cpp`), the reference and the call
(`module.py`), inputs (`prepare_inputs.py`) and cases (`test_cases.csv`). It needs torch and pandas.
"""

import argparse
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from tools.evidence.suites.bindings import binding, stand_ins
from tools.evidence.suites.operator_words import MisfitError, run_in_place

import cubecore
from cubecore.errors import CubecoreError

MODULE = "kernel_gen_ops"


def binding_text(folder: Path) -> str:
    """Return the C++ of a task's binding, with the operator's names in the template's places."""
    text = (folder / "validation" / "pybind.cpp").read_text("utf-8")
    called = (folder / "validation" / "module.py").read_text("utf-8")
    names = re.findall(rf"{MODULE}\.(\w+)", re.sub(r"(?m)^\s*#.*$", "", called))
    text = text.replace("aclnnCustomOp", f"aclnn{folder.name}")
    return text.replace('"custom_pybind_api"', f'"{names[0]}"') if names else text


class Task:
    """A task: its operator, its modules, its cases."""

    def __init__(self, checkout: Path, folder: Path, work: Path, chip: str) -> None:
        self.folder, self.name = folder, folder.name
        self.findings: tuple[str, ...] = ()
        own = folder / "validation"
        stand_ins(self._called)
        sys.path.insert(0, str(checkout))
        self.project = cubecore.load_op(
            folder / "answer" / "0", includes=_includes(checkout), timeout_s=120, chip=chip
        )
        binding(binding_text(folder), MODULE, work)
        self.model = _loaded("suite_model", own / "module.py")
        has_inputs = hasattr(self.model, "get_init_inputs")
        self.inputs = self.model if has_inputs else _loaded("i", own / "prepare_inputs.py")
        self.check = _checks(checkout)

    def _called(self, name: str, arguments: list[Any]) -> None:
        names = dir(self.project)
        word = name.removeprefix("aclnn").replace("_", "").lower()
        fitting = [n for n in names if n.replace("_", "").lower() == word]
        operator = self.project[(fitting or names)[0]]
        self.findings += run_in_place(operator, arguments)

    def cases(self) -> list[Any]:
        """Return the rows of the task's cases, numbers as integers where they are whole."""
        import pandas as pd

        rows = pd.read_csv(self.folder / "validation" / "test_cases.csv", sep=";")
        for column in rows.columns:
            numbers = rows[column]
            known = pd.api.types.is_numeric_dtype(numbers) and not numbers.isna().any()
            if known and numbers.map(lambda value: float(value) == int(value)).all():
                rows[column] = numbers.astype(int)
        return [row for _, row in rows.iterrows()]

    def bytes_of(self, row: Any) -> int | None:
        """Return the bytes of the largest input, None where only making them tells."""
        try:
            given = self.inputs.get_inputs(row, device=torch.device("meta"))
        except Exception:  # noqa: BLE001 - the task's own code
            return None
        return max((t.numel() * t.element_size() for t in _tensors(given)), default=0)

    def outcome(self, row: Any, most: int) -> dict[str, Any]:
        """Return what a case came to."""
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 - what the benchmark's own modules draw from
        self.findings = ()
        given = self.inputs.get_inputs(row, device=torch.device("cpu"))
        if max((t.numel() * t.element_size() for t in _tensors(given)), default=0) > most:
            return {"outcome": "too large"}
        first = self.inputs.get_init_inputs(row, device=torch.device("cpu"))
        expected = self.model.Model(*_copied(first))(*_copied(given))
        if max((t.numel() * t.element_size() for t in _tensors(expected)), default=0) > most:
            return {"outcome": "too large"}
        if not self._accurate(row, expected, expected):
            return {"outcome": "not comparable"}
        try:
            got = self.model.ModelNew(*_copied(first))(*_copied(given))
        except (CubecoreError, MisfitError) as error:
            late = "did not end within" in str(error)
            return {"outcome": "no time" if late else "refused", "why": str(error)}
        accurate = self._accurate(row, expected, got)
        left = {"outcome": "verified" if accurate else "wrong"}
        return left | ({"findings": self.findings[:1]} if self.findings else {})

    def _accurate(self, row: Any, expected: Any, got: Any) -> bool:
        own = getattr(self.inputs, "custom_check_precision", None)
        if own is not None:
            return bool(own(row, expected, got)[0])
        plain = [list(each) if isinstance(each, tuple) else each for each in (expected, got)]
        return bool(self.check(*plain, 1e-3, 1e-3)[0])


def _includes(checkout: Path) -> list[Path]:
    """Return the folders of headers that the benchmark's build has for every task."""
    return sorted(path for path in (checkout / "libs").rglob("inc") if path.is_dir())


def _checks(checkout: Path) -> Any:
    """Return the benchmark's own comparison."""
    os.chdir(checkout)
    from framework.utils import check_precision  # type: ignore[import-not-found]

    return check_precision


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, dict):
        yield from _tensors(list(given.values()))
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)


def _copied(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.clone()
    if isinstance(given, dict):
        return {key: _copied(each) for key, each in given.items()}
    if isinstance(given, (list, tuple)):
        return type(given)(_copied(each) for each in given)
    return given


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def results(task: Task, most: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each case, the small ones first, for as long as there is time."""
    begin = _cpu_s()
    sized = [(task.bytes_of(row), number, row) for number, row in enumerate(task.cases())]
    sized.sort(key=lambda each: (each[0] or 0, each[1]))
    for size, number, row in sized:
        told = {"case": number, "bytes": size}
        if size is not None and size > most:
            yield told | {"outcome": "too large"}
        elif _cpu_s() - begin > seconds:
            yield told | {"outcome": "no time"}
        else:
            before = _cpu_s()
            try:
                left = task.outcome(row, most)
            except Exception as error:  # noqa: BLE001 - the task's own code
                left = {"outcome": "raised", "why": f"{type(error).__name__}: {error}"}
            yield told | left | {"cpu_s": round(_cpu_s() - before, 2)}


def main() -> None:
    """Run one task's cases."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("task", type=Path)
    parser.add_argument("--mb", type=float, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--chip", default="Ascend910_9392")
    asked = parser.parse_args()
    del sys.argv[1:]  # the benchmark's modules read options of their own
    asked.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    try:
        folders = (asked.checkout.resolve(), asked.task.resolve(), asked.work.resolve())
        task = Task(*folders, asked.chip)
    except (CubecoreError, RuntimeError, OSError, ImportError) as error:
        _told({"outcome": "refused", "why": str(error)})
        return
    for line in results(task, int(asked.mb * 2**20), asked.seconds):
        _told(line)


def _told(line: dict[str, Any]) -> None:
    """Print a line of its own, whatever the operator's host code has printed before."""
    print(f"\n{json.dumps(line)}", flush=True)


if __name__ == "__main__":
    main()

"""Tasks told by their content: files of arrays, Python functions, and those of public suites."""

import ast
from dataclasses import dataclass
from pathlib import Path

from cubecore.errors import refuse, unable, unreadable

ARRAYS, FUNCTION, TORCH = "arrays", "function", "torch"
NPU_KERNEL_BENCH, CANN_BENCH, SAMPLE_DATA = "NPUKernelBench", "cann-bench", "sample"
_COMMON = Path("libs", "common_include")
"""The headers of NPUKernelBench, as its configuration names them."""
_WITH_TORCH = {TORCH, NPU_KERNEL_BENCH, CANN_BENCH}


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """A task: its kind, its name and its file or folder.

    `includes` are folders for headers that its suite compiles submissions with.
    """

    kind: str
    name: str
    path: Path
    includes: tuple[Path, ...] = ()

    @property
    def needs_torch(self) -> bool:
        """True if its reference is written for torch."""
        return self.kind in _WITH_TORCH


def task_of(path: str | Path) -> JudgeTask:
    """Return the task in a file or folder.

    Raises
    ------
    RequestError
        If it cannot be read, or has no reference.
    """
    place, shown = Path(path), str(path)
    try:
        if place.is_dir():
            return _folder(place.resolve(), shown)
        raw = place.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from None
    if place.suffix == ".npz":
        return JudgeTask(ARRAYS, place.stem, place.resolve())
    if place.suffix != ".py":
        need = "be .npz, a Python file with a reference, or a folder of a suite"
        raise refuse("--task", need, shown)
    try:
        tree = ast.parse(raw, shown)
    except (SyntaxError, ValueError) as error:
        raise unable(shown, f"{shown} is no Python: {error}") from None
    names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    if "Model" in names:
        return JudgeTask(TORCH, place.stem, place.resolve())
    if "reference" not in names:
        remedy = "it needs reference(...) and inputs(case, rng), or a class Model with get_inputs"
        raise unable(shown, f"{shown} has no reference", remedy)
    if "inputs" not in names:
        raise unable(shown, f"{shown} has no inputs(case, rng)", "which returns the inputs by name")
    return JudgeTask(FUNCTION, place.stem, place.resolve())


def _folder(folder: Path, shown: str) -> JudgeTask:
    if (folder / "validation" / "module.py").is_file():
        return JudgeTask(NPU_KERNEL_BENCH, folder.name, folder, _suite_headers(folder))
    if (folder / "golden.py").is_file():
        return JudgeTask(CANN_BENCH, folder.name, folder)
    if (folder / "CMakeLists.txt").is_file():
        return JudgeTask(SAMPLE_DATA, folder.name, folder)
    remedy = "a task of NPUKernelBench has validation/module.py, one of cann-bench golden.py"
    raise unable(shown, f"{shown} has no reference", remedy)


def _suite_headers(folder: Path) -> tuple[Path, ...]:
    """Return the folders for headers in the checkout of NPUKernelBench that a task lies in."""
    common = (each / _COMMON for each in folder.parents)
    found = next((each for each in common if each.is_dir()), None)
    return tuple(sorted(each for each in found.iterdir() if each.is_dir())) if found else ()

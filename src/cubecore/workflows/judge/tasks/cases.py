"""Cases of a task with their expected results, and what a task's reference answers."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from cubecore.aliases import Json
from cubecore.errors import CubecoreError, unable
from cubecore.workflows.judge.blame import goes_further_in
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.comparison import Compared


@dataclass(frozen=True, eq=False, slots=True)
class ReferenceCase:
    """A case: what a submission is given, and what it must return.

    `made_with` are the arguments of a model's construction. `outcome` says why a case is not run;
    it is empty for one that is. `keeps_inputs` says that the reference left its inputs unchanged.
    `sizes` tells of a case that is smaller than the task's: its variant, numbers and costs.
    """

    name: str
    inputs: Any
    expected: Any
    made_with: Any = ()
    outcome: str = ""
    keeps_inputs: bool = True
    sizes: Json = field(default_factory=dict)


class Reference(Protocol):
    """A task's reference."""

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the cases, the small ones first."""

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare what a submission returned for a case."""


def module_of(path: Path, name: str = "cubecore_task") -> ModuleType:
    """Return the module in a file of a task's or a submission's author."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A task's code is for its reference alone: no compiled copy of it lies beside it.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise unable(path.name, f"{path.name} is no Python: {error}") from None
    finally:
        sys.dont_write_bytecode = writes
    return module


def called(task: str, owner: object, name: str, *arguments: Any, **words: Any) -> Any:
    """Call a function of a task's files as its suite does; `owner` is a module, or the function.

    Raises
    ------
    RequestError
        If there is none, or it does not take that: the file is of another version of the suite.
    """
    function = owner if callable(owner) else getattr(owner, name, None)
    if function is None:
        raise unable(task, f"{task} has no {name}")
    try:
        return function(*arguments, **words)
    except CubecoreError:
        raise
    except Exception as error:
        # Errors of the task's own code have their line, and those behind it are cubecore's.
        if goes_further_in(error):
            raise
        got = f"{type(error).__name__}: {error}"
        raise unable(task, f"{task}: {name} cannot be called as its suite does: {got}") from error

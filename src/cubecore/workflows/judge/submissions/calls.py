"""Submissions called: what runs the kernels of each kind, given a case's inputs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, refuse, unable
from cubecore.frontends.cpp.launch.modules import load
from cubecore.frontends.cpp.operator_projects.operator_project import (
    Operator,
    OperatorProject,
    load_op,
)
from cubecore.frontends.kernels.kernel import Kernel
from cubecore.workflows.judge.blame import is_ours, raised_by
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.kinds import (
    KERNEL,
    PROJECT,
    PYTHON,
    STRINGS,
    Submission,
)
from cubecore.workflows.judge.tasks.cases import module_of


@dataclass(frozen=True, eq=False, slots=True)
class GivenCase:
    """A case as a submission is given it: its inputs, and the types and shapes of its results."""

    name: str
    inputs: Any
    outputs: tuple[Json, ...]
    made_with: Any = ()

    def empty(self, number: int) -> Array:
        """Return a new array for a result."""
        record = self.outputs[number]
        return np.zeros(record["shape"], element_type(record["dtype"]).numpy)


Call = Callable[[GivenCase], Any]


@dataclass(frozen=True, eq=False, slots=True)
class OpenSubmission:
    """A submission that is ready: the names of its operators or kernels, and what runs a case.

    `in_place` says that one of its operators registers an input and an output of one name.
    """

    names: tuple[str, ...]
    call: Call
    in_place: bool = False


class StageError(Exception):
    """An error of a submission, and the stage that it ended in."""

    def __init__(self, stage: str, error: CubecoreError) -> None:
        super().__init__(str(error))
        self.stage, self.error = stage, error


def opened(submission: Submission, place: Path, options: JudgeOptions) -> OpenSubmission:
    """Return a submission, ready to be called; `place` is its folder or file.

    Raises
    ------
    StageError
        If it does not compile or cannot be loaded.
    RequestError
        If the request does not say what is to be called.
    """
    launch = options.launch
    if submission.kind in {PROJECT, STRINGS}:
        return _project(opened_project(place, launch, options), options)
    if submission.kind == KERNEL:
        return _kernel_file(place, launch, options)
    if submission.kind == PYTHON:
        return _python(place, options)
    remedy = "its task must be one of torch, with a class Model"
    raise unable(submission.path.name, f"a {submission.kind} is called by its ModelNew", remedy)


def opened_project(
    place: Path, launch: Mapping[str, Any], options: JudgeOptions
) -> OperatorProject:
    """Return an operator project.

    Raises
    ------
    StageError
        If its op_host does not compile.
    """
    try:
        return load_op(place, includes=options.includes, timeout_s=options.wall_s, **launch)
    except CubecoreError as error:
        raise StageError("host", error) from error


def _project(project: OperatorProject, options: JudgeOptions) -> OpenSubmission:
    names = tuple(dir(project))
    if options.entry == "" and len(names) > 1:
        raise refuse("entry", f"name an operator of the project ({', '.join(names)})", "none")
    operator = project[options.entry or names[0]]
    registration = operator.registration
    in_place = not {one.name for one in registration.inputs}.isdisjoint(
        one.name for one in registration.outputs
    )
    return OpenSubmission(names, lambda case: _operator_call(operator, case), in_place)


def _operator_call(operator: Operator, case: GivenCase) -> Any:
    """Run an operator: inputs by name, or in order; results where it infers no shape of its own."""
    registration = operator.registration
    known = {one.name for one in registration.inputs} | {
        one.name for one in registration.attributes
    }
    words: dict[str, Any] = dict(case.inputs)
    if any(name not in known for name in words):
        names = [
            *(one.name for one in registration.inputs),
            *(one.name for one in registration.attributes),
        ]
        if len(words) > len(names):
            need = f"take the {len(words)} inputs of the task ({', '.join(words)})"
            raise refuse(registration.type, need, ", ".join(names))
        words = dict(zip(names, words.values(), strict=False))
    inputs = {one.name for one in registration.inputs}
    for number, one in enumerate(one for one in registration.outputs if one.name not in inputs):
        if number < len(case.outputs):
            words[one.name] = case.empty(number)
    run = operator.run(**words, outputs="unwritten")
    return {one.name: array for one, array in zip(registration.outputs, run.outputs, strict=True)}


def _kernel_file(path: Path, launch: Mapping[str, Any], options: JudgeOptions) -> OpenSubmission:
    module = load(path, **launch)
    names = tuple(dir(module))
    if not options.entry and len(names) != 1:
        raise refuse("entry", f"name a kernel of {path.name} ({', '.join(names)})", "none")
    name = options.entry or names[0]
    if name.partition("<")[0] not in names:
        raise refuse("entry", f"name a kernel of {path.name} ({', '.join(names)})", name)
    try:
        kernel = module[name]
    except CubecoreError as error:
        raise StageError("kernel", error) from error
    return OpenSubmission((name,), lambda case: _kernel_call(kernel, case, options.blocks))


def _kernel_call(kernel: Kernel, case: GivenCase, blocks: int) -> Any:
    """Launch a kernel: inputs by name, the results as its other parameters, in their order."""
    names = list(kernel.names)
    words: dict[str, Any] = {n: v for n, v in case.inputs.items() if n in names}
    if len(words) < len(case.inputs):
        words = dict(zip(names, case.inputs.values(), strict=False))
    result_names = [str(record["name"]) for record in case.outputs]
    free = [name for name in names if name not in words]
    results = result_names if all(n in free for n in result_names) else free[: len(result_names)]
    if len(results) < len(result_names):
        need = f"have a parameter for each result ({', '.join(result_names)})"
        raise refuse(kernel.name, need, ", ".join(names) or "none")
    arrays = {name: case.empty(number) for number, name in enumerate(results)}
    kernel.using(outputs=tuple(results))[blocks](**words, **arrays)
    return dict(zip(result_names, arrays.values(), strict=True))


def _python(path: Path, options: JudgeOptions) -> OpenSubmission:
    try:
        module = module_of(path, "cubecore_submission")
    except Exception as error:
        if is_ours(error):
            raise
        sentence = raised_by("the submission", error)
        raise StageError("load", unable(path.name, sentence)) from error
    kernels = {n: v for n, v in vars(module).items() if isinstance(v, Kernel)}
    name = options.entry or (next(iter(kernels)) if len(kernels) == 1 else "")
    if not name:
        if not kernels:
            raise unable(path.name, f"{path.name} has no kernel", "a kernel has @cubecore.kernel")
        raise refuse("entry", f"name a kernel of {path.name} ({', '.join(kernels)})", "none")
    called = getattr(module, name, None)
    if isinstance(called, Kernel):
        kernel = called.using(**options.launch)
        return OpenSubmission((name,), lambda case: _kernel_call(kernel, case, options.blocks))
    if not inspect.isfunction(called):
        raise refuse("entry", f"name a kernel or a function of {path.name}", name)
    return OpenSubmission(tuple(kernels) or (name,), lambda case: called(**case.inputs))

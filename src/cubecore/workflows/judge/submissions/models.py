"""Submissions that are called by a ModelNew of torch: its bindings are served without torch.

The model's own code runs with torch in the submission's process. The modules of bindings that it
imports are stand-ins, whose functions run the compiled binding as a program.
"""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Json
from cubecore.chips import chip as chip_named
from cubecore.errors import CubecoreError, unable
from cubecore.frontends.cpp.host_programs.torch_glue import TorchBinding, compiled_binding
from cubecore.frontends.cpp.operator_projects.operator_project import OperatorProject
from cubecore.frontends.cpp.rewriting.source import source_of
from cubecore.frontends.kernels.session import current_session, is_blank, sampled_count
from cubecore.workflows.judge.blame import goes_further_in
from cubecore.workflows.judge.cheating.torch_operations import noted
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.calls import (
    GivenCase,
    OpenSubmission,
    StageError,
    opened_project,
)
from cubecore.workflows.judge.submissions.kinds import PROJECT, STRINGS, Submission, written_binding
from cubecore.workflows.judge.tasks.torch_modules import copied, stand_in
from cubecore.workflows.judge.tasks.torch_tasks import SEED
from cubecore.workflows.judge.values import (
    array_of,
    is_tensor,
    sized_array,
    sized_tensor,
    tensor_of,
)

_MODULE = re.compile(r"PYBIND11_MODULE\(\s*(\w+)")
_LIBRARY = re.compile(r"TORCH_LIBRARY(?:_FRAGMENT)?\(\s*(\w+)")
_OF_SUITE = "custom_ops_lib"
"""The name that MultiKernelBench gives to the module of a project's binding."""


def opened_model(
    submission: Submission, place: Path, options: JudgeOptions, model: Json
) -> OpenSubmission:
    """Return a submission whose ModelNew is called, with its bindings compiled.

    Raises
    ------
    StageError
        If the project or a binding does not compile, or the model cannot be loaded.
    RequestError
        If there is no model, or it has no binding.
    """
    stand_in()
    text = model["text"] or submission.model
    if not text:
        raise unable(submission.path.name, f"{submission.path.name} has no ModelNew")
    project = None
    if submission.kind in {PROJECT, STRINGS}:
        project = opened_project(place, options.launch, options)
    sources = [place / name for name in submission.bindings]
    if model["binding"]:
        sources = [written_binding(model["binding"])]
    if not sources:
        raise unable(submission.path.name, f"{submission.path.name} has no binding")
    binding = _binding(sources, project, options)
    _register(binding, sources, model["module"])
    model_class = _model_of(text, place if place.is_dir() else place.parent)
    kernels = (entry.name for path in sources for entry in source_of(path).scan.entries)
    names = tuple(dir(project)) if project is not None else tuple(kernels)

    def call(case: GivenCase) -> Any:
        import torch

        torch.manual_seed(SEED)
        device = torch.device("meta") if is_blank() else nullcontext()
        try:
            with noted(), torch.no_grad(), device:
                return model_class(*copied(case.made_with))(*copied(case.inputs))
        except CubecoreError:
            raise
        except Exception as error:
            if goes_further_in(error):
                raise
            got = f"{type(error).__name__}: {error}"
            raise unable("ModelNew", f"ModelNew cannot be called as Model: {got}") from error

    return OpenSubmission(names, call)


def _binding(
    sources: Sequence[Path], project: OperatorProject | None, options: JudgeOptions
) -> TorchBinding:
    arch = chip_named(options.chip).arch
    try:
        return compiled_binding(sources, _operators(project), arch=arch, timeout_s=options.wall_s)
    except CubecoreError as error:
        raise StageError("binding", error) from error


def _operators(
    project: OperatorProject | None,
) -> Callable[[str, list[Any], Sequence[bool]], Sequence[NDArray[np.bool_] | None]]:
    """Return what runs the operators of a project that a binding calls."""

    def run(
        name: str, arguments: list[Any], unwritten: Sequence[bool]
    ) -> Sequence[NDArray[np.bool_] | None]:
        if project is None:
            raise unable(name, f"the binding calls {name}, and the submission has no operator")
        registration = project[_operator_name(project, name)].registration
        inputs = {one.name for one in registration.inputs}
        outputs = [one.name for one in registration.outputs if one.name not in inputs]
        places = range(len(arguments) - len(outputs), len(arguments))
        fresh = [n for n, at in zip(outputs, places, strict=True) if unwritten[at]]
        call = project.aclnn(registration.type, arguments, outputs=fresh)
        masks: list[NDArray[np.bool_] | None] = [None] * len(arguments)
        for output, at in zip(outputs, places, strict=True):
            if output in fresh and not isinstance(arguments[at], list):
                kernel_name = call.parameters.get(output, output)
                if kernel_name in call.launch.unwritten:
                    marks = call.launch.stored if sampled_count() else call.launch.written
                    masks[at] = marks(kernel_name)
        return masks

    return run


def _operator_name(project: OperatorProject, name: str) -> str:
    """Return the operator that a binding names; a project's only one answers to any name."""
    word, names = name.removeprefix("aclnn"), dir(project)
    fitting = [n for n in names if n.replace("_", "").lower() == word.replace("_", "").lower()]
    return fitting[0] if fitting else names[0] if len(names) == 1 else word


def _register(binding: TorchBinding, sources: Sequence[Path], module: str) -> None:
    """Register the modules and libraries that models call a binding by."""
    import torch

    text = "\n".join(path.read_text("utf-8", "replace") for path in sources)
    names = {match[1] for match in _MODULE.finditer(text)} - {"TORCH_EXTENSION_NAME"}
    names |= {module or _OF_SUITE}
    for name in names:
        sys.modules[name] = _BindingModule(name, binding)
    for match in _LIBRARY.finditer(text):
        setattr(torch.ops, match[1], _BindingModule(match[1], binding))
    torch.ops.load_library = _nothing


def _nothing(*_: Any) -> None:
    """Load nothing: a binding is compiled already."""


class _BindingModule(ModuleType):
    """A module whose functions are those of a binding."""

    def __init__(self, name: str, binding: TorchBinding) -> None:
        super().__init__(name)
        self.__dict__["cubecore_binding"] = binding

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _BoundFunction(self.__dict__["cubecore_binding"], name)


class _BoundFunction:
    """A function of a binding, which takes and returns tensors of torch."""

    def __init__(self, binding: TorchBinding, name: str) -> None:
        self._binding, self._name = binding, name
        self.default = self

    def __call__(self, *arguments: Any, **words: Any) -> Any:
        arrays: list[tuple[Any, Any]] = []
        values = [_given(each, arrays) for each in arguments]
        named = {word: _given(each, arrays) for word, each in words.items()}
        result = self._binding.call(self._name, values, named)
        for tensor, array in arrays:
            if is_blank():
                break
            if array_of(tensor).tobytes() != array.tobytes():
                tensor.copy_(tensor_of(array))  # the call has changed it
        session = current_session()
        if session is not None:
            session.returned += result.written
        return _returned(result.value)


def _given(value: Any, arrays: list[tuple[Any, Any]]) -> Any:
    """Return an argument with arrays for tensors; one tensor has one array in a call."""
    import torch

    if is_tensor(value):
        known = next((array for tensor, array in arrays if tensor is value), None)
        if known is None:
            known = sized_array(value) if value.is_meta else array_of(value).copy()
            arrays.append((value, known))
        return known
    if isinstance(value, (list, tuple)):
        return [_given(each, arrays) for each in value]
    if isinstance(value, torch.dtype):
        return array_of(torch.empty(0, dtype=value)).dtype
    return value


def _returned(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return sized_tensor(value.shape, str(value.dtype)) if is_blank() else tensor_of(value)
    return tuple(_returned(each) for each in value) if isinstance(value, list) else value


def _model_of(text: str, folder: Path) -> Any:
    """Return the ModelNew of a text, which may import what lies in a folder.

    Raises
    ------
    StageError
        If the text cannot be executed, or has no ModelNew.
    """
    module = ModuleType("cubecore_model")
    module.__file__ = str(folder / "model_new.py")
    sys.path.insert(0, str(folder))
    try:
        exec(compile(text, module.__file__, "exec"), vars(module))  # noqa: S102 - the submission
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise StageError("load", unable("ModelNew", f"its model raised {got}")) from error
    model_class = getattr(module, "ModelNew", None)
    if model_class is None:
        raise StageError("load", unable("ModelNew", "its model has no class ModelNew"))
    return model_class

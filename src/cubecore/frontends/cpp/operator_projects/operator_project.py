"""Operator projects from Python: `load_op` makes callables of a folder's operators."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips import chip as chip_named
from cubecore.errors import did_you_mean, refuse, unable
from cubecore.frontends.cpp.launch.argument_types import typed_bytes
from cubecore.frontends.cpp.launch.kernels import CppKernel, kernel_of
from cubecore.frontends.cpp.launch.launch_options import LIMIT, TIMEOUT_S
from cubecore.frontends.cpp.operator_projects.aclnn_call import aclnn_words
from cubecore.frontends.cpp.operator_projects.host_calls import HostCalls, HostTiling
from cubecore.frontends.cpp.operator_projects.host_library import HostLibrary, host_library
from cubecore.frontends.cpp.operator_projects.operator_call import (
    GivenArray,
    OperatorCall,
    operator_call,
)
from cubecore.frontends.cpp.operator_projects.project_files import (
    ProjectFiles,
    project_files,
    with_headers,
)
from cubecore.frontends.cpp.operator_projects.registration import (
    DYNAMIC,
    OPTIONAL,
    OperatorParameter,
    Registration,
    plain,
)
from cubecore.frontends.cpp.rewriting.source import Source, defined_words, source_of
from cubecore.frontends.kernels.session import KernelRun, LaunchOptions, current_session
from cubecore.frontends.kernels.tensor_lists import TensorList
from cubecore.frontends.source_locations import shown_path
from cubecore.machine.sanitize.findings import faults

_LEAST_WORKSPACE = 32
"""Bytes: the pointer is never null."""
_BEHIND = ("workspace", "tiling")
"""The last parameters of a kernel."""
_SHAPE_WORDS = 9
"""Numbers of 64 bits for the shape of an output that the kernel says: rank and sizes."""


@dataclass(frozen=True, eq=False, slots=True)
class ProjectRun:
    """The result of an operator's run.

    Attributes
    ----------
    outputs : tuple of arrays
        The outputs in the order of the registration; a list of tensors is a list of arrays.
    launch : KernelRun
        The launch of its kernel: findings, instructions, tensors.
    tiling : HostTiling
        The results of its tiling function: blocks, key, workspaces, data.
    parameters : dict
        The kernel's names of its arrays, by those of the registration.
    """

    outputs: tuple[Array | list[Array], ...]
    launch: KernelRun
    tiling: HostTiling
    parameters: dict[str, str] = field(default_factory=dict, repr=False)

    def written(self, name: str) -> NDArray[np.bool_]:
        """Return which bytes of an output its kernel has written, as `KernelRun.written` does.

        Parameters
        ----------
        name : str
            The output, by its name in the registration; of a list an element, as ``y[0]``.

        Returns
        -------
        array of bool
            A mark for each byte, in the array's order.

        Raises
        ------
        RequestError
            If there is no such output, or the kernel began with its contents.
        """
        word, bracket, index = name.partition("[")
        return self.launch.written(f"{self.parameters.get(word, word)}{bracket}{index}")


class OperatorProject:
    """The operators of a project's folder: ``project.add_custom(x, y)``.

    The op_host is compiled once; kernels are compiled for the types that they are called with.
    """

    def __init__(
        self,
        folder: str | Path,
        defines: Mapping[str, object],
        includes: Sequence[str | Path],
        options: Mapping[str, Any],
    ) -> None:
        launch = dict(options)
        self._verbose = bool(launch.pop("verbose", False))
        self._timeout_s = float(launch.pop("timeout_s", TIMEOUT_S))
        self._auto_sync = bool(launch.pop("auto_sync", True))
        self._options = LaunchOptions(limit=LIMIT).changed(launch)
        self._defines = dict(defines)
        self._files: ProjectFiles = project_files(folder, includes)
        self._library: HostLibrary = host_library(
            self._files, defined_words(self._defines), verbose=self._verbose
        )
        self._operators = {own.word: own for own in self._calls().registered() if own.defined}
        if not self._operators:
            raise self._nothing()

    def _calls(self) -> HostCalls:
        options = self._options.of_session()
        chip = chip_named(options.chip).what_if(options.settings)
        return HostCalls(self._library.path, chip, self._timeout_s)

    def _nothing(self) -> Exception:
        shown = shown_path(self._files.folder)
        if self._library.failed:
            return unable(str(shown), self._library.failed[0])
        sentence = f"{shown} registers no operator"
        return unable(str(shown), sentence, "its op_host needs an OP_ADD")

    def __getattr__(self, name: str) -> "Operator":
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> "Operator":
        """Return an operator by its name: add_custom or AddCustom.

        Raises
        ------
        RequestError
            If the project has no such operator.
        """
        own = self._operators.get(plain(name))
        if own is None:
            names = dir(self)
            need = f"have the operator {name}"
            got = f"{', '.join(names)}"
            raise refuse(str(shown_path(self._files.folder)), need, got, did_you_mean(name, names))
        return Operator(self, own)

    def __dir__(self) -> list[str]:
        return [self._entry(own)[1] for own in self._operators.values()]

    def _entry(self, own: Registration) -> tuple[Path | None, str]:
        """Return the file and the name of an operator's kernel."""
        for path in self._files.kernels:
            for entry in source_of(path).scan.entries:
                if plain(entry.name) == own.word:
                    return path, entry.name
        return None, own.type

    def aclnn(
        self, name: str, arguments: Sequence[object], *, outputs: str | Sequence[str] = "given"
    ) -> ProjectRun:
        """Run an operator as a call of its aclnn function would, its arguments in one order.

        Parameters
        ----------
        name : str
            The operator: ``aclnnAddCustom`` or ``AddCustom``.
        arguments : sequence
            Inputs, attributes and outputs in the order of the registration: arrays, lists of
            arrays, numbers, and None for an optional input without a value.
        outputs : str or sequence of str
            As in `Operator.run`.

        Returns
        -------
        ProjectRun
            The outputs, the launch with its findings, and the tiling.

        Raises
        ------
        RequestError
            If the project has no such operator, or an argument is missing or wrong.
        CubecoreError
            If the tiling function or the kernel fails.
        """
        operator = self[name.removeprefix("aclnn")]
        given = aclnn_words(operator.registration, arguments)
        left = self.call(operator.registration, (), given.words, outputs=outputs)
        given.write_back()
        return left

    def call(
        self,
        own: Registration,
        arrays: Sequence[object],
        words: Mapping[str, object],
        *,
        outputs: str | Sequence[str] = "given",
    ) -> ProjectRun:
        """Run an operator: its inference, its tiling function, its kernel.

        `outputs` are as in `Operator.run`.

        Raises
        ------
        RequestError
            If a value is missing or wrong, or a file does not compile.
        CubecoreError
            If the tiling function or the kernel fails.
        """
        calls = self._calls()
        if not own.tiles:
            sentence = f"{own.type} has no tiling function"
            reason = self._library.failed[0] if self._library.failed else ""
            raise unable(own.type, reason or sentence, "" if reason else "see its op_host")
        unwritten = _unwritten(own, outputs)
        call = operator_call(own, calls, arrays, words)
        session = current_session()
        if session is not None:
            valued = (each for each in call.inputs if each.parameter.valued)
            session.host_values.update({one.parameter.name: one.array.nbytes for one in valued})
        tiling = calls.tiling(call.request)
        kernel, values = self._launch(call, tiling, unwritten)
        launch = kernel[tiling.blocks](*values)
        shapes = values[-1 - len(_BEHIND)] if _computed(own) else None
        names = dict(zip((one.name for one in _in_order(own)), kernel.names, strict=False))
        return ProjectRun(tuple(_outputs(call, shapes)), launch, tiling, names)

    def _launch(
        self, call: OperatorCall, tiling: HostTiling, unwritten: frozenset[str]
    ) -> tuple[CppKernel, tuple[object, ...]]:
        """Return the kernel and its arguments."""
        own = call.registration
        path, entry = self._entry(own)
        if path is None:
            sentence = f"{shown_path(self._files.folder)} has no kernel for {own.type}"
            raise unable(own.type, sentence, "its entry has the operator's name in small letters")
        self._files, kernel = with_headers(
            self._files,
            path,
            lambda files: kernel_of(
                self._source(path, call, files, tiling.key),
                f"{entry}<{tiling.template}>" if tiling.template else entry,
                verbose=self._verbose,
                auto_sync=self._auto_sync,
                **_fields(self._options),
            ),
        )
        # The vendor's convention: inputs, outputs, where needed the outputs' shapes, workspace,
        # tiling data.
        names = [p.name for p in kernel.parameters]
        session = current_session()
        if session is not None:
            words = (one.name for one in _in_order(own))
            session.parameters = dict(zip(words, names, strict=False))
        computed = _computed(own)
        wanted = [*(p.name for p in _in_order(own)), *(["shapes"] if computed else []), *_BEHIND]
        if len(names) != len(wanted):
            need = f"have the parameters {', '.join(wanted)}"
            raise refuse(f"{entry}", need, ", ".join(names) or "none")
        values = [_value(one, call) for one in _in_order(own)]
        if computed:
            values.append(np.zeros(_SHAPE_WORDS * len(computed), np.uint64))
        workspace = _workspace(own, sum(tiling.workspaces))
        raw = np.frombuffer(tiling.data or bytes(8), np.uint8).copy()
        data = typed_bytes(kernel.parameters[-1], raw)
        fresh: list[str] = []
        begins = call.fresh | unwritten
        for name, one, value in zip(names, _in_order(own), values, strict=False):
            if one.name in begins and one in own.outputs and not one.initial:
                fresh += _elements(name, value)
        kind = {"kind": tiling.kind} if tiling.kind else {}
        changed = kernel.changed(
            **kind,
            outputs=tuple(fresh),
            scratch=(names[-2],),
            workspace=names[-2],
            timeout_s=self._timeout_s,
            tiling_key=tiling.key,
        )
        return changed, (*values, workspace, data)

    def _source(self, path: Path, call: OperatorCall, files: ProjectFiles, key: int) -> Source:
        defines: dict[str, object] = {}
        for given in (*call.inputs, *call.outputs):
            name = given.parameter.name.upper()
            defines[f"DTYPE_{name}"] = given.type.kernel
            defines[f"ORIG_DTYPE_{name}"] = given.type.name
            defines[f"FORMAT_{name}"] = "FORMAT_ND"
        source = source_of(path, {**defines, **self._defines})
        includes = tuple(str(folder) for folder in files.includes)
        return Source(source.path, source.text, source.defines, includes, key)


def _unwritten(own: Registration, outputs: str | Sequence[str]) -> frozenset[str]:
    """Return the outputs that count as unwritten although they are given.

    Raises
    ------
    RequestError
        If it is neither given, unwritten nor names of outputs.
    """
    inputs = {one.name for one in own.inputs}
    names = [one.name for one in own.outputs if one.name not in inputs]
    if isinstance(outputs, str):
        if outputs not in {"given", "unwritten"}:
            raise refuse("outputs", "be given, unwritten, or a list of names", repr(outputs))
        return frozenset(names if outputs == "unwritten" else ())
    for name in outputs:
        if name not in names:
            need = f"name outputs of {own.type} ({', '.join(names) or 'none'})"
            raise refuse("outputs", need, name, did_you_mean(name, names))
    return frozenset(outputs)


def _workspace(own: Registration, size: int) -> Any:
    """Return the workspace that a tiling function asks for, or what each kernel has."""
    try:
        return np.zeros(max(size, _LEAST_WORKSPACE), np.uint8)
    except MemoryError:
        need = "fit the memory of this machine"
        raise refuse(f"the workspaces of {own.type}", need, f"{size} B") from None


def _computed(own: Registration) -> list[OperatorParameter]:
    """Return the outputs whose shape the kernel says (page OutputShapeDependOnCompute)."""
    return [one for one in own.outputs if one.computed]


def _outputs(call: OperatorCall, shapes: Any) -> Iterator[Array | list[Array]]:
    """Yield the outputs, in the shapes that the kernel has written if it says them."""
    own = call.registration
    places = {one.name: _SHAPE_WORDS * n for n, one in enumerate(_computed(own))}
    for one in own.outputs:
        arrays = [each.array for each in call.outputs if each.parameter is one]
        if one.name in places:
            sizes = [int(word) for word in shapes[places[one.name] :][:_SHAPE_WORDS]]
            arrays = [_of_shape(own, one.name, arrays[0], sizes)]
        yield arrays if one.kind == DYNAMIC else arrays[0]


def _of_shape(own: Registration, name: str, array: Array, sizes: Sequence[int]) -> Array:
    rank = sizes[0] & 0x7FFFFFFF  # bit 31 says that sizes have 64 bits, which they have here
    shape = tuple(sizes[1 : 1 + rank])
    if rank >= _SHAPE_WORDS or math.prod(shape) > array.size:
        need = f"fit in its array of {array.size} elements"
        got = f"{rank} axes" if rank >= _SHAPE_WORDS else f"{shape}"
        raise refuse(f"the shape that {own.type} writes for {name}", need, got)
    return array.reshape(-1)[: math.prod(shape)].reshape(shape) if rank else array


def _fields(options: LaunchOptions) -> dict[str, Any]:
    from dataclasses import fields

    return {f.name: getattr(options, f.name) for f in fields(options)}


def _in_order(own: Registration) -> list[OperatorParameter]:
    """Return the parameters that a kernel has for an operator: inputs, then outputs."""
    return [*own.inputs, *own.outputs]


def _value(one: OperatorParameter, call: OperatorCall) -> object:
    """Return a kernel's argument for a parameter."""
    is_output = any(one is each.parameter for each in call.outputs)
    found: list[GivenArray] = [
        each for each in (call.outputs if is_output else call.inputs) if each.parameter is one
    ]
    if one.kind == DYNAMIC:
        return TensorList([_bytes_of(each) for each in found]) if found else None
    if not found:
        assert one.kind == OPTIONAL
        return None
    return _bytes_of(found[0])


def _bytes_of(given: GivenArray) -> Array:
    """Return an array as a launch takes it; types that the chip does not have are bytes."""
    plain_types = {"bool", "float64", "complex64"}
    array = given.array
    if given.type.array not in plain_types:
        return array
    return array.reshape(-1).view(np.uint8)


def _elements(name: str, value: object) -> list[str]:
    """Return the names of an argument's arrays."""
    if isinstance(value, TensorList):
        return [value.element(name, index) for index in range(len(value.arrays))]
    return [name]


class Operator:
    """An operator of a project, called with arrays, and with attributes by name."""

    def __init__(self, project: OperatorProject, registration: Registration) -> None:
        self._project, self.registration = project, registration

    def run(
        self, /, *arrays: object, outputs: str | Sequence[str] = "given", **words: Any
    ) -> ProjectRun:
        """Run the operator, and return everything that it left.

        Parameters
        ----------
        *arrays : arrays
            The inputs in the order of the registration, then outputs if wanted.
        **words : arrays or numbers
            Inputs, outputs and attributes by name. An output is made where none is given.
        outputs : str or sequence of str
            given: an output array that is given holds its contents when the kernel begins.
            unwritten: it counts as unwritten, as one that is made does, and must be written whole;
            names say so of some. An output that is also an input always holds its contents.

        Returns
        -------
        ProjectRun
            The outputs, the launch with its findings, and the tiling.

        Raises
        ------
        RequestError
            If a value is missing or wrong, or a file does not compile.
        CubecoreError
            If the tiling function or the kernel fails.
        """
        own = self.registration
        names = {one.name for one in (*own.inputs, *own.outputs)} | {a.name for a in own.attributes}
        if "outputs" in names:
            return self._project.call(own, arrays, {**words, "outputs": outputs})
        return self._project.call(own, arrays, words, outputs=outputs)

    def __call__(self, /, *arrays: object, **words: Any) -> Any:
        """Run the operator, and return its outputs; of several a tuple.

        Raises
        ------
        RequestError
            As `run`.
        CubecoreError
            As `run`; or if the checks find something, and no script's session reports it.
        """
        left = self.run(*arrays, **words)
        findings = faults(left.launch.findings)
        if findings and current_session() is None:
            own = self.registration.type
            remedy = "run(...) returns the outputs all the same"
            error = unable(own, f"{own}: {findings[0].message}", remedy)
            error.findings = findings
            raise error
        return left.outputs[0] if len(left.outputs) == 1 else left.outputs


def load_op(
    folder: str | Path,
    defines: Mapping[str, object] | None = None,
    *,
    includes: Sequence[str | Path] = (),
    **options: Any,
) -> OperatorProject:
    """Return the operators of a project: a folder with op_host and op_kernel.

    Parameters
    ----------
    folder : str or Path
        The folder.
    defines : mapping or None
        Macros for its host code and its kernels, beside the DTYPE_ macros of the arrays' types.
    includes : sequence of str or Path
        Folders in which its build looks for headers, beside those of the project.
    **options : object
        Fields of `LaunchOptions`: chip, settings, checks, limit, order, trace, engine; and
        auto_sync, timeout_s and verbose.

    Returns
    -------
    OperatorProject
        The operators by their names.

    Raises
    ------
    RequestError
        If there is no such folder, or its op_host does not compile.

    Examples
    --------
    >>> project = cubecore.load_op("add_custom")  # doctest: +SKIP
    >>> z = project.add_custom(x, y)  # doctest: +SKIP
    """
    return OperatorProject(folder, defines or {}, includes, options)

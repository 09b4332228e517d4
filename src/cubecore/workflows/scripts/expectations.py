"""Expected results of a script's launches: files of values that its arrays are compared with."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, did_you_mean, refuse, unable, unreadable
from cubecore.frontends.kernels.session import KernelRun, ScriptSession
from cubecore.frontends.result_comparison import (
    ResultComparison,
    Tolerance,
    arrays_of,
    compared,
    is_output,
)
from cubecore.workflows.data.files import announced, array_file, load_array

if TYPE_CHECKING:
    from cubecore.frontends.tik.host.kernel import TikRun


@dataclass(frozen=True, slots=True)
class ExpectOptions:
    """Options of the command line for expected results: ``NAME=FILE`` of each, and tolerances."""

    files: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None


@dataclass(eq=False, slots=True)
class Expectations:
    """The files of expected values by array, and what came of the launches so far.

    Of several launches with an array of a name the last one that writes it counts.
    """

    files: dict[str, str]
    tolerance: Tolerance
    session: ScriptSession
    compared: dict[str, ResultComparison] = field(default_factory=dict)
    refusals: dict[str, CubecoreError] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)

    def judge(self, run: "KernelRun | TikRun") -> None:
        """Compare the arrays of a launch while they hold what it left."""
        arrays, words = arrays_of(run), self.session.parameters
        self.outputs |= dict.fromkeys(run.outputs)
        for given, path in self.files.items():
            name = words.get(given, given)
            if not is_output(run, name, arrays):
                continue
            self.outputs[given] = None
            try:
                wanted = _expected(f"--expect {given}", path, arrays[name])
            except CubecoreError as error:  # the script ends first
                self.refusals[given] = error
                continue
            values = arrays[name]
            if values.dtype != wanted.dtype:  # bytes, as memory of a program is
                values = values.view(wanted.dtype).reshape(wanted.shape)
            one = compared(run, name, values, wanted, self.tolerance, path)
            self.compared[given] = replace(one, name=given)

    def results(self) -> tuple[ResultComparison, ...]:
        """Return the comparisons.

        Raises
        ------
        RequestError
            If a name is of no array that a launch wrote, or a file has other values than that.
        """
        for given in self.files:
            if given in self.refusals:
                raise self.refusals[given]
            if given not in self.compared:
                words = {parameter: name for name, parameter in self.session.parameters.items()}
                written = dict.fromkeys((*self.outputs, *self.session.results))
                names = [words.get(name, name) for name in written]
                need = f"name an array that a kernel writes ({', '.join(names) or 'none'})"
                raise refuse("--expect", need, given, did_you_mean(given, names))
        return tuple(self.compared[given] for given in self.files)


def expectations(asked: ExpectOptions, session: ScriptSession) -> Expectations | None:
    """Return the expected results that were asked for; None for none.

    Raises
    ------
    RequestError
        If a text is not NAME=FILE, a file is not there, or a tolerance is no finite number from 0.
    """
    if not asked.files:
        for option, value in (("--rtol", asked.rtol), ("--atol", asked.atol)):
            if value is not None:
                raise unable(option, f"{option} needs --expect NAME=FILE")
        return None
    files: dict[str, str] = {}
    for text in asked.files:
        name, sign, path = text.partition("=")
        if not (sign and name and path):
            raise refuse("--expect", "be NAME=FILE, as z=golden.npy", repr(text))
        if name in files:
            raise unable("--expect", f"--expect {name} is given twice")
        _require_readable(path)
        files[name] = path
    return Expectations(files, _tolerance(asked), session)


def _tolerance(asked: ExpectOptions) -> Tolerance:
    for option, value in (("--rtol", asked.rtol), ("--atol", asked.atol)):
        if value is not None and not 0 <= value < math.inf:
            raise refuse(option, "be a finite number from 0 on", f"{value:g}")
    return Tolerance(asked.rtol, asked.atol)


def _require_readable(path: str) -> None:
    try:
        with Path(array_file(path)).open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def _expected(subject: str, path: str, values: Array) -> Array:
    """Return the values in a file, of the type and shape of an array, or of its bytes."""
    if not path.endswith((".npy", ".safetensors")) and ".safetensors:" not in path:
        return _of_bytes(subject, path, values)
    kind, shape = values.dtype.name, values.shape
    if values.dtype == np.uint8 and values.ndim == 1 and path.endswith(".npy"):
        kind, shape = _of_untyped(subject, path, values.size)
    return load_array(path, element_type(kind), shape, subject)


def _of_untyped(subject: str, path: str, size: int) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape that a file has, for bytes without a type of their own."""
    kind, shape = announced(path, subject)
    element = element_type(kind, f"{subject} {path}")
    if math.prod(shape) * element.bits != 8 * size:
        got = f"{kind} {list(shape)}"
        raise refuse(f"{subject} {path}", f"have the {size} B of the array", got)
    return kind, shape


def _of_bytes(subject: str, path: str, values: Array) -> Array:
    try:
        raw = np.fromfile(path, np.uint8)
    except OSError as error:
        raise unreadable(path, error) from None
    if raw.size != values.nbytes:
        raise refuse(f"{subject} {path}", f"have {values.nbytes} B", f"{raw.size} B")
    return raw.view(values.dtype).reshape(values.shape)

"""Arrays that a launch left, compared with the values that they should hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.errors import did_you_mean, refuse
from cubecore.frontends.kernels.session import KernelRun
from cubecore.frontends.result_writer import ElementWriter, writer_of, writes_into
from cubecore.presented import Figures, Presented

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cubecore.frontends.tik.host.kernel import TikRun

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}
"""Relative and absolute tolerance by type: the defaults of torch.testing.assert_close."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The distance of elements from their expected values: `absolute` + `relative` times that.

    None is the type's default: that of torch.testing.assert_close, exact for integers, one unit in
    the last place for other floats.
    """

    relative: float | None = None
    absolute: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no distance."""
        for name, value in (("rtol", self.relative), ("atol", self.absolute)):
            if value is not None and not 0 <= value < float("inf"):
                raise refuse(name, "be a finite number from 0 on", value)

    def of(self, kind: "np.dtype[Any]") -> tuple[float, float]:
        """Return the relative and the absolute tolerance for elements of a type."""
        usual = _TOLERANCES.get(kind.name, (_epsilon(kind), 0.0))
        relative = usual[0] if self.relative is None else self.relative
        return relative, usual[1] if self.absolute is None else self.absolute


def _epsilon(kind: "np.dtype[Any]") -> float:
    if kind.kind in "iub":
        return 0.0
    import ml_dtypes

    return float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class WrongElement:
    """An element that differs: its index, its value, what was expected, and the line that wrote it.

    `writer` is None where no instruction of the launch wrote it, or the launch kept none.
    """

    index: tuple[int, ...]
    value: float
    expected: float
    writer: ElementWriter | None

    def to_json(self) -> Json:
        """Return the element as JSON; numbers that JSON does not have are texts."""
        writer = self.writer
        where = None if writer is None else writer.location
        return {
            "index": list(self.index),
            "value": _number(self.value),
            "expected": _number(self.expected),
            "file": None if where is None else where.file,
            "line": None if where is None else where.line,
            "core": None if writer is None else writer.core,
        }


@dataclass(frozen=True, eq=False, slots=True)
class ResultComparison(Presented):
    """An array of a launch beside the values that it should hold.

    Attributes
    ----------
    name : str
        The array's name.
    source : str
        The file that the expected values come from; empty for an array.
    elements : int
        The elements that were compared.
    wrong : int
        Those further from their expected values than the tolerance.
    first : WrongElement or None
        The first of them, with the source line that wrote it.
    largest_error : float
        The largest distance of any element from its expected value.
    rtol : float
        The relative tolerance.
    atol : float
        The absolute tolerance.
    traced : bool
        Whether the launch kept its instructions, by which the line is found.
    """

    name: str
    source: str
    elements: int
    wrong: int
    first: WrongElement | None
    largest_error: float
    rtol: float
    atol: float
    traced: bool

    @property
    def verified(self) -> bool:
        """True if every element is as expected."""
        return self.wrong == 0

    def to_json(self) -> Json:
        """Return the comparison as JSON.

        Returns
        -------
        dict
            The fields, with ``verified``.
        """
        return {
            "name": self.name,
            "expected": self.source or None,
            "verified": self.verified,
            "elements": self.elements,
            "wrong": self.wrong,
            "first": None if self.first is None else self.first.to_json(),
            "largest_error": _number(self.largest_error),
            "rtol": self.rtol,
            "atol": self.atol,
        }

    @property
    def text(self) -> str:
        """The counts; of an array that differs its first wrong element and who wrote it."""
        whole = self.source or "the expected values"
        limit = f" within rtol {self.rtol:g} and atol {self.atol:g}" if self._has_limit else ""
        if self.first is None:
            largest = f"; largest error {self.largest_error:.6g}" if self._has_limit else ""
            return f"{self.name}: all {self.elements:,} elements equal {whole}{limit}{largest}"
        index = ", ".join(map(str, self.first.index))
        lines = [
            f"{self.name}: {self.wrong:,} of {self.elements:,} elements differ from {whole}"
            f"{limit and ' by more than' + limit.removeprefix(' within')}",
            f"  first {self.name}[{index}] = {self.first.value:.9g}, expected "
            f"{self.first.expected:.9g}; largest error {self.largest_error:.6g}",
        ]
        if self.first.writer is not None:
            lines.append(f"  written at {self.first.writer}")
        elif self.traced:
            lines.append("  no instruction of the kernel wrote it")
        return "\n".join(lines)

    @property
    def _has_limit(self) -> bool:
        return bool(self.rtol or self.atol)

    def to_rows(self) -> list[Json]:
        """Return the comparison as a row.

        Returns
        -------
        list of dict
            One row.
        """
        return [self.to_json()]

    def _figures(self) -> Figures:
        figures = [("wrong", f"{self.wrong:,}"), ("elements", f"{self.elements:,}")]
        return self.name, [*figures, ("largest error", f"{self.largest_error:.3g}")]


def _number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)


def compare_result(
    run: "KernelRun | TikRun",
    name: str,
    expected: object,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> ResultComparison:
    """Compare an array that a launch left with the values that it should hold.

    NaN equals NaN, and an infinity the same infinity.

    Parameters
    ----------
    run : KernelRun or TikRun
        The launch; the line that wrote a wrong element is known if it was made with ``trace=True``.
    name : str
        The array's name: a parameter of the kernel that it writes.
    expected : array
        The values, of the array's type and shape.
    rtol : float or None
        The relative tolerance; by default that of the type.
    atol : float or None
        The absolute tolerance; by default that of the type.

    Returns
    -------
    ResultComparison
        The count of wrong elements, the largest error, and the first wrong element with the source
        line that wrote it.

    Raises
    ------
    RequestError
        If the launch writes no such array, or the values are of another type or shape.

    Examples
    --------
    >>> run = add.using(trace=True)[8](x, y, z)  # doctest: +SKIP
    >>> print(cubecore.compare_result(run, "z", x + y))  # doctest: +SKIP
    """
    arrays = arrays_of(run)
    require_output("name", run, name, arrays)
    values, wanted = arrays[name], np.asarray(expected)
    if wanted.dtype != values.dtype:
        raise refuse("expected", f"be of {values.dtype}, as {name}", str(wanted.dtype))
    if wanted.shape != values.shape:
        raise refuse("expected", f"have shape {list(values.shape)}", list(wanted.shape))
    return compared(run, name, values, wanted, Tolerance(rtol, atol))


def arrays_of(run: "KernelRun | TikRun") -> dict[str, Array]:
    """Return the arrays of a launch by name, each in its type and shape."""
    if not isinstance(run, KernelRun):
        return dict(run.outputs)
    return {host.name: _typed(host.raw, host.dtype, host.shape) for host, _ in run.tensors}


def _typed(raw: Array, kind: ElementType, shape: tuple[int, ...]) -> Array:
    return raw.view(kind.numpy).reshape(shape)


def require_output(
    subject: str, run: "KernelRun | TikRun", name: str, arrays: "Mapping[str, Array]"
) -> None:
    """Require an array that a launch writes.

    Raises
    ------
    RequestError
        If there is none of that name, or the launch does not write it.
    """
    if not is_output(run, name, arrays):
        outputs = [each for each in arrays if is_output(run, each, arrays)]
        need = f"name an array that {run.kernel} writes ({', '.join(outputs) or 'none'})"
        raise refuse(subject, need, name, did_you_mean(name, outputs))


def is_output(run: "KernelRun | TikRun", name: str, arrays: "Mapping[str, Array]") -> bool:
    """Return whether a launch writes an array, or must write it.

    Of a launch that kept no instructions, any array may be one.
    """
    if name not in arrays:
        return False
    if not isinstance(run, KernelRun) or name in run.outputs or not run.traces:
        return True
    return writes_into(run, name, arrays[name].nbytes)


def compared(
    run: "KernelRun | TikRun",
    name: str,
    values: Array,
    wanted: Array,
    tolerance: Tolerance,
    source: str = "",
) -> ResultComparison:
    """Compare an array of a launch with values of its type and shape."""
    rtol, atol = tolerance.of(values.dtype)
    errors, wrong = _errors(values, wanted, rtol, atol)
    first, flat = None, np.flatnonzero(wrong)
    if flat.size:
        index, size = int(flat[0]), values.dtype.itemsize
        place = tuple(int(n) for n in np.unravel_index(index, values.shape))
        value, expected = float(values.reshape(-1)[index]), float(wanted.reshape(-1)[index])
        first = WrongElement(place, value, expected, writer_of(run, name, index * size, size))
    largest = float(errors.max()) if errors.size else 0.0
    traced = bool(run.traces) or not isinstance(run, KernelRun)
    count = int(flat.size)
    return ResultComparison(name, source, values.size, count, first, largest, rtol, atol, traced)


def _errors(values: Array, wanted: Array, rtol: float, atol: float) -> tuple[Array, Array]:
    """Return how far elements are from the expected ones, and which are too far."""
    one, other = values.reshape(-1), wanted.reshape(-1)
    wide = one.astype(np.float64), other.astype(np.float64)
    nan = np.isnan(wide[0]) & np.isnan(wide[1])
    same = (one == other) | nan  # of 64-bit integers, too, which float64 rounds
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(wide[0] - wide[1])
        near = (errors <= atol + rtol * np.abs(wide[1])) & np.isfinite(wide[1])
    errors[np.isnan(errors)] = np.inf
    errors[same] = 0
    if one.dtype.kind in "iub" and not (rtol or atol):
        near = same
    return errors, ~(same | near)

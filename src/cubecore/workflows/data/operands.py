"""Operands of a matmul: seeded random values, the caller's arrays, or files."""

from dataclasses import dataclass, fields

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import FLOAT32, ElementType, element_type
from cubecore.errors import RequestError, Violation, refuse, unable
from cubecore.numerics.codes import codes_of, numbers
from cubecore.tiling.model.epilogue import SMALLEST
from cubecore.tiling.model.problem import SCALE_TYPE, Problem
from cubecore.workflows.data import process
from cubecore.workflows.data.files import load_array
from cubecore.workflows.data.stored_layout import from_nz, stored_shape, to_nz

_SCALE = element_type(SCALE_TYPE)
_RANDOM_SCALES = 120, 135
"""Codes of random scales: 2**-7 to 2**7."""


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """A and B as stored, the bias row [n] and a float32 scale for each column [n] if there are.

    A is [m, k] or [k, m], B [k, n] or [n, k]; in NZ each is cut into fractals, and a batch has an
    axis of its own in front (`workflows.data.stored_layout`). Scales of MxMatmul are stored as what
    they scale, K/32 of them rounded up to pairs: [m, K/32] beside [m, k], [K/64, m, 2] beside
    [k, m], and so for B. Arrays of hifloat8 and float4_e1m2 hold codes, as uint8.
    """

    a: Array
    b: Array
    bias: Array | None = None
    scale: Array | None = None
    scale_a: Array | None = None
    scale_b: Array | None = None


@dataclass(frozen=True, slots=True)
class OperandFiles:
    """Names of files with operands as stored; None means random values."""

    a: str | None = None
    b: str | None = None
    bias: str | None = None
    scale: str | None = None
    scale_a: str | None = None
    scale_b: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """The files that are given, by operand."""
        files = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: path for name, path in files.items() if path is not None}


def file_option(operand: str) -> str:
    """Return the option that names an operand's file."""
    return f"--{operand.replace('_', '-')}-file"


def stored_shapes(problem: Problem) -> dict[str, tuple[tuple[int, ...], ElementType]]:
    """Return shape and type of each operand as stored."""
    p = problem
    shapes = {
        name: (stored_shape(*matrix, kind.c0, nz=nz, batch=p.batch), kind)
        for name, matrix, kind, nz in (
            ("a", (p.k, p.m) if p.trans_a else (p.m, p.k), p.a_type, p.format_a == "NZ"),
            ("b", (p.n, p.k) if p.trans_b else (p.k, p.n), p.b_type, p.format_b == "NZ"),
        )
    }
    if p.bias_type is not None:
        shapes["bias"] = ((p.n,), p.bias_type)
    if p.scales_columns:
        shapes["scale"] = ((p.n,), FLOAT32)
    if p.mx:
        shapes["scale_a"] = (_scales_shape(p, p.m, by_pairs=p.trans_a), _SCALE)
        shapes["scale_b"] = (_scales_shape(p, p.n, by_pairs=not p.trans_b), _SCALE)
    return shapes


def _scales_shape(problem: Problem, rows: int, *, by_pairs: bool) -> tuple[int, ...]:
    count = problem.scale_k
    shape = (count // 2, rows, 2) if by_pairs else (rows, count)
    return (problem.batch, *shape) if problem.batch > 1 else shape


def make_operands(problem: Problem, files: OperandFiles | None = None) -> Operands:
    """Return the operands of `problem` from files, and random ones for the rest.

    Random floats are normal, random integers cover their type (int32 bias: 16 bits of it), random
    MX scales are 2**-7 to 2**7; the problem's random seed fixes them.

    Raises
    ------
    RequestError
        If a file cannot be read or holds another shape or type, or the operands exceed the
        machine's memory.
    """
    names = files or OperandFiles()
    shapes = stored_shapes(problem)
    if names.bias is not None and "bias" not in shapes:
        raise unable("--bias-file", "--bias-file needs --bias TYPE")
    if names.scale is not None and "scale" not in shapes:
        need = "--scale-file needs a --quant with a scale for each column"
        raise unable("--scale-file", need, "VDEQF16, VREQ8 and VQF322B8_PRE have one")
    for name in ("scale_a", "scale_b"):
        if getattr(names, name) is not None and name not in shapes:
            option = file_option(name)
            raise unable(option, f"{option} needs MX types, such as --a mxfp8")
    _require_memory(problem)
    rng = np.random.default_rng(problem.seed)
    arrays = {}
    for name, (shape, kind) in shapes.items():
        file = getattr(names, name)
        arrays[name] = (
            _random_stored(problem, name, kind, rng)
            if file is None
            else load_array(file, kind, shape, file_option(name))
        )
    if "scale" in arrays:
        _require_scales(arrays["scale"])
    return Operands(**arrays)


def result_shape(problem: Problem) -> tuple[int, ...]:
    """Return the shape of C as stored; NZ has fractals of 16 x 16, of 8 bits 16 x 32."""
    p = problem
    return stored_shape(p.m, p.n, p.c_fractal_columns, nz=p.format_c == "NZ", batch=p.batch)


def matrices(problem: Problem, operands: Operands) -> tuple[Array, Array]:
    """Return A as [batch, m, k] and B as [batch, k, n]; codes as the numbers that they mean."""
    p = problem
    given = numbers(operands.a, p.a_type), numbers(operands.b, p.b_type)
    a_shape = (p.k, p.m) if p.trans_a else (p.m, p.k)
    b_shape = (p.n, p.k) if p.trans_b else (p.k, p.n)
    a = _matrices(given[0], *a_shape, nz=p.format_a == "NZ")
    b = _matrices(given[1], *b_shape, nz=p.format_b == "NZ")
    return (
        np.swapaxes(a, 1, 2) if p.trans_a else a,
        np.swapaxes(b, 1, 2) if p.trans_b else b,
    )


def shared_scales(problem: Problem, operands: Operands) -> tuple[Array, Array]:
    """Return the scales of A as [batch, m, K/32] and those of B as [batch, n, K/32], float64."""
    p, scales = problem, []
    for stored, rows, by_pairs in (
        (operands.scale_a, p.m, p.trans_a),
        (operands.scale_b, p.n, not p.trans_b),
    ):
        assert stored is not None, "the operands were checked"
        cut = stored.reshape(-1, p.scale_k // 2, rows, 2)
        if not by_pairs:
            cut = stored.reshape(-1, rows, p.scale_k // 2, 2).swapaxes(1, 2)
        scales.append(cut.swapaxes(1, 2).reshape(-1, rows, p.scale_k).astype(np.float64))
    return scales[0], scales[1]


def _matrices(stored: Array, rows: int, columns: int, *, nz: bool) -> Array:
    return (from_nz(stored, rows, columns) if nz else stored).reshape(-1, rows, columns)


def given_scales(problem: Problem) -> Array:
    """Return the request's scale for each column.

    Raises
    ------
    RequestError
        If the scales are missing.
    """
    scale = problem.epilogue.scale
    if not isinstance(scale, tuple):
        need = f"be n = {problem.n} numbers for {problem.epilogue.quant}"
        raise refuse("epilogue.scale", need, "nothing", "or give --scale-file")
    return np.array(scale, np.float32)


def _require_scales(scales: Array) -> None:
    """Refuse what the hardware's scales cannot hold: infinity, NaN and subnormal numbers."""
    fits = np.isfinite(scales) & ((np.abs(scales) >= SMALLEST) | (scales == 0))
    if not fits.all():
        column = int(np.flatnonzero(~fits)[0])
        need = "hold 0 and ordinary numbers of float32"
        raise refuse("the scales", need, f"{scales[column]} for column {column}")


def require_operands(problem: Problem, operands: Operands) -> None:
    """Refuse arrays that are not the problem's operands.

    Raises
    ------
    RequestError
        One violation for each operand that is missing, superfluous, or of another shape or type.
    """
    shapes, wrong = stored_shapes(problem), []
    for name in ("a", "b", "bias", "scale", "scale_a", "scale_b"):
        values = getattr(operands, name)
        if name not in shapes:
            if values is not None:
                wrong.append(Violation(name, f"be None for a problem without {name}", "an array"))
            continue
        shape, kind = shapes[name]
        want = f"be an array of {kind} with shape {list(shape)}"
        if values is None:
            wrong.append(Violation(name, want, "None"))
        elif values.shape != shape or values.dtype != kind.numpy:
            wrong.append(Violation(name, want, f"{values.dtype.name} {list(values.shape)}"))
    if wrong:
        raise RequestError(wrong)


def _require_memory(problem: Problem) -> None:
    """Refuse what cannot fit: operands, result, and their maps of initialised bytes."""
    p = problem
    elements = p.m * p.k * p.a_type.bits + p.k * p.n * p.b_type.bits + p.m * p.n * p.c_type.bits
    need = 2 * p.batch * (elements // 8)
    have = process.memory_bytes()
    if have is not None and need > have:
        raise refuse(
            "the operands and the result",
            f"fit the {have / 1e9:.0f} GB of this machine",
            f"{need / 1e9:,.0f} GB",
            "time and plan need no data",
        )


def _random_stored(
    problem: Problem, name: str, kind: ElementType, rng: np.random.Generator
) -> Array:
    """Return a random operand as stored; NZ pads with zeros."""
    p = problem
    if name == "bias":
        return _random(kind, (p.n,), rng)
    if name == "scale":
        return given_scales(p)
    if kind is _SCALE:
        shape = stored_shapes(p)[name][0]
        return rng.integers(*_RANDOM_SCALES, shape).astype(np.uint8).view(kind.numpy)
    flipped = p.trans_a if name == "a" else p.trans_b
    matrix = (p.m, p.k) if name == "a" else (p.k, p.n)
    shape = matrix[::-1] if flipped else matrix
    values = _random(kind, (p.batch, *shape) if p.batch > 1 else shape, rng)
    return to_nz(values, kind.c0) if getattr(p, f"format_{name}") == "NZ" else values


def _random(kind: ElementType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if kind.kind == "int":
        most = 1 << min(kind.bits, 16) - 1
        return rng.integers(-most, most, shape).astype(kind.numpy)
    values = rng.standard_normal(shape, np.float32)
    return codes_of(values, kind) if kind.library == "codes" else values.astype(kind.numpy)

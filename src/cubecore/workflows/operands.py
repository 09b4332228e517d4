"""Operands of a product: seeded random values, the caller's arrays, or files."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.errors import RequestError, Violation, refuse
from cubecore.tiling.problem import Problem
from cubecore.workflows.files import load_array

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """A [m, k] or [k, m], B [k, n] or [n, k] as stored, and the bias row [n] if there is one."""

    a: Array
    b: Array
    bias: Array | None = None


@dataclass(frozen=True, slots=True)
class OperandFiles:
    """Names of files with operands as stored; None means random values."""

    a: str | None = None
    b: str | None = None
    bias: str | None = None


def stored_shapes(problem: Problem) -> dict[str, tuple[tuple[int, ...], ElementType]]:
    """Return shape and type of each operand as stored."""
    p = problem
    shapes: dict[str, tuple[tuple[int, ...], ElementType]] = {
        "a": ((p.k, p.m) if p.trans_a else (p.m, p.k), p.a_type),
        "b": ((p.n, p.k) if p.trans_b else (p.k, p.n), p.b_type),
    }
    if p.bias_type is not None:
        shapes["bias"] = ((p.n,), p.bias_type)
    return shapes


def make_operands(problem: Problem, files: OperandFiles | None = None) -> Operands:
    """Return the operands of `problem` from files, and random ones for the rest.

    Random floats are normal, random integers cover their type (int32 bias: 16 bits of it); the
    problem's seed fixes them.

    Raises:
        RequestError: a file that cannot be read, or of another shape or type; operands that do not
            fit this machine.
    """
    names = files or OperandFiles()
    shapes = stored_shapes(problem)
    if names.bias is not None and "bias" not in shapes:
        raise refuse("--bias-file", "come with a bias type", names.bias, "give --bias TYPE")
    _require_memory(problem)
    rng = np.random.default_rng(problem.seed)
    made = {}
    for name, (shape, kind) in shapes.items():
        file = getattr(names, name)
        made[name] = (
            _random(kind, shape, rng)
            if file is None
            else load_array(file, kind, shape, f"--{name}-file")
        )
    return Operands(**made)


def require_operands(problem: Problem, operands: Operands) -> None:
    """Refuse arrays that are not the problem's operands.

    Raises:
        RequestError: one violation for each operand of another shape or type, missing or too many.
    """
    shapes, found = stored_shapes(problem), []
    for name in ("a", "b", "bias"):
        values = getattr(operands, name)
        if name not in shapes:
            if values is not None:
                found.append(Violation(name, "be None for a problem without bias", "an array"))
            continue
        shape, kind = shapes[name]
        want = f"be an array of {kind} with shape {list(shape)}"
        if values is None:
            found.append(Violation(name, want, "None"))
        elif values.shape != shape or values.dtype != kind.numpy:
            found.append(Violation(name, want, f"{values.dtype.name} {list(values.shape)}"))
    if found:
        raise RequestError(found)


def _require_memory(problem: Problem) -> None:
    """Refuse what cannot fit: operands, result, and their maps of initialised bytes."""
    p = problem
    elements = p.m * p.k * p.a_type.bits + p.k * p.n * p.b_type.bits + p.m * p.n * p.c_type.bits
    need = 2 * (elements // 8)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        raise refuse(
            "the operands and the result",
            f"fit the {have / 1e9:.0f} GB of this machine",
            f"{need / 1e9:,.0f} GB",
            "time and plan need no data",
        )


def _random(kind: ElementType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if kind.kind == "int":
        info = np.iinfo(np.int16 if kind.bits > 16 else kind.numpy)
        return rng.integers(info.min, int(info.max) + 1, shape).astype(kind.numpy)
    return rng.standard_normal(shape, np.float32).astype(kind.numpy)

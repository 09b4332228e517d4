"""Random products, right and broken ones, summed and written by this module's own arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import cubecore
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.data.operands import Operands
from cubecore.workflows.data.stored_layout import to_nz

Array = NDArray[Any]

A2, A5 = "Ascend910B3", "Ascend950PR_9589"
TYPES = (
    (A2, "float16", "float16", "float32"),
    (A2, "float16", "float16", "float16"),
    (A2, "bfloat16", "bfloat16", "float32"),
    (A2, "bfloat16", "bfloat16", "bfloat16"),
    (A2, "float32", "float32", "float32"),
    (A2, "int8", "int8", "int32"),
    (A2, "int4", "int4", "int32"),
    (A5, "float8_e4m3fn", "float8_e5m2", "float32"),
    (A5, "float8_e5m2", "float8_e5m2", "bfloat16"),
    (A5, "float8_e4m3fn", "float8_e4m3fn", "float16"),
)
LARGEST = {"float16": 65504.0, "bfloat16": float(ml_dtypes.finfo("bfloat16").max)}


@dataclass(frozen=True, eq=False)
class Case:
    """One product: operands as matrices and as stored, and how a kernel cuts it."""

    problem: Problem
    a: Array
    b: Array
    bias: Array | None
    base: tuple[int, int, int]
    order: NDArray[np.intp]

    @property
    def operands(self) -> Operands:
        """Return the arrays as stored."""
        p = self.problem
        a = self.a.T if p.trans_a else self.a
        b = self.b.T if p.trans_b else self.b
        if p.format_a == "NZ":
            a = to_nz(a, p.a_type.c0)
        if p.format_b == "NZ":
            b = to_nz(b, p.b_type.c0)
        return Operands(np.ascontiguousarray(a), np.ascontiguousarray(b), self.bias)

    @property
    def tiling(self) -> TCubeTiling:
        """Return a tiling with the case's cuts."""
        m, n, k = self.base
        p = self.problem
        cut = {"baseM": m, "baseN": n, "baseK": k, "singleCoreK": p.k}
        return replace(_any_tiling(), **cut)

    def steps(self) -> list[slice]:
        """Return the K steps in the order in which they are added."""
        base_k = self.base[2]
        return [slice(k, min(k + base_k, self.problem.k)) for k in base_k * self.order]

    def right(self) -> Array:
        """Return C as stored, summed step by step."""
        return self.stored(self.sums())

    def sums(self) -> Array:
        """Return the sums before they are written."""
        return _summed(self.a, self.b, self.bias, self.steps())

    def broken(self, rng: np.random.Generator) -> Array:
        """Return C with one K step of a base block dropped, doubled or read from the next row."""
        p, (base_m, base_n, _) = self.problem, self.base
        row = base_m * int(rng.integers(-(-p.m // base_m)))
        column = base_n * int(rng.integers(-(-p.n // base_n)))
        rows, columns = slice(row, min(row + base_m, p.m)), slice(column, column + base_n)
        number = int(rng.integers(len(self.order)))
        steps, bias = self.steps(), None if self.bias is None else self.bias[columns]
        a, b = self.a[rows], self.b[:, columns]
        kind = str(rng.choice(["dropped", "doubled", "next row"]))
        if kind == "dropped":
            steps.pop(number)
        elif kind == "doubled":
            steps.insert(number, steps[number])
        else:
            a = a.copy()
            below = np.arange(rows.start, rows.stop) + 1
            a[:, steps[number]] = self.a[below % p.m][:, steps[number]]
        total = self.sums()
        total[rows, columns] = _summed(a, b, bias, steps)
        return self.stored(total)

    def stored(self, total: Array) -> Array:
        """Return sums as C holds them."""
        p = self.problem
        if p.c in LARGEST:
            largest = LARGEST[p.c]
            total = np.where(np.isnan(total), np.float32(0), np.clip(total, -largest, largest))
        c = total.astype(p.c_type.numpy)
        return to_nz(c, p.c_fractal_columns) if p.format_c == "NZ" else c


def _summed(a: Array, b: Array, bias: Array | None, steps: list[slice]) -> Array:
    """Return a sum in float32 (or exactly, of integers), rounded after each term of each step."""
    if a.dtype.kind == "i" or a.dtype == ml_dtypes.int4:
        total = np.zeros((a.shape[0], b.shape[1]), np.int64)
        total += 0 if bias is None else bias
        for step in steps:
            total += a[:, step].astype(np.int64) @ b[step].astype(np.int64)
        return np.clip(total, -(2**31), 2**31 - 1)
    left, right = a.astype(np.float32), b.astype(np.float32)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        if bias is not None:
            total += bias.astype(np.float32)
        for step in steps:
            if total.size * (step.stop - step.start) < 1 << 20:
                for k in range(step.start, step.stop):
                    total += np.multiply.outer(left[:, k], right[k])
            else:
                total += left[:, step] @ right[step]
    return total


@cache
def _any_tiling() -> TCubeTiling:
    return cubecore.plan(m=64, n=64, k=64).tiling


def _plain(_rng: np.random.Generator, _a: Array, _b: Array) -> None:
    """Leave normal numbers as they are."""


def _outliers(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make some columns of A, or of B, a thousand."""
    across = a if rng.random() < 0.7 else b
    some = rng.choice(across.shape[1], min(int(rng.integers(1, 6)), across.shape[1]), replace=False)
    across[:, some] = 1000 if rng.random() < 0.5 else 1000 * across[:, some]


def _denormal(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make both so small that their type, or the product in float32, has few bits left."""
    exponents = rng.integers(-70, -10, 2)
    a *= np.float32(2.0 ** int(exponents[0]))
    b *= np.float32(2.0 ** int(exponents[1]))


def _cancelling(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Let the second half of K take back the first, whose terms may have one sign."""
    half = a.shape[1] // 2
    if rng.random() < 0.5:
        np.abs(a, out=a)
        np.abs(b, out=b)
    a[:, half : 2 * half] = a[:, :half]
    b[half : 2 * half] = -b[:half]


def _repeated(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make every term the same, or one of few."""
    a[:] = rng.choice(rng.random(int(rng.integers(1, 3)), np.float32), a.shape)
    b[:] = rng.choice(rng.random(int(rng.integers(1, 3)), np.float32), b.shape)


PATTERNS: tuple[Callable[[np.random.Generator, Array, Array], None], ...] = (
    _plain,
    _outliers,
    _denormal,
    _cancelling,
    _repeated,
)
BREAKABLE = PATTERNS[:2]
"""Patterns in which no K step may vanish: neither by rounding nor against another."""


def random_case(
    rng: np.random.Generator,
    patterns: tuple[Callable[[np.random.Generator, Array, Array], None], ...] = PATTERNS,
) -> Case:
    """Return a product of random types, formats, shape, values, cuts and order of K steps."""
    chip, a_type, b_type, c_type = TYPES[int(rng.integers(len(TYPES)))]
    k = int(2 ** rng.uniform(0, 14))
    m, n = (int(2 ** rng.uniform(0, min(9.0, 11 - np.log2(k) / 2))) for _ in "mn")
    if a_type == "int4":
        n, k = 2 * n, 2 * k  # two share a byte
    settings: dict[str, Any] = {
        "trans_a": a_type not in {"int8", "int4"} and bool(rng.random() < 0.3),
        "trans_b": a_type != "int4" and bool(rng.random() < 0.3),
        "format_a": str(rng.choice(["ND", "ND", "NZ"])),
        "format_b": str(rng.choice(["ND", "ND", "NZ"])),
        "format_c": str(rng.choice(["ND", "ND", "NZ"])),
    }
    integer = a_type.startswith("int")
    if rng.random() < 0.3:
        settings["bias"] = "int32" if integer else "float32"
    problem = Problem(m=m, n=n, k=k, chip=chip, a=a_type, b=b_type, c=c_type, **settings)
    if integer:
        most = 1 << problem.a_type.bits - 1
        a, b = (
            rng.integers(-most, most, shape).astype(problem.a_type.numpy)
            for shape in ((m, k), (k, n))
        )
    else:
        a, b = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
        patterns[int(rng.integers(len(patterns)))](rng, a, b)
        for values, kind in ((a, problem.a_type), (b, problem.b_type)):
            largest = float(ml_dtypes.finfo(kind.numpy).max)
            np.clip(values, -largest, largest, out=values)
        a, b = a.astype(problem.a_type.numpy), b.astype(problem.b_type.numpy)
    bias = None
    if "bias" in settings:
        bias = (100 * rng.standard_normal(n)).astype(np.int32 if integer else np.float32)
    base = tuple(int(16 * rng.integers(1, most)) for most in (9, 17, 9))
    order = np.arange(-(-k // base[2]))
    if rng.random() < 0.5:
        rng.shuffle(order)
    return Case(problem, a, b, bias, base, order)  # type: ignore[arg-type]

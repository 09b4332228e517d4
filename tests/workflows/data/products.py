"""Random products, right and broken ones, summed by this module's own arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import cubecore
from cubecore.dtypes import element_type
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.data.operands import Operands
from cubecore.workflows.data.stored_layout import to_nz
from workflows.data.written import NUMBERS, coded, numbers, short_float32, written

Array = NDArray[Any]

A2, A5 = "Ascend910B3", "Ascend950PR_9589"
_E4, _E5, _HI = "float8_e4m3fn", "float8_e5m2", "hifloat8"
TYPES = (
    (A2, "float16", "float16", "float32"),
    (A2, "float16", "float16", "float16"),
    (A2, "bfloat16", "bfloat16", "float32"),
    (A2, "bfloat16", "bfloat16", "bfloat16"),
    (A2, "float32", "float32", "float32"),
    (A2, "int8", "int8", "int32"),
    (A2, "int4", "int4", "int32"),
    (A5, "float16", "float16", "bfloat16"),
    (A5, "float32", "float32", "float16"),
    (A5, _E4, _E5, "float32"),
    (A5, _E5, _E5, "bfloat16"),
    (A5, _E4, _E4, "float16"),
    (A5, _HI, _HI, "float32"),
    (A5, _HI, _HI, "float16"),
    (A5, _HI, _HI, "bfloat16"),
)
"""Chip, A, B and C."""
KIRIN_TYPES = (("KirinX90", "int8", "int8", "int32"),)
MX_TYPES = (
    *((A5, a, b, c) for a in (_E4, _E5) for b in (_E4, _E5) for c in ("float32", "bfloat16")),
    *(
        (A5, a, b, c)
        for a in ("float4_e2m1fn", "float4_e1m2")
        for b in ("float4_e2m1fn", "float4_e1m2")
        for c in ("float32", "float16")
    ),
)
QUANTISED_TYPES = (
    *((A2, "int8", "int8", "float16", mode) for mode in ("DEQF16", "VDEQF16")),
    *((A2, "int4", "int4", "float16", mode) for mode in ("DEQF16", "VDEQF16")),
    *((A2, "int8", "int8", "int8", mode) for mode in ("REQ8", "VREQ8")),
    *((A2, "float16", "float16", "int8", mode) for mode in ("QF322B8_PRE", "VQF322B8_PRE")),
    *((A5, "int8", "int8", "bfloat16", mode) for mode in ("QS322BF16_PRE", "VQS322BF16_PRE")),
    *((A5, _E4, _E4, "float16", mode) for mode in ("QF322F16_PRE", "VQF322F16_PRE")),
    *((A5, _HI, _HI, "bfloat16", mode) for mode in ("QF322BF16_PRE", "VQF322BF16_PRE")),
    *((A5, "bfloat16", "bfloat16", "float32", m) for m in ("QF322F32_PRE", "VQF322F32_PRE")),
    *((A5, "float16", "float16", _E4, mode) for mode in ("QF322FP8_PRE", "VQF322FP8_PRE")),
    *((A5, _E5, _E4, _HI, mode) for mode in ("QF322HIF8_PRE", "VQF322HIF8_PRE")),
)
"""The same, and fixpipe's mode, whose scales are one for C or one for each column."""
_FRACTALS = 64
"""Elements of whole fractals, whatever the type."""
_HF32_BITS = {A2: 11, A5: 10}


@dataclass(frozen=True, eq=False)
class Case:
    """Some products of one form: operands as matrices and as stored, and how a kernel cuts them.

    `order` is the K steps as they are added; with `parts` more than 1 they are added apart, in as
    many float32 sums (or integers) as there are parts of K, which C adds up.
    """

    problem: Problem
    a: Array
    b: Array
    bias: Array | None
    base: tuple[int, int, int]
    order: NDArray[np.intp]
    parts: int = 1
    scales: Array | None = None
    exponents: tuple[Array, Array] | None = None

    @property
    def operands(self) -> Operands:
        """Return the arrays as stored."""
        p = self.problem
        a = self.a.swapaxes(1, 2) if p.trans_a else self.a
        b = self.b.swapaxes(1, 2) if p.trans_b else self.b
        if p.batch == 1:
            a, b = a[0], b[0]
        if p.format_a == "NZ":
            a = to_nz(a, p.a_type.c0)
        if p.format_b == "NZ":
            b = to_nz(b, p.b_type.c0)
        shared = (None, None) if self.exponents is None else self._shared()
        columns = self.scales if p.scales_columns else None
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        return Operands(a, b, self.bias, columns, *shared)

    def _shared(self) -> list[Array]:
        """Return the factors of 32 elements as stored: [rows, K/32], or pairs [K/64, rows, 2]."""
        made, p = [], self.problem
        assert self.exponents is not None
        for exponents, by_pairs in zip(self.exponents, (p.trans_a, not p.trans_b), strict=True):
            codes = (exponents + 127).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)
            if by_pairs:
                batch, rows, count = codes.shape
                codes = codes.reshape(batch, rows, count // 2, 2).swapaxes(1, 2)
            made.append(np.ascontiguousarray(codes if p.batch > 1 else codes[0]))
        return made

    @property
    def tiling(self) -> TCubeTiling:
        """Return a tiling with the case's cuts."""
        m, n, k = self.base
        steps = -(-len(self.order) // self.parts)
        single = self.problem.k if self.parts == 1 else steps * k
        cut = {"baseM": m, "baseN": n, "baseK": k, "singleCoreK": single}
        return replace(_any_tiling(), **cut)

    def steps(self) -> list[list[slice]]:
        """Return the K steps of each part in the order in which they are added."""
        base_k, most = self.base[2], self.problem.k
        each = -(-len(self.order) // self.parts)
        parts = [[step for step in self.order if step // each == at] for at in range(self.parts)]
        return [[slice(base_k * s, min(base_k * (s + 1), most)) for s in part] for part in parts]

    def right(self) -> Array:
        """Return C as stored, summed step by step."""
        return self.stored(self.sums())

    def sums(self) -> Array:
        """Return the sums before they are written, of each matrix."""
        left, right = self.factors()
        steps = self.steps()
        return np.stack(
            [_summed(*pair, self.bias, steps) for pair in zip(left, right, strict=True)]
        )

    def factors(self) -> tuple[Array, Array]:
        """Return what is multiplied, in float32, or whole numbers."""
        p, found = self.problem, []
        for side, (values, kind) in enumerate(((self.a, p.a), (self.b, p.b))):
            made = numbers(values, kind)
            if kind.startswith("int"):
                found.append(made.astype(np.int64))
                continue
            made = made.astype(np.float32)
            if p.hf32:
                made = short_float32(made, _HF32_BITS[p.chip])
            if self.exponents is not None:
                factors = np.ldexp(np.float32(1), self.exponents[side]).repeat(32, axis=2)
                factors = factors[:, :, : p.k]
                made = made * (factors if side == 0 else factors.swapaxes(1, 2))
            found.append(made)
        return found[0], found[1]

    def broken(self, rng: np.random.Generator) -> Array:
        """Return C with one K step of a base block dropped, doubled or read from the next row."""
        p, (base_m, base_n, _) = self.problem, self.base
        row = base_m * int(rng.integers(-(-p.m // base_m)))
        column = base_n * int(rng.integers(-(-p.n // base_n)))
        rows, columns = slice(row, min(row + base_m, p.m)), slice(column, column + base_n)
        steps, bias = self.steps(), None if self.bias is None else self.bias[columns]
        part = steps[int(rng.integers(len(steps)))]
        number, matrix = int(rng.integers(len(part))), int(rng.integers(p.batch))
        left, right = (x[matrix] for x in self.factors())
        a, b = left[rows], right[:, columns]
        kind = str(rng.choice(["dropped", "doubled", "next row"]))
        if kind == "dropped":
            part.pop(number)
        elif kind == "doubled":
            part.insert(number, part[number])
        else:
            a = a.copy()
            below = np.arange(rows.start, rows.stop) + 1
            a[:, part[number]] = left[below % p.m][:, part[number]]
        total = self.sums()
        total[matrix, rows, columns] = _summed(a, b, bias, steps)
        return self.stored(total)

    def stored(self, total: Array) -> Array:
        """Return sums as C holds them."""
        p = self.problem
        c = written(total, p, self.scales if p.scales_columns else p.epilogue.scale)
        c = c if p.batch > 1 else c[0]
        return to_nz(c, p.c_fractal_columns) if p.format_c == "NZ" else c


def _summed(a: Array, b: Array, bias: Array | None, parts: list[list[slice]]) -> Array:
    """Return a sum in float32 (or exactly, of integers), rounded after each term of each step."""
    whole = a.dtype.kind == "i"
    made = None
    with np.errstate(all="ignore"):
        for steps in parts:
            total = np.zeros((a.shape[0], b.shape[1]), np.int64 if whole else np.float32)
            if made is None and bias is not None:
                total += bias.astype(total.dtype)
            for step in steps:
                if whole or total.size * (step.stop - step.start) >= 1 << 20:
                    total += _exact(a[:, step], b[step]) if whole else a[:, step] @ b[step]
                    continue
                for k in range(step.start, step.stop):
                    total += np.multiply.outer(a[:, k], b[k])
            made = total if made is None else made + total
    return np.clip(made, -(2**31), 2**31 - 1) if whole else made


def _exact(a: Array, b: Array) -> Array:
    """Return a product of small integers, which float64 holds."""
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)


@cache
def _any_tiling() -> TCubeTiling:
    return cubecore.plan(m=64, n=64, k=64).tiling


Pattern = Callable[[np.random.Generator, Array, Array], None]


def _plain(_rng: np.random.Generator, _a: Array, _b: Array) -> None:
    """Leave normal numbers as they are."""


def _outliers(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make some columns of A, or of B, a thousand."""
    across = a if rng.random() < 0.7 else b
    wide = across.shape[2]
    some = rng.choice(wide, min(int(rng.integers(1, 6)), wide), replace=False)
    across[..., some] = 1000 if rng.random() < 0.5 else 1000 * across[..., some]


def _denormal(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make both so small that their type, or the product in float32, has few bits left."""
    exponents = rng.integers(-70, -10, 2)
    a *= np.float32(2.0 ** int(exponents[0]))
    b *= np.float32(2.0 ** int(exponents[1]))


def _cancelling(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Let the second half of K take back the first, whose terms may have one sign."""
    half = a.shape[2] // 2
    if rng.random() < 0.5:
        np.abs(a, out=a)
        np.abs(b, out=b)
    a[..., half : 2 * half] = a[..., :half]
    b[:, half : 2 * half] = -b[:, :half]


def _repeated(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Make every term the same, or one of few."""
    a[:] = rng.choice(rng.random(int(rng.integers(1, 3)), np.float32), a.shape)
    b[:] = rng.choice(rng.random(int(rng.integers(1, 3)), np.float32), b.shape)


PATTERNS: tuple[Pattern, ...] = (_plain, _outliers, _denormal, _cancelling, _repeated)
BREAKABLE = PATTERNS[:2]
"""Patterns in which no K step may vanish: neither by rounding nor against another."""


def random_case(
    rng: np.random.Generator, patterns: tuple[Pattern, ...] = PATTERNS, *, runs: bool = False
) -> Case:
    """Return products of random types, formats, shape, values, cuts and order of K steps.

    With the breakable patterns, factors of 32 elements are of one size. One that `runs` has whole
    fractals where a matrix is in NZ.
    """
    problem = _random_problem(rng, runs=runs)
    pattern = patterns[int(rng.integers(len(patterns)))]
    a, b = _random_values(rng, problem, pattern)
    whole, n = problem.a_type.kind == "int", problem.n
    bias = None
    if problem.bias is not None:
        bias = (100 * rng.standard_normal(n)).astype(np.int32 if whole else np.float32)
    exponents = None
    if problem.mx:
        most = 2 if patterns is BREAKABLE else int(rng.integers(1, 50))
        exponents = tuple(
            rng.integers(-most, most + 1, (problem.batch, rows, problem.scale_k))
            for rows in (problem.m, n)
        )
    base_m, base_n, base_k = (int(16 * rng.integers(1, most)) for most in (9, 17, 9))
    base_k = 64 * -(-base_k // 64) if problem.mx else base_k
    order = np.arange(-(-problem.k // base_k))
    parts = min(int(rng.integers(2, 5)), len(order)) if problem.split_k else 1
    parts = -(-len(order) // -(-len(order) // parts))  # none is empty
    if rng.random() < 0.5:
        rng.shuffle(order)
    base = (base_m, base_n, base_k)
    case = Case(problem, a, b, bias, base, order, parts, exponents=exponents)
    return _with_scales(rng, case) if problem.epilogue.quant else case


def _random_problem(rng: np.random.Generator, *, runs: bool) -> Problem:
    form = str(rng.choice(["plain", "plain", "MX", "quantised"]))
    rows: Any = {
        "plain": TYPES + KIRIN_TYPES * runs, "MX": MX_TYPES, "quantised": QUANTISED_TYPES
    }[form]  # fmt: skip
    chip, a_type, b_type, c_type, *mode = rows[int(rng.integers(len(rows)))]
    batch = int(rng.integers(2, 5)) if rng.random() < 0.2 else 1
    k = int(2 ** rng.uniform(0, 14))
    most = min(9.0, 11 - np.log2(k * batch) / 2)
    m, n = (int(2 ** rng.uniform(0, most)) for _ in "mn")
    sized = element_type(a_type).bits
    if sized == 4:
        n, k = 2 * n, 2 * k  # two share a byte
    whole = a_type.startswith("int")
    settings: dict[str, Any] = {
        "trans_a": sized > 8 and bool(rng.random() < 0.3),
        "trans_b": sized > 4 and bool(rng.random() < 0.3),
        **{f"format_{x}": str(rng.choice(["ND", "ND", "NZ"])) for x in "abc"},
        "hf32": a_type == "float32" and bool(rng.random() < 0.3),
        "split_k": c_type in {"float32", "int32"}
        and not mode
        and bool(rng.random() < 0.2)
        and chip not in {row[0] for row in KIRIN_TYPES},
    }
    if form == "MX":
        settings |= {"scale_a": "float8_e8m0fnu", "trans_a": bool(rng.random() < 0.3)}
        settings["trans_b"] = bool(rng.random() < 0.3)
    if rng.random() < 0.3 and a_type != "int4":
        settings["bias"] = "int32" if whole else "float32"
    relu = not settings["split_k"] and bool(rng.random() < 0.2)
    if runs and "NZ" in settings.values():
        m, n, k = (-(-extent // _FRACTALS) * _FRACTALS for extent in (m, n, k))
    if runs and sized == 4:
        m += m % 2  # of a transposed A, whose rows are bytes
    # The scale is chosen once the sums are there.
    scale = None if not mode else (1.0,) * n if mode[0].startswith("V") else 1.0
    offset = int(rng.integers(-40, 41)) if c_type == "int8" else 0
    epilogue = Epilogue(relu=relu, quant=mode[0] if mode else None, scale=scale, offset=offset)
    return Problem(
        m=m, n=n, k=k, chip=chip, a=a_type, b=b_type, c=c_type, batch=batch, epilogue=epilogue,
        **settings,
    )  # fmt: skip


def _random_values(
    rng: np.random.Generator, problem: Problem, pattern: Pattern
) -> tuple[Array, Array]:
    p = problem
    shapes = (p.batch, p.m, p.k), (p.batch, p.k, p.n)
    if p.a_type.kind == "int":
        most = 1 << p.a_type.bits - 1
        a, b = (rng.integers(-most, most, shape).astype(p.a_type.numpy) for shape in shapes)
        return a, b
    a, b = (rng.standard_normal(shape, np.float32) for shape in shapes)
    pattern(rng, a, b)
    return _as_type(a, p.a), _as_type(b, p.b)


def _as_type(values: Array, kind: str) -> Array:
    if kind in NUMBERS:
        return coded(values, kind)
    made = element_type(kind).numpy
    largest = float(ml_dtypes.finfo(made).max)
    return np.clip(values, -largest, largest).astype(made)


def _with_scales(rng: np.random.Generator, case: Case) -> Case:
    """Return the case with scales that bring its sums into C's range, but for a few."""
    problem, wide = case.problem, {"int8": 60.0, "hifloat8": 100.0, "float8_e4m3fn": 100.0}
    middle = float(np.abs(case.sums().astype(np.float64)).mean())
    count = problem.n if problem.scales_columns else 1
    factors = wide.get(problem.c, 500.0) / max(middle, 1e-30) * 2 ** rng.uniform(-2, 2, count)
    made = np.clip(factors * rng.choice([-1, 1, 1], count), -1e30, 1e30).astype(np.float32)
    scale = tuple(map(float, made)) if problem.scales_columns else float(made[0])
    epilogue = replace(problem.epilogue, scale=scale)
    return replace(case, problem=replace(problem, epilogue=epilogue), scales=made)

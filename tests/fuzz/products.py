"""Random products of every type and format, executed, beside bounds by an oracle of its own."""

from dataclasses import replace

import numpy as np

import cubecore
from cubecore.errors import CubecoreError
from workflows.data.products import random_case
from workflows.data.written import numbers

_SMALL = 1 << 18
"""Multiplications up to which an order other than the program's is executed."""


def _bounds(case):
    """Return the least and the largest C: float64 sums, and as many roundings as there are terms.

    A sum in float32 of K terms and a bias, in any order, is off by at most K + 1 roundings of the
    sum of magnitudes; each partial sum of whole numbers is exact.
    """
    left, right = (x.astype(np.float64) for x in case.factors())
    bias = 0 if case.bias is None else case.bias.astype(np.float64)
    exact = left @ right + bias
    if case.problem.a_type.kind == "int":
        assert np.abs(exact).max() < 2**31
        ends = [exact.astype(np.int64)] * 2
    else:
        size = np.abs(left) @ np.abs(right) + np.abs(bias)
        terms = case.problem.k + case.parts + 1
        off = terms * 2.0**-23 * size + terms * 2.0**-149
        largest = np.finfo(np.float32).max
        ends = [np.clip(exact + sign * off, -largest, largest) for sign in (-1, 1)]
        ends = [
            np.nextafter(end.astype(np.float32), np.float32(sign * np.inf))
            for end, sign in zip(ends, (-1, 1), strict=True)
        ]
    kind = case.problem.c
    made = [_real(case.stored(end), kind) for end in ends]
    return np.minimum(*made), np.maximum(*made)


def _real(values, kind):
    return numbers(values, kind).astype(np.float64)


def _variants(rng, problem):
    """Return the problem with fewer and fewer of the options that only some products take."""
    template, launch = rng.choice(("MDL", "NORM", "IBSHARE")), rng.choice(("cube", "mix"))
    some = replace(problem, cores=rng.randint(1, 6), launch=launch)
    return [replace(some, template=template), some, problem]


def _run(tally, rng, case):
    """Return (an answer, its order)."""
    p = case.problem
    order = "program"
    if p.m * p.n * p.k * p.batch < _SMALL:
        order = rng.choice(("program", "late", "early", f"random:{rng.randrange(99)}"))
    *variants, plain = _variants(rng, p)
    for variant in variants:
        try:
            made = cubecore.run(variant, operands=case.operands, order=order)
        except CubecoreError:
            continue
        tally.tried[f"random products, {variant.template}, {variant.launch}"] += 1
        return made, order
    return cubecore.run(plain, operands=case.operands, order=order), order


def try_products(tally, rng, count):
    """Try products of random types, formats, shapes, values and options.

    Each element of C must be what float64 or whole numbers allow, and the answer "verified".
    """
    name = "random products"
    for _ in range(count):
        case = random_case(np.random.default_rng(rng.randrange(2**32)), runs=True)
        p = case.problem
        told = f"{p.m} x {p.n} x {p.k} {p.a} {p.b} {p.c} {p.epilogue.quant or ''} {p.chip}"
        tally.tried[name] += 1
        tally.tried[f"{name}, {p.a} x {p.b} to {p.c}"] += 1
        try:
            made, order = _run(tally, rng, case)
        except CubecoreError as error:
            tally.fail(name, f"{told}: {error}")
            continue
        low, high = _bounds(case)
        c = _real(made.c, p.c)
        wrong = ~((low <= c) & (c <= high))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), c.shape)
            need = f"[{low[at]}, {high[at]}]"
            tally.fail(name, f"{told} {order}: {wrong.sum()} wrong, {c[at]} out of {need}")
        elif not made.verified or made.findings:
            tally.fail(name, f"{told} {order}: right, and not verified")

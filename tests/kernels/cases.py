"""Random problems and random legal tilings of them, and runs with whole-number operands."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.units import FRACTAL_ROWS, align_up
from harness import (
    Array,
    MatmulRun,
    expected,
    make_tiling,
    matrix_shapes,
    run_matmul,
    whole_numbers,
)

KINDS = (
    tuple(
        {"a": "float16", "trans_a": ta, "trans_b": tb, "bias": bias, "c": c}
        for ta in (False, True)
        for tb in (False, True)
        for bias in (None, "float32", "float16")
        for c in ("float32", "float16", "bfloat16")
    )
    + tuple(
        {"a": "bfloat16", "trans_a": ta, "trans_b": tb, "bias": bias, "c": c}
        for ta in (False, True)
        for tb in (False, True)
        for bias in (None, "float32")
        for c in ("float32", "bfloat16")
    )
    + tuple(
        {"a": "float32", "trans_a": ta, "trans_b": tb, "bias": bias, "c": c}
        for ta in (False, True)
        for tb in (False, True)
        for bias in (None, "float32")
        for c in ("float32", "float16", "bfloat16")
    )
    + tuple(
        {"a": "int4", "trans_a": False, "trans_b": tb, "bias": None, "c": "int32"}
        for tb in (False, True)
    )
    + tuple(
        {"a": "int8", "trans_a": ta, "trans_b": tb, "bias": bias, "c": "int32"}
        for ta in (False, True)
        for tb in (False, True)
        for bias in (None, "int32")
    )
)
QUANTISED = (
    {"a": "int8", "quant": "DEQF16", "c": "float16", "bias": "int32"},
    {"a": "int8", "quant": "VDEQF16", "c": "float16", "bias": None},
    {"a": "int8", "quant": "REQ8", "c": "int8", "bias": None},
    {"a": "int8", "quant": "VREQ8", "c": "int8", "bias": "int32"},
    {"a": "int4", "quant": "REQ8", "c": "int8", "bias": None},
    {"a": "float16", "quant": "QF322B8_PRE", "c": "int8", "bias": "float32"},
    {"a": "bfloat16", "quant": "VQF322B8_PRE", "c": "int8", "bias": None},
    {"a": "float32", "quant": "VQF322B8_PRE", "c": "int8", "bias": "float32"},
)
"""Kinds whose result is scaled, by one number or column by column."""
FORMATS = tuple(
    {"format_a": a, "format_b": b, "format_c": c}
    for a in ("ND", "NZ")
    for b in ("ND", "NZ")
    for c in ("ND", "NZ")
)
LAUNCHES = tuple(
    {"template": template, "launch": launch}
    for template in ("MDL", "NORM", "IBSHARE")
    for launch in ("cube", "mix")
)


def in_turn() -> list[Mapping[str, Any]]:
    """Return a kind for each type and transposition, with its biases and results in turn."""
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for kind in KINDS:
        alike.setdefault((kind["a"], kind["trans_a"], kind["trans_b"]), []).append(kind)
    return [kinds[5 * place % len(kinds)] for place, kinds in enumerate(alike.values())]


def kind_id(kind: Mapping[str, Any]) -> str:
    """Return a short name of one of `KINDS`."""
    trans = ("t" if kind["trans_a"] else "n") + ("t" if kind["trans_b"] else "n")
    return f"{kind['a']}-{trans}-bias {kind['bias']}-{kind['c']}"


def make(kind: Mapping[str, Any], m: int, n: int, k: int, **more: Any) -> Problem:
    """Return a problem of a kind."""
    relu = more.pop("relu", False)
    keys = {**kind, **more}
    quant = keys.pop("quant", None)
    m, n, k = fitting(keys, m, n, k)
    scale: float | tuple[float, ...] | None = None
    if quant is not None:
        # Powers of two, of both signs: the products stay exact.
        powers = [(-1.0) ** i * 2.0 ** (-2 - i % 7) for i in range(n)]
        scale = tuple(powers) if quant[0] == "V" else 2.0**-5
    offset = 3 if quant is not None and keys["c"] == "int8" else 0
    epilogue = Epilogue(relu=relu, quant=quant, scale=scale, offset=offset)
    return Problem(m=m, n=n, k=k, epilogue=epilogue, **keys)


def fitting(keys: Mapping[str, Any], m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the extents rounded up to whole fractals of NZ, and to even rows of int4."""
    c0 = {"float32": 16, "int8": 32, "int4": 64}.get(keys["a"], 16)
    nz = {name: keys.get(f"format_{name}") == "NZ" for name in "ab"}
    if any(nz.values()):
        k = align_up(k, c0)
    if nz["a"]:
        m = align_up(m, c0)
    if nz["b"] or keys.get("split_k"):
        n = align_up(n, c0)
    if keys.get("format_c") == "NZ" and keys["c"] == "int8":
        n = align_up(n, 32)
    if keys["a"] == "int4":
        n, k = align_up(n, 2), align_up(k, 2)
    return m, n, k


def draw_extent(rng: np.random.Generator, largest: int) -> int:
    """Return an extent: small, or one beside a multiple of 16 or 32, or any."""
    style = rng.integers(4)
    if style == 0:
        return int(rng.integers(1, 18))
    if style == 1:
        return max(1, int(16 * rng.integers(1, largest // 16 + 1) + rng.integers(-1, 2)))
    if style == 2:
        return int(16 * rng.integers(1, largest // 16 + 1))
    return int(rng.integers(1, largest + 1))


def draw_problem(rng: np.random.Generator, largest: int = 150) -> Problem:
    """Return a random problem of any kind."""
    kind = KINDS[rng.integers(len(KINDS))]
    if rng.integers(3) == 0:
        kind = KINDS[len(KINDS) - 1 - rng.integers(10)]
    keys: dict[str, Any] = dict(LAUNCHES[rng.integers(6)]) if rng.integers(2) else {}
    if rng.integers(3) == 0:
        keys |= FORMATS[rng.integers(8)]
    if rng.integers(6) == 0:
        keys["batch"] = int(rng.integers(2, 5))
    if rng.integers(3) == 0:
        keys["unit_flag"] = bool(rng.integers(2))
    relu = bool(rng.integers(2))
    if rng.integers(6) == 0:
        kind = QUANTISED[rng.integers(len(QUANTISED))]
        keys |= {"trans_a": kind["a"] != "int4" and bool(rng.integers(2))}
        keys |= {"trans_b": bool(rng.integers(2))}
    if kind["c"] in {"float32", "int32"} and rng.integers(5) == 0:
        keys["split_k"], relu = True, False
    m, n, k = (draw_extent(rng, largest) for _ in range(3))
    return make(kind, m, n, k, relu=relu, **keys)


def draw_tiling(rng: np.random.Generator, problem: Problem, tries: int = 200) -> TCubeTiling:
    """Return a random legal tiling: everything that the rules leave open is drawn."""
    for _ in range(tries):
        drawn = _draw(rng, problem)
        if drawn is not None and check_tiling(drawn, problem, problem.chip_record).legal:
            return drawn
    raise AssertionError(f"no legal tiling in {tries} tries for {problem}")


def _share(rng: np.random.Generator, extent: int) -> int:
    """Return a core's share: all of it (even rounded up), some fractals, or any number."""
    style = rng.integers(5)
    if style <= 1:
        return extent
    if style == 2:
        return -(-extent // 16) * 16
    if style == 3:
        return int(min(extent, 16 * rng.integers(1, -(-extent // 16) + 1)))
    return int(rng.integers(max(1, extent // 4), extent + 1))


def _steps(rng: np.random.Generator, blocks: int) -> int:
    style = rng.integers(4)
    if style == 0:
        return blocks
    if style == 1:
        return 1
    return int(rng.integers(1, blocks + 2))


def _draw(rng: np.random.Generator, p: Problem) -> TCubeTiling | None:
    single_m, single_n = _share(rng, p.m), _share(rng, p.n)
    if p.format_a == "NZ":
        single_m = align_up(single_m, FRACTAL_ROWS)
    if "NZ" in {p.format_b, p.format_c}:
        wide = p.a == "int4" and p.format_b == "NZ" and not p.trans_b
        merged = p.c == "int8" and p.format_c == "NZ"
        single_n = align_up(single_n, 64 if wide else 32 if merged else FRACTAL_ROWS)
    # A slice of K starts at a whole piece: of int4 and of NZ, the others start anywhere.
    single_k = min(p.k, align_up(_share(rng, p.k), 64)) if p.split_k else p.k
    cores = -(-p.m // single_m) * -(-p.n // single_n) * -(-p.k // single_k)
    if cores > p.chip_record.aic_count:
        return None
    # int4 comes in pieces of 64 along K, and along N where its stored rows run along N; scales
    # belong to 64 of K.
    unit = 64 if p.a == "int4" or p.mx else 16
    units = (16, 16 if p.trans_b or p.a != "int4" else 64, unit)
    if p.mx and "NZ" in {p.format_a, p.format_b}:
        units, single_m, single_n = (64,) * 3, align_up(single_m, 64), align_up(single_n, 64)
    extents = (single_m, single_n, single_k)
    base_m, base_n, base_k = (
        u * int(rng.integers(1, (min(-(-e // u), 6) if rng.integers(4) else 192 // u) + 1))
        for u, e in zip(units, extents, strict=True)
    )
    k_blocks = -(-single_k // base_k)
    step_ka, step_kb = _steps(rng, k_blocks), _steps(rng, k_blocks)
    step_m = 1 if step_ka < k_blocks else int(rng.integers(1, -(-single_m // base_m) + 2))
    step_n = 1 if step_kb < k_blocks else int(rng.integers(1, -(-single_n // base_n) + 2))
    return make_tiling(
        p,
        singleCoreM=single_m,
        singleCoreN=single_n,
        singleCoreK=single_k,
        baseM=base_m,
        baseN=base_n,
        baseK=base_k,
        stepM=step_m,
        stepN=step_n,
        stepKa=step_ka,
        stepKb=step_kb,
        depthA1=step_m * step_ka * int(rng.integers(1, 3)),
        depthB1=step_n * step_kb * int(rng.integers(1, 3)),
        dbL0A=int(rng.integers(1, 3)),
        dbL0B=int(rng.integers(1, 3)),
        dbL0C=int(rng.integers(1, 3)),
        iterateOrder=int(rng.integers(2)),
        mxTypePara=0x01010101 if p.mx else 0,
    )


def draw_operands(rng: np.random.Generator, p: Problem) -> dict[str, Array]:
    """Return whole numbers; int8 uses its whole range, int32 most of it."""
    shapes = matrix_shapes(p)
    if p.a_type.kind == "int":
        most = 1 << (p.a_type.bits - 1)
        found = {
            name: rng.integers(-most, most, shape).astype(p.a_type.numpy)
            for name, shape in shapes.items()
        }
        if p.bias is not None:
            most = 2**29 if p.epilogue.quant is None else 2**16
            found["bias"] = rng.integers(-most, most, p.n).astype(np.int32)
        return found
    found = {name: whole_numbers(rng, shape, p.a) for name, shape in shapes.items()}
    if p.bias is not None:
        found["bias"] = rng.integers(-2048, 2049, p.n).astype(p.bias)
    return found


def exact(p: Problem, operands: Mapping[str, Array]) -> Array:
    """Return C as it must be, to the bit: whole numbers, then relu, then C's type."""
    wide = expected(p, operands)
    if p.epilogue.relu:
        wide = np.maximum(wide, 0)
    if p.epilogue.quant is not None:
        wide = wide * np.array(p.epilogue.scale)
        if p.c == "int8":
            nine_bits = np.clip(np.rint(wide), -256, 255)
            wide = np.clip(nine_bits + p.epilogue.offset, -128, 127)
        else:
            wide = np.clip(wide, -65504, 65504)
    return wide.astype(p.c_type.numpy)


def brief(tiling: TCubeTiling) -> str:
    """Return the fields that are not 0, to paste into `make_tiling`."""
    return ", ".join(
        f"{k}={v}" for k, v in tiling.to_json().items() if v and k not in {"M", "N", "Ka", "Kb"}
    )


def assert_right(p: Problem, tiling: TCubeTiling, operands: Mapping[str, Array]) -> MatmulRun:
    """Run; every element is written, exact, and nothing is found."""
    ran = run_matmul(p, tiling, operands)
    told = f"{p}\n{brief(tiling)}"
    assert not ran.findings, f"{ran.findings[0].message}\n{told}"
    assert ran.written.all(), told
    wrong = ran.c != exact(p, operands)
    assert not wrong.any(), f"{int(wrong.sum())} wrong, first at {np.argwhere(wrong)[0]}\n{told}"
    return ran

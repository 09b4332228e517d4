"""The Matmul object: sums over several Iterate, and products behind End, without findings."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler
from frontends.cpp.test_matmul_object import CHIP, data, module, run

pytestmark = needs_compiler
BEGIN = """
if (GetBlockIdx() != 0) return;
auto set = [&] { mm.SetTensorA(p.a); mm.SetTensorB(p.b); };
auto all = [&] { set(); while (mm.Iterate()) mm.GetTensorC(p.c); };
set();
"""
ASYNC = "mm.template IterateAll<false>(p.c, {}, false, true); "
ROOM = """
TBuf<TPosition::VECCALC> held;
p.pipe.InitBuffer(held, 4096);
LocalTensor<float> room = held.Get<float>();
"""
SUMS = {
    "one": ("mm.Iterate(); mm.GetTensorC(p.c);", 1),
    "two": ("mm.Iterate(); set(); mm.Iterate(true); mm.GetTensorC(p.c);", 2),
    "a loop": ("for (int n = 0; n < 5; ++n) { set(); mm.Iterate(n != 0); } mm.GetTensorC(p.c);", 5),
    "anew": (
        "for (int n = 0; n < 2; ++n) { set(); mm.Iterate(); set(); mm.Iterate(true); "
        "mm.GetTensorC(p.c); }",
        2,
    ),
    "one that is dropped": ("mm.Iterate(); set(); mm.Iterate(); mm.GetTensorC(p.c);", 1),
    "added in memory": (
        "mm.IterateAll(p.c); set(); mm.Iterate(); set(); mm.Iterate(true); mm.GetTensorC(p.c, 1);",
        3,
    ),
    "all behind them": (
        "mm.Iterate(); set(); mm.Iterate(true); mm.GetTensorC(p.c); set(); mm.IterateAll(p.c, 1);",
        3,
    ),
    "a shorter part": (
        "mm.SetTail(32, 32, 16); mm.Iterate(); set(); mm.SetTail(32, 32, 32); mm.Iterate(true); "
        "mm.GetTensorC(p.c);",
        None,
    ),
    "End": (
        "mm.Iterate(); mm.GetTensorC(p.c); mm.End(); set(); mm.Iterate(); mm.GetTensorC(p.c);",
        1,
    ),
    "End of a dropped one": ("mm.Iterate(); mm.End(); all();", 1),
    "End of all": ("mm.IterateAll(p.c); mm.End(); set(); mm.IterateAll(p.c, 1);", 2),
    "End of sums": (
        "for (int n = 0; n < 2; ++n) { set(); mm.Iterate(); set(); mm.Iterate(true); "
        "mm.GetTensorC(p.c); mm.End(); }",
        2,
    ),
}
AHEAD = {
    "waited for": (ASYNC.format(0) + "mm.WaitIterateAll();", 1),
    "twice": (f"for (int n = 0; n < 2; ++n) {{ {ASYNC.format(0)} mm.WaitIterateAll(); }}", 1),
    "added": (
        ASYNC.format(0) + "mm.WaitIterateAll(); set(); mm.Iterate(); set(); mm.Iterate(true); "
        "mm.GetTensorC(p.c, 1);",
        3,
    ),
    "tiles": (
        ROOM + "for (int n = 0; n < 2; ++n) { mm.template Iterate<false>(); "
        "mm.template GetTensorC<false>(room); mm.WaitGetTensorC(); } DataCopy(p.c, room, 1024);",
        1,
    ),
}


@cache
def tiling(template: str, **fields: int) -> Any:
    """Return a tiling of one tile on one core."""
    fix = {"baseM": 32, "baseN": 32, "baseK": 32, **fields}
    k = 96 if template == "MDL" else 32
    return k, cubecore.plan(
        m=32, n=32, k=k, cores=1, chip=CHIP, template=template, launch="mix", fix=fix
    ).tiling


def launched(body: str, kind: str, template: str, **fields: int) -> tuple[Any, Any, Any]:
    """Return a launch's result, the product of its operands, and that of the first 16 of K."""
    k, asked = tiling(template, **fields)
    arrays = data(32, 32, k)
    given = {"kind": kind, "config": f"CFG_{template}", "c": "VECIN" if ROOM in body else "GM"}
    left = run(module(BEGIN + body, **given), asked, 1, arrays)
    a, b = arrays["a"].astype("f8"), arrays["b"].astype("f8")
    assert left.findings == ()
    return arrays["c"], a @ b, a[:, :16] @ b[:16]


@pytest.mark.parametrize("kind", ["__aicore__", "__cube__"])
@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.thinned(16)
def test_sums_over_calls_are_exact_and_clean(sums: str, kind: str) -> None:
    body, times = SUMS[sums]
    c, product, part = launched(body, kind, "NORM")
    np.testing.assert_array_equal(c, product + part if times is None else times * product)


@pytest.mark.sweep
@pytest.mark.parametrize("fields", [{}, {"dbL0C": 2}], ids=str)
def test_sums_of_several_base_blocks(fields: dict[str, int]) -> None:
    c, product, _ = launched(SUMS["anew"][0], "__aicore__", "MDL", **fields)
    np.testing.assert_array_equal(c, 2 * product)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("calls", AHEAD)
def test_calls_that_do_not_wait_are_clean_behind_their_wait(calls: str) -> None:
    body, times = AHEAD[calls]
    c, product, _ = launched(body, "__aicore__", "NORM")
    np.testing.assert_array_equal(c, times * product)


@pytest.mark.sweep
def test_a_tile_that_nobody_takes_before_the_next_is_named_first() -> None:
    k, asked = tiling("NORM")
    arrays = data(64, 32, k)
    two = replace(asked, M=64, singleCoreM=64)
    right = run(module(BEGIN + "while (mm.Iterate()) mm.GetTensorC(p.c);"), two, 1, arrays)
    assert right.findings == ()
    wrong = run(module(BEGIN + "mm.Iterate(); mm.Iterate(); mm.GetTensorC(p.c);"), two, 1, arrays)
    first = wrong.findings[0]
    said = "Iterate: GetTensorC must take a tile before the next one, got no call"
    assert (first.id, first.message) == ("parameter", said)

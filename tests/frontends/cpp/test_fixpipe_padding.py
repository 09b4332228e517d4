"""Padding of a tile that Fixpipe stores: columns and rows in which a fractal ends are filling."""

from functools import cache

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
ENGINES = pytest.mark.parametrize("engine", ["fast", "reference"])
ONES = np.ones((16, 16), np.float16)
REMEDY = "leave them out by the count or mask, load rows side by side, or pad with a value"
FRAME = """
  GlobalTensor<half> ag, bg;
  GlobalTensor<float> wg, yg;
  ag.SetGlobalBuffer((__gm__ half*)a);
  bg.SetGlobalBuffer((__gm__ half*)b);
  wg.SetGlobalBuffer((__gm__ float*)w);
  yg.SetGlobalBuffer((__gm__ float*)y);
  const uint32_t m = {m}, n = {n};
  if ASCEND_IS_AIC {{
    LocalTensor<half> a1(TPosition::A1, 0, 256), b1(TPosition::B1, 512, 256);
    LocalTensor<half> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
    LocalTensor<float> co(TPosition::CO1, 0, 1024);
    DataCopy(a1, ag, Nd2NzParams(1, m, 16, 0, 16, 16, 1, 0));
    DataCopy(b1, bg, Nd2NzParams(1, 16, n, 0, 16, 16, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(0); WaitFlag<HardEvent::MTE2_MTE1>(0);
    LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    LoadData(b2, b1, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
    SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
    Mmad(co, a2, b2, MmadParams(m, n, 16));
    SetFlag<HardEvent::M_FIX>(0); WaitFlag<HardEvent::M_FIX>(0);
#line 100
    {fixpipe}
    {then}
    CrossCoreSetFlag<0x2, PIPE_FIX>(3);
  }}
  if ASCEND_IS_AIV {{
    CrossCoreWaitFlag(3);
    if (GetSubBlockIdx() == 0) {{
      LocalTensor<float> u(TPosition::VECCALC, 0, 256), v(TPosition::VECCALC, 4096, 256);
      DataCopy(u, wg, 256);
      SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
#line 200
      {vector}
      SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
#line 300
      {store}
    }}
  }}
"""
NZ = "Fixpipe<float, float, CFG_NZ>(wg, co, FixpipeParamsV220(16, {rows}, 16, 32, false));"
ND = (
    "Fixpipe<float, float, CFG_ROW_MAJOR>(wg, co, "
    "FixpipeParamsV220({columns}, {rows}, 16, 16, false));"
)
ADD = "Adds(v, u, 1.0f, 256);"
ALL = "DataCopy(yg, v, 256);"
DATA = "DataCopyPad(yg, v, DataCopyExtParams(m, n * 4, (64 - (n * 4 + 31) / 32 * 32) / 32, 0, 0));"


FORMS = {"NZ": NZ.format(rows=16), "ND": ND.format(columns=16, rows=16)}
SHAPES = {(16, 13): 192, (13, 16): 192, (13, 13): 4 * (256 - 169)}
ONE, EIGHT = "Duplicate(v, 1.0f, 256);", "Duplicate(v, 1.0f, 8);"
FIRST = "DataCopy(yg, v, 8);"
AGAIN = """
    LocalTensor<half> p1(TPosition::A1, 1024, 256);
    FixpipeParamsV220 half_tile(16, 16, 16, 16, false);
    half_tile.quantPre = QuantMode_t::F322F16;
    PipeBarrier<PIPE_ALL>();
#line 400
    Fixpipe<half, float, CFG_NZ>(p1, co, half_tile);
    PipeBarrier<PIPE_ALL>();
    LoadData(a2, p1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    PipeBarrier<PIPE_ALL>();
#line 500
    Mmad(co[512], a2, b2, MmadParams(16, 13, {k}));
    PipeBarrier<PIPE_ALL>();
"""
TOGETHER = [
    *(
        (*shape, form, store, ADD, "")
        for shape in SHAPES
        for form in FORMS.values()
        for store in (ALL, DATA)
    ),
    *((13, 13, form, ALL, ONE, "") for form in FORMS.values()),
    *(
        (16, 13, form, FIRST, EIGHT, "")
        for form in (*FORMS.values(), ND.format(columns=13, rows=16))
    ),
    *((16, 13, FORMS["NZ"], ALL, ONE, AGAIN.format(k=k)) for k in (13, 16)),
]
"""Kernels of ordinary runs, compiled together."""


@cache
def compiled(variants):
    texts = {
        f"k{number}": FRAME.format(m=m, n=n, fixpipe=fixpipe, then=then, vector=vector, store=store)
        for number, (m, n, fixpipe, store, vector, then) in enumerate(variants)
    }
    return kernels(texts, "GM_ADDR a, GM_ADDR b, GM_ADDR w, GM_ADDR y")


def launched(
    fixpipe, store, shape=(16, 13), *, vector=ADD, then="", scratch=("w",), cells=256, **options
):
    """Return the ids and sentences of a launch's findings, without functions' names."""
    variant = (*shape, fixpipe, store, vector, then)
    variants = tuple(TOGETHER) if variant in TOGETHER else (variant,)
    name = f"k{variants.index(variant)}"
    made = compiled(variants)[name].using(scratch=scratch, **options)
    run = made[1](ONES, ONES, np.zeros(cells, np.float32), np.zeros(256, np.float32))
    return [f"{found.id}: {found.message}".replace(f" ({name})", "") for found in run.findings]


def filled(size, shape=(16, 13)):
    return (
        f"filling-read: vadds.src must read data, got {size} B of filling that "
        f"copy_matrix_cc_to_gm (inline.cpp:100) put behind {shape[0]} x {shape[1]} results, of "
        f"which results are stored by copy_ubuf_to_gm (inline.cpp:300); {REMEDY}"
    )


@pytest.mark.thinned(6)
@ENGINES
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_padding_that_is_computed_with_and_stored_is_found(form, shape, engine):
    options = {"shape": shape, "engine": engine, "checks": "all"}
    assert launched(FORMS[form], ALL, **options) == [filled(SHAPES[shape], shape)]
    assert launched(FORMS[form], DATA, **options) == []


@pytest.mark.thinned(4)
@ENGINES
@pytest.mark.parametrize("form", FORMS)
def test_padding_is_nothing_without_usecheck_nor_where_nobody_needs_it(form, engine):
    usual = {"engine": engine, "checks": "usual", "shape": (13, 13)}
    assert launched(FORMS[form], ALL, **usual) == []
    copied = {"engine": engine, "checks": "all", "vector": ONE}
    assert launched(FORMS[form], ALL, **copied) == []


@pytest.mark.sweep
def test_a_tile_without_padding_has_none():
    for form in FORMS.values():
        assert launched(form, ALL, (16, 16), checks="all") == []


@pytest.mark.sweep
def test_lanes_that_are_taken_together_with_padding_are_found_where_they_are_read():
    sums = "WholeReduceSum(v, u, {}, 1, 1, 1, 8);"
    first = "DataCopyPad(yg, v, DataCopyExtParams(1, 4, 0, 0, 0));"
    (said,) = launched(NZ.format(rows=16), first, vector=sums.format(16), checks="all")
    assert said == (
        "filling-read: vcadd.src must read data, got 12 B of filling that copy_matrix_cc_to_gm "
        f"(inline.cpp:100) put behind 16 x 13 results; {REMEDY}"
    )
    assert launched(NZ.format(rows=16), first, vector=sums.format(13), checks="all") == []


@pytest.mark.sweep
@ENGINES
@pytest.mark.parametrize("checks", ["usual", "all"])
def test_what_no_product_wrote_stays_uninitialised(checks, engine):
    """Rows that the fixpipe leaves out, and a column of fractals without a product."""
    options = {"checks": checks, "engine": engine}
    rows = "got 48 of 256 elements never written, first repeat 3, lane 16"
    said = f"uninitialised: vadds.src must be initialised in UB, {rows}"
    assert launched(NZ.format(rows=13), ALL, (13, 16), **options) == [said]
    wide = NZ.format(rows=16).replace("V220(16,", "V220(32,")
    options |= {"scratch": (), "vector": ONE, "cells": 512}
    assert launched(wide, ALL, **options) == [
        "uninitialised: w must hold what was written, got 1024 of 2048 B copied from uninitialised "
        "memory, the first at byte 1024"
    ]


@pytest.mark.thinned(4)
@ENGINES
@pytest.mark.parametrize("checks", ["usual", "all"])
def test_a_tile_that_is_too_large_for_an_output_stays_uninitialised(checks, engine):
    """Rows end where they are asked to, in an array that is needed: columns of NZ do not."""
    options = {
        "scratch": (),
        "checks": checks,
        "engine": engine,
        "vector": EIGHT,
    }
    said = [
        "uninitialised: w must hold what was written, got 192 of 1024 B copied from uninitialised "
        "memory, the first at byte 52"
    ]
    assert launched(FORMS["ND"], FIRST, **options) == said
    assert launched(ND.format(columns=13, rows=16), FIRST, **options) == []
    assert launched(FORMS["NZ"], FIRST, **options) == []


@pytest.mark.thinned(2)
@ENGINES
def test_a_product_of_padding_is_found(engine):
    options = {"engine": engine, "vector": ONE}
    nz = NZ.format(rows=16)
    for checks in ("usual", "all"):
        assert launched(nz, ALL, then=AGAIN.format(k=13), checks=checks, **options) == []
    (said,) = launched(nz, ALL, then=AGAIN.format(k=16), checks="usual", **options)
    assert said.startswith(
        "uninitialised: mad.a must be initialised in L0A, got 48 of 256 elements"
    )
    assert launched(nz, ALL, then=AGAIN.format(k=16), checks="all", **options) == [
        "filling-read: mad.a must read data, got 96 B of filling that copy_matrix_cc_to_cbuf "
        f"(inline.cpp:400) put behind 16 x 13 results; {REMEDY}"
    ]

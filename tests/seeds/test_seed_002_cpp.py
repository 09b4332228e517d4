"""Mmad (seed 002) in C++: the tables of types, the worked extents, GEMV, and what it refuses."""

from functools import cache

import numpy as np
import pytest

from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, K, N = 30, 70, 40
BEFORE = """
constexpr uint32_t M = 30, K = 70, N = 40;
template <typename T, typename C>
struct Product {
  static constexpr bool nibbles = std::is_same_v<T, int4b_t>;
  static constexpr uint32_t C0 = nibbles ? 64 : 32 / sizeof(T), DOWN = (M + 15) / 16;
  static constexpr uint32_t DEEP = (K + C0 - 1) / C0, WIDE = (N + 15) / 16, FRACTAL = 16 * C0;
  static constexpr uint16_t stored = nibbles ? K / 2 : K;
  GlobalTensor<T> ag, bg;
  GlobalTensor<C> cg, biasg;
  LocalTensor<T> a1{TPosition::A1, 0, 8192}, b1{TPosition::B1, 65536, 8192};
  LocalTensor<T> a2{TPosition::A2, 0, 8192}, b2{TPosition::B2, 0, 8192};
  LocalTensor<C> bias1{TPosition::C1, 131072, 48}, bias2{TPosition::C2, 0, 48};
  LocalTensor<C> co{TPosition::CO1, 0, 16 * 16 * DOWN * WIDE};
  Product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c) {
    ag.SetGlobalBuffer((__gm__ T*)a);
    bg.SetGlobalBuffer((__gm__ T*)b);
    biasg.SetGlobalBuffer((__gm__ C*)bias);
    cg.SetGlobalBuffer((__gm__ C*)c);
    DataCopy(bias1, biasg, 48);
  }
  void Load() {
    DataCopy(a1, ag, Nd2NzParams(1, M, stored, 0, stored, DOWN * 16, 1, 0));
    Right();
    for (uint32_t row = 0; row < DOWN; ++row)
      LoadData(a2[row * DEEP * FRACTAL], a1[row * FRACTAL],
               LoadData2DParams(0, DEEP, DOWN, 0, 0, false, 0));
    Loaded();
  }
  // One row is read as a vector: K elements one behind another.
  void LoadVector() {
    DataCopy(a1, ag, 80);
    Right();
    LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    Loaded();
  }
  void Right() {
    DataCopy(b1, bg, Nd2NzParams(1, N, stored, 0, stored, WIDE * 16, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    LoadData(b2, b1, LoadData2DParams(0, DEEP * WIDE, 1, 0, 0, false, 0));
    DataCopy(bias2, bias1, 48);
  }
  void Loaded() {
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
  }
  void Out(uint16_t rows = M) {
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    uint16_t pitch = (rows + 15) / 16 * 16;
    Fixpipe(cg, co, FixpipeParamsV220(N, rows, pitch, N, false));
  }
};
"""
PARAMETERS = "GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c"
TYPES = {
    "int8_t": "int32_t",
    "half": "float",
    "float": "float",
    "bfloat16_t": "float",
    "int4b_t": "int32_t",
}
"""Table 4: fm and filter, dst."""
BIASED = ("int8_t", "half", "float", "bfloat16_t")
"""Table 5: fm and filter; bias is of dst's type."""


def body(kind, call, out="p.Out();", load="p.Load();"):
    return f"Product<{kind}, {TYPES[kind]}> p(a, b, bias, c);\n{load}\n{call}\n{out}"


PLAIN = """MmadParams params;
params.m = M;
params.n = N;
params.k = K;
SET
Mmad(p.co, p.a2, p.b2, params);"""
WITH_BIAS = "Mmad(p.co, p.a2, p.b2, p.bias2, MmadParams(M, N, K));"
AGAIN = {
    "not_from_0": "params.cmatrixInitVal = false;\nMmad(p.co, p.a2, p.b2, params);",
    "is_bias": "params.isBias = true;\nMmad(p.co, p.a2, p.b2, params);",
    "bias_in_co1": "Mmad(p.co, p.a2, p.b2, p.co, MmadParams(M, N, K));",
    "bias_wins": "params.cmatrixSource = true;\nparams.cmatrixInitVal = true;\n"
    "Mmad(p.co, p.a2, p.b2, p.co, params);",
}
"""Table 3, and a bias from either place: products that start from an earlier one."""
SOURCES = {
    "from_row": "params.cmatrixInitVal = false;",
    "from_row_as_bias": "params.isBias = true;",
    "from_zero": "params.cmatrixInitVal = true;",
}
"""Table 3: cmatrixSource without a bias operand, whose row is the one at the start of C2."""
UNIT_OUT = """FixpipeParamsV220 out(N, M, 32, N, false);
out.unitFlag = 3;
Fixpipe(p.cg, p.co, out);"""
BODIES = {
    **{f"plain_{kind}": body(kind, PLAIN.replace("SET", "")) for kind in TYPES},
    **{f"biased_{kind}": body(kind, WITH_BIAS) for kind in BIASED},
    "biased_int4b_t": body("int4b_t", WITH_BIAS, ""),
    "vector": body(
        "half", "Mmad(p.co, p.a2, p.b2, MmadParams(1, N, K));", "p.Out(1);", "p.LoadVector();"
    ),
    **{
        f"no_{extent}": body("half", PLAIN.replace("SET", f"params.{extent} = 0;"), "")
        for extent in "mnk"
    },
    **{
        name: body("half", f"{PLAIN.replace('SET', '')}\nPipeBarrier<PIPE_M>();\n{again}")
        for name, again in AGAIN.items()
    },
    **{
        name: body("half", PLAIN.replace("SET", f"params.cmatrixSource = true;\n{rest}"))
        for name, rest in SOURCES.items()
    },
    "unit_flag": body("half", PLAIN.replace("SET", "params.unitFlag = 3;"), UNIT_OUT),
    **{
        f"most_{extent}": body("half", PLAIN.replace("SET", f"params.{extent} = 4096;"), "")
        for extent in "mnk"
    },
    "bias_between": body(
        "half",
        "LocalTensor<float> bias2(TPosition::C2, 64, 48);\n"
        "Mmad(p.co, p.a2, p.b2, bias2, MmadParams(M, N, K));",
        "",
    ),
    "swapped": body("half", "Mmad(p.co, p.b2, p.a2, MmadParams(M, N, K));", ""),
    "elsewhere": body(
        "half",
        "LocalTensor<float> l1(TPosition::C1, 0, 64);Mmad(l1, p.a2, p.b2, MmadParams());",
        "",
    ),
}


@cache
def module():
    return kernels(BODIES, PARAMETERS, BEFORE)


def stored(values, kind):
    """Return whole numbers as a type's bytes."""
    if kind == "int4b_t":
        low, high = values[:, ::2] & 15, values[:, 1::2] & 15
        return np.ascontiguousarray(low | high << 4).astype(np.uint8)
    if kind == "bfloat16_t":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"int8_t": np.int8, "half": np.float16, "float": np.float32}[kind])


def launched(name, kind="half"):
    rng = np.random.default_rng(2)
    a, b = rng.integers(-7, 8, (M, K)), rng.integers(-7, 8, (N, K))
    typed = np.int32 if TYPES[kind] == "int32_t" else np.float32
    bias, c = rng.integers(-99, 99, 48).astype(typed), np.zeros((M, N), typed)
    run = getattr(module(), name)[1](stored(a, kind), stored(b, kind), bias, c)
    return run, a @ b.T, bias[:N], c


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", TYPES)
def test_the_types_of_table_4(kind):
    run, product, _, c = launched(f"plain_{kind}", kind)
    assert run.findings == ()
    assert np.array_equal(c, product)


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_without_a_bias_operand_is_the_row_of_c2(name):
    run, product, bias, c = launched(name)
    assert run.findings == ()
    assert np.array_equal(c, product if name == "from_zero" else product + bias)


@pytest.mark.parametrize("kind", BIASED)
def test_the_types_of_table_5(kind):
    run, product, bias, c = launched(f"biased_{kind}", kind)
    assert run.findings == ()
    assert np.array_equal(c, product + bias)


def test_a_bias_of_a_type_that_table_5_lacks():
    run, *_ = launched("biased_int4b_t", "int4b_t")
    assert [f.message for f in run.findings] == [
        "mad must take no bias for int4 x int4 (Mmad, table 5), got one"
    ]


@pytest.mark.parametrize("name", AGAIN)
def test_a_product_starts_from_what_co1_has(name):
    run, product, _, c = launched(name)
    assert run.findings == ()
    assert np.array_equal(c, 2 * product)


def test_a_unit_flag_orders_the_product_and_its_way_out():
    run, product, _, c = launched("unit_flag")
    assert run.findings == ()
    assert np.array_equal(c, product)


@pytest.mark.parametrize("extent", "mnk")
def test_an_extent_is_at_most_4095(extent):
    found = launched(f"most_{extent}")[0].findings
    assert [f.message for f in found] == [f"mad.{extent} must be in [0, 4095], got 4096"]


def test_a_bias_starts_on_128_bytes():
    found = launched("bias_between")[0].findings
    assert found[0].message == "mad.bias must start at a multiple of 128 B in BiasTable, got 64"


def test_fm_and_filter_lie_in_their_own_memories():
    with pytest.raises(CubecoreError, match=r"asc_mmad\.a must point into L0A, got"):
        launched("swapped")


def test_one_row_is_read_as_a_vector():
    run, product, _, c = launched("vector")
    assert run.findings == ()
    assert np.array_equal(c[0], product[0])


@pytest.mark.parametrize("extent", "mnk")
def test_an_extent_of_0_does_nothing(extent):
    assert launched(f"no_{extent}")[0].findings == ()


def test_the_result_lies_in_co1_alone():
    with pytest.raises(CubecoreError, match=r"asc_mmad\.c must point into L0C, got"):
        launched("elsewhere")


KIRIN = [
    ("KirinX90", "int8_t", np.int8, "int32_t", np.int32),
    ("KirinX90", "half", np.float16, "half", np.float16),
    ("Kirin9030", "half", np.float16, "half", np.float16),
]
"""Tables 6 and 7: fm and filter, dst and bias."""


@cache
def on_kirin(chip, kind, result):
    start = f"Product<{kind}, {result}> p(a, b, bias, c);\n"
    before = BEFORE.replace("    DataCopy(bias2, bias1, 48);\n", "")  # Kirin 9030 has no C2
    bodies = {"plain": f"{start}p.Load();\n{PLAIN.replace('SET', '')}\np.Out();"}
    bias = f"{start}DataCopy(p.bias2, p.bias1, 48);\np.Load();\n{WITH_BIAS}\np.Out();"
    bodies["biased"] = bias.replace(
        "DataCopy(p.bias2",
        "SetFlag<HardEvent::MTE2_MTE1>(1);\nWaitFlag<HardEvent::MTE2_MTE1>(1);\nDataCopy(p.bias2",
    )
    return kernels(bodies, PARAMETERS, before, chip=chip)


def launched_on_kirin(name, chip, kind, typed, result, held):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, shape).astype(typed) for shape in ((M, K), (N, K)))
    bias, c = rng.integers(-9, 9, 48).astype(held), np.zeros((M, N), held)
    run = getattr(on_kirin(chip, kind, result), name)[1](a, b, bias, c)
    return [f.message for f in run.findings], a.astype(int) @ b.T.astype(int), bias[:N], c


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("chip", "kind", "typed", "result", "held"), KIRIN)
def test_the_types_of_tables_6_and_7(chip, kind, typed, result, held):
    found, product, bias, c = launched_on_kirin("plain", chip, kind, typed, result, held)
    assert found == []
    assert np.array_equal(c, product)
    found, product, bias, c = launched_on_kirin("biased", chip, kind, typed, result, held)
    if chip == "KirinX90":
        assert found == []
        assert np.array_equal(c, product + bias)
    else:
        assert found[:2] == [
            "copy_cbuf_to_bt must run on architecture 2201 or 3510 or 3003, got 3113",
            "mad must take no bias for float16 x float16 (Mmad, table of products), got one",
        ]

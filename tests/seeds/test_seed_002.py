"""Mmad (seed 002): layouts, fractals, types, ranges, starts of C, and its constraints."""

import numpy as np
import pytest

from cubecore import layouts
from cubecore.chips import chip, expand_family
from cubecore.dtypes import (
    ELEMENT_TYPES,
    FLOAT16,
    FLOAT32,
    INT4,
    INT8,
    INT32,
    element_type,
)
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToCbuf, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.program.check import template_violations
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from harness import A2, lay_out, run_core
from seeds.mmad import (
    C_FRACTAL,
    bias_row,
    both_types,
    laid_out,
    mad,
    matrices,
    product,
    result,
    run_mad,
)

# --- the 4 x 4 example, as the seed prints it

TWO = layouts.Fractal(2, 2)
EXAMPLE = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]])


def test_the_4x4_example_as_matrix_a():
    printed = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    assert layouts.pack(EXAMPLE, layouts.ZZ, TWO).tolist() == printed
    assert layouts.unpack(np.array(printed), layouts.ZZ, 4, 4, TWO).tolist() == EXAMPLE.tolist()


def test_the_4x4_example_as_matrix_b():
    printed = [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    assert layouts.pack(EXAMPLE, layouts.ZN, TWO).tolist() == printed
    assert layouts.unpack(np.array(printed), layouts.ZN, 4, 4, TWO).tolist() == EXAMPLE.tolist()


def test_the_4x4_example_as_matrix_c():
    printed = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]
    assert layouts.pack(EXAMPLE, layouts.NZ, TWO).tolist() == printed
    assert layouts.unpack(np.array(printed), layouts.NZ, 4, 4, TWO).tolist() == EXAMPLE.tolist()


# --- layouts and fractals


@both_types
def test_mmad_reads_zz_and_zn_and_writes_nz(types):
    a, b = matrices(40, 72, 56, types)
    template = mad(types, m=40, k=72, n=56)
    ran = run_mad(template, laid_out(a, b))
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b))


@pytest.mark.parametrize(("mem", "order"), [(Mem.L0A, "NZ"), (Mem.L0A, "ZN"), (Mem.L0B, "ZZ")])
def test_mmad_of_another_layout_is_another_product(mem, order):
    a, b = matrices(32, 32, 32)
    template = mad(m=32, k=32, n=32)
    wrong = lay_out(a if mem is Mem.L0A else b, order, (16, 16))
    ran = run_mad(template, laid_out(a, b) | {(mem, 0): wrong})
    assert not np.array_equal(result(ran, template), product(a, b))


@pytest.mark.parametrize("kind", [t for t in ELEMENT_TYPES.values() if t.bits <= 32], ids=str)
def test_fractals_of_a_and_b_are_512_bytes(kind):
    a, b = layouts.l0a_fractal(kind.c0), layouts.l0b_fractal(kind.c0)
    assert a == (16, 32 * 8 // kind.bits)
    assert b == (32 * 8 // kind.bits, 16)
    assert kind.bytes_of(a[0] * a[1]) == kind.bytes_of(b[0] * b[1]) == 512


@both_types
def test_the_next_fractals_of_a_and_b_lie_512_bytes_on(types):
    template, c0 = mad(types, m=17, k=33, n=17), types[0].c0
    a, b = (template.offsets(name) * types[0].size_bytes for name in "ab")
    fractals_k = -(-33 // c0)
    assert (a[0, c0], a[16, 0]) == (512, 512 * fractals_k)
    assert (b[0, 16], b[c0, 0]) == (512, 1024)


@both_types
def test_fractal_of_c_is_256_elements(types):
    assert layouts.L0C_FRACTAL == (16, 16)
    c = mad(types, m=17, n=17).offsets("c")
    assert (c[16, 0], c[0, 16]) == (256, 512)


# --- the prototypes: products, and where C starts


def test_mmad_adds_the_product():
    a, b = matrices(30, 70, 40)
    old = np.arange(30 * 40, dtype=np.float32).reshape(30, 40)
    template = mad(m=30, k=70, n=40, c_matrix_init_val=False)
    ran = run_mad(template, laid_out(a, b) | {(Mem.L0C, 0): lay_out(old, "NZ", C_FRACTAL)})
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), old + product(a, b))


def test_two_mmads_accumulate_two_halves_of_k():
    a, b = matrices(16, 32, 16)

    def build(builder, _):
        builder.issue(mad(), 0, 0, 0)
        builder.issue(mad(c_matrix_init_val=False), 0, 512, 512)

    ran = run_core(build, local=laid_out(a, b))
    assert ran.findings == ()
    assert np.array_equal(result(ran, mad()), product(a, b))


STARTS = {
    (True, False): "zero",
    (True, True): "zero",
    (False, False): "old",
    (False, True): "bias",
}


@both_types
@pytest.mark.parametrize("name", ["Ascend910B3", "Ascend910_9382"])
@pytest.mark.parametrize("switches", STARTS)
def test_cmatrix_init_val_and_source_choose_the_start(types, switches, name):
    a, b = matrices(20, 48, 40, types)
    rows = {"zero": np.zeros(40), "bias": bias_row(40, types[1])}
    old = np.full((20, 40), 7, types[1].numpy)
    local = laid_out(a, b) | {
        (Mem.L0C, 0): lay_out(old, "NZ", C_FRACTAL),
        (Mem.BT, 0): bias_row(40, types[1]),
    }
    init, source = switches
    template = mad(types, m=20, k=48, n=40, c_matrix_init_val=init, c_matrix_source=source)
    ran = run_mad(template, local, chip(name))
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b) + rows.get(STARTS[switches], old[0]))


def test_cmatrix_init_val_and_source_defaults():
    a, b = matrices(16, 16, 16)
    template = Mad(a_type=FLOAT16, b_type=FLOAT16, c_type=FLOAT32, m=16, k=16, n=16)
    assert (template.c_matrix_init_val, template.c_matrix_source) == (True, False)
    old = {(Mem.L0C, 0): np.full(256, 9, np.float32), (Mem.BT, 0): np.full(16, 5, np.float32)}
    assert np.array_equal(result(run_mad(template, laid_out(a, b) | old), template), product(a, b))


def test_accumulating_into_unwritten_l0c_is_found():
    a, b = matrices(16, 16, 16)
    ran = run_mad(mad(c_matrix_init_val=False), laid_out(a, b))
    assert ran.messages == [
        "mad.c must be initialised in L0C, got 256 of 256 elements never written, first m 0, n 0"
    ]


def test_mmad_starts_from_the_bias_row():
    a, b = matrices(30, 32, 40)
    bias = bias_row(40, FLOAT32)
    template = mad(m=30, k=32, n=40, c_matrix_init_val=False, c_matrix_source=True)

    def build(builder, _):
        builder.issue(CopyCbufToBt(src_type=FLOAT32, len_burst=5), 128, 4096)
        builder.issue(template, 0, 0, 0, 128)

    ran = run_core(build, local=laid_out(a, b) | {(Mem.L1, 4096): bias})
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b) + bias)


# --- types


@both_types
def test_mmad_declares_its_four_types(types):
    template = mad(types, c_matrix_init_val=False, c_matrix_source=True)
    declared = {operand.name: template.element(operand) for operand in template.operands()}
    assert declared == {"c": types[1], "a": types[0], "b": types[0], "bias": types[1]}


@both_types
def test_mmad_without_bias(types):
    a, b = matrices(16, 64, 32, types)
    template = mad(types, k=64, n=32)
    ran = run_mad(template, laid_out(a, b))
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b))


def packed(codes):
    """Return 4-bit codes two to a byte, the first in the low half."""
    return (codes[::2] & 15 | codes[1::2] << 4).astype(np.uint8)


def test_mmad_of_int4():
    rng = np.random.default_rng(4)
    a, b = rng.integers(-8, 8, (20, 130)), rng.integers(-8, 8, (130, 40))
    local = {
        (Mem.L0A, 0): packed(lay_out(a, "ZZ", (16, 64))),
        (Mem.L0B, 0): packed(lay_out(b, "ZN", (64, 16))),
    }
    template = mad((INT4, INT32), m=20, k=130, n=40)
    ran = run_mad(template, local)
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), a @ b)
    biased = mad((INT4, INT32), c_matrix_init_val=False, c_matrix_source=True)
    (violation,) = template_violations(biased, A2)  # table 5 has no row of int4
    assert str(violation) == "mad must take no bias for int4 x int4 (Mmad, table 5), got one"


@both_types
def test_mmad_with_bias_table(types):
    a, b = matrices(16, 64, 32, types)
    bias = bias_row(32, types[1])
    template = mad(types, k=64, n=32, c_matrix_init_val=False, c_matrix_source=True)

    def build(builder, _):
        builder.issue(CopyCbufToBt(src_type=types[1], len_burst=4), 0, 0)
        builder.issue(template, 0, 0, 0, 0)

    ran = run_core(build, local=laid_out(a, b) | {(Mem.L1, 0): bias})
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b) + bias)


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [("int8", "int8", "float"), ("half", "int8", "int32"), ("half", "half", "int32")],
)
def test_mmad_refuses_types_outside_the_tables(a, b, c):
    types = [element_type(name) for name in (a, b, c)]
    template = Mad(a_type=types[0], b_type=types[1], c_type=types[2], m=16, k=16, n=16)
    (violation,) = template_violations(template, A2)
    assert violation.subject == "mad"
    assert violation.value == f"{types[0]} x {types[1]} -> {types[2]}"
    assert "int8 x int8 -> int32, float16 x float16 -> float32" in violation.requirement


def test_integer_products_are_exact_at_the_ends_of_their_range():
    a = np.full((16, 4095), -128, np.int8)
    b = np.full((4095, 16), -128, np.int8)
    template = mad((INT8, INT32), k=4095)
    # L0A holds 65536 B: 16 rows of 4096.
    ran = run_mad(template, laid_out(a, b))
    assert ran.findings == ()
    assert (result(ran, template) == 4095 * 16384).all()


# --- ranges and alignments


@pytest.mark.parametrize("axis", "mkn")
def test_mmad_extents_are_0_to_4095(axis):
    for legal in (0, 1, 4095):
        assert template_violations(mad(**{axis: legal}), A2) == ()
    for value in (-1, 4096):
        found = [str(v) for v in template_violations(mad(**{axis: value}), A2)]
        assert found == [f"mad.{axis} must be in [0, 4095], got {value}"]


def test_a_refused_mmad_is_found_and_not_executed():
    old = np.full(256, 7, np.float32)
    ran = run_mad(mad(n=4096), {(Mem.L0C, 0): old})
    assert ran.messages == ["mad.n must be in [0, 4095], got 4096"]
    assert ran.ids == ["parameter"]
    assert np.array_equal(ran.at(Mem.L0C, "float32", 256), old)


ALIGNMENTS = {
    "c": ("L0C", 256 * 4),
    "a": ("L0A", 512),
    "b": ("L0B", 512),
    "bias": ("BiasTable", 128),
}


@pytest.mark.parametrize("operand", ALIGNMENTS)
def test_mmad_operand_alignments(operand):
    memory, multiple = ALIGNMENTS[operand]
    template = mad(c_matrix_init_val=False, c_matrix_source=True)
    ones = np.ones(1024, np.float16)
    local = {(mem, 0): ones for mem in (Mem.L0A, Mem.L0B)} | {
        (Mem.BT, 0): np.zeros(256, np.float32)
    }
    aligned = run_mad(template, local, **{operand: multiple})
    assert aligned.findings == ()
    assert (result(aligned, template, multiple if operand == "c" else 0) == 16).all()
    off = run_mad(template, local, **{operand: multiple // 2})
    assert off.ids == ["misaligned"]
    assert off.messages == [
        f"mad.{operand} must start at a multiple of {multiple} B in {memory}, got {multiple // 2}"
    ]
    declared = next(o for o in template.operands() if o.name == operand)
    assert declared.alignment % declared.mem.align_bytes == 0


# --- constraints


@pytest.mark.parametrize("axis", "mkn")
def test_a_zero_extent_does_nothing(axis):
    old = np.arange(256, dtype=np.float32)
    nothing = run_mad(mad(**{axis: 0}), {(Mem.L0C, 0): old})
    assert nothing.findings == ()
    assert np.array_equal(nothing.at(Mem.L0C, "float32", 256), old)
    # With an extent the unwritten operands are found and C changes.
    something = run_mad(mad(), {(Mem.L0C, 0): old})
    assert something.ids == ["uninitialised", "uninitialised"]
    assert not np.array_equal(something.at(Mem.L0C, "float32", 256), old)


@both_types
def test_m_1_is_gemv_and_reads_a_as_nd(types):
    a, b = matrices(1, 70, 40, types)
    template = mad(types, m=1, k=70, n=40)
    plain = run_mad(template, laid_out(a, b) | {(Mem.L0A, 0): np.pad(a[0], (0, 26))})
    assert plain.findings == ()
    assert np.array_equal(result(plain, template), product(a, b))
    # The same row as ZZ, sixteen rows high, is read wrongly...
    as_zz = run_mad(template, laid_out(a, b))
    assert not np.array_equal(result(as_zz, template), product(a, b))
    # ...and rightly with a second row, which is no GEMV any more.
    two = mad(types, m=2, k=70, n=40)
    assert np.array_equal(result(run_mad(two, laid_out(a, b)), two)[:1], product(a, b))


@both_types
def test_gemv_reads_no_more_than_k_elements(types):
    a, b = matrices(1, 70, 40, types)
    template = mad(types, m=1, k=70, n=40)
    ran = run_mad(template, laid_out(a, b) | {(Mem.L0A, 0): a[0]})
    assert ran.findings == ()
    unwritten = {key: v for key, v in laid_out(a, b).items() if key[0] is Mem.L0B}
    short = run_mad(template, unwritten | {(Mem.L0A, 0): a[0, :69]})
    assert short.messages == [
        "mad.a must be initialised in L0A, got 1 of 70 elements never written, first m 0, k 69"
    ]


EXTENTS = {"m": 30, "k": 70, "n": 40}


def test_the_30_70_40_example():
    template = mad(**EXTENTS)
    fractal_of = {name: template.offsets(name) // 256 for name in "abc"}
    assert np.array_equal(np.unique(fractal_of["a"]), np.arange(2 * 5))
    assert np.array_equal(np.unique(fractal_of["b"]), np.arange(5 * 3))
    assert np.array_equal(np.unique(fractal_of["c"]), np.arange(2 * 3))
    last = fractal_of["a"] == 2 * 5 - 1
    assert np.argwhere(last).tolist() == [[m, k] for m in range(16, 30) for k in range(64, 70)]
    inside = template.offsets("a")[last] - (2 * 5 - 1) * 256
    assert inside.tolist() == [row * 16 + column for row in range(14) for column in range(6)]
    assert layouts.padded_elements(30, 70, layouts.L0C_FRACTAL) == 10 * 16 * 16

    a, b = matrices(30, 70, 40)
    local = laid_out(a, b)
    assert (local[Mem.L0A, 0].size, local[Mem.L0B, 0].size) == (10 * 256, 15 * 256)
    ran = run_mad(template, local)
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b))
    assert ran.local[Mem.L0C].valid[6 * 256 * 4 :].sum() == 0


@both_types
def test_padding_never_reaches_the_result(types):
    a, b = matrices(30, 70, 40, types)
    poison = 127 if types[0] is INT8 else np.nan
    template = mad(types, **EXTENTS)
    ran = run_mad(template, laid_out(a, b, poison))
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b))
    # One more column of K, and the poison is part of the product.
    wider = mad(types, **(EXTENTS | {"k": 71}))
    assert not np.array_equal(result(run_mad(wider, laid_out(a, b, poison)), wider), product(a, b))


# --- products that support it, and whole kernels

A2_AND_A3 = [*expand_family("Atlas A2"), *expand_family("Atlas A3")]


def test_both_product_lines_are_in_the_catalogue():
    assert {"Ascend910B3", "Ascend910_9382"} <= set(A2_AND_A3)
    assert {chip(name).arch for name in A2_AND_A3} == {"2201"}


@pytest.mark.parametrize("name", A2_AND_A3)
def test_a2_and_a3_chips_run_mmad_with_and_without_bias(name):
    a, b = matrices(16, 32, 16)
    bias = bias_row(16, FLOAT32)
    plain = mad(k=32)
    without = run_mad(plain, laid_out(a, b), chip(name))
    assert without.findings == ()
    assert np.array_equal(result(without, plain), product(a, b))
    biased = mad(k=32, c_matrix_init_val=False, c_matrix_source=True)
    with_bias = run_mad(biased, laid_out(a, b) | {(Mem.BT, 0): bias}, chip(name))
    assert with_bias.findings == ()
    assert np.array_equal(result(with_bias, biased), product(a, b) + bias)


def whole_kernel(template, bias=None):
    """Return the program around one mad: NZ operands and a bias in GM, C written row-major."""
    m, k, n = template.m, template.k, template.n

    def then(builder, src, dst):
        builder.issue(SetFlag(src=src, dst=dst, event_id=0))
        builder.issue(WaitFlag(src=src, dst=dst, event_id=0))

    def build(builder, gm):
        b_l1, bias_l1 = m * k * 2, (m + n) * k * 2
        builder.issue(CopyGmToCbuf(n_burst=1, len_burst=m * k // 16), 0, gm["a"])
        builder.issue(CopyGmToCbuf(n_burst=1, len_burst=k * n // 16), b_l1, gm["b"])
        if bias is not None:
            builder.issue(CopyGmToCbuf(n_burst=1, len_burst=n // 8), bias_l1, gm["bias"])
        then(builder, "MTE2", "MTE1")
        with builder.loop("m_fractal", m // 16) as i:
            row = LoadCbufToCa(repeat=k // 16, src_stride=m // 16)
            builder.issue(row, i * (k // 16 * 512), i * 512)
        builder.issue(LoadCbufToCb(repeat=(k // 16) * (n // 16)), 0, b_l1)
        if bias is not None:
            builder.issue(CopyCbufToBt(src_type=FLOAT32, len_burst=n // 8), 0, bias_l1)
        then(builder, "MTE1", "M")
        builder.issue(template, 0, 0, 0, *((0,) if template.starts_from_bias else ()))
        then(builder, "M", "FIX")
        store = CopyMatrixCcToGm(
            src_type=FLOAT32, n_size=n, m_size=m, dst_stride=n, src_stride=m, nz2nd_en=True
        )
        builder.issue(store, gm["c"], 0)

    return build


def kernel_inputs(a, b):
    """Return A as [K1, M, K0] and B as [K1, N, K0], as the loads take them."""
    return {"a": lay_out(a, "NZ", (16, 16)), "b": lay_out(b.T, "NZ", (16, 16))}


def test_a_kernel_around_mmad_without_bias():
    a, b = matrices(48, 64, 80)
    build = whole_kernel(mad(m=48, k=64, n=80))
    ran = run_core(build, inputs=kernel_inputs(a, b), outputs={"c": ((48, 80), "float32")})
    assert ran.findings == ()
    assert np.array_equal(ran.tensors["c"], product(a, b))


def test_a_kernel_around_mmad_with_bias():
    a, b = matrices(48, 64, 80)
    bias = bias_row(80, FLOAT32)
    template = mad(m=48, k=64, n=80, c_matrix_init_val=False, c_matrix_source=True)
    ran = run_core(
        whole_kernel(template, bias),
        inputs=kernel_inputs(a, b) | {"bias": bias},
        outputs={"c": ((48, 80), "float32")},
    )
    assert ran.findings == ()
    assert np.array_equal(ran.tensors["c"], product(a, b) + bias)

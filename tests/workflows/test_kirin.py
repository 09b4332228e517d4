"""Kirin X90 and 9030: products in the types of their tables, from loads to results."""

import numpy as np
import pytest

import cubecore
from cubecore import RequestError
from cubecore.chips import chip
from cubecore.isa.catalogue import instruction_named, instructions
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.program.check import template_violations

X90, K9030 = "KirinX90", "Kirin9030"
ROWS = [(X90, "float16"), (X90, "int8"), (K9030, "float16")]
"""The rows of Mmad's tables 6 and 7: chip, and type of A and B."""
rows = pytest.mark.parametrize(("on", "kind"), ROWS)


def product(on, kind, m, n, k, **keys):
    """Run a product of small whole numbers and return what the run found, C, and A x B."""
    rng = np.random.default_rng([m, n, k])
    dtype = np.dtype(kind)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
    stored = [
        np.ascontiguousarray(x.T) if keys.get(f"trans_{letter}") else x
        for letter, x in (("a", a), ("b", b))
    ]
    bias = keys.pop("row", None)
    operands = {"a": stored[0], "b": stored[1]} | ({} if bias is None else {"bias": bias})
    ran = cubecore.run(m=m, n=n, k=k, chip=on, **operands, **keys)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    return ran, exact if bias is None else exact + bias.astype(np.int64)


@rows
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("shape", [(1, 16, 16), (33, 47, 65), (130, 40, 300)], ids=str)
@pytest.mark.thinned(4)
def test_a_product_in_the_types_of_the_tables(on, kind, trans_a, trans_b, shape):
    """Sums of small whole numbers are exact in half as well."""
    ran, exact = product(on, kind, *shape, trans_a=trans_a, trans_b=trans_b)
    assert ran.findings == ()
    assert ran.verified
    assert ran.c.dtype == {"float16": np.float16, "int8": np.int32}[kind]
    assert np.array_equal(ran.c.astype(np.int64), exact)


@pytest.mark.parametrize(("kind", "held"), [("float16", np.float16), ("int8", np.int32)])
def test_x90_adds_a_bias(kind, held):
    """Table 7: half with a half bias, int8 with an int32 one."""
    ran, exact = product(X90, kind, 40, 70, 50, row=np.arange(-35, 35).astype(held))
    assert ran.findings == ()
    assert np.array_equal(ran.c.astype(np.int64), exact)


@rows
def test_the_template_norm_shares_no_unit_flag(on, kind):
    """Mmad, table 3: Kirin has none."""
    ran, exact = product(on, kind, 40, 70, 150, template="NORM")
    assert ran.findings == ()
    assert np.array_equal(ran.c.astype(np.int64), exact)


def test_split_k_is_refused_for_want_of_an_atomic_addition():
    with pytest.raises(RequestError) as refused:
        cubecore.run(m=64, n=64, k=256, a="int8", chip=X90, split_k=True)
    assert str(refused.value) == "split_k needs atomic addition, which no page gives KirinX90"


@pytest.mark.parametrize("layout", ["format_a", "format_b", "format_c"])
@rows
def test_a_product_of_fractals(on, kind, layout):
    assert cubecore.run(m=64, n=96, k=64, a=kind, chip=on, **{layout: "NZ"}).verified


def ragged(count):
    """Draw so many products: chip, type and extents, some of them of one row or column."""
    rng = np.random.default_rng(17)
    drawn = []
    for _ in range(count):
        on, kind = ROWS[rng.integers(len(ROWS))]
        m, n, k = (int(rng.integers(1, most)) for most in (200, 200, 400))
        drawn.append((on, kind, m, n, k, bool(rng.integers(2)), bool(rng.integers(2))))
    return drawn


@pytest.mark.sweep
@pytest.mark.parametrize("drawn", ragged(200), ids=str)
def test_ragged_products(drawn):
    on, kind, m, n, k, trans_a, trans_b = drawn
    ran, exact = product(on, kind, m, n, k, trans_a=trans_a, trans_b=trans_b)
    assert ran.findings == ()
    assert ran.verified
    assert np.array_equal(ran.c.astype(np.int64), exact)


@pytest.mark.parametrize("on", [X90, K9030])
def test_random_halves_verify_and_a_wrong_one_does_not(on):
    ran = cubecore.run(m=100, n=90, k=777, chip=on)
    assert ran.verified
    assert ran.engine == "reference"
    assert ran.policy == "float64 within one mad, rounded to float16 in L0C after each"


@pytest.mark.parametrize(
    ("on", "keys", "line"),
    [
        (
            X90,
            {"c": "float32"},
            "c must be float16 without epilogue.quant (Mmad, table 7: mad gives float16), "
            "got float32",
        ),
        (
            K9030,
            {"c": "float32"},
            "c must be float16 without epilogue.quant (Mmad, table 6: mad gives float16), "
            "got float32",
        ),
        (
            X90,
            {"a": "int8", "c": "float32"},
            "c must be int32 without epilogue.quant (Mmad, table 7: mad gives int32), got "
            "float32; epilogue.quant writes others: DEQF16 to float16, REQ8 to int8",
        ),
        (
            K9030,
            {"a": "int8"},
            "a and b must be types that arch 3113 multiplies (float16 by float16: Mmad, table 6), "
            "got int8 by int8",
        ),
        (
            X90,
            {"a": "bfloat16"},
            "a and b must be types that arch 3003 multiplies (int8 by int8, float16 by float16: "
            "Mmad, table 7), got bfloat16 by bfloat16",
        ),
        (
            X90,
            {"bias": "float32"},
            "bias must be float16 for float16 by float16 (Mmad, table 7), got float32",
        ),
        (
            K9030,
            {"bias": "float16"},
            "bias must be absent for float16 by float16 (Mmad, table of products), got float16",
        ),
    ],
    ids=str,
)
def test_types_that_the_tables_do_not_have(on, keys, line):
    for verb in (cubecore.plan, cubecore.run):
        with pytest.raises(RequestError) as refused:
            verb(m=64, n=64, k=64, chip=on, **keys)
        assert str(refused.value) == line


def test_the_rate_of_int8_is_rough():
    """No source has one that fits the Cube's 8 columns."""
    assert chip(X90).cube_k == {"float16": 16, "int8": 32}
    assert "int8 is rough" in chip(X90).sources["cube_k"].note
    assert cubecore.plan(m=256, n=256, k=256, a="int8", chip=X90).tiling.baseM > 0


@pytest.mark.parametrize("on", [X90, K9030])
def test_it_is_not_timed(on):
    with pytest.raises(RequestError) as refused:
        cubecore.time(m=64, n=64, k=64, chip=on)
    assert str(refused.value) == (
        f"time supports architectures 2201 and 3510; {on} is {chip(on).arch} "
        "(plan, check and run support it)"
    )


MOVES = (
    *("copy_gm_to_cbuf", "load_cbuf_to_ca", "load_cbuf_to_cb_transpose", "copy_matrix_cc_to_gm"),
    *("copy_matrix_cc_to_cbuf", "create_ca_matrix", "create_cbuf_matrix", "set_l3d_padding"),
)


@pytest.mark.parametrize("name", MOVES)
def test_what_no_page_details_there_is_marked_uncertain(name):
    assert any("Kirin" in text for text in instruction_named(name).uncertain)
    assert {"3003", "3113"} <= set(instruction_named(name).archs)


def test_moves_that_the_pages_exclude_do_not_exist_there():
    """LoadData V2, copies to the Fixpipe buffer, dequantised vectors, 3D loads of 9030."""
    for name in ("copy_cbuf_to_fbuf", "copy_cbuf_to_matrix_cc", "load_cbuf_to_cb_sp"):
        assert not {"3003", "3113"} & set(instructions()[name].archs)
    for name in ("copy_cbuf_to_bt", "img2colv2_cbuf_to_ca", "img2colv2_cbuf_to_cb"):
        assert "3113" not in instruction_named(name).archs
        assert any("Kirin X90" in text for text in instruction_named(name).uncertain)


@pytest.mark.parametrize(
    ("on", "kind", "line"),
    [
        (
            K9030,
            "int8",
            "load_cbuf_to_cb_transpose.dtype must be one of float16 on Kirin9030, got int8",
        ),
        (
            X90,
            "float32",
            "load_cbuf_to_cb_transpose.dtype must be one of int8, float16 on KirinX90, got float32",
        ),
    ],
)
def test_a_move_takes_the_types_of_its_page(on, kind, line):
    from cubecore.dtypes import element_type

    move = instruction_named("load_cbuf_to_cb_transpose")(
        dtype=element_type(kind), index_id=0, repeat=1, src_stride=1, dst_gap=0
    )
    assert [str(v) for v in template_violations(move, chip(on))] == [line]


def test_a_half_sum_is_written_as_it_is_and_no_other_way():
    from cubecore.dtypes import FLOAT16, INT32

    shape = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16, "nz2nd_en": True}
    for on in (X90, K9030):
        plain = CopyMatrixCcToGm(src_type=FLOAT16, **shape)
        assert template_violations(plain, chip(on)) == ()
        assert plain.dst_type is FLOAT16
    scaled = CopyMatrixCcToGm(src_type=INT32, quant_pre="VREQ8", **shape)
    assert [str(v) for v in template_violations(scaled, chip(X90))] == [
        "copy_matrix_cc_to_gm.quant_pre must be one of NoQuant, DEQF16, REQ8 for int32 on "
        "KirinX90, got VREQ8"
    ]
    narrow = CopyMatrixCcToGm(src_type=FLOAT16, **shape)
    assert [str(v) for v in template_violations(narrow, chip("Ascend910B3"))] == [
        "copy_matrix_cc_to_gm.src_type must be float32 or int32 on Ascend910B3, got float16"
    ]

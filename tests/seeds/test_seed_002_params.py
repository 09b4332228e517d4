"""Mmad (seed 002): the fields of MmadParams, the unit flag, and what Kirin has of it."""

from dataclasses import fields

import numpy as np
import pytest

from cubecore.chips import Chip, chip, expand_family
from cubecore.dtypes import FLOAT16, FLOAT32, INT8, INT32
from cubecore.errors import RequestError
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mmad_params import MmadParams
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import template_violations
from harness import A2, lay_out, run_core
from seeds.mmad import C_FRACTAL, bias_row, laid_out, mad, matrices, product, result, run_mad

X90, K9030 = chip("KirinX90"), chip("Kirin9030")
TYPES = (FLOAT16, FLOAT16, FLOAT32)
HALVES = (FLOAT16, FLOAT16)
SHAPE = {"m": 20, "n": 40, "k": 48}


def run(params: MmadParams, bias: Mem | None = None, on: Chip = A2, types=TYPES):
    """Run Mmad over L0C full of 7, a bias row in C2, and a tile of 9 behind C; return C and A x B.

    The bias operand is the row or the tile.
    """
    left, _, kind = types
    a, b = matrices(params.m, params.k, params.n, (left, kind))
    template = params.template(on, types, bias, kind if bias else None)
    behind = 16384
    starts = {Mem.BT: 0, Mem.L0C: behind}
    tile = np.full((params.m, params.n), 9, kind.numpy)
    local = laid_out(a, b) | {
        (Mem.L0C, 0): lay_out(np.full_like(tile, 7), "NZ", C_FRACTAL),
        (Mem.L0C, behind): lay_out(tile, "NZ", C_FRACTAL),
        (Mem.BT, 0): bias_row(params.n, kind),
    }
    addresses = (0, 0, 0, *((starts.get(bias, 0),) if len(template.operands()) == 4 else ()))
    ran = run_core(lambda builder, _: builder.issue(template, *addresses), local=local, on=on)
    assert ran.findings == ()
    return result(ran, template), product(a, b)


# --- defaults, and where C starts


@pytest.mark.parametrize("axis", "mnk")
def test_extents_are_0_unless_they_are_set(axis):
    assert getattr(MmadParams(), axis) == 0
    rest = {name: 16 for name in "mnk" if name != axis}
    template = MmadParams(**rest).template(A2, TYPES)
    old = np.arange(256, dtype=np.float32)
    ran = run_mad(template, {(Mem.L0C, 0): old})
    assert ran.findings == ()
    assert np.array_equal(ran.at(Mem.L0C, "float32", 256), old)


def test_the_defaults_start_from_zero():
    defaults = {f.name: getattr(MmadParams(), f.name) for f in fields(MmadParams)}
    flags = ("isBias", "enSsparse", "enWinogradA", "enWinogradB", "kDirectionAlign")
    assert defaults == dict.fromkeys((*"mnk", "fmOffset", "unitFlag"), 0) | (
        dict.fromkeys((*flags, "cmatrixSource"), False) | {"cmatrixInitVal": True}
    )
    c, ab = run(MmadParams(**SHAPE))
    assert np.array_equal(c, ab)


ROW = bias_row(40, FLOAT32)


@pytest.mark.parametrize(
    ("fields_", "start"),
    [
        ({"isBias": False}, 0),
        ({"isBias": True}, 7),
        ({"isBias": True, "cmatrixInitVal": False}, 7),
        ({"isBias": True, "cmatrixInitVal": False, "cmatrixSource": True}, ROW),
        ({"cmatrixInitVal": False}, 7),
        ({"cmatrixInitVal": False, "cmatrixSource": True}, ROW),
        ({"cmatrixInitVal": True, "cmatrixSource": True}, 0),
    ],
    ids=str,
)
def test_where_c_starts_without_a_bias_operand(fields_, start):
    """isBias, deprecated, still means C += A * B; false is C = A * B."""
    c, ab = run(MmadParams(**SHAPE, **fields_))
    assert np.array_equal(c, ab + start)


@pytest.mark.parametrize("fields_", [{}, {"cmatrixInitVal": True}, {"cmatrixInitVal": False}])
@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_a_bias_operand_decides_where_c_starts(fields_, source, old):
    """In C2 it is the row, in CO1 the tile, whatever cmatrixSource and isBias say."""
    params = MmadParams(**SHAPE, **fields_, cmatrixSource=source, isBias=old)
    for bias, start in ((Mem.BT, ROW), (Mem.L0C, 9)):
        c, ab = run(params, bias)
        assert np.array_equal(c, ab + start)


@pytest.mark.parametrize("init", [False, True])
def test_a_bias_operand_leaves_cmatrix_source_unread_on_kirin(init):
    """Kirin X90 has false alone, and a bias: with one the field has no effect."""
    params = MmadParams(m=3, n=16, k=5, cmatrixInitVal=init, cmatrixSource=True)
    c, ab = run(params, Mem.BT, X90, (FLOAT16, FLOAT16, FLOAT16))
    assert np.array_equal(c, ab + bias_row(16, FLOAT16))


def test_the_simpler_way_and_its_replacement_agree():
    """A bias operand in C2, or cmatrixInitVal false with cmatrixSource true."""
    by_operand, _ = run(MmadParams(**SHAPE), Mem.BT)
    by_fields, _ = run(MmadParams(**SHAPE, cmatrixInitVal=False, cmatrixSource=True))
    assert np.array_equal(by_operand, by_fields)


def test_a_bias_elsewhere_is_refused():
    with pytest.raises(RequestError) as refused:
        MmadParams(**SHAPE).template(A2, TYPES, Mem.UB, FLOAT32)
    assert str(refused.value) == "Mmad.bias must lie in C2 or CO1, got UB"


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("fmOffset", 1, "MmadParams.fmOffset must keep its default 0 (reserved), got 1"),
        *(
            (name, True, f"MmadParams.{name} must keep its default false (reserved), got true")
            for name in ("enSsparse", "enWinogradA", "enWinogradB", "kDirectionAlign")
        ),
    ],
)
def test_reserved_fields_keep_their_defaults(field, value, line):
    with pytest.raises(RequestError) as refused:
        MmadParams(**SHAPE, **{field: value}).template(A2, TYPES)
    assert str(refused.value) == line


def test_every_refused_field_is_named():
    params = MmadParams(**SHAPE, fmOffset=2, enSsparse=True, cmatrixSource=True)
    with pytest.raises(RequestError) as refused:
        params.template(X90, (FLOAT16, FLOAT16, FLOAT16), None)
    assert [v.subject for v in refused.value.violations] == [
        "MmadParams.fmOffset",
        "MmadParams.enSsparse",
        "MmadParams.cmatrixSource",
    ]


# --- unitFlag


def test_unit_flag_is_reserved_at_0_and_refused_at_1():
    assert MmadParams(**SHAPE).template(A2, TYPES).unit_flag == 0
    for value in (0, 2, 3):
        template = MmadParams(**SHAPE, unitFlag=value).template(A2, TYPES)
        assert template_violations(template, A2) == ()
    refused = MmadParams(**SHAPE, unitFlag=1).template(A2, TYPES)
    assert [str(v) for v in template_violations(refused, A2)] == [
        "mad.unit_flag must be one of 0, 2, 3, got 1"
    ]


UNIT_FLAG_CHIPS = [*expand_family("Atlas A2"), *expand_family("Atlas A3")]


@pytest.mark.parametrize("name", UNIT_FLAG_CHIPS)
@pytest.mark.parametrize("flag", [2, 3])
def test_a2_and_a3_have_the_unit_flag(name, flag):
    template = MmadParams(**SHAPE, unitFlag=flag).template(chip(name), TYPES)
    assert template_violations(template, chip(name)) == ()


@pytest.mark.parametrize("on", [X90, K9030], ids=lambda c: c.name)
@pytest.mark.parametrize("flag", [2, 3])
def test_no_other_product_has_the_unit_flag(on, flag):
    template = mad(HALVES, unit_flag=flag)
    assert [str(v) for v in template_violations(template, on)] == [
        f"mad.unit_flag must be 0 on {on.name}, got {flag}"
    ]


# --- Kirin


@pytest.mark.parametrize("on", [X90, K9030], ids=lambda c: c.name)
def test_kirin_runs_mmad_without_bias(on):
    a, b = matrices(16, 32, 16)
    template = mad(HALVES, k=32)
    ran = run_mad(template, laid_out(a, b), on)
    assert ran.findings == ()
    assert np.array_equal(result(ran, template), product(a, b))


@pytest.mark.parametrize("types", [(INT8, INT8, INT32), (FLOAT16, FLOAT16, FLOAT16)], ids=str)
@pytest.mark.parametrize("bias", [Mem.BT, Mem.L0C])
def test_kirin_x90_runs_mmad_with_bias(types, bias):
    """Table 7: int8 with an int32 bias, half with a half one."""
    c, ab = run(MmadParams(m=3, n=16, k=5), bias, X90, types)
    assert np.array_equal(c, ab + (9 if bias is Mem.L0C else bias_row(16, types[2])))


def test_kirin_9030_has_no_form_with_bias():
    """The table of products has none; table 6 names the types of one all the same."""
    for bias in (Mem.BT, Mem.L0C):
        types = (FLOAT16, FLOAT16, FLOAT16)
        template = MmadParams(**SHAPE).template(K9030, types, bias, FLOAT16)
        assert [str(v) for v in template_violations(template, K9030)] == [
            "mad must take no bias for float16 x float16 (Mmad, table of products), got one"
        ]
    assert any("9030" in text for text in Mad.uncertain)


def test_half_times_half_is_half_on_kirin_9030():
    a, b = matrices(20, 48, 40)
    template = mad(HALVES, **SHAPE)
    ran = run_mad(template, laid_out(a, b), K9030)
    assert ran.findings == ()
    c = result(ran, template)
    assert c.dtype == np.float16
    assert np.array_equal(c, product(a, b))


@pytest.mark.parametrize("on", [X90, K9030], ids=lambda c: c.name)
def test_cmatrix_source_is_false_only_on_kirin(on):
    types = (FLOAT16, FLOAT16, FLOAT16)
    for init in (False, True):
        assert MmadParams(**SHAPE, cmatrixInitVal=init).template(on, types)
        with pytest.raises(RequestError) as refused:
            MmadParams(**SHAPE, cmatrixInitVal=init, cmatrixSource=True).template(on, types)
        line = f"MmadParams.cmatrixSource must be false on {on.name}, got true"
        assert str(refused.value) == line
        template = mad(HALVES, c_matrix_init_val=init, c_matrix_source=True)
        assert [str(v) for v in template_violations(template, on)] == [
            f"mad.c_matrix_source must be off on {on.name}, got on"
        ]

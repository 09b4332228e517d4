"""`core.Mmad` in kernels: where C starts, what the struct may say, and what is refused."""

import os

import numpy as np
import pytest

from cubecore import KernelError, capi, kernel
from harness import lay_out

HERE = os.path.relpath(__file__)
M, N, K = 20, 48, 40
ROW = np.arange(N, dtype=np.float32) * 3 - 50
OUT = 16384
"""Where the second tile of L0C begins."""


def load(core, l1, local, src, size, move, at=0):
    """Bring `size` bytes as they lie: global memory, L1 at `at`, an L0 buffer."""
    stop = l1.cast(src.dtype.name) + at * 8 // src.dtype.bits
    core.asc_copy_gm2l1(stop, src, size)
    core.asc_sync()
    move(local, stop, 0, size // 512, 1, 0)


def product(core, a, b, row, c, params, bias):
    """One Mmad onto twice the product; `bias` is the place of its bias operand, "" for none.

    A tile of L0C behind it holds the product, and BiasTable the row, at 0, where no operand lies.
    """
    l1, l0a, l0b = core.cbuf.at("half", 0), core.ca.at("half", 512), core.cb.at("half", 1024)
    tile, other = core.cc.at("float", 0), core.cc.at("float", OUT)
    load(core, l1, l0a, a, 32 * 48 * 2, core.asc_copy_l12l0a)
    load(core, l1, l0b, b, 48 * 48 * 2, core.asc_copy_l12l0b, 65536)
    core.asc_copy_gm2l1(core.cbuf.at("float", 131072), row, N * 4)
    core.asc_sync()
    table = core.biasbuf.at("float", 0)
    core.asc_copy_l12bt(table, core.cbuf.at("float", 131072), N * 4)
    core.asc_sync()
    plain = capi.MmadParams(m=M, n=N, k=K)
    core.Mmad(tile, l0a, l0b, plain)
    core.asc_sync_pipe("PIPE_M")
    plain.cmatrixInitVal = False
    core.Mmad(tile, l0a, l0b, plain)  # twice the product
    core.Mmad(other, l0a, l0b, capi.MmadParams(m=M, n=N, k=K))
    core.asc_sync_pipe("PIPE_M")
    given = {"": (), "C2": (table,), "CO1": (other,)}[bias]
    core.Mmad(tile, l0a, l0b, *given, params)
    core.asc_sync()
    core.asc_copy_l0c2gm(c, tile, N, M, N, 32, 0, "NoQuant", 0, False, True)


RNG = np.random.default_rng(3)
A = RNG.integers(-4, 5, (M, K)).astype(np.float16)
B = RNG.integers(-4, 5, (K, N)).astype(np.float16)
AB = A.astype(np.float32) @ B.astype(np.float32)


def run(bias="", **fields):
    """Return C of a kernel's last Mmad, over a tile that holds twice the product."""

    @kernel(kind="cube", outputs="c")
    def launch(core, a, b, row, c):
        product(core, a, b, row, c, params, bias)

    c = np.full((M, N), -1, np.float32)
    params = capi.MmadParams(**{"m": M, "n": N, "k": K} | fields)
    flat = lay_out(A, "ZZ", (16, 16)), lay_out(B, "ZN", (16, 16))
    ran = launch[1](*flat, ROW, c)
    assert [f.message for f in ran.findings] == []
    return c


STARTS = {"zero": 0, "old": 2 * AB, "row": ROW}


@pytest.mark.parametrize(
    ("fields", "start"),
    [
        ({}, "zero"),
        ({"isBias": False}, "zero"),
        ({"isBias": True}, "old"),
        ({"cmatrixInitVal": False}, "old"),
        ({"cmatrixInitVal": False, "cmatrixSource": True}, "row"),
        ({"cmatrixInitVal": True, "cmatrixSource": True}, "zero"),
        ({"isBias": True, "cmatrixInitVal": False, "cmatrixSource": True}, "row"),
    ],
    ids=str,
)
def test_where_c_starts_without_a_bias_operand(fields, start):
    """Mmad, table 3: 0 unless cmatrixInitVal is false, then CO1 or, with cmatrixSource, C2."""
    assert np.array_equal(run(**fields), AB + STARTS[start])


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_the_place_of_a_bias_operand_decides(source, init, old):
    """C2: a row for every row of C. CO1: a tile. The struct's fields count for nothing."""
    fields = {"cmatrixSource": source, "cmatrixInitVal": init, "isBias": old}
    assert np.array_equal(run("C2", **fields), AB + ROW)
    assert np.array_equal(run("CO1", **fields), AB + AB)


@pytest.mark.parametrize("axis", "mnk")
def test_an_extent_of_0_which_is_the_default_does_nothing(axis):
    assert getattr(capi.MmadParams(), axis) == 0
    assert np.array_equal(run(**{axis: 0}), 2 * AB)


def test_a_field_can_be_set_after_the_struct_is_made():
    params = capi.MmadParams()
    params.m, params.n, params.k, params.cmatrixInitVal = M, N, K, False
    fields = {"m": M, "n": N, "k": K, "cmatrixInitVal": False}
    assert params == capi.MmadParams(**fields)
    with pytest.raises(AttributeError):
        params.bias = True


def test_types_come_from_the_pointers():
    @kernel(kind="cube")
    def wrong(core):
        params = capi.MmadParams(m=16, n=16, k=16)
        core.Mmad(core.cc("int32", 256), core.ca("half", 256), core.cb("half", 256), params)

    (finding,) = wrong[1]().findings
    assert finding.message == (
        "mad must multiply one of int8 x int8 -> int32, float16 x float16 -> float32, "
        "float32 x float32 -> float32, bfloat16 x bfloat16 -> float32, int4 x int4 -> int32 "
        "on Ascend910B3, got float16 x float16 -> int32"
    )


def test_the_extents_have_table_3s_ranges():
    @kernel(kind="cube")
    def wide(core):
        params = capi.MmadParams(m=16, n=4096, k=-1)
        core.Mmad(core.cc("float", 256), core.ca("half", 256), core.cb("half", 256), params)

    assert [f.message for f in wide[1]().findings] == [
        "mad.k must be in [0, 4095], got -1",
        "mad.n must be in [0, 4095], got 4096",
    ]


def operands(core, params):
    """Return what a call may be given, by name."""
    c, a, b = core.cc("float", 512), core.ca("half", 256), core.cb("half", 256)
    return {
        "c": c,
        "a": a,
        "b": b,
        "tile": c + 256,
        "params": params,
        "half": core.cc("half", 256),
        "table": core.biasbuf("float", 16),
        "narrow": core.biasbuf("int32", 16),
        "l1": core.cbuf("float", 16),
    }


PARAMS = capi.MmadParams(m=16, n=16, k=16)


def refused(arguments, params=PARAMS, chip="Ascend910B3"):
    """Return the sentence with which a call ends, without its place."""

    @kernel(kind="cube", chip=chip)
    def calling(core):
        known = operands(core, params)
        core.Mmad(*(known[name] if isinstance(name, str) else name for name in arguments))

    with pytest.raises(KernelError) as error:
        calling[1]()
    place, _, sentence = str(error.value).partition(": ")
    assert place.startswith(f"{HERE}:")
    return sentence


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("c", "a", "b"),
            "Mmad takes dst, fm, filter, a bias or none, and a MmadParams; got 3 arguments",
        ),
        (
            ("c", "a", "b", "table", "tile", "params"),
            "Mmad takes dst, fm, filter, a bias or none, and a MmadParams; got 6 arguments",
        ),
        (("c", "a", "b", 16), "Mmad.mmadParams must be a capi.MmadParams, got 16"),
        (("c", "a", 4096, "params"), "Mmad.filter must be a pointer, got 4096"),
        (
            ("a", "a", "b", "params"),
            "Mmad.dst must lie in CO1, which is L0C, got float16* 0 in L0A",
        ),
        (("c", "b", "b", "params"), "Mmad.fm must lie in A2, which is L0A, got float16* 0 in L0B"),
        (
            ("c", "a", "a", "params"),
            "Mmad.filter must lie in B2, which is L0B, got float16* 0 in L0A",
        ),
        (("c", "a", "b", "l1", "params"), "Mmad.bias must lie in C2 or CO1, got L1"),
        (
            ("c", "a", "b", "narrow", "params"),
            "Mmad.bias must point to float32, as dst does, got int32",
        ),
        (
            ("c", "a", "b", "half", "params"),
            "Mmad.bias must point to float32, as dst does, got float16",
        ),
    ],
)
def test_what_mmad_refuses(arguments, line):
    assert refused(arguments) == line


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"fmOffset": 1}, "MmadParams.fmOffset must keep its default 0 (reserved), got 1"),
        ({"m": 1.5}, "MmadParams.m must be an integer, got 1.5"),
        *(
            (
                {name: True},
                f"MmadParams.{name} must keep its default false (reserved), got true",
            )
            for name in ("enSsparse", "enWinogradA", "enWinogradB", "kDirectionAlign")
        ),
    ],
    ids=str,
)
def test_reserved_fields_keep_their_defaults(fields, line):
    params = capi.MmadParams(**{"m": 16, "n": 16, "k": 16} | fields)
    assert refused(("c", "a", "b", "params"), params) == line


def test_asc_mmad_says_who_can_place_a_bias_in_l0c():
    @kernel(kind="cube")
    def placed(core):
        c, a, b = core.cc("float", 512), core.ca("half", 256), core.cb("half", 256)
        core.asc_mmad(c, a, b, 16, 16, 16, c_matrix_init_val=False, bias_in_l0c=True)

    with pytest.raises(KernelError) as error:
        placed[1]()
    assert str(error.value).partition(": ")[2] == (
        "asc_mmad has no operand start; Mmad with a bias operand in CO1 says where"
    )


@pytest.mark.parametrize("place", ["", "C2", "CO1"])
def test_kirin_x90_takes_a_bias_operand_of_half(place):
    """Table 7: half with a half bias; C starts from a row of C2 or from a tile of CO1."""

    @kernel(kind="cube", outputs="c", chip="KirinX90")
    def launch(core, a, b, row, c):
        l1, l0a, l0b = core.cbuf.at("half", 0), core.ca.at("half", 0), core.cb.at("half", 0)
        tile, other = core.cc.at("half", 0), core.cc.at("half", OUT)
        load(core, l1, l0a, a, 32 * 48 * 2, core.asc_copy_l12l0a)
        load(core, l1, l0b, b, 48 * 48 * 2, core.asc_copy_l12l0b, 65536)
        source, table = core.cbuf.at("half", 131072), core.biasbuf.at("half", 0)
        core.asc_copy_gm2l1(source, row, N * 2)
        core.asc_sync()
        core.asc_copy_l12bt(table, source, N * 2)
        core.asc_sync()
        params = capi.MmadParams(m=M, n=N, k=K)
        core.Mmad(other, l0a, l0b, params)
        core.asc_sync_pipe("PIPE_M")
        given = {"": (), "C2": (table,), "CO1": (other,)}[place]
        core.Mmad(tile, l0a, l0b, *given, params)
        core.asc_sync()
        core.asc_copy_l0c2gm(c, tile, N, M, N, 32, 0, "NoQuant", 0, False, True)

    c = np.zeros((M, N), np.float16)
    flat = lay_out(A, "ZZ", (16, 16)), lay_out(B, "ZN", (16, 16))
    ran = launch[1](*flat, ROW.astype(np.float16), c)
    assert [f.message for f in ran.findings] == []
    assert np.array_equal(c, AB + {"": 0, "C2": ROW, "CO1": AB}[place])


def test_kirin_has_no_source_bit_in_asc_mmad():
    @kernel(kind="cube", chip="KirinX90")
    def sourced(core):
        c, a, b = core.cc.at("half", 0), core.ca.at("half", 0), core.cb.at("half", 0)
        core.asc_mmad(c, a, b, 16, 16, 16, c_matrix_source=True, c_matrix_init_val=False)

    assert "mad.c_matrix_source must be off on KirinX90, got on" in [
        f.message for f in sourced[1]().findings
    ]

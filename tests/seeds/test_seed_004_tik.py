"""Seed 004 as it is printed: TIK's matmul in programs that import `tbe`, against NumPy."""

from itertools import groupby

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.program import main, run_program
from cubecore.frontends.tik.host.vendor_modules import provided
from cubecore.frontends.tik.trace.target import Platform

EXAMPLE = """\
from tbe import tik
tik_instance = tik.Tik()
# Define the tensors.
a_gm = tik_instance.Tensor("int8", [2, 32, 32], name='a_gm', scope=tik.scope_gm)
b_gm = tik_instance.Tensor("int8", [2, 160, 32], name='b_gm', scope=tik.scope_gm)
# For matmul, m = 30. The fixpipe instruction deletes invalid data from dst_l1out. Therefore, set the m dimension of dst_gm to 30.
dst_gm = tik_instance.Tensor("int32", [10, 30, 16], name='dst_gm', scope=tik.scope_gm)
a_l1 = tik_instance.Tensor("int8", [2, 32, 32], name='a_l1', scope=tik.scope_cbuf)
b_l1 = tik_instance.Tensor("int8", [2, 160, 32], name='b_l1', scope=tik.scope_cbuf)
dst_l1out = tik_instance.Tensor("int32", [10, 32, 16], name='dst_l1out', scope=tik.scope_cbuf_out)
# Move data to the source operand.
tik_instance.data_move(a_l1, a_gm, 0, 1, 64, 0, 0)
tik_instance.data_move(b_l1, b_gm, 0, 1, 320, 0, 0)
# Perform matmul. The m, k, and n arguments are 30, 64, and 160, respectively. The m dimension of dst_l1out is a multiple of 16 and rounded up to 32.
tik_instance.matmul(dst_l1out, a_l1, b_l1, 30, 64, 160)
# Move data to dst_gm, where burst_len = 30 * 16 * dst_l1out_dtype_size//32 = 60.
tik_instance.fixpipe(dst_gm, dst_l1out, 10, 60, 0, 0, extend_params={"relu": True})
tik_instance.BuildCCE(kernel_name="matmul", inputs=[a_gm, b_gm], outputs=[dst_gm])
"""  # noqa: E501 - the seed's own lines


@pytest.fixture
def program(tmp_path):
    """Run a program's text; gives the kernels that it builds."""
    path = tmp_path / "program.py"

    def run(text):
        path.write_text(text)
        return run_program(str(path))[0].built

    return run


def blocked(matrix, c0, rows, columns):
    """Return [rows, columns] as [K1, rows rounded up, K0], padded with the type's poison."""
    tall, wide = -(-rows // 16) * 16, -(-columns // c0) * c0
    poison = 99 if matrix.dtype == np.int8 else np.nan
    whole = np.full((tall, wide), poison, matrix.dtype)
    whole[:rows, :columns] = matrix
    return np.ascontiguousarray(whole.reshape(tall, wide // c0, c0).transpose(1, 0, 2))


def whole_numbers(rng, shape, dtype):
    return rng.integers(-6, 7, shape).astype(dtype)


def test_the_printed_program(program):
    (kernel,) = program(EXAMPLE)
    assert kernel.kernel.chip.name == "Ascend310"
    a, b = np.full((2, 32, 32), -1, np.int8), np.full((2, 160, 32), 1, np.int8)
    (printed,) = kernel.tikdb.start_debug({"a_gm": a, "b_gm": b})
    assert printed.tolist() == np.zeros((10, 30, 16), int).tolist()
    rng = np.random.default_rng(4)
    a = rng.integers(-128, 128, a.shape).astype(np.int8)
    b = rng.integers(-128, 128, b.shape).astype(np.int8)
    result = kernel.launch({"a_gm": a, "b_gm": b})
    product = np.einsum("kmx,knx->mn", a.astype(np.int64), b.astype(np.int64))[:30]
    want = np.maximum(product, 0).reshape(30, 10, 16).transpose(1, 0, 2)
    assert result.findings == ()
    assert np.array_equal(result.outputs["dst_gm"], want)


def matmul_program(m, k, n, dtype, *, chip="Ascend310", extra="", relu=False):
    c0 = 32 if dtype == "int8" else 16
    acc = "int32" if dtype == "int8" else "float32"
    mm, k1, n1 = -(-m // 16) * 16, -(-k // c0), -(-n // 16)
    return f"""\
from tbe import tik
from tbe.common.platform import set_current_compile_soc_info
set_current_compile_soc_info("{chip}")
t = tik.Tik()
a_gm = t.Tensor("{dtype}", ({k1}, {mm}, {c0}), name="a_gm", scope=tik.scope_gm)
b_gm = t.Tensor("{dtype}", ({k1}, {n1 * 16}, {c0}), name="b_gm", scope=tik.scope_gm)
dst_gm = t.Tensor("{acc}", ({n1}, {m}, 16), name="dst_gm", scope=tik.scope_gm)
a_l1 = t.Tensor("{dtype}", ({k1}, {mm}, {c0}), name="a_l1", scope=tik.scope_cbuf)
b_l1 = t.Tensor("{dtype}", ({k1}, {n1 * 16}, {c0}), name="b_l1", scope=tik.scope_cbuf)
dst = t.Tensor("{acc}", ({n1}, {mm}, 16), name="dst", scope=tik.scope_cbuf_out)
t.data_move(a_l1, a_gm, 0, 1, {k1 * mm}, 0, 0)
t.data_move(b_l1, b_gm, 0, 1, {k1 * n1 * 16}, 0, 0)
t.matmul(dst, a_l1, b_l1, {m}, {k}, {n})
{extra}
t.fixpipe(dst_gm, dst, {n1}, {m * 2}, 0, 0, extend_params={{"relu": {relu}}})
t.BuildCCE(kernel_name="matmul", inputs=[a_gm, b_gm], outputs=[dst_gm])
"""


def check_product(kernel, m, k, n, dtype, factor=1):
    rng = np.random.default_rng(m * k + n)
    a, b = whole_numbers(rng, (m, k), dtype), whole_numbers(rng, (k, n), dtype)
    c0 = 32 if dtype == "int8" else 16
    feeds = {"a_gm": blocked(a, c0, m, k), "b_gm": blocked(np.ascontiguousarray(b.T), c0, n, k)}
    result = kernel.launch(feeds)
    wide = a.astype(np.float64) @ b.astype(np.float64) * factor
    got = result.outputs["dst_gm"].transpose(1, 0, 2).reshape(m, -1)[:, :n]
    assert np.array_equal(got, wide)
    return result.findings


CHIPS = ("Ascend310", "Ascend310P", "Ascend910", "Ascend910B3")


@pytest.mark.parametrize("chip", CHIPS)
def test_the_static_sample(program, chip):
    """[16, 64] by [64, 1024] of float16."""
    (kernel,) = program(matmul_program(16, 64, 1024, "float16", chip=chip))
    assert check_product(kernel, 16, 64, 1024, "float16") == ()


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype"),
    [
        (1, 70, 16, "float16"),
        (1, 64, 48, "int8"),
        (17, 40, 16, "int8"),
        (33, 16, 32, "float16"),
        (64, 1040, 64, "float16"),
        (2064, 16, 16, "float16"),
    ],
)
def test_sizes_need_not_be_rounded(program, m, k, n, dtype):
    (kernel,) = program(matmul_program(m, k, n, dtype))
    assert check_product(kernel, m, k, n, dtype) == ()


def test_padding_of_n_is_the_users(program):
    """Columns beyond n are unspecified: here they were never written, and that is said."""
    (kernel,) = program(matmul_program(16, 32, 20, "float16", chip="Ascend910"))
    check_product(kernel, 16, 32, 20, "float16")
    assert kernel.kernel.outputs[0].shape == (2, 16, 16)


@pytest.mark.parametrize(
    ("option", "factor"), [("", 1), ("init_l1out=True", 1), ("init_l1out=False", 2)]
)
def test_a_second_product_replaces_or_adds(program, option, factor):
    again = f"t.matmul(dst, a_l1, b_l1, 16, 48, 32, {option})"
    (kernel,) = program(matmul_program(16, 48, 32, "float16", extra=again))
    assert check_product(kernel, 16, 48, 32, "float16", factor) == ()


def test_no_vector_instruction_runs_beside_it(program):
    """Between a Vector instruction and what a matmul is made of stands a barrier of all pipes."""
    vector = "t.vec_dup(64, ub, 0.0, 1, 8)\n"
    text = matmul_program(
        16, 48, 32, "float16", extra=vector + "t.matmul(dst, a_l1, b_l1, 16, 48, 32)"
    )
    text = text.replace(
        "t.data_move(a_l1",
        'ub = t.Tensor("float32", (64,), tik.scope_ubuf, "ub")\nt.data_move(a_l1',
    )
    (kernel,) = program(text.replace("t.matmul(", vector + "t.matmul(", 1))
    (core,) = kernel.kernel.default_launch().cores
    units, seen = {"vector_dup": "vector", "mad": "matmul", "load_cbuf_to_ca": "matmul"}, []
    for node in core.program.body:
        name = getattr(getattr(node, "template", None), "name", "")
        if name in units:
            seen.append(units[name])
        elif name == "pipe_barrier" and node.template.on == "ALL":
            seen.append("barrier")
    runs = [name for name, _ in groupby(seen)]
    assert runs == ["vector", *(["barrier", "matmul", "barrier", "vector"] * 2)][: len(runs)]
    assert runs.count("matmul") == 2


def test_interactive_debugging_runs_to_the_end(program):
    """Without a terminal there is nobody to step: slow or not, it goes to the end."""
    (kernel,) = program(matmul_program(16, 48, 32, "float16"))
    feeds = {n: np.ones(kernel.gm_tensors[n].shape, np.float16) for n in ("a_gm", "b_gm")}
    (got,) = kernel.tikdb.start_debug(feeds, interactive=True)
    assert (got == 48).all()


def test_matmul_returns_none(program):
    text = matmul_program(16, 16, 16, "float16").replace("t.matmul(", "assert None is t.matmul(")
    (kernel,) = program(text)
    assert check_product(kernel, 16, 16, 16, "float16") == ()


LARGE = 'a = t.Tensor("float16", (2000,), name="x", scope=tik.scope_cbuf)\n'
BROKEN = [
    ("16, 48, 32", "0, 48, 32", "matmul.m must be in [1, 4096], got 0"),
    ("16, 48, 32", "4097, 48, 32", "matmul.m must be in [1, 4096], got 4097"),
    ("16, 48, 32", "16, 0, 32", "matmul.k must be in [1, 16384], got 0"),
    ("16, 48, 32", "16, 16385, 32", "matmul.k must be in [1, 16384], got 16385"),
    ("16, 48, 32", "16, 48, 0", "matmul.n must be in [1, 4096], got 0"),
    ("16, 48, 32", "16, 48, 4097", "matmul.n must be in [1, 4096], got 4097"),
    ("16, 48, 32", "16.0, 48, 32", "matmul.m must be an immediate of type int, got float"),
    (
        "16, 48, 32",
        "16, t.Scalar('int32', init_value=48), 32",
        "matmul.k must be an immediate of type int, got Scalar",
    ),
    ("16, 48, 32", '16, 48, 32, "no"', "matmul.init_l1out must be a bool, got str"),
    ("(dst, a_l1", "(a_l1, a_l1", "matmul.dst must lie in L1OUT, got L1"),
    ("(dst, a_l1", "(dst, dst", "matmul.a must lie in L1, got L0C"),
    ("b_l1, 16", "dst, 16", "matmul.b must lie in L1, got L0C"),
    (
        "(dst, a_l1",
        "(dst, a_l1[2:]",
        "matmul.a must start at a multiple of 512 B, got 4 B into a_l1",
    ),
    ("b_l1, 16", "b_l1[2:], 16", "matmul.b must start at a multiple of 512 B, got 4 B into b_l1"),
    (
        "(dst, a_l1",
        "(dst[2:], a_l1",
        "matmul.dst must start at a multiple of 1024 B, got 8 B into dst",
    ),
    (
        "(dst, a_l1",
        "(dst, a_l1[256:]",
        "matmul.a must hold 1536 B, m, k and n rounded up, got 1024 B",
    ),
    (
        "(dst, a_l1",
        "(dst[256:], a_l1",
        "matmul.dst must hold 2048 B, m, k and n rounded up, got 1024 B",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), BROKEN)
def test_every_restriction_broken_once(program, old, new, message):
    text = matmul_program(16, 48, 32, "float16")
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "t.matmul" in row)
    rows = text.splitlines()
    assert old in rows[line - 1]
    rows[line - 1] = rows[line - 1].replace(old, new)
    with pytest.raises(RequestError) as caught:
        program("\n".join(rows))
    assert str(caught.value) == f"program.py:{line}: {message}"


def test_k_of_int8_may_be_twice_as_long(program):
    text = matmul_program(16, 64, 16, "int8").replace("16, 64, 16)", "16, 32769, 16)")
    with pytest.raises(RequestError, match=r"matmul\.k must be in \[1, 32768\], got 32769"):
        program(text)


@pytest.mark.parametrize(
    ("a", "b", "dst"), [("int8", "float16", "int32"), ("float16", "float16", "int32")]
)
def test_types_of_table_2(program, a, b, dst):
    text = f"""\
from tbe import tik
t = tik.Tik()
a = t.Tensor("{a}", (1024,), name="a", scope=tik.scope_cbuf)
b = t.Tensor("{b}", (1024,), name="b", scope=tik.scope_cbuf)
c = t.Tensor("{dst}", (1024,), name="c", scope=tik.scope_cbuf_out)
t.matmul(c, a, b, 16, 16, 16)
"""
    with pytest.raises(RequestError) as caught:
        program(text)
    assert str(caught.value) == (
        "program.py:6: matmul must multiply one of int8 x int8 -> int32, float16 x float16 -> "
        f"float32, got {a} x {b} -> {dst}"
    )


def test_aligned_slices_are_starts(program):
    """tensor[256:] of float16 and of int32 are 512 B and 1024 B."""
    text = matmul_program(16, 32, 16, "float16")
    text = text.replace(
        "t.matmul(dst, a_l1, b_l1, 16, 32, 16)", "t.matmul(dst, a_l1[256:], b_l1[256:], 16, 16, 16)"
    )
    (kernel,) = program(text)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-6, 7, (2, 16, 16)).astype(np.float16) for _ in range(2))
    result = kernel.launch({"a_gm": a, "b_gm": b})
    want = a[1].astype(np.float64) @ b[1].astype(np.float64).T
    assert np.array_equal(result.outputs["dst_gm"][0], want)
    text = matmul_program(16, 16, 32, "int8").replace(
        "(dst, a_l1, b_l1, 16, 16, 32)", "(dst[256:], a_l1, b_l1, 16, 16, 16)"
    )
    (kernel,) = program(text)
    a, b = (rng.integers(-6, 7, (1, rows, 32)).astype(np.int8) for rows in (16, 32))
    result = kernel.launch({"a_gm": a, "b_gm": b})
    want = a[0, :, :16].astype(int) @ b[0, :16, :16].astype(int).T
    assert np.array_equal(result.outputs["dst_gm"][1], want)


def test_one_index_is_one_element():
    from cubecore.frontends.tik.host.instance import Tik

    Platform.soc = "Ascend310"
    tensor = Tik().Tensor("float16", (2, 4), "local.UB", "A")
    assert tensor[3].shape == (1,)
    assert tensor[3:].shape == (5,)
    with pytest.raises(RequestError, match="an element of A cannot be indexed"):
        tensor[0][1]


def test_the_command(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(EXAMPLE)
    assert main([str(path)]) == 0
    path.write_text(EXAMPLE.replace("30, 64, 160)", "30, 64, 0)"))
    assert main([str(path)]) == 2
    assert capsys.readouterr().err == "program.py:15: matmul.n must be in [1, 4096], got 0\n"


def test_the_modules_are_there_for_the_program_alone():
    with provided():
        import tbe.tik as inside

        assert inside.scope_gm == "global"
    with pytest.raises(ModuleNotFoundError):
        import tbe  # noqa: F401

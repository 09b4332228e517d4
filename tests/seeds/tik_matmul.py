"""Programs with one TIK matmul (seed 004), and their operands laid out as its table 1 says."""

from contextlib import contextmanager

import numpy as np

from cubecore.frontends.kernels.scripts import run_as_main
from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.trace.run_options import TikOptions

INFERENCE, TRAINING, A2 = ("Ascend310", "Ascend310P"), "Ascend910", "Ascend910B3"
CHIPS = (*INFERENCE, TRAINING, A2)
K0 = {"int8": 32, "float16": 16}
RESULT = {"int8": "int32", "float16": "float32"}
BYTES = {"int8": 1, "float16": 2, "int32": 4, "float32": 4}


def ceiling(value, divisor):
    return -(-value // divisor)


def shapes(m, k, n, dtype):
    """Return the shapes of dst, a and b by the formulas of table 1."""
    tall, n1, k1 = ceiling(m, 16) * 16, ceiling(n, 16), ceiling(k, K0[dtype])
    return (n1, tall, 16), (k1, tall, K0[dtype]), (k1, n1 * 16, K0[dtype])


@contextmanager
def instance(chip):
    """Give the module `tik` and a new instance for a chip."""
    with program_session(TikOptions(chip=chip)):
        from tbe import tik

        yield tik, tik.Tik()


def built(folder, text, chip=None):
    """Run a program's text; return the one kernel that it builds."""
    path = folder / "program.py"
    path.write_text(text)
    with program_session(TikOptions(chip=chip)) as session:
        assert run_as_main(str(path), ()) is None
    (kernel,) = session.built
    return kernel


def matmul_program(m, k, n, dtype, *, call=None, before="", after="", rows=None, relu=False):
    """Return a program: two moves, a matmul, a fixpipe of `rows` rows (m unless given)."""
    (n1, tall, _), (k1, _, c0), b_shape = shapes(m, k, n, dtype)
    rows = rows or m
    return f"""\
from tbe import tik
t = tik.Tik()
a_gm = t.Tensor("{dtype}", ({k1}, {tall}, {c0}), name="a_gm", scope=tik.scope_gm)
b_gm = t.Tensor("{dtype}", {b_shape}, name="b_gm", scope=tik.scope_gm)
dst_gm = t.Tensor("{RESULT[dtype]}", ({n1}, {rows}, 16), name="dst_gm", scope=tik.scope_gm)
a_l1 = t.Tensor("{dtype}", ({k1}, {tall}, {c0}), name="a_l1", scope=tik.scope_cbuf)
b_l1 = t.Tensor("{dtype}", {b_shape}, name="b_l1", scope=tik.scope_cbuf)
dst = t.Tensor("{RESULT[dtype]}", ({n1}, {tall}, 16), name="dst", scope=tik.scope_cbuf_out)
t.data_move(a_l1, a_gm, 0, 1, {k1 * tall}, 0, 0)
t.data_move(b_l1, b_gm, 0, 1, {k1 * n1 * 16}, 0, 0)
{before}
{call or f"t.matmul(dst, a_l1, b_l1, {m}, {k}, {n})"}
{after}
t.fixpipe(dst_gm, dst, {n1}, {rows * 2}, 0, 0, extend_params={{"relu": {relu}}})
t.BuildCCE(kernel_name="matmul", inputs=[a_gm, b_gm], outputs=[dst_gm])
"""


def blocked(matrix, c0, padding=None):
    """Return [rows, columns] as [K1, rows rounded up, K0], padded with poison unless told."""
    rows, columns = matrix.shape
    if padding is None:
        padding = 99 if matrix.dtype == np.int8 else np.nan
    whole = np.full((ceiling(rows, 16) * 16, ceiling(columns, c0) * c0), padding, matrix.dtype)
    whole[:rows, :columns] = matrix
    return np.ascontiguousarray(whole.reshape(len(whole), -1, c0).transpose(1, 0, 2))


def operands(m, k, n, dtype):
    """Return A [m, k] and B [k, n] of small whole numbers: their products are exact."""
    rng = np.random.default_rng(m * k + n)
    return (rng.integers(-6, 7, shape).astype(dtype) for shape in ((m, k), (k, n)))


def run_product(kernel, m, k, n, dtype, padding=None):
    """Launch a `matmul_program`; return A @ B, what it gave as [rows, N1 * 16], the findings."""
    a, b = operands(m, k, n, dtype)
    a_gm, b_gm = (blocked(matrix, K0[dtype], padding) for matrix in (a, b.T))
    result = kernel.launch({"a_gm": a_gm, "b_gm": b_gm})
    dst = result.outputs["dst_gm"]
    wide = a.astype(np.float64) @ b.astype(np.float64)
    return wide, dst.transpose(1, 0, 2).reshape(dst.shape[1], -1), result.findings


def issued(kernel, name):
    """Return the instructions of a name in a kernel's straight program."""
    found = (getattr(node, "template", None) for node in kernel.kernel.body)
    return [template for template in found if template is not None and template.name == name]

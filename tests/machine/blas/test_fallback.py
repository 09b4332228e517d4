"""What the fast engine does not know, the reference engine runs: every instruction of an AIC."""

import numpy as np
import pytest

from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Program
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from isa.bench import A2, HERE
from isa.test_catalogue import example, home

PROVEN = {
    *("copy_gm_to_cbuf", "copy_gm_to_cbuf_multi_nd2nz", "load_cbuf_to_ca", "load_cbuf_to_cb"),
    *("load_cbuf_to_ca_transpose", "load_cbuf_to_cb_transpose", "copy_cbuf_to_bt"),
    *("copy_cbuf_to_fbuf", "mad", "copy_matrix_cc_to_gm"),
    "create_cbuf_matrix",
}
"""What a proof follows (machine/blas/prover.py)."""
CUBE = sorted(
    name
    for name, kind in instructions().items()
    if kind.declared and home(name) is A2 and Mem.UB not in {o.mem for o in kind.declared}
)


def launched(name: str) -> tuple[str, list[tuple[str, str]], int]:
    """The engine that ran one issue of an example, what was found, and how much was issued."""
    template, base = example(name), Var("gm", 0)
    addresses = tuple(Expr.of(base) if o.mem is Mem.GM else Expr(0) for o in template.operands())
    program = Program((Issue(template, addresses, HERE),), (base,))
    cores = (CoreProgram(0, program, {base: ("tensor", 0)}),)
    gm = GlobalMemory()
    tensor = gm.allocate_from("tensor", np.zeros(65536, np.uint8))
    launch = Launch((TensorSpec("tensor", 65536),), cores)
    outcome, engine = run_launch(launch, A2, gm, {"tensor": tensor.address})
    return engine, [(f.id, f.message) for f in outcome.findings], outcome.issued


@pytest.mark.parametrize("name", [n for n in CUBE if n not in PROVEN])
def test_what_no_proof_follows_is_run_by_the_reference_engine(name):
    engine, _, issued = launched(name)
    assert (engine, issued) == ("reference", 1)


def test_what_a_proof_follows_is_not():
    """A load with nothing wrong is proven, and a fill with zeros; nothing comes of it."""
    assert launched("copy_gm_to_cbuf") == ("blas", [], 1)
    assert launched("create_cbuf_matrix") == ("blas", [], 1)


def test_the_rows_are_instructions_of_an_aic():
    assert set(CUBE) >= PROVEN

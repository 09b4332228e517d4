"""Other orders than the program's: one answer where flags suffice, another where they do not."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cubecore import kernel
from cubecore.errors import DeadlockError, RequestError
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.program.topology import CoreId
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.execute.queue_order import schedule_of
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.tiling.model.problem import Problem
from harness import A2, expected, make_operands, make_tiling
from kernels.broken import changed, leaves
from machine.test_tree_watch import PROBLEM, launched

ORDERS = ("late", "early", *(f"random:{seed}" for seed in range(20)))


@kernel(outputs="c", checks="none")
def doubled(core, a, c, fetched=True, computed=True, barrier=True):
    """c = 4 a, in two steps of V, block by block through one buffer."""
    x, y = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_sync_notify("MTE3", "MTE2", 0)
    for block in range(4):
        core.asc_sync_wait("MTE3", "MTE2", 0)
        core.asc_copy_gm2ub(x, a + block * 64, 256)
        if fetched:
            core.asc_sync_notify("MTE2", "V", 0)
            core.asc_sync_wait("MTE2", "V", 0)
        core.asc_add(y, x, x, 64)
        if barrier:
            core.asc_sync_pipe("V")
        core.asc_add(y, y, y, 64)
        if computed:
            core.asc_sync_notify("V", "MTE3", 0)
            core.asc_sync_wait("V", "MTE3", 0)
        core.asc_copy_ub2gm(c + block * 64, y, 256)
        core.asc_sync_notify("MTE3", "MTE2", 0)
    core.asc_sync_wait("MTE3", "MTE2", 0)


def result(order, **missing):
    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    doubled.using(order=order)[1](a, c, **missing)
    return c, 4 * a


@pytest.mark.parametrize("order", ["program", *ORDERS])
def test_flags_that_suffice_give_one_answer(order):
    c, wanted = result(order)
    assert (c == wanted).all()


@pytest.mark.parametrize("missing", ["fetched", "computed", "barrier"])
def test_a_missing_flag_changes_the_answer_only_out_of_program_order(missing):
    c, wanted = result("program", **{missing: False})
    assert (c == wanted).all()
    assert differs(lambda: result("late", **{missing: False}))


def differs(run) -> bool:
    """Whether a run gives another answer than the right one, or never ends."""
    try:
        c, wanted = run()
    except DeadlockError:
        return True
    return not (c == wanted).all()


def test_the_scalar_unit_reads_early():
    seen = []

    @kernel(checks="none")
    def read(core, a, waits):
        x = core.ubuf("int32", 8)
        core.asc_copy_gm2ub(x, a, 32)
        if waits:
            core.asc_sync_notify("MTE2", "S", 0)
            core.asc_sync_wait("MTE2", "S", 0)
        seen.append(int(x[0]))

    for order, waits in (("late", True), ("late", False), ("program", False)):
        read.using(order=order)[1](np.full(8, 7, np.int32), waits)
    assert seen == [7, -1, 7]


def test_a_mask_is_that_of_the_issue():
    """Registers of the scalar unit hold for what it issued, whenever that runs."""

    @kernel(checks="none")
    def two_masks(core, a):
        x = core.ubuf("float", 64)
        core.asc_copy_gm2ub(x, a, 256)
        core.asc_sync_notify("MTE2", "V", 0)
        core.asc_sync_wait("MTE2", "V", 0)
        core.asc_set_vector_mask(0, 0xF)
        core.asc_add_scalar(x, x, 1.0, 1, 1, 1, 8, 8)
        core.asc_sync_pipe("V")
        core.asc_set_vector_mask(0, 0xFF)
        core.asc_add_scalar(x, x, 1.0, 1, 1, 1, 8, 8)
        core.asc_sync_notify("V", "MTE3", 0)
        core.asc_sync_wait("V", "MTE3", 0)
        core.asc_copy_ub2gm(a, x, 256)

    for order in ORDERS:
        a = np.zeros(64, np.float32)
        two_masks.using(order=order)[1](a)
        assert a[:9].tolist() == [2] * 4 + [1] * 4 + [0]


@pytest.mark.parametrize("order", ORDERS)
def test_a_register_that_the_vector_unit_sets_is_that_of_the_issue(order):
    @kernel(outputs="c", order=order)
    def scaled(core, a, c):
        x, y = core.ubuf("int32", 64), core.ubuf("half", 64)
        core.asc_copy_gm2ub(x, a, 256)
        core.asc_sync_notify("MTE2", "V", 0)
        core.asc_sync_wait("MTE2", "V", 0)
        for number, bits in enumerate((0x3C00, 0x4000)):  # 1 and 2 in half
            core.asc_set_deq_scale(bits)
            core.asc_deq_int322half(y, x, 64)
            core.asc_sync_notify("V", "MTE3", 0)
            core.asc_sync_wait("V", "MTE3", 0)
            core.asc_copy_ub2gm(c + 64 * number, y, 128)
            core.asc_sync_notify("MTE3", "V", 0)
            core.asc_sync_wait("MTE3", "V", 0)

    a, c = np.arange(64, dtype=np.int32), np.zeros(128, np.float16)
    assert scaled[1](a, c).clean
    assert (c == np.concatenate([a, 2 * a])).all()


def test_what_vectors_leave_is_that_of_their_own_order():
    @kernel(checks="none")
    def selects(core, a, c):
        x, y, z = (core.ubuf("float", 64) for _ in range(3))
        core.asc_copy_gm2ub(x, a, 256)
        core.asc_copy_gm2ub(y, a + 64, 256)
        core.asc_sync_notify("MTE2", "V", 0)
        core.asc_sync_wait("MTE2", "V", 0)
        core.asc_gt(x, y, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("V")
        core.asc_select(z, x, y, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync_notify("V", "MTE3", 0)
        core.asc_sync_wait("V", "MTE3", 0)
        core.asc_copy_ub2gm(c, z, 256)

    a = np.random.default_rng(1).standard_normal(128).astype(np.float32)
    for order in ORDERS:
        c = np.zeros(64, np.float32)
        selects.using(order=order)[1](a, c)
        assert (c == np.maximum(a[:64], a[64:])).all()


@pytest.mark.parametrize("told", [True, False])
def test_cores_that_do_not_wait_for_each_other(told):
    @kernel(kind="mix", checks="none")
    def passed(core, a, c):
        if core.is_aic:
            return
        x = core.ubuf("float", 64)
        if core.asc_get_sub_block_id() == 0:
            core.asc_copy_gm2ub(x, a, 256)
            core.asc_sync_notify("MTE2", "MTE3", 0)
            core.asc_sync_wait("MTE2", "MTE3", 0)
            core.asc_copy_ub2gm(c, x, 256)
        if told:
            core.asc_sync_subblock_arrive("MTE3", 1)
            core.asc_sync_subblock_wait("S", 1)
        if core.asc_get_sub_block_id() == 1:
            core.asc_copy_gm2ub(x, c, 256)
            core.asc_sync_notify("MTE2", "MTE3", 0)
            core.asc_sync_wait("MTE2", "MTE3", 0)
            core.asc_copy_ub2gm(c + 64, x, 256)

    a, c = np.ones(64, np.float32), np.zeros(128, np.float32)
    passed.using(order="program")[1](a, c)
    assert (c[64:] == 1).all()
    a, c = np.ones(64, np.float32), np.zeros(128, np.float32)
    passed.using(order="late")[1](a, c)
    assert (c[64:] == (1 if told else 0)).all()


HANDED = Problem(m=50, n=70, k=96, template="NORM", bias="float32")
FIELDS = {"baseM": 32, "baseN": 48, "baseK": 32, "dbL0C": 2, "dbL0A": 2, "dbL0B": 2}


def handed_over(order, change=lambda leaf: leaf):
    """Return C of a kernel whose tiles go to fixpipe by the unit flag, and what it should be."""
    launch = changed(matmul_launch(HANDED, make_tiling(HANDED, **FIELDS), A2), change)
    operands = make_operands(HANDED)
    gm, bases = GlobalMemory(), {}
    for spec in launch.tensors:
        made = (
            gm.allocate("c", spec.size_bytes)
            if spec.output
            else gm.allocate_from("x", operands[spec.name])
        )
        bases[spec.name] = made.address
    tasks = [
        Task(CoreId(core.core), partial(_run, core.program, core.addresses(bases)))
        for core in launch.cores
    ]
    run(A2, gm, tasks, order=order)
    return made.buffer.data.view(np.float32).reshape(50, 70), expected(HANDED, operands)


def _run(program, slots, core):
    program.run(core, slots)


def sharing(kind, flag):
    """Change the unit flag of instructions of a kind that hand tiles over."""

    def change(leaf):
        if not (isinstance(leaf.template, kind) and leaf.template.unit_flag == 3):
            return leaf
        return replace(leaf, template=replace(leaf.template, unit_flag=flag))

    return change


@pytest.mark.parametrize("order", ["program", *ORDERS])
@pytest.mark.thinned(3)
def test_unit_flags_hold_products_and_fixpipe(order):
    c, wanted = handed_over(order)
    assert (c == wanted).all()


@pytest.mark.parametrize("kind", [Mad, CopyMatrixCcToGm], ids=lambda kind: kind.name)
def test_a_unit_flag_that_one_side_alone_minds_changes_the_answer(kind):
    change = sharing((Mad, CopyMatrixCcToGm), 0)
    assert differs(lambda: handed_over("late", change))
    assert differs(lambda: handed_over("late", sharing(kind, 0)))


def test_a_unit_flag_that_nobody_raises_is_a_deadlock():
    with pytest.raises(DeadlockError) as error:
        handed_over("late", sharing(Mad, 2))
    where = error.value.findings[0].location
    assert str(error.value) == (
        f"deadlock: core 0 AIC: FIX waits at {where} for the unit flags of copy_matrix_cc_to_gm"
    )


@kernel(kind="mix")
def stuck(core, given):
    """The AIC of each block waits for what is not sent, its AIVs' pipes for flags not set."""
    if core.is_aic:
        core.asc_sync_block_wait("PIPE_S", 3)
    elif core.block_idx < given:
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 1)


def test_every_core_and_pipe_of_a_deadlock_is_told():
    """Blocks of a mix kernel have two AIVs each; the last is given nothing to wait for."""
    first = stuck.function.__code__.co_firstlineno
    wait, v, mte3 = (f"{stuck.place.file}:{first + at} (stuck)" for at in (4, 6, 7))
    pipes = f"MTE3 waits at {mte3} for flag V -> MTE3 1, V waits at {v} for flag MTE2 -> V 0"
    aivs = [f"core {i} AIV{j}" for i in (0, 1) for j in (0, 1) if (i, j) != (1, 1)]
    told = [f"{aiv}: {pipes}" for aiv in aivs]
    told += [f"core {i} AIC waits for flag 3 at {wait}, which no core has sent" for i in (0, 1)]
    roots = {(v, "V", "MTE2 -> V 0"), (mte3, "MTE3", "V -> MTE3 1")}
    with pytest.raises(DeadlockError) as error:
        stuck.using(order="early")[2](3)
    assert {(f.id, f.message, f.count) for f in error.value.findings} == {
        *(
            ("flag-unmet", f"{pipe} waits at {at} for flag {flag}, which no set_flag sets", 3)
            for at, pipe, flag in roots
        ),
        *(("deadlock", text, 1) for text in told[3:]),
    }
    head, *rest = str(error.value).split("; ")
    assert head == f"deadlock: {told[0]}"
    assert sorted(rest) == sorted(told[1:])


def test_a_wait_of_the_scalar_unit_that_nothing_meets_is_a_deadlock():
    @kernel(checks="none")
    def stands(core):
        core.asc_sync_wait("V", "S", 0)

    with pytest.raises(DeadlockError) as error:
        stands.using(order="late")[1]()
    where = f"{stands.place.file}:{stands.function.__code__.co_firstlineno + 2} (stands)"
    assert str(error.value) == f"deadlock: core 0 AIV0: S waits at {where} for flag V -> S 0"


@pytest.mark.parametrize("order", ["later", "random:", "random:x", "reverse"])
def test_words_for_an_order(order):
    with pytest.raises(RequestError) as error:
        schedule_of(order)
    assert str(error.value) == f"order must be program, late, early or random:SEED, got '{order}'"


# --- the matmul


def product_of(launch, operands, order):
    gm, bases = GlobalMemory(), {}
    for spec in launch.tensors:
        if spec.output:
            output = gm.allocate(spec.name, spec.size_bytes)
            bases[spec.name] = output.address
        else:
            bases[spec.name] = gm.allocate_from(spec.name, operands[spec.name]).address
    outcome, ran_on = run_launch(launch, A2, gm, bases, order=order)
    assert ran_on == "reference"
    c = output.buffer.data.view(PROBLEM.c_type.numpy).reshape(PROBLEM.m, PROBLEM.n)
    return c, outcome.findings


@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_the_matmul_is_the_same(order):
    operands = make_operands(PROBLEM)
    c, findings = product_of(launched(), operands, order)
    assert findings == ()
    assert (c == expected(PROBLEM, operands)).all()


def test_a_matmul_without_a_flag_is_another():
    operands, launch = make_operands(PROBLEM), launched()
    pairs = {(i.template.src, i.template.dst) for i in leaves(launch) if _is_flag(i)}
    wanted = expected(PROBLEM, operands)
    for pair in sorted(pairs):
        broken = changed(launch, lambda i, p=pair: None if _is_flag(i, p) else i)

        def ordered(order, launch=broken):
            return product_of(launch, operands, order)[0], wanted

        assert differs(partial(ordered, "late")) or differs(partial(ordered, "early")), pair


def _is_flag(issue, pair=None):
    template = issue.template
    if not isinstance(template, SetFlag | WaitFlag):
        return False
    return pair is None or (template.src, template.dst) == pair

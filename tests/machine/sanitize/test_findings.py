"""What a run finds, in pairs: a right program, and the same program with one thing wrong."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
    CopyGmToUbuf,
    CopyUbufToGm,
    LoadCbufToCa,
    LoadCbufToCb,
)
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.machine.execute.core import Core, CoreId
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.finding_kinds import FINDING_IDS, KINDS
from cubecore.machine.memory.buffers import GlobalMemory
from isa.bench import A2

HERE, THERE = Location("kernel.py", 7, "kernel"), Location("kernel.py", 8, "kernel")
HALF, WORD, INT = map(element_type, ("float16", "float32", "int32"))
VADD = instruction_named("vadd")


def issue(*program, sub=0, gm=None, cores=1, on=A2):
    """Run (template, *addresses) on some cores; return the outcome."""

    def body(core: Core) -> None:
        for template, *addresses in program:
            core.record(template, tuple(addresses), HERE)

    return run(on, gm or GlobalMemory(), [Task(CoreId(i, sub), body) for i in range(cores)])


def lines(outcome) -> list[str]:
    return [f"{f.id} ({f.count}) {f.core}: {f.message}" for f in outcome.findings]


def tensors(**sizes):
    gm = GlobalMemory()
    return gm, [gm.allocate_from(name, np.zeros(size, np.uint8)) for name, size in sizes.items()]


def mad(**changes):
    extents = {"m": 16, "k": 16, "n": 16} | changes
    return Mad(a_type=HALF, b_type=HALF, c_type=WORD, **extents)


def fixpipe(**changes):
    fields = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16, "nz2nd_en": True}
    return CopyMatrixCcToGm(src_type=WORD, **(fields | changes))


# --- initialisation


def test_reading_what_was_loaded_and_what_never_was():
    gm, (a,) = tensors(a=1024)
    load = (CopyGmToCbuf(n_burst=1, len_burst=16), 0, a.address)
    to_a, to_b = (LoadCbufToCa(repeat=1), 0, 0), (LoadCbufToCb(repeat=1), 0, 0)
    assert issue(load, to_a, to_b, (mad(), 0, 0, 0), gm=gm).findings == ()
    assert lines(issue(load, to_a, (mad(), 0, 0, 0), gm=gm)) == [
        "uninitialised (1) core 0 AIC: mad.b must be initialised in L0B, "
        "got 256 of 256 elements never written, first k 0, n 0"
    ]


def test_unwritten_bytes_travel_through_moves_until_something_reads_them():
    """One byte of a row of A was never written in GM: only mad tells."""
    gm = GlobalMemory()
    a = gm.allocate_from("a", np.zeros(512, np.uint8))
    a.buffer.valid[32 * 5 + 2 * 3] = 0  # row 5, k 3
    path = [
        (CopyGmToCbuf(n_burst=1, len_burst=16), 0, a.address),
        (LoadCbufToCa(repeat=1), 0, 0),
        (LoadCbufToCb(repeat=1), 0, 0),
    ]
    assert issue(*path, gm=gm).findings == ()
    a.buffer.valid[:] = 1
    a.buffer.valid[32 * 5 + 2 * 3] = 0
    outcome = issue(*path, (mad(m=16, n=5), 0, 0, 0), gm=gm)
    assert lines(outcome) == [
        "uninitialised (1) core 0 AIC: mad.a must be initialised in L0A, "
        "got 1 of 256 elements never written, first m 5, k 3"
    ]


def test_padding_may_be_unwritten():
    gm, (a,) = tensors(a=30 * 64 * 2)
    pieces = {"n_value": 30, "src_d_value": 40, "dst_nz_c0_stride": 32}
    path = [
        (CopyGmToCbufMultiNd2Nz(dtype=HALF, d_value=40, **pieces), 0, a.address),
        *((LoadCbufToCa(repeat=3, src_stride=2), r * 1536, r * 512) for r in range(2)),
        *((LoadCbufToCb(repeat=2, src_stride=1), c * 1024, c * 1024) for c in range(3)),
    ]
    assert issue(*path, (mad(m=30, k=40, n=30), 0, 0, 0), gm=gm).findings == ()
    # row 31 of the last fractal was never loaded
    assert lines(issue(*path, (mad(m=31, k=40, n=30), 0, 0, 0), gm=gm)) == [
        "uninitialised (1) core 0 AIC: mad.a must be initialised in L0A, "
        "got 40 of 1240 elements never written, first m 30, k 0"
    ]


@pytest.mark.parametrize("accumulates", [False, True])
def test_accumulating_reads_the_old_tile(accumulates):
    gm, (a,) = tensors(a=512)
    path = [
        (CopyGmToCbuf(n_burst=1, len_burst=16), 0, a.address),
        (LoadCbufToCa(repeat=1), 0, 0),
        (LoadCbufToCb(repeat=1), 0, 0),
    ]
    outcome = issue(*path, (mad(c_matrix_init_val=not accumulates), 0, 0, 0), gm=gm)
    assert lines(outcome) == (
        [
            "uninitialised (1) core 0 AIC: mad.c must be initialised in L0C, "
            "got 256 of 256 elements never written, first m 0, n 0"
        ]
        if accumulates
        else []
    )


def test_a_bias_of_too_few_columns():
    gm, (a,) = tensors(a=512)
    path = [
        (CopyGmToCbuf(n_burst=1, len_burst=16), 0, a.address),
        (LoadCbufToCa(repeat=1), 0, 0),
        (LoadCbufToCb(repeat=1), 0, 0),
    ]
    start = mad(c_matrix_init_val=False, c_matrix_source=True)
    right = (CopyCbufToBt(src_type=WORD, len_burst=2), 0, 0)
    wrong = (CopyCbufToBt(src_type=WORD, len_burst=1), 0, 0)
    assert issue(*path, right, (start, 0, 0, 0, 0), gm=gm).findings == ()
    assert lines(issue(*path, wrong, (start, 0, 0, 0, 0), gm=gm)) == [
        "uninitialised (1) core 0 AIC: mad.bias must be initialised in BiasTable, "
        "got 8 of 16 elements never written, first n 8"
    ]


def test_vadd_of_a_loaded_and_of_an_unwritten_block():
    gm, (a,) = tensors(a=512)
    load = CopyGmToUbuf(n_burst=1, len_burst=8), 0, a.address
    more = CopyGmToUbuf(n_burst=1, len_burst=7), 256, a.address
    whole = CopyGmToUbuf(n_burst=1, len_burst=8), 256, a.address
    add = VADD(dtype=WORD), 512, 0, 256
    assert issue(load, whole, add, gm=gm, sub=1).findings == ()
    assert lines(issue(load, more, add, gm=gm, sub=1)) == [
        "uninitialised (1) core 0 AIV0: vadd.src1 must be initialised in UB, "
        "got 8 of 64 elements never written, first repeat 0, lane 56"
    ]
    masked = SetVectorMask(mask_high=0, mask_low=2**56 - 1), *()
    assert issue(load, more, masked, add, gm=gm, sub=1).findings == ()


def test_a_result_of_unwritten_input_is_written_and_found_once():
    vadd = VADD(dtype=WORD)
    outcome = issue((vadd, 256, 0, 0), (vadd, 512, 256, 256), sub=1)
    assert [(f.message.split(" ")[0], f.count) for f in outcome.findings] == [
        ("vadd.src0", 1),
        ("vadd.src1", 1),
    ]


def test_unwritten_elements_reach_the_output_unwritten():
    gm = GlobalMemory()
    a, c = gm.allocate_from("a", np.zeros(512, np.uint8)), gm.allocate("c", 1024)
    path = [
        (CopyGmToCbuf(n_burst=1, len_burst=16), 0, a.address),
        (LoadCbufToCa(repeat=1), 0, 0),
        (LoadCbufToCb(repeat=1), 0, 0),
        (mad(m=3, n=5), 0, 0, 0),
        (fixpipe(), c.address, 0),
    ]
    assert issue(*path, gm=gm).findings == ()
    written = c.buffer.valid.reshape(16, 16, 4)
    assert written[:3, :5].all()
    assert not written[3:].any()
    assert not written[:, 5:].any()


def test_a_scalar_read_of_unwritten_memory_is_a_finding():
    gm = GlobalMemory()
    flag = gm.allocate("flag", 4)
    var = Var("n", 0)

    def body(core: Core) -> None:
        load = LoadScalar(var, Mem.GM, INT, Expr(flag.address), HERE)
        core.load_scalar(load, flag.address)

    outcome = run(A2, gm, [Task(CoreId(0), body)])
    assert [f.id for f in outcome.findings] == ["uninitialised"]


def test_a_scalar_read_gives_integers_and_the_bits_of_floats():
    gm = GlobalMemory()
    values = gm.allocate_from("v", np.array([-5, 7], np.int32))
    floats = gm.allocate_from("f", np.array([1.5], np.float32))
    seen = []

    def body(core: Core) -> None:
        core.record(CopyGmToUbuf(n_burst=1, len_burst=1), (0, near.address), HERE)
        for mem, kind, address in (
            (Mem.GM, INT, values.address),
            (Mem.GM, INT, values.address + 4),
            (Mem.GM, WORD, floats.address),
            (Mem.UB, INT, 4),
        ):
            load = LoadScalar(Var("n", 0), mem, kind, Expr(address), HERE)
            seen.append(core.load_scalar(load, address))

    near = gm.allocate_from("near", np.arange(8, dtype=np.int32))
    run(A2, gm, [Task(CoreId(0, 1), body)])
    assert seen == [-5, 7, 0x3FC00000, 1]


def test_a_scalar_read_outside_every_tensor_is_a_finding():
    gm = GlobalMemory()
    gm.allocate_from("v", np.array([1], np.int32))

    def body(core: Core) -> None:
        core.load_scalar(LoadScalar(Var("n", 0), Mem.GM, INT, Expr(0), HERE), 0)

    assert [f.id for f in run(A2, gm, [Task(CoreId(0), body)]).findings] == ["out-of-bounds"]


# --- bounds


@pytest.mark.parametrize(
    ("mem", "size", "template", "last"),
    [
        ("L0A", 65536, LoadCbufToCa(repeat=2), 65536 - 1024),
        ("L0B", 65536, LoadCbufToCb(repeat=2), 65536 - 1024),
    ],
)
def test_the_end_of_l0(mem, size, template, last):
    assert issue((template, last, 0)).findings == ()
    assert lines(issue((template, last + 512, 0))) == [
        f"out-of-bounds (1) core 0 AIC: {template.name}.dst must stay inside {mem} "
        f"(0 to {size} B), got bytes [{size - 512}, {size + 512})"
    ]


def test_the_end_of_l0c():
    tile = mad(c_matrix_init_val=True)
    assert [f.id for f in issue((tile, 131072 - 1024, 0, 0)).findings] == ["uninitialised"] * 2
    assert lines(issue((tile, 131072, 0, 0))) == [
        "out-of-bounds (1) core 0 AIC: mad.c must stay inside L0C (0 to 131072 B), "
        "got bytes [131072, 132096)"
    ]


def test_the_end_of_bias_table():
    right, wrong = (CopyCbufToBt(src_type=WORD, len_burst=blocks) for blocks in (32, 33))
    assert issue((right, 0, 0)).findings == ()
    assert lines(issue((wrong, 0, 0))) == [
        "out-of-bounds (1) core 0 AIC: copy_cbuf_to_bt.dst must stay inside BiasTable "
        "(0 to 1024 B), got bytes [0, 1056)"
    ]


def test_an_address_below_zero():
    assert lines(issue((LoadCbufToCa(repeat=1), -512, 0))) == [
        "out-of-bounds (1) core 0 AIC: load_cbuf_to_ca.dst must stay inside L0A (0 to 65536 B), "
        "got bytes [-512, 0)"
    ]


def test_straddling_the_end_of_a_tensor():
    gm, (a, b) = tensors(a=96, b=512)
    copy = CopyGmToCbuf(n_burst=1, len_burst=2)
    assert issue((copy, 0, a.address + 32), gm=gm).findings == ()
    assert lines(issue((copy, 0, a.address + 33), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf.src must stay inside a (0 to 96 B), "
        "got bytes [33, 97)"
    ]
    assert lines(issue((copy, 0, b.address - 32), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf.src must stay inside b (0 to 512 B), "
        "got bytes [-32, 32), before the first byte of b"
    ]


def test_before_the_first_tensor():
    gm, (a,) = tensors(a=96)
    assert lines(issue((CopyGmToCbuf(n_burst=1, len_burst=1), 0, 0), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf.src must stay inside a (0 to 96 B), "
        f"got bytes [{-a.address}, {32 - a.address}), before the first byte of a"
    ]


def test_null_is_no_address_of_a_tensor():
    gm, _ = tensors(a=96)
    far = -(1 << 44)
    assert lines(issue((CopyGmToCbuf(n_burst=1, len_burst=1), 0, far), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf.src must lie in a tensor, "
        f"got bytes [{far}, {far + 32}) before the first one"
    ]


def test_a_wrong_store_changes_nothing():
    gm, (a, b) = tensors(a=64, b=64)
    before = [t.buffer.data.tobytes() for t in (a, b)]
    load = CopyGmToUbuf(n_burst=1, len_burst=2), 0, a.address
    outcome = issue(load, (CopyUbufToGm(n_burst=1, len_burst=2), b.address + 32, 0), gm=gm, sub=1)
    assert lines(outcome) == [
        "out-of-bounds (1) core 0 AIV0: copy_ubuf_to_gm.dst must stay inside b (0 to 64 B), "
        "got bytes [32, 96)"
    ]
    assert [t.buffer.data.tobytes() for t in (a, b)] == before


def test_only_the_elements_used_need_to_lie_inside():
    """The last row of ND2NZ ends with its last element, not with the row's pitch."""
    gm, (a,) = tensors(a=(3 * 20 + 5) * 2)
    fields = {"n_value": 4, "d_value": 5, "src_d_value": 20, "dst_nz_c0_stride": 4}
    right = CopyGmToCbufMultiNd2Nz(dtype=HALF, **fields)
    wrong = CopyGmToCbufMultiNd2Nz(dtype=HALF, **(fields | {"d_value": 6}))
    assert issue((right, 0, a.address), gm=gm).findings == ()
    assert lines(issue((wrong, 0, a.address), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf_multi_nd2nz.src must stay inside a "
        "(0 to 130 B), got bytes [0, 132)"
    ]


@pytest.mark.parametrize("nothing", ["nd_num", "n_value", "d_value"])
def test_a_transfer_of_nothing_inside_a_tensor_is_no_access(nothing):
    gm, (a,) = tensors(a=2)
    fields = {"n_value": 9, "d_value": 9, "src_d_value": 20, "dst_nz_c0_stride": 9} | {nothing: 0}
    template = CopyGmToCbufMultiNd2Nz(dtype=HALF, **fields)
    assert issue((template, 0, a.address), gm=gm).findings == ()


def test_a_transfer_of_nothing_at_the_end_of_a_tensor_is_no_access():
    gm, (a,) = tensors(a=64)
    fields = {"n_value": 0, "d_value": 9, "src_d_value": 20, "dst_nz_c0_stride": 9}
    assert issue((CopyGmToCbufMultiNd2Nz(dtype=HALF, **fields), 0, a.end), gm=gm).findings == ()


# --- capacity, and parts of a core


def test_all_of_l1_may_be_used():
    """The tiling rules hold 256 B back; an instruction may reach them (docs/decisions/plans.md)."""
    gm, (a,) = tensors(a=512)
    copy = CopyGmToCbuf(n_burst=1, len_burst=8)
    assert issue((copy, 524288 - 256, a.address), gm=gm).findings == ()
    assert lines(issue((copy, 524288 - 224, a.address), gm=gm)) == [
        "out-of-bounds (1) core 0 AIC: copy_gm_to_cbuf.dst must stay inside L1 "
        "(0 to 524288 B), got bytes [524064, 524320)"
    ]


def test_the_reserved_bytes_of_ub():
    gm, (a,) = tensors(a=512)
    copy = CopyGmToUbuf(n_burst=1, len_burst=8)
    assert issue((copy, 196352 - 256, a.address), gm=gm, sub=2).findings == ()
    assert lines(issue((copy, 196352 - 224, a.address), gm=gm, sub=2)) == [
        "capacity (1) core 0 AIV1: copy_gm_to_ubuf.dst must stay inside the usable UB "
        "(0 to 196352 B), got bytes [196128, 196384)"
    ]
    assert lines(issue((copy, 196608, a.address), gm=gm, sub=2)) == [
        "out-of-bounds (1) core 0 AIV1: copy_gm_to_ubuf.dst must stay inside UB "
        "(0 to 196608 B), got bytes [196608, 196864)"
    ]


def test_reserved_bytes_exist_all_the_same():
    gm, (a,) = tensors(a=512)
    copy = CopyGmToUbuf(n_burst=1, len_burst=8), 196352, a.address
    back = CopyUbufToGm(n_burst=1, len_burst=8), a.address, 196352
    outcome = issue(copy, back, gm=gm, sub=1)
    assert [f.id for f in outcome.findings] == ["capacity", "capacity"]
    assert a.buffer.valid.all()


def test_vector_instructions_run_on_vector_cores_only():
    outcome = issue((VADD(dtype=WORD), 0, 0, 0), sub=0)
    assert lines(outcome) == [
        f"parameter (1) core 0 AIC: vadd.{operand} must lie in a memory of the AIC, got UB"
        for operand in ("dst", "src0", "src1")
    ]


def test_cube_instructions_run_on_cube_cores_only():
    assert lines(issue((mad(), 0, 0, 0), sub=1)) == [
        f"parameter (1) core 0 AIV0: mad.{operand} must lie in a memory of the AIV, got {mem}"
        for operand, mem in (("c", "L0C"), ("a", "L0A"), ("b", "L0B"))
    ]


# --- what is shown


def test_a_finding_is_shown_once_with_its_count():
    gm, (a,) = tensors(a=64)
    copy = CopyGmToCbuf(n_burst=1, len_burst=4)
    program = [(copy, 0, a.address + 32 * i) for i in range(5)]
    outcome = issue(*program, gm=gm, cores=3)
    assert lines(outcome) == [
        "out-of-bounds (15) core 0 AIC: copy_gm_to_cbuf.src must stay inside a (0 to 64 B), "
        "got bytes [0, 128)"
    ]
    assert outcome.issued == 15


def test_other_places_other_findings():
    gm, (a,) = tensors(a=64)
    copy = CopyGmToCbuf(n_burst=1, len_burst=4)

    def body(core: Core) -> None:
        for where in (HERE, THERE, HERE):
            core.record(copy, (0, a.address), where)

    outcome = run(A2, gm, [Task(CoreId(0), body)])
    assert [(str(f.location), f.count) for f in outcome.findings] == [
        ("kernel.py:7 (kernel)", 2),
        ("kernel.py:8 (kernel)", 1),
    ]


def test_two_operands_of_one_instruction_are_two_findings():
    outcome = issue((LoadCbufToCa(repeat=1), 100, 33))
    assert lines(outcome) == [
        "misaligned (1) core 0 AIC: load_cbuf_to_ca.dst must start at a multiple of 512 B in L0A, "
        "got 100",
        "misaligned (1) core 0 AIC: load_cbuf_to_ca.src must start at a multiple of 32 B in L1, "
        "got 33",
    ]


def test_a_finding_as_json():
    (finding,) = issue((LoadCbufToCa(repeat=1), 100, 0)).findings
    assert finding.to_json() == {
        "id": "misaligned",
        "check": "memcheck",
        "certainty": "certain",
        "fix": KINDS["misaligned"].remedy,
        "vendor_name": "misaligned access",
        "message": "load_cbuf_to_ca.dst must start at a multiple of 512 B in L0A, got 100",
        "instruction": "load_cbuf_to_ca",
        "page": instruction_named("load_cbuf_to_ca").source,
        "manual": "findings.html#misaligned",
        "location": "kernel.py:7 (kernel)",
        "core": "core 0 AIC",
        "count": 1,
        "accesses": [],
    }


def test_every_finding_belongs_to_a_check():
    assert set(FINDING_IDS.values()) == {
        *("memcheck", "initcheck", "racecheck", "synccheck", "usecheck")
    }
    for name in ("out-of-bounds", "misaligned", "capacity", "parameter"):
        assert FINDING_IDS[name] == "memcheck"
    assert FINDING_IDS["uninitialised"] == "initcheck"
    assert FINDING_IDS["unread"] == "usecheck"

"""racecheck and synccheck: pairs of a right and a wrong program, and the order graph as oracle."""

import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.finding_kinds import CHECKS, KINDS
from cubecore.machine.memory.buffers import GlobalMemory
from isa.bench import A2
from machine.order_graph import Item, doubled, graph_of, races

INT, HALF, WORD = map(element_type, ("int32", "float16", "float32"))
VADD = instruction_named("vadd")(dtype=INT)
ORDER = frozenset({"racecheck", "synccheck"})
AIC, AIV = 0, 1


def check(*cores, gm=None, checks=ORDER, sub=AIV):
    """Run lists of (template, *addresses), one for each core; line n is the n-th of its list."""

    def body(program):
        def issue(core):
            for line, step in enumerate(program, 1):
                if callable(step):
                    step(core, line)
                else:
                    core.record(step[0], tuple(step[1:]), Location("k.py", line, "kernel"))

        return issue

    tasks = [Task(CoreId(n, sub), body(program)) for n, program in enumerate(cores)]
    return run(A2, gm or GlobalMemory(), tasks, checks=checks)


def lines(outcome):
    return [f"{f.id} ({f.count}) {f.core}: {f.message}" for f in outcome.findings]


def fetch(gm_address, ub, blocks=1):
    return CopyGmToUbuf(n_burst=1, len_burst=blocks), ub, gm_address


def store(gm_address, ub, blocks=1):
    return CopyUbufToGm(n_burst=1, len_burst=blocks), gm_address, ub


def set_(src, dst, event=0):
    return (SetFlag(src=src, dst=dst, event_id=event),)


def wait(src, dst, event=0):
    return (WaitFlag(src=src, dst=dst, event_id=event),)


def barrier(on="ALL"):
    return (PipeBarrier(on=on),)


def signal(on="MTE3", mode=0, flag=0):
    return (FftsCrossCoreSync(on=on, mode=mode, flag_id=flag),)


def await_(flag=0):
    return (WaitFlagDev(flag_id=flag),)


MASK = (SetVectorMask(mask_high=0, mask_low=0xFF),)
"""Eight lanes of int32: one block of 32 B."""


def placed(*names, size=4096):
    gm = GlobalMemory()
    return gm, [gm.allocate_from(name, np.zeros(size, np.uint8)).address for name in names]


# --- pairs of pipes: right with the flag, wrong without, and the sentence


def add_one(a, c, *, first=True, second=True):
    """Return the steps that load, add in place and store."""
    return [
        MASK,
        fetch(a, 0),
        *([set_("MTE2", "V"), wait("MTE2", "V")] if first else []),
        (VADD, 0, 0, 0),
        *([set_("V", "MTE3"), wait("V", "MTE3")] if second else []),
        store(c, 0),
    ]


def test_a_load_an_addition_and_a_store_in_order():
    gm, (a, c) = placed("a", "c")
    assert lines(check(add_one(a, c), gm=gm)) == []


def test_a_consumer_that_does_not_wait_for_its_load():
    gm, (a, c) = placed("a", "c")
    outcome = check(add_one(a, c, first=False), gm=gm)
    assert lines(outcome) == [
        "race-raw (1) core 0 AIV0: vadd.src0 must read bytes [0, 32) of UB after "
        "copy_gm_to_ubuf.dst wrote them, got no order between MTE2 (k.py:2 (kernel)) and V "
        "(k.py:3 (kernel)); set_flag(MTE2, V) after the write and wait_flag(MTE2, V) before the "
        "read",
        "race-raw (1) core 0 AIV0: vadd.src1 must read bytes [0, 32) of UB after "
        "copy_gm_to_ubuf.dst wrote them, got no order between MTE2 (k.py:2 (kernel)) and V "
        "(k.py:3 (kernel)); set_flag(MTE2, V) after the write and wait_flag(MTE2, V) before the "
        "read",
        "race-waw (1) core 0 AIV0: vadd.dst must write bytes [0, 32) of UB after "
        "copy_gm_to_ubuf.dst wrote them, got no order between MTE2 (k.py:2 (kernel)) and V "
        "(k.py:3 (kernel)); set_flag(MTE2, V) after the write and wait_flag(MTE2, V) before the "
        "write",
    ]


def test_a_finding_carries_both_accesses():
    gm, (a, c) = placed("a", "c")
    (finding,) = check(add_one(a, c, second=False), gm=gm).findings
    assert finding.to_json() | {"message": ""} == {
        "id": "race-raw",
        "check": "racecheck",
        "certainty": "certain",
        "fix": KINDS["race-raw"].remedy,
        "vendor_name": "Potential RAW hazard detected",
        "message": "",
        "instruction": "copy_ubuf_to_gm",
        "page": "asc-devkit, asc_copy_ub2gm (2201)",
        "manual": "findings.html#race-raw",
        "location": "k.py:6 (kernel)",
        "core": "core 0 AIV0",
        "count": 1,
        "accesses": [
            {
                "how": "write",
                "instruction": "vadd",
                "operand": "dst",
                "pipe": "V",
                "memory": "UB",
                "start": 0,
                "end": 32,
                "core": "core 0 AIV0",
                "location": "k.py:5 (kernel)",
            },
            {
                "how": "read",
                "instruction": "copy_ubuf_to_gm",
                "operand": "src",
                "pipe": "MTE3",
                "memory": "UB",
                "start": 0,
                "end": 32,
                "core": "core 0 AIV0",
                "location": "k.py:6 (kernel)",
            },
        ],
    }


@pytest.mark.parametrize("kept", [True, False])
def test_a_buffer_is_not_filled_again_before_it_was_stored(kept):
    gm, (a, c) = placed("a", "c")
    back = [set_("MTE3", "MTE2"), wait("MTE3", "MTE2")] if kept else []
    outcome = check([*add_one(a, c), *back, fetch(a + 32, 0)], gm=gm)
    assert [f.id for f in outcome.findings] == ([] if kept else ["race-war"])
    for finding in outcome.findings:  # no barrier between the loads is the advice
        assert finding.message.endswith(
            "; set_flag(MTE3, MTE2) after the read and wait_flag(MTE3, MTE2) before the write"
        )


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ((), ["race-raw"]),
        ((barrier("V"),), []),
        ((barrier(),), []),
        ((barrier("MTE2"),), ["race-raw"]),
    ],
)
def test_two_instructions_of_one_pipe(between, found):
    program = [MASK, (VADD, 64, 0, 0), *between, (VADD, 128, 64, 0)]
    assert [f.id for f in check(program).findings] == found


def test_one_pipe_in_words():
    program = [MASK, (VADD, 64, 0, 0), (VADD, 64, 96, 128)]
    assert lines(check(program)) == [
        "race-waw (1) core 0 AIV0: vadd.dst must write bytes [64, 96) of UB after vadd.dst wrote "
        "them, got both on V (k.py:2 (kernel) and k.py:3 (kernel)) with no pipe_barrier(V) between "
        "them; put one there"
    ]


def test_only_bytes_that_are_touched_meet():
    """Lanes and blocks that the mask or a stride leaves out are not touched."""
    even = instruction_named("vadd")(dtype=INT, dst_block_stride=2)
    mask = (SetVectorMask(mask_high=0, mask_low=0xFFFF),)  # two blocks
    gm, (a,) = placed("a")
    for at, found in ((32, []), (64, ["race-waw"]), (96, [])):
        assert [f.id for f in check([mask, (even, 0, 512, 768), fetch(a, at)], gm=gm).findings] == (
            found
        )


def test_a_flag_carries_what_its_source_has_waited_for():
    gm, (a, c) = placed("a", "c")
    relay = [
        fetch(a, 0),
        *(set_("MTE2", "V"), wait("MTE2", "V"), set_("V", "MTE3"), wait("V", "MTE3")),
        store(c, 0),
    ]
    assert lines(check(relay, gm=gm)) == []


def test_products_on_one_tile():
    """A tile of 10 fractals is long enough; a smaller one wants a barrier."""
    for n, found in ((160, []), (144, ["race-raw"])):
        mad = Mad(a_type=HALF, b_type=HALF, c_type=WORD, m=16, k=16, n=n)
        more = Mad(a_type=HALF, b_type=HALF, c_type=WORD, m=16, k=16, n=n, c_matrix_init_val=False)
        program = [(mad, 0, 0, 0), (more, 0, 0, 0)]
        assert [f.id for f in check(program, sub=AIC).findings] == found, n


@pytest.mark.parametrize(("mad_flag", "fix_flag"), [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_the_unit_flag_orders_only_if_both_have_it(mad_flag, fix_flag):
    gm, (c,) = placed("c")
    mad = Mad(a_type=HALF, b_type=HALF, c_type=WORD, m=16, k=16, n=16, unit_flag=mad_flag)
    out = CopyMatrixCcToGm(
        src_type=WORD,
        n_size=16,
        m_size=16,
        dst_stride=16,
        src_stride=16,
        nz2nd_en=True,
        unit_flag=fix_flag,
    )
    outcome = check([(mad, 0, 0, 0), (out, c, 0)], gm=gm, sub=AIC)
    races = [f.id for f in outcome.findings if f.check == "racecheck"]
    assert races == ([] if mad_flag and fix_flag else ["race-raw"])


def load_scalar(mem, address):
    target = Var("s", 0)

    def step(core, line):
        where = Location("k.py", line, "kernel")
        core.load_scalar(LoadScalar(target, mem, INT, Expr(address), where), address)

    return step


@pytest.mark.parametrize("kept", [True, False])
def test_the_scalar_unit_reads_what_was_loaded(kept):
    gm, (a,) = placed("a")
    flags = [set_("MTE2", "S"), wait("MTE2", "S")] if kept else []
    outcome = check([fetch(a, 0), *flags, load_scalar(Mem.UB, 4)], gm=gm)
    assert lines(outcome) == (
        []
        if kept
        else [
            "race-raw (1) core 0 AIV0: scalar load.s must read bytes [4, 8) of UB after "
            "copy_gm_to_ubuf.dst wrote them, got no order between MTE2 (k.py:1 (kernel)) and S "
            "(k.py:2 (kernel)); set_flag(MTE2, S) after the write and wait_flag(MTE2, S) before "
            "the read"
        ]
    )


def test_what_the_scalar_unit_waited_for_everything_later_knows():
    gm, (a, c) = placed("a", "c")
    program = [fetch(a, 0), set_("MTE2", "S"), wait("MTE2", "S"), store(c, 0)]
    assert lines(check(program, gm=gm)) == []


def test_an_instruction_that_is_not_made_is_not_judged():
    gm, (a,) = placed("a")
    outside = fetch(a, A2.ub_bytes)
    assert lines(check([outside, outside], gm=gm)) == []


# --- global memory


def test_stores_of_one_core_that_meet_in_global_memory():
    gm, (c,) = placed("c")
    twice = [store(c, 0, 2), store(c + 32, 64, 2)]
    assert lines(check(twice, gm=gm)) == [
        "race-waw (1) core 0 AIV0: copy_ubuf_to_gm.dst must write bytes [32, 64) of c after "
        "copy_ubuf_to_gm.dst wrote them, got both on MTE3 (k.py:1 (kernel) and k.py:2 (kernel)) "
        "with no pipe_barrier(MTE3) between them; put one there"
    ]
    assert lines(check([twice[0], barrier("MTE3"), twice[1]], gm=gm)) == []


def test_cores_that_store_to_the_same_bytes():
    gm, (c,) = placed("c")
    assert lines(check([store(c, 0)], [store(c + 16, 0)], gm=gm)) == [
        "race-waw (1) core 1 AIV0: copy_ubuf_to_gm.dst must write bytes [16, 32) of c after "
        "copy_ubuf_to_gm.dst of core 0 AIV0 wrote them, got no order between core 0 AIV0 (MTE3, "
        "k.py:1 (kernel)) and core 1 AIV0 (MTE3, k.py:1 (kernel)); signal core 1 AIV0 after the "
        "write and wait there"
    ]
    assert lines(check([store(c, 0)], [store(c + 32, 0)], gm=gm)) == []


def test_atomic_stores_may_meet():
    add = (SetAtomic(operation="add", dtype=WORD),)
    most = (SetAtomic(operation="max", dtype=WORD),)
    gm, (c,) = placed("c")
    assert lines(check([add, store(c, 0)], [add, store(c, 0)], gm=gm)) == []
    for other in ([most, store(c, 0)], [store(c, 0)], [fetch(c, 0)]):
        assert len(check([add, store(c, 0)], other, gm=gm).findings) == 1


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([signal()], [await_()], []),
        ([], [], ["race-raw"]),
        ([signal("MTE2")], [await_()], ["race-raw"]),
    ],
)
def test_a_core_reads_what_another_stored(first, second, found):
    gm, (c,) = placed("c")
    programs = [store(c, 0), *first, *second], [*first, *second, fetch(c, 0)]
    assert [f.id for f in check(*programs, gm=gm).findings] == found


def test_a_read_that_is_repeated_after_another_core_wrote():
    """Core 1 reads, core 0 writes behind it, core 1 reads again without waiting for that."""
    gm, (c,) = placed("c")
    writer = [signal("MTE2"), await_(), signal("MTE2", flag=1), store(c, 0), await_(1)]
    reader = [fetch(c, 0, 2), signal("MTE2"), await_(), signal("MTE2", flag=1), await_(1)]
    reader.append(fetch(c, 64, 2))
    assert [(f.id, f.location.line) for f in check(writer, reader, gm=gm).findings] == [
        ("race-raw", 6)
    ]


def test_a_read_that_is_repeated_after_a_larger_one():
    """Core 0 reads two rows, then what covers one of them, signals, and reads the rows again."""
    gm, (c,) = placed("c")
    rows = CopyGmToUbuf(n_burst=2, len_burst=1, src_gap=3), 0, c
    reader = [rows, fetch(c, 512, 2), signal("MTE2"), barrier("MTE2"), rows, await_()]
    writer = [signal("MTE2"), await_(), store(c, 0)]
    found = check(reader, writer, gm=gm).findings
    ends = [[access.location.line for access in f.accesses] for f in found]
    assert [f.id for f in found] == ["race-war"]
    assert ends == [[5, 3]]


def test_a_signal_carries_what_others_have_told():
    """Core 0 stores, tells core 1, which tells core 2, which reads."""
    gm, (c,) = placed("c")
    quiet = [signal(flag=0), await_(0), signal(flag=1), await_(1)]
    cores = (
        [store(c, 0), *quiet],
        quiet,
        [*quiet, fetch(c, 0)],
    )
    assert lines(check(*cores, gm=gm)) == []


# --- flags


def test_a_flag_that_is_left_up():
    assert lines(check([set_("MTE2", "V", 3)])) == [
        "flag-leaked (1) core 0 AIV0: flag MTE2 -> V 3 is still set at the end, since k.py:1 "
        "(kernel); wait for it, or do not set it: it would leak into the next kernel"
    ]


def test_a_flag_that_is_raised_twice():
    twice = [set_("MTE2", "V"), set_("MTE2", "V"), wait("MTE2", "V")]
    assert lines(check(twice)) == [
        "flag-doubled (1) core 0 AIV0: flag MTE2 -> V 0 needs a wait between two set_flags: it is "
        "set again at k.py:2 (kernel) while set since k.py:1 (kernel); make MTE2 wait for V "
        "first, or take another event"
    ]


def test_a_flag_that_may_be_raised_before_its_wait_has_taken_it():
    pair = [set_("MTE2", "V"), wait("MTE2", "V")]
    back = [set_("V", "MTE2"), wait("V", "MTE2")]
    assert lines(check([*pair, *back, *pair])) == []
    assert lines(check([*pair, *pair])) == [
        "flag-doubled (1) core 0 AIV0: flag MTE2 -> V 0 needs a wait between two set_flags: it is "
        "set at k.py:3 (kernel) before V's last wait; make MTE2 wait for V first, or take another "
        "event"
    ]


def test_a_wait_that_nothing_meets():
    gm, (a,) = placed("a")
    assert lines(check([MASK, wait("MTE2", "V", 1), (VADD, 0, 0, 0), fetch(a, 0)], gm=gm)) == [
        "flag-unmet (1) core 0 AIV0: V waits at k.py:2 (kernel) for flag MTE2 -> V 1, which no "
        "set_flag sets"
    ]


def test_the_scalar_unit_goes_no_further_than_its_wait():
    """What raises the flag stands behind the wait, so that it is never issued."""
    assert lines(check([wait("V", "S"), set_("V", "S"), set_("MTE2", "V")])) == [
        "flag-unmet (1) core 0 AIV0: S waits at k.py:1 (kernel) for flag V -> S 0, which no "
        "set_flag sets"
    ]


def test_a_barrier_behind_a_wait_that_nothing_has_met():
    assert [f.id for f in check([wait("MTE2", "V"), barrier(), set_("MTE2", "V")]).findings] == [
        "flag-unmet"
    ]


def test_waits_that_go_round_in_a_circle():
    circle = [
        *(wait("MTE2", "V"), set_("V", "MTE3")),
        *(wait("V", "MTE3"), set_("MTE3", "MTE2")),
        *(wait("MTE3", "MTE2"), set_("MTE2", "V")),
    ]
    assert lines(check(circle)) == [
        "deadlock (1) core 0 AIV0: the waits form a cycle: V waits at k.py:1 (kernel) for flag "
        "MTE2 -> V 0, which MTE2 sets after its own wait, at k.py:6 (kernel), MTE2 waits at "
        "k.py:5 (kernel) for flag MTE3 -> MTE2 0, which MTE3 sets after its own wait, at k.py:4 "
        "(kernel), MTE3 waits at k.py:3 (kernel) for flag V -> MTE3 0, which V sets after its own "
        "wait, at k.py:2 (kernel); flag MTE2 -> V 0 was never set before the wait at k.py:1 "
        "(kernel): set it once before that wait, or before the loop around it"
    ]


def test_a_flag_that_is_raised_late():
    assert lines(check([wait("MTE2", "V"), set_("MTE2", "V")])) == [
        "flag-late (1) core 0 AIV0: flag MTE2 -> V 0 is set after the wait for it, at k.py:1 "
        "(kernel), in program order; values are computed in that order, and the chip's order is "
        "another"
    ]


def test_what_waits_for_a_late_flag_is_ordered_behind_it():
    """V's store to UB runs behind MTE2's load; later instructions of V know it too."""
    gm, (a,) = placed("a")
    program = [
        *(MASK, wait("MTE2", "V"), (VADD, 64, 0, 0), fetch(a, 0), set_("MTE2", "V")),
        *(barrier("V"), (VADD, 128, 64, 0)),
    ]
    assert [f.id for f in check(program, gm=gm).findings] == ["flag-late"]


def test_pairs_of_pipes_that_no_flag_connects():
    assert lines(check([set_("V", "MTE1")])) == [
        "flag-pair (1) core 0 AIV0: set_flag must connect two pipes of an AIV that flags connect, "
        "got V -> MTE1"
    ]
    assert lines(check([wait("M", "MTE3")], sub=AIC)) == [
        "flag-pair (1) core 0 AIC: wait_flag must connect two pipes of an AIC that flags connect, "
        "got M -> MTE3"
    ]
    for src, dst in (("MTE2", "MTE1"), ("MTE1", "M"), ("M", "FIX"), ("FIX", "MTE2")):
        assert lines(check([set_(src, dst), wait(src, dst)], sub=AIC)) == []


def test_an_event_that_does_not_exist():
    assert lines(check([set_("MTE2", "V", 8)])) == [
        "flag-parameter (1) core 0 AIV0: set_flag.event_id must be in [0, 7], got 8"
    ]


def test_a_counter_between_cores_that_is_left_above_0():
    assert lines(check([signal(flag=2)], [signal(flag=2), await_(2)])) == [
        "flag-leaked (1) core 0 AIV0: flag 2 of core 0 AIV0 counts 1 at the end, since k.py:1 "
        "(kernel); wait for it as often as it is signalled"
    ]


# --- switches


def test_each_check_can_be_switched_off():
    gm, (a,) = placed("a")
    lost = [(VADD, 256, 128, 128), barrier("V"), (VADD, 256, 128, 128)]
    program = [MASK, fetch(a, 0), (VADD, 33, 0, 96), set_("MTE2", "V"), *lost]
    everything = {f.check for f in check(program, gm=gm, checks=frozenset(CHECKS)).findings}
    assert everything == set(CHECKS)
    for off in CHECKS:
        left = check(program, gm=gm, checks=frozenset(CHECKS) - {off}).findings
        assert {f.check for f in left} == everything - {off}


# --- results that nobody reads

WIDE = instruction_named("vadd")(dtype=INT, repeat=2)
WIDE_MASK = (SetVectorMask(mask_high=0, mask_low=2**64 - 1),)
FILL = instruction_named("vector_dup")(dtype=INT, value=1)
LARGEST = instruction_named("vcmax")(dtype=WORD)


def unread(*steps):
    """Return the lines (first result, what writes over it) of usecheck's findings, bytes, count."""
    gm, (a,) = placed("a")
    program = [WIDE_MASK, fetch(a, 0, 128), barrier()]
    for step in steps:
        program += [step(a) if callable(step) else step, barrier()]
    found = check(program, gm=gm, checks=frozenset({"usecheck"})).findings
    assert {f.id for f in found} <= {"unread"}
    places = [[access.location.line // 2 - 1 for access in f.accesses] for f in found]
    spans = [(f.accesses[0].start, f.accesses[0].end) for f in found]
    assert all(f.location == f.accesses[0].location for f in found)
    return [(*p, *span, f.count) for p, span, f in zip(places, spans, found, strict=True)]


SUM, AGAIN = (WIDE, 1024, 0, 512), (WIDE, 1024, 512, 512)
"""Two results in the same 512 B, from the 1024 B that were loaded."""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([SUM, AGAIN], [(1, 2, 1024, 1536, 1)]),
        ([SUM, (WIDE, 0, 1024, 512), AGAIN], []),  # read as src0
        ([SUM, (WIDE, 1024, 1024, 0)], []),  # in place
        ([SUM, lambda a: store(a, 1024, 16), AGAIN], []),
        ([SUM, lambda a: store(a, 1504, 1), AGAIN], []),  # of one block
        ([SUM, lambda a: store(a, 1536, 1), AGAIN], [(1, 3, 1024, 1536, 1)]),  # beside it
        ([SUM, lambda a: fetch(a, 1024, 16)], [(1, 2, 1024, 1536, 1)]),
        ([SUM, lambda a: fetch(a, 992, 18)], [(1, 2, 1024, 1536, 1)]),  # by more
        ([SUM, lambda a: fetch(a, 1024, 15)], []),  # by less
        ([SUM, lambda a: fetch(a, 1024, 15), AGAIN], [(1, 3, 1024, 1536, 1)]),
        ([SUM, lambda a: store(a, 1024, 1), lambda a: fetch(a, 1024, 1), AGAIN], []),
        ([lambda a: fetch(a, 1024, 16), lambda a: fetch(a, 1024, 16)], []),  # brought, not made
        ([(FILL, 1024), (FILL, 1024)], []),  # made of nothing
        ([(LARGEST, 1024, 0), (LARGEST, 1024, 512)], []),  # MAX_MIN_CNT has it, too
        ([SUM], []),  # left for whoever comes next
    ],
)
def test_a_result_that_is_written_over_before_anybody_reads_it(steps, expected):
    assert unread(*steps) == expected


def test_the_sentence_about_a_result_that_nobody_reads():
    gm, (a,) = placed("a")
    program = [WIDE_MASK, fetch(a, 0, 128), barrier(), SUM, barrier("V"), AGAIN]
    outcome = check(program, gm=gm, checks=frozenset({"usecheck"}))
    assert lines(outcome) == [
        "unread (1) core 0 AIV0: vadd.dst (V, k.py:6 (kernel)) overwrites bytes [1024, 1536) of "
        "UB, a result of vadd.dst (V, k.py:4 (kernel)) that is never read; read it first, or do "
        "not compute it"
    ]


# --- the order graph


class Drawn:
    """A random program of vector cores: as items of the graph, and as instructions."""

    PIPES = ("V", "MTE2", "MTE3", "S")

    def __init__(self, rng, gm_addresses, length):
        self.items, self.steps, self.up = [], [], []
        self.rng, (self.a, self.c) = rng, gm_addresses
        for _ in range(length):
            self.one(rng.integers(0, 12))

    def add(self, item, *step):
        self.items.append(item)
        self.steps.append(step)

    def one(self, kind):
        block, other, third = (int(x) for x in self.rng.integers(0, 4, 3))
        blocks = int(self.rng.integers(1, 3))
        if kind < 2:
            bursts, apart = int(self.rng.integers(1, 3)), blocks + 1
            starts = [100 + other + apart * burst for burst in range(bursts)]
            local = "UB", block, block + bursts * blocks
            remote = tuple(("GM", start, start + blocks) for start in starts)
            item = Item("work", "MTE2", reads=remote, writes=(local,))
            load = CopyGmToUbuf(n_burst=bursts, len_burst=blocks, src_gap=1)
            self.add(item, load, 32 * block, self.c + 32 * other)
        elif kind < 4:
            local, remote = ("UB", block, block + blocks), ("GM", 100 + other, 100 + other + blocks)
            item = Item("work", "MTE3", reads=(local,), writes=(remote,))
            self.add(item, *store(self.c + 32 * other, 32 * block, blocks))
        elif kind < 6:
            reads = tuple(("UB", b, b + 1) for b in (other, third))
            item = Item("work", "V", reads=reads, writes=(("UB", block, block + 1),))
            self.add(item, VADD, 32 * block, 32 * other, 32 * third)
        elif kind < 9:
            src, dst = self.rng.choice(len(self.PIPES), 2, replace=False)
            flag = self.PIPES[src], self.PIPES[dst], 0
            if flag not in self.up:
                self.up.append(flag)
                self.add(Item("set", flag[0], flag), *set_(*flag))
        elif kind < 11:
            if self.up:
                flag = self.up.pop(int(self.rng.integers(len(self.up))))
                self.add(Item("wait", flag[1], flag), *wait(*flag))
        elif self.rng.random() < 0.7:
            pipe = str(self.rng.choice(["V", "MTE2", "MTE3"]))
            self.add(Item("bar", pipe), *barrier(pipe))
        else:
            self.add(Item("all", "ALL"), *barrier())

    def meet(self, turn):
        """Signal, do some more, and wait."""
        pipe = str(self.rng.choice(["V", "MTE2", "MTE3"]))
        self.add(Item("signal", pipe, turn), *signal(pipe, flag=turn % 16))
        for _ in range(int(self.rng.integers(0, 3))):
            self.one(self.rng.integers(0, 6))
        self.add(Item("await", "S", turn), *await_(turn % 16))


def pairs_found(outcome, cores):
    """Return the (core, place) pairs of the races; line 1 is the mask."""
    found = set()
    for finding in outcome.findings:
        if finding.check == "racecheck":
            ends = [
                (int(access.core.split()[1]), access.location.line - 2)
                for access in finding.accesses
            ]
            found.add(tuple(sorted(ends)))
    assert all(place < len(cores[core].items) for pair in found for core, place in pair)
    return found


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cores", [1, 2])
def test_the_order_graph_agrees(cores, drawn_seed):
    rng = np.random.default_rng(drawn_seed)
    seen = {True: 0, False: 0}
    for _ in range(200):
        gm, addresses = placed("a", "c")
        drawn = [Drawn(rng, addresses, int(rng.integers(1, 14 // cores**2))) for _ in range(cores)]
        if cores > 1:
            for turn in range(int(rng.integers(0, 3))):
                for one in drawn:
                    one.meet(turn)
                    for _ in range(int(rng.integers(0, 4))):
                        one.one(rng.integers(0, 12))
        outcome = check(*([MASK, *one.steps] for one in drawn), gm=gm)
        items = [one.items for one in drawn]
        graph = graph_of(items)
        want = {tuple(sorted(pair)) for pair in races(items, graph)}
        got = pairs_found(outcome, drawn)
        assert got <= want, (items, got - want)
        assert bool(got) == bool(want), (items, want)
        seen[bool(want)] += 1
        if cores == 1:
            raised = {f.location.line - 2 for f in outcome.findings if f.id == "flag-doubled"}
            assert raised == doubled(items[0], graph), items
    assert min(seen.values()) > 5


# --- the same again: each time counts


@pytest.mark.parametrize("places", [[0], [0, 64], [0, 64, 128]])
def test_a_race_at_one_place_counts_as_often_as_it_happens(places):
    """Twelve additions in turn at each place, none waiting: each but a place's first races."""
    where = Location("k.py", 1, "kernel")

    def body(core):
        core.record(*MASK, (), where)
        for turn in range(12):
            at = places[turn % len(places)]
            core.record(VADD, (at, at, at), where)

    outcome = run(A2, GlobalMemory(), [Task(CoreId(0, AIV), body)], checks=ORDER)
    counts = {(f.id, f.accesses[1].operand): f.count for f in outcome.findings}
    often = 12 - len(places)
    assert counts == {
        ("race-raw", "src0"): often,
        ("race-raw", "src1"): often,
        ("race-waw", "dst"): often,
    }
    assert [f.accesses[1].start for f in outcome.findings] == [0, 0, 0]


def test_a_race_of_cores_counts_on_each_of_them():
    """A core's first store meets the last one of the core before, and hides it from the others."""
    gm, (c,) = placed("c")
    where = Location("k.py", 1, "kernel")

    def body(core):
        for _ in range(3):
            core.record(*store(c, 0)[:1], store(c, 0)[1:], where)
            core.record(*barrier(), (), where)

    tasks = [Task(CoreId(n, AIV), body) for n in range(3)]
    (finding,) = run(A2, gm, tasks, checks=ORDER).findings
    assert (finding.id, finding.count) == ("race-waw", 2)


def test_a_write_races_with_every_core_that_read_at_one_place():
    @cubecore.kernel()
    def readers(core, x):
        tile = core.ubuf("float", 64)
        if core.block_idx < 3:
            core.asc_copy_gm2ub(tile, x, 256)
            return
        core.asc_duplicate(tile, 1.0, 64)
        core.asc_sync()
        core.asc_copy_ub2gm(x, tile, 256)

    run = readers.using(engine="reference")[4](np.ones(64, np.float32))
    assert [(f.id, f.core, f.count) for f in run.findings] == [("race-war", "core 1 AIV1", 3)]


def test_accesses_of_any_extent_meet_where_they_share_a_byte():
    """Copies of 32 B to 2 KiB around each other: one into UB races with those out of its bytes."""
    rng = np.random.default_rng(21)
    for _ in range(60):
        drawn = rng.integers(1, 65, (12, 2)).tolist()
        touched = [set(range(32 * at, 32 * (at + blocks))) for at, blocks in drawn]
        gm = GlobalMemory()
        tensor = gm.allocate("x", 1 << 16, zeroed=True).address
        program, last, least, most = [], {}, 0, 0
        for number, (at, blocks) in enumerate(drawn[:6]):
            program += [fetch(tensor + 4096 * number, 32 * at, blocks), barrier("MTE2")]
            last |= dict.fromkeys(touched[number], number)
        for number, (at, blocks) in enumerate(drawn[6:], 6):
            program.append(store(tensor + 4096 * number, 32 * at, blocks))
            least += len({last[byte] for byte in touched[number] if byte in last})
            most += sum(not touched[number].isdisjoint(written) for written in touched[:6])
        found = [f for f in check(program, gm=gm).findings if f.accesses[0].memory == "UB"]
        assert {f.id for f in found} <= {"race-raw"}
        assert least <= sum(f.count for f in found) <= most

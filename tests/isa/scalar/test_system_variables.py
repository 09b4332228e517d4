"""System variables, and cache control, which changes nothing."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import CorePosition, Registers
from cubecore.isa.program.topology import CoreId
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.memory.buffers import GlobalMemory
from isa.bench import A2, HERE, Bench

QUESTIONS = ("get_block_idx", "get_block_num", "get_sub_block_id", "get_sub_block_num")


def ask(core, name, **params):
    return core.scalars(instruction_named(name)(**params))


def launched(*ids):
    """What each part of a launch hears: index, cores, part, parts, and its core's number."""
    heard = {}

    def body(core):
        heard[core.id.core, core.id.sub] = tuple(
            ask(core, name)[0] for name in (*QUESTIONS, "get_core_id")
        )

    run(A2, GlobalMemory(), [Task(CoreId(*i), body) for i in ids])
    return heard


def test_a_launch_of_aics():
    assert launched((0, 0), (1, 0), (2, 0)) == {
        (0, 0): (0, 3, 0, 1, 0),
        (1, 0): (1, 3, 0, 1, 1),
        (2, 0): (2, 3, 0, 1, 2),
    }


def test_a_launch_of_one_aic_and_two_aivs_each():
    """AIVs count up to twice the cores; every core says two AIVs but one AIC."""
    assert launched(*((core, sub) for core in (0, 1) for sub in (0, 1, 2))) == {
        (0, 0): (0, 2, 0, 1, 0),
        (0, 1): (0, 2, 0, 2, 0),
        (0, 2): (1, 2, 1, 2, 0),
        (1, 0): (1, 2, 0, 1, 1),
        (1, 1): (2, 2, 0, 2, 1),
        (1, 2): (3, 2, 1, 2, 1),
    }


def test_a_launch_of_one_aic_and_one_aiv_each():
    assert launched((0, 0), (0, 1), (1, 0), (1, 1)) == {
        (0, 0): (0, 2, 0, 1, 0),
        (0, 1): (0, 2, 0, 1, 0),
        (1, 0): (1, 2, 0, 1, 1),
        (1, 1): (1, 2, 0, 1, 1),
    }


def test_a_launch_of_aivs_alone():
    """Every AIV is a block: 0 to 3 of 4, the only one of its block."""
    heard = launched((0, 1), (0, 2), (1, 1), (1, 2))
    assert [heard[i][:4] for i in sorted(heard)] == [(n, 4, 0, 1) for n in range(4)]


def test_cores_are_counted_without_gaps():
    assert [answer[0] for _, answer in sorted(launched((2, 0), (5, 0), (7, 0)).items())] == [
        0,
        1,
        2,
    ]


def test_a_core_alone_is_the_only_one():
    bench = Bench(1)
    assert [ask(bench.core, name) for name in QUESTIONS] == [(0,), (1,), (0,), (1,)]
    assert Registers().position == CorePosition(0, 1, 0, 1)


@pytest.mark.parametrize("value", [0, 1 << 48, 1 << 48 | 1 << 53 | 1 << 56])
def test_ctrl_is_read_back(value):
    bench = Bench(1)
    bench.do(instruction_named("asc_set_ctrl")(value=value))
    assert ask(bench.core, "asc_get_ctrl") == (value,)


def test_mask_mode_shows_in_ctrl():
    bench = Bench(1)
    bench.do(instruction_named("set_mask_count")())
    assert ask(bench.core, "get_ctrl") == (1 << 56,)


def test_the_base_address_is_read_back():
    bench = Bench(1)
    assert ask(bench.core, "asc_get_ffts_base_addr") == (0,)
    bench.do(instruction_named("asc_set_ffts_base_addr")(config=2**48 - 1))
    assert ask(bench.core, "asc_get_ffts_base_addr") == (2**48 - 1,)


def test_addresses_are_offsets():
    bench = Bench(1)
    for offset in (0, 128, A2.ub_bytes, A2.l1_bytes):
        assert ask(bench.core, "asc_get_phy_buf_addr", offset=offset) == (offset,)
    kind = instruction_named("get_phy_buf_addr")
    assert [str(v) for v in kind(offset=A2.l1_bytes + 1).violations(A2)] == [
        f"get_phy_buf_addr.offset must be {A2.l1_bytes} at most, got {A2.l1_bytes + 1}"
    ]


def test_init_takes_back_stores_and_masks():
    """It keeps the rest: CTRL's other bits, say."""
    bench = Bench(1)
    half = element_type("float16")
    bench.do(instruction_named("set_atomic")(operation="max", dtype=half))
    bench.do(instruction_named("set_ctrl")(value=1 << 48 | 1 << 56))
    bench.do(instruction_named("set_vector_mask")(mask_high=0, mask_low=5))
    bench.do(instruction_named("asc_init")())
    assert bench.core.registers == Registers(ctrl=1 << 48)


@pytest.mark.parametrize(
    ("dtype", "code"),
    [
        *(("float32", 1), ("float16", 2), ("int16", 3), ("int32", 4), ("int8", 5)),
        ("bfloat16", 6),
    ],
)
def test_the_atomic_store_is_read_back(dtype, code):
    bench = Bench(1)
    assert ask(bench.core, "asc_get_store_atomic_config") == (0, 0)
    bench.do(instruction_named("set_atomic")(operation="add", dtype=element_type(dtype)))
    assert ask(bench.core, "asc_get_store_atomic_config") == (code, 0)
    bench.do(instruction_named("set_atomic")(operation="none", dtype=element_type(dtype)))
    assert ask(bench.core, "asc_get_store_atomic_config") == (0, 0)


@pytest.mark.parametrize(("operation", "code"), [("add", 0), ("max", 1), ("min", 2)])
def test_the_atomic_operation_is_read_back(operation, code):
    bench = Bench(1)
    bench.do(instruction_named("set_atomic")(operation=operation))
    assert ask(bench.core, "get_atomic") == (1, code)


CACHES = {
    "dcci": {},
    "dc_preload": {"address": 64, "offset": -64},
    "preload": {"address": 0, "prefetch_len": 32},
}


@pytest.mark.parametrize("name", CACHES)
def test_caches_change_nothing(name):
    bench = Bench(1, seed=91)
    bench.noise(Mem.UB)
    before, registers = bench.image(Mem.UB), bench.core.registers
    bench.do(instructions()[name](**CACHES[name]))
    bench.check(Mem.UB, before)
    assert bench.core.registers == registers
    assert bench.messages == []


def test_the_instruction_cache_is_idle():
    assert ask(Bench(1).core, "asc_get_icache_preload_status") == (0,)


def test_a_scalar_is_read_after_what_came_before():
    """Everything recorded has happened when the scalar unit reads."""

    def body(core):
        core.record(instruction_named("set_ctrl")(value=1 << 53), (), HERE)
        assert ask(core, "get_ctrl") == (1 << 53,)

    gm = GlobalMemory()
    gm.allocate_from("x", np.zeros(8, np.int32))
    assert run(A2, gm, [Task(CoreId(0, 1), body)]).findings == ()


@pytest.mark.parametrize("name", [*QUESTIONS, "get_core_id", "get_ctrl", "get_ffts_base_addr"])
def test_what_the_launch_decides_no_instruction_changes(name):
    template = instruction_named(name)()
    place = CorePosition(3, 7, 1, 2)
    fresh, used = Registers(position=place), Registers(position=place, ctrl=5, ffts_base=9, kept=2)
    assert template.of_launch == (template.result(fresh) == template.result(used))

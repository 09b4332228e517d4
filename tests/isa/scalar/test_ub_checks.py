"""Accesses to UB that a kernel has checked, against plain sets of bytes."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import LoadScalar
from isa.bench import HERE, Bench

KINDS = [f"{unit}_{how}" for unit in ("scalar", "vector", "mte") for how in ("read", "write")]
FLOAT = element_type("float32")


def check(number, start, end, *kinds, enable=True):
    chosen = {kind: kind in kinds for kind in KINDS}
    return instruction_named("check_ub")(
        number=number, start=start, end=end, enable=enable, **chosen
    )


def accesses(at):
    """An access of each kind, of bytes from `at` on: how it is made, and how many bytes."""
    add = instruction_named("vadds")(dtype=FLOAT, value=0, repeat=1)
    load, store = (
        instruction_named(name)(n_burst=1, len_burst=4)
        for name in ("copy_gm_to_ubuf", "copy_ubuf_to_gm")
    )
    write = instruction_named("store_scalar")(dtype=FLOAT, value=0)
    read = LoadScalar(Var("value", 0), Mem.UB, FLOAT, Expr(0), HERE)
    far = 65536
    return {
        "scalar_read": (lambda bench: bench.core.load_scalar(read, at), 4),
        "scalar_write": (lambda bench: bench.do(write, at), 4),
        "vector_read": (lambda bench: bench.do(add, far, at), 256),
        "vector_write": (lambda bench: bench.do(add, at, far), 256),
        "mte_read": (lambda bench: bench.do(store, bench.base, at), 128),
        "mte_write": (lambda bench: bench.do(load, at, bench.base), 128),
    }


def found(kind, at, *checks):
    """Whether an access is a finding behind checks, and how many bytes it has."""
    bench = Bench(sub=1, gm_bytes=256)
    bench.noise(Mem.UB, Mem.GM, written=True)
    act, size = accesses(at)[kind]
    for one in checks:
        bench.do(one)
    before = bench.image(Mem.UB)
    act(bench)
    if kind in ("mte_write", "scalar_write"):  # made all the same
        assert bench.image(Mem.UB).data != before.data
    assert {message.split(":")[0] for message in bench.messages} <= {"checked-access"}
    return bool(bench.messages), size


@pytest.mark.parametrize("kind", KINDS)
def test_an_access_is_found_where_its_bytes_and_kind_are_checked(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(30):
        at, start = 32 * int(rng.integers(60, 140)), int(rng.integers(60, 140))
        end = start + int(rng.integers(0, 12))
        chosen = [one for one in KINDS if rng.random() < 0.5]
        checked = {byte for byte in range(2**13) if start < byte // 32 <= end}
        got, size = found(kind, at, check(2, start, end, *chosen))
        assert got == (kind in chosen and bool(checked & set(range(at, at + size))))


def test_registers_are_four_and_each_is_set_anew():
    both = check(0, 100, 108, "vector_write"), check(1, 10, 12, "vector_write")
    assert found("vector_write", 101 * 32, *both)[0]
    assert found("vector_write", 11 * 32, *both)[0]
    assert not found("vector_write", 20 * 32, *both)[0]
    assert not found("vector_write", 101 * 32, *both, check(0, 0, 0, enable=False))[0]
    assert not found("vector_write", 101 * 32, *both, check(0, 200, 201, "vector_write"))[0]
    assert found("vector_write", 101 * 32, *both, check(1, 0, 0, enable=False))[0]


def test_gaps_are_no_access():
    """Blocks of one repeat two apart: every other block of 32 B is touched."""
    bench = Bench(sub=1)
    bench.noise(Mem.UB, written=True)
    add = instruction_named("vadds")(dtype=FLOAT, value=0, repeat=1, dst_block_stride=2)
    bench.do(check(3, 32, 33, "vector_write"))
    bench.do(add, 32 * 32, 65536)
    assert bench.messages == []
    bench.do(add, 33 * 32, 65536)
    assert bench.messages == [
        "checked-access: vadds.dst must leave bytes [1056, 1088) of UB alone, where "
        "CheckLocalMemoryIA stops at a vector write, got bytes [1056, 1088)"
    ]

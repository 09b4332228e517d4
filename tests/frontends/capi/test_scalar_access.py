"""Values that the scalar unit writes and reads in Python kernels: bytes, ranges, order, caches."""

from inspect import getsourcelines

import numpy as np
import pytest

from cubecore import kernel
from cubecore.frontends.source_locations import KernelError

HERE = "tests/frontends/capi/test_scalar_access.py"


def line_of(function, text):
    """Return the number of the first line of a kernel's source that holds `text`."""
    lines, first = getsourcelines(function.function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def said(findings):
    return [f"{finding.id}: {finding.message}" for finding in findings]


@kernel(outputs="z")
def storing(core, x, z, value, other):
    a = core.ubuf(x.dtype.name, 64)
    core.asc_copy_gm2ub(a, x, 64 * x.dtype.bits // 8)
    core.asc_sync()
    core.store(a + 3, value)
    core.store(a + 5, other)
    assert core.load(a + 3) == core.load(a + 3)
    core.asc_sync()
    core.asc_copy_ub2gm(z, a, 64 * x.dtype.bits // 8)


@pytest.mark.parametrize(
    ("dtype", "value", "other"),
    [
        *[(f"int{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)],
        *[(f"uint{bits}", 0, 2**bits - 1) for bits in (8, 16, 32)],
        ("float16", 65504.0, -0.1),
        ("float32", 1e300, 3),
    ],
)
@pytest.mark.parametrize("chip", ["Ascend910B1", "Ascend950PR_9599"])
def test_a_value_is_written_as_the_element_holds_it(dtype, value, other, chip):
    x = np.arange(64).astype(dtype)
    z = np.zeros_like(x)
    run = storing.using(chip=chip)[1](x, z, value, other)
    assert said(run.findings) == []
    with np.errstate(over="ignore"):
        wanted = np.arange(64).astype(dtype)
        wanted[3], wanted[5] = np.array([value, other]).astype(dtype)
    assert z.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("dtype", "value", "need"),
    [
        ("int8", 128, "a value of int8 must be a whole number in [-128, 127], got 128"),
        ("uint16", -1, "a value of uint16 must be a whole number in [0, 65535], got -1"),
        ("int32", 1.5, "a value of int32 must be a whole number in [-2147483648, 2147483647], "
                       "got 1.5"),
        ("int32", True, "a value of int32 must be a whole number in [-2147483648, 2147483647], "
                        "got True"),
        ("float32", "1", "a value of float32 must be a number, got '1'"),
        ("float16", None, "a value of float16 must be a number, got None"),
    ],
)  # fmt: skip
def test_what_an_element_does_not_hold_is_refused_in_one_sentence(dtype, value, need):
    @kernel
    def wrong(core, x):
        core.store(x, value)

    with pytest.raises(KernelError) as raised:
        wrong[1](np.zeros(64, dtype))
    assert str(raised.value) == f"{HERE}:{line_of(wrong, 'store')} (wrong): {need}"


def test_other_memories_than_ub_and_gm_are_refused():
    @kernel(kind="cube")
    def wrong(core, _):
        core.store(core.cbuf("half", 64), 1.0)

    with pytest.raises(KernelError) as raised:
        wrong[1](np.zeros(64, np.float16))
    assert str(raised.value) == (
        f"{HERE}:{line_of(wrong, 'store')} (wrong): the pointer of a store must lie in UB or GM, "
        "the memories that the scalar unit writes, got L1"
    )


@kernel(outputs="z")
def raced(core, x, z, ordered):
    a = core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    if ordered:
        core.asc_sync_notify("PIPE_MTE2", "PIPE_S", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_S", 0)
    core.store(a + 1, 7.0)
    core.asc_sync()
    core.asc_copy_ub2gm(z, a, 256)


def test_a_store_waits_for_what_writes_there_before():
    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert said(raced[1](x, z, 1).findings) == []
    assert z[:3].tolist() == [0, 7, 2]
    found = raced[1](x, z, 0).findings
    assert [f.id for f in found] == ["race-waw"]
    assert [a.instruction for a in found[0].accesses] == ["copy_gm_to_ubuf", "store_scalar"]


@kernel
def elsewhere(core, x, way):
    if way == 0:
        core.store(x + 64, 1.0)
    elif way == 1:
        core.load(x + 64)


@pytest.mark.parametrize("way", [0, 1])
def test_bytes_behind_the_tensor_are_a_finding(way):
    found = elsewhere[1](np.zeros(64, np.float32), way).findings
    assert [f.id for f in found] == ["out-of-bounds"]


@kernel(outputs="z")
def cached(core, x, z, clean):
    a = core.ubuf("float", 64)
    core.store(x + core.block_idx * 64 + 2, 9.0)
    if clean:
        core.asc_dcci_single(x + core.block_idx * 64)
    assert core.load(x + core.block_idx * 64 + 2) == 9.0
    core.asc_copy_gm2ub(a, x + core.block_idx * 64, 256)
    core.asc_sync()
    core.asc_copy_ub2gm(z + core.block_idx * 64, a, 256)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_copy_sees_what_the_scalar_unit_wrote_behind_a_dcci(engine):
    x, z = np.zeros(256, np.float32), np.zeros(256, np.float32)
    run = cached.using(engine=engine)[4](x, z, 1)
    assert said(run.findings) == []
    assert z.nonzero()[0].tolist() == [2, 66, 130, 194]
    place = f"{HERE}:{line_of(cached, 'store')} (cached)"
    run = cached.using(engine=engine)[4](x, z, 0)
    assert said(run.findings) == [
        "stale-cache: copy_gm_to_ubuf must read global memory behind a dcci, got none since the "
        f"scalar unit's store at {place}, which is in the data cache; call asc_dcci_single first"
    ]
    assert run.findings[0].count == 4


@kernel
def atomic(core, z):
    core.asc_set_atomic_add_float16()
    core.store(z, 2.0)
    core.asc_set_atomic_none()


def test_a_store_is_never_combined_with_what_is_there():
    z = np.full(64, 5, np.float32)
    assert said(atomic[1](z).findings) == []
    assert z[0] == 2

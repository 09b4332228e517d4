"""Modes that a C++ kernel leaves on, counts that cut an instruction short, stale cache lines."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.source_locations import KernelError
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = needs_compiler

TILE = "  __ubuf__ float t[512]; auto z = (__gm__ float*)x;"
FIRST = 5
"""The line of a body's first statement."""


def run(*statements, count=64, **options):
    """Run a kernel of one statement a line; return its findings and what it leaves in x."""
    x = np.zeros(count, np.float32)
    made = kernel("\n".join((TILE, *statements)), **options)
    ran = made[1](x)
    assert ran.engine == "lockstep"  # a look at memory, too
    return [f"{f.id} {f.location.line - FIRST}: {f.message}" for f in ran.findings], x


def at(number):
    return f"inline.cpp:{FIRST + number} (k)"


ADDED = (
    "asc_duplicate(t, 1.0f, 64); asc_sync();",
    "asc_set_atomic_add_float();",
    "asc_copy_ub2gm_sync(z, t, 256);",
)


def test_an_atomic_mode_is_off_at_the_end():
    assert run(*ADDED, "asc_set_atomic_none();")[0] == []
    found, x = run(*ADDED)
    assert found == [
        "mode-left 2: atomic add of float32 must be off at the end of the kernel, got on since "
        f"{at(2)}; call asc_set_atomic_none"
    ]
    assert (x == 1).all()
    assert run(*ADDED, "SetAtomicNone();")[0] == []


COUNTED = (
    "asc_set_mask_count();",
    "asc_set_vector_mask(0, 100);",
    "asc_duplicate(t, 1.0f, 1, 1, 8); asc_sync();",
)


def test_counter_mode_is_off_at_the_end():
    assert run(*COUNTED, "asc_set_mask_norm();")[0] == []
    assert run(*COUNTED)[0] == [
        f"mode-left 1: counter mode must be off at the end of the kernel, got on since {at(1)}; "
        "call asc_set_mask_norm"
    ]


@pytest.mark.parametrize("times", [1, 4_200])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.thinned(4)
def test_a_count_that_was_another_instructions(again, times):
    """Blocks of the runtime hold 8,192 instructions, fewer than the longer kernel issues."""
    mask = "asc_set_vector_mask(0, 100);" if again else ""
    loop = f"for (int i = 0; i < {times}; ++i) {{ asc_duplicate(t, 1.0f, 64); asc_sync(); }}"
    add = f"{mask} asc_add(t, t, t, 8, 1, 1, 1, 8, 8, 8); asc_sync();"
    found, _ = run(loop, *COUNTED, add, "asc_set_mask_norm();", loop)
    wanted = (
        f"stale-count 5: vadd must run under a count that was set for it, got the count 100 that "
        f"vector_dup at {at(4)} ran under: 6 of its 8 repeats are left out; call "
        "asc_set_mask_norm, or asc_set_vector_mask first"
    )
    initialised = [line for line in found if not line.startswith("uninitialised")]
    assert initialised == ([] if again else [wanted])


def test_counts_of_calls_cut_nothing():
    """A call with a count sets its own, in counter mode that it leaves again."""
    assert run(*["asc_duplicate(t, 1.0f, 100); asc_sync();"] * 3)[0] == []


READ = (
    "GlobalTensor<float> g; g.SetGlobalBuffer(z, 64);",
    "asc_duplicate(t, 5.0f, 64); asc_sync();",
    "asc_copy_ub2gm_sync(z, t, 128);",
)


@pytest.mark.parametrize("element", [3, 40])
@pytest.mark.sweep
def test_a_scalar_reads_what_was_copied_behind_dcci(element):
    read = f'printf("%f", g.GetValue({element}));'
    assert (
        run(*READ, "DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(g);", read)[0]
        == []
    )
    found, _ = run(*READ, read)
    stale = (
        "stale-cache 4: a scalar read of global memory must come behind a dcci, got none since "
        f"copy_ubuf_to_gm at {at(3)} wrote there past the data cache; call asc_dcci_single first"
    )
    assert found == ([stale] if element < 32 else [])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("read", ["ReadGmByPassDCache(z + 3)", "ld_dev(z + 3, 0)"])
def test_a_scalar_read_past_the_data_cache_needs_no_dcci(read):
    found, x = run(*READ, f"g.SetValue(40, {read} + 1);")
    assert (found, x[3], x[40]) == ([], 5, 6)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("store", ["WriteGmByPassDCache(z + 3, 7.0f)", "st_dev(7.0f, z + 3, 0)"])
def test_a_scalar_read_of_a_store_past_the_data_cache_needs_dcci(store):
    steps, read = (READ[0], f"{store};"), "g.SetValue(40, g.GetValue(3) + 1);"
    found, x = run(*steps, "asc_dcci_single(z);", read)
    assert (found, x[3], x[40]) == ([], 7, 8)
    assert run(*steps, read)[0] == [
        "stale-cache 3: a scalar read of global memory must come behind a dcci, got none since "
        f"store_scalar_gm at {at(2)} wrote there past the data cache; call asc_dcci_single first"
    ]


@pytest.mark.sweep
def test_an_access_past_the_data_cache_is_at_its_address():
    for call, subject in (("st_dev(7.0f, z, 4)", "st_dev"), ("ld_dev(z, 4)", "ld_dev")):
        with pytest.raises(KernelError) as caught:
            run(f"{call};")
        assert str(caught.value) == f"inline.cpp:6 (k): {subject}.offset must be 0, got 4"


STRIDED = """
LocalTensor<half> a(TPosition::VECCALC, 0, 512), b(TPosition::VECCALC, 1024, 512);
GlobalTensor<half> to;
to.SetGlobalBuffer((__gm__ half*)x, 512);
Duplicate(a, half(1.0f), 512);
Duplicate(b, half(0.0f), 512);
PipeBarrier<PIPE_V>();
SetMaskCount();
{mask}
Adds<half, true>(b, a, half(2.0f), mask, (uint8_t)1, UnaryRepeatParams{{2, 2, 16, 16}});
SetMaskNorm();
SetFlag<HardEvent::V_MTE3>(0);
WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(to, b, 512);
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mask", ["uint64_t mask = 130;", "uint64_t mask[2] = {130, 0};"])
def test_a_mask_counts_elements_in_counter_mode(mask):
    """Every second block of 16 halves: eight of them, and two elements of the ninth."""
    x = np.ones(512, np.float16)
    assert kernel(STRIDED.format(mask=mask))[1](x).findings == ()
    want = np.zeros((16, 2, 16), np.float16)
    want[:8, 0] = 3
    want[8, 0, :2] = 3
    assert np.array_equal(x, want.reshape(-1))


OUT_OF_RANGE = [
    (
        "Adds(b, a, half(1.0f), uint64_t(300), uint8_t(1), {1, 1, 8, 8});",
        "parameter",
        "Adds: mask must be at most 128 for half, got 300",
    ),
    (
        "uint64_t left; GatherMask(b, a, uint8_t(9), false, 0, {1, 1, 8, 8}, left);",
        "parameter",
        "vreducev2.pattern must be in [0, 7], got 9",
    ),
    (
        "CrossCoreSetFlag<2, PIPE_MTE3>(3);",
        "flag-parameter",
        "CrossCoreSetFlag: mode 2 must be used in a mix launch, got a launch on one kind of cores; "
        "nobody hears it",
    ),
    (
        "GlobalTensor<half> g; g.SetGlobalBuffer((__gm__ half*)x, 16);"
        "DataCopyPad(a, g, {2, 4294967295u, 0, 0, 0}, DataCopyPadExtParams<half>());",
        "parameter",
        "copy_gm_to_ubuf_align.len_burst must be in [0, 2097151], got 4294967295",
    ),
    (
        "CrossCoreSetFlag<0, PIPE_FIX>(3);",
        "flag-parameter",
        "ffts_cross_core_sync.pipe must be a pipe of an AIV, got FIX",
    ),
]


@pytest.mark.parametrize(("body", "kind", "sentence"), OUT_OF_RANGE)
def test_a_value_that_no_instruction_takes_is_a_finding(body, kind, sentence):
    tensors = "LocalTensor<half> a(TPosition::VECCALC, 0, 512), b(TPosition::VECCALC, 1024, 512);"
    run = kernel(f"{tensors} Duplicate(a, half(1.0f), 512);\n{body}")[1](np.zeros(8, np.float16))
    found = [(f.id, f.message, f.location.line) for f in run.findings]
    assert found == [(kind, sentence, FIRST + 1)]


def test_a_mix_that_no_core_has_is_refused():
    text = '#include "kernel_operator.h"\n__global__ __mix__(1, 3) void k() {}\n'
    with pytest.raises(RequestError) as caught:
        _ = cubecore.inline(text).k
    assert str(caught.value) == "__mix__ must be (1, 0), (0, 1), (1, 1) or (1, 2), got (1, 3)"


CHECKED = "CheckLocalMemoryIA({{0, {start}, {end}, {kinds}, {on}}});"
OFF = "CheckLocalMemoryIA({0});"
NONE = ["false"] * 6


def checked(kind, start=10, end=12, on="true"):
    """A check of one kind, by its place in the page's table."""
    kinds = [*NONE[:kind], "true", *NONE[kind + 1 :]]
    return CHECKED.format(start=start, end=end, kinds=", ".join(kinds), on=on)


TENSORS = (
    "LocalTensor<float> a(TPosition::VECCALC, 0, 128), b(TPosition::VECCALC, 1024, 64);",
    "GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x);",
    "Duplicate(a, 1.0f, 128); a.SetValue(96, 5.0f);",
)
ACCESSES = (
    "g.SetValue(0, a.GetValue(96));",
    "a.SetValue(96, 2.0f);",
    "PipeBarrier<PIPE_ALL>(); Adds(b, a[64], 1.0f, 64);",
    "PipeBarrier<PIPE_ALL>(); Adds(a[64], b, 1.0f, 64);",
    "PipeBarrier<PIPE_ALL>(); DataCopy(g, a[80], 32);",
    "PipeBarrier<PIPE_ALL>(); DataCopy(a[80], g, 32); PipeBarrier<PIPE_ALL>();",
)
SAID = (
    "the scalar value must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops at a "
    "scalar read, got bytes [384, 388)",
    "store_scalar.dst must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops at a "
    "scalar write, got bytes [384, 388)",
    "vadds.src must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops at a vector "
    "read, got bytes [352, 416)",
    "vadds.dst must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops at a vector "
    "write, got bytes [352, 416)",
    "copy_ubuf_to_gm.src must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops "
    "at a mte read, got bytes [352, 416)",
    "copy_gm_to_ubuf.dst must leave bytes [352, 416) of UB alone, where CheckLocalMemoryIA stops "
    "at a mte write, got bytes [352, 416)",
)


RIGHT = {
    "other_kind": lambda kind: (checked((kind + 1) % 6), ACCESSES[kind], OFF),
    "elsewhere": lambda kind: (checked(kind, 40, 50), ACCESSES[kind], OFF),
    "empty": lambda kind: (checked(kind, 12, 12), ACCESSES[kind], OFF),
    "rests": lambda kind: (checked(kind), OFF, ACCESSES[kind]),
}
OUTSIDE = {
    "CheckLocalMemoryIA({4, 1, 2});": "check_ub.number must be in [0, 3], got 4",
    "CheckLocalMemoryIA({0, 65536, 2});": "check_ub.start must be in [0, 65535], got 65536",
    "CheckLocalMemoryIA({0, 1, 65536});": "check_ub.end must be in [0, 65535], got 65536",
}


@pytest.fixture(scope="module")
def checks():
    """Kernels that check accesses of UB, all in one file; each gives what was found."""
    bodies = {f"wrong{kind}": (checked(kind), ACCESSES[kind], OFF) for kind in range(6)}
    for kind in range(6):
        bodies |= {f"{name}{kind}": statements(kind) for name, statements in RIGHT.items()}
    bodies |= {"left": (checked(3, 40, 50),)}
    bodies |= {f"outside{number}": (text,) for number, text in enumerate(OUTSIDE)}
    before = (*TENSORS, "Duplicate(b, 2.0f, 64);")
    module = kernels({name: "\n".join((*before, *lines)) for name, lines in bodies.items()})

    def found(name):
        ran = getattr(module, name)[1](np.zeros(64, np.float32))
        return [f"{f.id}: {f.message}" for f in ran.findings]

    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", range(6))
def test_a_checked_access_of_ub_is_a_finding(checks, kind):
    assert [checks(f"{name}{kind}") for name in RIGHT] == [[], [], [], []]
    assert checks(f"wrong{kind}") == [f"checked-access: {SAID[kind]}"]


def test_checks_end_with_the_kernel(checks):
    (found,) = checks("left")
    assert found.startswith(
        "mode-left: checks of UB must be off at the end of the kernel, got 1 on, the last set at "
        "inline.cpp:"
    )
    assert found.endswith(" (left); call CheckLocalMemoryIA with isEnable false")


@pytest.mark.parametrize("number", range(len(OUTSIDE)))
def test_a_check_out_of_range(checks, number):
    assert checks(f"outside{number}") == [f"parameter: {list(OUTSIDE.values())[number]}"]

"""Layouts, SPM buffers and built-in atomics: public names over what is there."""

import numpy as np
import pytest

from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import kernel, needs_compiler

pytestmark = needs_compiler
WORDS = "GlobalTensor<int32_t> to; to.SetGlobalBuffer((__gm__ int32_t*)x, 16); uint32_t n = 0;\n"
TREES = """
auto shape = MakeShape(MakeShape(2, 4), MakeShape(3, 5));
auto stride = MakeStride(MakeStride(3, 6), MakeStride(1, 24));
to.SetValue(n++, Crd2Idx(MakeCoord(11, 12), MakeLayout(shape, stride)));
to.SetValue(n++, Crd2Idx(MakeCoord(MakeCoord(1, 2), MakeCoord(2, 3)), shape, stride));
to.SetValue(n++, Crd2Idx(MakeCoord(1, 2, 3), MakeShape(4, 4, 4), MakeStride(20, 5, 1)));
"""
STATIC = """
using Std::Int;
auto shape = MakeShape(MakeShape(Int<13>{}, Int<2>{}), MakeShape(Int<14>{}, Int<0>{}));
auto stride = MakeStride(MakeStride(Int<14>{}, Int<182>{}), MakeStride(Int<1>{}, Int<154>{}));
auto index = MakeLayout(shape, stride)(MakeCoord(Int<20>{}, Int<30>{}));
static_assert(is_layout<decltype(MakeLayout(shape, stride))>::value, "");
static_assert(!is_layout<decltype(shape)>::value, "");
to.SetValue(n++, decltype(index)::value);
"""
TRAIT = """
auto layout = MakeLayout(MakeShape(10, 20, 30), MakeStride(1, 100, 200));
auto trait = MakeTensorTrait<float, TPosition::VECIN>(layout);
trait.SetLayout(MakeLayout(MakeShape(11, 20, 30), MakeStride(1, 100, 200)));
static_assert(is_tensorTrait<decltype(trait)>::value && !is_tensorTrait<float>::value, "");
to.SetValue(n++, Std::get<0>(trait.GetLayout().GetShape()));
to.SetValue(n++, Std::get<2>(trait.GetStride()));
"""


def column_major(coordinate, shape):
    """Return the parts of a coordinate: the last one takes what is left."""
    parts = []
    for extent in shape[:-1]:
        parts.append(coordinate % extent)
        coordinate //= extent
    return [*parts, coordinate]


def index(coordinates, shapes, strides):
    return sum(
        part * step
        for coordinate, shape, stride in zip(coordinates, shapes, strides, strict=True)
        for part, step in zip(column_major(coordinate, shape), stride, strict=True)
    )


def test_a_coordinate_becomes_an_address_by_shape_and_stride():
    x = np.zeros(16, np.int32)
    kernel(WORDS + TREES)[1](x)
    assert x[:3].tolist() == [
        index((11, 12), ((2, 4), (3, 5)), ((3, 6), (1, 24))),
        1 * 3 + 2 * 6 + 2 * 1 + 3 * 24,
        1 * 20 + 2 * 5 + 3 * 1,
    ]


def test_an_address_of_constants_is_a_constant():
    x = np.zeros(16, np.int32)
    kernel(WORDS + STATIC)[1](x)
    assert x[0] == index((20, 30), ((13, 2), (14, 0)), ((14, 182), (1, 154)))


def test_a_trait_of_a_tensor_keeps_its_layout():
    x = np.zeros(16, np.int32)
    kernel(WORDS + TRAIT)[1](x)
    assert x[:2].tolist() == [11, 200]


def test_names_of_layouts_are_free_for_a_kernels_own_structs():
    own = "struct Shape { int m; };\nstruct Layout { Shape shape; };\n"
    x = np.zeros(16, np.int32)
    kernel(f"{WORDS} Layout made{{Shape{{7}}}}; to.SetValue(n++, made.shape.m);", before=own)[1](x)
    assert x[0] == 7


SPILL = """
TPipe pipe;
TBuf<> buffer;
pipe.InitBuffer(buffer, 2048);
LocalTensor<half> a = buffer.Get<half>();
GlobalTensor<half> spill;
spill.SetGlobalBuffer((__gm__ half*)x, 256);
pipe.InitSpmBuffer(spill, 512);
Duplicate(a, half(3.0f), 512);
SetFlag<HardEvent::V_MTE3>(0);
WaitFlag<HardEvent::V_MTE3>(0);
pipe.WriteSpmBuffer(a, 32, 32);
pipe.WriteSpmBuffer(a, DataCopyParams{2, 1, 1, 1}, 128);
SetFlag<HardEvent::MTE3_MTE2>(0);
WaitFlag<HardEvent::MTE3_MTE2>(0);
pipe.ReadSpmBuffer(a[512], 16, 128);
pipe.ReadSpmBuffer(a[512 + 16], DataCopyParams{1, 1, 0, 0}, 160 + 32);
"""


def test_what_ub_does_not_hold_is_spilled_to_global_memory():
    x = np.zeros(256, np.float16)
    run = kernel(SPILL)[1](x)
    want = np.zeros(256, np.float16)
    for begin, count in ((32, 32), (128, 16), (192, 16)):
        want[begin // 2 : begin // 2 + count] = 3
    assert run.findings == ()
    assert np.array_equal(x, want)


SPILLS = [
    (
        "pipe.WriteSpmBuffer(LocalTensor<half>(TPosition::VECOUT, 0, 64), 32);",
        "the SPM buffer must be initialised by InitSpmBuffer first, got none",
    ),
    (
        "GlobalTensor<half> g; g.SetGlobalBuffer((__gm__ half*)x, 64); pipe.InitSpmBuffer(g, 128);"
        "pipe.ReadSpmBuffer(LocalTensor<half>(TPosition::VECIN, 0, 64), 32, 128);",
        "the offset in the SPM buffer must lie inside its bytes, got 128 B",
    ),
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("body", "sentence"), SPILLS)
def test_a_spill_outside_of_its_buffer_is_refused(body, sentence):
    with pytest.raises(CubecoreError) as caught:
        kernel(f"TPipe pipe;\n{body}")[1](np.zeros(64, np.float16))
    assert str(caught.value) == f"inline.cpp:6 (k): {sentence}"


ATOMIC = """
LocalTensor<{of}> a(TPosition::VECOUT, 0, 64);
GlobalTensor<{of}> to;
to.SetGlobalBuffer((__gm__ {of}*)x, 64);
Duplicate(a, ({of})5, 64);
SetFlag<HardEvent::V_MTE3>(0);
WaitFlag<HardEvent::V_MTE3>(0);
{calls}
DataCopy(to, a, 64);
set_atomic_none();
"""
OPERATIONS = [
    ("set_atomic_add(); set_atomic_f32();", "float", np.float32, np.add),
    ("set_atomic_s32(); set_atomic_max();", "int32_t", np.int32, np.maximum),
    ("set_atomic_f16(); set_atomic_min();", "half", np.float16, np.minimum),
    ("set_atomic_s16(); set_atomic_add();", "int16_t", np.int16, np.add),
    ("set_atomic_add(); set_atomic_f32(); set_atomic_none();", "float", np.float32, lambda _, b: b),
]


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("calls", "of", "kind", "does"), OPERATIONS)
def test_the_operation_and_the_type_of_atomic_stores_are_set_one_by_one(calls, of, kind, does):
    x = np.arange(-28, 36).astype(kind)
    want = does(x, np.full(64, 5, kind))
    run = kernel(ATOMIC.format(of=of, calls=calls))[1](x)
    assert run.findings == ()
    assert np.array_equal(x, want)


def test_a_kernel_whose_functions_ask_to_be_inlined_still_names_their_lines():
    before = (
        "__attribute__((always_inline)) inline void one(LocalTensor<float>& a) {\n"
        "  Adds(a[1 << 20], a, 1.0f, 64);\n"
        "}\n"
        "[[gnu::always_inline]] inline void two(LocalTensor<float>& a) { one(a); }"
    )
    body = "LocalTensor<float> a(TPosition::VECCALC, 0, 64); Duplicate(a, 0.0f, 64); two(a);"
    run = kernel(body, before=before)[1](np.zeros(8, np.float32))
    assert [(f.id, f.location.line) for f in run.findings] == [("out-of-bounds", 4)]


def test_the_version_of_the_architecture_reads_as_a_hexadecimal_number():
    x = np.zeros(16, np.int32)
    kernel(WORDS + "uint32_t version; GetArchVersion(version); to.SetValue(0, version);")[1](x)
    assert f"{x[0]:x}" == "2201"

"""Accesses outside of arrays: the finding names the array that the address was counted from."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import cli, needs_compiler

pytestmark = needs_compiler
SHARE = 512
SIZE = 8 * SHARE
TEXT = """#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t SHARE = 512;

__aicore__ inline void add(GlobalTensor<float> xg, GlobalTensor<float> yg,
                           GlobalTensor<float> zg) {
  LocalTensor<float> a(TPosition::VECCALC, 0, SHARE), b(TPosition::VECCALC, 2048, SHARE);
  DataCopy(a, xg, SHARE);
  DataCopy(b, yg, SHARE);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Add(a, a, b, SHARE);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(zg, a, SHARE);
}

// The offset is in the pointer that SetGlobalBuffer takes.
extern "C" __global__ __aicore__ void based(GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t step) {
  const int64_t at = GetBlockIdx() * step;
  GlobalTensor<float> xg, yg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x + at, SHARE);
  yg.SetGlobalBuffer((__gm__ float*)y + at, SHARE);
  zg.SetGlobalBuffer((__gm__ float*)z + at, SHARE);
  add(xg, yg, zg);
}

// It is the index of the tensor.
extern "C" __global__ __aicore__ void indexed(GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t step) {
  const int64_t at = GetBlockIdx() * step;
  GlobalTensor<float> xg, yg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  yg.SetGlobalBuffer((__gm__ float*)y);
  zg.SetGlobalBuffer((__gm__ float*)z);
  add(xg[at], yg[at], zg[at]);
}

// Raw pointers, without a tensor.
extern "C" __global__ __aicore__ void raw(__gm__ float* x, __gm__ float* y, __gm__ float* z,
                                          int64_t step) {
  __ubuf__ float a[SHARE], b[SHARE];
  const int64_t at = GetBlockIdx() * step;
  asc_copy_gm2ub(a, x + at, SHARE * sizeof(float));
  asc_copy_gm2ub(b, y + at, SHARE * sizeof(float));
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  asc_add(a, a, b, SHARE);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm(z + at, a, SHARE * sizeof(float));
}

extern "C" __global__ __aicore__ void scalar(GM_ADDR x, GM_ADDR y, int64_t at) {
  GlobalTensor<int32_t> xg, yg;
  xg.SetGlobalBuffer((__gm__ int32_t*)x);
  if (xg.GetValue(at) == 12345) Trap();
}
"""


@pytest.fixture(scope="module")
def module():
    return cubecore.inline(TEXT, checks="memcheck")


def outside(run):
    return [f.message for f in run.findings if f.id == "out-of-bounds"]


OPERANDS = (
    ("copy_gm_to_ubuf.src", "x"),
    ("copy_gm_to_ubuf.src", "y"),
    ("copy_ubuf_to_gm.dst", "z"),
)


def sentences(first):
    return [
        f"{operand} must stay inside {name} (0 to {4 * SIZE} B), got bytes [{first},"
        f" {first + 4 * SHARE})" + (f", before the first byte of {name}" if first < 0 else "")
        for operand, name in OPERANDS
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("entry", ["based", "indexed", "raw"])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_each_finding_names_the_array_of_its_pointer(module, entry, engine):
    kernel = module[entry].using(engine=engine)
    x, y = (np.arange(SIZE, dtype=np.float32) + n for n in range(2))
    z = np.zeros(SIZE, np.float32)
    assert kernel[8](x, y, z, SHARE).findings == ()
    assert np.array_equal(z, x + y)
    assert outside(kernel[9](x, y, z, SHARE)) == sentences(4 * SIZE)
    # the second block's address is where the next array, or the one after it, would be
    for step in (SIZE + 1024, SIZE + 1152, 2 * SIZE + 2048, 1_000_000, 2**28):
        assert outside(kernel[2](x, y, z, step)) == sentences(4 * step)
    for step in (-SHARE, -SIZE - 1152, -1_000_000):
        assert outside(kernel[2](x, y, z, step)) == sentences(4 * step)


def test_a_value_is_of_its_tensor(module):
    x, y = np.zeros(SIZE, np.int32), np.zeros(SIZE, np.int32)
    assert module.scalar[1](x, y, SIZE - 1).findings == ()
    for at in (SIZE, SIZE + 1152, -1, -5000):
        (message,) = outside(module.scalar[1](y, x, at))
        end = ", before the first byte of x" if at < 0 else ""
        got = f"got bytes [{4 * at}, {4 * at + 4})"
        assert message == f"the scalar value must stay inside x (0 to {4 * SIZE} B), {got}{end}"


@pytest.mark.sweep
def test_many_arrays_lie_apart():
    parameters = ", ".join(f"GM_ADDR a{n}" for n in range(60))
    text = f"""#include "kernel_operator.h"
extern "C" __global__ __aicore__ void many({parameters}) {{
  AscendC::GlobalTensor<int32_t> tensor;
  tensor.SetGlobalBuffer((__gm__ int32_t*)a41);
  tensor.GetValue(100000);
  tensor.SetGlobalBuffer((__gm__ int32_t*)a59);
  tensor.GetValue(-100000);
}}
"""
    arrays = [np.zeros(16, np.int32) for _ in range(60)]
    assert outside(cubecore.inline(text).many[1](*arrays)) == [
        "the scalar value must stay inside a41 (0 to 64 B), got bytes [400000, 400004)",
        "the scalar value must stay inside a59 (0 to 64 B), got bytes [-400000, -399996), "
        "before the first byte of a59",
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("at", [1_000_000, 2**28, -1_000_000])
@pytest.mark.parametrize(
    "line", ["y[0] = x[at];", "x[at] = y[0];", "*reinterpret_cast<__gm__ int8_t*>(x + at) = 1;"]
)
def test_a_pointer_that_leaves_its_array_ends_the_kernel(line, at):
    text = f"""#include "kernel_operator.h"
extern "C" __global__ __aicore__ void f(__gm__ float* x, __gm__ float* y, int64_t at) {{
  if (AscendC::GetBlockIdx() == 1) {line}
}}
"""
    entry = cubecore.inline(text).f
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert entry[2](x, y, 5).findings == ()
    with pytest.raises(cubecore.KernelError) as caught:
        entry[2](x, y, at)
    assert str(caught.value) == (
        f"inline.cpp:2 (f): the kernel ended with an access to byte {4 * at} of x (0 to 256 B) "
        "on core 0 AIV1"
    )


def test_the_command_line_names_the_arrays(tmp_path):
    (tmp_path / "add.cpp").write_text(TEXT)
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", np.ones(SIZE, np.float32))
    words = ["run", "add.cpp", "--entry", "based", "--arg", "x=x.npy", "--arg", "y=y.npy"]
    words += ["--arg", f"step={SHARE}", "--out-arg", f"z=float32:{SIZE}", "--blocks"]
    assert cli(tmp_path, *words, "8")[0] == 0
    code, out, _ = cli(tmp_path, *words, "100", "--all")
    told = [line for line in out.splitlines() if "out-of-bounds:" in line]
    assert (code, len(told)) == (1, 3)
    for line, name in zip(told, "xyz", strict=True):
        assert f" of {name}, which has {4 * SIZE} B: " in line
    _, out, _ = cli(tmp_path, *words, "100")
    assert out.count("out-of-bounds: ") == 1
    assert "findings follow from it (out-of-bounds x 2" in out


@pytest.mark.sweep
def test_programs_name_their_allocations(tmp_path):
    (tmp_path / "main.cpp").write_text(
        '#include "acl/acl.h"\n'
        + TEXT
        + """
int main(int, char** words) {
  aclInit(nullptr);
  aclrtSetDevice(0);
  void *x, *y, *z;
  for (void** each : {&x, &y, &z}) aclrtMalloc(each, 16384, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 16384, 0, 16384);
  aclrtMemset(y, 16384, 0, 16384);
  based<<<2, nullptr, nullptr>>>((GM_ADDR)x, (GM_ADDR)y, (GM_ADDR)z, std::atoi(words[1]));
  aclrtSynchronizeDevice();
  return 0;
}
"""
    )
    assert cli(tmp_path, "run", "main.cpp", str(SHARE))[0] == 0
    code, out, _ = cli(tmp_path, "run", "main.cpp", "--all", str(SIZE + 1152))
    told = [line for line in out.splitlines() if "out-of-bounds:" in line]
    assert (code, len(told)) == (1, 3)
    for line, name in zip(told, ("gm0", "gm1", "gm2"), strict=True):
        told_of = f" bytes [20992, 23040) of {name}, which has 16384 B: block 1 starts at or past "
        assert told_of in line


def test_python_kernels_name_them_too():
    @cubecore.kernel(outputs="z", checks="memcheck")
    def add(core, x, y, z, step):
        at = core.asc_get_block_idx() * step
        a, b = core.ubuf("float", SHARE), core.ubuf("float", SHARE)
        core.asc_copy_gm2ub_sync(a, x + at, 4 * SHARE)
        core.asc_copy_gm2ub_sync(b, y + at, 4 * SHARE)
        core.asc_add_sync(a, a, b, SHARE)
        core.asc_copy_ub2gm_sync(z + at, a, 4 * SHARE)

    x, y, z = (np.ones(SIZE, np.float32) for _ in range(3))
    assert add[8](x, y, z, SHARE).findings == ()
    for step in (SIZE, SIZE + 1152, 1_000_000, -SHARE, -SIZE - 1152):
        assert outside(add[2](x, y, z, step)) == sentences(4 * step)

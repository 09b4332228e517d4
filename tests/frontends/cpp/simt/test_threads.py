"""Kernels of threads (SIMT): values against NumPy, and pairs of a right and a wrong kernel."""

import shutil

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.launch_timing import ROUGH_THREADS
from cubecore.workflows.scripts.script import time_kernel
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
TEXT = r"""
#include "simt_api/asc_simt.h"
__global__ void places(int* out) {
  int at = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y;
  int block = blockIdx.x + blockIdx.y * gridDim.x + blockIdx.z * gridDim.x * gridDim.y;
  int* to = out + 4 * (block * blockDim.x * blockDim.y * blockDim.z + at);
  to[0] = at; to[1] = block; to[2] = laneid(); to[3] = int(lanemask_lt() ^ lanemask_ge());
}
__global__ void exchanges(int* x, int* out, int by, int width) {
  int i = threadIdx.x, n = blockDim.x;
  out[i] = asc_shfl(x[i], by, width);
  out[n + i] = asc_shfl_up(x[i], by, width);
  out[2 * n + i] = asc_shfl_down(x[i], by, width);
  out[3 * n + i] = asc_shfl_xor(x[i], by % width, width);
}
__global__ void votes(int* x, uint32_t* out) {
  int i = threadIdx.x, n = blockDim.x;
  out[i] = asc_ballot(x[i]);
  out[n + i] = asc_all(x[i]);
  out[2 * n + i] = asc_any(x[i]);
  if (x[i] != 0) out[3 * n + i] = asc_activemask();
}
__global__ void reduces(float* x, int* y, float* out, int* whole) {
  int i = threadIdx.x, n = blockDim.x;
  out[i] = asc_reduce_add(x[i]);
  out[n + i] = asc_reduce_max(x[i]);
  out[2 * n + i] = asc_reduce_min(x[i]);
  if (i % 3 == 0) whole[i] = asc_reduce_add(y[i]);
  else whole[i] = asc_reduce_max(y[i]);
}
__global__ __launch_bounds__(1024) void turns(float* x, float* z, int synced) {
  __ubuf__ float tile[32][32];
  int row = threadIdx.x / 32, column = threadIdx.x % 32;
  tile[row][column] = x[threadIdx.x];
  if (synced) asc_syncthreads();
  z[threadIdx.x] = tile[column][row];
}
__global__ void dynamic(int* x) {
  extern __ubuf__ int some[];
  some[threadIdx.x] = x[threadIdx.x];
  asc_syncthreads();
  x[threadIdx.x] = some[blockDim.x - 1 - threadIdx.x];
}
__global__ void counts(int* x, int* bins, int atomic) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (atomic) asc_atomic_add(&bins[x[i]], 1);
  else bins[x[i]] += 1;
}
__global__ void atomics(uint32_t* x) {
  uint32_t i = threadIdx.x;
  asc_atomic_max(&x[0], i); asc_atomic_min(&x[1], i); asc_atomic_or(&x[2], i);
  asc_atomic_and(&x[3], ~i); asc_atomic_xor(&x[4], i); asc_atomic_inc(&x[5], 9u);
  asc_atomic_dec(&x[6], 9u); asc_atomic_sub(&x[7], i); asc_atomic_exch(&x[8], 5u);
  asc_atomic_cas(&x[9], i, i + 1);
}
__global__ void branch(int* x, int bad) {
  if (!bad || threadIdx.x < 32) asc_syncthreads();
  x[threadIdx.x] = 1;
}
__global__ void outside(int* x, int n) { x[threadIdx.x + n] = 1; }
__global__ void beyond(int* x) {
  extern __ubuf__ int some[];
  some[threadIdx.x] = 1;
}
__global__ void unwritten(int* x) {
  __ubuf__ int some[64];
  x[threadIdx.x] = some[threadIdx.x];
}
__global__ void lanes(int* x) {
  int i = threadIdx.x;
  if (i % 2) x[i] = asc_shfl(x[i], 0);
}
__global__ void shares(int* x, int ordered) {
  if (ordered) asc_atomic_exch(&x[0], int(blockIdx.x));
  else x[0] = blockIdx.x;
}
__global__ void hands_over(float* x, uint32_t* flag, float* out, int fenced) {
  if (blockIdx.x == 0) {
    x[0] = 3.0f;
    if (fenced) asc_threadfence();
    asc_atomic_exch(flag, 1u);
  } else if (asc_atomic_add(flag, 0u) == 1) {
    out[0] = asc_ldcg(x);
  }
}
__global__ void stale(float* x, uint32_t* flag, float* out, int past) {
  if (blockIdx.x == 0) {
    x[0] = 3.0f;
    asc_threadfence();
    asc_atomic_exch(flag, 1u);
  } else {
    out[1] = x[1];
    if (asc_atomic_add(flag, 0u) == 1) out[0] = past ? asc_ldcg(x) : x[0];
  }
}
__global__ void halves(half* x, half* out, int used) {
  if (used) out[threadIdx.x] = asc_atomic_add(x, half(1.0f));
  else asc_atomic_add(x, half(1.0f));
}
__global__ void misplaced(char* x) { *(int*)(x + 1) = 7; }
__global__ __launch_bounds__(64) void bounded(int* x) { x[threadIdx.x] = 1; }
__global__ void divides(uint32_t* x, uint32_t* by, uint32_t* out) {
  uint32_t magic, shift;
  AscendC::GetUintDivMagicAndShift(magic, shift, by[threadIdx.x]);
  out[threadIdx.x] = AscendC::Simt::UintDiv(x[threadIdx.x], magic, shift);
}
__global__ void steps(int* x, int step) { x[(blockIdx.x * blockDim.x + threadIdx.x) * step] = 1; }
__global__ void adds(int* x, int* out, int used) {
  if (used) out[blockIdx.x * blockDim.x + threadIdx.x] = asc_atomic_add(x, 1);
  else asc_atomic_add(x, 1);
}
__global__ void spins(int* x) {
  volatile int* seen = x;
  while (seen[0] == 0) {}
}
__global__ void waits(int* x, int* out) {
  volatile int* seen = x;
  if (threadIdx.x < 32) { while (seen[0] == 0) {} out[threadIdx.x] = 1; }
  if (threadIdx.x == 32) { asc_threadfence(); seen[0] = 1; }
}
"""


@pytest.fixture(scope="module")
def of():
    module = cubecore.inline(TEXT, chip=CHIP)

    def kernel(name):
        return getattr(module, name)

    return kernel


def ids(run):
    return sorted({found.id for found in run.findings})


def test_each_thread_knows_its_place(of):
    out = np.zeros((6, 24, 4), "i4")
    assert of("places")[(3, 2), (4, 3, 2)](out).clean
    at = np.arange(24)
    for block in range(6):
        assert (out[block, :, 0] == at).all()
        assert (out[block, :, 1] == block).all()
        assert (out[block, :, 2] == at % 32).all()
    assert (out[..., 3] == -1).all()


@pytest.mark.parametrize(("by", "width"), [(1, 32), (3, 16), (5, 8), (31, 32), (2, 4)])
def test_lanes_exchange_values(of, by, width):
    n, x = 64, np.arange(64, dtype="i4") * 10
    out = np.zeros((4, n), "i4")
    assert of("exchanges")[1, n](x, out, by, width).clean
    lane = np.arange(n) % 32
    first = lane // width * width
    base = np.arange(n) - lane
    up = np.where(lane - by < first, lane, lane - by)
    down = np.where(lane + by > first + width - 1, lane, lane + by)
    assert (out[0] == x[base + first + by % width]).all()
    assert (out[1] == x[base + up]).all()
    assert (out[2] == x[base + down]).all()
    assert (out[3] == x[base + (lane ^ by % width)]).all()


def test_lanes_vote(of):
    x = np.array([i % 3 for i in range(32)] + [1] * 32, "i4")
    out = np.zeros((4, 64), "u4")
    assert of("votes")[1, 64](x, out).clean
    for warp in range(2):
        part = slice(32 * warp, 32 * warp + 32)
        mask = sum(1 << n for n in range(32) if x[part][n])
        assert (out[0, part] == mask).all()
        assert (out[1, part] == (mask == 2**32 - 1)).all()
        assert (out[2, part] == 1).all()
        assert (out[3, part][x[part] != 0] == mask).all()


def test_lanes_reduce_in_halves(of):
    random = np.random.default_rng(5)
    x, y = random.standard_normal(64).astype("f4"), random.integers(-9, 9, 64).astype("i4")
    out, whole = np.zeros((3, 64), "f4"), np.zeros(64, "i4")
    assert of("reduces")[1, 64](x, y, out, whole).clean
    for warp in range(2):
        part = slice(32 * warp, 32 * warp + 32)
        sums = x[part].copy()
        while sums.size > 1:
            sums = sums[::2] + sums[1::2]
        assert (out[0, part] == sums[0]).all()
        assert (out[1, part] == x[part].max()).all()
        assert (out[2, part] == x[part].min()).all()
        third = np.arange(part.start, part.stop) % 3 == 0
        assert (whole[part][third] == y[part][third].sum()).all()
        assert (whole[part][~third] == y[part][~third].max()).all()


@pytest.mark.parametrize("synced", [1, 0])
def test_a_tile_turns_behind_a_barrier(of, synced):
    x, z = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    run = of("turns")[1, 1024](x, z, synced)
    if synced:
        assert run.clean
        assert (z.reshape(32, 32) == x.reshape(32, 32).T).all()
    else:
        # One cause: what a thread reads too early is neither written yet nor safe to write later.
        assert ids(run) == ["simt-race"]


def test_dynamic_memory_is_what_the_launch_asks_for(of):
    x = np.arange(64, dtype="i4")
    assert of("dynamic")[1, 64, 256](x).clean
    assert (x == np.arange(64)[::-1]).all()
    run = of("dynamic")[1, 64, 128](np.arange(64, dtype="i4"))
    assert ids(run) == ["out-of-bounds"]


@pytest.mark.parametrize("atomic", [1, 0])
def test_a_histogram_needs_atomics(of, atomic):
    x, bins = np.random.default_rng(3).integers(0, 8, 512).astype("i4"), np.zeros(8, "i4")
    run = of("counts")[4, 128](x, bins, atomic)
    assert ids(run) == ([] if atomic else ["simt-race"])
    assert (bins == np.bincount(x, minlength=8)).all()


def test_atomics_do_as_their_pages_say(of):
    x = np.array([3, 3, 1, 2**32 - 1, 1, 0, 0, 0, 0, 0], "u4")
    assert of("atomics")[1, 64](x).clean
    i = np.arange(64, dtype="u4")
    assert x[:2].tolist() == [63, 0]
    assert x[2] == np.bitwise_or.reduce(i) | 1
    assert x[3] == np.bitwise_and.reduce(~i)
    assert x[4] == np.bitwise_xor.reduce(i) ^ 1
    up = down = 0
    for _ in range(64):
        up, down = (0 if up >= 9 else up + 1), (9 if down == 0 or down > 9 else down - 1)
    assert x[5:7].tolist() == [up, down]
    assert x[7] == (-int(i.sum())) % 2**32
    assert x[8:].tolist() == [5, 64]


@pytest.mark.parametrize(
    ("name", "wrong", "right", "kind"),
    [
        ("branch", ([1, 64], [np.zeros(64, "i4"), 1]), [np.zeros(64, "i4"), 0], "simt-barrier"),
        ("outside", ([1, 64], [np.zeros(64, "i4"), 1]), [np.zeros(64, "i4"), 0], "out-of-bounds"),
        ("shares", ([2, 1], [np.zeros(1, "i4"), 0]), [np.zeros(1, "i4"), 1], "simt-race"),
    ],
)
def test_a_fault_is_found_and_nothing_beside_it(of, name, wrong, right, kind):
    size, given = wrong
    assert ids(of(name)[tuple(size)](*given)) == [kind]
    assert of(name)[tuple(size)](*right).clean


@pytest.mark.parametrize(
    ("name", "word", "kind"),
    [("hands_over", 0, "simt-race"), ("hands_over", 1, None), ("stale", 0, "simt-stale"),
     ("stale", 1, None)],
)  # fmt: skip
def test_what_a_block_hands_over_needs_a_fence_and_no_old_line(of, name, word, kind):
    x, flag, out = np.zeros(64, "f4"), np.zeros(1, "u4"), np.zeros(2, "f4")
    run = of(name)[2, 1](x, flag, out, word)
    assert ids(run) == ([kind] if kind else [])
    assert out[0] == 3


def test_other_faults_of_threads(of):
    assert ids(of("beyond")[1, 32](np.zeros(32, "i4"))) == ["out-of-bounds"]
    assert ids(of("unwritten")[1, 64](np.zeros(64, "i4"))) == ["uninitialised"]
    assert ids(of("lanes")[1, 32](np.zeros(32, "i4"))) == ["simt-lane"]
    assert ids(of("misplaced")[1, 1](np.zeros(8, "i1"))) == ["misaligned"]


@pytest.mark.parametrize("used", [0, 1])
def test_an_atomic_of_half_returns_no_old_value(of, used):
    x, out = np.zeros(1, "f2"), np.zeros(32, "f2")
    run = of("halves")[1, 32](x, out, used)
    assert ids(run) == ["simt-atomic-value"] * used
    assert x[0] == 32


def test_a_thread_may_wait_for_another_warp(of):
    x, out = np.zeros(1, "i4"), np.zeros(32, "i4")
    assert of("waits")[1, 64](x, out).clean
    assert (out == 1).all()


def test_a_division_is_a_product_and_a_shift(of):
    random = np.random.default_rng(4)
    x = random.integers(0, 2**31, 256).astype("u4")
    by = (random.integers(1, 2**31, 256) >> random.integers(0, 31, 256)).clip(1).astype("u4")
    out = np.zeros(256, "u4")
    assert of("divides")[1, 256](x, by, out).clean
    assert (out == x // by).all()


def sentence(call):
    with pytest.raises(CubecoreError) as raised:
        call()
    return str(raised.value)


def test_bad_launches_are_one_sentence(of):
    x = np.zeros(64, "i4")
    assert sentence(lambda: of("outside")[1](x, 0)) == (
        "outside is a kernel of threads (SIMT): outside[grid, block](...)"
    )
    assert sentence(lambda: of("outside").using(chip="Ascend910B3")[1, 64](x, 0)) == (
        "architecture 3510 runs kernels of threads (SIMT), as outside is one; Ascend910B3 is 2201"
    )
    assert "must see a word change that it reads again and again" in sentence(
        lambda: of("spins")[1, 1](np.zeros(1, "i4"))
    )


def example(name):
    return getattr(cubecore.load(EXAMPLES / f"{name}.cpp", chip=CHIP, checks="all"), name)


def test_the_examples_do_what_they_say():
    random = np.random.default_rng(1)
    table = random.standard_normal((500, 64)).astype("f4")
    index, out = random.integers(0, 500, 200).astype("u4"), np.zeros(12800, "f4")
    assert example("simt_gather")[50, 256](table.reshape(-1), index, out, 64, out.size).clean
    assert (out == table[index].reshape(-1)).all()
    x, bins = random.integers(0, 256, 5000).astype("u1"), np.zeros(256, "u4")
    assert example("simt_histogram")[8, 256](x, bins, x.size).clean
    assert (bins == np.bincount(x, minlength=256)).all()
    rows, sums = random.integers(-5, 5, (4, 1000)).astype("f4"), np.zeros(4000, "f4")
    assert example("simt_scan")[4, 1024](rows.reshape(-1), sums, 1000).clean
    assert (sums.reshape(rows.shape) == np.cumsum(rows, axis=1)).all()


def test_threads_and_registers_share_ub_in_one_kernel():
    random = np.random.default_rng(2)
    table, out = random.standard_normal(9999).astype("f4"), np.zeros(2048, "f4")
    index = random.integers(0, table.size, out.size).astype("u4")
    assert example("simt_mixed")[2](table, index, out, 1024).findings == ()
    assert (out == table[index] + 1).all()


def test_a_function_may_call_another_one_of_its_name():
    text = """__simt_callee__ inline void f(int* to, int n) { *to = n; }
    __simt_callee__ inline void f(int* to) { f(to, 7); }
    __global__ void k(int* x) { f(x + threadIdx.x); }"""
    out = np.zeros(32, "i4")
    assert cubecore.inline(text, chip=CHIP).k[1, 32](out).clean
    assert (out == 7).all()


def test_a_function_may_call_another_of_its_name():
    text = (
        "__simt_callee__ int f(int n) { return n + 1; }\n"
        "__simt_callee__ int f(float x) { return f(int(x)); }\n"
        "extern __ubuf__ int some[];\n"
        "__global__ void k(int* x) {\n"
        "  some[threadIdx.x] = f(float(x[threadIdx.x]));\n"
        "  asc_syncthreads();\n"
        "  x[threadIdx.x] = some[blockDim.x - 1 - threadIdx.x];\n}"
    )
    x = np.arange(64, dtype="i4")
    assert cubecore.inline(text, chip=CHIP).k[1, 64, 256](x).clean
    assert (x == np.arange(1, 65)[::-1]).all()


def test_structs_are_copied_whole():
    text = """struct Many { int values[20]; };
    __global__ void k(int* x, int* y) {
      __ubuf__ Many all[33];
      *(Many*)((int*)&all[threadIdx.x] + 1) = *(Many*)(x + 20 * threadIdx.x);
      asc_syncthreads();
      Many one;
      memcpy(&one, (int*)&all[31 - threadIdx.x] + 1, sizeof(Many));
      for (int n = 0; n < 20; ++n) y[20 * threadIdx.x + n] = one.values[19 - n];
    }"""
    x, y = np.arange(640, dtype="i4"), np.zeros(640, "i4")
    assert cubecore.inline(text, chip=CHIP).k[1, 32](x, y).findings == ()
    assert (y == x[::-1]).all()


def test_threads_may_store_the_same_value():
    text = """struct Four { long values[4]; };
    __global__ void k(int* x, int* flag) {
      __ubuf__ int bins[64];
      for (int n = threadIdx.x % 32; n < 64; n += 32) bins[n] = 7;
      asc_syncthreads();
      if (x[threadIdx.x] > 0) *flag = bins[threadIdx.x % 64];
      *(Four*)(flag + 8) = {1, 2, 3, 4};
    }
    __global__ void last(int* x, int* flag) { *flag = threadIdx.x == 63; }"""
    x, flag = np.ones(64, "i4"), np.zeros(16, "i4")
    module = cubecore.inline(text, chip=CHIP, checks="all")
    assert module.k[1, 64](x, flag).findings == ()
    assert (flag[0], list(flag[8:].view("i8"))) == (7, [1, 2, 3, 4])
    assert [found.id for found in module.last[1, 64](x, flag).findings] == ["simt-race"]


QUEUE = r"""
#include "kernel_operator.h"
#include "simt_api/asc_simt.h"
using namespace AscendC;
struct Queue {
  __ubuf__ int* items = nullptr;
  __ubuf__ volatile int* count = nullptr;
  int first;
};
__simt_vf__ inline void fill(Queue queue, int skipped) {
  int at = asc_atomic_add(const_cast<int*>(queue.count), 1);
  if (at >= skipped) queue.items[queue.first + at] = at + queue.items[queue.first + at];
}
__global__ __vector__ void queues(__gm__ int* x, int skipped) {
  __ubuf__ int items[64];
  __ubuf__ int count[8];
  asc_copy_gm2ub_align(items, x, 1, 256, 0, 0, false, 0, 0, 0);
  asc_sync_pipe(PIPE_ALL);
  Queue queue;
  queue.items = items; queue.count = count; queue.first = 0;
  *queue.count = 0;
  asc_sync_data_barrier(mem_dsb_t::DSB_UB);
  asc_sync_pipe(PIPE_ALL);
  asc_vf_call<fill>(dim3(64), queue, skipped);
  asc_sync_pipe(PIPE_ALL);
  asc_copy_ub2gm_align(x, items, 1, 256, 0, 0, 0);
}
"""


def test_addresses_in_ub_may_come_in_a_struct():
    x = np.arange(64, dtype="i4") * 3
    run = cubecore.inline(QUEUE, chip=CHIP).queues[1](x, 2)
    assert run.clean
    assert (x == np.where(np.arange(64) < 2, 3, 4) * np.arange(64)).all()


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++")
def test_clang_keeps_lanes_apart(monkeypatch):
    monkeypatch.setenv("CUBECORE_CXX", "clang++")
    compiler.cache_clear()
    text = (
        "__global__ void k(int* x, int* z) {\n"
        "  int i = threadIdx.x;\n"
        "  if (i % 2) z[i] = asc_reduce_add(x[i]);\n"
        "  else z[i] = asc_reduce_add(x[i]);\n"
        "  if (i % 4) asc_syncthreads();\n"
        "}"
    )
    try:
        x, z = np.arange(32, dtype="i4"), np.zeros(32, "i4")
        run = cubecore.inline(text, chip=CHIP).k[1, 32](x, z)
    finally:
        compiler.cache_clear()
    assert (z == np.where(np.arange(32) % 2, x[1::2].sum(), x[::2].sum())).all()
    assert ids(run) == ["simt-barrier"]


def test_variables_of_threads_on_another_chip_are_one_sentence(tmp_path):
    file = tmp_path / "k.cpp"
    file.write_text(
        '#include "kernel_operator.h"\n'
        "__global__ void twice(__gm__ float* x) {\n"
        "  x[blockIdx.x] *= 2;\n"
        "}\n"
    )
    assert sentence(lambda: cubecore.load(file, chip="Ascend910B3").twice).endswith(
        "k.cpp:3: blockIdx is of threads (SIMT), which architecture 3510 runs; "
        "run it with --chip Ascend950PR_9589"
    )


def test_groups_of_threads_are_refused_by_name(tmp_path):
    file = tmp_path / "k.cpp"
    file.write_text(
        '#include "simt_api/asc_simt.h"\n'
        "namespace cg = cooperative_groups;\n"
        "__global__ void one(float* x) { cg::this_thread_block(); }\n"
    )
    assert sentence(lambda: cubecore.load(file, chip=CHIP).one).endswith(
        "k.cpp:2: cooperative_groups is not provided; "
        "use asc_syncthreads and the functions of warps"
    )


def works(run):
    """Return what the threads of each core have done, where they count it."""
    kinds = [trace.templates[kind] for trace in run.traces.values() for kind in trace.kinds]
    return [kind.work for kind in kinds]


def test_the_time_of_threads_is_said_to_be_rough(of):
    run = of("places").using(trace=True)[2, 24](np.zeros((2, 24, 4), "i4"))
    timed = time_kernel(run)
    assert timed.interval is None
    assert timed.rough == ROUGH_THREADS
    assert timed.text.splitlines()[1] == ROUGH_THREADS
    assert timed.to_json()["rough"] == ROUGH_THREADS
    assert works(of("places")[2, 24](np.zeros((2, 24, 4), "i4"))) == []


def test_lines_banks_and_barriers_are_counted_by_warp(of):
    x, z = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    (work,) = works(of("turns").using(trace=True)[1, 1024](x, z, 1))
    # 32 warps load a line of 128 B each and store one; they write rows of a tile, and read columns,
    # which have 16 rows in each of two parts of the banks.
    assert (work.accesses, work.lines, work.traffic) == (64, 64, 64)
    assert (work.ub_accesses, work.ub_rows) == (64, 32 * 1 + 32 * 16)
    assert (work.barriers, work.miss_rounds, work.starts, work.calls) == (1, 1, 1, 1)
    strided = works(of("steps").using(trace=True)[2, 64](np.zeros(64 * 32 * 2, "i4"), 32))
    assert [(each.accesses, each.lines, each.starts) for each in strided] == [(2, 64, 2)] * 2
    close = works(of("steps").using(trace=True)[2, 64](np.zeros(64 * 32 * 2, "i4"), 1))
    assert [each.lines for each in close] == [2, 2]


@pytest.mark.parametrize("used", [0, 1])
def test_atomics_on_one_line_are_counted_of_all_cores(of, used):
    x = np.zeros(64, "i4")
    for work in works(of("adds").using(trace=True)[4, 64](x, np.zeros(256, "i4"), used)):
        assert (work.line_atomics, work.line_results) == (256, 256 * used)
    assert x[0] == 256


def test_the_slower_of_two_variants_takes_longer(of):
    def us(name, *given):
        return time_kernel(of(name).using(trace=True)[2, 64](*given)).timeline.us

    x = np.zeros(64 * 32 * 2, "i4")
    assert us("steps", x, 1) < us("steps", x, 32)
    assert us("adds", x, x[128:].copy(), 0) < us("adds", x, x[128:].copy(), 1)

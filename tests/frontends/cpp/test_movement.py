"""Copies with padding and in slices, lists of tensors, pools of a user's own, acl's half."""

import subprocess

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import cli, kernel, needs_compiler

pytestmark = needs_compiler
PADDED = """
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, 20);
  to.SetGlobalBuffer((__gm__ float*)z, 24);
  LocalTensor<float> a(TPosition::VECCALC, 0, 24);
  {before}
  DataCopyPad(a, from, DataCopyExtParams{{1, 80, 0, 0, 0}},
              DataCopyPadExtParams<float>{{{pad}, 0, 4, 7.0f}});
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  DataCopyPad(to, a, DataCopyExtParams{{1, 96, 0, 0, 0}});
"""


def padded(before, pad):
    x, z = np.arange(1, 21, dtype=np.float32), np.zeros(24, np.float32)
    text = PADDED.format(before=before, pad=str(pad).lower())
    run = kernel(text, "GM_ADDR x, GM_ADDR z")[1](x, z)
    assert np.array_equal(z[:20], x)
    return z[20:].tolist(), [finding.id for finding in run.findings]


def test_padding_is_the_copy_s_own_or_that_set_before():
    assert padded("", pad=True) == ([7] * 4, [])
    assert padded("SetPadValue(3.0f);", pad=False) == ([3] * 4, [])
    assert padded("SetPadValue(3.0f);", pad=True) == ([7] * 4, [])


@pytest.mark.sweep
def test_slices_of_rows_are_copied_out_and_in():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 87)).astype(np.float32)
    z = np.zeros((2, 48), np.float32)
    body = """
      SliceInfo from[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}};
      SliceInfo to[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
      GlobalTensor<float> gx, gz;
      gx.SetGlobalBuffer((__gm__ float*)x);
      gz.SetGlobalBuffer((__gm__ float*)z);
      LocalTensor<float> a(TPosition::VECIN, 0, 96);
      DataCopy(a, gx, to, from, 2);
      SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
      DataCopy(gz, a, to, to, 2);
    """
    assert kernel(body, "GM_ADDR x, GM_ADDR z")[1](x, z).findings == ()
    exact = np.hstack([x[::2, 16:40], x[::2, 47:71]])
    assert np.array_equal(z, exact)


SLICES = {
    ("0, 63, 0, 0, 64", "0, 63, 0, 4, 64", 1): "burstLen must be in [1, 65535], got 0",
    ("0, 63, 0, 4, 64", "0, 63, 0, 8, 64", 1): "burstLen of both slices must be 4, got 8",
    ("0, 64, 0, 4, 64", "0, 63, 0, 4, 64", 1): "endIndex must be in [0, 63], got 64",
    ("0, 63, 0, 4, 64", "64, 63, 0, 4, 64", 1): "startIndex must be in [0, 63], got 64",
    ("0, 63, 0, 4, 64", "0, 63, 0, 4, 64", 9): "dimValue must be in [1, 8], got 9",
}
"""Of the source and of the copy, and how many dimensions."""


def test_slices_outside_of_their_shape_are_findings():
    calls = "\n".join(
        f"{{ SliceInfo from[] = {{{{{source}}}}}, to[] = {{{{{target}}}}};"
        f" DataCopy(a, gx, to, from, {dims}); }}"
        for source, target, dims in SLICES
    )
    body = "GlobalTensor<float> gx; LocalTensor<float> a(TPosition::VECIN, 0, 96);\n" + calls
    found = kernel(body)[1](np.zeros(64, np.float32)).findings
    assert [f.message for f in found] == [f"DataCopy: {said}" for said in SLICES.values()]


LIST = """
#include "acl/acl.h"
#include "kernel_operator.h"
#include <cstdio>
using namespace AscendC;
__global__ __vector__ void k(__gm__ uint8_t* list, __gm__ uint8_t* z) {
  ListTensorDesc all((__gm__ void*)list);
  uint64_t extents[4] = {};
  TensorDesc<float> one;
  one.SetShapeAddr(extents);
  all.GetDesc(one, 1);
  GlobalTensor<float> to, from = one.GetDataObj();
  to.SetGlobalBuffer((__gm__ float*)z);
  to.SetValue(0, from.GetValue(3));
  to.SetValue(1, (float)(all.GetSize() * 1000 + one.GetDim() * 100 + one.GetIndex() * 10 +
                      extents[1]));
  to.SetValue(2, *(all.GetDataPtr<__gm__ float>(0) + 1));
}
__global__ __vector__ void added(__gm__ uint8_t* x, __gm__ uint8_t* z) {
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  DataCopy(a, from, 8);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  SetAtomicAdd<float>();
  DataCopy(to, a, 8);
  SetAtomicNone();
}
int main() {
  float x[4] = {1, 2, 3, 4}, y[6] = {5, 6, 7, 8, 9, 10}, z[8] = {};
  uint8_t *a, *b, *c, *d;
  aclrtMalloc((void**)&a, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&b, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&c, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&d, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(a, 32, x, 16, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(b, 32, y, 24, ACL_MEMCPY_HOST_TO_DEVICE);
  uint64_t list[] = {6 * 8, 1, 4, 2 | 1ull << 32, 2, 3, (uint64_t)a, (uint64_t)b};
  aclrtMemcpy(d, 64, list, 64, ACL_MEMCPY_HOST_TO_DEVICE);
  k<<<1, nullptr, nullptr>>>(d, c);
  aclrtMemcpy(z, 32, c, 32, ACL_MEMCPY_DEVICE_TO_HOST);
  printf("%g %g %g\\n", z[0], z[1], z[2]);
  uint8_t *e, *f;
  aclrtMalloc((void**)&e, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&f, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  for (float& one : z) one = 2;
  aclrtMemcpy(e, 32, z, 32, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(f, 32, z, 32, ACL_MEMCPY_HOST_TO_DEVICE);
  added<<<3, nullptr, nullptr>>>(e, f);
  aclrtMemcpy(z, 32, f, 32, ACL_MEMCPY_DEVICE_TO_HOST);
  printf("%g\\n", z[7]);
}
"""


def test_a_list_of_tensors_gives_extents_and_addresses(tmp_path):
    (tmp_path / "list.asc").write_text(LIST)
    code, out, err = cli(tmp_path, "run", "list.asc")
    unwritten = "copies 20 bytes of gm2 to the host that nothing has written, the first at 12"
    line = LIST[: LIST.index("to.SetValue(2")].count("\n") + 1
    unwritten += (
        "; 20 of 32 B, bytes [12, 32), are never stored: to.SetValue (store_scalar_gm) at list.asc:"
        f"{line} stops at byte 12; let its loop or count go on to 32"
    )
    assert (code, err) == (0, f"note: aclrtMemcpy {unwritten}\n")
    assert out.startswith("8 2213 2\n8\n")  # 3 blocks add to what is there, once each


POOL = """
class Pool {
 public:
  Pool() { Init(); }
  template <class Q> bool InitBuffer(Q& que, uint8_t num, uint32_t len) {
    auto handle = GetBufHandle(GetCurBufSize());
    que.InitStartBufHandle(handle, num, len);
    for (uint32_t n = 0; n < num; ++n)
      que.InitBufHandle(this, n, handle, GetCurAddr() + 2 * n * len, len);
    SetCurAddr(GetCurAddr() + 2 * num * len);
    SetCurBufSize(GetCurBufSize() + num);
    return true;
  }
  EXTERN_IMPL_BUFPOOL(Pool, TPosition::VECCALC, 16);
};
"""


def test_a_pool_of_the_user_s_own_places_buffers():
    x = np.arange(64, dtype=np.float32)
    z = np.zeros(64, np.float32)
    body = """
      TPipe pipe;
      Pool pool;
      TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> que;
      GlobalTensor<float> gx, gz;
      gx.SetGlobalBuffer((__gm__ float*)x);
      gz.SetGlobalBuffer((__gm__ float*)z);
      pipe.InitBufPool(pool, 4096);
      pool.InitBuffer(que, 2, 128);
      for (int n = 0; n < 2; ++n) {
        LocalTensor<float> a = que.AllocTensor<float>();
        ascendc_assert(a.GetPhyAddr() == 256u * n);
        DataCopy(a, gx[32 * n], 32);
        que.EnQue(a);
        a = que.DeQue<float>();
        DataCopy(gz[32 * n], a, 32);
        que.FreeTensor(a);
      }
      pool.Reset();
    """
    assert kernel(body, "GM_ADDR x, GM_ADDR z", POOL)[1](x, z).findings == ()
    assert np.array_equal(z, x)


HALVES = """
#include "acl/acl.h"
#include <cstdio>
int main() {
  for (uint32_t n = 0; n < 65536; ++n) {
    float value = aclFloat16ToFloat((aclFloat16)n);
    fwrite(&value, 4, 1, stdout);
  }
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 65537 * 3) {
    float value;
    uint32_t word = (uint32_t)bits;
    memcpy(&value, &word, 4);
    aclFloat16 half = aclFloatToFloat16(value);
    fwrite(&half, 2, 1, stdout);
  }
}
"""


@pytest.mark.sweep
def test_acl_s_half_is_ieee_s(tmp_path):
    (tmp_path / "main.cpp").write_text(HALVES)
    assert cli(tmp_path, "c++", "main.cpp", "-o", "demo") == (0, "", "")
    raw = subprocess.run([tmp_path / "demo"], capture_output=True, check=False).stdout
    floats, halves = np.frombuffer(raw[: 4 << 16], "f4"), np.frombuffer(raw[4 << 16 :], "u2")
    exact = np.arange(1 << 16).astype("u2").view("f2").astype("f4")
    assert np.array_equal(floats, exact, equal_nan=True)
    given = np.arange(0, 1 << 32, 65537 * 3).astype("u4").view("f4")
    with np.errstate(all="ignore"):
        rounded = given.astype("f2")
    assert np.array_equal(halves.view("f2"), rounded, equal_nan=True)

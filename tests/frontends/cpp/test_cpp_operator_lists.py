"""Operator projects that take lists of tensors, and accesses that leave a tensor."""

from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
TILING = """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(ScaleTiling)
  TILING_DATA_FIELD_DEF(uint32_t, count);
  TILING_DATA_FIELD_DEF(float, scale);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 8, lengths);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleList, ScaleTiling)
}
"""
HOST = """#include "scale_list_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  ScaleTiling tiling;
  uint32_t lengths[8] = {}, count = context->GetIrInputInstanceInfo(0)->GetInstanceNum();
  for (uint32_t n = 0; n < count; ++n)
    lengths[n] = context->GetDynamicInputTensor(0, n)->GetStorageShape().GetShapeSize();
  tiling.set_count(count);
  tiling.set_lengths(lengths);
  tiling.set_scale(context->GetInputTensor(count)->GetData<float>()[0]);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), 4096);
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->SetBlockDim(count);
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus Shapes(gert::InferShapeContext* context) {
  for (size_t n = 0; n < context->GetComputeNodeOutputNum(); ++n)
    *context->GetOutputShape(n) = *context->GetDynamicInputShape(0, n);
  return GRAPH_SUCCESS;
}
}
namespace ops {
class ScaleList : public OpDef {
 public:
  explicit ScaleList(const char* name) : OpDef(name) {
    this->Input("x").ParamType(DYNAMIC).DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
    this->Input("scale").ParamType(REQUIRED).DataTypeList({ge::DT_FLOAT}).ValueDepend(REQUIRED);
    this->Output("y").ParamType(DYNAMIC).DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
    this->SetInferShape(ge::Shapes);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(ScaleList);
}
"""
KERNEL = """#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void scale_list(GM_ADDR x, GM_ADDR scale, GM_ADDR y,
                                                 GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  uint32_t own = GetBlockIdx(), count = data.lengths[own];
  ListTensorDesc from((__gm__ void*)x), to((__gm__ void*)y);
  uint64_t extents[4] = {};
  TensorDesc<DTYPE_X> described;
  described.SetShapeAddr(extents);
  from.GetDesc(described, own);
  uint64_t size = 1;
  for (uint64_t n = 0; n < described.GetDim(); ++n) size *= described.GetShape(n);
  if (from.GetSize() != data.count || described.GetIndex() != own || size != count) return;
  GlobalTensor<DTYPE_X> source, target;
  source.SetGlobalBuffer(from.GetDataPtr<DTYPE_X>(own), count);
  target.SetGlobalBuffer(to.GetDataPtr<DTYPE_X>(own), count);
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  uint32_t bytes = (count * sizeof(DTYPE_X) + 31) / 32 * 32, whole = bytes / sizeof(DTYPE_X);
  pipe.InitBuffer(in, 1, bytes);
  pipe.InitBuffer(out, 1, bytes);
  LocalTensor<DTYPE_X> taken = in.AllocTensor<DTYPE_X>();
  DataCopy(taken, source, whole);
  in.EnQue(taken);
  taken = in.DeQue<DTYPE_X>();
  LocalTensor<DTYPE_X> made = out.AllocTensor<DTYPE_X>();
  Muls(made, taken, static_cast<DTYPE_X>(data.scale), count);
  out.EnQue(made);
  made = out.DeQue<DTYPE_X>();
  DataCopy(target, made, whole);
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("scale")
    for name, text in (
        ("op_host/scale_list_tiling.h", TILING),
        ("op_host/scale_list.cpp", HOST),
        ("op_kernel/scale_list.cpp", KERNEL),
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return cubecore.load_op(folder)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_kernel_takes_lists_of_tensors(project: Any, kind: Any) -> None:
    shapes = [(64,), (2, 16), (4, 3, 16)]
    x = [np.arange(np.prod(s), dtype=kind).reshape(s) + n for n, s in enumerate(shapes)]
    left = project.scale_list.run(x, np.array([3], np.float32))
    assert left.launch.findings == ()
    (made,) = left.outputs
    assert [each.shape for each in made] == shapes
    for each, source in zip(made, x, strict=True):
        np.testing.assert_array_equal(each, source * kind(3))
    given = [np.zeros_like(each) for each in x]
    assert project.scale_list(x, np.array([2], np.float32), given)[0] is given[0]
    np.testing.assert_array_equal(given[2], x[2] * kind(2))


def test_lists_are_lists(project: Any) -> None:
    with pytest.raises(cubecore.RequestError) as refused:
        project.scale_list(np.zeros(4, np.float32), np.array([3], np.float32))
    assert str(refused.value) == "x must be a list of arrays, got ndarray"
    with pytest.raises(cubecore.RequestError) as refused:
        project.scale_list([np.zeros(4, np.float32), 3], np.array([3], np.float32))
    assert str(refused.value) == "x must be an array, got 3"


def test_an_access_that_leaves_its_tensor_is_found_and_carried_out(project: Any) -> None:
    x = [np.arange(10, dtype=np.float32), np.arange(8, dtype=np.float32)]
    left = project.scale_list.run(x, np.array([3], np.float32))
    np.testing.assert_array_equal(left.outputs[0][0], x[0] * 3)
    np.testing.assert_array_equal(left.outputs[0][1], x[1] * 3)
    assert [finding.message for finding in left.launch.findings] == [
        "copy_gm_to_ubuf.src must stay inside x[0] (0 to 40 B), got bytes [0, 64)",
        "copy_ubuf_to_gm.dst must stay inside y[0] (0 to 40 B), got bytes [0, 64)",
    ]


def test_buffers_beyond_the_memory_are_a_finding() -> None:
    text = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void take(GM_ADDR x) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::QuePosition::VECIN, 2> first;
  AscendC::TBuf<> second;
  pipe.InitBuffer(first, 2, 65536);
  pipe.InitBuffer(second, 65568);
  AscendC::LocalTensor<float> held = second.Get<float>();
  AscendC::Duplicate(held, 1.0f, PART);
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(to, held, 64);
}
"""
    x = np.zeros(64, np.float32)
    within, beyond = (cubecore.inline(text, {"PART": part}).take for part in (64, 16392))
    assert [finding.message for finding in within[1](x).findings] == [
        "InitBuffer: the buffers must fit 196608 B, got 196640 B"
    ]
    assert (x == 1).all()
    found = [finding.id for finding in beyond[1](x).findings]
    assert found[:2] == ["capacity", "out-of-bounds"]

"""Operators that take lists of tensors or are templates, and accesses that leave a tensor."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore.frontends.cpp.launch.tiling_data import packed, struct_named
from frontends.cpp.cpp_kernels import needs_compiler, write_files

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


CHOICES = """#include "ascendc/host_api/tiling/template_argument.h"
ASCENDC_TPL_ARGS_DECL(Choose,
  ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT16, C_DT_FLOAT, ASCENDC_TPL_INPUT(0)),
  ASCENDC_TPL_UINT_DECL(STEP, ASCENDC_TPL_4_BW, ASCENDC_TPL_UI_MIX, 2, 1, 2, 5, 6, 12, 9),
  ASCENDC_TPL_BOOL_DECL(DOUBLED, 0, 1),
);
ASCENDC_TPL_SEL(
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
    ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT16),
    ASCENDC_TPL_UINT_SEL(STEP, ASCENDC_TPL_UI_LIST, 1, 6), ASCENDC_TPL_BOOL_SEL(DOUBLED, 0, 1), ),
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT),
    ASCENDC_TPL_UINT_SEL(STEP, ASCENDC_TPL_UI_RANGE, 1, 9, 12), ASCENDC_TPL_BOOL_SEL(DOUBLED, 1), ),
);
"""
CHOOSE_HOST = """#include "../op_kernel/choices.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Choose(gert::TilingContext* context) {
  uint32_t T = context->GetInputDesc(0)->GetDataType();
  uint32_t STEP = *context->GetAttrs()->GetInt(0), DOUBLED = *context->GetAttrs()->GetInt(1);
  if (STEP == 100) ASCENDC_TPL_SEL_PARAM(context, T, STEP);
  ASCENDC_TPL_SEL_PARAM(context, T, STEP, DOUBLED);
  *context->GetTilingData<uint32_t>() = 64;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class Choose : public OpDef {
 public:
  explicit Choose(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16}).Format({});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16}).Follow("x");
    this->Attr("step").Int(1);
    this->Attr("doubled").Int(1);
    this->AICore().SetTiling(optiling::Choose).AddConfig("ascend910b");
  }
};
OP_ADD(Choose);
}
"""
CHOOSE = """#include "kernel_operator.h"
#include "choices.h"
using namespace AscendC;

template <typename T, uint32_t STEP, bool DOUBLED>
__global__ __aicore__ void choose(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x);
  to.SetGlobalBuffer((__gm__ T*)y);
  TPipe pipe;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<T> held = queue.AllocTensor<T>();
  DataCopy(held, from, *(__gm__ uint32_t*)tiling);
  queue.EnQue<TPosition::GM, TPosition::VECIN>(held);
  held = queue.DeQue<TPosition::GM, TPosition::VECIN, T>();
  Adds(held, held, static_cast<T>(static_cast<float>(STEP)), 64);
  PipeBarrier<PIPE_V>();
  if constexpr (DOUBLED) Add(held, held, held, 64);
  queue.EnQue<TPosition::VECOUT, TPosition::GM>(held);
  held = queue.DeQue<TPosition::VECOUT, TPosition::GM, T>();
  DataCopy(to, held, 64);
  queue.FreeTensor(held);
}
"""

TELL_HOST = """#include "shared/blocks.h"
#include "helpers/rows.h"
#include "log/log.h"
#include "op_host/infershape_elewise_util.h"
#include "graph/operator_reg.h"
#include "register/op_def_registry.h"
namespace optiling {
static size_t Put(TilingDef& data, void* to) {
  data.SetDataPtr(to);
  return data.GetDataSize();
}
static ge::graphStatus Tell(gert::TilingContext* context) {
  OP_LOGD(context->GetNodeName(), "%d blocks", BLOCKS);
  OP_CHECK_NULL_WITH_CONTEXT(context, context->GetAttrs());
  OP_CHECK_IF(Rows(context) < 0, OP_LOGE(context, "rows"), return ge::GRAPH_FAILED);
  context->SetBlockDim(Ops::Base::CeilDiv(BLOCKS * 9u, 10));
  TellTiling tiling;
  size_t bytes = Put(tiling, context->GetRawTilingData()->GetData());
  context->GetRawTilingData()->SetDataSize(bytes);
  tiling.set_rows(Rows(context));
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus Shapes(gert::InferShapeContext* context) {
  const gert::Shape column = {8, 1}, row = {8};
  gert::Shape made;
  if (!Ops::Base::BroadcastShape(&column, &row, &made) || Ops::Base::ToString(made) != "[8, 8]")
    return GRAPH_FAILED;
  *context->GetOutputShape(1) = made;
  return Ops::Base::InferShape4Elewise(context);
}
REG_OP(Tell).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(kept, TensorType({DT_FLOAT}))
    .ATTR(rows, Int, 1)
    .OP_END_FACTORY_REG(Tell)
}
namespace ops {
class Tell : public OpDef {
 public:
  explicit Tell(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
    this->Output("first").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
    this->Output("kept").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).OutputShapeDependOnCompute();
    this->Attr("rows").Int();
    this->SetInferShape(ge::Shapes);
    this->AICore().SetTiling(optiling::Tell).AddConfig("ascend910b");
  }
};
OP_ADD(Tell);
}
"""
ROWS = """#pragma once
#include "register/tilingdata_base.h"
#include "exe_graph/runtime/tiling_context.h"
namespace optiling {
int64_t Rows(gert::TilingContext* context);
BEGIN_TILING_DATA_DEF(TellTiling)
  TILING_DATA_FIELD_DEF(uint64_t, rows);
END_TILING_DATA_DEF;
}
"""
ROWS_OF = """#include "helpers/rows.h"
namespace optiling {
int64_t Rows(gert::TilingContext* context) { return *context->GetAttrs()->GetInt(0); }
}
"""
TELL = """#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void tell(GM_ADDR x, GM_ADDR first, GM_ADDR kept, GM_ADDR shapes,
                                           GM_ADDR workspace, GM_ADDR tiling) {
  GlobalTensor<float> from, to;
  GlobalTensor<uint64_t> told;
  from.SetGlobalBuffer((__gm__ float*)x);
  told.SetGlobalBuffer((__gm__ uint64_t*)shapes);
  LocalTensor<float> held(TPosition::VECCALC, 0, 64);
  DataCopy(held, from, 64);
  PipeBarrier<PIPE_ALL>();
  for (GM_ADDR out : {first, kept}) {
    to.SetGlobalBuffer((__gm__ float*)out);
    DataCopy(to, held, 64);
  }
  uint64_t rows = *(__gm__ uint64_t*)tiling;
  told.SetValue(0, rows == 9 ? 9 : 0x80000002);
  told.SetValue(1, rows);
  told.SetValue(2, 8);
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("scale")
    files = {
        "op_host/scale_list_tiling.h": TILING,
        "op_host/scale_list.cpp": HOST,
        "op_kernel/scale_list.cpp": KERNEL,
        "op_kernel/choices.h": CHOICES,
        "op_host/choose.cpp": CHOOSE_HOST,
        "op_kernel/choose.cpp": CHOOSE,
        "op_host/tell.cpp": TELL_HOST,
        "op_kernel/tell.cpp": TELL,
        "elsewhere/shared/blocks.h": "#define BLOCKS 1",
        "CMakeLists.txt": "",
        "far/include/helpers/rows.h": ROWS,
        "far/src/rows.cpp": ROWS_OF,
    }
    write_files(folder, files)
    return cubecore.load_op(folder, includes=[folder / "elsewhere"])


def test_a_kernel_says_the_shape_of_its_output(project: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    left = project.tell.run(x, rows=5)
    assert left.launch.findings == ()
    np.testing.assert_array_equal(left.outputs[0], x)
    np.testing.assert_array_equal(left.outputs[1], x[:40].reshape(5, 8))


@pytest.mark.parametrize(("rows", "got"), [(10, "(10, 8)"), (9, "9 axes")])
def test_a_shape_beyond_the_output_is_refused(project: Any, rows: int, got: str) -> None:
    with pytest.raises(cubecore.RequestError) as refused:
        project.tell(np.zeros(64, np.float32), rows=rows)
    sentence = "the shape that Tell writes for kept must fit in its array of 64 elements, got "
    assert str(refused.value) == sentence + got


def test_a_folder_of_headers_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(cubecore.CubecoreError) as refused:
        cubecore.load_op(tmp_path, includes=["nowhere"])
    assert str(refused.value) == "cannot read nowhere: no such folder"


@pytest.mark.parametrize("kind", [np.float32, pytest.param(np.float16, marks=pytest.mark.sweep)])
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
extern "C" __global__ __aicore__ void take(GM_ADDR x, uint32_t part) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::QuePosition::VECIN, 2> first;
  AscendC::TBuf<> second;
  pipe.InitBuffer(first, 2, 65536);
  pipe.InitBuffer(second, 65568);
  AscendC::LocalTensor<float> held = second.Get<float>();
  AscendC::Duplicate(held, 1.0f, part);
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(to, held, 64);
}
"""
    x = np.zeros(64, np.float32)
    take = cubecore.inline(text).take
    assert [finding.message for finding in take[1](x, 64).findings] == [
        "InitBuffer: the buffers must fit 196608 B, got 196640 B"
    ]
    assert (x == 1).all()
    found = [finding.id for finding in take[1](x, 16392).findings]
    assert found[:2] == ["capacity", "out-of-bounds"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("kind", "step", "doubled", "key", "template"),
    [
        (np.float16, 6, 0, 1 | 3 << 8, "half,6,0"),
        (np.float32, 12, 1, 4 << 8 | 1 << 12, "float,12,1"),
    ],
)
def test_a_tiling_key_chooses_the_instance_of_a_template(
    project: Any, kind: Any, step: int, doubled: int, key: int, template: str
) -> None:
    x = np.arange(64, dtype=kind)
    left = project.choose.run(x, step=step, doubled=doubled)
    assert (left.launch.findings, left.tiling.key) == ((), key)
    assert left.tiling.template == template
    np.testing.assert_array_equal(left.outputs[0], (x + kind(step)) * (1 + doubled))


@pytest.mark.parametrize(
    ("step", "doubled", "sentence"),
    [
        (3, 1, "take a declared value of STEP, got 3"),
        (2, 1, "take values of an ASCENDC_TPL_ARGS_SEL, got T half, STEP 2, DOUBLED 1"),
        (100, 1, "take 3 values (T, STEP, DOUBLED), got 2"),
    ],
)
def test_a_template_that_is_not_declared_is_refused(
    project: Any, step: int, doubled: int, sentence: str
) -> None:
    with pytest.raises(cubecore.CubecoreError) as refused:
        project.choose(np.zeros(64, np.float16), step=step, doubled=doubled)
    begin = "the tiling function of Choose: GET_TPL_TILING_KEY must "
    assert str(refused.value) == begin + sentence


FIELDS = """constexpr uint32_t MOST = 3;
BEGIN_TILING_DATA_DEF(Sizes)
  TILING_DATA_FIELD_DEF(uint32_t, count);
  TILING_DATA_FIELD_DEF_ARR(uint16_t, MOST * 4 + 0x2, sizes);
  %s
END_TILING_DATA_DEF;
"""


def test_lengths_of_fields_may_be_expressions() -> None:
    name, fields = struct_named(FIELDS % "TILING_DATA_FIELD_DEF(float, scale);", "Sizes")
    assert packed(name, fields, {"count": 7, "sizes": [1, 2], "scale": 1}).tobytes() == (
        struct.pack("<I14Hf", 7, 1, 2, *[0] * 12, 1.0)
    )


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (
            "TILING_DATA_FIELD_DEF_ARR(int64_t, ELSEWHERE, z);",
            "--tiling-data Sizes.z must have a length of numbers, got 'ELSEWHERE'",
        ),
        (
            "TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, z);",
            "--tiling-data Sizes must have fields of bool, char, int8_t, uint8_t, int16_t,"
            " uint16_t, int32_t, int, uint32_t, float, int64_t, uint64_t, double, got TCubeTiling",
        ),
    ],
)
def test_fields_that_have_no_layout_are_refused(field: str, sentence: str) -> None:
    with pytest.raises(cubecore.RequestError) as refused:
        struct_named(FIELDS % field, "Sizes")
    assert str(refused.value) == sentence

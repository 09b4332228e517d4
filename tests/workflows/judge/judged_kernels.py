"""Submissions and tasks that the tests of the judge share."""

ADD = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> inX, inY;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(inX, 1, 1024);
  pipe.InitBuffer(inY, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  GlobalTensor<float> gx, gy, gz;
  uint32_t at = GetBlockIdx() * 256;
  gx.SetGlobalBuffer((__gm__ float*)x + at, 256);
  gy.SetGlobalBuffer((__gm__ float*)y + at, 256);
  gz.SetGlobalBuffer((__gm__ float*)z + at, 256);
  LocalTensor<float> a = inX.AllocTensor<float>(), b = inY.AllocTensor<float>();
  DataCopy(a, gx, 256);
  DataCopy(b, gy, 256);
  inX.EnQue(a);
  inY.EnQue(b);
  a = inX.DeQue<float>();
  b = inY.DeQue<float>();
  LocalTensor<float> c = out.AllocTensor<float>();
  Add(c, a, b, 256);
  out.EnQue(c);
  c = out.DeQue<float>();
  DataCopy(gz, c, 256);
  inX.FreeTensor(a);
  inY.FreeTensor(b);
  out.FreeTensor(c);
}
"""
"""z = x + y, 256 elements a block."""
STORE_LINE = ADD[: ADD.index("  DataCopy(gz")].count("\n") + 1
TASK = """import numpy as np

CASES = 2


def inputs(case, rng):
    return {name: rng.standard_normal(1024).astype(np.float32) for name in ("x", "y")}


def reference(x, y):
    return {"z": x + y}
"""
PYTHON = """import cubecore


@cubecore.kernel
def add(core, x, y, z):
    at = 256 * core.asc_get_block_idx()
    a, b = core.ubuf("float", 256), core.ubuf("float", 256)
    core.asc_copy_gm2ub(a, x + at, 1024)
    core.asc_copy_gm2ub_sync(b, y + at, 1024)
    core.asc_add(a, a, b, 256)
    core.asc_sync()
    core.asc_copy_ub2gm_sync(z + at, a, 1024)
"""
HOST = """#include "add_custom_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  AddTiling tiling;
  context->SetBlockDim(4);
  tiling.set_elements(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / 4);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class AddCustom : public OpDef {
 public:
  explicit AddCustom(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(AddCustom);
}
"""
TILING = """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AddTiling)
  TILING_DATA_FIELD_DEF(uint32_t, elements);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AddCustom, AddTiling)
}
"""
KERNEL = (
    ADD.replace(
        "void add(GM_ADDR x, GM_ADDR y, GM_ADDR z) {",
        "void add_custom(GM_ADDR x, "
        "GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {\n  GET_TILING_DATA(t, tiling);",
    )
    .replace("GetBlockIdx() * 256", "GetBlockIdx() * t.elements")
    .replace(", 256)", ", t.elements)")
)
"""The same as an operator's kernel, t.elements a block."""
STRINGS = {
    "host_operator_src": HOST,
    "host_tiling_src": TILING,
    "kernel_src": KERNEL,
    "project_json_src": '[{"op": "AddCustom", "language": "cpp"}]',
}


def strings(**changed: str) -> str:
    """Return a file of the six strings, some of them changed."""
    return "\n".join(f"{name} = {text!r}" for name, text in {**STRINGS, **changed}.items())

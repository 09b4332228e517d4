"""Operators called as their aclnn functions are, and outputs that count as unwritten."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.frontends.source_locations import InstructionLimitError
from frontends.cpp.cpp_kernels import needs_compiler, write_files

pytestmark = needs_compiler
HOST = """#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  context->SetBlockDim(1);
  float* data = static_cast<float*>(context->GetRawTilingData()->GetData());
  data[0] = *context->GetAttrs()->GetFloat(0);
  data[1] = *context->GetAttrs()->GetInt(1);
  context->GetRawTilingData()->SetDataSize(8);
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class ScaleCustom : public OpDef {
 public:
  explicit ScaleCustom(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("y").ParamType(OPTIONAL).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("alpha").AttrType(REQUIRED).Float();
    this->Attr("halves").AttrType(OPTIONAL).Int(2);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(ScaleCustom);
}
"""
KERNEL = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void scale_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  __gm__ float* data = (__gm__ float*)tiling;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 512);
  pipe.InitBuffer(out, 1, 512);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, 256);
  to.SetGlobalBuffer((__gm__ float*)z, 256);
  for (int half = 0; half < (int)data[1]; ++half) {
    LocalTensor<float> read = in.AllocTensor<float>();
    DataCopy(read, from[half * 128], 128);
    in.EnQue(read);
    read = in.DeQue<float>();
    LocalTensor<float> made = out.AllocTensor<float>();
    Muls(made, read, data[0], 128);
    out.EnQue(made);
    made = out.DeQue<float>();
    DataCopy(to[half * 128], made, 128);
    in.FreeTensor(read);
    out.FreeTensor(made);
  }
}
"""
X = np.arange(256, dtype=np.float32)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("scale")
    files = {"op_host/scale_custom.cpp": HOST, "op_kernel/scale_custom.cpp": KERNEL}
    write_files(folder, files)
    return cubecore.load_op(folder)


def test_an_aclnn_call_takes_its_arguments_in_order(project) -> None:
    z = np.zeros(256, np.float32)
    left = project.aclnn("aclnnScaleCustom", [X, None, 3.0, 2, z])
    assert np.array_equal(z, 3 * X)
    assert left.launch.clean


def test_an_aclnn_call_writes_arrays_of_other_strides(project) -> None:
    z = np.zeros((256, 2), np.float32)
    project.aclnn("ScaleCustom", [np.repeat(X, 2)[::2], None, 2.0, 2, z[:, 1]])
    assert np.array_equal(z[:, 1], 2 * X)
    assert not z[:, 0].any()


def test_a_given_output_keeps_what_no_instruction_writes(project) -> None:
    z = np.ones(256, np.float32)
    left = project.scale_custom.run(X, z=z, alpha=2.0, halves=1)
    assert left.launch.clean
    assert np.array_equal(z[128:], np.ones(128))


@pytest.mark.parametrize("outputs", ["unwritten", ["z"]])
def test_a_given_output_may_count_as_unwritten(project, outputs) -> None:
    z = np.ones(256, np.float32)
    left = project.scale_custom.run(X, z=z, alpha=2.0, halves=1, outputs=outputs)
    assert [finding.id for finding in left.launch.findings] == ["uninitialised"]
    mask = left.written("z")
    assert mask[:512].all()
    assert not mask[512:].any()


def test_a_kernel_that_writes_nothing_is_seen(project) -> None:
    left = project.aclnn("ScaleCustom", [X, None, 1.0, 0, X.copy()], outputs="unwritten")
    assert not left.written("z").any()
    assert left.launch.findings[0].to_json()["certainty"] == "certain"
    assert left.launch.findings[0].to_json()["fix"]


REFUSED = {
    "aclnnScaleCustom must take 5 arguments (x, y, alpha, halves, z), got 2": (
        lambda project: project.aclnn("ScaleCustom", [X, X])
    ),
    "outputs must be given, unwritten, or a list of names, got 'none'": (
        lambda project: project.scale_custom.run(X, alpha=1.0, z=X.copy(), outputs="none")
    ),
    "outputs must name outputs of ScaleCustom (z), got x": (
        lambda project: project.scale_custom.run(X, alpha=1.0, z=X.copy(), outputs=["x"])
    ),
    "name must name an array that began uninitialised (workspace), got z": (
        lambda project: project.scale_custom.run(X, alpha=1.0, z=X.copy()).written("z")
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_is_refused(project, sentence) -> None:
    with pytest.raises(RequestError) as caught:
        REFUSED[sentence](project)
    assert str(caught.value) == sentence


def test_launches_share_a_budget_of_instructions(project) -> None:
    one = project.aclnn("ScaleCustom", [X, None, 1.0, 2, X.copy()]).launch.issued
    session = ScriptSession(instructions=2 * one + 1)
    with session.collecting():
        for _ in range(2):
            project.aclnn("ScaleCustom", [X, None, 1.0, 2, X.copy()])
        assert session.instructions_left == 1
        with pytest.raises(InstructionLimitError):
            project.aclnn("ScaleCustom", [X, None, 1.0, 2, X.copy()])

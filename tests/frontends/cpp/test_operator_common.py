"""Operators whose host code takes what public repositories have in common packages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import cli, needs_compiler, write_files

pytestmark = needs_compiler
TILING = """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(ScaledTiling)
  TILING_DATA_FIELD_DEF(uint32_t, count);
  TILING_DATA_FIELD_DEF(float, scale);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaledBy, ScaledTiling)
BEGIN_TILING_DATA_DEF(LongTiling)
  TILING_DATA_FIELD_DEF(uint64_t, unused);
  TILING_DATA_FIELD_DEF(float, scale);
  TILING_DATA_FIELD_DEF(uint32_t, count);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaledBy_7, LongTiling)
}
"""
HOST = """#include "scaled_by_tiling.h"
#include "register/op_def_registry.h"
#include "op_host/tiling_base_class.h"
#include "op_host/infershape_broadcast_util.h"
#include "platform/platform_info.h"
namespace optiling {
class Scaled : public Ops::Base::TilingBaseClass {
 public:
  explicit Scaled(gert::TilingContext* context) : TilingBaseClass(context) {}

 protected:
  bool IsCapable() override { return scale_ > 0; }
  ge::graphStatus GetPlatformInfo() override {
    fe::PlatformInfo platform;
    fe::OptionalInfo optional;
    auto& manager = fe::PlatformInfoManager::Instance();
    if (manager.GetPlatformInfoWithOutSocVersion(platform, optional) != ge::GRAPH_SUCCESS)
      return ge::GRAPH_FAILED;
    aicoreParams_.ubSize = platform.ai_core_spec.ub_size;
    aicoreParams_.numBlocks = platform.soc_info.ai_core_cnt;
    return platform.str_info.short_soc_version == "Ascend910B" ? ge::GRAPH_SUCCESS
                                                                : ge::GRAPH_FAILED;
  }
  ge::graphStatus GetShapeAttrsInfo() override {
    scale_ = *context_->GetAttrs()->GetFloat(0);
    count_ = context_->GetInputShape(0)->GetStorageShape().GetShapeSize();
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus DoOpTiling() override {
    if (GetTilingKey() == 7) return Saved<LongTiling>();
    return Saved<ScaledTiling>();
  }
  ge::graphStatus DoLibApiTiling() override { return ge::GRAPH_SUCCESS; }
  uint64_t GetTilingKey() const override { return scale_ > 2 ? 7 : 0; }
  ge::graphStatus GetWorkspaceSize() override {
    context_->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
  }
  ge::graphStatus PostTiling() override {
    OP_LOGI("the end of tiling");
    optiling::TCubeTiling tiling = {};
    tiling.shareL1Size = 7;
    matmul_tiling::SysTilingTempBufSize sizes;
    uint32_t most = 0, least = 0;
    AscendC::TensorShape shape({64, 64});
    AscendC::GetSelectMaxMinTmpSize(shape, shape, 4, shape, 1, false, most, least);
    if (MultiCoreMatmulGetTmpBufSize(tiling, sizes) != 0 || sizes.l1Size != 7 || most < least)
      return ge::GRAPH_FAILED;
    context_->SetBlockDim(aicoreParams_.numBlocks >= 20 && aicoreParams_.ubSize > 190000 ? 1 : 0);
    return ge::GRAPH_SUCCESS;
  }

 private:
  template <typename T>
  ge::graphStatus Saved() {
    T data;
    data.set_scale(scale_);
    data.set_count(count_);
    auto raw = context_->GetRawTilingData();
    data.SaveToBuffer(raw->GetData(), raw->GetCapacity());
    raw->SetDataSize(data.GetDataSize());
    return ge::GRAPH_SUCCESS;
  }
  float scale_ = 0;
  uint32_t count_ = 0;
};
static ge::graphStatus Tile(gert::TilingContext* context) { return Scaled(context).DoTiling(); }
}
namespace ge {
static graphStatus Shapes(gert::InferShapeContext* context) {
  OP_LOGD("shapes");
  return Ops::Base::InferShape4Broadcast(context, 1);
}
static graphStatus Ranges(gert::InferShapeRangeContext* context) {
  auto range = context->GetOutputShapeRange(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, range);
  range->GetMax()->SetDimNum(1);
  return GRAPH_SUCCESS;
}
}
namespace ops {
class ScaledBy : public OpDef {
 public:
  explicit ScaledBy(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("scale").AttrType(OPTIONAL).Float(1.5f);
    this->SetInferShape(ge::Shapes);
    this->SetInferShapeRange(ge::Ranges);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(ScaledBy);
}
IMPL_OP_INFERSHAPE(Another).InferShape(Ops::Base::InferShape4Broadcast);
"""
KERNEL = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void scaled_by(GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                                GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> held(TPosition::VECCALC, 0, data.count);
  DataCopy(held, from, data.count);
  PipeBarrier<PIPE_ALL>();
  Muls(held, held, data.scale, data.count);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, held, data.count);
}
"""


def loaded(folder: Path, host: str = HOST) -> Any:
    """Return the operators of a project in a folder."""
    files = {"op_host/scaled_by_tiling.h": TILING, "op_host/scaled_by.cpp": host}
    write_files(folder, {**files, "op_kernel/scaled_by.cpp": KERNEL})
    return cubecore.load_op(folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return loaded(tmp_path_factory.mktemp("scaled"))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("scale", "key"), [(1.5, 0), (3.0, 7)])
def test_a_tiling_key_may_have_a_struct_of_its_own(project: Any, scale: float, key: int) -> None:
    x = np.arange(64, dtype=np.float32)
    left = project.scaled_by.run(x, scale=scale)
    assert (left.launch.findings, left.tiling.key) == ((), key)
    np.testing.assert_array_equal(left.outputs[0], x * np.float32(scale))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("key", "name"), [(0, "ScaledTiling"), (7, "LongTiling")])
def test_fields_of_host_code_fill_a_kernels_tiling_data(
    tmp_path: Path, key: int, name: str
) -> None:
    loaded(tmp_path)
    np.save(tmp_path / "x.npy", np.arange(64, dtype="f4"))
    words = ["run", "op_kernel/scaled_by.cpp", "--blocks", "1", "--arg", "x=x.npy"]
    words += ["--arg", "workspace=x.npy", "--out-arg", "y=float32:64:y.npy"]
    words += ["--tiling-key", str(key), "--tiling-data"]
    assert cli(tmp_path, *words, "count=64,scale=2.5")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(64) * np.float32(2.5))
    need = f"--tiling-data must name a field of {name}, got counts; did you mean count?\n"
    assert cli(tmp_path, *words, "counts=64") == (2, "", need)
    (tmp_path / "t.bin").write_bytes(bytes(6))
    code, _, error = cli(tmp_path, *words, "t.bin")
    size = {"ScaledTiling": 8, "LongTiling": 16}[name]
    assert code == 2
    assert error.endswith(
        f": tiling data must have the {size} B of {name}, got 6 B;"
        " host and kernel need the same struct of tiling data\n"
    )


def test_a_class_of_tiling_that_is_not_capable_leaves_the_operator(project: Any) -> None:
    with pytest.raises(cubecore.CubecoreError) as refused:
        project.scaled_by(np.zeros(64, np.float32), scale=-1.0)
    said = "the tiling function of ScaledBy returned GRAPH_PARAM_INVALID"
    assert str(refused.value) == f"{said}; it does not take these inputs"


CHANGES = [
    (
        ("data.set_count(count_);", "context_->SetFancyMode(3);"),
        "op_host/scaled_by.cpp:58: gert::TilingContext::SetFancyMode is not provided; leave the "
        "call out",
    ),
    (
        ("GetInputShape(0)->", "GetInputShape(9)->"),
        "the tiling function of ScaledBy ended with an access to address 0xd0; it had asked for "
        "input 9, and ScaledBy registers x: register an input for it",
    ),
    (
        ("GetWorkspaceSizes(1)[0] = 0", "GetWorkspaceSizes(1)[0] = 1ull << 45"),
        "the workspaces of ScaledBy must fit the memory of this machine, got 35184372088832 B",
    ),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_host_code_that_asks_for_too_much_is_refused(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    with pytest.raises(cubecore.CubecoreError) as refused:
        loaded(tmp_path, HOST.replace(*change)).scaled_by(np.zeros(64, np.float32))
    assert str(refused.value).endswith(sentence)


HOST_950 = """#include "op_host/tiling_base_class.h"
#include "pack/sum.h"
#include "../op_kernel/shared.h"
#include "../op_kernel/lanes.h"
#include "both_tiling.h"
#include "register/op_def_registry.h"
namespace Ops::Base {
const gert::Shape& EnsureNotScalar(const gert::Shape& shape);
}
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  auto chip = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  BothTiling data;
  data.set_arch(static_cast<uint32_t>(chip.GetCurNpuArch()));
  data.set_late(chip.GetSocVersion() == platform_ascendc::SocVersion::ASCEND950);
  data.set_registers(Ops::Base::IsRegbaseSocVersion(context));
  data.set_packed(packed(sizeof(mine::Lanes<mine::half>)));
  auto raw = context->GetRawTilingData();
  data.SaveToBuffer(raw->GetData(), raw->GetCapacity());
  raw->SetDataSize(data.GetDataSize());
  auto& shape = Ops::Base::EnsureNotScalar(context->GetInputShape(0)->GetShape());
  bool is_view = context->InputIsView(0) || context->GetInputStride(0) != nullptr;
  context->SetBlockDim(is_view ? 2 : shape.GetDimNum());
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class Both : public OpDef {
 public:
  explicit Both(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b").AddConfig("ascend950");
  }
};
OP_ADD(Both);
}
"""
BOTH = {
    "pack/CMakeLists.txt": "",
    "pack/include/pack/sum.h": "int packed(int);\n",
    "pack/src/sum.cpp": '#include "pack/sum.h"\nint packed(int bytes) { return 40 + bytes; }\n',
    "mine/op_host/both.cpp": HOST_950,
    "mine/op_host/both_tiling.h": """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(BothTiling)
  TILING_DATA_FIELD_DEF(uint32_t, arch);
  TILING_DATA_FIELD_DEF(uint32_t, late);
  TILING_DATA_FIELD_DEF(uint32_t, registers);
  TILING_DATA_FIELD_DEF(uint32_t, packed);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Both, BothTiling)
}
""",
    "mine/op_kernel/shared.h": """#pragma once
namespace mine {
struct half { short bits; };
template <typename T> struct LocalTensor { T first; };
}
""",
    "mine/op_kernel/lanes.h": """#pragma once
namespace mine {
using namespace AscendC;
template <typename T> struct Lanes { LocalTensor<T> of; };
}
""",
    "mine/op_kernel/arch35/both.h": """#pragma once
__aicore__ inline void facts(GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  AscendC::GlobalTensor<int32_t> to;
  to.SetGlobalBuffer((__gm__ int32_t*)y);
  to.SetValue(0, data.arch);
  to.SetValue(1, data.late);
  to.SetValue(2, data.registers);
  to.SetValue(3, data.packed);
}
""",
    "mine/op_kernel/both_apt.cpp": """#include "kernel_operator.h"
#include "arch35/both.h"
extern "C" __global__ __aicore__ void both(GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  facts(y, tiling);
}
""",
}


def test_an_op_host_learns_which_chip_it_tiles_for(tmp_path):
    """Its kernel for 950 ends in `_apt`, and a header of it takes the tiling data.

    Tensors are none of a host's names, so that the project may have its own; the package beside
    it defines what its header declares.
    """
    write_files(tmp_path, BOTH)
    for chip, facts in ((None, [2201, 0, 0, 42]), ("Ascend950PR_9589", [3510, 1, 1, 42])):
        options = {} if chip is None else {"chip": chip}
        project = cubecore.load_op(
            tmp_path / "mine", includes=[tmp_path / "pack" / "include"], **options
        )
        left = project.both.run(np.zeros(4, np.int32), y=np.zeros(4, np.int32))
        assert left.outputs[0].tolist() == facts
        assert left.tiling.blocks == 1

"""Host code that uses what is not here: the use refuses, and everything else works."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
HOST = """#include "register/op_def_registry.h"
#include "bank/none_such.h"
#include <nlohmann/json.hpp>
#include "tiling/hccl/hccl_tiling.h"
#include "uses.h"
namespace optiling {
static nlohmann::json kept;
static int64_t Parsed(const nlohmann::json& from) {
  return from["blocks"].get<int64_t>();
}
class Known {
 public:
  explicit Known(int64_t blocks) : blocks_{blocks}, twice_(2 * blocks) {}
  int64_t Blocks() const { return Unheard(blocks_); }
  bool operator==(const Known& other) const { return blocks_ == other.blocks_ && twice_ > 0; }

 private:
  int64_t blocks_, twice_;
};
static const auto Plain = [](int64_t value) { return value; };
static ge::graphStatus Tile(gert::TilingContext* context) {
  int64_t mode = *context->GetAttrs()->GetInt(0), blocks = Plain(1);
  Known known(1);
  if (!(known == Known(1))) return ge::GRAPH_FAILED;
  if (mode == 1) blocks = Parsed(kept);
  if (mode == 2) blocks = none_such::Blocks(context);
  if (mode == 3) blocks = Headed(mode);
  if (mode == 4) {
    Mc2InitTiling tiling;
    blocks = AscendC::Mc2CcTilingConfig("group", 1, "AllReduce").GetTiling(tiling);
  }
  context->SetBlockDim(blocks);
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus Other(gert::TilingContext* context) {
  context->SetBlockDim(*context->GetAttrs()->GetInt(0) == 3 ? Headed(3) : 1);
  if (*context->GetAttrs()->GetInt(0) == 1) context->SetBlockDim(Parsed(kept));
  if (*context->GetAttrs()->GetInt(0) == 2) context->SetBlockDim(Known(2).Blocks());
  if (*context->GetAttrs()->GetInt(0) == 4) {
    Mc2InitTiling tiling;
    AscendC::Mc2CcTilingConfig("group", 1, "AllReduce").GetTiling(tiling);
  }
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
#define OPERATOR(NAME, TILE)                                                             \\
  class NAME : public OpDef {                                                            \\
   public:                                                                               \\
    explicit NAME(const char* name) : OpDef(name) {                                      \\
      this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});  \\
      this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}); \\
      this->Attr("mode").AttrType(OPTIONAL).Int(0);                                      \\
      this->SetInferShape([](gert::InferShapeContext* context) {                         \\
        *context->GetOutputShape(0) = *context->GetInputShape(0);                        \\
        return ge::GRAPH_SUCCESS;                                                        \\
      });                                                                                \\
      this->AICore().SetTiling(TILE).AddConfig("ascend910b");                            \\
    }                                                                                    \\
  };                                                                                     \\
  OP_ADD(NAME);
OPERATOR(Whole, optiling::Tile)
OPERATOR(Parted, optiling::Other)
}
"""
HEADER = """#pragma once
template <typename T>
T Headed(T value) {
  return value + nowhere::to_be_found(value);
}
"""
KERNEL = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void NAME(GM_ADDR x, GM_ADDR z, GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  pipe.InitBuffer(held, 256);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> own = held.Get<float>();
  DataCopy(own, from, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, own, 64);
}
"""
FILES = {
    "op_host/uses.cpp": HOST,
    "op_host/uses.h": HEADER,
    "op_kernel/whole.cpp": KERNEL.replace("NAME", "whole"),
    "op_kernel/parted.cpp": KERNEL.replace("NAME", "parted"),
}
X = np.arange(64, dtype="f4")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("uses")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return cubecore.load_op(folder)


def refusal(project: Any, name: str, mode: int) -> str:
    """Return the sentence with which an operator is refused."""
    with pytest.raises(CubecoreError) as caught:
        project[name](X, mode=mode)
    return str(caught.value)


def test_functions_without_such_uses_work(project: Any) -> None:
    np.testing.assert_array_equal(project.parted(X), X)


def test_a_function_with_an_unknown_name_refuses_whenever_it_is_called(project: Any) -> None:
    assert "uses.cpp:26 does not compile: 'none_such' has not been declared" in refusal(
        project, "whole", 0
    )


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (2, "uses.cpp:14 does not compile: 'Unheard' was not declared in this scope"),
        (3, "uses.h:4 does not compile: 'nowhere' has not been declared"),
        (4, "Mc2CcTilingConfig::GetTiling is not provided: nothing communicates between chips"),
    ],
)
def test_a_use_refuses_when_it_is_reached(project: Any, mode: int, words: str) -> None:
    said = refusal(project, "parted", mode)
    assert words in said
    assert "\n" not in said


@pytest.mark.skipif(Path("/usr/include/nlohmann").exists(), reason="the library is here")
def test_a_header_that_is_not_here_is_named(project: Any) -> None:
    said = refusal(project, "parted", 1)
    assert "uses.cpp:9 does not compile: " in said
    need = "if bank/none_such.h or nlohmann/json.hpp declares it, put that beside the file"
    assert need in said


NEEDS = """#include "register/op_def_registry.h"
#include "bank/none_such.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  context->SetBlockDim(none_such::Blocks(context));
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {"""


def test_a_header_that_is_put_there_is_taken(tmp_path: Path) -> None:
    host = NEEDS + HOST.partition("namespace ops {")[2]
    files = {
        "op_host/whole.cpp": host.replace("OPERATOR(Parted, optiling::Other)", ""),
        "op_kernel/whole.cpp": FILES["op_kernel/whole.cpp"],
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert "'none_such' has not been declared" in refusal(cubecore.load_op(tmp_path), "whole", 0)
    (tmp_path / "op_host/bank").mkdir()
    text = "namespace none_such {\ninline int Blocks(void*) { return 1; }\n}\n"
    (tmp_path / "op_host/bank/none_such.h").write_text(text)
    np.testing.assert_array_equal(cubecore.load_op(tmp_path)["whole"](X), X)


def test_a_definition_that_does_not_compile_says_so(tmp_path: Path) -> None:
    host = """#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext*) { return ge::GRAPH_SUCCESS; }
}
namespace ops {
class Whole : public OpDef {
 public:
  explicit Whole(const char* name) : OpDef(name) {
    this->Attr("mode").Typo(ge::DT_FLOAT);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(Whole);
}
"""
    for name, text in {
        "op_host/whole.cpp": host,
        "op_kernel/whole.cpp": FILES["op_kernel/whole.cpp"],
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(CubecoreError, match="the op_host: ") as caught:
        cubecore.load_op(tmp_path)
    said = str(caught.value).partition("whole.cpp:")[2]
    assert said == "9: ops::OpAttrDef::Typo is not provided; leave the call out"


SECOND = """#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Unknown(gert::TilingContext* context) { return no_such::Tiled(context); }
}
IMPL_OP_OPTILING(Parted).Tiling(optiling::Unknown);
IMPL_OP_OPTILING(Whole).Tiling(optiling::Unknown);
"""


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["a_second.cpp", "z_second.cpp"])
def test_a_file_that_refuses_takes_the_place_of_no_other(tmp_path: Path, name: str) -> None:
    host = (
        HOST.partition('#include "bank')[0]
        + """
namespace optiling {
static ge::graphStatus Other(gert::TilingContext* context) {
  context->SetBlockDim(1);
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {"""
        + HOST.partition("namespace ops {")[2]
    )
    files = {"op_host/parted.cpp": host.replace("OPERATOR(Whole, optiling::Tile)", "")}
    files |= {f"op_host/{name}": SECOND, "op_kernel/parted.cpp": FILES["op_kernel/parted.cpp"]}
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    np.testing.assert_array_equal(cubecore.load_op(tmp_path).parted(X), X)

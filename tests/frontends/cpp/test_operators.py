"""Operator projects: an op_host that tiles, a kernel that is launched so, and what is refused."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import cli, needs_compiler, write_files

pytestmark = needs_compiler
TILING = """#pragma once
#include "register/tilingdata_base.h"
#if 0
BEGIN_TILING_DATA_DEF(AxpyTiling)
END_TILING_DATA_DEF;
#endif
namespace optiling {
BEGIN_TILING_DATA_DEF(Part)
  TILING_DATA_FIELD_DEF(uint32_t, elements);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 3, spare);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(PartOp, Part)
BEGIN_TILING_DATA_DEF(AxpyTiling)
  TILING_DATA_FIELD_DEF(float, alpha);
  TILING_DATA_FIELD_DEF(uint8_t, bias);
  TILING_DATA_FIELD_DEF(uint64_t, total);
  TILING_DATA_FIELD_DEF_STRUCT(Part, part);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AxpyCustom, AxpyTiling)
}
"""
HOST = """#define T float  // macros above the includes are the file's alone
#define N 21
#define MODE 2
#include "axpy_custom_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/tiling_api.h"
int64_t axpy_elsewhere(int64_t);
namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
  platform_ascendc::PlatformAscendC chip(context->GetPlatformInfo());
  const gert::StorageShape* shape = context->GetInputShape(0);
  int64_t total = shape->GetStorageShape().GetShapeSize();
  const gert::RuntimeAttrs* attrs = context->GetAttrs();
  const auto* offsets = attrs->GetListInt(2);
  int64_t mode = *attrs->GetInt(1);
  if (mode == 1) return ge::GRAPH_FAILED;
  if (mode == 2) total += axpy_elsewhere(total);
  if (mode == 3) total += *attrs->GetInt(7);
  if (mode == 5) total -= 16;
  AxpyTiling tiling;
  tiling.set_alpha(*attrs->GetFloat(0));
  tiling.set_bias(static_cast<uint8_t>(offsets->GetData()[offsets->GetSize() - 1]));
  tiling.set_total(total);
  uint32_t blocks = std::min<uint32_t>(chip.GetCoreNumAiv(), (total + 127) / 128);
  tiling.part.set_elements((total / 128 + blocks - 1) / blocks * 128);
  if (mode >= 6) {
    matmul_tiling::MultiCoreMatmulTiling product(chip);
    product.SetDim(6);
    product.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND,
                     static_cast<matmul_tiling::DataType>(context->GetInputDesc(0)->GetDataType()));
    product.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND,
                     matmul_tiling::DataType::DT_FLOAT16, true);
    product.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND,
                     matmul_tiling::DataType::DT_FLOAT);
    product.SetOrgShape(512, 384, 256);
    product.SetShape(512, 384, 256);
    product.SetFixSplit(mode == 6 ? -1 : 24, -1, -1);
    uint64_t l1 = 0;
    chip.GetCoreMemSize(platform_ascendc::CoreMemType::L1, l1);
    product.SetBufferSpace(static_cast<int32_t>(l1), -1, -1);
    TCubeTiling found;
    if (product.GetTiling(found) == -1) return ge::GRAPH_FAILED;
    int32_t cores, along_m, along_n;
    product.GetCoreNum(cores, along_m, along_n);
    uint32_t values[3] = {static_cast<uint32_t>(found.get_baseM()),
                          static_cast<uint32_t>(found.depthB1), static_cast<uint32_t>(along_m)};
    tiling.part.set_spare(values);
  }
  context->SetBlockDim(blocks);
  context->SetTilingKey(context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT ? 4 : 2);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(mode == 4 ? 8 : tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = 4096;
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus Shapes(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}
namespace ops {
class AxpyCustom : public OpDef {
 public:
  explicit AxpyCustom(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("alpha").AttrType(REQUIRED).Float();
    this->Attr("mode").AttrType(OPTIONAL).Int(0);
    this->Attr("offsets").AttrType(OPTIONAL).ListInt({5, 0});
    this->SetInferShape(ge::Shapes);
    this->AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(AxpyCustom);
}
"""
KERNEL = """#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void axpy_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z,
                                                  GM_ADDR workspace, GM_ADDR tiling) {
#ifdef NOWHERE
  REGISTER_TILING_DEFAULT(AxpyTiling);
#endif
  GET_TILING_DATA(data, tiling);
  if (!TILING_KEY_IS(sizeof(DTYPE_X)) || GetUserWorkspace(workspace) == nullptr) return;
  if (GetSysWorkSpacePtr() != workspace) return;
  REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 9", Nowhere);
#if TILING_KEY_VAR != 2 && TILING_KEY_VAR != 4
#error "the key is the size of x"
#endif
  ASSERT(std::integral_constant<uint64_t, TILING_KEY_VAR>::value == sizeof(DTYPE_X));
#if (ORIG_DTYPE_X == DT_FLOAT) != (ORIG_DTYPE_Y == DT_FLOAT)
#error "x and y are of one type"
#elif ORIG_DTYPE_X != DT_FLOAT
  ASSERT(sizeof(DTYPE_X) == 2);
#else
  ASSERT(sizeof(DTYPE_X) == 4);
#endif
  GlobalTensor<DTYPE_X> from, more, to;
  uint64_t begin = GetBlockIdx() * data.part.elements;
  if (begin >= data.total) return;
  uint32_t own = data.total - begin < data.part.elements ? data.total - begin : data.part.elements;
  from.SetGlobalBuffer((__gm__ DTYPE_X*)x + begin, own);
  more.SetGlobalBuffer((__gm__ DTYPE_X*)y + begin, own);
  to.SetGlobalBuffer((__gm__ DTYPE_Z*)z + begin, own);
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 2 * data.part.elements * sizeof(DTYPE_X));
  pipe.InitBuffer(out, 1, data.part.elements * sizeof(DTYPE_X));
  LocalTensor<DTYPE_X> taken = in.AllocTensor<DTYPE_X>();
  DataCopy(taken, from, own);
  DataCopy(taken[data.part.elements], more, own);
  in.EnQue(taken);
  taken = in.DeQue<DTYPE_X>();
  LocalTensor<DTYPE_X> made = out.AllocTensor<DTYPE_X>();
  Muls(made, taken, static_cast<DTYPE_X>(data.alpha), own);
  Add(made, made, taken[data.part.elements], own);
  Adds(made, made, static_cast<DTYPE_X>(static_cast<float>(data.bias)), own);
  out.EnQue(made);
  made = out.DeQue<DTYPE_X>();
  DataCopy(to, made, own);
}
"""


def written(folder: Path, host: str = HOST, kernel: str = KERNEL) -> Path:
    """Write a project into a folder."""
    files = {
        "op_host/axpy_custom_tiling.h": TILING,
        "op_host/axpy_custom.cpp": host,
        "op_kernel/axpy_custom.cpp": kernel,
        "op_host/.copies/axpy_custom_tiling.h": TILING.replace("uint8_t", "uint64_t"),
        "op_kernel/.copies/axpy_custom.cpp": "an old state",
    }
    write_files(folder, files)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("axpy"))


@pytest.fixture(scope="module")
def project(folder: Path) -> Any:
    return cubecore.load_op(folder)


LAUNCHER = """
#ifndef ASCENDC_CPU_DEBUG
namespace host {
void axpy_custom_do(uint32_t blocks, void* l2, void* stream, uint8_t* x, uint8_t* y) {
  if (blocks) { axpy_custom<<<blocks, l2, stream>>>(x, y, nowhere_declared); }
  aclrtSynchronizeStream(stream);
}
}
#endif
"""


def test_functions_that_launch_an_operators_kernel_are_not_compiled(tmp_path: Path) -> None:
    """The build of an operator does not look into them; a kernel that is wrong is told."""
    project = cubecore.load_op(written(tmp_path, kernel=KERNEL + LAUNCHER))
    assert project.axpy_custom.run(X, Y, alpha=2).launch.findings == ()
    wrong = LAUNCHER.replace("axpy_custom<<<blocks, l2, stream>>>", "axpy_custom")
    project = cubecore.load_op(written(tmp_path / "wrong", kernel=KERNEL + wrong))
    with pytest.raises(RequestError, match="'nowhere_declared' was not declared"):
        project.axpy_custom(X, Y, alpha=2)


X = np.arange(4096, dtype=np.float16).reshape(8, 512) % 13
Y = np.arange(4096, dtype=np.float16)[::-1].reshape(8, 512) % 11


def test_an_operator_runs_by_its_own_tiling(project: Any) -> None:
    assert dir(project) == ["axpy_custom"]
    left = project.AxpyCustom.run(X, Y, alpha=2)
    assert left.launch.findings == ()
    assert (left.tiling.blocks, left.tiling.key, left.tiling.workspaces) == (32, 2, (4096,))
    fields = struct.unpack("<fBxxxQIIII", left.tiling.data)
    assert fields == (2.0, 0, 4096, 128, 0, 0, 0)
    np.testing.assert_array_equal(left.outputs[0], X * 2 + Y)
    z = np.empty_like(X)
    assert project.axpy_custom(X, Y, z, alpha=0.5, offsets=[1, 9]) is z
    np.testing.assert_array_equal(z, X / 2 + Y + 9)


def test_a_struct_beside_the_kernels_that_host_code_alone_includes(tmp_path: Path) -> None:
    name = "axpy_custom_tiling.h"
    folder = written(tmp_path, HOST.replace(f'"{name}"', f'"../op_kernel/{name}"'))
    (folder / "op_host" / name).rename(folder / "op_kernel" / name)
    given = cubecore.load_op(folder).axpy_custom(X, Y, alpha=0.5, offsets=[1, 9])
    np.testing.assert_array_equal(given, X / 2 + Y + 9)


def test_chips_have_their_own_counts_of_blocks(folder: Path) -> None:
    chip = cubecore.load_op(folder, chip="Ascend910B4", settings={"aiv_count": "8"})
    left = chip.axpy_custom.run(X, Y, alpha=1.0)
    assert left.tiling.blocks == 8
    np.testing.assert_array_equal(left.outputs[0], X + Y)


@pytest.mark.parametrize(
    ("arguments", "words", "sentence"),
    [
        (
            (X, Y),
            {},
            "AxpyCustom has no value for the attribute alpha (float); give alpha=...",
        ),
        ((X,), {"alpha": 1}, "AxpyCustom has no value for the input y"),
        (
            (X, Y, X, Y),
            {"alpha": 1},
            "AxpyCustom must take at most 3 arrays (x, y, z), got 4",
        ),
        (
            (X, Y),
            {"alpa": 1},
            "AxpyCustom must name an input, output or attribute (x, y, z, alpha, mode, offsets),"
            " got alpa; did you mean alpha?",
        ),
        (
            (X, Y),
            {"alpha": "1"},
            "the attribute alpha must be float, got '1'",
        ),
        (
            (X.astype(np.int8), Y),
            {"alpha": 1},
            "x must be float16, float32, as AxpyCustom registers it, got int8",
        ),
        (
            (X, Y.astype(np.float32)),
            {"alpha": 1},
            "the types of AxpyCustom must be a combination that it registers,"
            " got x float16, y float32",
        ),
        (
            (X, Y),
            {"alpha": 1, "mode": 1},
            "the tiling function of AxpyCustom returned GRAPH_FAILED;"
            " it does not take these inputs",
        ),
        (
            (X, Y),
            {"alpha": 1, "mode": 2},
            "the tiling function of AxpyCustom: axpy_elsewhere(long) is not provided;"
            " define it in op_host, or leave the call out",
        ),
        (
            (X, Y),
            {"alpha": 1, "mode": 3},
            "the tiling function of AxpyCustom ended with an access to address 0x0;"
            " it had asked for attribute 7, and AxpyCustom registers alpha, mode, offsets:"
            " register an attribute for it",
        ),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(
    project: Any, arguments: tuple[Any, ...], words: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(cubecore.CubecoreError) as refused:
        project.axpy_custom(*arguments, **words)
    assert str(refused.value) == sentence


def test_a_type_of_an_array_that_is_not_registered_names_those_that_are(tmp_path: Path) -> None:
    kernel = KERNEL.replace("(__gm__ DTYPE_Z*)", "(__gm__ DTYPE_OUT*)")
    with pytest.raises(RequestError) as refused:
        cubecore.load_op(written(tmp_path, kernel=kernel)).axpy_custom(X, Y, alpha=1)
    assert str(refused.value).partition("op_kernel/")[2] == (
        "axpy_custom.cpp:30: DTYPE_OUT must be defined, got nothing;"
        " the operator that op_host registers has DTYPE_X, DTYPE_Y, DTYPE_Z"
    )


@pytest.mark.parametrize("line", ["using DTYPE_X = float;", "typedef float DTYPE_X;"])
def test_a_type_that_the_build_defines_is_not_declared_again(tmp_path: Path, line: str) -> None:
    kernel = KERNEL.replace("\n\nextern", f"\n{line}\nextern", 1)
    with pytest.raises(RequestError) as refused:
        cubecore.load_op(written(tmp_path, kernel=kernel)).axpy_custom(X, Y, alpha=1)
    assert str(refused.value).partition("op_kernel/")[2] == (
        "axpy_custom.cpp:3: DTYPE_X is a macro of the operator's build; leave its declaration out"
    )


def test_host_code_gets_the_tilings_of_the_planner(project: Any) -> None:
    asked = cubecore.MultiCoreMatmulTiling()
    asked.set_dim(6)
    asked.set_a_type("GM", "ND", "float16")
    asked.set_b_type("GM", "ND", "float16", is_trans=True)
    asked.set_c_type("GM", "ND", "float32")
    asked.set_org_shape(512, 384, 256)
    asked.set_shape(512, 384, 256)
    wanted = asked.get_tiling()
    left = project.axpy_custom.run(X, Y, alpha=2, mode=6)
    spare = struct.unpack("<III", left.tiling.data[20:32])
    assert spare == (wanted.baseM, wanted.depthB1, asked.get_core_num().m_dim)
    with pytest.raises(cubecore.CubecoreError) as refused:
        project.axpy_custom(X, Y, alpha=2, mode=7)
    asked.set_fix_split(24, -1, -1)
    with pytest.raises(cubecore.CubecoreError) as reason:
        asked.get_tiling()
    assert str(refused.value) == (
        "the tiling function of AxpyCustom returned GRAPH_FAILED;"
        f" MultiCoreMatmulTiling: {str(reason.value).splitlines()[0]}"
    )


def test_tiling_data_of_the_wrong_size_is_refused(project: Any, folder: Path) -> None:
    with pytest.raises(RequestError) as refused:
        project.axpy_custom(X, Y, alpha=1, mode=4)
    place, _, rest = str(refused.value).partition(": tiling data")
    assert Path(place.split(":")[0]).name == "axpy_custom.cpp"
    assert rest == (
        " must have the 32 B of AxpyTiling, got 8 B;"
        " host and kernel need the same struct of tiling data"
    )
    assert folder.is_dir()


def test_findings_are_raised_with_the_first_of_them(project: Any) -> None:
    with pytest.raises(cubecore.CubecoreError) as found:
        project.axpy_custom(X, Y, alpha=1, mode=5)
    assert str(found.value) == (
        "AxpyCustom: z must be written whole, got 32 of 8192 B never written or written from"
        " uninitialised memory, the first at byte 8160; run(...) returns the outputs all the same"
    )
    assert [finding.id for finding in found.value.findings] == ["uninitialised"]


def test_a_project_that_is_none_is_refused(tmp_path: Path, project: Any) -> None:
    with pytest.raises(cubecore.RequestError) as refused:
        cubecore.load_op(tmp_path / "nowhere")
    assert str(refused.value) == f"cannot read {tmp_path / 'nowhere'}: no such folder"
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_host" / "a.cpp").write_text("int a;\n")
    with pytest.raises(cubecore.RequestError) as refused:
        cubecore.load_op(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} has no kernel (op_kernel) of an operator;"
        " give the folder that holds op_host and op_kernel"
    )
    with pytest.raises(cubecore.RequestError) as refused:
        _ = project.axpy_custum
    assert str(refused.value).endswith(
        "must have the operator axpy_custum, got axpy_custom; did you mean axpy_custom?"
    )


def test_the_command_line_runs_and_times_an_operator(project: Any, folder: Path) -> None:
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    given = ["--arg", "x=x.npy", "--arg", "y=y.npy", "--arg", "offsets=1:9", "--arg"]
    taken = ["alpha=0.5", "--out-arg", "z=float16:8x512:z.npy"]
    code, out, err = cli(folder, "run", ".", "--entry", "axpy_custom", *given, *taken)
    assert (code, err, "axpy_custom[32]" in out) == (0, "", True)
    np.testing.assert_array_equal(np.load(folder / "z.npy"), X / 2 + Y + 9)
    code, out, err = cli(folder, "time", ".", *given, *taken)
    assert (code, err, "axpy_custom[32]" in out) == (0, "", True)
    code, _, err = cli(folder, "run", ".", *given, "alpha=fast")
    assert (code, err) == (2, "the attribute alpha must be float, got 'fast'\n")
    code, _, err = cli(folder, "run", ".", "--blocks", 8, *given, "alpha=1")
    said = "--blocks does not apply to an operator; its tiling function says how many\n"
    assert (code, err) == (2, said)
    for words, why in (
        (("--scratch", "workspace"), "its workspace is scratch"),
        (("--outputs", "z"), "its registration says which they are"),
    ):
        said = f"{words[0]} does not apply to an operator; {why}\n"
        assert cli(folder, "run", ".", *words, *given, "alpha=1") == (2, "", said)
    assert dir(project) == ["axpy_custom"]

"""Members of the Matmul object beside IterateAll and tiles: batches, numbers, stores ahead."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from cubecore.isa.cube.mad import Mad
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.tcubetiling import TCubeTiling
from frontends.cpp.cpp_kernels import needs_compiler
from frontends.cpp.test_matmul_object import CHIP, TEXT, data, run

pytestmark = needs_compiler
M, N, K, BATCH, LOOPS = 32, 40, 48, 2, 3
ROOM = """
TBuf<TPosition::VECCALC> held;
p.pipe.InitBuffer(held, 64 * 1024);
LocalTensor<float> room = held.Get<float>();
if (GetBlockIdx() != 0) return;
mm.SetTensorA(p.a);
mm.SetTensorB(p.b, true);
"""
SAVE = "PipeBarrier<PIPE_ALL>();\nDataCopy(p.c, room, {count});\n"
NUMBERED = """
GlobalTensor<float> space;
space.SetGlobalBuffer(reinterpret_cast<float*>(w));
mm.SetWorkspace(space);
mm.template IterateNBatch<{sync}>(3, 2, 2, false);
for (int n = 0; n < 3; ++n) {{
{each}
  PipeBarrier<PIPE_ALL>();
  DataCopy(p.c[n * {part}], room, {part});
  PipeBarrier<PIPE_ALL>();
}}
"""
INTO_UB = "  mm.template GetBatchTensorC<false>(room, 2, 2);"
IN_SPACE = """
  GlobalTensor<float> got = mm.template GetBatchC<false>(2, 2);
  DataCopy(room, got, {part});"""
LAID_OUT = "DataCopy(room, space[n * {part}], {part});"


def layout(name: str) -> tuple[str, Any]:
    """Return a layout's fields of the tiling, and where each matrix lies in it."""
    if name == "BSNGD":
        return "BSNGD", lambda x: x.reshape(3, 2, *x.shape[1:]).transpose(0, 2, 1, 3)
    if name == "SBNGD":
        return "SBNGD", lambda x: x.reshape(3, 2, *x.shape[1:]).transpose(2, 0, 1, 3)
    return name, lambda x: x


def tiling(name: str) -> TCubeTiling:
    """Return a tiling of one product, with the extents of a batch."""
    found = cubecore.plan(m=M, n=N, k=K, trans_b=True, cores=1, chip=CHIP, template="NORM").tiling
    if name == "NORMAL":
        return found
    axes = {
        f"{operand}LayoutInfo{axis}": extent
        for operand, rows, width in (("A", M, K), ("B", N, K))
        for axis, extent in zip("BSNGD", (3, rows, 2, 1, width), strict=True)
    }
    return replace(found, **axes)


def kernel(body: str, name: str = "NORMAL", macro: str = "") -> Any:
    """Return a kernel of A and B in a layout."""
    words = {"a": "GM", "c": "GM", "trans_a": "false", "trans_b": "true", "macro": macro}
    words |= {"config": "MANY", "kind": "__aicore__", "format_c": "ND", "body": body}
    text = TEXT.format(**words)
    for operand, trans in (("AT", "false"), ("BT", "true")):
        plain = f"using {operand} = MatmulType<TPosition::GM, CubeFormat::ND, half, {trans}>;"
        assert plain in text
        text = text.replace(plain, plain.replace(trans, f"{trans}, LayoutMode::{name}"))
    many = "constexpr MatmulConfig MANY = GetNormalConfig(false, true);\nstruct Product"
    return cubecore.inline(text.replace("struct Product", many), chip=CHIP).k


def operands() -> tuple[Any, Any]:
    """Return matrices of A and of B, whose B is stored transposed."""
    rng = np.random.default_rng(4)
    shapes = ((LOOPS * BATCH, M, K), (LOOPS * BATCH, N, K))
    a, b = (rng.integers(-8, 9, shape).astype("f2") for shape in shapes)
    return a, b


@pytest.mark.thinned(12)
@pytest.mark.parametrize("name", ["NORMAL", "BSNGD", "SBNGD", "BNGS1S2"])
@pytest.mark.parametrize(
    ("sync", "each"), [("false", INTO_UB), ("false", IN_SPACE), ("true", LAID_OUT)]
)
def test_several_batches_one_after_another(name: str, sync: str, each: str) -> None:
    part = BATCH * M * N
    body = ROOM + NUMBERED.format(sync=sync, each=each.format(part=part), part=part)
    a, b = operands()
    words, lie = layout(name)
    exact = a.astype("f8") @ b.astype("f8").transpose(0, 2, 1)
    c = np.zeros((LOOPS * BATCH, M, N), "f4")
    given = [np.ascontiguousarray(lie(each)) for each in (a, b)]
    raw = np.frombuffer(tiling(name).to_bytes(), np.uint8).copy()
    space = np.zeros(LOOPS * part, "f4")
    left = kernel(body, words)[1](*given, np.zeros(N, "f4"), c, space, raw)
    assert left.findings == ()
    np.testing.assert_array_equal(c, exact)
    np.testing.assert_array_equal(space.reshape(c.shape), exact)


INTO_ROOM = "mm.IterateBatch(room, 2, 2, false);\n" + SAVE.format(count=BATCH * M * N)
ON_CUBE = """
if ASCEND_IS_AIC {
  if (GetBlockIdx() != 0) return;
  mm.SetTensorA(p.a);
  mm.SetTensorB(p.b, true);
  mm.SetBatchNum(2, 2);
  mm.IterateBatch(p.c, false, 0, false);
}
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("body", "macro"), [(ROOM + INTO_ROOM, ""), (ON_CUBE, "#define ASCENDC_CUBE_ONLY")]
)
def test_a_batch_comes_to_the_unified_buffer_or_to_global_memory(body: str, macro: str) -> None:
    a, b = (each[:BATCH].copy() for each in operands())
    c = np.zeros((BATCH, M, N), "f4")
    raw = np.frombuffer(tiling("NORMAL").to_bytes(), np.uint8).copy()
    left = kernel(body, macro=macro)[1](a, b, np.zeros(N, "f4"), c, np.zeros(1, "f4"), raw)
    assert left.findings == ()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8").transpose(0, 2, 1))


@pytest.mark.sweep
def test_several_batches_need_a_workspace() -> None:
    body = ROOM + "mm.IterateNBatch(3, 2, 2, false);"
    raw = np.frombuffer(tiling("NORMAL").to_bytes(), np.uint8).copy()
    given = [np.zeros(9999, kind) for kind in ("f2", "f2", "f4", "f4", "f4")]
    with pytest.raises(CubecoreError) as caught:
        kernel(body)[1](*given, raw)
    need = "IterateNBatch must have the memory of SetWorkspace, got none"
    assert str(caught.value).endswith(need)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("operand", ["A", "B"])
def test_an_operand_may_be_one_number(operand: str) -> None:
    m, n = (1, N) if operand == "A" else (M, 1)
    plan = cubecore.plan(m=m, n=n, k=K, trans_b=operand == "B", cores=1, chip=CHIP, template="NORM")
    arrays = data(m, n, K)
    body = (
        "if (GetBlockIdx() != 0) return;\nmm.SetTensorA(p.a);\nmm.SetTensorB(p.b);\n"
        f"mm.SetTensor{operand}(half(2));\nmm.IterateAll(p.c);"
    )
    words = {"a": "GM", "c": "GM", "trans_a": "false", "macro": "", "kind": "__aicore__"}
    words |= {"trans_b": "true" if operand == "B" else "false"}
    text = TEXT.format(**words, config="CFG_NORM", format_c="ND", body=body)
    left = run(cubecore.inline(text, chip=CHIP).k, plan.tiling, 1, arrays)
    assert left.findings == ()
    a = np.full((m, K), 2.0) if operand == "A" else arrays["a"].astype("f8")
    b = np.full((K, n), 2.0) if operand == "B" else arrays["b"].astype("f8")
    np.testing.assert_array_equal(arrays["c"], a @ b)


def test_tiles_ahead_go_to_global_memory() -> None:
    fields = {"baseM": 32, "baseN": 48, "singleCoreM": 64, "singleCoreN": 144}
    plan = cubecore.plan(
        m=64, n=144, k=K, cores=1, chip=CHIP, template="NORM", fix=fields, launch="mix"
    )
    arrays = data(64, 144, K)
    body = """
if (GetBlockIdx() != 0 || !p.Begin()) return;
mm.template Iterate<false>();
for (int n = 0; n < 6; ++n) mm.template GetTensorC<false>(p.c);
"""
    words = {"a": "GM", "c": "GM", "trans_a": "false", "trans_b": "false", "macro": ""}
    text = TEXT.format(**words, config="CFG_NORM", kind="__aicore__", format_c="ND", body=body)
    left = run(cubecore.inline(text, chip=CHIP).k, plan.tiling, 1, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8")
    np.testing.assert_array_equal(arrays["c"], exact)


SHARED = """
int along = (p.t.M + p.t.singleCoreM - 1) / p.t.singleCoreM;
if (GetBlockIdx() < along * ((p.t.N + p.t.singleCoreN - 1) / p.t.singleCoreN) && p.Begin())
  mm.IterateAll(p.c);
mm.End();
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("operand", ["A", "B"])
def test_two_aivs_share_what_one_of_them_loads(operand: str) -> None:
    m, n, k = (64, 100, 72) if operand == "B" else (30, 128, 72)
    share = {"singleCoreM": 32} if operand == "B" else {"singleCoreN": 64}
    plan = cubecore.plan(
        m=m, n=n, k=k, cores=2, chip=CHIP, template="IBSHARE", launch="mix", fix=share
    )
    assert plan.tiling.usedCoreNum == 2
    words = {"a": "GM", "c": "GM", "trans_a": "false", "trans_b": "false", "macro": ""}
    words |= {"config": "CFG_IBSHARE_NORM", "kind": "__aicore__", "format_c": "ND"}
    text = TEXT.format(**words, body=SHARED)
    plain = f"using {operand}T = MatmulType<TPosition::GM, CubeFormat::ND, half, false>;"
    assert plain in text
    text = text.replace(plain, plain.replace("false", "false, LayoutMode::NONE, true"))
    arrays = data(m, n, k)
    left = run(cubecore.inline(text, chip=CHIP, trace=True).k, plan.tiling, 1, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8")
    np.testing.assert_array_equal(arrays["c"], exact)
    launch = matmul_launch(plan.problem, plan.tiling, left.chip, preload=False)
    bases = dict.fromkeys(("a", "b", "bias", "c"), 0)
    ours = [t for core in launch.cores for t, _ in core.program.listing(core.addresses(bases))]
    made = [t for trace in left.traces.values() for t, _, _ in trace]
    for loads in (CopyGmToCbufMultiNd2Nz, Mad):
        count = sum(isinstance(each, loads) for each in ours)
        assert count > 0
        assert sum(isinstance(each, loads) for each in made) == count


OWN = """inline int Padded(int rows) { return (rows + 15) / 16 * 16; }
inline void Loaded(const LocalTensor<int8_t>& to, const half* first, int rows, int width,
                   int pitch) {
  GlobalTensor<half> source;
  source.SetGlobalBuffer((__gm__ half*)first);
  DataCopy(to.ReinterpretCast<half>(), source,
           Nd2NzParams(1, rows, width, 0, pitch, Padded(rows), 1, 0));
}
inline void A(const LocalTensor<int8_t>& to, const void*, int row, int column, int rows,
              int columns, const uint64_t tiling, const uint64_t data) {
  auto t = reinterpret_cast<const TCubeTiling*>(tiling);
  auto first = reinterpret_cast<const half*>(data);
  if (TRANS)
    Loaded(to, first + column * t->baseK * t->M + row * t->baseM, columns, rows, t->M);
  else
    Loaded(to, first + row * t->baseM * t->Ka + column * t->baseK, rows, columns, t->Ka);
}
inline void B(const LocalTensor<int8_t>& to, const void* from, int row, int column, int rows,
              int columns, const uint64_t tiling, const uint64_t) {
  auto t = reinterpret_cast<const TCubeTiling*>(tiling);
  auto first = static_cast<const half*>(from);
  if (TRANS)
    Loaded(to, first + column * t->baseN * t->Kb + row * t->baseK, columns, rows, t->Kb);
  else
    Loaded(to, first + row * t->baseK * t->N + column * t->baseN, rows, columns, t->N);
}
inline void Out(const void*, const LocalTensor<int8_t>&, const void* params, const uint64_t,
                const uint64_t) {
  (void)static_cast<const DataCopyOutParams*>(params)->cBurstNum;
}
struct Product"""
CALLED = """
mm.SetUserDefInfo(reinterpret_cast<uint64_t>(tiling));
mm.SetSelfDefineData(reinterpret_cast<uint64_t>(w));
if (GetBlockIdx() != 0 || !p.Begin()) return;
{compute}
mm.End();
"""


def own_kernel(functions: str, trans: bool, macro: str, template: str, body: str) -> Any:
    """Return a kernel of an object with functions of its own for its moves."""
    word = "true" if trans else "false"
    words = {"a": "GM", "c": "GM", "trans_a": word, "trans_b": word, "macro": macro}
    kind = "__cube__" if macro else "__aicore__"
    text = TEXT.format(**words, config=f"CFG_{template}", kind=kind, format_c="ND", body=body)
    config = f"Bias, CFG_{template}"
    text = text.replace(f"{config}>", f"{config}, MatmulCallBackFunc<{functions}>>")
    return cubecore.inline(text.replace("struct Product", OWN.replace("TRANS", word)), chip=CHIP).k


@pytest.mark.thinned(12)
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("functions", ["nullptr, A, nullptr", "nullptr, A, B"])
@pytest.mark.parametrize(
    ("macro", "template", "compute"),
    [
        ("#define ASCENDC_CUBE_ONLY", "NORM", "mm.IterateAll(p.c);"),
        ("", "MDL", "mm.IterateAll(p.c);"),
        ("", "NORM", "while (mm.Iterate()) mm.GetTensorC(p.c);"),
    ],
    ids=["cube", "mix", "tiles"],
)
def test_functions_of_ones_own_load_base_blocks(
    trans: bool, functions: str, macro: str, template: str, compute: str
) -> None:
    m, n, k = 72, 80, 96
    fields = {"baseM": 32, "baseN": 48, "baseK": 32, "stepKa": 2, "stepKb": 2}
    plan = cubecore.plan(
        m=m, n=n, k=k, trans_a=trans, trans_b=trans, cores=1, chip=CHIP, template=template,
        fix=fields,
    )  # fmt: skip
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-8, 9, shape).astype("f2") for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), "f4")
    given = [np.ascontiguousarray(each.T if trans else each) for each in (a, b)]
    raw = np.frombuffer(plan.tiling.to_bytes(), np.uint8).copy()
    kernel = own_kernel(functions, trans, macro, template, CALLED.format(compute=compute))
    elsewhere = np.zeros_like(given[0])  # A lies in the workspace, which its function knows
    left = kernel[1](elsewhere, given[1], np.zeros(n, "f4"), c, given[0], raw)
    assert left.findings == ()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


def test_a_part_of_a_base_block_along_k_is_refused() -> None:
    plan = cubecore.plan(m=32, n=32, k=72, cores=1, chip=CHIP, template="NORM", fix={"baseK": 64})
    body = CALLED.format(compute="mm.IterateAll(p.c);")
    with pytest.raises(CubecoreError) as caught:
        run(
            own_kernel("nullptr, nullptr, B", False, "", "NORM", body),
            plan.tiling,
            1,
            data(32, 32, 72),
        )
    need = "a function of MatmulCallBackFunc must load whole baseK rows along K, got 8 of 64"
    assert str(caught.value).endswith(need)


@pytest.mark.sweep
def test_a_store_of_ones_own_is_refused_where_it_would_be_called() -> None:
    body = "if (GetBlockIdx() == 0) {\n  mm.SetTensorA(p.a);\n  mm.SetTensorB(p.b);\n"
    body += "  if (p.t.isBias == 0) mm.IterateAll(p.c);\n}"
    plan = cubecore.plan(m=32, n=32, k=32, cores=1, chip=CHIP, template="NORM")
    with pytest.raises(CubecoreError) as caught:
        run(own_kernel("Out", False, "", "NORM", body), plan.tiling, 1, data(32, 32, 32))
    need = "a Matmul object must store C by itself, got a function of MatmulCallBackFunc"
    assert str(caught.value).endswith(need)


PARTS = """
if (GetBlockIdx() != 0 || !p.Begin()) return;
int at = 0;
while (mm.Iterate()) {
  mm.GetTensorC(p.c[at], 0, true);
  at += p.t.baseM * p.t.baseN;
}
mm.End();
"""
PARTS_TO_UB = """
TBuf<TPosition::VECCALC> held;
p.pipe.InitBuffer(held, 64 * 1024);
LocalTensor<float> room = held.Get<float>();
if (GetBlockIdx() != 0 || !p.Begin()) return;
int at = 0, size = p.t.baseM * p.t.baseN;
while (mm.Iterate()) {
  Duplicate(room, 0.0f, size);
  PipeBarrier<PIPE_ALL>();
  mm.GetTensorC(room, 0, true);
  DataCopy(p.c[at], room, size);
  at += size;
  PipeBarrier<PIPE_ALL>();
}
"""
OF_PARTS = """constexpr MatmulConfig Of() {
  MatmulConfig made = GetMDLConfig();
  made.isPartialOutput = true;
  return made;
}
constexpr MatmulConfig OF_PARTS = Of();
struct Product"""


def parts_kernel(body: str, trans: bool = False, macro: str = "", config: str = "OF_PARTS") -> Any:
    """Return a kernel of an object whose parts of K are not added up."""
    word = "true" if trans else "false"
    words = {"a": "GM", "c": "GM", "trans_a": word, "trans_b": word, "macro": macro}
    kind = "__cube__" if macro else "__aicore__"
    text = TEXT.format(**words, config=config, kind=kind, format_c="ND", body=body)
    return cubecore.inline(text.replace("struct Product", OF_PARTS), chip=CHIP).k


@pytest.mark.thinned(6)
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize(
    ("macro", "body"),
    [("#define ASCENDC_CUBE_ONLY", PARTS), ("", PARTS), ("", PARTS_TO_UB)],
    ids=["cube", "mix", "to UB"],
)
def test_parts_of_k_come_one_by_one(trans: bool, macro: str, body: str) -> None:
    m, n, k, base_m, base_n, base_k = 48, 80, 72, 32, 48, 32
    fields = {"baseM": base_m, "baseN": base_n, "baseK": base_k, "stepKa": 2, "stepKb": 2}
    plan = cubecore.plan(
        m=m, n=n, k=k, trans_a=trans, trans_b=trans, cores=1, chip=CHIP, template="MDL", fix=fields
    )
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-8, 9, shape).astype("f2") for shape in ((m, k), (k, n)))
    places = [(i, j) for j in range(0, n, base_n) for i in range(0, m, base_m)]
    c = np.full((len(places), 3, base_m, base_n), 99, "f4")
    given = [np.ascontiguousarray(each.T if trans else each) for each in (a, b)]
    raw = np.frombuffer(plan.tiling.to_bytes(), np.uint8).copy()
    kernel = parts_kernel(body, trans, macro)
    left = kernel[1](*given, np.zeros(n, "f4"), c, np.zeros(1, "f4"), raw)
    assert left.findings == ()
    for (i, j), tile in zip(places, c, strict=True):
        for part, got in enumerate(tile):
            columns = slice(part * base_k, (part + 1) * base_k)
            own = a[i : i + base_m, columns].astype("f8") @ b[columns, j : j + base_n].astype("f8")
            np.testing.assert_array_equal(got[: own.shape[0], : own.shape[1]], own)


@pytest.mark.sweep
def test_parts_of_k_must_lie_one_behind_another() -> None:
    plan = cubecore.plan(m=32, n=32, k=32, cores=1, chip=CHIP, template="MDL")
    body = "if (GetBlockIdx() != 0 || !p.Begin()) return;\nmm.Iterate();\nmm.GetTensorC(p.c);"
    with pytest.raises(CubecoreError) as caught:
        run(parts_kernel(body), plan.tiling, 1, data(32, 32, 32))
    need = "GetTensorC's enSequentialWrite must be true with isPartialOutput, got false"
    assert str(caught.value).endswith(need)


def test_parts_of_k_are_not_for_iterate_all() -> None:
    with pytest.raises(CubecoreError) as caught:
        parts_kernel("if (p.Begin()) mm.IterateAll(p.c);")
    need = "a Matmul object with isPartialOutput must be called by Iterate and GetTensorC"
    assert need in str(caught.value)

"""Gathers, scatters and stores by AR in kernels: values, AR, orders, and faults in pairs."""

import re

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import FUNCTION, HEAD, kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
COUNT = 256
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z"
FRAME = """  __ubuf__ float* xu = (__ubuf__ float*)0;
  __ubuf__ uint32_t* yu = (__ubuf__ uint32_t*)4096;
  __ubuf__ float* zu = (__ubuf__ float*)8192;
  __ubuf__ float* tu = (__ubuf__ float*)16384;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 1024);
  asc_copy_gm2ub((__ubuf__ void*)yu, (__gm__ void*)y, 1024);
  asc_copy_gm2ub((__ubuf__ void*)zu, (__gm__ void*)x, 1024);
  asc_copy_gm2ub((__ubuf__ void*)tu, (__gm__ void*)x, 1024);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  __VEC_SCOPE__ {
    Reg::RegTensor<float> a, b;
    Reg::RegTensor<uint32_t> i, j;
    Reg::MaskReg all = Reg::CreateMask<float>(), some;
    Reg::UnalignRegForStore u;
    @
  }
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, 1024);"""
CLEAR = "Reg::ClearSpr<SpecialPurposeReg::AR>();"
SQUEEZE = "Reg::Squeeze<float, Reg::GatherMaskMode::STORE_REG>(b, a, some);"
PACKED = """__ubuf__ float* p = zu;
    {clear}
    for (uint16_t k = 0; k < 4; ++k) {{
      Reg::LoadAlign(a, xu + 64 * k);
      Reg::Compares<float, CMPMODE::GT>(some, a, 0.0f, all);
      {squeeze}
      Reg::StoreUnAlign(p, b, u);{mark}
    }}
    {post}"""
POST = "Reg::StoreUnAlignPost(p, u);"
SQUEEZED = PACKED.format(clear=CLEAR, squeeze=SQUEEZE, mark="", post=POST)


def by_rows(x, y):
    return x[y]


def packed(x, _):
    out, kept = x.copy(), x[x > 0]
    out[: kept.size] = kept
    return out


def put(x, y):
    out = x.copy()
    out[y] = x
    return out


def reversed_rows(x, _):
    return x.reshape(4, 64)[:, ::-1].reshape(-1)


LOOP = """for (uint16_t k = 0; k < 4; ++k) {{
      {body}
    }}"""
IN_C = """vector_float c, d;
    vector_uint32_t at;
    vector_bool on = asc_create_mask_b32(PAT_ALL), m;
    vector_store_unalign w;
    asc_clear_ar_spr();
    """
RIGHT = {
    "gather": (
        by_rows,
        LOOP.format(
            body="Reg::LoadAlign(i, yu + 64 * k); Reg::Gather(a, xu, i, all);"
            " Reg::StoreAlign(zu + 64 * k, a, all);"
        ),
    ),
    "older_names": (
        by_rows,
        LOOP.format(
            body="MicroAPI::DataCopy(i, yu + 64 * k); MicroAPI::DataCopyGather(a, xu, i, all);"
            " MicroAPI::DataCopy(zu + 64 * k, a, all);"
        ),
    ),
    "in_c": (
        by_rows,
        IN_C
        + LOOP.format(
            body="asc_loadalign(at, yu + 64 * k); asc_gather(c, xu, at, on);"
            " asc_storealign(zu + 64 * k, c, on);"
        ),
    ),
    "by_arange": (
        reversed_rows,
        "Reg::RegTensor<int32_t> n;"
        " Reg::Arange<int32_t, Reg::IndexOrder::DECREASE_ORDER>(n, 0);"
        + LOOP.format(
            body="Reg::Gather(a, xu + 64 * k, (Reg::RegTensor<uint32_t>&)n, all);"
            " Reg::StoreAlign(zu + 64 * k, a, all);"
        ),
    ),
    "chained": (
        lambda x, y: x[y[y]],
        LOOP.format(
            body="Reg::LoadAlign(i, yu + 64 * k); Reg::Gather(j, yu, i, all);"
            " Reg::Gather(a, xu, j, all); Reg::StoreAlign(zu + 64 * k, a, all);"
        ),
    ),
    "scatter": (
        put,
        LOOP.format(
            body="Reg::LoadAlign(a, xu + 64 * k); Reg::LoadAlign(i, yu + 64 * k);"
            " Reg::Scatter(zu, a, i, all);"
        ),
    ),
    "scatter_in_c": (
        put,
        IN_C
        + LOOP.format(
            body="asc_loadalign(c, xu + 64 * k); asc_loadalign(at, yu + 64 * k);"
            " asc_scatter(zu, c, at, on);"
        ),
    ),
    "scattered_indices": (
        lambda x, y: x[np.argsort(y)],
        "Reg::RegTensor<int32_t> n;"
        + LOOP.format(
            body="Reg::LoadAlign(i, yu + 64 * k); Reg::Arange(n, int32_t(64 * k));"
            " Reg::Scatter((__ubuf__ int32_t*)tu, n, i, all);"
        )
        + " Reg::LocalMemBar<Reg::MemType::VEC_STORE, Reg::MemType::VEC_LOAD>();"
        + LOOP.format(
            body="Reg::LoadAlign(j, (__ubuf__ uint32_t*)tu + 64 * k);"
            " Reg::Gather(a, xu, j, all); Reg::StoreAlign(zu + 64 * k, a, all);"
        ),
    ),
    "blocks": (
        lambda x, _: np.concatenate([x.reshape(-1, 8)[::-1][:8].reshape(-1), x[64:]]),
        "Reg::RegTensor<int32_t> n; Reg::Arange(n, int32_t(0));"
        " Reg::Muls(n, n, -32, all); Reg::Adds(n, n, 31 * 32, all);"
        " Reg::GatherB(a, xu, (Reg::RegTensor<uint32_t>&)n, all);"
        " Reg::StoreAlign(zu, a, all);",
    ),
    "squeezed": (packed, SQUEEZED),
    "squeezed_in_c": (
        packed,
        IN_C
        + LOOP.format(
            body="asc_loadalign(c, xu + 64 * k); asc_gt_scalar(m, c, 0.0f, on);"
            " asc_squeeze_with_status(d, c, m); asc_storeunalign_postupdate(zu, w, d);"
        )
        + " asc_storeunalign_post(zu, w);",
    ),
}
"""By name: the values of z by those of x and y, and a body."""
AFTER = {"squeezed": "\n  ((__gm__ int64_t*)z)[127] = GetSpr<SpecialPurposeReg::AR>();"}
GATHER = """Reg::LoadAlign(i, yu); {more}
    Reg::Gather(a, {base}, i, all); {mark}
    Reg::StoreAlign(zu, a, all);"""
PLAIN = {"more": "", "base": "xu", "mark": ""}
WRONG = {**PLAIN, "mark": "//!"}
SCATTER = """Reg::LoadAlign(i, yu); Reg::LoadAlign(a, xu); {more}
    Reg::Scatter(zu, a, i, all); {mark}"""
BLOCKS = """Reg::Duplicate(i, {index}, all);
    Reg::GatherB(a, xu, i, all); {mark}
    Reg::StoreAlign(zu, a, all);"""
AGAIN = """Reg::LoadAlign(i, yu); Reg::LoadAlign(a, xu);
    Reg::Scatter(tu, a, i, all); {barrier}
    Reg::Gather(b, tu, i, all); {mark}
    Reg::StoreAlign(zu, b, all);"""
VST_VLD = "Reg::LocalMemBar<Reg::MemType::VEC_STORE, Reg::MemType::VEC_LOAD>();"
TWICE = f"{SQUEEZE} //!\n      {SQUEEZE} //!"
AR = {"clear": CLEAR, "squeeze": SQUEEZE, "mark": "", "post": POST}
FAULTS = {
    "index_outside": (
        "out-of-bounds",
        GATHER.format(**PLAIN),
        GATHER.format(**{**WRONG, "more": "Reg::Adds(i, i, 70000, all);"}),
    ),
    "base_between": (
        "misaligned",
        GATHER.format(**PLAIN),
        GATHER.format(**{**WRONG, "base": "xu + 1"}),
    ),
    "index_twice": (
        "scatter-duplicate",
        SCATTER.format(more="", mark=""),
        SCATTER.format(more="Reg::ShiftRights(i, i, (int16_t)1, all);", mark="//!"),
    ),
    "block_between": (
        "misaligned",
        BLOCKS.format(index=64, mark=""),
        BLOCKS.format(index=33, mark="//!"),
    ),
    "no_barrier": (
        "vf-race",
        AGAIN.format(barrier=VST_VLD, mark=""),
        AGAIN.format(barrier="", mark="//!"),
    ),
    "not_cleared": (
        "squeeze-order",
        SQUEEZED,
        PACKED.format(**{**AR, "clear": "", "mark": " //!"}),
    ),
    "two_squeezes": ("squeeze-order", SQUEEZED, PACKED.format(**{**AR, "squeeze": TWICE})),
    "no_post": (
        "unalign-protocol",
        SQUEEZED,
        PACKED.format(**{**AR, "post": "", "mark": " //!"}),
    ),
}
"""By name: the finding, a right body and a wrong one, whose wrong lines end in //!."""


def bodies():
    made = {
        name: FRAME.replace("@", body) + AFTER.get(name, "") for name, (_, body) in RIGHT.items()
    }
    for name, (_, right, wrong) in FAULTS.items():
        made[f"{name}_right"], made[f"{name}_wrong"] = (
            FRAME.replace("@", b) for b in (right, wrong)
        )
    return made


@pytest.fixture(scope="module")
def built():
    return kernels(bodies(), PARAMETERS, chip=CHIP, auto_sync=False, checks="all")


def inputs():
    rng = np.random.default_rng(3)
    return rng.normal(size=COUNT).astype(np.float32), rng.permutation(COUNT).astype(np.uint32)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_values_and_no_finding(built, name, blocks):
    x, y = inputs()
    if name == "blocks":
        x = np.arange(COUNT, dtype=np.float32)
    z = np.zeros_like(x)
    run = built[name][blocks](x, y, z)
    wanted = RIGHT[name][0](x, y)
    if name == "squeezed" and blocks == 1:  # AR is the bytes that were stored
        assert z.view(np.int64)[127] == 4 * np.count_nonzero(x > 0)
    if name == "squeezed":
        z, wanted = z[:254], wanted[:254]
    assert np.array_equal(z, wanted)
    assert run.findings == () or blocks > 1  # all blocks write to one array


@pytest.mark.thinned(5)
@pytest.mark.parametrize("order", ["late", "early", "random:1"])
@pytest.mark.parametrize("name", ["gather", "chained", "scatter", "scattered_indices", "squeezed"])
def test_other_orders_have_the_same_values(name, order):
    body = FRAME.replace("@", RIGHT[name][1])
    kernel = kernels({"k": body}, PARAMETERS, chip=CHIP, auto_sync=False, order=order).k
    x, y = inputs()
    z = np.zeros_like(x)
    kernel[1](x, y, z)
    assert np.array_equal(z, RIGHT[name][0](x, y))


def marked_lines(name):
    text = HEAD.format(before="")
    for each, body in bodies().items():
        begin = text.count("\n")
        text += FUNCTION.format(name=each, parameters=PARAMETERS, body=body)
        if each == name:
            lines = text.split("\n")
            return [n for n in range(begin, len(lines)) if "//!" in lines[n]]
    raise AssertionError(name)


@pytest.mark.parametrize("name", FAULTS)
def test_the_right_form_is_clean(built, name):
    x, y = inputs()
    assert built[f"{name}_right"][1](x, y, np.zeros_like(x)).findings == ()


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_found_at_its_line(built, name):
    x, y = inputs()
    outcome = built[f"{name}_wrong"][1](x, y, np.zeros_like(x))
    found = {f.location.line for f in outcome.findings if f.id == FAULTS[name][0]}
    marked = marked_lines(f"{name}_wrong")
    assert found
    assert found <= {n + 1 for n in marked} | set(marked)


def test_what_is_said_of_an_index(built):
    x, y = inputs()
    (finding,) = built["index_outside_wrong"][1](x, y, np.zeros_like(x)).findings
    low = 4 * (int(y[0]) + 70000)
    assert finding.message == (
        f"Gather must stay inside UB (0 to 262144 B), got bytes [{low}, {low + 4}) by lane 0"
    )
    doubled = built["index_twice_wrong"][1](x, y, np.zeros_like(x)).findings
    text = next(f.message for f in doubled if f.id == "scatter-duplicate")
    assert re.fullmatch(
        r"Scatter must have an index of its own in each active lane, got \d+ in lane \d+ and in "
        r"lane \d+; which of the two is stored is unknown",
        text,
    )


DUMPED = """
    Reg::LoadAlign(a, xu);
    Reg::Muls(b, a, 2.0f, all);
    asc_dump_reg<float>(b, 7, 4);
    Reg::StoreAlign(zu, b, all);"""


def test_a_register_is_printed_as_the_calls_before_leave_it(capsys):
    kernel = kernels({"k": FRAME.replace("@", DUMPED)}, PARAMETERS, chip=CHIP, auto_sync=False).k
    x = np.arange(COUNT, dtype=np.float32)
    z = np.zeros_like(x)
    run = kernel[1](x, np.arange(COUNT, dtype=np.uint32), z)
    said = capsys.readouterr().out
    assert "desc 7 at " in said
    assert "4 float32 in ND, a register [0, 256)" in said
    assert said.rstrip().endswith("0 | 0 2 4 6")
    assert np.array_equal(z[:64], 2 * x[:64])
    assert run.findings == ()

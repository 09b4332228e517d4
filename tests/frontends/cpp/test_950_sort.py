"""Sort with a SortConfig on Ascend 950 against NumPy's stable sort."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = needs_compiler
CHIP, N = "Ascend950PR_9589", 200
TYPES = {
    "uint8_t": "uint8",
    "int8_t": "int8",
    "uint16_t": "uint16",
    "int16_t": "int16",
    "uint32_t": "uint32",
    "int32_t": "int32",
    "half": "float16",
    "bfloat16_t": "bfloat16",
    "float": "float32",
    "uint64_t": "uint64",
    "int64_t": "int64",
}
FRAME = """
  static constexpr SortConfig config = {{SortType::{kind}_SORT, {descends}}};
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory[5];
  for (auto& each : memory) pipe.InitBuffer(each, 8192);
  auto a = memory[0].Get<{T}>(), b = memory[1].Get<{T}>();
  auto i = memory[2].Get<{U}>(), j = memory[3].Get<{U}>();
  auto tmp = memory[4].Get<uint8_t>();
  const auto moved = [](auto count) {{
    return DataCopyExtParams(1, static_cast<uint32_t>(count), 0, 0, 0);
  }};
  GlobalTensor<{T}> xg, zg;
  GlobalTensor<{U}> pg, qg;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  pg.SetGlobalBuffer((__gm__ {U}*)p);
  qg.SetGlobalBuffer((__gm__ {U}*)q);
  DataCopyPad(a, xg, moved(n * sizeof({T})), {{false, 0, 0, 0}});
  DataCopyPad(i, pg, moved(n * sizeof({U})), {{false, 0, 0, 0}});
  PipeBarrier<PIPE_ALL>();
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(zg, b, moved(n * sizeof({T})));
  {indices}
"""
FORMS = {
    "values": "Sort<{T}, false, config>(b, a, tmp, n);",
    "values, without a workspace": "Sort<{T}, false, config>(b, a, n);",
    "places": "Sort<{T}, false, config>(b, j, a, tmp, n);",
    "places, without a workspace": "Sort<{T}, true, config>(b, j, a, n);",
    "indices": "Sort<{T}, {U}, false, config>(b, j, a, i, tmp, n);",
    "indices, without a workspace": "Sort<{T}, {U}, false, config>(b, j, a, i, n);",
}


def body(word, form, kind="RADIX", descends=False, index="uint32_t"):
    given = {"T": word, "U": index, "kind": kind, "descends": str(descends).lower()}
    copied = "" if form.startswith("values") else f"DataCopyPad(qg, j, moved(n * sizeof({index})));"
    return FRAME.format(call=FORMS[form].format(**given), indices=copied, **given)


INDICES = ("uint32_t", "int32_t", "uint64_t", "int64_t")
CASES = {
    f"k{n}": (word, "indices", "RADIX", n % 2 == 1, INDICES[n % 4]) for n, word in enumerate(TYPES)
}
CASES |= {
    f"form{n}": ("int16_t", form, "RADIX", n % 2 == 0, "uint32_t") for n, form in enumerate(FORMS)
}
CASES |= {
    "merge": ("half", "indices", "MERGE", True, "uint32_t"),
    "merged": ("float", "places", "MERGE", False, "uint32_t"),
}


@pytest.fixture(scope="module")
def built(chosen):
    names = {each["name"] for each in chosen("test_sort_is_that_of_numpy")}
    bodies = {name: body(*CASES[name]) for name in sorted(names)}
    return kernels(bodies, "GM_ADDR x, GM_ADDR p, GM_ADDR z, GM_ADDR q, uint32_t n", chip=CHIP)


def elements(word, count):
    """Return elements of a type, some of them equal, from its least to its largest."""
    rng = np.random.default_rng(5)
    name = TYPES[word]
    kind = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    if "float" in name:
        x = rng.normal(size=count).astype(np.float32)
        x[:6] = np.inf, -np.inf, 0.5, 0.5, -2, -2
        return x.astype(kind)
    info = np.iinfo(kind)
    x = rng.integers(info.min, info.max, count, kind, endpoint=True)
    x[:6] = info.min, info.max, 1, 1, info.max, 0
    return x


@pytest.mark.thinned(10)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("count", [N, 1])
def test_sort_is_that_of_numpy(built, name, count):
    word, form, kind, descends, index = CASES[name]
    count = 192 if kind == "MERGE" else count
    x = elements(word, max(count, 6))[:count]
    p = np.random.default_rng(6).integers(0, 2**31, count).astype(index.removesuffix("_t"))
    z, q = np.zeros_like(x), np.zeros(count, index.removesuffix("_t"))
    assert [f.message for f in built[name][1](x, p, z, q, count).findings] == []
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    order = np.lexsort((np.arange(count), wide))
    if descends:
        order = count - 1 - np.lexsort((np.arange(count), wide[::-1]))[::-1]
    assert z.tobytes() == x[order].tobytes()
    if form.startswith("places"):
        assert np.array_equal(q, order)
    elif form.startswith("indices"):
        assert np.array_equal(q, p[order])


REFUSED = {
    "MERGE_SORT of integers": (
        body("int32_t", "values", "MERGE"),
        "Sort by MERGE_SORT must take half or float, got another type",
    ),
    "indices of 64 bits for MERGE_SORT": (
        body("half", "indices", "MERGE", index="int64_t"),
        "Sort.srcIndexTensor must be uint32_t, or int32_t, uint64_t or int64_t for RADIX_SORT, "
        "got another type",
    ),
    "a count for MERGE_SORT": (
        body("half", "values", "MERGE").replace("const auto moved", "n = 33;\n  const auto moved"),
        "Sort.calCount must be a multiple of 32 for MERGE_SORT, got 33",
    ),
    "more than there is": (
        body("half", "values").replace("const auto moved", "n = 4097;\n  const auto moved"),
        "Sort.calCount must be at most the elements of srcTensor and dstTensor, got 4097",
    ),
    "in place": (
        body("half", "values").replace("(b, a, tmp, n)", "(a[16], a, tmp, n)"),
        "Sort.dstTensor must not overlap srcTensor, got the same bytes",
    ),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_page_leaves_out_is_refused_in_a_sentence(name):
    text, sentence = REFUSED[name]
    parameters = "GM_ADDR x, GM_ADDR p, GM_ADDR z, GM_ADDR q, uint32_t n"
    x = np.zeros(64, np.float16)
    with pytest.raises(CubecoreError) as caught:
        kernel(text, parameters, chip=CHIP)[1](x, x, x, x, 64)
    assert str(caught.value).splitlines()[0].partition(": ")[2] == sentence

"""The scanner: what it rewrites, what it leaves, which entries it sees."""

import pytest

from cubecore.frontends.cpp.compile.scanner import scanned

REWRITTEN = {
    "add<<<8, nullptr, stream>>>(x, y);": "CUBECORE_LAUNCH((add), (8, nullptr, stream), (x, y));",
    "f<a, b><<<n, 0, s>>>(g(x), (y));": "CUBECORE_LAUNCH((f<a, b>), (n, 0, s), (g(x), (y)));",
    "ns::f<a<b>><<<n, 0, s>>>();": "CUBECORE_LAUNCH((ns::f<a<b>>), (n, 0, s), ());",
    "__global__ [aicore] void k() {}": "__global__  void k() {}",
    "__ubuf__ float x[64];": (
        "float* x = ::cubecore::local_array<float, (64)>(::cubecore::Mem::UB);"
    ),
    "__cc__ float c[16 * 16];": (
        "float* c = ::cubecore::local_array<float, (16 * 16)>(::cubecore::Mem::L0C);"
    ),
    "__ubuf__ float a[8], b[n + 1];": (
        "float* a = ::cubecore::local_array<float, (8)>(::cubecore::Mem::UB); "
        "float* b = ::cubecore::local_array<float, (n + 1)>(::cubecore::Mem::UB);"
    ),
    "__ubuf__ half x[4][f[1]];": (
        'static_assert(false, "an array must have one length, got [4][f[1]]");'
    ),
    "__ubuf__ Buffers b;": "::cubecore::Unconstructed<Buffers>::type b;",
    "__ubuf__ Buffers b{};": (
        "Buffers& b = ::cubecore::local_struct<Buffers>(::cubecore::Mem::UB);"
    ),
}
LEFT = (
    '"add<<<8, 0, s>>>(x)"',
    "// add<<<8, 0, s>>>(x)\n",
    "/* [aicore] */",
    'R"x(add<<<1,0,s>>>(x) )" [aicore] )x"',
    "a << b; c >> d; e[f[g[0]]];",
    "__ubuf__ float* p;",
    "__ubuf__ float* p = q;",
    "void f(__ubuf__ half* x, __gm__ half* y) {}",
    "std::vector<std::vector<std::vector<int>>> x(3);",
    "'\\''; '\"'; 1'000'000;",
)


@pytest.mark.parametrize("text", REWRITTEN)
def test_words_that_cpp_lacks_are_rewritten(text):
    assert scanned(text).text == REWRITTEN[text]


@pytest.mark.parametrize("text", LEFT)
def test_everything_else_is_left_alone(text):
    found = scanned(text)
    assert (found.text, found.rewritten) == (text, False)


def test_lines_keep_their_numbers():
    text = "a<<<1,\n0,\ns>>>(x,\n  y);\nb"
    assert scanned(text).text.count("\n") == text.count("\n")


def test_entries_have_their_parameters_and_words():
    text = """
    template <typename T, int N>
    __global__ __aicore__ void first(GM_ADDR a, __gm__ T* b, const Tiling<1, 2> t = {}) { f(); }
    extern "C" __global__ __mix__(1, 2) void second() {}
    extern "C" __global__ __aicore__ void only_declared(GM_ADDR a);
    """
    first, second = scanned(text).entries
    assert (first.name, first.parameters, first.templated) == ("first", ("a", "b", "t"), True)
    assert (second.name, second.parameters, second.templated) == ("second", (), False)
    assert "__mix__" in second.words
    assert (first.line, second.line) == (3, 4)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ __launch_bounds__(4",
        "__global__ __launch_bounds__(",
        "__global__ __aicore__(",
        "> <<<1, 2, 3>>>(a)",
        "a; > <<<1, 2, 3>>>(a)",
    ],
)
def test_a_text_that_ends_early_has_no_entry(text):
    found = scanned(text)
    assert found.entries == ()
    assert found.text == text

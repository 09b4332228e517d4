"""The scanner: what it rewrites, what it leaves, which entries it sees."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from cubecore.frontends.cpp.rewriting.scanner import scanned
from cubecore.frontends.cpp.rewriting.source import Source, source_of
from cubecore.frontends.cpp.toolchain.compiler import compiler


def _array(memory, name, length):
    mem = f"::cubecore::Mem::{memory}"
    made = f"::cubecore::local_array<{mem}, float, ({length})>()"
    return f"::cubecore::ArrayOf<{mem}, float> {name} = {made};"


REWRITTEN = {
    "add<<<8, nullptr, stream>>>(x, y);": "CUBECORE_LAUNCH((add), (8, nullptr, stream), (x, y));",
    "__ubuf__ float w[8]; reinterpret_cast<half*>(w + 4); reinterpret_cast<half*>(v);": (
        f"{_array('UB', 'w', 8)} reinterpret_cast<half*>(::cubecore::plain_pointer(w) + 4); "
        "reinterpret_cast<half*>(v);"
    ),
    "f<a, b><<<n, 0, s>>>(g(x), (y));": "CUBECORE_LAUNCH((f<a, b>), (n, 0, s), (g(x), (y)));",
    "ns::f<a<b>><<<n, 0, s>>>();": "CUBECORE_LAUNCH((ns::f<a<b>>), (n, 0, s), ());",
    "__global__ [aicore] void k() {}": "__global__  void k() {}",
    "[host, aicore] int f(int (&x)[3]);": " int f(int (&x)[3]);",
    "__ubuf__ float x[64];": _array("UB", "x", "64"),
    "__cc__ float c[16 * 16];": _array("L0C", "c", "16 * 16"),
    "__ubuf__ float a[8], b[n + 1];": f"{_array('UB', 'a', '8')} {_array('UB', 'b', 'n + 1')}",
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


MEMBERS = {
    "function": """
#include <cstdio>
#include <type_traits>
int part = 1;
struct Kernel {
  template <int P = 7, typename T>
  static int other(T x) { return 0; }
  template <int P = 2>
  int operator()(int a) { return 100 + a + P; }
  template <>
  int operator()<1>(int a) { return 200 + a; }
  template <> int operator()<3>(int a) { return 300 + a; }
  template <typename T, bool B>
  static int kind(T) { return 1; }
  template <>
  int kind<float, true>(float) { return 2; }
};
int main() {
  Kernel k;
  std::printf("%d %d %d %d ", k(1), k.operator()<1>(1), k.operator()<3>(1), k.operator()<4>(1));
  std::printf("%d %d %d", Kernel::kind<float, true>(0), Kernel::kind<float, false>(0),
              Kernel::kind<int, true>(0));
}
""",
    "class": """
#include <cstdio>
#include <type_traits>
template <typename U>
struct Outer {
  template <typename T, int = 4> struct Size { static constexpr int value = sizeof(T); };
  template <> struct Size<void, 4> { static constexpr int value = 0; };
  template <typename T> struct Size<T*, 4> { static constexpr int value = -1; };
};
int main() {
  using O = Outer<int>;
  std::printf("%d %d %d", O::Size<char>::value, O::Size<void>::value, O::Size<char*>::value);
}
""",
}
PRINTED = {"function": "103 201 301 105 2 1 1", "class": "1 0 -1"}


@pytest.mark.parametrize("kind", MEMBERS)
def test_specialisations_inside_a_class_mean_what_they_say(kind, tmp_path):
    """Clang takes the texts as they stand and prints the same; g++ before 14 does not take them."""
    text = scanned(MEMBERS[kind]).text
    assert text.count("\n") == MEMBERS[kind].count("\n")
    source, program = tmp_path / "a.cpp", tmp_path / "a"
    source.write_text(text)
    command = [*compiler().command, "-std=c++17", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    assert (
        subprocess.run([program], check=True, capture_output=True).stdout.decode()
        == (PRINTED[kind])
    )


UNTOUCHED = (
    "template <typename T> struct A {}; template <> struct A<int> { int x; };",
    "struct A { template <typename... T> void f(); template <> void f<int>() {} };",
    "struct A { template <> void g<int>() {} };",
    "struct A { int f() { return this->template g<1>(); } };",
)


@pytest.mark.parametrize("text", UNTOUCHED)
def test_other_specialisations_are_left_to_the_compiler(text):
    assert scanned(text).text == text


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("__mix__(1, 2)", "mix"),
        ("__mix__(1, 1)", "mix_1_1"),
        ("__mix__(0, 1)", "vector"),
        ("__mix__(1, 0)", "cube"),
        ("__mix__", "mix"),
    ],
)
def test_a_mix_without_one_of_its_cores_is_a_launch_of_the_other(said, kind):
    source = Source(Path("a.cpp"), f'extern "C" __global__ {said} void k() {{}}')
    assert source.kind("k") == kind


@pytest.mark.parametrize(
    ("tasks", "kind"),
    [
        ("KERNEL_TYPE_AIV_ONLY", "vector"),
        ("KERNEL_TYPE_AIC_ONLY", "cube"),
        ("KERNEL_TYPE_MIX_AIC_1_2", "mix"),
        ("KERNEL_TYPE_MIX_AIC_1_1", "mix_1_1"),
        ("KERNEL_TYPE_MIX_AIC_1_1 KERNEL_TYPE_AIV_ONLY", "mix_1_1"),
        ("KERNEL_TYPE_MIX_AIC_1_1 KERNEL_TYPE_MIX_AIC_1_2", "mix"),
        ("KERNEL_TYPE_MIX_AIC_1_0", "cube"),
        ("KERNEL_TYPE_MIX_VECTOR_CORE", "vector"),
        ("KERNEL_TYPE_MIX_AIV_1_0", "vector"),
        ("KERNEL_TYPE_MIX_AIV_1_0 KERNEL_TYPE_AIV_ONLY", "vector"),
        ("KERNEL_TYPE_AIC_ONLY KERNEL_TYPE_AIV_ONLY", "mix"),
    ],
)
def test_the_type_of_a_kernel_says_which_cores_it_runs_on(tasks, kind):
    """Page "设置Kernel类型": MIX_AIV_1_0 starts AIVs alone."""
    calls = "".join(f"KERNEL_TASK_TYPE_DEFAULT({task});" for task in tasks.split())
    source = Source(Path("a.cpp"), f'extern "C" __global__ __aicore__ void k() {{{calls}}}')
    assert source.kind("k") == kind


def _conditional(rng, macros, depth=0):
    """Return lines with conditions of macros, each line of code with a word of its own."""
    if depth == 4 or rng.random() < 0.3:
        return [f"int w{rng.getrandbits(40)};"]
    name = rng.choice(list(macros))
    number = rng.randint(0, 3)
    conditions = [
        f"#if {name} {rng.choice(['==', '!=', '<', '<=', '>', '>='])} {number}  // of ours",
        f"#if {name}", f"#ifdef {name}", f"#ifndef {name}",
        f"#if defined({name})", f"# if !defined \\\n {name} /* not */",
    ]  # fmt: skip
    lines = [rng.choice(conditions), *_conditional(rng, macros, depth + 1)]
    for _ in range(rng.randint(0, 2)):
        lines += [f"#elif {name} == {rng.randint(0, 3)}", *_conditional(rng, macros, depth + 1)]
    if rng.random() < 0.6:
        lines += ["#else", *_conditional(rng, macros, depth + 1)]
    return [*lines, "#endif", *_conditional(rng, macros, depth + 1)]


@pytest.mark.parametrize("seed", range(8))
def test_words_are_those_that_conditions_leave_in(seed, tmp_path):
    rng = random.Random(seed)
    macros = {"SCENE": rng.randint(0, 3), "FORM": rng.randint(0, 3), "EMPTY": 0}
    text = "\n".join(_conditional(rng, macros) + _conditional(rng, macros)) + "\n"
    path = tmp_path / "conditions.cpp"
    path.write_text(text)
    given = tuple(f"{name}={value}" for name, value in macros.items())
    command = [*compiler().command, "-E", "-P", *(f"-D{each}" for each in given), str(path)]
    left = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = {"if", "elif", "else", "endif", "ifdef", "ifndef", "defined", *macros}
    assert scanned(text, given).words - ours == set(re.findall(r"\w+", left))


CONDITIONAL = """
#if SCENE == 2
#define ASCENDC_CUBE_ONLY
extern "C" __global__ __cube__ void twice(GM_ADDR x)
#else
extern "C" __global__ __aicore__ void twice(GM_ADDR x)
#endif
{
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm);
}
"""


@pytest.mark.parametrize(
    ("given", "kind"), [((), "mix"), (("SCENE=1",), "mix"), (("SCENE=2",), "cube")]
)
def test_an_entry_is_of_the_kind_that_its_conditions_leave(given, kind):
    source = Source(Path("twice.cpp"), CONDITIONAL, given)
    assert [entry.parameters for entry in source.scan.entries] == [("x",)]
    assert source.kind("twice") == kind


def test_conditions_of_macros_that_are_not_given_leave_everything():
    text = "#ifdef SCENE\nint a;\n#elif FORM > 1\nint b;\n#else\nint c;\n#endif\n"
    each = {"a", "b", "c"}
    assert scanned(text).words & each == each
    assert scanned(text, ("FORM=1",)).words & each == {"a", "c"}
    assert scanned(f"#define FORM 2\n{text}", ("FORM=1",)).words & each == each


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, "mix"),
        ({"scene.h": '#include "deeper.h"\n', "deeper.h": "#define SCENE 2\n"}, "cube"),
        ({"scene.h": '#include "nowhere.h"\n'}, "cube"),  # may define it
    ],
)
def test_a_macro_that_nothing_defines_is_none(headers, kind, tmp_path):
    for name, text in headers.items():
        (tmp_path / name).write_text(text)
    path = tmp_path / "twice.cpp"
    path.write_text('#include "scene.h"\n' * bool(headers) + CONDITIONAL)
    assert source_of(path).kind("twice") == kind
    (tmp_path / "scene.h").write_text("#define SCENE 2\n")
    assert source_of(path).kind("twice") == ("cube" if headers else kind)

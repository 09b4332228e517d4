"""Errors of the compiler as users see them: the whole error, their line, and no type of ours."""

import contextlib
import json
import traceback

import pytest

import cubecore
from cubecore.errors import RequestError, both_ends
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.excerpts import excerpt
from cubecore.frontends.cpp.toolchain.spelling import as_written
from frontends.cpp.cpp_kernels import cli, kernel, needs_compiler

VERBOSE = "--verbose shows everything the compiler says"
MATMUL = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {
  using A = matmul::MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using C = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
  matmul::Matmul<A, A, C> mm;
  GlobalTensor<float> cG;
  mm.IterateAl(cG);
}
"""
HERE = """half h(1.0f);
bfloat16_t b;
int4b_t i;
LocalTensor<half> l;
LocalTensor<int4b_t> l4;
GlobalTensor<bfloat16_t> g;
TQue<QuePosition::VECIN, 2> q;
TPipe pipe;
"""
WRONG = {
    "h.foo();": "has no member named 'foo'",
    "i.foo();": "has no member named 'foo'",
    "b = g;": "no match for 'operator='",
    "h = l;": "no match for 'operator='",
    "l4 = l;": "no match for 'operator='",
    "bfloat16_t* p = &h;": "cannot convert 'half*' to 'bfloat16_t*' in initialization",
    "float* p = l;": "cannot convert 'AscendC::LocalTensor<half>' to 'float*' in initialization",
    "h + l;": "no match for 'operator+' "
    "(operand types are 'half' and 'AscendC::LocalTensor<half>')",
    "l.GetVale(3);": "'AscendC::LocalTensor<half>' has no member named 'GetVale'; "
    "did you mean 'GetValue'?",
    "g.GetVale(3);": "'AscendC::GlobalTensor<bfloat16_t>' has no member named 'GetVale'; "
    "did you mean 'GetValue'?",
    "q.EnQ(l);": "'AscendC::TQue<AscendC::TPosition::VECIN, 2>' has no member named 'EnQ'; "
    "did you mean 'EnQue'?",
    "pipe.InitBufer(q, 2, 3);": "'AscendC::TPipe' has no member named 'InitBufer'; "
    "did you mean 'InitBuffer'?",
    "DataCopy(l, g, 32);": "no matching function for call to 'DataCopy("
    "AscendC::LocalTensor<half>&, AscendC::GlobalTensor<bfloat16_t>&, int)'",
    "Add(l, l4, l, 32);": "no matching function for call to 'Add(AscendC::LocalTensor<half>&, "
    "AscendC::LocalTensor<int4b_t>&, AscendC::LocalTensor<half>&, int)'",
    "Muls(l, l, g, 32);": "no matching function for call to "
    "'half::half(AscendC::GlobalTensor<bfloat16_t>&)'",
    "Cast(l, l4, RoundMode::CAST_NON, 32);": "'CAST_NON' is not a member of "
    "'AscendC::RoundMode'; did you mean 'CAST_NONE'?",
}
"""Lines of a kernel, and how g++ ends its error, with types as a user writes them."""

pytestmark = needs_compiler
of_gcc = pytest.mark.skipif(compiler().is_clang, reason="clang words its errors otherwise")


@of_gcc
def test_a_matmul_object_without_the_member_is_an_error_and_the_line(tmp_path):
    (tmp_path / "mm.cpp").write_text(MATMUL)
    said = (
        "mm.cpp:9 does not compile: 'AscendC::Matmul<...>' has no member named 'IterateAl'; "
        f"did you mean 'IterateAll'?; {VERBOSE}"
    )
    block = "    9 |   mm.IterateAl(cG);\n      |      ^~~~~~~~~"
    words = ("run", "mm.cpp", "--blocks", "1")
    assert cli(tmp_path, *words) == (2, "", f"{said}\n{block}\n")
    code, out, err = cli(tmp_path, *words, "--json")
    error = json.loads(out)["error"]
    assert (code, err, error["message"], error["detail"]) == (2, "", said, block)


@of_gcc
def test_the_member_as_it_is_called_compiles():
    assert cubecore.inline(MATMUL.replace("IterateAl(", "IterateAll(")).k.name == "k"


@of_gcc
@pytest.mark.parametrize("line", WRONG)
@pytest.mark.thinned(4)
def test_types_in_an_error_are_those_that_the_kernel_has(line):
    with pytest.raises(RequestError) as caught:
        _ = kernel(HERE + line).k
    error = caught.value
    assert str(error).startswith("inline.cpp:13 does not compile: ")
    assert WRONG[line] in str(error)
    assert error.detail.startswith(f"   13 | {line}\n      | ")
    shown = "".join(traceback.format_exception(error))
    assert error.detail in shown
    assert not any(ours in str(error) + error.detail for ours in ("cubecore::", "Float16", "aka"))


@of_gcc
def test_verbose_shows_all_the_compiler_says_and_no_type_of_ours(tmp_path):
    (tmp_path / "k.cpp").write_text(MATMUL.replace("mm.IterateAl(cG)", "half h(cG, 1)"))
    code, _, err = cli(tmp_path, "run", "k.cpp", "--blocks", "1", "--verbose")
    assert code == 2
    assert "candidate" in err
    assert "const half&" in err
    assert "cubecore::" not in err


GCC = {
    "'const class AscendC::TPipe' has no": "'const AscendC::TPipe' has no",
    "'half' {aka 'cubecore::Float16<5, 10>'} and 'X'": "'half' and 'X'",
    "'half' (aka 'Float16<5, 10>') and 'X'": "'half' and 'X'",
    "'using half = struct cubecore::Float16<5, 10>' has": "'half' has",
    "'void AscendC::SetFlag(int, cubecore::Here)'": "'void AscendC::SetFlag(int)'",
    "'int64_t asc_get_block_idx(cubecore::Here)'": "'int64_t asc_get_block_idx()'",
    "'AscendC::LocalTensor<cubecore::Float16<8, 7> >'": "'AscendC::LocalTensor<bfloat16_t>'",
    "'cubecore::Storage<3>'": "'hifloat8_t'",
    "'Mine<AscendC::MatmulType<AscendC::TPosition::GM, AscendC::CubeFormat::ND, int> >'": (
        "'Mine<AscendC::MatmulType<...>>'"
    ),
    "'detail::Mine'": "'detail::Mine'",
    "'AscendC::detail::Queue<2>'": "'AscendC::Queue<2>'",
    "static assertion failed: N > 3": "static assertion failed: N > 3",
}


@pytest.mark.parametrize("said", GCC)
def test_words_of_compilers_as_users_write_them(said):
    assert as_written(said) == GCC[said]


def test_of_a_long_text_both_ends_are_shown():
    text = "a" * 500 + "b" * 328
    assert both_ends(text) == "a" * 200 + "... (828 characters) ..." + "b" * 200
    assert both_ends("a" * 400) == "a" * 400


LONG = "x" * 300 + "wrong" + "y" * 300


@pytest.mark.parametrize(
    ("own", "copy", "column", "shown"),
    [
        ("\tq.EnQ(l);", None, 11, "    2 |         q.EnQ(l);\n      |           ^"),
        (
            "k<<<1>>>(a, b);",
            "LAUNCH(k, a, b);",
            14,
            "    2 | k<<<1>>>(a, b);\n      |             ^",
        ),
        ("k<<<1>>>(a, b);", "LAUNCH(k, a, b);", 1, "    2 | k<<<1>>>(a, b);"),
        (LONG, None, 301, f"    2 | {LONG[220:380]}\n      | {'':80}^"),
        ("int \x1b[2J = 1;", None, 5, "    2 | int \\x1b[2J = 1;\n      |     ^"),
    ],
)
def test_the_caret_is_under_the_character_of_the_users_line(tmp_path, own, copy, column, shown):
    """The compiler may have read a rewritten copy, of which the column is."""
    file, work = tmp_path / "k.cpp", tmp_path / "work"
    work.mkdir()
    file.write_text(f"first\n{own}\n")
    if copy is not None:
        (work / "1-k.cpp").write_text(f'#line 1 "{file}"\nfirst\n{copy}\n')
    assert excerpt([], file, 2, column, work, counts_bytes=False) == shown
    assert excerpt([], file, 9, column, work, counts_bytes=False) == ""


def test_bytes_are_counted_where_the_compiler_counts_them(tmp_path):
    file = tmp_path / "k.cpp"
    file.write_text('auto s = "é" + wrong;\n')
    marks = [
        excerpt([], file, 1, at, tmp_path, counts_bytes=b) for at, b in ((16, False), (17, True))
    ]
    assert marks == ['    1 | auto s = "é" + wrong;\n      |                ^'] * 2


@pytest.fixture
def compiler_of(tmp_path, monkeypatch):
    """Return what makes a script the compiler, that refuses an argument."""

    @contextlib.contextmanager
    def made(name, said):
        script = tmp_path / name
        refuses = (
            f'case "$*" in *--version*) echo "{name} 8.3.0";; *) echo "{said}" >&2; exit 1;; esac'
        )
        script.write_text(f"#!/bin/sh\n{refuses}\n")
        script.chmod(0o700)
        monkeypatch.setenv("CUBECORE_CXX", str(script))
        monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "cache"))
        compiler.cache_clear()
        yield
        compiler.cache_clear()

    return made


REFUSED_FLAGS = {
    "g++: error: unrecognized command-line option '-fno-gnu-unique'; did you mean '-x'?": (
        "-fno-gnu-unique"
    ),
    "cc1plus: error: unrecognized command line option -Wno-narrowing": "-Wno-narrowing",
    "clang: error: unknown argument: '-fmax-errors=1'": "-fmax-errors=1",
    "clang: error: unsupported option '-fno-common' for target 'x'": "-fno-common",
    "error: invalid value 'c++17' in '-std=c++17'": "-std=c++17",
    "error: unsupported linker arg: -Bsymbolic-functions": "-Bsymbolic-functions",
    "/usr/bin/ld: unrecognized option '-Bsymbolic-functions'": "-Bsymbolic-functions",
    "ld.lld: error: unknown argument '--wrap=printf'": "--wrap=printf",
    "ld: unknown options: -z": "-z",
}


@pytest.mark.parametrize("said", REFUSED_FLAGS)
def test_a_flag_of_ours_that_the_compiler_refuses_is_not_told_of_the_file(
    compiler_of, tmp_path, said
):
    (tmp_path / "mm.cpp").write_text(MATMUL)
    with compiler_of("c++old", said):
        found = cli(tmp_path, "run", "mm.cpp", "--blocks", "1")
    sentence = f"the compiler c++old 8.3.0 refuses the flag {REFUSED_FLAGS[said]}"
    remedy = "set CUBECORE_CXX to g++ 11 or later, or clang++"
    assert found == (2, "", f"{sentence}; {remedy}\n")


@of_gcc
def test_a_flag_of_the_users_is_to_be_left_out(tmp_path, monkeypatch):
    (tmp_path / "mm.cpp").write_text(MATMUL)
    command = f"{compiler().command[0]} -fno-such-flag"
    version = compiler().version()
    monkeypatch.setenv("CUBECORE_CXX", command)
    monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "cache"))
    compiler.cache_clear()
    found = cli(tmp_path, "run", "mm.cpp", "--blocks", "1")
    compiler.cache_clear()
    said = f"the compiler {version} refuses the flag -fno-such-flag; leave it out of CUBECORE_CXX"
    assert found == (2, "", f"{said}\n")

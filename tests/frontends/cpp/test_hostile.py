"""Hostile host programs: one sentence each, and nothing is left behind."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.cpp.toolchain import diagnostics
from cubecore.frontends.cpp.toolchain.compiler import compiler
from frontends.cpp.cpp_kernels import cli, demo, has_ended, needs_compiler

pytestmark = needs_compiler
FRAME = """#include "acl/acl.h"
#include "kernel_operator.h"
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
using namespace AscendC;
__global__ __vector__ void k(__gm__ uint8_t* x, int64_t n) {{
  GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  switch (n) {{ {kernels} }}
}}
int main(int argc, char** argv) {{
  uint8_t* x = nullptr;
  aclrtMalloc((void**)&x, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 4096, 0, 4096);
  switch (atoi(argv[1])) {{ {hosts} }}
  k<<<1, nullptr, nullptr>>>(x, atoi(argv[1]) - 100);
  return 0;
}}
"""
UNDEFINED = """#include "kernel_operator.h"
__global__ __vector__ void other(__gm__ uint8_t* x);
int main() { other<<<1, nullptr, nullptr>>>(nullptr); }
"""
LAUNCH = "k<<<1, nullptr, nullptr>>>(x, -1);"
HOSTS = {
    "null": ("*(volatile int*)0 = 1;", 2, "the program ended with an access to address 0x0"),
    "wild": (
        "*(volatile int*)0x1234567 = 1;",
        2,
        "the program ended with an access to address 0x1234567",
    ),
    "abort": ("abort();", 2, "the program ended with abort"),
    "raise": (
        'throw std::runtime_error("no");',
        2,
        "the program ended with std::terminate: no",
    ),
    "assert": (
        "assert(argc > 3);",
        2,
        "the program ended with abort: ",
    ),
    "division": (
        "volatile int a = 1, b = 0; a = a / b;",
        2,
        "the program ended with a division by zero",
    ),
    "endless": (
        "volatile int a = 0; while (true) a = a + 1;",
        2,
        "the program did not end within 1 s; check its loops, or raise --timeout",
    ),
    "sleep": (
        "sleep(1000);",
        2,
        "the program did not end within 1 s; check its loops, or raise --timeout",
    ),
    "exit 0": (LAUNCH + "exit(0);", 0, ""),
    "exit 5": (LAUNCH + "exit(5);", 5, ""),
    "return 300": ("return 300;", 44, ""),
    "_exit": ("_exit(3);", 2, "the program called exit(3); a program returns from main"),
    "fork": ("if (fork() == 0) _exit(0);", 0, ""),
    "free twice": ("aclrtFree(x); aclrtFree(x);", 0, ""),
    "free none": ("aclrtFree(nullptr); aclrtFree((void*)8);", 0, ""),
    "huge": (
        "void* y; if (aclrtMalloc(&y, 1ull << 60, ACL_MEM_MALLOC_HUGE_FIRST) == 0) return 9;",
        0,
        "",
    ),
    "none": ("void* y; if (aclrtMalloc(&y, 0, ACL_MEM_MALLOC_HUGE_FIRST) == 0) return 9;", 0, ""),
    "no block": (
        "k<<<0, nullptr, nullptr>>>(x, 7);",
        2,
        "k[blocks] must be in [1, 65535], got 0",
    ),
    "blocks": (
        "k<<<70000, nullptr, nullptr>>>(x, 7);",
        2,
        "k[blocks] must be in [1, 65535], got 70000",
    ),
}
KERNELS = {
    "null": ("*(volatile int*)0 = 1;", "the program ended with an access to address 0x0"),
    "abort": ("abort();", "the program ended with abort"),
    "throw": ("throw 3;", "the kernel threw an exception: an object of type int"),
    "exit": ("exit(3);", "the program called exit(3); a program returns from main"),
    "exec": (
        'execl("/bin/sleep", "sleep", "60", (char*)nullptr);',
        "the program closed the pipe of its answer, or became another program",
    ),
    "endless": (
        "volatile int v = 0; while (true) v = v + 1;",
        "the program did not end within 1 s; check its loops, or raise --timeout",
    ),
    "assertion": ("ascendc_assert(n == 99);", "the assertion must hold, got n == 99"),
    "unended": (
        "uint32_t k = n\n  ASSERT(k != 0)\n  ASSERT(k == 99);",
        "the assertion must hold, got k == 99",
    ),
    "trap": ("Trap();", "the kernel must run to its end, got Trap"),
    "built-in trap": ("trap();", "the kernel must run to its end, got Trap"),
    "past UB": (
        "Adds(a[1 << 20], a, 1.0f, 64);",
        " writes bytes [4194304, 4194560) of a[1 << 20], which has 256 B (UB[0, 256)): ",
    ),
    "unknown GM": ("to.SetGlobalBuffer((__gm__ float*)64); to.SetValue(0, 1.0f);", "gm"),
}


def cases(bodies):
    return " ".join(f"case {n}: {{ {body} return{end}; }}" for n, (body, end) in enumerate(bodies))


@pytest.fixture(scope="session")
def built(made_once, tmp_path_factory):
    """Return the program: its first argument says which host or kernel is hostile."""

    def make():
        folder = tmp_path_factory.mktemp("hostile")
        hosts = cases((body, " 0") for body, *_ in HOSTS.values())
        kernels = cases((body, "") for body, _ in KERNELS.values())
        (folder / "p.asc").write_text(FRAME.format(hosts=hosts, kernels=kernels))
        assert cli(folder, "c++", "p.asc", "-o", "demo") == (0, "", "")
        return folder / "demo"

    return made_once("hostile", make)


@pytest.fixture
def program(built, tmp_path):
    """Return what runs the program in a folder of its own, which no process may be left in."""
    shutil.copy(built, tmp_path / "demo")
    yield lambda which, timeout: demo(tmp_path, str(which), CUBECORE_TIMEOUT=str(timeout))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo"]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            assert (process / "cwd").readlink() != tmp_path.resolve()


def timeout_of(said):
    return 1 if "within 1 s" in said else 60


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.thinned(3)
def test_a_hostile_main_is_one_sentence(program, name):
    _, code, said = HOSTS[name]
    found, _, err = program(list(HOSTS).index(name), timeout_of(said))
    lines = err.splitlines()
    assert found == code
    assert len(lines) == bool(said)
    assert all(said in line for line in lines)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.thinned(2)
def test_a_hostile_kernel_of_a_program_is_one_sentence(program, name):
    _, said = KERNELS[name]
    code, _, err = program(100 + list(KERNELS).index(name), timeout_of(said))
    assert code in {1, 2}
    assert said in err
    assert "Traceback" not in err


def test_a_kernel_that_no_file_defines_does_not_link(tmp_path):
    (tmp_path / "p.asc").write_text(UNDEFINED)
    code, out, err = cli(tmp_path, "c++", "p.asc", "-o", "demo")
    assert (code, out) == (2, "")
    assert err == "p.asc:3 does not link: no other(unsigned char*)\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.asc"]


ADD = Path(__file__).parents[3] / "examples" / "cpp" / "vector_add.cpp"
GIVEN = ("--entry", "add_static", *(w for a in "xyz" for w in ("--arg", f"{a}=x.npy")))
COMPILERS = {
    "kill -SEGV $$": "signal 11 of the compiler",
    "exit 0": "and wrote nothing",
    "echo 'ld: no' >&2; exit 1": "exit 1 of the compiler: ld: no",
}


@pytest.fixture
def compiler_of(tmp_path, monkeypatch):
    """Return what makes a script the compiler."""

    def made(text):
        script = tmp_path / "cxx"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o700)
        monkeypatch.setenv("CUBECORE_CXX", str(script))
        monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "cache"))
        compiler.cache_clear()

    yield made
    compiler.cache_clear()


@pytest.mark.parametrize("text", COMPILERS)
def test_a_compiler_that_dies_is_one_sentence(compiler_of, tmp_path, text):
    compiler_of(text)
    np.save(tmp_path / "x.npy", np.zeros(64, np.float32))
    words = (*GIVEN, "--arg", "share=64", "--blocks", "1")
    code, out, err = cli(tmp_path, "run", ADD, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert COMPILERS[text] in err
    assert not list(tmp_path.rglob("*.gch"))


def test_a_flag_that_no_header_of_ours_stands_is_one_sentence(tmp_path, monkeypatch):
    """The sentence has the compiler's first error, with its place."""
    command = f"{' '.join(compiler().command)} -include none.h"
    monkeypatch.setenv("CUBECORE_CXX", command)
    monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "cache"))
    compiler.cache_clear()
    (tmp_path / "p.cpp").write_text(UNDEFINED)
    code, out, err = cli(tmp_path, "c++", "p.cpp", "-o", "demo")
    compiler.cache_clear()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{command} does not compile cubecore's headers: ")
    assert "none.h" in err


def test_a_compiler_that_does_not_end_leaves_no_process(compiler_of, tmp_path, monkeypatch):
    """Processes that a compiler has started end with it."""
    child = tmp_path / "child"
    compiler_of(f"case $* in *--version*) echo 12;; *) sleep 60 & echo $! > {child}; wait;; esac")
    monkeypatch.setattr(diagnostics, "_LONGEST_S", 1)
    x = np.zeros(64, np.float32)
    with pytest.raises(RequestError, match=r"the compiler did not finish .* within 1 s$"):
        cubecore.load(ADD).add_static[1](x, x, x, 64)
    assert has_ended(int(child.read_text()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--blocks", "2147483648"), "add_static[blocks] must be in [1, 65535], got 2147483648"),
        (
            ("--blocks", "1", "--chip", "Ascend310P3"),
            "C++ kernels run on architectures 2201, 3510, 3003 and 3113, not on 2002",
        ),
    ],
)
def test_a_launch_that_no_chip_takes_is_one_sentence(tmp_path, words, said):
    np.save(tmp_path / "x.npy", np.zeros(64, np.float32))
    found = cli(tmp_path, "run", ADD, *GIVEN, "--arg", "share=64", *words)
    assert found == (2, "", f"{said}\n")


@pytest.mark.sweep
def test_paths_with_blanks_and_bytes_that_are_no_text(tmp_path, monkeypatch):
    """The cache cannot be written, either: another folder is taken."""
    folder = tmp_path / os.fsdecode(b"a b \xff")
    folder.mkdir()
    (tmp_path / "file").touch()
    (folder / "a d.cpp").write_bytes(ADD.read_bytes() + b"// \xff\xfe\n")
    np.save(folder / "x.npy", np.zeros(4096, np.float32))
    assert cli(folder, "run", "a d.cpp", *GIVEN, "--arg", "share=4096", "--blocks", "1")[0] == 0
    monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "file"))
    template = "template <int n> __global__ __vector__ void k(GM_ADDR x) {}\n"
    (folder / "t.cpp").write_text('#include "kernel_operator.h"\n' + template)
    code, _, err = cli(folder, "run", "t.cpp", "--entry", "k", "--blocks", "1")
    assert (code, err) == (2, 'k must be named with its template arguments, got k; as "k<...>"\n')


@pytest.mark.sweep
def test_two_compilations_at_once_leave_one_result(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(4096, np.float32))
    words = (*GIVEN, "--arg", "share=4096", "--blocks", "1")
    command = [sys.executable, "-m", "cubecore", "run", str(ADD), *words]
    told = {"cwd": tmp_path, "env": {**os.environ, "CUBECORE_CACHE": str(tmp_path / "cache")}}
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, **told) for _ in range(2)]
    assert [each.wait() for each in running] == [0, 0]
    made = [path for path in (tmp_path / "cache").rglob("*") if path.name.startswith("tmp")]
    assert made == []
    assert len(list((tmp_path / "cache").rglob("*.gch"))) == 1

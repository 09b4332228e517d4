"""C++ kernels from the file to the result: launches, findings, what is refused, what crashes."""

import io
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import EXAMPLES, cli, has_ended, kernel, kernels, needs_compiler

pytestmark = needs_compiler
ADD = EXAMPLES / "vector_add.cpp"
SHARE = 2 * 4096
N = 8 * SHARE


@pytest.fixture
def vectors():
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    return x, y, np.zeros(N, np.float32)


def test_a_vector_add_with_queues_adds(vectors):
    x, y, z = vectors
    run = cubecore.load(ADD).add_queued[8](x, y, z, SHARE)
    assert run.findings == ()
    assert run.engine == "lockstep"
    assert np.array_equal(z, x + y)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_engines_and_orders_agree(vectors, engine):
    x, y, z = vectors
    for order in ("program", "late", "early", "random:5"):
        z[:] = 0
        run = cubecore.load(ADD, engine=engine, order=order).add_queued[8](x, y, z, SHARE)
        assert (run.findings, run.issued) == ((), 8 * 39)
        assert np.array_equal(z, x + y)


def test_the_command_line_runs_and_times_a_file(tmp_path, vectors):
    x, y, _ = vectors
    np.save(tmp_path / "x.npy", x)
    y.tofile(tmp_path / "y.bin")
    words = [
        str(ADD),
        "--entry",
        "add_queued",
        "--blocks",
        "8",
        "--arg",
        "x=x.npy",
        "--arg",
        "y=y.bin",
    ]
    words += ["--arg", f"share={SHARE}", "--out-arg", f"z=float32:{N}:z.npy"]
    code, out, err = cli(tmp_path, "run", *words)
    assert (code, err) == (0, "")
    assert "  findings none\n" in out
    assert np.array_equal(np.load(tmp_path / "z.npy"), x + y)
    code, out, err = cli(tmp_path, "time", *words)
    assert (code, err) == (0, "")
    assert out.startswith("add_queued[8] on Ascend910B3\n")


def test_a_pair_of_enque_and_deque_left_out_is_a_race_at_its_lines(tmp_path, vectors):
    text = ADD.read_text()
    changes = {
        "out_z_.EnQue(z);": "held_ = z;",
        "z = out_z_.DeQue<float>();": "z = held_;",
        "uint32_t share_ = 0;": "uint32_t share_ = 0; AscendC::LocalTensor<float> held_;",
    }
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    wrong = tmp_path / "wrong.cpp"
    wrong.write_text(text)
    run = cubecore.load(wrong).add_queued[8](*vectors, SHARE)
    race = next(f for f in run.findings if f.id == "race-raw")
    said = text.splitlines()
    assert {said[access.location.line - 1].strip() for access in race.accesses} == {
        "AscendC::Add(z, x, y, count);",
        "AscendC::DataCopy(z_[first], z, count);",
    }


def refused(work) -> str:
    with pytest.raises(CubecoreError) as caught:
        work()
    return str(caught.value)


BAD_CALLS = [
    ((1.5,), "share must be uint32, got 1.5"),
    ((-1,), "share must be in [0, 4294967295] (uint32), got -1"),
    ((2**32,), "share must be in [0, 4294967295] (uint32), got 4294967296"),
    (("4",), "share must be uint32, got '4'"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_CALLS)
def test_an_argument_of_another_type_is_refused(vectors, arguments, sentence):
    module = cubecore.load(ADD)
    assert refused(lambda: module.add_queued[8](*vectors, *arguments)) == sentence


CRASHES = {  # 0x5678 lies below what a process may map
    "null": ("*(volatile int*)0 = 1;", "ended with an access to address 0x0 on core 0 AIV0"),
    "wild": (
        "*(volatile int*)0x5678 = 1;",
        "ended with an access to address 0x5678 on core 0 AIV0",
    ),
    "abort": ("abort();", "ended with abort on core 0 AIV0"),
    "exit": ("exit(3);", "called exit(3); a kernel returns"),
    "exit 0": ("exit(0);", "called exit(0); a kernel returns"),
    "throw": ("throw 3;", "threw an exception: an object of type int"),
    "throw lines": (
        'throw std::runtime_error("one\\n two");',
        "threw an exception: one two",
    ),
    "terminate": ("std::terminate();", "ended with std::terminate on core 0 AIV0"),
    "nothing catches": (
        '[]() noexcept { throw std::runtime_error("no"); }();',
        "ended with std::terminate on core 0 AIV0: no",
    ),
    "pure virtual": (
        "Derived made;",
        "ended with std::terminate on core 0 AIV0: pure virtual method called",
    ),
    "free twice": (
        "char* volatile p = (char*)malloc(16); free(p); free(p);",
        "ended with abort on core 0 AIV0: free(): double free detected in tcache 2",
    ),
    "no address": (
        "*(volatile int*)0xdead00000000beef = 1;",
        "ended with an access to an unmapped address on core 0 AIV0",
    ),
    "loop": (
        "volatile int a = 0; while (true) a = a + 1;",
        "did not end within 1 s; check its loops, or raise --timeout",
    ),
    "recursion": (
        "volatile char c[4096]; c[0] = 1; k(x, which); c[1] = c[0];",
        "ended with a stack overflow on core 0 AIV0",
    ),
    "memory": (
        "std::vector<char*> all; while (true) all.push_back(new char[1 << 26]);",
        "threw an exception: std::bad_alloc",
    ),
}


@pytest.fixture(scope="module")
def crashes():
    """Return a kernel that crashes in the way of a number, and its first case's line."""
    cases = "\n".join(f"case {n}: {{ {body} }}" for n, (body, _) in enumerate(CRASHES.values()))
    body = f"PipeBarrier<PIPE_ALL>();\nswitch (which) {{\n{cases}\n}}"
    before = (
        "#include <cstdlib>\n#include <vector>\n#include <stdexcept>\n"
        "struct Base { virtual void f() = 0; void call() { f(); } Base() { call(); } };\n"
        "struct Derived : Base { void f() override {} };"
    )
    return kernel(body, "GM_ADDR x, int32_t which", before=before)


@pytest.mark.parametrize("name", CRASHES)
@pytest.mark.thinned(3)
def test_a_hostile_kernel_ends_in_one_sentence(crashes, name, capfd):
    _, tail = CRASHES[name]
    made = replace(crashes, timeout_s=1.0 if name == "loop" else 60.0)
    text = refused(lambda: made[1](np.zeros(8, np.float32), list(CRASHES).index(name)))
    assert text == f"inline.cpp:9 (k): the kernel {tail}"
    assert capfd.readouterr() == ("", "")


ENDS = {  # without a line of the kernel: at the line where it begins
    "kill": ("kill(getpid(), SIGKILL);", "ended with a kill, most likely for lack of memory"),
    "signal": ("kill(getpid(), SIGTERM);", "ended with signal 15 (Terminated)"),
    "ignored": (
        "signal(SIGSEGV, SIG_IGN); *(volatile int*)0x5678 = 1;",
        "ended with an access to an unmapped address",
    ),
    "_exit": ("_exit(3);", "called exit(3); a kernel returns"),
    "closed": ("for (; free < 256; ++free) close(free);", "closed the pipe of its answer"),
    "written": (
        'for (; free < 256; ++free) (void)!write(free, "0123456789", 10);',
        "wrote to the pipe of its answer",
    ),
}


@pytest.fixture(scope="module")
def ends():
    """Return kernels that end without a word, one for each way."""
    bodies = {f"k{number}": body for number, (body, _) in enumerate(ENDS.values())}
    return kernels(bodies, "int free", "#include <signal.h>\n#include <unistd.h>")


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.thinned(3)
def test_a_kernel_that_ends_without_a_word_is_told_at_its_place(ends, name):
    entry = f"k{list(ENDS).index(name)}"
    free = os.dup(2)  # files behind it are those of the launch
    os.close(free)
    text = refused(lambda: ends[entry][1](free))
    place = ends[entry].place
    assert text == f"inline.cpp:{place.line} ({entry}): the kernel {ENDS[name][1]}"


STATIC = """#include "kernel_operator.h"
struct Held { Held() { volatile int n = 0; while (true) n = n + 1; } };
static Held held;
extern "C" __global__ __vector__ void k() {}
"""


def test_a_constructor_of_a_variable_ends_within_the_timeout():
    made = cubecore.inline(STATIC).k.changed(timeout_s=1.0)
    text = refused(made[1])
    assert text == (
        "inline.cpp:4 (k): the kernel did not end within 1 s; check its loops, or raise --timeout"
    )


def test_standard_error_is_passed_on_and_its_last_line_before_abort_belongs_to_the_sentence(capfd):
    body = 'fputs("one\\n", stderr); fputs("  two\\nthree\\n  four", stderr); abort();'
    made = kernel(body, "", "#include <cstdio>\n#include <cstdlib>")
    text = refused(made[1])
    assert text == "inline.cpp:5 (k): the kernel ended with abort on core 0 AIV0: three four"
    assert capfd.readouterr() == ("", "one\n  two\n")


def test_standard_error_of_a_kernel_that_ends_is_passed_on_whole(capfd):
    kernel('fputs("one\\ntwo", stderr);', "", "#include <cstdio>")[1]()
    assert capfd.readouterr() == ("", "one\ntwo")


@pytest.mark.sweep
def test_what_a_kernel_has_begun_ends_with_it(tmp_path):
    """Behind a session of its own, and without a pipe that it could be found by."""
    body = """
    if (fork() == 0) {
      setsid();
      for (int n = 0; n < 256; ++n) close(n);
      if (fork() == 0) {
        FILE* out = fopen("PATH", "w");
        fprintf(out, "%d", (int)getpid());
        fclose(out);
        sleep(60);
      }
      _exit(0);
    }
    while (access("PATH", F_OK) != 0) usleep(1000);
    usleep(10000);
    """.replace("PATH", str(tmp_path / "process"))
    kernel(body, "", "#include <cstdio>\n#include <unistd.h>")[1]()
    assert has_ended(int((tmp_path / "process").read_text()))


def test_a_kernel_that_issues_without_end_stops_at_the_limit():
    made = kernel("while (true) PipeBarrier<PIPE_ALL>();", limit=1000)
    text = refused(lambda: made[1](np.zeros(8, np.float32)))
    want = "inline.cpp:5 (k): the kernel issued more than 1,000 instructions"
    assert text == f"{want}; check its loops, or raise `limit` (of judge: --instructions)"


DIVISIONS = """
GlobalTensor<int64_t> out;
out.SetGlobalBuffer((__gm__ int64_t*)x);
uint32_t n = 0;
auto divide = [&](auto dividend) {
  using T = decltype(dividend);
  volatile T divisors[2] = {0, 3};
  for (volatile T& divisor : divisors) {
    out.SetValue(n++, dividend / divisor);
    out.SetValue(n++, dividend % divisor);
  }
};
divide(int32_t(-7));
divide(uint32_t(7));
divide(int64_t(-1) << 40);
divide(uint64_t(1) << 40);
volatile int32_t least = INT32_MIN, minus = -1;
out.SetValue(n, least / minus);
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this host does not trap")
def test_a_division_without_a_result_is_found_and_goes_on():
    out = np.ones(32, np.int64)
    left = kernel(DIVISIONS)[1](out)
    (found,) = [one for one in left.findings if one.id == "parameter"]
    assert found.message == (
        "an integer division: a divisor must not be 0, and INT_MIN must not be divided by -1, got"
        " such a division behind this line; its quotient is 0 here"
    )
    large = 2**40
    assert out[:17].tolist() == [
        *(0, -7, -2, -1), *(0, 7, 2, 1),
        *(0, -large, -(large // 3), -(large % 3)), *(0, large, large // 3, large % 3), 0,
    ]  # fmt: skip


LEFT_BEHIND = {
    "a kernel without end": ("if (fork() == 0) for (;;) sleep(1);\nfor (;;) sleep(1);", True),
    "a kernel that ends": ("if (fork() == 0) for (;;) sleep(1);", False),
    "a session of its own": (
        "if (fork() == 0) {\nsetsid();\nif (fork() == 0) for (;;) sleep(1);\n_exit(0);\n}",
        False,
    ),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_nothing_of_a_kernel_stays(name):
    body, late = LEFT_BEHIND[name]
    mark = f"stays {os.getpid()}"  # another test's processes have other names
    named = f'prctl(PR_SET_NAME, "{mark}");\n'
    made = kernel(named + body, before="#include <unistd.h>\n#include <sys/prctl.h>")
    if late:
        refused(lambda: replace(made, timeout_s=1.0)[1](np.zeros(8, np.float32)))
    else:
        made[1](np.zeros(8, np.float32))
    for _ in range(50):  # a killed process is gone a little later
        if not [process for process in Path("/proc").glob("[0-9]*") if _runs_as(process, mark)]:
            return
        time.sleep(0.1)
    pytest.fail("a process of the kernel stays")


def _runs_as(process: Path, name: str) -> bool:
    """Return whether a process has a name, and has not ended."""
    try:
        return (process / "comm").read_text().strip() == name and bool(
            (process / "cmdline").read_bytes()
        )
    except OSError:
        return False


def test_variables_are_each_cores_own():
    made = kernel(
        "counter += 1;\n((__gm__ int32_t*)x)[GetBlockIdx()] = counter;", before="int32_t counter;"
    )
    x = np.zeros(8, np.int32)
    made[8](x)
    assert x.tolist() == [1] * 8


def test_the_workspace_of_the_system_is_the_one_that_a_kernel_sets():
    made = kernel(
        "if (GetSysWorkSpacePtr() != nullptr) return;\nSetSysWorkspace(x);\n"
        "((__gm__ int32_t*)GetSysWorkSpacePtr())[GetBlockIdx()] = 7;"
    )
    x = np.zeros(8, np.int32)
    made[8](x)
    assert x.tolist() == [7] * 8


@pytest.mark.sweep
def test_a_line_of_a_template_names_the_function_of_each_type():
    fetch = """template <typename T>
__aicore__ inline void Fetch(GM_ADDR from, uint32_t at, uint32_t count) {
  AscendC::GlobalTensor<T> global;
  global.SetGlobalBuffer((__gm__ T*)from);
  AscendC::LocalTensor<T> local(AscendC::TPosition::VECCALC, at, count);
  AscendC::DataCopy(local, global, count);
}"""
    made = kernel(
        "Fetch<float>(x, 0, 8); Fetch<half>(x, 256, 64); Fetch<bfloat16_t>(x, 512, 64);",
        before=fetch,
    )
    found = made[1](np.zeros(8, np.int32)).findings
    named = {(f.id, f.location.function, f.count) for f in found}
    assert named == {
        ("out-of-bounds", "Fetch<half>", 1),
        ("out-of-bounds", "Fetch<bfloat16_t>", 1),
    }
    assert len({f.location.line for f in found}) == 1


LISTED = "docs/cpp_names.md lists the names that are"
ON_950 = "run it with --chip Ascend950PR_9589"
BAD_FILES = {
    "missing": (
        "LocalTensor<float> a; AscendC::LoadUnzipIndex<float>(a, a);",
        "inline.cpp:5: AscendC::LoadUnzipIndex is not supported; " + LISTED,
    ),
    "missing, unqualified": (
        "LocalTensor<float> a; LoadDataUnzip(a, a);",
        "inline.cpp:5: AscendC::LoadDataUnzip is not supported; " + LISTED,
    ),
    "missing, with a successor": (
        "LocalTensor<float> a; Conv2D(a, a, a, 3);",
        "inline.cpp:5: AscendC::Conv2D is not supported; use Mmad",
    ),
    "missing, as a type": (
        "} void f(const AscendC::Conv3D& x) {",
        "inline.cpp:5: AscendC::Conv3D is not supported; " + LISTED,
    ),
    "missing, as a namespace": (
        "MicroAPI::CreateMask<float>();",
        "inline.cpp:5: AscendC::MicroAPI is of architecture 3510; " + ON_950,
    ),
    "missing, of the C API": (
        "asc_abs_sub(x, x, x);",
        "inline.cpp:5: asc_abs_sub is of architecture 3510; " + ON_950,
    ),
    "tiling without a struct": (
        "GET_TILING_DATA(data, x);",
        "inline.cpp:5: GET_TILING_DATA must have a registered struct, got none; "
        "write REGISTER_TILING_DEFAULT(Struct)",
    ),
    "a macro of a build": (
        "GlobalTensor<DTYPE_Z> z;",
        "inline.cpp:5: DTYPE_Z must be defined, got nothing; "
        "-D DTYPE_Z=... says what the operator's build does",
    ),
    "syntax": (
        "int a = ;",
        "inline.cpp:5 does not compile: expected primary-expression before ';' token; "
        "--verbose shows everything the compiler says",
    ),
    "header": (
        '}\n#include "lib/nothing.h"\nvoid f() {',
        "inline.cpp:6 includes lib/nothing.h, which is neither beside it nor among cubecore's "
        "headers; put it beside the file",
    ),
    "header like the kit's": (
        '}\n#include "kernel_operator_nowhere.h"\nvoid f() {',
        "inline.cpp:6 includes kernel_operator_nowhere.h, which is neither beside it nor among "
        "cubecore's headers; put it beside the file",
    ),
    "header one letter off": (
        '}\n#include "kernel_operator_vec_binry_intf.h"\nvoid f() {',
        "inline.cpp:6 includes kernel_operator_vec_binry_intf.h, which is neither beside it nor "
        "among cubecore's headers; did you mean kernel_operator_vec_binary_intf.h?",
    ),
    "header that no file can be": (
        '}\n#include "lib/no\0thing.h"\nvoid f() {',
        "inline.cpp:6 includes lib/no, which is neither beside it nor among cubecore's headers; "
        "put it beside the file",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_does_not_compile_is_refused_in_a_sentence(name):
    body, sentence = BAD_FILES[name]
    assert refused(lambda: kernel(body)) == sentence


def test_a_header_whose_name_is_too_long_is_refused():
    body = f'}}\n#include "{"x" * 5000}"\nvoid f() {{'
    assert refused(lambda: kernel(body)).startswith("inline.cpp:6 does not compile: ")


@pytest.mark.parametrize("use", ["void f(Conv3D<float>& x) {}", "struct S : Conv3D<float> {};"])
def test_a_missing_name_that_the_compiler_does_not_tell_is_read_from_the_line(tmp_path, use):
    file = tmp_path / "k.cpp"
    frame = '#include "kernel_operator.h"\nusing namespace AscendC;\n{}\n__global__ void k() {{}}\n'
    file.write_text(frame.format(use))
    said = refused(lambda: cubecore.load(file).k)
    assert said == f"{file}:3: AscendC::Conv3D is not supported; {LISTED}"


TEMPLATED = """#include "kernel_operator.h"
template <int M, typename T>
__global__ __aicore__ void k(GM_ADDR x) {}
extern "C" __global__ __aicore__ void plain(GM_ADDR x) {}
"""


@pytest.mark.parametrize(
    "entry", ["k<1>", "k<1,float,2>", "k<float,1>", "k<1,nothing>", "plain<1>"]
)
def test_template_arguments_that_do_not_fit_are_refused_in_a_sentence(entry):
    name, _, given = entry.partition("<")
    sentence = f"{entry} must have template arguments that {name} takes, got <{given}"
    assert refused(lambda: cubecore.inline(TEMPLATED)[entry]) == sentence


PRINTING = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x, float n) {
  printf("plain\\n");
  printf("%s\\n", "a text");
  printf("n %.1f of %d", n, 3);
  AscendC::PRINTF("bare");
  printf("c");
}
"""


@pytest.mark.sweep
def test_prints_name_their_core_however_they_are_written(capfd):
    cubecore.inline(PRINTING).k[1](np.zeros(8, np.float32), 1.5)
    texts = ("plain", "a text", "n 1.5 of 3", "bare", "c")
    assert capfd.readouterr().out.splitlines() == [f"core 0 AIV0: {text}" for text in texts]


BAD_WORDS = [
    (
        ["--entry", "add_queue"],
        "--entry must name a kernel of {file}, got add_queue; did you mean add_queued?",
    ),
    (["--entry", "add_queued"], "a launch of add_queued needs --blocks"),
    (["--blocks", "0"], "add_queued[blocks] must be in [1, 65535], got 0"),
    (
        ["--blocks", "8", "--arg", "x=no.npy"],
        "cannot read no.npy: no such file",
    ),
    (
        ["--blocks", "8", "--arg", "w=1"],
        "--arg must name a parameter of add_queued (x, y, z, share), got w",
    ),
    (["--blocks", "8", "--arg", "n"], "--arg must be NAME=VALUE or NAME=FILE, got 'n'"),
    (["--blocks", "8", "--arg", "x="], "--arg must be NAME=VALUE or NAME=FILE, got 'x='"),
    (["--blocks", "8", "--arg", "x=x.npy", "--arg", "x=x.npy"], "--arg x is given twice"),
    (["--blocks", "8", "--arg", "share=a"], "share must be uint32, got 'a'"),
    (
        ["--blocks", "8", "--arg", "share=1"],
        "add_queued has no value for x; give --arg x=...",
    ),
    (
        ["--blocks", "8", "--out-arg", "z"],
        "--out-arg must be NAME=TYPE:SHAPE[:FILE], as z=float32:16384:z.npy, got 'z'",
    ),
    (
        ["--blocks", "8", "--timeout", "-1"],
        "--timeout must be above 0 s, got -1",
    ),
    (
        ["--blocks", "8", "--out-arg", "z=floaty:8"],
        "--out-arg z must be of a type that the chip has, got floaty",
    ),
    (
        ["--blocks", "8", "--out-arg", "z=float32:99999999999x99999999999"],
        "--out-arg z has 39999999999200000000004 B, more than fit in memory",
    ),
    (["--blocks", "8", "--timeout", "soon"], "--timeout must be a number, got 'soon'"),
    (["--entry", ""], "--entry must name a kernel of {file}, got ''"),
    (["--blocks", "8", "-D", "8=3"], "-D must be NAME or NAME=VALUE, got '8=3'"),
    (["--blocks", "8", "more"], "{file} must be run with --arg NAME=VALUE, got 'more'"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a kernel's file and an array."""
    made = tmp_path_factory.mktemp("add")
    (made / "add.cpp").write_text(ADD.read_text())
    np.save(made / "x.npy", np.zeros(8, np.float32))
    return made


@pytest.mark.parametrize(("words", "sentence"), BAD_WORDS)
@pytest.mark.thinned(3)
def test_a_bad_request_is_one_sentence(folder, words, sentence):
    if words[-1:] == ["0"]:
        words = [
            *words,
            "--arg",
            "x=x.npy",
            "--arg",
            "y=x.npy",
            "--arg",
            "z=x.npy",
            "--arg",
            "share=0",
        ]
    if "--entry" not in words:
        words = ["--entry", "add_queued", *words]
    said = sentence.format(file="add.cpp") + "\n"
    assert cli(folder, "run", "add.cpp", *words) == (2, "", said)


NAMED_AS_OPTIONS = """#include "kernel_operator.h"
extern "C" __global__ __vector__ void k(GM_ADDR a, int32_t n, bool bias) {}
template <int n> __global__ __vector__ void m(GM_ADDR a) { static_assert(n < 3, "n must be few"); }
"""
PARAMETERS = [
    (["k", "--arg", "n=x"], "n must be int32, got 'x'"),
    (["k", "--arg", "n=1"], "k has no value for a; give --arg a=..."),
    (["k", "--arg", "bias=maybe"], "bias must be bool, got 'maybe'"),
    (["m"], 'm must be named with its template arguments, got m; as "m<...>"'),
    (["m<4>"], "k.cpp:3: n must be few"),
    ([], "k.cpp has several kernels; --entry names one of k, m"),
]


@pytest.mark.parametrize(("words", "sentence"), PARAMETERS)
@pytest.mark.thinned(3)
def test_parameters_that_are_called_as_options_are_told_as_they_are(tmp_path, words, sentence):
    (tmp_path / "k.cpp").write_text(NAMED_AS_OPTIONS)
    entry = ["--entry", *words] if words else []
    found = cli(tmp_path, "run", "k.cpp", *entry, "--blocks", "1")
    assert found == (2, "", f"{sentence}\n")


def test_a_bool_is_a_word(tmp_path):
    (tmp_path / "k.cpp").write_text(NAMED_AS_OPTIONS)
    np.save(tmp_path / "a.npy", np.zeros(8, np.float32))
    words = (w for pair in ("a=a.npy", "n=1", "bias=true") for w in ("--arg", pair))
    found = cli(tmp_path, "run", "k.cpp", "--entry", "k", "--blocks", "1", *words)
    assert (found[0], found[2]) == (0, "")


HEADER = '#include "kernel_operator.h"\n'
FILES = [
    ("int f() { return 1; }", "k.cpp has no kernel: no __global__ function"),
    (
        "#ifdef FORM\n__global__ __aicore__ void k(GM_ADDR x) {}\n#endif\n",
        "k.cpp has no kernel: no __global__ function that its #if leaves in; -D defines a macro",
    ),
    ("int f() { return 1; }", "--entry must name a kernel of k.cpp, got k"),
    ("__global__ __vector__ int k() { return 1; }", "k must return void, got another type"),
    (
        "__global__ __vector__ void k() {",
        "k.cpp does not compile: it ends within a block or a declaration",
    ),
    (
        "int main() {}",
        "k.cpp launches no kernel; its main launches one as "
        "kernel<<<blocks, nullptr, stream>>>(...)",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), FILES)
@pytest.mark.thinned(2)
def test_a_file_with_no_kernel_to_run_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "k.cpp").write_text(f"{HEADER}{text}\n")
    words = () if "launches" in sentence else ("--blocks", "1")
    entry = ("--entry", "k") if words and "no kernel" not in sentence else ()
    assert cli(tmp_path, "run", "k.cpp", *words, *entry) == (2, "", f"{sentence}\n")


NO_WHEEL = (
    "import runpy, sys; sys.modules['ziglang'] = None; "
    "runpy.run_module('cubecore', run_name='__main__', alter_sys=True)"
)
"""The command line, as if there were no ziglang package."""


def test_without_a_compiler_the_sentence_names_all_four(tmp_path):
    file = tmp_path / "add.cpp"
    file.write_text(ADD.read_text())
    done = subprocess.run(
        [sys.executable, "-c", NO_WHEEL, "run", "add.cpp", "--entry", "add_static"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": "/nowhere"},
    )
    got = "no C++ compiler: no $CUBECORE_CXX, g++, clang++ or ziglang package"
    want = f"{got}; pip install cubecore[compiler], or install g++\n"
    assert (done.returncode, done.stderr) == (2, want)


TILED = """#include "kernel_operator.h"
struct Tiling {
  uint32_t total = 8;
  float scale, shift;
  int64_t offsets[2];
  bool flag;
};
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(Tiling);
  GET_TILING_DATA(data, tiling);
  __gm__ float* out = (__gm__ float*)x;
  if (TILING_KEY_IS(3)) {
    out[0] = data.total * data.scale + data.shift;
    out[1] = (float)data.offsets[1];
    out[2] = data.flag ? 1.0f : 0.0f;
  }
  AscendC::printf("total %u scale %f\\n", data.total, data.scale);
}
"""


def test_tiling_data_goes_by_the_names_of_its_fields(tmp_path):
    (tmp_path / "k.cpp").write_text(TILED)
    np.save(tmp_path / "x.npy", np.zeros(8, np.float32))
    words = ["run", "k.cpp", "--blocks", "1", "--arg", "x=x.npy", "--arg", "workspace=x.npy"]
    words += ["--out-arg", "x=float32:8:out.npy", "--tiling-key", "3"]
    fields = "total=3,scale=1.5,shift=0.25,offsets=4:-7,flag=1"
    code, out, err = cli(tmp_path, *words, "--tiling-data", fields)
    assert (code, err) == (0, "")
    assert np.load(tmp_path / "out.npy")[:3].tolist() == [4.75, -7, 1]
    assert "core 0 AIV0: total 3 scale 1.500000\n" in out
    wrong = {
        "totl=3": "--tiling-data must name a field of Tiling, got totl; did you mean total?",
        "total=a": "--tiling-data total must be uint32_t, got 'a'",
        "total=-1": "--tiling-data total must be uint32_t, got '-1'",
        "total": "--tiling-data must be FIELD=VALUE,... or a file, got 'total'",
    }
    for text, sentence in wrong.items():
        assert cli(tmp_path, *words, "--tiling-data", text) == (2, "", sentence + "\n")
    made = cubecore.load(tmp_path / "k.cpp").tiling("Tiling", total=5, scale=2.0)
    assert made.nbytes == 40
    assert made[:12].view(np.uint32)[0] == 5


def test_stops_know_the_arguments_and_the_user_may_quit(tmp_path, monkeypatch):
    x = np.arange(2048, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    given = [word for name in ("x", "y") for word in ("--arg", f"{name}=x.npy")]
    words = ["run", ADD, "--entry", "add_queued", "--blocks", "1", *given, "--arg", "share=2048"]
    words += ["--out-arg", "z=float32:2048:z.npy", "--break", "asc_add", "--dump", "x 4"]
    monkeypatch.setattr("sys.stdin", io.StringIO("print share\nc\nc\nc\n"))
    code, out, err = cli(tmp_path, *words)
    assert (code, err) == (0, "")
    assert "0 | 0 1 2 3" in out
    assert "  2048\n" in out
    assert "nothing met it" not in out + err
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    (tmp_path / "z.npy").unlink()
    code, _, err = cli(tmp_path, *words)
    assert (code, err.strip()) == (130, "")
    assert not (tmp_path / "z.npy").exists()


KEYED = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR tiling) {
#if TILING_KEY_VAR == 3
  *(__gm__ float*)x = 30;
#elif TILING_KEY_VAR == 10000000000000000001
  *(__gm__ float*)x = 1;
#endif
  if (TILING_KEY_VAR == 3) ((__gm__ float*)x)[1] = 3;
}
"""


@pytest.mark.parametrize(("key", "left"), [(0, [0, 0]), (3, [30, 3]), (10**19 + 1, [1, 0])])
def test_a_condition_of_the_preprocessor_sees_the_tiling_key(key, left):
    x = np.zeros(8, np.float32)
    cubecore.inline(KEYED).k.changed(tiling_key=key)[1](x, np.zeros(8, np.uint8))
    assert x[:2].tolist() == left


def test_a_member_may_be_called_like_a_type_that_its_class_uses():
    text = """#include "kernel_operator.h"
enum class Kind : uint8_t { A, B };
template <Kind K> struct Op { static constexpr bool Kind = K == Kind::A; };
extern "C" __global__ __aicore__ void k(GM_ADDR x) { *(__gm__ float*)x = Op<Kind::A>::Kind; }
"""
    x = np.zeros(8, np.float32)
    cubecore.inline(text).k[1](x)
    assert x[0] == 1


FORMATS = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
#if FORMAT_X == FORMAT_FRACTAL_NZ
  *(__gm__ float*)x = 1;
#else
  *(__gm__ float*)x = 2;
#endif
}
"""


def test_a_condition_of_the_preprocessor_sees_formats():
    x = np.zeros(8, np.float32)
    for name, left in {"FORMAT_ND": 2, "FORMAT_FRACTAL_NZ": 1}.items():
        cubecore.inline(FORMATS, {"FORMAT_X": name}).k[1](x)
        assert x[0] == left


POINTERS = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {
  __gm__ float *from = reinterpret_cast<__gm__ float*>(x), *to = reinterpret_cast<__gm__ float*>(z);
  for (int n = 0; n < 64; ++n) to[n] = from[n] * 2;
}
extern "C" __global__ __aicore__ void none(GM_ADDR z) {}
"""


def test_stores_by_pointers_write_an_output(tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text(POINTERS)
    module = cubecore.load(tmp_path / "k.cpp")
    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert module.k.changed(outputs=("z",))[1](x, z).findings == ()
    np.testing.assert_array_equal(z, x * 2)
    (finding,) = module.none.changed(outputs=("z",))[1](z).findings
    assert finding.message == (
        "z must be written whole, got 256 of 256 B never written or written from uninitialised "
        "memory, the first at byte 0"
    )

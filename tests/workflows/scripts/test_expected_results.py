"""Results of kernels compared with expected values: Python, C++, programs, operators and TIK."""

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler, write_files
from frontends.cpp.test_operators import HOST, TILING
from frontends.cpp.test_operators import KERNEL as AXPY
from frontends.cpp.test_program import COPY, MAIN
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli

KERNEL = """
    import numpy as np
    import cubecore

    @cubecore.kernel
    def double(core, a, c, count=64):
        x = core.ubuf("float", 64)
        first = core.block_idx * 64
        core.asc_copy_gm2ub(x, a + first, 256)
        core.asc_sync()
        core.asc_add(x, x, x, 64)
        core.asc_sync()
        core.asc_copy_ub2gm(c + first, x, 256)
        core.asc_sync()

    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
"""
LAUNCH = """
    double[4](a, c)
"""
RIGHT = np.arange(256, dtype=np.float32) * 2
WRONG = RIGHT.copy()
WRONG[[70, 71, 200]] = 1, np.nan, 400.0001
LIMIT = "rtol 1.3e-06 and atol 1e-05"


pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with a script and files of its right and of wrong values."""
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(dedent(KERNEL) + dedent(LAUNCH), encoding="utf-8")
    np.save("right.npy", RIGHT)
    np.save("wrong.npy", WRONG)
    RIGHT.tofile("right.bin")
    return tmp_path


def told(answer):
    """Return what is told of the comparison: the lines before the first launch."""
    return answer.out.split("\n\n")[0].splitlines()


def test_the_three_outcomes():
    answer = cli("run", "own.py")
    verdict = "finished, no findings; result not compared (give --expect c=...)"
    assert (answer.code, told(answer)) == (DONE, [f"own.py: {verdict}"])
    answer = cli("run", "own.py", "--expect", "c=right.npy")
    equal = f"c: all 256 elements equal right.npy within {LIMIT}; largest error 0"
    assert (answer.code, told(answer)) == (DONE, ["own.py: verified", equal])
    assert cli("run", "own.py", "--expect", "c=right.bin").code == DONE
    answer = cli("run", "own.py", "--expect", "c=wrong.npy")
    assert answer.code == FOUND
    assert told(answer) == [
        "own.py: FAILED: c not as expected",
        f"c: 2 of 256 elements differ from wrong.npy by more than {LIMIT}",
        "  first c[70] = 140, expected 1; largest error inf",
        "  written at own.py:13 (double), core 0 AIV1",
    ]


def test_findings_and_a_check_of_the_script_are_told_beside_a_wrong_result():
    text = dedent(KERNEL).replace("    core.asc_sync()\n    core.asc_add", "    core.asc_add")
    Path("own.py").write_text(text + dedent(LAUNCH) + "assert False\n", encoding="utf-8")
    answer = cli("run", "own.py", "--expect", "c=wrong.npy")
    assert re.fullmatch(
        r"own\.py: FAILED: \d findings?, c not as expected, its own check", told(answer)[0]
    )
    Path("own.py").write_text(text + dedent(LAUNCH), encoding="utf-8")
    answer = cli("run", "own.py", "--expect", "c=right.npy")
    assert answer.code == FOUND
    assert re.fullmatch(r"own\.py: FAILED: \d findings?", told(answer)[0])


def test_tolerances_replace_those_of_the_type():
    near = RIGHT * np.float32(1.001)
    np.save("near.npy", near)
    words = ("run", "own.py", "--expect", "c=near.npy")
    assert cli(*words).code == FOUND
    assert cli(*words, "--rtol", "0.002").code == DONE
    assert cli(*words, "--atol", "1", "--rtol", "0").code == DONE
    wrong = int((np.abs(RIGHT - near) > 0.1).sum())
    expected = f"c: {wrong} of 256 elements differ from near.npy by more than rtol 0 and atol 0.1"
    assert expected in cli(*words, "--atol", "0.1", "--rtol", "0").out


def test_the_comparison_as_json():
    (one,) = cli("run", "own.py", "--expect", "c=wrong.npy", "--json").json["compared"]
    assert one == {
        "name": "c",
        "expected": "wrong.npy",
        "verified": False,
        "elements": 256,
        "wrong": 2,
        "first": {
            "index": [70],
            "value": 140.0,
            "expected": 1.0,
            "file": "own.py",
            "line": 13,
            "core": "core 0 AIV1",
        },
        "largest_error": "inf",
        "rtol": 1.3e-6,
        "atol": 1e-5,
    }
    answer = cli("run", "own.py", "--expect", "c=right.npy", "--json").json
    assert (answer["verified"], answer["verdict"]) == (True, "verified")


def test_the_last_launch_with_an_array_of_the_name_counts():
    twice = dedent(KERNEL) + "double[4](a, c)\na += 1\ndouble[4](a, c)\nc[:] = 0\n"
    Path("own.py").write_text(twice, encoding="utf-8")
    np.save("right.npy", RIGHT + 2)
    assert cli("run", "own.py", "--expect", "c=right.npy").code == DONE


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("c=none.npy",), "cannot read none.npy: no such file"),
        (("c",), "--expect must be NAME=FILE, as z=golden.npy, got 'c'"),
        (("=right.npy",), "--expect must be NAME=FILE, as z=golden.npy, got '=right.npy'"),
        (("c=right.npy", "--expect", "c=wrong.npy"), "--expect c is given twice"),
        (("a=right.npy",), "--expect must name an array that a kernel writes (c), got a"),
        (("count=right.npy",), "--expect must name an array that a kernel writes (c), got count"),
        (
            ("cc=right.npy",),
            "--expect must name an array that a kernel writes (c), got cc; did you mean c?",
        ),
        (("c=half.npy",), "--expect c half.npy must hold float32, got float16"),
        (("c=short.npy",), "--expect c short.npy must have shape [256], got [255]"),
        (("c=short.bin",), "--expect c short.bin must have 1024 B, got 1020 B"),
        (("c=cut.npy",), "--expect c cut.npy must be a whole .npy file, got 24 of 1024 B of the "),
        (("c=text.npy",), "--expect c text.npy must be a .npy or .safetensors file, got another "),
        (("c=right.npy", "--rtol", "-1"), "--rtol must be a finite number from 0 on, got -1"),
        (("c=right.npy", "--atol", "inf"), "--atol must be a finite number from 0 on, got inf"),
        (("c=right.npy", "--atol", "nan"), "--atol must be a finite number from 0 on, got nan"),
    ],
)
def test_a_bad_expectation_is_one_sentence(words, line):
    np.save("half.npy", RIGHT.astype(np.float16))
    np.save("short.npy", RIGHT[1:])
    RIGHT[1:].tofile("short.bin")
    Path("cut.npy").write_bytes(Path("right.npy").read_bytes()[:152])
    Path("text.npy").write_text("no array at all", encoding="utf-8")
    ends = {"of the ": "array", "another ": "format"}
    line += next((rest for end, rest in ends.items() if line.endswith(end)), "")
    assert_refused(cli("run", "own.py", "--expect", *words), line)


def test_tolerances_and_expectations_need_what_they_are_about():
    assert_refused(cli("run", "own.py", "--rtol", "1"), "--rtol needs --expect NAME=FILE")
    assert_refused(cli("run", "own.py", "--atol", "1"), "--atol needs --expect NAME=FILE")
    product = ("run", "--m", "16", "--n", "16", "--k", "16")
    assert_refused(cli(*product, "--expect", "c=right.npy"), "--expect needs a script")
    operator = ("run", "--op", "gelu", "--shape", "16x16", "--expect", "c=right.npy")
    assert_refused(cli(*operator), "--expect does not apply to an operator")


# --- in Python


def test_a_launch_in_python_is_compared(folder):
    names = {}
    path = folder / "own.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    run = names["double"].using(trace=True)[4](names["a"], names["c"])
    one = cubecore.compare_result(run, "c", RIGHT)
    assert (one.verified, one.wrong, one.first, one.largest_error) == (True, 0, None, 0)
    one = cubecore.compare_result(run, "c", WRONG, rtol=0, atol=0)
    assert (one.verified, one.wrong, one.first.index) == (False, 3, (70,))
    assert (one.first.writer.location.line, one.first.writer.core) == (13, "core 0 AIV1")
    for name, values, line in (
        ("a", RIGHT, "name must name an array that double writes (c), got a"),
        ("c", RIGHT[1:], "expected must have shape [256], got [255]"),
        ("c", RIGHT.astype(np.int32), "expected must be of float32, as c, got int32"),
    ):
        with pytest.raises(RequestError) as error:
            cubecore.compare_result(run, name, values)
        assert str(error.value) == line
    untraced = names["double"][4](names["a"], names["c"])
    assert cubecore.compare_result(untraced, "c", WRONG).first.writer is None


def test_an_element_that_no_core_wrote_and_one_that_several_added_to():
    text = dedent(KERNEL).replace("first = core.block_idx * 64", "first = 0")
    text = text.replace(
        "    core.asc_copy_ub2gm", "    core.asc_set_atomic_add_float()\n    core.asc_copy_ub2gm"
    )
    names = {}
    exec(compile(text, "own.py", "exec"), names)
    run = names["double"].using(trace=True)[4](names["a"], names["c"])
    one = cubecore.compare_result(run, "c", np.full(256, 7, np.float32))
    assert one.text.splitlines()[-1].endswith("core 1 AIV1, the last of 4 cores that did")
    expected = names["c"].copy()
    expected[100] = 1
    lines = cubecore.compare_result(run, "c", expected).text.splitlines()
    assert lines[-1] == "  no instruction of the kernel wrote it"


# --- C++: a kernel, a program, an operator project

ADD = ("--entry", "add_queued", "--blocks", "8", "--arg", "x=x.npy", "--arg", "y=y.npy")
ADD = ("run", EXAMPLES / "vector_add.cpp", *ADD, "--arg", "share=2048")


def cpp_line(text):
    """Return the number of the line of the example that begins so."""
    lines = (EXAMPLES / "vector_add.cpp").read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip().startswith(text))


@needs_compiler
def test_a_kernel_in_cpp():
    x = np.arange(16384, dtype=np.float32)
    wrong = 2 * x
    wrong[9000:9010] = 0
    for name, values in (("x", x), ("y", x), ("right", 2 * x), ("wrong", wrong)):
        np.save(f"{name}.npy", values)
    answer = cli(*ADD, "--out-arg", "z=float32:16384:z.npy")
    verdict = "finished, no findings; result not compared (give --expect z=...)"
    assert (answer.code, told(answer)[0].split(": ", 1)[1]) == (DONE, verdict)
    out = (*ADD, "--out-arg", "z=float32:16384")
    assert cli(*out, "--expect", "z=right.npy").code == DONE
    answer = cli(*out, "--expect", "z=wrong.npy")
    where = f"vector_add.cpp:{cpp_line('AscendC::DataCopy(z_[first], z')} (CopyOut), core 2 AIV0"
    assert answer.code == FOUND
    assert told(answer)[1:3] == [
        f"z: 10 of 16,384 elements differ from wrong.npy by more than {LIMIT}",
        "  first z[9000] = 18000, expected 0; largest error 18018",
    ]
    assert told(answer)[3].endswith(where)
    names = "--expect must name an array that a kernel writes (z), got x"
    assert_refused(cli(*out, "--expect", "x=x.npy"), names)


C_KERNEL = """
    #include "c_api/asc_simd.h"
    extern "C" __global__ __vector__ void scale(__gm__ float* x, __gm__ float* z, float factor) {
      asc_init();
      __ubuf__ float a[64];
      asc_copy_gm2ub(a, x + 64 * block_idx, 256);
      asc_sync();
      asc_mul_scalar(a, a, factor, 64);
      asc_sync();
      asc_copy_ub2gm(z + 64 * block_idx, a, 256);
      asc_sync();
    }
"""


@needs_compiler
def test_a_kernel_in_c():
    Path("scale.cpp").write_text(dedent(C_KERNEL), encoding="utf-8")
    np.save("x.npy", RIGHT / 2)
    np.save("flat.npy", RIGHT.reshape(4, 64))
    np.save("half.npy", RIGHT.astype(np.float16))
    given = ("--arg", "x=x.npy", "--arg", "factor=2", "--out-arg", "z=float32:256")
    words = ("run", "scale.cpp", "--blocks", "4", *given)
    verdict = "finished, no findings; result not compared (give --expect z=...)"
    assert told(cli(*words)) == [f"scale.cpp: {verdict}"]
    answer = cli(*words, "--expect", "z=right.npy")
    assert (answer.code, told(answer)[0]) == (DONE, "scale.cpp: verified")
    assert cli(*words, "--expect", "z=right.bin").code == DONE
    answer = cli(*words, "--expect", "z=wrong.npy")
    line = dedent(C_KERNEL).splitlines().index("  asc_copy_ub2gm(z + 64 * block_idx, a, 256);") + 1
    assert answer.code == FOUND
    assert told(answer) == [
        "scale.cpp: FAILED: z not as expected",
        f"z: 2 of 256 elements differ from wrong.npy by more than {LIMIT}",
        "  first z[70] = 140, expected 1; largest error inf",
        f"  written at scale.cpp:{line} (scale), core 0 AIV1",
    ]
    shape = "--expect z flat.npy must have shape [256], got [4, 64]"
    assert_refused(cli(*words, "--expect", "z=flat.npy"), shape)
    dtype = "--expect z half.npy must hold float32, got float16"
    assert_refused(cli(*words, "--expect", "z=half.npy"), dtype)
    names = "--expect must name an array that a kernel writes (z), got x"
    assert_refused(cli(*words, "--expect", "x=right.npy"), names)
    assert_refused(cli(*words, "--expect", "z=no.npy"), "cannot read no.npy: no such file")


@needs_compiler
@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ("0", "finished, no findings; result not compared (give --expect gm2=...)"),
        ("wrong == 0 ? 0 : 3", "verified"),
    ],
)
def test_a_program_is_verified_if_its_exit_code_can_depend_on_its_result(end, verdict):
    text = (EXAMPLES / "vector_add.cpp").read_text(encoding="utf-8")
    main = MAIN.replace("COPY_Y", COPY).replace("wrong == 0 ? 0 : 3", end)
    Path("add.asc").write_text(text + main, encoding="utf-8")
    answer = cli("run", "add.asc")
    assert (answer.code, f"add.asc: {verdict}" in answer.out.splitlines()) == (DONE, True)


@needs_compiler
def test_a_program_is_compared_by_the_order_of_its_allocations():
    text = (EXAMPLES / "vector_add.cpp").read_text(encoding="utf-8")
    Path("add.asc").write_text(text + MAIN.replace("COPY_Y", COPY), encoding="utf-8")
    np.save("sum.npy", np.zeros(8 * 4096, np.float32))
    answer = cli("run", "add.asc", "--expect", "gm2=sum.npy", "--json")
    (one,) = answer.json["compared"]
    line = cpp_line("AscendC::DataCopy(z_[first], z")
    assert (answer.code, one["wrong"], one["first"]["line"]) == (FOUND, 8 * 4096, line)
    Path("few.bin").write_bytes(b"few")
    answer = cli("run", "add.asc", "--expect", "gm2=few.bin")
    assert answer.code == BAD_REQUEST
    assert answer.err.startswith("--expect gm2 few.bin must have ")


@needs_compiler
def test_an_operator_project_is_compared_by_the_names_of_its_registration(folder):
    kernel = AXPY.replace("GM_ADDR z", "GM_ADDR into").replace(
        "(__gm__ DTYPE_Z*)z", "(__gm__ DTYPE_Z*)into"
    )
    files = {"op_host/axpy_custom_tiling.h": TILING, "op_host/axpy_custom.cpp": HOST}
    write_files(folder / "axpy", {**files, "op_kernel/axpy_custom.cpp": kernel})
    x = np.arange(4096, dtype=np.float16).reshape(8, 512) % 13
    wrong = x * 3
    wrong[7, 500] += 1
    for name, values in (("x", x), ("right", x * 3), ("wrong", wrong), ("flat", x.reshape(-1))):
        np.save(f"{name}.npy", values)
    words = ("run", "axpy", "--arg", "x=x.npy", "--arg", "y=x.npy", "--arg", "alpha=2")
    verdict = "finished, no findings; result not compared (give --expect z=...)"
    assert told(cli(*words)) == [f"axpy: {verdict}"]
    assert told(cli(*words, "--expect", "z=right.npy"))[0] == "axpy: verified"
    answer = cli(*words, "--expect", "z=wrong.npy")
    line = kernel.splitlines().index("  DataCopy(to, made, own);") + 1
    assert answer.code == FOUND
    assert told(answer)[2].startswith(f"  first z[7, 500] = {x[7, 500] * 3:g}, expected ")
    assert f"axpy_custom.cpp:{line} (axpy_custom), core " in told(answer)[3]
    shape = "--expect z flat.npy must have shape [8, 512], got [4096]"
    assert_refused(cli(*words, "--expect", "z=flat.npy"), shape)
    names = "--expect must name an array that a kernel writes (z), got x"
    assert_refused(cli(*words, "--expect", "x=x.npy"), names)


# --- TIK

TIK = """
    import numpy as np
    from tbe import tik

    t = tik.Tik()
    x = t.Tensor("float16", (256,), name="x", scope=tik.scope_gm)
    z = t.Tensor("float16", (256,), name="z", scope=tik.scope_gm)
    a = t.Tensor("float16", (256,), name="a", scope=tik.scope_ubuf)
    t.data_move(a, x, 0, 1, 16, 0, 0)
    t.vec_add(128, a, a, a, 2, 8, 8, 8)
    t.data_move(z, a, 0, 1, 16, 0, 0)
    t.BuildCCE(kernel_name="double", inputs=[x], outputs=[z])
    t.tikdb.start_debug({"x": np.arange(256, dtype=np.float16)})
"""


def test_a_kernel_in_tik():
    Path("own.py").write_text(dedent(TIK), encoding="utf-8")
    half = RIGHT.astype(np.float16)
    np.save("right.npy", half)
    half[3] = 0
    np.save("wrong.npy", half)
    verdict = "finished, no findings; result not compared (give --expect z=...)"
    assert cli("run", "own.py", "--json").json["verdict"] == verdict
    assert cli("run", "own.py", "--expect", "z=right.npy").code == DONE
    answer = cli("run", "own.py", "--expect", "z=wrong.npy")
    assert answer.code == FOUND
    assert told(answer)[-3:] == [
        "z: 1 of 256 elements differ from wrong.npy by more than rtol 0.001 and atol 1e-05",
        "  first z[3] = 6, expected 0; largest error 6",
        "  written at own.py:11 (<module>), core 0 AIC",
    ]
    names = "--expect must name an array that a kernel writes (z), got x"
    assert_refused(cli("run", "own.py", "--expect", "x=right.npy"), names)

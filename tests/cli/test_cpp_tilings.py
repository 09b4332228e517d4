"""Tilings that `plan` writes as C++, compiled by the host's compiler."""

import json
import shutil
import subprocess

import pytest

import cubecore
from workflows.command import BAD_REQUEST, DONE, cli

SHAPE = ("--m", "512", "--n", "1024", "--k", "768")
NAMES = ("--name", "Ours", "--namespace", "a::b")
FIELDS = list(cubecore.plan(m=512, n=1024, k=768).tiling.to_json())


def compiled(tmp_path, source, use):
    """Return what a program prints that includes the source, beside a struct of 50 fields."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    fields = "".join(f"    int {name};\n" for name in FIELDS)
    setters = "".join(f"    void set_{name}(int v) {{ {name} = v; }}\n" for name in FIELDS)
    struct = f"struct TCubeTiling {{\n{fields}{setters}}};\n"
    shown = "".join(f'    std::printf("{name} %d\\n", t.{name});\n' for name in FIELDS)
    main = f"#include <cstdio>\n{struct}{source}\nint main() {{\n{use}\n{shown}}}\n"
    (tmp_path / "t.cpp").write_text(main.replace("#pragma once", ""))
    command = [compiler, "-std=c++11", "-Wall", "-Werror", "t.cpp", "-o", "t"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "t"], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in out.splitlines())}


@pytest.mark.parametrize(
    ("form", "use"),
    [
        ("cpp", "TCubeTiling t = a::b::Ours;"),
        ("cpp-setters", "TCubeTiling t{}; a::b::Ours(t);"),
    ],
)
def test_what_is_printed_compiles_to_the_plan(tmp_path, form, use):
    plan = cubecore.plan(m=512, n=1024, k=768)
    answer = cli("plan", *SHAPE, "--format", form, *NAMES)
    assert answer.code == DONE
    assert compiled(tmp_path, answer.out, use) == plan.tiling.to_json()
    cycles = f"({plan.predicted.cycles:,} cycles)"
    _, problem, predicted, *_ = answer.out.splitlines()
    assert problem == (
        "// C[512x1024] float32 = A[512x768] float16 x B[768x1024] float16 on Ascend910B3"
    )
    assert predicted.startswith("// Predicted ")
    assert cycles in predicted


def test_a_file_holds_the_same(tmp_path):
    path = tmp_path / "t.h"
    assert cli("plan", *SHAPE, "--out", str(path), *NAMES).code == DONE
    assert path.read_text() == cli("plan", *SHAPE, "--format", "cpp", *NAMES).out
    loaded = cubecore.load_tiling(path)
    assert loaded == cubecore.plan(m=512, n=1024, k=768).tiling


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--name", "k"), "--name needs --format or an --out of .h or .hpp"),
        (
            ("--format", "cpp", "--out", "t.json"),
            "--format cpp writes .h or .hpp, not t.json",
        ),
        (("--format", "cpp", "--name", "1x"), "header name must be a C++ identifier, got '1x'"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words, line):
    answer = cli("plan", *SHAPE, *words)
    assert (answer.code, answer.out, answer.err) == (BAD_REQUEST, "", line + "\n")
    answer = cli("plan", *SHAPE, *words, "--json")
    assert json.loads(answer.out)["error"]

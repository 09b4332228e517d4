"""Findings name the API's function at the user's line, and the calls that led there."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import cli, demo, kernels, needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(shutil.which("addr2line") is None, reason="no addr2line is here"),
]

TEXT = """#include "kernel_operator.h"
using namespace AscendC;
template <typename T>
struct Helper {
  LocalTensor<T> a{TPosition::VECCALC, 0, 256}, b{TPosition::VECCALC, 1024, 256};
  GlobalTensor<T> in, out;
  void Doubled(const LocalTensor<T>& to, const LocalTensor<T>& from) {
    Add(to, from, from, 256);
  }
  void Process() {
    auto load = [&](int n) { DataCopy(a, in, n); };
    load(256);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Doubled(b, a);
    PipeBarrier<PIPE_V>();
    Doubled(a, b);
    DataCopy(out, a, 256);
  }
};
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR z) {
  Helper<float> op;
  op.in.SetGlobalBuffer((__gm__ float*)x, 256);
  op.out.SetGlobalBuffer((__gm__ float*)z, 256);
  op.Process();
}
"""


def test_a_finding_in_a_helper_names_its_callers(tmp_path):
    """The second call of Doubled is at fault, not the first; the load is a lambda's."""
    (tmp_path / "twice.cpp").write_text(TEXT)
    np.save(tmp_path / "x.npy", np.ones(256, np.float32))
    words = ("--blocks", 1, "--arg", "x=x.npy", "--out-arg", "z=float32:256:z.npy")
    code, out, _ = cli(tmp_path, "run", "twice.cpp", *words, "--sarif", "found.sarif", "--json")
    (launch,) = json.loads(out)["launches"]
    (found,) = launch["findings"]
    assert (code, found["id"], found["location"]) == (1, "race-raw", "twice.cpp:18 (Process)")
    earlier, later = found["accesses"]
    assert (earlier["call"], earlier["location"]) == ("Add", "twice.cpp:8 (Doubled)")
    assert earlier["callers"] == ["twice.cpp:17 (Process)", "twice.cpp:25 (twice)"]
    assert (later["call"], later["callers"]) == ("DataCopy", ["twice.cpp:25 (twice)"])
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    related = [
        (each["message"]["text"], each["physicalLocation"]["region"]["startLine"])
        for each in result["relatedLocations"]
    ]
    assert related == [("write on V", 8), ("called by twice", 25)]

    (tmp_path / "late.cpp").write_text(TEXT.replace("    WaitFlag<HardEvent::MTE2_V>(0);\n", ""))
    code, out, _ = cli(tmp_path, "run", "late.cpp", *words)
    assert code == 1
    assert (
        "    DataCopy at late.cpp:11 (operator()), called at late.cpp:12 (Process), "
        "late.cpp:24 (twice)\n"
        "    Add at late.cpp:8 (Doubled), called at late.cpp:14 (Process), late.cpp:24 (twice)\n"
    ) in out


HEADER = """#pragma once
#include "kernel_operator.h"
using namespace AscendC;
template <typename T, int N>
struct Tile {
  LocalTensor<T> t{TPosition::VECCALC, 0, N};
  void Wrong();
  void Outer() {
    Wrong();
  }
};
template <typename T, int N>
void Tile<T, N>::Wrong() {
  Duplicate(t[1 << 20], T(1.0f), 64);
}
template <auto function, typename T>
void Through(T& t) {
  function(t);
}
"""
USES = """#include "tiles/tile.h"
template <typename T>
void Deep(LocalTensor<T>& a, int depth) {
  if (depth == 0) {
    Duplicate(a[1 << 20], T(1.0f), 64);
    return;
  }
  Deep(a, depth - 1);
}
void Plain(LocalTensor<float>& a) {
  Duplicate(a[1 << 20], 1.0f, 64);
}
struct Base {
  virtual void Go(LocalTensor<float>& a) {}
};
struct Derived : Base {
  void Go(LocalTensor<float>& a) override { Plain(a); }
};
__global__ __vector__ void member() {
  Tile<float, 64> t;
  t.Outer();
}
__global__ __vector__ void deep() {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Deep(a, 2);
}
__global__ __vector__ void through() {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Through<Plain>(a);
}
__global__ __vector__ void dynamic() {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Derived d;
  Base* b = &d;
  b->Go(a);
}
"""
STACKS = {
    "member": ["tile.h:14 Wrong", "tile.h:9 Outer", "uses.cpp:21 member"],
    "deep": ["uses.cpp:5 Deep", *["uses.cpp:8 Deep"] * 2, "uses.cpp:25 deep"],
    "through": ["uses.cpp:11 Plain", "tile.h:18 Through", "uses.cpp:29 through"],
    "dynamic": ["uses.cpp:11 Plain", "uses.cpp:17 Go", "uses.cpp:35 dynamic"],
}


@pytest.mark.sweep
def test_members_of_headers_recursion_and_calls_through_pointers_are_told(tmp_path):
    (tmp_path / "tiles").mkdir()
    (tmp_path / "tiles" / "tile.h").write_text(HEADER)
    (tmp_path / "uses.cpp").write_text(USES)
    made = cubecore.load(tmp_path / "uses.cpp")
    for name, stack in STACKS.items():
        (found,) = made[name][1]().findings
        where = [found.location, *found.location.callers]
        told = [f"{Path(at.file).name}:{at.line} {at.function.partition('<')[0]}" for at in where]
        assert (found.id, told) == ("out-of-bounds", stack)


def test_a_kernel_may_have_the_name_of_a_namespace_or_of_the_c_library():
    bodies = dict.fromkeys(("matmul", "sin"), "LocalTensor<float> a; Add(a[8], a, a, 8);")
    made = kernels(bodies)
    for name in bodies:
        (found, *_) = made[name][1](np.zeros(8, np.float32)).findings
        assert (found.location.function, found.location.call) == (name, "Add")


PROGRAM = """#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
__global__ __vector__ void k(__gm__ uint8_t* x) {
  GlobalTensor<float> in;
  in.SetGlobalBuffer((__gm__ float*)x, 64);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  DataCopy(a, in, 64);
  Adds(a, a, 1.0f, 64);
}
int main() {
  uint8_t* x = nullptr;
  aclrtMalloc((void**)&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 256, 0, 256);
  k<<<1, nullptr, nullptr>>>(x);
}
"""


def test_the_calls_of_a_program_end_at_its_launch(tmp_path):
    (tmp_path / "p.asc").write_text(PROGRAM)
    assert cli(tmp_path, "c++", "p.asc", "-o", "demo") == (0, "", "")
    code, _, err = demo(tmp_path)
    assert code == 1
    assert "    Adds at p.asc:9 (k), called at p.asc:15 (the launch)" in err.splitlines()

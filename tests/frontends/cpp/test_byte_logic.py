"""And, Or and Not of 8-bit elements by a count: the chip's bits, with a note; by a mask refused."""

import json

import numpy as np
import pytest

import cubecore
from cubecore.machine.sanitize.findings import faults
from frontends.cpp.cpp_kernels import cli, needs_compiler

pytestmark = needs_compiler
N = 1024
TEXT = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void f(GM_ADDR x, GM_ADDR y, GM_ADDR out, int32_t count) {
  LocalTensor<ELEMENT> a(TPosition::VECCALC, 0, 1024), b(TPosition::VECCALC, 1024, 1024);
  LocalTensor<ELEMENT> c(TPosition::VECCALC, 2048, 1024);
  GlobalTensor<ELEMENT> gx, gy, go;
  gx.SetGlobalBuffer((__gm__ ELEMENT*)x, 1024);
  gy.SetGlobalBuffer((__gm__ ELEMENT*)y, 1024);
  go.SetGlobalBuffer((__gm__ ELEMENT*)out, 1024);
  DataCopy(a, gx, 1024);
  DataCopy(b, gy, 1024);
  DataCopy(c, go, 1024);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  CALL;
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(go, c, 1024);
}
"""
CALLS = {
    "vand": ("And(c, a, b, count)", np.bitwise_and),
    "vor": ("Or(c, a, b, count)", np.bitwise_or),
    "vnot": ("Not(c, a, count)", lambda x, _: np.invert(x)),
}


def arrays(dtype):
    rng = np.random.default_rng(1)
    return (rng.integers(0, 256, N).astype(np.uint8).view(dtype) for _ in range(3))


def kernel(element, call, **options):
    return cubecore.inline(TEXT, {"ELEMENT": f"{element}_t", "CALL": call}, **options).f


@pytest.mark.thinned(12)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("element", ["int8", "uint8"])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_bytes_by_a_count(name, element, engine):
    call, function = CALLS[name]
    made = kernel(element, call, engine=engine)
    for count in (N, 1, 255, 256, 257, 1023):
        x, y, out = arrays(np.dtype(element))
        right = np.concatenate([function(x, y)[:count], out[count:]])
        run = made[1](x, y, out, count)
        assert np.array_equal(out, right)
        (note,) = run.findings
        assert (note.id, run.clean, note.count) == ("unlisted-type", True, 1)
        assert str(note.location) == "inline.cpp:15 (f)"
        assert note.message == (
            f"{name} of {element} by a count gives the chip's bits; "
            "the documentation lists int16 and uint16"
        )


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_note_counts_every_issue_of_every_core_at_each_line(engine):
    call = "for (int i = 0; i < 3; ++i) And(c, a, b, count);\n  Or(c, a, b, count)"
    text = TEXT.replace("CALL", call).replace("ELEMENT", "int8_t")
    made = cubecore.inline(text, engine=engine).f
    x, y, out = (np.zeros(N, np.int8) for _ in range(3))
    run = made.using(checks="memcheck")[4](x, y, out, N)
    told = [(n.instruction, n.location.line, n.count) for n in run.findings]
    assert told == [("vand", 15, 12), ("vor", 16, 4)]


@pytest.mark.sweep
def test_an_odd_count_asks_for_no_byte_behind_it():
    text = TEXT.replace("DataCopy(a, gx, 1024)", "DataCopy(a, gx, 32)").replace(
        "DataCopy(b, gy, 1024)", "DataCopy(b, gy, 32)"
    )
    defines = {"ELEMENT": "int8_t", "CALL": "And(c, a, b, count)"}
    made = cubecore.inline(text, defines).f
    x, y, out = arrays(np.int8)
    assert [f.id for f in made[1](x, y, out, 31).findings] == ["unlisted-type"]
    (finding,) = faults(made[1](x, y, out, 33).findings)[:1]
    assert finding.message.startswith("vand.src0 must be initialised in UB, got 1 of ")


@pytest.mark.parametrize("element", ["int16", "uint16"])
def test_listed_types_have_no_note(element):
    text = TEXT.replace(", 1024)", ", 512)")
    made = cubecore.inline(text, {"ELEMENT": f"{element}_t", "CALL": "And(c, a, b, count)"}).f
    x, y, out = (np.zeros(512, element) for _ in range(3))
    run = made[1](x, y, out, 512)
    assert run.findings == ()


@pytest.mark.parametrize("call", ["And(c, a, b, 64, 1, {1, 1, 1, 8, 8, 8})", "Add(c, a, b, count)"])
def test_a_mask_and_other_functions_take_no_bytes(call):
    defines = {"ELEMENT": "int8_t", "CALL": "X"}
    text = TEXT.replace("CALL;", f"{call};")
    x, y, out = arrays(np.int8)
    (finding,) = cubecore.inline(text, defines).f[1](x, y, out, N).findings
    name, listed = (
        ("vand", "int16, uint16")
        if call.startswith("And")
        else ("vadd", "int16, float16, int32, float32")
    )
    assert finding.message == f"{name}.dtype must be one of {listed}, got int8"


def test_the_command_line_shows_the_note_and_exits_0(tmp_path):
    text = TEXT.replace("CALL", CALLS["vand"][0]).replace("ELEMENT", "int8_t")
    (tmp_path / "k.cpp").write_text(text)
    for name in ("x", "y", "out"):
        np.save(tmp_path / f"{name}.npy", np.ones(N, np.int8))
    words = ["run", "k.cpp", "--blocks", "1", "--arg", f"count={N}"]
    words += [w for name in ("x", "y", "out") for w in ("--arg", f"{name}={name}.npy")]
    note = "vand of int8 by a count gives the chip's bits; the documentation lists int16 and uint16"
    text = note.replace("vand", "And (vand) at k.cpp:15")
    line = f"  unlisted-type: {text} (1 time; block 0 (core 0 AIV0))"
    code, out, _ = cli(tmp_path, *words)
    assert (code, out.splitlines()[3:6]) == (0, ["  findings none", "Notes: 1", line])
    code, out, _ = cli(tmp_path, *words, "--json")
    (told,) = json.loads(out)["launches"][0]["findings"]
    assert (code, told["id"], told["note"], told["message"]) == (0, "unlisted-type", True, note)


def test_python_kernels_have_the_note():
    @cubecore.kernel(outputs="z")
    def both(core, x, z):
        a = core.ubuf("int8", N)
        core.asc_copy_gm2ub_sync(a, x, N)
        core.asc_not_sync(a, a, N)
        core.asc_copy_ub2gm_sync(z, a, N)

    x, z = np.arange(N).astype(np.int8), np.zeros(N, np.int8)
    run = both[1](x, z)
    assert (run.clean, np.array_equal(z, ~x)) == (True, True)
    (note,) = run.findings
    assert note.location.file.endswith("test_byte_logic.py")
    assert note.message == (
        "vnot of int8 by a count gives the chip's bits; the documentation lists int16 and uint16"
    )

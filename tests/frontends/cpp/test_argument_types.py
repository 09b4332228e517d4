"""Typed pointers of C++ kernels: the arrays that they take, and those that they refuse."""

import json

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import cli, needs_compiler

pytestmark = needs_compiler
N = 128
TEXT = """#include "kernel_operator.h"
using namespace AscendC;
#ifndef DTYPE_X
#define DTYPE_X half
#endif
template <typename T>
__aicore__ inline void copy(__gm__ void* x, __gm__ void* y) {
  LocalTensor<uint8_t> t(TPosition::VECCALC, 0, sizeof(T) * 128);
  GlobalTensor<uint8_t> xg, yg;
  xg.SetGlobalBuffer((__gm__ uint8_t*)x);
  yg.SetGlobalBuffer((__gm__ uint8_t*)y);
  DataCopy(t, xg, sizeof(T) * 128);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(yg, t, sizeof(T) * 128);
}
template <typename T>
__global__ __aicore__ void of_template(__gm__ const T* x, GM_ADDR y) {
  copy<T>((__gm__ void*)x, y);
}
extern "C" __global__ __aicore__ void both(__gm__ float* x, __gm__ float* y) { copy<float>(x, y); }
"""
ENTRY = """extern "C" __global__ __aicore__ void of_{name}(__gm__ {type}* x, GM_ADDR y) {{
  copy<{width}>(x, y);
}}
"""
TYPES = {
    "float": ("float", "float"),
    "half": ("half", "half"),
    "bfloat16": ("bfloat16_t", "half"),
    "uint32": ("uint32_t", "float"),
    "int16": ("int16_t", "half"),
    "byte": ("uint8_t", "half"),
    "void": ("void", "half"),
    "fp8": ("fp8_e4m3fn_t", "uint8_t"),
    "hif8": ("hifloat8_t", "uint8_t"),
    "int4": ("int4b_t", "uint8_t"),
    "macro": ("DTYPE_X", "half"),
}
TEXT += "".join(ENTRY.format(name=n, type=t, width=w) for n, (t, w) in TYPES.items())


@pytest.fixture(scope="module")
def module():
    return cubecore.inline(TEXT)


def launched(entry, values):
    given = np.ascontiguousarray(values)
    out = np.zeros_like(given)
    run = entry[1](given, out)
    assert (given.tobytes(), run.clean) == (out.tobytes(), True)
    return run


def numbers(dtype):
    return np.arange(N).astype(dtype)


CODES16 = np.arange(N, dtype="u2").view("V2")
CODES8 = np.arange(N, dtype="u1").view("V1")


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("of_float", numbers(np.float32)),
        ("of_half", numbers(np.float16)),
        ("of_bfloat16", numbers(ml_dtypes.bfloat16)),
        ("of_bfloat16", numbers(np.uint16)),
        ("of_bfloat16", CODES16),
        ("of_uint32", numbers(np.uint32)),
        ("of_int16", CODES16),
        ("of_byte", numbers(np.float16)),
        ("of_byte", CODES16),
        ("of_void", numbers(np.float16)),
        ("of_fp8", numbers(ml_dtypes.float8_e4m3fn)),
        ("of_fp8", CODES8),
        ("of_hif8", numbers(np.uint8)),
        ("of_int4", numbers(np.uint8)),
        ("of_macro", numbers(np.float16)),
        ("of_template<half>", numbers(np.float16)),
        ("of_template<float>", numbers(np.float32)),
    ],
)
def test_a_pointer_takes_arrays_of_its_type_and_codes(module, name, values):
    assert launched(module[name], values).findings == ()


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        (
            "of_float",
            numbers(np.float16),
            "x must be float32 for `__gm__ float*`, got float16; convert it with"
            " x.astype(np.float32), or declare the parameter GM_ADDR",
        ),
        (
            "of_half",
            numbers(np.uint16),
            "x must be float16 for `__gm__ half*`, got uint16; convert it with"
            " x.astype(np.float16), or declare the parameter GM_ADDR",
        ),
        (
            "of_half",
            CODES16,
            "x must be float16 for `__gm__ half*`, got V2; convert it with"
            " x.view(np.float16), or declare the parameter GM_ADDR",
        ),
        (
            "of_bfloat16",
            numbers(np.float16),
            "x must be bfloat16 for `__gm__ bfloat16_t*`, got float16; convert it with"
            " x.astype(ml_dtypes.bfloat16), or declare the parameter GM_ADDR",
        ),
        (
            "of_bfloat16",
            numbers(np.uint8),
            "x must be bfloat16 for `__gm__ bfloat16_t*`, got uint8; convert it with"
            " x.astype(ml_dtypes.bfloat16), or declare the parameter GM_ADDR",
        ),
        (
            "of_uint32",
            numbers(np.float32),
            "x must be uint32 for `__gm__ uint32_t*`, got float32; convert it with"
            " x.astype(np.uint32), or declare the parameter GM_ADDR",
        ),
        (
            "of_hif8",
            numbers(np.float16),
            "x must be hifloat8 for `__gm__ hifloat8_t*`, got float16;"
            " pass its codes in a uint8 array, or declare the parameter GM_ADDR",
        ),
        (
            "of_int4",
            numbers(np.int32),
            "x must be int4 for `__gm__ int4b_t*`, got int32;"
            " pass two elements to a byte in a uint8 array, or declare the parameter GM_ADDR",
        ),
        (
            "of_template<half>",
            numbers(np.float32),
            "x must be float16 for `__gm__ half*`, got float32; convert it with"
            " x.astype(np.float16), or declare the parameter GM_ADDR",
        ),
    ],
)
def test_a_pointer_refuses_arrays_of_other_types(module, name, values, sentence):
    with pytest.raises(CubecoreError) as caught:
        module[name][1](values, np.zeros_like(values))
    assert str(caught.value) == sentence


def test_a_macro_has_the_type_that_it_is_defined_as():
    entry = cubecore.inline(TEXT, {"DTYPE_X": "int16_t"}).of_macro
    assert launched(entry, numbers(np.int16)).findings == ()
    with pytest.raises(
        CubecoreError, match=r"^x must be int16 for `__gm__ int16_t\*`, got float16"
    ):
        entry[1](numbers(np.float16), numbers(np.float16))


def test_another_sign_is_a_note(module):
    run = launched(module.of_uint32, numbers(np.int32))
    sentence = "x is int32 for `__gm__ uint32_t*`: its bits are taken as they are"
    (note,) = run.findings
    assert (note.id, note.message, run.clean) == ("other-sign", sentence, True)
    assert run.to_json()["findings"][0]["note"]
    unchecked = module.of_uint32.using(checks="none")
    assert launched(unchecked, numbers(np.int32)).findings == ()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "copies.cpp"
    path.write_text(TEXT)
    return path


def asked(source, *words):
    return cli(source.parent, "run", source, "--blocks", "1", *words)


def test_the_command_line_refuses_and_takes(tmp_path, source):
    np.save(tmp_path / "half.npy", numbers(np.float16))
    np.save(tmp_path / "float.npy", numbers(np.float32))
    numbers(np.float32).tofile(tmp_path / "x.bin")
    (tmp_path / "odd.bin").write_bytes(bytes(7))
    entry = "--entry", "both"
    right = "--out-arg", f"y=float32:{N}:{tmp_path / 'y.npy'}"
    for file in ("float.npy", "x.bin"):
        code, out, err = asked(source, *entry, "--arg", f"x={tmp_path / file}", *right)
        assert (code, err) == (0, "")
        assert np.array_equal(np.load(tmp_path / "y.npy"), numbers(np.float32))
    code, out, err = asked(source, *entry, "--arg", f"x={tmp_path / 'half.npy'}", *right)
    assert (code, out) == (2, "")
    assert err == (
        "x must be float32 for `__gm__ float*`, got float16; convert it with"
        " x.astype(np.float32), or declare the parameter GM_ADDR\n"
    )
    code, out, err = asked(source, *entry, "--arg", f"x={tmp_path / 'odd.bin'}", *right)
    assert (code, out) == (2, "")
    assert err == "x must have whole elements of float32, 4 B each, got 7 B\n"
    wrong = "--out-arg", f"y=float16:{N}"
    code, out, err = asked(source, *entry, "--arg", f"x={tmp_path / 'float.npy'}", *wrong)
    assert (code, out) == (2, "")
    assert err == (
        "y must be float32 for `__gm__ float*`, got float16; convert it with"
        " y.astype(np.float32), or declare the parameter GM_ADDR\n"
    )


def test_an_array_that_is_filled_in_place_has_the_type_too(tmp_path, source):
    np.save(tmp_path / "x.npy", numbers(np.float32))
    np.save(tmp_path / "y.npy", np.zeros(2 * N, np.float16))
    words = (
        "--entry",
        "both",
        "--arg",
        f"x={tmp_path / 'x.npy'}",
        "--arg",
        f"y={tmp_path / 'y.npy'}",
    )
    code, out, err = asked(source, *words, "--out-arg", f"y=float32:{N}")
    assert (code, out) == (2, "")
    assert err.startswith("y must be float32 for `__gm__ float*`, got float16; convert")


def test_notes_are_printed_and_fail_nothing(tmp_path, source):
    np.save(tmp_path / "x.npy", numbers(np.int32))
    words = "--entry", "of_uint32", "--arg", f"x={tmp_path / 'x.npy'}", "--out-arg", f"y=uint32:{N}"
    code, out, _ = asked(source, *words)
    assert code == 0
    note = "x is int32 for `__gm__ uint32_t*`: its bits are taken as they are"
    line = f"  other-sign: copies.cpp:31: {note}"
    assert out.splitlines()[3:6] == ["  findings none", "Notes: 1", line]
    code, out, _ = asked(source, *words, "--json")
    (told,) = json.loads(out)["launches"][0]["findings"]
    assert (code, told["id"], told["note"], told["message"]) == (0, "other-sign", True, note)

"""Damaged .npy files: one sentence, whatever the damage."""

import random
import struct
import warnings

import numpy as np
import pytest

from parts import part
from workflows.command import PROBLEM, assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

ARRAY = np.arange(256, dtype=np.float16).reshape(16, 16)
DAMAGED = "must be a whole .npy file, got a damaged header"


def _with_header(text, version=b"\1\0"):
    size = struct.pack("<H" if version == b"\1\0" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text + ARRAY.tobytes()


HEADERS = {
    "open": b"{'descr': '<f2', 'fortran_order': False, 'shape': (16, 16",
    "deep": b"[" * 5000,
    "powers": b"{'descr': '<f2', 'fortran_order': False, 'shape': (" + b"-" * 4000 + b"1,)}",
    "keys": b"{'descr': '<f2', 'shape': (16, 16)}",
    "type": b"{'descr': '<f3', 'fortran_order': False, 'shape': (16, 16)}",
    "no type": b"{'descr': ['a'], 'fortran_order': False, 'shape': (16, 16)}",
    "bytes": b"{'descr': '\xff\xfe', 'fortran_order': False, 'shape': (16, 16)}",
    "escape": b"{'\\d': '<f2', 'fortran_order': False, 'shape': (16, 16)}",
    "number": b"9" * 5000,
    "long": b" " * 20000,
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("version", [b"\1\0", b"\2\0", b"\3\0"], ids=["1.0", "2.0", "3.0"])
@pytest.mark.thinned(4)
def test_a_damaged_header_is_one_sentence(folder, name, version):
    (folder / "x.npy").write_bytes(_with_header(HEADERS[name], version))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_refused(cli("run", *PROBLEM, "--a-file", "x.npy"), f"--a-file x.npy {DAMAGED}")


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"\x93NUMPY", "version none"),
        (b"\x93NUMPY\4", "version 4"),
        (b"\x93NUMPY\4\2", "version 4.2"),
        (b"\x93NUMPY\1\0\x76", "a damaged header"),
    ],
)
def test_a_file_that_ends_in_its_header(folder, data, got):
    (folder / "x.npy").write_bytes(data)
    line = f"--a-file x.npy must be a whole .npy file, got {got}"
    assert_refused(cli("run", *PROBLEM, "--a-file", "x.npy"), line)


def test_an_array_that_ends_early(folder):
    np.save("x.npy", ARRAY)
    whole = (folder / "x.npy").read_bytes()
    (folder / "x.npy").write_bytes(whole[:-12])
    line = "--a-file x.npy must be a whole .npy file, got 500 of 512 B of the array"
    assert_refused(cli("run", *PROBLEM, "--a-file", "x.npy"), line)


def test_a_damaged_safetensors_file(folder):
    (folder / "x.safetensors").write_bytes(b"\xff" * 100)
    line = "--a-file x.safetensors must be a whole .safetensors file, got a damaged one"
    assert_refused(cli("run", *PROBLEM, "--a-file", "x.safetensors"), line)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f2", ">f2"])
def test_a_whole_file_is_the_array(folder, order, kind):
    np.save("x.npy", np.asarray(ARRAY, kind, order=order))
    np.save("one.npy", np.eye(16, dtype=np.float16))
    given = ("--a-file", "x.npy", "--b-file", "one.npy", "--c", "float16", "--out", "c.npy")
    assert cli("run", *PROBLEM, *given).code == 0
    assert np.array_equal(np.load("c.npy"), ARRAY)
    assert folder


def test_no_mutated_header_ends_in_a_traceback(folder):
    np.save("x.npy", ARRAY)
    whole = (folder / "x.npy").read_bytes()
    rng = random.Random(0)
    for _ in range(part(300, 25)):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(128)] = rng.choice(b"\0\n\"'([{}])\\,0129<>f\xff")
        (folder / "x.npy").write_bytes(data)
        answer = cli("run", *PROBLEM, "--a-file", "x.npy")
        assert answer.code in {0, 1, 2}
        if answer.code:
            assert answer.err.count("\n") == 1, answer.err
            assert "internal error" not in answer.err

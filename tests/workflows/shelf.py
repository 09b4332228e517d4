"""A folder of good, bad and hostile files."""

import json
import os
import pickle
import struct
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import cubecore
from cubecore.tiling.model.cpp_source import to_header
from workflows.command import SIZE

TILING = cubecore.plan(m=SIZE, n=SIZE, k=SIZE).tiling
PICKLED = Path(__file__).with_name("unpickled")
"""Unpickling one of the hostile files would make this."""


class Hostile:
    """Unpickled, it runs a command."""

    def __reduce__(self):
        return Path.touch, (PICKLED,)


def fill(root):
    """Put every file into `root`."""
    a = np.random.default_rng(0).integers(-3, 4, (SIZE, SIZE)).astype(np.float16)
    _arrays(root, a)
    _tilings(root)


def _arrays(root, a):
    arrays = {
        "a": a,
        "float32": a.astype(np.float32),
        "short": a[:8],
        "flat": a.reshape(-1),
        "fortran": np.asfortranarray(a),
        "big": a.astype(">f2"),
        "zero": np.float16(3),
        "v2": a.view("V2"),
        "u16": a.view(np.uint16),
        "i16": a.view(np.int16),
        "u8": a.view(np.uint8),
        "fortran_u16": np.asfortranarray(a).view(np.uint16),
        "text": np.full((SIZE, SIZE), "ab"),
        "bool": a > 0,
        "complex": a.astype(complex),
        "named": np.zeros((SIZE, SIZE), [("x", "f2")]),
    }
    for name, values in arrays.items():
        np.save(root / f"{name}.npy", values)
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        holed = a.copy()
        holed[3, 4] = value
        np.save(root / f"{name}.npy", holed)
    objects = np.empty((SIZE, SIZE), object)
    objects[:] = Hostile()
    np.save(root / "pickled.npy", objects, allow_pickle=True)
    buffer = BytesIO()
    np.lib.format.write_array(buffer, objects, version=(3, 0), allow_pickle=True)
    (root / "pickled3.npy").write_bytes(buffer.getvalue())
    (root / "bare_pickle.npy").write_bytes(pickle.dumps(Hostile()))
    whole = (root / "a.npy").read_bytes()
    (root / "truncated.npy").write_bytes(whole[:300])
    (root / "headless.npy").write_bytes(whole[:20])
    (root / "empty.npy").write_bytes(b"")
    (root / "noise.npy").write_bytes(os.urandom(300))
    (root / "huge.npy").write_bytes(_npy_header((10**12, 10**6)))
    (root / "negative.npy").write_bytes(_npy_header((-1, SIZE)) + bytes(512))
    with warnings.catch_warnings():
        np.savez(root / "several.npz", a=a)
    (root / "several.npz").rename(root / "several.npy")
    save_file({"w": a}, root / "one.safetensors")
    save_file({"v": a + 1, "w": a}, root / "two.safetensors")
    save_file({}, root / "none.safetensors")
    save_file({"w": a.astype(np.float64)}, root / "float64.safetensors")
    save_file({"w": a[:4]}, root / "short.safetensors")
    (root / "noise.safetensors").write_bytes(b"\xff" * 100)
    (root / "truncated.safetensors").write_bytes((root / "one.safetensors").read_bytes()[:-9])


def _npy_header(shape):
    text = f"{{'descr': '<f2', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _tilings(root):
    fields = TILING.to_json()
    texts = {
        "good": fields,
        "other": cubecore.plan(m=32, n=SIZE, k=SIZE).tiling.to_json(),
        "missing": {k: v for k, v in fields.items() if k != "baseM"},
        "misspelt": {("basem" if k == "baseM" else k): v for k, v in fields.items()},
        "extra": fields | {"baseX": 1},
        "fraction": fields | {"baseM": 16.5},
        "wide": fields | {"baseM": 10**30},
        "text": fields | {"baseM": "16"},
        "truth": fields | {"baseM": True},
        "illegal": fields | {"baseM": 24},
        "twice_illegal": fields | {"baseM": 24, "baseN": 24},
        "zeros": dict.fromkeys(fields, 0) | {"M": 16, "N": 16, "Ka": 16, "Kb": 16},
        "largest": dict.fromkeys(fields, 2**31 - 1) | {"M": 16, "N": 16, "Ka": 16, "Kb": 16},
        "least": dict.fromkeys(fields, -(2**31)) | {"M": 16, "N": 16, "Ka": 16, "Kb": 16},
    }
    for name, values in texts.items():
        (root / f"{name}.json").write_text(json.dumps(values))
    (root / "good.h").write_text(to_header(TILING))
    (root / "good.bin").write_bytes(TILING.to_bytes())
    (root / "cut.bin").write_bytes(TILING.to_bytes()[:199])
    (root / "long.bin").write_bytes(TILING.to_bytes() + bytes(4))
    (root / "cut.json").write_text('{"baseM": ')
    (root / "list.json").write_text("[1, 2]")
    (root / "twice.json").write_text('{"baseM": 1, "baseM": 2}')
    (root / "empty.json").write_text("")
    (root / "latin.json").write_bytes('{"é": 1}'.encode("latin-1"))
    (root / "noise.bin").write_bytes(bytes(range(256)))
    (root / "short.h").write_text("constexpr TCubeTiling t = {1, 2, 3};")
    (root / "long.json").write_bytes(b" " * (1024 * 1024 + 1))
    (root / "loop").symlink_to("loop")

"""Mutated files of every format, through every verb that reads it."""

import json
import signal
import sqlite3
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.rewriting.scanner import scanned
from cubecore.tiling.model.export import tiling_data
from cubecore.workflows.calibration.measured_points import PUBLISHED
from fuzz.judge import commanded, guard, judge, processed

SIZE = 16
SHAPE = ("--m", SIZE, "--n", SIZE, "--k", SIZE)
FORMATS = (
    *("a.npy", "a.safetensors", "k.cpp", "k.py", "o.csv", "p.jsonl", "q.jsonl", "s.sqlite"),
    *("t.bin", "t.h", "t.hex", "t.json"),
)
"""One file of each format, by name."""
_TOKENS = [
    *(b"\0", b"\xff", b"{", b"}", b"[", b"]", b"(", b",", b":", b"'", b'"', b"\\", b"\n", b"-"),
    *(b"1e999", b"NaN", b"null", b"true", b"9" * 400, b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\\ud800"),
    *(b"-1", b"2147483648", b"[" * 3000, b"<f2", b"|O", b"\xff\xfe", b" " * 200),
]


def mutated(data, rng):
    """Return bytes with a few changes: flipped, cut, doubled, or with a token in them."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        size = len(made)
        at = rng.randrange(min(size, 160) if rng.random() < 0.5 else size) if size else 0
        kind = rng.randrange(5)
        if kind == 0 and size:
            made[at] = rng.randrange(256)
        elif kind == 1:
            made[at:at] = rng.choice(_TOKENS)
        elif kind == 2:
            made[at : at + rng.randint(1, 9)] = rng.choice(_TOKENS)
        elif kind == 3:
            del made[at : at + rng.choice((1, 2, 9, size))]
        else:
            made[at:at] = made[at : at + rng.randint(1, 60)]
    return bytes(made)


_SCRIPT = """import numpy as np
from cubecore import kernel


@kernel(outputs="y", types={"x": "float", "y": "float"})
def double(core, x, y, count):
    a = core.ubuf("float", 64)
    for first in range(0, count, 64):
        core.asc_copy_gm2ub_sync(a, x + first, 256)
        core.asc_add_sync(a, a, a, 64)
        core.asc_copy_ub2gm_sync(y + first, a, 256)


if __name__ == "__main__":
    x = np.arange(128, dtype=np.float32)
    y = np.empty_like(x)
    double[1](x, y, 128)
    assert (y == 2 * x).all(), "not doubled"
"""
_CPP = """#include "kernel_operator.h"
constexpr int32_t TILE = 64;
extern "C" __global__ __aicore__ void copy(GM_ADDR x, GM_ADDR y, uint32_t n) {
    __ubuf__ float a[TILE];  // "of one tile"
    for (uint32_t i = 0; i < n / TILE; ++i) {
        asc_copy_gm2ub_sync(a, (__gm__ float*)x + i * TILE, 256);
        asc_copy_ub2gm_sync((__gm__ float*)y + i * TILE, a, 256);
    }
}
int main() { copy<<<1, nullptr, nullptr>>>(nullptr, nullptr, 64); }
"""
_ROWS = (
    "Op Name,OP Type,Task Duration(us),Block Dim,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,aic_mac_time(us)\n",
    'mm,MatMulV3,12.5,20,"""64,32;32,48""",FLOAT16;FLOAT16,ND;ND,"""64,48""",FLOAT16,ND,1.5\n',
    'mm2,MatMulV3,9,4,"""16,16;16,16""",INT8;INT8,ND;ND,"""16,16""",INT32,ND,N/A\n',
    'soft,SoftmaxV2,3,4,"""16,16""",FLOAT16,ND,"""16,16""",FLOAT16,ND,N/A\n',
)
"""A profiler's op_summary."""
_SECONDS = 20
"""How long a script may take that a mutation lets run on; it is none of our faults."""


def _smallest(lines):
    """Return a point of each kind, of the smallest product."""
    found = {}
    for line in lines:
        point = json.loads(line)
        size = point.get("m") or 1
        size *= (point.get("n") or 1) * (point.get("k") or 1)
        if size < found.get(point["kind"], (2**62, ""))[0]:
            found[point["kind"]] = size, line
    return [line for _, line in found.values()]


def _scanned(arguments):
    """Return what a command would, of the scanner alone, which reads a C++ file first."""
    text = Path(arguments[-1]).read_bytes().decode("utf-8", "surrogateescape")
    try:
        scanned(text)
    except CubecoreError as error:
        return 2, "", str(error)
    except Exception as error:  # noqa: BLE001 - what this tester is for
        return 70, "", f"{type(error).__name__}: {error}"
    return 0, "", ""


def _limited(run):
    """Return `run`, for scripts: after some seconds an exception ends one."""

    def limited(arguments):
        def end(*_):
            raise TimeoutError

        before = signal.signal(signal.SIGALRM, end)
        signal.alarm(_SECONDS)
        try:
            return run(arguments)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    return limited


def fill(folder):
    """Put a whole file of every format into a folder; return commands by the file's name."""
    a = np.random.default_rng(0).integers(-3, 4, (SIZE, SIZE)).astype(np.float16)
    np.save(folder / "a.npy", a)
    save_file({"w": a}, folder / "a.safetensors")
    tiling = cubecore.plan(m=SIZE, n=SIZE, k=SIZE).tiling
    asked = [{"m": m, "n": SIZE, "k": SIZE, "a": "int8"} for m in (5, 16, 40)]
    (folder / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked))
    list(cubecore.plan_many(asked, alternatives=0, store=str(folder / "s.sqlite"), processes=1))
    lines = PUBLISHED.read_text("utf-8").splitlines()
    (folder / "p.jsonl").write_text("".join(f"{line}\n" for line in _smallest(lines)), "utf-8")
    guard(folder)
    (folder / "o.csv").write_text("".join(_ROWS))
    (folder / "k.py").write_text(_SCRIPT)
    (folder / "k.cpp").write_text(_CPP)
    commands = {
        "o.csv": [("validate", "--chip", "Ascend910B3", "--points")],
        "k.py": [("run",), ("run",), ("time",)],
        "k.cpp": [("run",)],
        "a.npy": [("run", *SHAPE, "--a-file")],
        "a.safetensors": [("run", *SHAPE, "--b-file")],
        "q.jsonl": [("plan", "--processes", 1, "--alternatives", 0, "--queries")],
        "p.jsonl": [("validate", "--points")],
        "s.sqlite": [
            ("store", "show"),
            ("store", "export"),
            ("store", "compare"),
            ("plan", "--queries", "q.jsonl", "--processes", 1, "--alternatives", 0, "--store"),
        ],
    }
    for ending in ("json", "bin", "hex", "h"):
        name = f"t.{ending}"
        (folder / name).write_bytes(tiling_data(tiling, name))
        commands[name] = [
            ("check", *SHAPE),
            ("time", *SHAPE, "--tiling"),
            ("run", *SHAPE, "--tiling"),
        ]
    return commands


def try_files(tally, folder, rng, count, names=FORMATS):
    """Try `count` mutations of each format, one verb each in turn; some in true processes."""
    commands = fill(folder)
    assert set(commands) == set(FORMATS)
    whole = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        verbs = commands[name]
        for number in range(count):
            (folder / name).write_bytes(mutated(whole[name], rng))
            kept = () if name == "s.sqlite" else (folder / name,)
            verb = (*verbs[number % len(verbs)], name)
            often = 50 if name == "k.cpp" else 500  # only a process compiles C++
            run = processed if number % often == often - 1 else commanded
            if name == "k.cpp" and run is commanded:
                run = _scanned
            if name == "k.py":
                run = _limited(run)
            judge(tally, f"mutated {name}", verb, folder, kept=kept, run=run)
            for left in folder.glob("s.sqlite-*"):
                left.unlink()
        (folder / name).write_bytes(whole[name])


_CELLS = (None, b"", b"\xff\0", "", "{", "[]", "\u2028", -1, 2**62, 1.5, "9" * 500)


def try_stores(tally, folder, rng, count):
    """Try stores with bytes flipped, or with other values in some cells; each must be mended."""
    fill(folder)
    whole, asked = (folder / "s.sqlite").read_bytes(), (folder / "q.jsonl").read_bytes()
    want = None
    for number in range(count):
        store = folder / "s.sqlite"
        store.write_bytes(whole)
        if number % 2:
            data = bytearray(whole)
            for _ in range(rng.randint(1, 30)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            store.write_bytes(data)
        elif number:
            _spoil(store, rng)
        plan = ("plan", "--queries", "q.jsonl", "--processes", 1, "--alternatives", 0)
        verbs = (("store", "export"), ("store", "show"), ("store", "compare"))
        judge(tally, "damaged stores, read", (*verbs[number % 3], "s.sqlite"), folder)
        given = (*plan, "--store", "s.sqlite", "--json")
        judge(tally, "damaged stores, filled", given, folder)
        if number % 20 == 0:  # what a store gives must be what planning gives
            code, out, _ = judge(
                tally,
                "damaged stores, answers",
                (*plan, "--store", "s.sqlite", "--out", "x.jsonl"),
                folder,
            )
            if not number:
                want = Path("x.jsonl").read_bytes()
            elif code == 0 and Path("x.jsonl").read_bytes() != want:
                tally.fail(
                    "damaged stores, answers", f"{number}: another answer than planning gives"
                )
            assert out is not None
        for left in folder.glob("s.sqlite-*"):
            left.unlink()
    assert (folder / "q.jsonl").read_bytes() == asked


def _spoil(store, rng):
    connection = sqlite3.connect(store)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(plans)")]
    for _ in range(rng.randint(1, 3)):
        column, row = rng.choice(columns), rng.randint(1, 3)
        change = f"UPDATE OR IGNORE plans SET {column} = ? WHERE rowid = ?"
        with connection:
            try:
                connection.execute(change, (rng.choice(_CELLS), row))
            except sqlite3.Error:
                continue
    connection.close()

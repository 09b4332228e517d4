"""Remedies that depend on what a kernel has: wrong kernels with their texts, and right ones."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import FUNCTION, HEAD, needs_compiler

GOLDENS = Path(__file__).with_name("remedies.toml")
TEXTS: dict[str, dict[str, str]] = tomllib.loads(GOLDENS.read_text())
"""The text of the one cause of each wrong kernel, by language: python and cpp."""

READY = """core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
"""
STORED = """core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
core.asc_copy_ub2gm(z + at, c, 256)
"""
BEGIN = """a, b, c = core.ubuf("float", 64), core.ubuf("float", 64), core.ubuf("float", 64)
at = core.block_idx * 64
core.asc_copy_gm2ub(a, x + at, 256)
core.asc_copy_gm2ub(b, y + at, 256)
"""
ADD = "core.asc_add(c, a, b, 64)\n"
KERNEL = BEGIN + READY + ADD + STORED
LOOP = """a, c = core.ubuf("float", 64), core.ubuf("float", 64)
core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 0)
for at in range(0, 128, 64):
    core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
    core.asc_copy_gm2ub(a, x + at, 256)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)
    core.asc_add(c, a, a, 64)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z + at, c, 256)
    core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 0)
core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)
"""
FREED = '    core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)\n'
AWAITED = '    core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)\n'
IN_LOOP = "    core.asc_add(c, a, a, 64)\n"
PRODUCT = """a, b, c = core.ca("half", 256), core.cb("half", 256), core.cc("float", 256)
l1 = core.cbuf("half", 256)
core.asc_copy_gm2l1_nd2nz(l1, x, 1, 16, 16, 0, 16, 16, 1, 1)
core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", 0)
core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", 0)
core.asc_copy_l12l0a(a, l1, 0, 1, 1, 0)
core.asc_copy_l12l0b(b, l1, 0, 1, 1, 0)
core.asc_sync_notify("PIPE_MTE1", "PIPE_M", 0)
core.asc_sync_wait("PIPE_MTE1", "PIPE_M", 0)
core.asc_mmad(c, a, b, 16, 16, 16, 0, False, False, True)
core.asc_sync_notify("PIPE_M", "PIPE_FIX", 0)
core.asc_sync_wait("PIPE_M", "PIPE_FIX", 0)
core.asc_copy_l0c2gm(z, c, 16, 16, 16, 16, 0, "NoQuant", False, False, True)
"""
RIGHT = {"vector": KERNEL, "loop": LOOP, "product": PRODUCT}
SHORT_LOADS = "core.asc_copy_gm2ub({0}, {1} + at, 128)\n"
WRONG = {
    "nothing": KERNEL.replace(READY, ""),
    "no-wait": KERNEL.replace(READY.splitlines()[1] + "\n", ""),
    "set-early": BEGIN.replace(
        "core.asc_copy_gm2ub(b", READY.splitlines()[0] + "\ncore.asc_copy_gm2ub(b"
    )
    + READY.splitlines()[1]
    + "\n"
    + ADD
    + STORED,
    "wait-late": KERNEL.replace(
        READY + ADD, READY.splitlines()[0] + "\n" + ADD + READY.splitlines()[1] + "\n"
    ),
    "next-pass": LOOP.replace(FREED, "")
    .replace(AWAITED, "")
    .replace(AWAITED.strip() + "\n", "")
    .replace(FREED.strip() + "\n", ""),
    "next-pass-set-early": LOOP.replace(IN_LOOP + FREED, FREED + IN_LOOP),
    "last-pass": LOOP.removesuffix('core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)\n'),
    "other-event": KERNEL.replace(
        'wait("PIPE_MTE2", "PIPE_V", 0)', 'wait("PIPE_MTE2", "PIPE_V", 1)'
    ),
    "inner-loop": KERNEL.replace(READY, "").replace(
        "core.asc_copy_gm2ub(b, y + at, 256)\n",
        "for part in range(2):\n    core.asc_copy_gm2ub(b + 32 * part, y + at + 32 * part, 128)\n",
    ),
    "count": KERNEL.replace("a, b, 64)", "a, b, 128)"),
    "wide-array": KERNEL.replace("(c, a, b, 64)", "(c, a, b, 1, 2, 1, 1, 16, 8, 8)"),
    "array": KERNEL.replace(
        'b, c = core.ubuf("float", 64), core.ubuf("float", 64), core.ubuf("float", 64)',
        'b = core.ubuf("float", 64), core.ubuf("float", 64)\nc = core.ubuf("float", 32)',
    ),
    "short-load": KERNEL.replace(
        "core.asc_copy_gm2ub(b, y + at, 256)", "core.asc_copy_gm2ub(b, y + at, 128)"
    ),
    "no-load": KERNEL.replace("core.asc_copy_gm2ub(b, y + at, 256)\n", ""),
    "short-store": KERNEL.replace("(z + at, c, 256)", "(z + at, c, 128)"),
    "late-store": KERNEL.replace("(z + at, c, 256)", "(z + at + 8, c, 224)"),
    "overlapping-repeats": "for at in (0,):\n    pass\n"
    + KERNEL.replace("(c, a, b, 64)", "(c, a, b, 2, 1, 1, 1, 4, 8, 8)")
    .replace('float", 64', 'float", 128')
    .replace("+ at, 256)", "+ 0, 512)")
    .replace("(z + at, c, 256)", "(z, c, 512)"),
    "short-compute": KERNEL.replace("a, b, 64)", "a, b, 32)"),
    "no-store": KERNEL.replace("core.asc_copy_ub2gm(z + at, c, 256)\n", ""),
    "too-many-blocks": KERNEL.replace("block_idx * 64", "block_idx * 128"),
    "one-pass-more": LOOP.replace("128, 64", "192, 64"),
    "two-passes-more": LOOP.replace("128, 64", "256, 64"),
    "last-pass-long": LOOP.replace("0, 128, 64", "16, 144, 64"),
    "one-tile-more": LOOP.replace("0, 128, 64", "0, 128, 32")
    .replace("z + at, c, 256", "z + at, c, 128")
    .replace("(a, x + at, 256)", "(a + at, x + at, 128)")
    .replace("c, a, a, 64", "c, a + at, a + at, 32")
    .replace('a, c = core.ubuf("float", 64)', 'a, c = core.ubuf("float", 96)'),
    "one-pass-more-of-each": LOOP.replace("range(0, 128, 64)", "(0, 64, 128, 0, 64, 128)"),
    "starts-late": KERNEL.replace("block_idx * 64", "block_idx * 64 + 64"),
    "same-bytes": KERNEL.replace("z + at", "z"),
    "other-blocks": KERNEL
    + 'core.asc_sync_pipe("PIPE_ALL")\ncore.asc_copy_gm2ub(a, z, 512 // 4)\n',
    "no-start": PRODUCT.replace(
        "False, False, True)\ncore.asc_sync_notify", "False, False, False)\ncore.asc_sync_notify"
    ),
}
"""Kernels of two blocks by what is wrong with them."""
CLASSES = """TPipe pipe; TQue<TPosition::VECIN, 2> in; TQue<TPosition::VECOUT, 2> out;
TBuf<TPosition::VECCALC> work;
GlobalTensor<float> xGm, zGm;
xGm.SetGlobalBuffer((__gm__ float*)x); zGm.SetGlobalBuffer((__gm__ float*)z);
pipe.InitBuffer(in, 1, 256);
pipe.InitBuffer(out, 1, 256);
pipe.InitBuffer(work, 256);
for (int part = 0; part < 2; ++part) {
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, xGm[64 * part], 64);
  in.EnQue(a);
  LocalTensor<float> b = in.DeQue<float>();
  LocalTensor<float> t = work.Get<float>();
  LocalTensor<float> c = out.AllocTensor<float>();
  Adds(t, b, 1.0f, 64);
  PipeBarrier<PIPE_V>();
  Adds(c, t, 1.0f, 64);
  out.EnQue(c);
  in.FreeTensor(b);
  LocalTensor<float> d = out.DeQue<float>();
  DataCopy(zGm[64 * part], d, 64);
  out.FreeTensor(d);
}
"""
WRONG_CLASSES = {
    "early": CLASSES.replace(
        "  DataCopy(a, xGm[64 * part], 64);\n  in.EnQue(a);",
        "  in.EnQue(a);\n  DataCopy(a, xGm[64 * part], 64);",
    ),
    "never_queued": CLASSES.replace("  out.EnQue(c);\n", ""),
    "never_freed": CLASSES.replace("  in.FreeTensor(b);\n", ""),
    "short_buffer": CLASSES.replace("InitBuffer(work, 256)", "InitBuffer(work, 64)"),
    "other_queue": CLASSES.replace("  out.EnQue(c);", "  in.EnQue(c);"),
    "freed_elsewhere": CLASSES.replace("in.FreeTensor(b)", "out.FreeTensor(b)").replace(
        "part < 2", "part < 1"
    ),
    "never_taken": CLASSES.replace("out.DeQue", "out.AllocTensor"),
}
"""Kernels of one block, of queues."""
ADDRESSES = """
GlobalTensor<float> xGm, zGm;
xGm.SetGlobalBuffer((__gm__ float*)x); zGm.SetGlobalBuffer((__gm__ float*)z);
LocalTensor<float> a(TPosition::VECCALC, 0, 64);
LocalTensor<float> b(TPosition::VECCALC, 256, 64);
LocalTensor<float> c(TPosition::VECCALC, 512, 64);
DataCopy(a, xGm, 64);
DataCopy(b, xGm[64], 64);
SetFlag<HardEvent::MTE2_V>(0);
WaitFlag<HardEvent::MTE2_V>(0);
Add(c, a, b, 64);
SetFlag<HardEvent::V_MTE3>(0);
WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(zGm[64 * GetBlockIdx()], c, 64);
"""
SHARED = """
SetFlag<HardEvent::MTE3_MTE2>(0);
WaitFlag<HardEvent::MTE3_MTE2>(0);
SyncAll();
DataCopy(b, zGm[64 * (1 - GetBlockIdx())], 64);
SetFlag<HardEvent::MTE2_V>(1);
WaitFlag<HardEvent::MTE2_V>(1);
Add(c, b, b, 64);
SetFlag<HardEvent::V_MTE3>(1);
WaitFlag<HardEvent::V_MTE3>(1);
SyncAll();
DataCopy(zGm[64 * GetBlockIdx()], c, 64);
"""
WRONG_ADDRESSES = {
    "same_address": ADDRESSES.replace("VECCALC, 256", "VECCALC, 0"),
    "spread": ADDRESSES.replace("VECCALC, 512", "VECCALC, 1024").replace(
        "a, b, 64);", "a, b, 64, 1, {1, 1, 2, 8, 8, 8});"
    ),
    "short_tensor": ADDRESSES.replace("VECCALC, 256, 64", "VECCALC, 256, 32"),
    "no_wait_of_all": ADDRESSES + SHARED.replace("SyncAll();\nDataCopy(b", "DataCopy(b"),
    "one_waits": ADDRESSES
    + SHARED.replace("DataCopy(b", "if (GetBlockIdx() == 1) DataCopy(b").replace("SyncAll();", ""),
    "value_unwritten": "LocalTensor<float> d(TPosition::VECCALC, 2048, 64);\n"
    "float v = d.GetValue(3);\nif (v > 3.0f) return;\n" + ADDRESSES,
    "wide_stride": ADDRESSES.replace("DataCopy(a, xGm, 64);", "DataCopy(a, xGm, {4, 2, 8, 0});"),
    "half_shared": ADDRESSES.replace("VECCALC, 256", "VECCALC, 128"),
    "late_stride": ADDRESSES.replace(
        "DataCopy(a, xGm, 64);", "DataCopy(a, xGm[64], {4, 2, 1, 0});"
    ),
    "both_too_far": ADDRESSES.replace("float*)z)", "float*)z + 64)"),
    "index_too_far": ADDRESSES.replace("DataCopy(zGm[64 * ", "DataCopy(zGm[64 + 64 * "),
}
"""Kernels of two blocks, of tensors with addresses of their own."""


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory, by which files are named."""
    before, path = Path.cwd(), tmp_path_factory.mktemp("remedies")
    os.chdir(path)
    yield path
    os.chdir(before)


def python_findings(folder: Path, name: str, body: str) -> Any:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"def k(core, x, y, z):\n{lines}"
    file = f"{name.replace('-', '_')}.py"
    (folder / file).write_text(text)
    functions: dict[str, Any] = {}
    exec(compile(text, file, "exec"), functions)
    cube = "core.ca(" in body
    dtype, size = (np.float16, 256) if cube else (np.float32, 128)
    x, y, z = np.ones(size, dtype), np.ones(size, dtype), np.empty(size, np.float32)
    kernel = cubecore.kernel(functions["k"], outputs="z", kind="cube" if cube else "vector")
    blocks = 1 if cube or "for at" in body else 2
    return kernel[blocks](x, y, z).findings


def class_findings(folder: Path, name: str, body: str) -> Any:
    text = HEAD.format(before="")
    text += FUNCTION.format(name=name, parameters="GM_ADDR x, GM_ADDR z", body=body)
    (folder / f"{name}.cpp").write_text(text)
    x, z = np.ones(128, np.float32), np.zeros(128, np.float32)
    kernel = getattr(cubecore.load(f"{name}.cpp", auto_sync=False), name)
    return kernel[2 if "GetBlockIdx" in body else 1](x, z).findings


def told(findings: Any) -> str:
    return " | ".join(f"{f.id}: {f.text}" for f in findings if f.cause is None and not f.is_note)


def judged(language: str, name: str, text: str, config: pytest.Config) -> None:
    if config.getoption("--refresh-goldens"):
        known = tomllib.loads(GOLDENS.read_text()) if GOLDENS.exists() else {}
        known.setdefault(language, {})[name] = text
        lines = []
        for each, by_name in known.items():
            lines += [
                "",
                f"[{each}]",
                *(f"{key} = '''{value}'''" for key, value in by_name.items()),
            ]
        GOLDENS.write_text("\n".join(lines).lstrip() + "\n")
    assert text == TEXTS[language][name]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_has_no_finding(folder: Path, name: str) -> None:
    assert python_findings(folder, name, RIGHT[name]) == ()


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_has_one_remedy(
    folder: Path, name: str, request: pytest.FixtureRequest
) -> None:
    findings = python_findings(folder, name, WRONG[name])
    judged("python", name, told(findings), request.config)


@needs_compiler
def test_right_queues_have_no_finding(folder: Path) -> None:
    assert class_findings(folder, "right", CLASSES) == ()


@needs_compiler
@pytest.mark.parametrize("body", [ADDRESSES, ADDRESSES + SHARED], ids=["apart", "shared"])
def test_right_addresses_have_no_finding(folder: Path, body: str) -> None:
    assert class_findings(folder, "right", body) == ()


@pytest.mark.thinned(3)
@needs_compiler
@pytest.mark.parametrize("name", WRONG_ADDRESSES)
def test_a_wrong_address_or_order_has_one_remedy(
    folder: Path, name: str, request: pytest.FixtureRequest
) -> None:
    findings = class_findings(folder, name, WRONG_ADDRESSES[name])
    judged("cpp", name, told(findings), request.config)


@pytest.mark.thinned(3)
@needs_compiler
@pytest.mark.parametrize("name", WRONG_CLASSES)
def test_a_wrong_queue_has_one_remedy(
    folder: Path, name: str, request: pytest.FixtureRequest
) -> None:
    judged("cpp", name, told(class_findings(folder, name, WRONG_CLASSES[name])), request.config)


# --- numbers of remedies


def short(size: int, call: str, length: int = 256) -> str:
    """Return a kernel whose array c has so many floats, and a call that writes to it."""
    return (
        f'a = core.ubuf("float", {length})\n'
        f'c = core.ubuf("float", {size})\n'
        f"core.asc_copy_gm2ub(a, x, {4 * length})\n{READY}{call}\n"
        'core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)\n'
        'core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)\n'
    )


WRITES = {
    "a count": "core.asc_add(c, a, a, 128)",
    "a count off a block": "core.asc_abs(c, a, 60)",
    "repeats": "core.asc_add(c, a, a, 2, 1, 1, 1, 8, 8, 8)",
    "repeats apart": "core.asc_add(c, a, a, 2, 1, 1, 1, 16, 8, 8)",
    "blocks apart": "core.asc_add(c, a, a, 1, 2, 1, 1, 8, 8, 8)",
    "an address inside": "core.asc_add(c + 8, a, a, 64)",
    "another repeat": "core.asc_exp(c, a, 3, 1, 1, 8, 8)",
}
"""Calls that write more than 64 B of an array."""


@pytest.mark.parametrize("name", WRITES)
def test_an_array_of_the_size_that_the_remedy_names_is_large_enough(
    folder: Path, name: str
) -> None:
    """With the bytes that are named there is no finding, and with a block less there is one."""
    file, call = f"of_{name}".replace(" ", "_"), WRITES[name]
    lengths = {"core.asc_exp": 192}
    length = next((n for begin, n in lengths.items() if call.startswith(begin)), 128)

    def outside(size: int) -> list[str]:
        run = sized(folder, f"{file}_{size}", short(size, call, length))
        return [each.text for each in run if each.id == "out-of-bounds"]

    (text,) = outside(16)
    named = re.search(r"make it (\d+) B", text)
    assert named is not None, text
    elements = int(named[1]) // 4
    assert outside(elements) == []
    assert len(outside(elements - 8)) == 1


ADDRESSES_OFF = {"by 12 B": 3, "by 4 B": 1, "by 28 B": 7, "behind a block": 13}


@pytest.mark.parametrize("name", ADDRESSES_OFF)
def test_the_addresses_that_the_remedy_names_are_aligned(folder: Path, name: str) -> None:
    def misaligned(at: int) -> list[str]:
        body = f'a = core.ubuf("float", 128)\ncore.asc_copy_gm2ub(a + {at}, x, 256)\n'
        run = sized(folder, f"at_{name}_{at}".replace(" ", "_"), body)
        return [each.text for each in run if each.id == "misaligned"]

    (text,) = misaligned(ADDRESSES_OFF[name])
    earlier, later = re.findall(r", at (\d+)", text)
    assert int(later) - int(earlier) == 32
    assert misaligned(int(earlier) // 4) == misaligned(int(later) // 4) == []


def sized(folder: Path, name: str, body: str) -> Any:
    """Return the findings of a kernel of one block on 256 floats."""
    text = "def k(core, x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (folder / f"{name}.py").write_text(text)
    functions: dict[str, Any] = {}
    exec(compile(text, f"{name}.py", "exec"), functions)
    return cubecore.kernel(functions["k"])[1](np.ones(256, np.float32)).findings

"""Kernels with one fault each: one finding stands above the fold, and its whole line is tested.

At most two do: where a kernel takes another slot of a buffer, the slot is empty first, and later
raced for.
"""

import os
import re
import statistics
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import cubecore
from cubecore.frontends.tik.host.program import program_session
from cubecore.machine.sanitize.findings import causes, faults
from frontends.cpp.cpp_kernels import needs_compiler
from frontends.diagnosis import single_fault_kernels as kernels

GOLDENS = Path(__file__).with_name("single_faults.toml")
TEXTS: dict[str, list[str]] = tomllib.loads(GOLDENS.read_text()) if GOLDENS.exists() else {}
EXAMPLES = Path(__file__).parents[3] / "examples"

Arrays = Callable[[], tuple[Any, ...]]


class Case(NamedTuple):
    """A kernel, a text of it with what makes it wrong, its arguments and its blocks."""

    text: str
    right: str
    wrong: str
    arguments: Arrays
    blocks: int = 2


def ones(size: int | tuple[int, ...], dtype: type = np.float32) -> Any:
    return np.ones(size, dtype)


def queued() -> tuple[Any, ...]:
    return ones(8192), ones(8192), np.zeros(8192, np.float32), 4096


def padded() -> tuple[Any, ...]:
    return ones(960), np.zeros(960, np.float32), 16


def reduced() -> tuple[Any, ...]:
    return ones(1024), np.zeros(1024, np.float32), 1024


def halves() -> tuple[Any, ...]:
    return ones(4096, np.float16), np.zeros(4096, np.float16)


def shared() -> tuple[Any, ...]:
    return ones(1024), np.zeros(1024, np.float32), np.zeros(1024, np.float32)


def looped() -> tuple[Any, ...]:
    return ones(4096), np.zeros(4096, np.float32), 4


def gelu() -> tuple[Any, ...]:
    return ones(40000, np.float16), np.zeros(40000, np.float16), 20000


def summed() -> tuple[Any, ...]:
    return ones(24576), np.zeros(8, np.float32), 12288


def multiplied() -> tuple[Any, ...]:
    a, b = ones((128, 512), np.float16), ones((512, 256), np.float16)
    return a, b, np.zeros((128, 256), np.float32), 256, 512, 128, 128


def transposed() -> tuple[Any, ...]:
    return ones((256, 384), np.float16), np.zeros((384, 256), np.float16), 256, 384


FREES = "    inX.FreeTensor(x);\n    inY.FreeTensor(y);\n"
ADD = "    Add(z, t, x, TILE);\n    outZ.EnQue(z);\n"
LEFT = "  asc_set_mask_norm();\n  asc_set_vector_mask(-1, -1);\n"
CLASSES = {
    "barrier_of_other_pipe": Case(kernels.QUEUE, "_V>();\n    Muls", "_MTE2>();\n    Muls", queued),
    "freed_early": Case(kernels.QUEUE, ADD + FREES, FREES + ADD, queued),
    "one_pass_more": Case(kernels.QUEUE, "share_ / TILE;", "share_ / TILE + 1;", queued),
    "bytes_for_elements": Case(
        kernels.PAD,
        "rowsIn{static_cast<uint16_t>(rows), 60 * sizeof(float)",
        "rowsIn{static_cast<uint16_t>(rows), 60",
        padded,
        1,
    ),
    "stride_of_store": Case(
        kernels.PAD,
        "rowsOut{static_cast<uint16_t>(rows), 60 * sizeof(float), 0, 0",
        "rowsOut{static_cast<uint16_t>(rows), 60 * sizeof(float), 0, 16",
        padded,
        1,
    ),
    "barrier_for_flag": Case(
        kernels.RED,
        "  SetFlag<HardEvent::V_S>(done);\n  WaitFlag<HardEvent::V_S>(done);\n",
        "  PipeBarrier<PIPE_V>();\n",
        reduced,
        1,
    ),
    "mask_of_all": Case(kernels.RED, "(s, p, n / 64, 1, 1", "(s, p, 64, 1, 1", reduced, 1),
    "repeat_stride": Case(
        kernels.MASK, "CAST_NONE, 64, 32, {1, 1, 8, 4}", "CAST_NONE, 64, 32, {1, 1, 8, 8}", halves
    ),
    "mask_of_halves": Case(kernels.MASK, "Sqrt(w, w, 64,", "Sqrt(w, w, 128,", halves),
    "wait_of_some_blocks": Case(
        kernels.SYNC, "  SyncAll();", "  if (GetBlockIdx() > 0) SyncAll();", shared, 4
    ),
}
CALLS = {
    "pipes_swapped": Case(
        kernels.LOOPED,
        "asc_sync_notify(PIPE_V, PIPE_MTE3, slot)",
        "asc_sync_notify(PIPE_MTE3, PIPE_V, slot)",
        looped,
    ),
    "pipes_of_wait_swapped": Case(
        kernels.LOOPED,
        "asc_sync_wait(PIPE_MTE2, PIPE_V, slot)",
        "asc_sync_wait(PIPE_V, PIPE_MTE2, slot)",
        looped,
    ),
    "other_slot": Case(
        kernels.LOOPED, "a + at, a + at, TILE", "a + at, a + (TILE - at), TILE", looped
    ),
    "set_on_some_passes": Case(
        kernels.LOOPED,
        "asc_sync_notify(PIPE_V, PIPE_MTE2, slot);\n    asc_sync_wait(PIPE_MTE3",
        "if (tile + 2 < tiles) asc_sync_notify(PIPE_V, PIPE_MTE2, slot);\n"
        "    asc_sync_wait(PIPE_MTE3",
        looped,
    ),
    "start_in_bytes": Case(
        kernels.LOOPED, "* TILE * asc_get", "* TILE * sizeof(float) * asc_get", looped
    ),
    "counter_mode_left": Case(
        kernels.COUNTED, LEFT, "", lambda: (ones(1024), np.zeros(16, np.float32))
    ),
}
OF_PYTHON = {
    "operands_swapped": Case(
        "gelu", "asc_mul(power, wide, wide, count)", "asc_mul(wide, power, wide, count)", gelu
    ),
    "size_of_floats": Case("gelu", "given[slot], x + at, 2 *", "given[slot], x + at, 4 *", gelu),
    "tail_not_shorter": Case("gelu", "min(TILE, share - first)", "TILE", gelu),
    "result_not_filled": Case("reduction", "    core.asc_duplicate(result, 0.0, 8)\n", "", summed),
    "fill_of_few": Case("reduction", "(sums, 0.0, TILE)", "(sums, 0.0, LANES)", summed),
    "store_of_four_bytes": Case("reduction", "(total, result, 32)", "(total, result, 4)", summed),
    "load_of_half": Case("matmul", "range(M // EDGE):", "range(M // EDGE // 2):", multiplied),
    "sum_not_begun": Case(
        "matmul", "first = chunk + step == 0", "first = chunk + step < 0", multiplied
    ),
    "row_of_tile": Case("matmul", "N, M, n, M, 0", "N, M, N, M, 0", multiplied),
    "addresses_of_elements": Case("transpose", "+ step * SQUARE for i", "+ step for i", transposed),
}
OF_TIK = {
    "burst_of_bytes": Case(
        "double_buffer", "0, 1, TILE // 16", "0, 1, TILE // 8", lambda: (ones(9216, np.float16),)
    ),
    "repeats_of_floats": Case(
        "double_buffer",
        "0.25, TILE // 128",
        "0.25, TILE // 64",
        lambda: (ones(9216, np.float16),),
    ),
    "work_too_small": Case("reduce_sum", "(REPEATS,)", "(REPEATS // 8,)", lambda: (ones(12800),)),
    "repeat_missing": Case(
        "conversions", "whole, half, 2,", "whole, half, 1,", lambda: (ones(128, np.float16),)
    ),
    "load_of_half": Case(
        "matmul_int8",
        "K * N // 32",
        "K * N // 64",
        lambda: (ones((2, 32, 32), np.int8), ones((2, 160, 32), np.int8)),
    ),
}


def broken(case: Case, text: str) -> str:
    assert text.count(case.right) >= 1
    return text.replace(case.right, case.wrong, 1)


def named(case: Case, name: str, *, wrong: bool) -> str:
    """Return a C++ kernel with names of its own."""
    text = broken(case, case.text) if wrong else case.text
    text = re.sub(r"\bk\(", f"{name}(", text.strip("\n"), count=1)
    return re.sub(r"\b(Op|TILE)\b", rf"\1_{name}", text) + "\n"


def shown(run: Callable[[], Any]) -> list[str]:
    """Return the findings above the fold, or the sentence of a refusal."""
    try:
        found = run().findings
    except cubecore.CubecoreError as error:
        found = getattr(error, "findings", ())
        if not found:
            return [str(error)]
    return [f"{each.id}: {each.text}" for each in causes(faults(found))]


def of_cpp(file: str, head: str, cases: dict[str, Case]) -> dict[str, list[str]]:
    right: dict[str, str] = {}
    for name, case in cases.items():
        right.setdefault(case.text, f"right_{name}")
    text = head + "".join(
        named(cases[name.removeprefix("right_")], name, wrong=False) for name in right.values()
    )
    text += "".join(named(case, name, wrong=True) for name, case in cases.items())
    Path(file).write_text(text)
    loaded = cubecore.load(file, auto_sync=False)
    for each in right.values():
        case = cases[each.removeprefix("right_")]
        assert shown(lambda k=each, c=case: getattr(loaded, k)[c.blocks](*c.arguments())) == []
    return {
        name: shown(lambda k=name, c=case: getattr(loaded, k)[c.blocks](*c.arguments()))
        for name, case in cases.items()
    }


def classes() -> dict[str, list[str]]:
    head = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
    return of_cpp("classes.cpp", head, CLASSES)


def calls() -> dict[str, list[str]]:
    return of_cpp("calls.cpp", '#include "c_api/asc_simd.h"\n', CALLS)


def python() -> dict[str, list[str]]:
    found = {}
    for name, case in OF_PYTHON.items():
        text = (EXAMPLES / "kernels" / f"{case.text}.py").read_text()
        text = broken(case, text).partition("\nKERNELS = ")[0] + "\n"
        Path(f"{name}.py").write_text(text)
        functions: dict[str, Any] = {"__name__": name}
        exec(compile(text, f"{name}.py", "exec"), functions)
        kernel = functions["add_up" if case.text == "reduction" else case.text]
        found[name] = shown(lambda k=kernel, c=case: k[c.blocks](*c.arguments()))
    return found


def of_program(name: str, text: str, case: Case) -> Any:
    variables: dict[str, Any] = {"__name__": name}
    with program_session():
        exec(compile(text, f"{name}.py", "exec"), variables)
        arrays = case.arguments()
        inputs = ("x",) if len(arrays) == 1 else ("a", "b")
        return variables["t"].launch(dict(zip(inputs, arrays, strict=True)))


def tik() -> dict[str, list[str]]:
    found = {}
    for name, case in OF_TIK.items():
        text = (EXAMPLES / "tik" / f"{case.text}.py").read_text()
        text = re.split(r"\n(?:given|rng) = ", broken(case, text))[0] + "\n"
        Path(f"{name}.py").write_text(text)

        found[name] = shown(lambda n=name, t=text, c=case: of_program(n, t, c))
    return found


DIALECTS = {"cpp": classes, "c": calls, "python": python, "tik": tik}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory, by which files are named."""
    before, path = Path.cwd(), tmp_path_factory.mktemp("single")
    os.chdir(path)
    yield path
    os.chdir(before)


@pytest.mark.thinned(2)
@needs_compiler
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_single_fault_has_its_line(dialect: str, request: pytest.FixtureRequest) -> None:
    found = DIALECTS[dialect]()
    if request.config.getoption("--refresh-goldens"):
        known = tomllib.loads(GOLDENS.read_text()) if GOLDENS.exists() else {}
        lines = []
        for each, by_name in (known | {dialect: found}).items():
            lines += ["", f"[{each}]"]
            for name, texts in by_name.items():
                lines += [f"{name} = [", *(f"    '''{text}'''," for text in texts), "]"]
        GOLDENS.write_text("\n".join(lines).lstrip() + "\n")
        return
    assert found == TEXTS[dialect]


def test_one_finding_stands_above_the_fold() -> None:
    counts = [len(texts) for by_name in TEXTS.values() for texts in by_name.values()]
    assert len(counts) == sum(map(len, (CLASSES, CALLS, OF_PYTHON, OF_TIK)))
    assert statistics.median(counts) == 1
    assert min(counts) == 1
    assert max(counts) == 2

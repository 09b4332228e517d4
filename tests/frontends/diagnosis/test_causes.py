"""Findings that follow from others, beside faults that do not: each pair has a cause each."""

import numpy as np
import pytest

import cubecore
from cubecore.frontends.finding_text import finding_lines

LOAD = "core.asc_copy_gm2ub({0}, x, 256)\n"
FLAG = 'core.asc_sync_notify("PIPE_{0}", "PIPE_{1}", {2})\n'
WAIT = 'core.asc_sync_wait("PIPE_{0}", "PIPE_{1}", {2})\n'
READY = FLAG.format("MTE2", "V", 0) + WAIT.format("MTE2", "V", 0)
STORED = FLAG.format("V", "MTE3", 0) + WAIT.format("V", "MTE3", 0)
FREE = FLAG.format("V", "MTE2", 1) + WAIT.format("V", "MTE2", 1)
ADD = "core.asc_add({0}, {1}, {2}, 64)\n"
STORE = "core.asc_copy_ub2gm(z, {0}, 256)\n"
BOTH = LOAD.format("a") + LOAD.format("b")
KERNELS = {
    "right": BOTH + READY + ADD.format("c", "a", "b") + STORED + STORE.format("c"),
    "one order for two arrays": BOTH + ADD.format("c", "a", "b") + STORED + STORE.format("c"),
    "an order that goes on": LOAD.format("a")
    + ADD.format("c", "a", "a")
    + STORED
    + STORE.format("a"),
    "an order that ends": LOAD.format("a") + ADD.format("c", "a", "a") + STORE.format("a"),
    "two orders": BOTH + ADD.format("c", "a", "b") + STORE.format("c"),
    "an order there, and none back": LOAD.format("a")
    + ADD.format("c", "a", "a")
    + STORED
    + STORE.format("c")
    + LOAD.format("a"),
    "an overrun": "core.asc_copy_gm2ub(a, x + 32, 256)\n"
    + READY
    + ADD.format("c", "a", "a")
    + STORED
    + STORE.format("c"),
    "an overrun beside bytes that nobody wrote": "core.asc_copy_gm2ub(a, x + 32, 256)\n"
    + READY
    + ADD.format("c", "a", "a")
    + ADD.format("d", "b", "b")
    + STORED
    + STORE.format("c"),
    "bytes that nobody wrote, twice": ADD.format("c", "a", "a")
    + ADD.format("d", "a", "a")
    + STORED
    + STORE.format("c"),
    "arrays that nobody wrote": ADD.format("c", "a", "a")
    + ADD.format("d", "b", "b")
    + STORED
    + STORE.format("c"),
    "a count too large": BOTH + READY + "core.asc_add(c, a, b, 128)\n" + STORED + STORE.format("c"),
    "a wait that is missing": BOTH
    + FLAG.format("MTE2", "V", 0)
    + ADD.format("c", "a", "b")
    + STORED
    + STORE.format("c"),
    "an address off its alignment": BOTH.replace("b, x", "b + 3, x")
    + READY
    + ADD.format("c", "a", "b")
    + STORED
    + STORE.format("c"),
    "an address off its alignment beside a load that is short": BOTH.replace(
        "b, x, 256", "b + 3, x, 128"
    )
    + READY
    + ADD.format("c", "a", "b")
    + STORED
    + STORE.format("c"),
    "a count too large beside an array that nobody wrote": LOAD.format("a")
    + READY
    + "core.asc_add(c, a, b, 128)\n"
    + STORED
    + STORE.format("c"),
    "an order that is missing beside a load that is short": BOTH.replace("b, x, 256", "b, x, 128")
    + ADD.format("c", "a", "b")
    + STORED
    + STORE.format("c"),
    "flags of two pairs": BOTH
    + READY
    + FLAG.format("MTE3", "V", 3)
    + FREE.splitlines()[0]
    + "\n"
    + ADD.format("c", "a", "b")
    + STORED
    + STORE.format("c"),
}
CAUSES = {
    "right": [],
    "one order for two arrays": ["race-raw < race-raw"],
    "an order that goes on": ["race-raw < race-raw race-raw"],
    "an order that ends": ["race-raw < race-raw", "race-raw <"],
    "two orders": ["race-raw < race-raw", "race-raw <"],
    "an order there, and none back": ["race-raw < race-raw", "race-war <"],
    "an overrun": ["out-of-bounds < uninitialised uninitialised"],
    "an overrun beside bytes that nobody wrote": [
        "out-of-bounds < uninitialised uninitialised",
        "uninitialised < uninitialised",
    ],
    "bytes that nobody wrote, twice": [f"uninitialised < {' '.join(['uninitialised'] * 3)}"],
    "arrays that nobody wrote": [
        "uninitialised < uninitialised",
        "uninitialised < uninitialised",
    ],
    "a count too large": ["out-of-bounds < out-of-bounds out-of-bounds overlap"],
    "a wait that is missing": ["race-raw < race-raw flag-leaked"],
    "an address off its alignment": ["misaligned < out-of-bounds uninitialised"],
    "an address off its alignment beside a load that is short": [
        "misaligned <",
        "uninitialised <",
    ],
    "a count too large beside an array that nobody wrote": [
        "out-of-bounds < out-of-bounds out-of-bounds overlap uninitialised",
        "uninitialised <",
    ],
    "an order that is missing beside a load that is short": [
        "race-raw < race-raw",
        "uninitialised <",
    ],
    "flags of two pairs": ["flag-leaked <", "flag-leaked <"],
}
"""For each kernel its causes, and what follows from each; an operand has a finding of its own."""


def run_of(name: str, engine: str = "fast"):
    body = "".join(f"    {line}\n" for line in KERNELS[name].splitlines())
    arrays = "".join(f'    {array} = core.ubuf("float", 64)\n' for array in "abcd")
    functions = {}
    text = f"def k(core, x, z):\n{arrays}{body}"
    exec(compile(text, "kernel.py", "exec"), functions)
    x, z = np.ones(64, np.float32), np.empty(64, np.float32)
    return cubecore.kernel(functions["k"], outputs="z", engine=engine)[1](x, z)


def caused(findings):
    causes = [finding for finding in findings if finding.cause is None]
    return [
        f"{cause.id} < {' '.join(f.id for f in findings if f.cause is cause)}".strip()
        for cause in causes
    ]


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("name", KERNELS)
def test_what_follows_from_a_cause_stands_under_it(name, engine):
    assert caused(run_of(name, engine).findings) == CAUSES[name]


def test_what_follows_names_its_cause_in_json():
    first, second = run_of("one order for two arrays").to_json()["findings"]
    assert first["caused_by"] is None
    assert second["caused_by"] == {key: first[key] for key in ("id", "instruction", "location")}


def test_the_text_counts_what_follows_or_shows_it():
    findings = run_of("a wait that is missing").findings
    few, every = (finding_lines(findings, everything=shown, hint="; see") for shown in (0, 1))
    assert few[0] == every[0] == "Findings: 1"
    assert few[2] == "    2 findings follow from it (race-raw, flag-leaked); see"
    assert [line.partition(":")[0] for line in every[1:4]] == [
        "  race-raw",
        "    race-raw",
        "    flag-leaked",
    ]

"""Both engines on one launch: the same bytes, the same initialised map, findings and count."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cubecore.chips import Chip
from cubecore.isa.program.launch import Launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from harness import A2, Array


@dataclass(frozen=True)
class Answer:
    """What an engine left in C, and what it said."""

    data: Array
    written: Array
    findings: list[tuple[str, str, int]]
    issued: int
    engine: str


def answer(launch: Launch, operands: Mapping[str, Array], engine: str, on: Chip = A2) -> Answer:
    """Run a launch with one output on the engine; operands are as global memory holds them."""
    gm, bases, c = GlobalMemory(), {}, None
    for spec in launch.tensors:
        if spec.output:
            c = tensor = gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
        else:
            tensor = gm.allocate_from(spec.name, operands[spec.name])
        bases[spec.name] = tensor.address
    outcome, ran = run_launch(launch, on, gm, bases, engine)
    assert c is not None
    findings = [(f.id, f.message, f.count) for f in outcome.findings]
    written = c.buffer.valid.astype(bool)
    return Answer(np.where(written, c.buffer.data, 0), written, findings, outcome.issued, ran)


def assert_agree(
    launch: Launch, operands: Mapping[str, Array], about: object = "", on: Chip = A2
) -> str:
    """Run on both engines, which must leave the same. Return the engine that ran as the fast one.

    Bytes are compared where they were written.
    """
    with np.errstate(all="ignore"):
        fast, slow = (answer(launch, operands, engine, on) for engine in ("fast", "reference"))
    assert slow.engine == "reference"
    assert fast.findings == slow.findings, about
    assert np.array_equal(fast.written, slow.written), about
    assert np.array_equal(fast.data, slow.data), about
    assert fast.issued == slow.issued, about
    return fast.engine

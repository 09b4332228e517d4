"""A submission that is not right at a smaller shape, run at the task's own: some blocks of it.

Kernels with constants for one shape refuse another, or leave it half done. They are run as their
task asks for them, by some blocks alone, and only bytes that these wrote are compared. Where that
is not enough, as blocks wait for each other or add to one result, all blocks run.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.workflows.judge.limits import FULL_SIZES, JudgeOptions
from cubecore.workflows.judge.tasks.comparison import REFUSED, RIGHT, WRONG, leaves, plain
from cubecore.workflows.judge.tasks.reduction import ALIGNED, FULL

SAMPLED_BLOCKS = 3
"""AI Cores whose blocks are run of a launch at the full shape."""
_SHARE = 4
"""All arrays of a full shape may have so many times the bytes of one (`cap_bytes`)."""
_MOST_OPERATIONS = 10_000_000_000
"""Operations of products that the reference computes in some seconds."""


def is_asked(records: Sequence[Json], compared: Sequence[Json], full: Json, cap_bytes: int) -> bool:
    """Return whether a submission is to be run at the full shape: it is not right at a smaller one.

    `full` are the costs of the full shape, which a small machine has to hold.
    """
    if not full or full["bytes"] > _SHARE * cap_bytes or full["operations"] > _MOST_OPERATIONS:
        return False
    return _outcomes(records, compared).get(ALIGNED) in {WRONG, REFUSED}


def is_refused(records: Sequence[Json], compared: Sequence[Json]) -> bool:
    """Return whether a submission refuses the smaller shape that keeps the remainders."""
    return _outcomes(records, compared).get(ALIGNED) == REFUSED


def is_right(records: Sequence[Json], compared: Sequence[Json]) -> bool:
    """Return whether a submission is right at the sizes that decide: the full ones, if they ran."""
    outcomes = _outcomes(records, compared)
    return outcomes.get(FULL, outcomes.get(ALIGNED)) == RIGHT


def _outcomes(records: Sequence[Json], compared: Sequence[Json]) -> Json:
    pairs = zip(records, compared, strict=False)
    return {record["sizes"].get("variant"): result.get("outcome") for record, result in pairs}


def full_options(options: JudgeOptions) -> JudgeOptions:
    """Return the options of the full shape: one case, whose arrays are allowed to be large."""
    return replace(options, sizes=FULL_SIZES, cases=1, cap_bytes=_SHARE * options.cap_bytes)


def masks_of(session: ScriptSession, got: Any) -> list[Array]:
    """Return which bytes of each result a call's kernels wrote; all of one that is not of theirs.

    A result is told by its size: one that was reordered behind the launch compares as wrong, and
    is run by all blocks.
    """
    runs = session.runs
    masks = session.returned or [run.stored(name) for run in runs for name in run.unwritten]
    # A mask is bytes that the blocks stored to, also from uninitialised memory: such a result is
    # wrong. A binding's results have masks of their own, whose order is that of the calls and not
    # of the results.
    found: list[Array] = []
    for _, leaf in leaves(got):
        array = plain(leaf)
        every = np.ones(array.nbytes, bool)
        fitting = [mask for mask in masks if mask.size == array.nbytes]
        found.append(fitting[0].reshape(-1) if len(fitting) == 1 else every)
    return found


def filled(got: Any, expected: Any, masks: Sequence[Array]) -> Any:
    """Return results in which bytes that no sampled block wrote are the expected ones."""
    pairs = zip(leaves(got), leaves(expected), masks, strict=False)
    return [_filled(plain(one), plain(other), mask) for (_, one), (_, other), mask in pairs]


def _filled(got: Array, expected: Array, mask: Array) -> Array:
    # Blocks that stored nothing say nothing of a result: it is compared as it is, and all run.
    if got.shape != expected.shape or got.dtype != expected.dtype or not mask.any():
        return got
    raw = np.ascontiguousarray(got).reshape(-1).view(np.uint8)
    wanted = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    return np.where(mask, raw, wanted).view(got.dtype).reshape(got.shape)

"""The default reward of a verdict: a number from 0 to 1, with the interval of its time part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.chips import chip as chip_named
from cubecore.dtypes import element_type

if TYPE_CHECKING:
    from cubecore.aliases import Json, JsonMapping

COMPILED, CLEAN, RIGHT, FAST = 0.1, 0.1, 0.5, 0.3
"""The parts of a reward: it compiles, no finding is certain, cases are right, it is fast."""


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward, and the least and the most that it is within the interval of the predicted time."""

    value: float
    low: float
    high: float


def default_reward(verdict: JsonMapping) -> Reward:
    """Return the reward of a verdict, which is a dict as `Verdict.to_json` or a store has it.

    0 where a mark of cheating is certain, and without a verdict. Else 0.1 if the submission
    compiles, 0.1 more if no finding is certain, 0.5 times the share of right cases among those that
    ran, and, of a right submission, 0.3 times the share that the time of its bytes at the memory's
    rate has of the predicted time, 1 at most. Without an interval the low end has none of that.

    Parameters
    ----------
    verdict : mapping
        A verdict as JSON.

    Returns
    -------
    Reward
        The reward, with the least and the most.
    """
    cheats = any(mark["certainty"] == "certain" for mark in verdict.get("cheating", ()))
    if cheats or verdict.get("correct") is None:
        return Reward(0.0, 0.0, 0.0)
    fixed = COMPILED * bool(verdict["compiled"])
    if verdict["compiled"]:
        certain = any(each["certainty"] == "certain" for each in verdict["findings"])
        fixed += CLEAN * (not certain)
    ran = [case for case in verdict["cases"] if case["outcome"] in {"right", "wrong", "refused"}]
    if ran:
        fixed += RIGHT * sum(case["outcome"] == "right" for case in ran) / len(ran)
    if not verdict["correct"]:
        return Reward(fixed, fixed, fixed)
    parts = [FAST * _speed(verdict, name) for name in ("us", "high_us", "low_us")]
    value, low, high = (fixed + part for part in parts)
    return Reward(value, low, max(high, value))


def _speed(verdict: JsonMapping, name: str) -> float:
    """Return the share that the least time has of a predicted one, by the bytes that must move."""
    time: Json = verdict.get("time") or {}
    rate = chip_named(verdict["chip"]).hbm_bytes_per_second
    if not time.get(name) or not rate:
        return 0.0
    return min(1.0, 1e6 * _bytes(verdict) / rate / float(time[name]))


def _bytes(verdict: JsonMapping) -> int:
    """Return the bytes of the arrays that a time is of: the full shape's, or the case's inputs."""
    full = verdict["task"].get("sizes", {}).get("full")
    if full:
        return int(full["bytes"])
    case = next((c for c in verdict["cases"] if c["name"] == verdict["time"]["case"]), None)
    if case is None:
        return 0
    pairs = zip(case["shapes"], case["dtypes"], strict=True)
    return sum(math.prod(shape) * element_type(dtype).numpy.itemsize for shape, dtype in pairs)

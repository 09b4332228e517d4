"""The time of the full shape, from those of smaller ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from cubecore.aliases import Json

_SPREAD = 2.0
"""The interval of an extrapolated time is so much wider to either side: tilings change."""


def time_at_full_shape(timed: Sequence[tuple[Json, Json]], full: Json) -> Json:
    """Return the time of a full shape along the line through the times of smaller ones.

    Parameters
    ----------
    timed : sequence of (dict, dict)
        The times that are predicted, each with the costs of its case, the smaller case first.
    full : dict
        The costs of the full shape.

    Returns
    -------
    dict
        The time of the largest case with ``us``, ``low_us`` and ``high_us`` of the full shape, and
        ``from``: those that it was extrapolated from. Two times give the part that grows with the
        work, one alone is all such work. The work is operations of products, and bytes of a model
        without any.
    """
    word = "operations" if 0 < full["operations"] < _UNKNOWN else "bytes"
    *others, (time, cost) = timed
    ratio = full[word] / max(cost[word], 1)
    # Start-up does not grow with the work: the slope between two cases leaves it out. Where the
    # larger one is not slower, both are start-up, and all of its time counts as work.
    growing = time["us"]
    if others:
        other, small = others[0]
        width, share = cost[word] - small[word], time["us"] - other["us"]
        if width > 0 and share > 0:
            growing = share * cost[word] / width
    us = time["us"] + growing * (ratio - 1)
    ends: dict[str, Any] = {"low_us": None, "high_us": None}
    if time["low_us"] is not None:
        ends["low_us"] = us * time["low_us"] / time["us"] / _SPREAD
        ends["high_us"] = us * time["high_us"] / time["us"] * _SPREAD
    points = [
        {"variant": c["variant"], word: c[word], "us": t["us"]} for t, c in (*others, (time, cost))
    ]
    return {**time, "us": us, **ends, "launches": [], "at": "extrapolated", "from": points}


_UNKNOWN = 1 << 62


def is_timed(time: Mapping[str, Any]) -> bool:
    """Return whether there is a time, and not the reason why there is none."""
    return "us" in time

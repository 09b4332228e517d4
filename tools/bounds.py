"""Writes tests/timing/bounds.toml: how far each published case may be off.

`python -m tools.bounds` takes the errors as they are now, rounded up to whole percents with some
room: more for kernels in our planner's tiling, which a better planner changes.
"""

from math import ceil
from pathlib import Path

from cubecore.workflows.calibration.validate import published_validation
from cubecore.workflows.calibration.validation import Validated

BOUNDS = Path(__file__).resolve().parents[1] / "tests/timing/bounds.toml"
ROOM, ROOM_OF_PLANS = 1, 20
"""Percents above the present error."""
_HEAD = """\
# Percents that each published case's time may be off, or its worst pipe where no time is stated.
# `python -m tools.bounds` writes the file; a bound that grows wants a reason in its commit.

"""


def worst(case: Validated) -> float:
    """Return a case's absolute error: of its time, or of its worst pipe."""
    if case.wall is not None:
        return abs(case.wall.error)
    return max(abs(pair.error) for pair in case.pipes.values())


def bound(case: Validated) -> int:
    """Return the bound that the present error gives."""
    room = ROOM_OF_PLANS if case.group in {"library", "small"} else ROOM
    return ceil(100 * worst(case)) + room


def main() -> None:
    """Write the file."""
    lines = [f"{case.point.id} = {bound(case)}" for case in published_validation().timed]
    BOUNDS.write_text(_HEAD + "\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

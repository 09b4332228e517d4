"""The vector unit of Ascend 950 against published cycles of vector functions, and its fit.

`python -m tools.calibration.vector_functions CHECKOUTS` compiles the public kernels that
`vector_functions.jsonl` names, whose repositories lie as CHECKOUTS/OWNER/NAME, records their vector
functions, and prints the predicted cycles beside the published ones: by the chip's constants, and
by those that fit all other publications best. `changes` of a point make its kernel's data small;
the functions stay as they are.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cubecore.chips.catalog import chip, default_chip_of
from cubecore.frontends.cpp.host_programs.driver import compile_and_link
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.isa.vector.registers.issue.schedule import VectorUnit, schedule
from cubecore.isa.vector.registers.issue.work import UnitWork, work_of
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.workflows.scripts.program import run_linked

POINTS = Path(__file__).with_name("vector_functions.jsonl")
_INPUT_FLOATS = 128 * 128
_TRIED: Mapping[str, Sequence[int]] = {
    "window": (64, 80, 96, 112, 128),
    "queue": (24, 32, 40, 1000),
    "forward_cycles": (3, 4, 5),
    "loop_cycles": (3, 4, 5),
}
_APART = 0.02
"""Published cycles that differ by less are those of equally fast variants."""
_ENDS, _BEGINS = range(11), range(0, 31, 5)


@dataclass(frozen=True, slots=True)
class Constants:
    """The unit, and the cycles behind a function's last result and in front of the first one."""

    unit: VectorUnit
    ends: int
    begins: int


@dataclass(frozen=True, slots=True)
class Point:
    """Published cycles, and what the unit runs in them: a function, `calls` times."""

    id: str
    kernel: str
    repo: str
    cycles: float
    calls: int
    work: tuple[UnitWork, ...]

    def last(self, unit: VectorUnit) -> int:
        """Return the cycle in which the function's last result is there."""
        return max(each.done for each in schedule(self.work, unit))

    def error(self, last: int, ends: int, begins: int) -> float:
        """Return how far the predicted cycles are from the published ones, as a share."""
        return (begins + self.calls * (last + ends)) / self.cycles - 1


def points(checkouts: Path) -> list[Point]:
    """Return the published points, with what their kernels record."""
    rows = [json.loads(line) for line in POINTS.read_text("utf-8").splitlines()]
    return [
        Point(
            *(row[name] for name in ("id", "kernel", "repo", "cycles", "calls")),
            _recorded(row, checkouts),
        )
        for row in rows
    ]


def _recorded(row: Mapping[str, Any], checkouts: Path) -> tuple[UnitWork, ...]:
    """Return what the unit runs of the first vector function of a kernel."""
    source = checkouts / row["repo"] / row["file"]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        taken = source
        if changes := row.get("changes"):
            text = source.read_text("utf-8")
            for old, new in changes:
                text = text.replace(old, new)
            taken = Path(source.name)
            taken.write_text(text, "utf-8")
        for name in ("input", "output"):
            Path(name).mkdir()
        values = np.random.default_rng(0).uniform(-5, 5, _INPUT_FLOATS)
        values.astype(np.float32).tofile("input/input_x.bin")
        options = ["--npu-arch=dav-3510", f"-I{source.parent}"]
        defines = [f"-D{name}" for name in row.get("defines", ())]
        compile_and_link([*options, *defines, str(taken), "-o", "program"])
        run = run_linked("program", (), {"trace": True}, CppLaunchOptions())
    issued = (each for launch in run.launches for trace in launch.traces.values() for each in trace)
    first = next(each for each, *_ in issued if isinstance(each, VectorFunction))
    return tuple(work_of(first.program))


def fitted(found: Sequence[Point]) -> Constants:
    """Return the constants of those tried whose errors are the least in the mean square."""
    best, least = None, float("inf")
    for values in product(*_TRIED.values()):
        unit = VectorUnit(*values)
        lasts = [point.last(unit) for point in found]
        for ends, begins in product(_ENDS, _BEGINS):
            errors = [p.error(last, ends, begins) for p, last in zip(found, lasts, strict=True)]
            if (square := sum(error * error for error in errors)) < least:
                best, least = Constants(unit, ends, begins), square
    assert best is not None
    return best


def of_chip() -> Constants:
    """Return the constants of the catalogue."""
    fast = chip(default_chip_of("3510"))
    ends, begins = (fast.require(f"vf_{name}_cycles", "timing") for name in ("drain", "start"))
    return Constants(VectorUnit.of(fast), int(ends), int(begins))


def _ordered(found: Sequence[Point], constants: Constants) -> Iterator[bool]:
    """Yield for each pair of one kernel whether its order is right; near ones are no pair."""
    sized = [
        (p, p.cycles * (1 + p.error(p.last(constants.unit), constants.ends, constants.begins)))
        for p in found
    ]
    for (one, first), (other, second) in combinations(sized, 2):
        apart = abs(one.cycles / other.cycles - 1) > _APART
        if one.kernel == other.kernel and apart:
            yield (one.cycles < other.cycles) == (first < second)


def main(arguments: Sequence[str]) -> None:
    """Print the errors of all points, in the sample and with their publication left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    found = points(parser.parse_args(arguments).checkouts)
    ours = of_chip()
    without = {
        repo: fitted([point for point in found if point.repo != repo])
        for repo in sorted({point.repo for point in found})
    }
    print("all:", fitted(found))
    for repo, constants in without.items():
        print(f"without {repo}:", constants)
    errors = []
    for point in found:
        sets = (ours, without[point.repo])
        one, left = (point.error(point.last(c.unit), c.ends, c.begins) for c in sets)
        print(f"{point.id:28} {point.cycles:8.1f} {one:+7.1%} {left:+7.1%}")
        errors.append((abs(one), abs(left)))
    ordered = [*_ordered(found, ours)]
    print(f"order: {sum(ordered)} of {len(ordered)} pairs of one kernel")
    for name, column in zip(("in sample", "left out"), zip(*errors, strict=True), strict=True):
        print(f"{name}: median {median(column):.1%}, worst {max(column):.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])

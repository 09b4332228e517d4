"""Options of a judgement, and the limits of its processes."""

import os
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import chip as chip_named
from cubecore.errors import did_you_mean, one_of, refuse, unable
from cubecore.sandbox.words import AUTO, checked

CASES = 5
CAP_BYTES = 16 << 20
INSTRUCTIONS = 250_000
"""A minute of CPU at most: scalar reads of global memory are the slowest instructions."""
AUTO_SIZES, FULL_SIZES = "auto", "full"
SIZES = (AUTO_SIZES, FULL_SIZES)
"""The policies of sizes: smaller ones for a large task of torch, or the task's own alone."""
REDUCED_BYTES = 1 << 20
"""The most bytes of a model's arrays, all together, that its own sizes are run with."""
_MOST_NUMBER = 2**63 - 1
"""The largest number that random generators and counters take."""
_MOST_S = 10_000_000
CPU_S = 120.0
WALL_S = 600.0


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Options of a judgement, each a keyword of `judge`.

    Attributes
    ----------
    chip : str
        Full SoC name.
    cases : int
        The most cases of the task that are run, the small ones first.
    cap_bytes : int
        The most bytes of an array; a case with a larger one is not run.
    sizes : str
        auto runs a task of torch whose arrays have more than a MiB at smaller sizes, and a kernel
        that is not right there at its full shape; full runs the task's own sizes alone.
    seed : int
        The random seed that cases are drawn with.
    instructions : int
        The most instructions that all cases together may issue: the outcome of a case that passes
        them is late, and those behind it are not run.
    entry : str
        The kernel of a file with several, or the function of a Python file; empty for the only one.
    blocks : int
        The blocks that a kernel without host code is launched on.
    cpu_s : float
        CPU seconds of the judgement, but of what it compiles for all that come: beyond them there
        is no verdict, and the stage is stopped. Without a box each compiler has as many.
    wall_s : float
        Seconds of each step, as `cpu_s`.
    sandbox : str
        The box that the submission runs in: bwrap, own, none, or auto for the first that there is.
    includes : tuple of str
        Folders for headers beside the submission's, which its box shows: those of its `-I`.
    settings : dict
        Fields of the chip to replace: a what-if chip.
    """

    chip: str
    cases: int = CASES
    cap_bytes: int = CAP_BYTES
    sizes: str = AUTO_SIZES
    seed: int = 0
    instructions: int = INSTRUCTIONS
    entry: str = ""
    blocks: int = 1
    cpu_s: float = CPU_S
    wall_s: float = WALL_S
    sandbox: str = AUTO
    includes: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing to judge."""
        for name in ("cases", "cap_bytes", "instructions", "blocks"):
            _require_whole(name, getattr(self, name), 1, "be a whole number above 0")
        _require_whole("seed", self.seed, 0, "be a whole number from 0 on")
        if not isinstance(self.entry, str):
            raise refuse("entry", "be text", repr(self.entry))
        if not isinstance(self.settings, dict):
            raise refuse("settings", "map the chip's fields to values", repr(self.settings))
        if self.sizes not in SIZES:
            raise refuse("sizes", one_of(SIZES), repr(self.sizes))
        checked(self.sandbox)
        for folder in self.includes:
            if not Path(folder).is_dir():
                raise unable(folder, f"cannot read {folder}: no such folder")
        for name in ("cpu_s", "wall_s"):
            _require_seconds(name, getattr(self, name))

    @property
    def launch(self) -> Json:
        """The options of launches."""
        return {"chip": self.chip, "settings": self.settings}

    @property
    def limits(self) -> Json:
        """The limits as the verdict tells them."""
        return {
            "cpu_s": self.cpu_s,
            "wall_s": self.wall_s,
            "instructions": self.instructions,
            "cases": self.cases,
            "cap_bytes": self.cap_bytes,
        }


@dataclass(eq=False, slots=True)
class CpuBudget:
    """CPU seconds of a judgement: those of its steps, of their compilers and of this process."""

    limit_s: float
    steps_s: float = 0.0

    @property
    def used_s(self) -> float:
        """The seconds that are used."""
        return self.steps_s + sum(os.times()[:2])

    @property
    def left_s(self) -> float:
        """The seconds that are left, 0 for none."""
        return max(0.0, self.limit_s - self.used_s)

    @property
    def sentence(self) -> str:
        """The end of a sentence on who used them up."""
        return f"was ended by the limit of {self.limit_s:g} s of CPU time"


def _require_whole(name: str, value: object, least: int, need: str) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise refuse(name, need, repr(value))
    if value > _MOST_NUMBER:
        raise refuse(name, f"be at most {_MOST_NUMBER:,}", f"{value:,}")


def _require_seconds(name: str, value: object) -> None:
    if not isinstance(value, (int, float, np.floating)) or isinstance(value, bool):
        raise refuse(name, "be a finite number above 0", repr(value))
    if not 0 < value < float("inf"):
        raise refuse(name, "be a finite number above 0", f"{value:g}")
    if value > _MOST_S:
        raise refuse(name, f"be at most {_MOST_S:,} s", f"{value:g}")


def options_of(chip: str, words: JsonMapping) -> JudgeOptions:
    """Return the options of a judgement on a chip.

    Raises
    ------
    RequestError
        If there is no such chip or option, or an option does not take its value.
    """
    names = [each.name for each in fields(JudgeOptions) if each.name != "chip"]
    for name in words:
        if name not in names:
            raise refuse("an option", one_of(names), repr(name), did_you_mean(name, names))
    includes = words.get("includes", ())
    if isinstance(includes, str) or not all(isinstance(each, (str, Path)) for each in includes):
        raise refuse("includes", "be a list of folders", repr(includes))
    folders = tuple(str(Path(each).resolve()) for each in includes)
    asked = JudgeOptions(chip_named(chip).name, **{**words, "includes": folders})
    chip_named(chip).what_if(asked.settings)
    return asked

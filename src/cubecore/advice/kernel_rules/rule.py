"""The declaration of a rule: what it counts, from which value on it speaks, and what it says."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from cubecore.advice.kernel_rules.case import KernelCase
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Location
from cubecore.presented.text import duration
from cubecore.timing.records import Timeline

MODELLED = "modelled"
"""The changed program was timed."""
BOUND = "bound"
"""No change saves more; what is saved depends on how it is made."""
UNKNOWN = "not modelled"
"""The timing model charges nothing for it."""
NOT_MODELLED = "not modelled, may be slower than shown"
_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule's finding: the line, what to say of it, and what the launch takes without it.

    `better` is the changed launch, or the cycles that it takes at least; None of what the timing
    model charges nothing for. `tried` says what was changed. `moves_less` says that it moves fewer
    bytes from or to global memory, `at_most` that the saving of a changed launch is a bound.
    """

    location: Location
    text: str
    better: Launch | int | None
    tried: str = ""
    moves_less: bool = False
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class KernelRule:
    """A rule: `counts` is its counter, `threshold` from when on it speaks, `source` why from there.

    `remedy` is what a kernel's author does about it, `find` returns the causes in a launch. Not
    `charged`: the timing model has no cost for it, so that a time without advice names it, too.
    """

    name: str
    counts: str
    threshold: str
    source: str
    remedy: str
    find: Callable[[KernelCase], Iterable[Cause]]
    charged: bool = True


RULES: dict[str, KernelRule] = {}
"""All rules by their names, in the order of their declaration."""
_Find = Callable[[KernelCase], Iterator[Cause]]


def rule(name: str, *, charged: bool = True, **words: str) -> Callable[[_Find], _Find]:
    """Declare a rule: `counts`, `threshold`, `source` and `remedy` of `KernelRule`."""

    def declare(find: _Find) -> _Find:
        RULES[name] = KernelRule(name, **words, find=find, charged=charged)
        return find

    return declare


@dataclass(frozen=True, slots=True)
class KernelAdvice:
    """One advice on a launch: the rule, the line and the reason, and what it would save.

    `saves_cycles` are by the model; `certainty` says whether the changed program was timed, that
    is a bound, or the model charges nothing for it. `tried` says what was changed to find out,
    empty where nothing was.
    """

    rule: str
    location: Location
    text: str
    saves_cycles: int
    saves_us: float
    saves_share: float
    certainty: str
    tried: str = ""

    @staticmethod
    def of(rule_name: str, cause: Cause, timeline: Timeline, cycles: int) -> "KernelAdvice":
        """Return the advice of a cause without which the launch takes so many cycles."""
        saved = timeline.cycles - cycles
        share = saved / timeline.cycles
        bound = cause.at_most or isinstance(cause.better, int)
        certainty = UNKNOWN if cause.better is None else BOUND if bound else MODELLED
        us = timeline.us * share
        where = cause.location
        return KernelAdvice(rule_name, where, cause.text, saved, us, share, certainty, cause.tried)

    def to_json(self) -> dict[str, Any]:
        """Return the advice as JSON."""
        return {
            "rule": self.rule,
            "file": self.location.file,
            "line": self.location.line,
            "text": self.text,
            "saves_cycles": self.saves_cycles,
            "saves_us": self.saves_us,
            "saves_share": self.saves_share,
            "certainty": self.certainty,
            "tried": self.tried,
        }

    @property
    def remedy(self) -> str:
        """The change that a kernel's author makes."""
        return RULES[self.rule].remedy

    @property
    def line(self) -> str:
        """The line, the rule and the reason."""
        return f"  {self.location.file}:{self.location.line}: {self.rule}: {self.text}"

    @property
    def lines(self) -> list[str]:
        """The advice with its line, its saving, its reason and its remedy, as text."""
        most = "at most " if self.certainty == BOUND else ""
        saved = f"saves {most}{duration(self.saves_us)} ({self.saves_share:.0%})"
        if self.certainty == UNKNOWN:
            saved = NOT_MODELLED
        tried = f", timed with {self.tried}" if self.tried else ""
        lines = [f"  {self.location.file}:{self.location.line}: {self.rule} {saved}{tried}"]
        for text in (self.text, self.remedy):
            lines += [f"    {line}" for line in wrap(text, _WIDTH)]
        return lines

"""Findings of a run: their checks and kinds, and records of one each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cubecore import manual
from cubecore.errors import Violation
from cubecore.isa.catalogue import instructions
from cubecore.isa.program.tree import Location
from cubecore.machine.finding_kinds import FINDING_IDS, KINDS, RACECHECK
from cubecore.machine.sanitize.flags import SetEvent

EVERY_CORE = "all cores"
"""The core of a finding about what a launch leaves behind."""
OPEN = frozenset({"capacity", "flag-doubled"})
"""Kinds of which pages leave a case undecided: a mix launch's own bytes, sets before their wait."""
OVERWRITTEN = "array-overwritten"
"""A kind that says why accesses of two arrays seem to race."""


def _calls(where: Location) -> dict[str, Any]:
    """Return the function that a line calls and the calls that led there, where they are known."""
    if not where.call and not where.callers:
        return {}
    return {"call": where.call, "callers": [str(caller) for caller in where.callers]}


@dataclass(frozen=True, slots=True)
class FindingAccess:
    """An access of a finding: who touched which bytes [start, end) of a memory, how."""

    how: str
    instruction: str
    operand: str
    pipe: str
    memory: str
    start: int
    end: int
    core: str
    location: Location

    def to_json(self) -> dict[str, Any]:
        """Return the access as JSON."""
        return {
            "how": self.how,
            "instruction": self.instruction,
            "operand": self.operand,
            "pipe": self.pipe,
            "memory": self.memory,
            "start": self.start,
            "end": self.end,
            "core": self.core,
            "location": str(self.location),
            **_calls(self.location),
        }


@dataclass(frozen=True, slots=True)
class SanitizerFinding:
    """One thing that is wrong with a program: the first time it happened, and how often it did.

    A race has its two accesses, the earlier in program order first; a read of bytes that nobody has
    written has one, from the first of these bytes to the last; a result that another array
    overwrites has those that wrote it, overwrote it and read it. A finding about a flag has the
    `pipes` that the flag orders, and its `event`; a wait that nothing meets has the `other_event`
    of the same pipes that is set, if there is one. `arrays`: the bytes of two that share those of
    the accesses; of an output those that are not initialised. `elements`: how many of an operand
    are not initialised, and how many it has. `limits` are the bytes that the first access must
    stay in, `claim` is what its instruction requires, as parts of the message.

    The message is in the words of the instruction set. `text` is the same in the words of the
    source, `block` the blocks that its core runs, and `cause` the finding that it follows from:
    the front end that knows them fills them in.
    """

    id: str
    message: str
    instruction: str
    location: Location
    core: str
    count: int = 1
    accesses: tuple[FindingAccess, ...] = ()
    pipes: tuple[str, str] | None = None
    arrays: tuple[tuple[int, int], ...] = ()
    event: int | None = None
    other_event: SetEvent | None = None
    limits: tuple[int, int] | None = None
    elements: tuple[int, int] | None = None
    claim: Violation | None = None
    text: str = ""
    block: str = ""
    cause: "SanitizerFinding | None" = None

    @property
    def check(self) -> str:
        """The check that found it."""
        return FINDING_IDS[self.id]

    @property
    def is_note(self) -> bool:
        """True if it fails no run."""
        return KINDS[self.id].note

    @property
    def race_pipes(self) -> frozenset[str] | None:
        """The pipes of a race inside a core; None for everything else."""
        if self.check != RACECHECK or self.id == OVERWRITTEN:
            return None
        if {access.core for access in self.accesses} != {self.core}:
            return None
        return frozenset(access.pipe for access in self.accesses)

    @property
    def page(self) -> str | None:
        """The documents that its instruction is declared from; None for what is no instruction."""
        kind = instructions().get(self.instruction)
        return None if kind is None else kind.source

    def _told(self) -> dict[str, Any]:
        """Return what a front end has filled in, as JSON; nothing where none has."""
        if not self.text:
            return {}
        cause = None if self.cause is None else self.cause.mark()
        return {"text": self.text, "block": self.block or None, "caused_by": cause}

    def mark(self) -> dict[str, str]:
        """Return what tells it from the other findings of its launch, as JSON."""
        return {"id": self.id, "instruction": self.instruction, "location": str(self.location)}

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "id": self.id,
            "check": self.check,
            **({"note": True} if self.is_note else {}),
            "certainty": "note" if self.is_note else "open" if self.id in OPEN else "certain",
            "fix": KINDS[self.id].remedy,
            "vendor_name": KINDS[self.id].vendor or None,
            "message": self.message,
            "instruction": self.instruction,
            "page": self.page,
            "manual": manual.page("finding", self.id),
            "location": str(self.location),
            **_calls(self.location),
            "core": self.core,
            "count": self.count,
            **self._told(),
            "accesses": [access.to_json() for access in self.accesses],
        }


def faults(findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
    """Return the findings that fail a run: all but notes."""
    return tuple(finding for finding in findings if not finding.is_note)


def causes(findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
    """Return the findings that follow from no other one."""
    return tuple(finding for finding in findings if finding.cause is None)

"""What a run reports: records, collected once each, with a count."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cubecore.isa.program import Location

MEMCHECK = "memcheck"
INITCHECK = "initcheck"
SYNCCHECK = "synccheck"

FINDING_IDS: dict[str, str] = {
    "out-of-bounds": MEMCHECK,
    "misaligned": MEMCHECK,
    "capacity": MEMCHECK,
    "parameter": MEMCHECK,
    "overlap": MEMCHECK,
    "uninitialised": INITCHECK,
    "flag-overflow": SYNCCHECK,
}
"""Stable ids, and the check that each belongs to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a program: the first time it happened, and how often it did."""

    id: str
    message: str
    instruction: str
    location: Location
    core: str
    count: int = 1

    @property
    def check(self) -> str:
        """The check that found it."""
        return FINDING_IDS[self.id]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "id": self.id,
            "check": self.check,
            "message": self.message,
            "instruction": self.instruction,
            "location": str(self.location),
            "core": self.core,
            "count": self.count,
        }


@dataclass(slots=True)
class FindingLog:
    """Collects findings; one for each kind, instruction, operand and place."""

    _first: dict[tuple[str, str, str, Location], Finding] = field(default_factory=dict)
    _count: dict[tuple[str, str, str, Location], int] = field(default_factory=dict)

    def add(self, finding: Finding, operand: str = "") -> None:
        """Count a finding; the first of its kind is the one that is shown."""
        key = (finding.id, finding.instruction, operand, finding.location)
        self._first.setdefault(key, finding)
        self._count[key] = self._count.get(key, 0) + 1

    def __iter__(self) -> Iterator[Finding]:
        from dataclasses import replace

        for key, finding in self._first.items():
            yield replace(finding, count=self._count[key])

    def __len__(self) -> int:
        return len(self._first)

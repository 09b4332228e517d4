"""The log of a run's findings: each once, with a count, causes before what follows from them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cubecore.isa.program.tree import Location
from cubecore.machine.finding_kinds import CHECKS
from cubecore.machine.sanitize.findings import OVERWRITTEN, SanitizerFinding

Key = tuple[str, str, str, Location]
"""The key by which findings are merged: kind, instruction, operand, place."""


def key_of(finding: SanitizerFinding, operand: str) -> Key:
    """Return the key of a finding about an operand, or about what else tells two apart."""
    return finding.id, finding.instruction, operand, finding.location


@dataclass(slots=True, eq=False)
class CountedFinding:
    """A finding, and how often it was made."""

    first: SanitizerFinding
    count: int


@dataclass(slots=True)
class FindingLog:
    """Collects findings; one for each kind, instruction, operand and place.

    Those of a check that is not in `checks` are dropped. Each counts `weight` times: as often as
    there are cores that one stands for.
    """

    checks: frozenset[str] = frozenset(CHECKS)
    weight: int = 1
    _tallies: dict[Key, CountedFinding] = field(default_factory=dict)

    def add(self, finding: SanitizerFinding, operand: str = "") -> None:
        """Count a finding; the first of its kind is the one that is shown."""
        if finding.check not in self.checks:
            return
        self.merge(key_of(finding, operand), finding, self.weight)

    def merge(self, key: Key, finding: SanitizerFinding, count: int) -> None:
        """Take a finding that was made so often."""
        if (counted := self._tallies.get(key)) is None:
            counted = self._tallies[key] = CountedFinding(finding, 0)
        counted.count += count

    def counting(self, weight: int) -> "FindingLog":
        """Return a log of the same findings, each of which counts as often as that."""
        return FindingLog(self.checks, weight, self._tallies)

    def again(self, key: Key) -> CountedFinding | None:
        """Count a finding that is already there; None if it is new, and is to be added."""
        counted = self._tallies.get(key)
        if counted is not None:
            counted.count += self.weight
        return counted

    def __iter__(self) -> Iterator[SanitizerFinding]:
        """Yield findings as they were made, but causes before what follows from them.

        Arrays that share bytes come first, without their races. A flag's finding comes behind races
        between its two pipes, which name the accesses that the flag should have ordered. A wait
        without a set_flag comes before waits that precede theirs on the same core: it shifts every
        later pair of the flag by one.
        """
        # Ranks: 0 shared arrays, 1 everything else, 2 a flag between two pipes that also race on
        # that core, 3 a late wait on a core that also has an unmet one. The sort is stable within a
        # rank.
        tallies = self._explained()
        raced = {(t.first.core, t.first.race_pipes) for t in tallies}
        unmet = {t.first.core for t in tallies if t.first.id == "flag-unmet"}

        def rank(tally: CountedFinding) -> int:
            finding = tally.first
            if finding.id == OVERWRITTEN:
                return 0
            if finding.id == "flag-late" and finding.core in unmet:
                return 3
            pair = finding.pipes
            return 1 + (pair is not None and (finding.core, frozenset(pair)) in raced)

        for tally in sorted(tallies, key=rank):
            yield replace(tally.first, count=tally.count)

    def _explained(self) -> list[CountedFinding]:
        """Return the findings but races of arrays of which one destroys what the other holds."""
        destroyed = [t.first for t in self._tallies.values() if t.first.id == OVERWRITTEN]
        sharing = {_sharing(finding) for finding in destroyed}
        conflicts = frozenset[object]().union(*map(_conflicts, destroyed))

        def is_explained(race: SanitizerFinding) -> bool:
            return race.race_pipes is not None and (
                _sharing(race) in sharing or not conflicts.isdisjoint(_conflicts(race))
            )

        tallies = self._tallies.values()
        return [t for t in tallies if not destroyed or not is_explained(t.first)]

    def __len__(self) -> int:
        return len(self._explained())


def _sharing(finding: SanitizerFinding) -> tuple[str, str, frozenset[tuple[int, int]]] | None:
    """Return the core, the memory and the bytes of arrays that share some; else None."""
    if not finding.arrays:
        return None
    return finding.core, finding.accesses[0].memory, frozenset(finding.arrays)


def _conflicts(finding: SanitizerFinding) -> frozenset[frozenset[tuple[str, ...]]]:
    """Return the pairs of accesses that conflict, wherever they touch: those of the second one."""
    places = [(a.instruction, a.operand, a.core, str(a.location)) for a in finding.accesses]
    return frozenset(frozenset((places[1], other)) for other in places[:1] + places[2:])

"""Whether a mutant matters, and whether what is found of it is right.

A mutant counts if some order that its flags permit leaves other bytes than the right kernel leaves,
or never ends. A report is right if a finding is of a kind that fits the mutation and names the line
that is wrong: the site itself; of a flag or a barrier also its partner, or the two accesses that it
stood between; of bytes that are missing or lie elsewhere also who uses them, be it behind copies,
or their tensor.
"""

from collections import Counter
from dataclasses import dataclass, field

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.machine.memory.footprint import footprints
from mutations.mutants import mutants
from mutations.recording import ALL, Read, replayed

_ORDER = ("race-", "flag-", "deadlock")
_BYTES = (
    *("out-of-bounds", "misaligned", "capacity", "overlap", "uninitialised", "race-", "unread"),
)
_MISSING = ("uninitialised", "race-")


def _fitting(kind):
    if kind.startswith("drop"):
        return _ORDER
    if kind in {"shrink a copy", "skip an initialisation"}:
        return _MISSING
    return (*_BYTES, "parameter") if kind == "grow a repeat" else _BYTES


@dataclass
class Row:
    """How many mutants of one kind there are, how many count, and how many of these are reported.

    `rightly` are those reported with a kind and a line that fit. `spared` are reported and change
    nothing.
    """

    mutants: int = 0
    counted: int = 0
    reported: int = 0
    rightly: int = 0
    spared: int = 0


@dataclass
class Table:
    """The rows of one recording, its equivalent mutants, and those that were missed."""

    rows: dict = field(default_factory=dict)
    equivalent: list = field(default_factory=list)
    missed: list = field(default_factory=list)

    def share(self):
        """Return (rightly reported, counted)."""
        counts = Counter()
        for row in self.rows.values():
            counts["right"] += row.rightly
            counts["all"] += row.counted
        return counts["right"], counts["all"]


def orders(count):
    """Return the orders that are tried: program, late, early, and `count` drawn ones."""
    return ("late", "early", *(f"random:{seed}" for seed in range(count)))


def judged(recording, *, seeds, few, every=1, first=0):
    """Return the table of a recording's mutants, each `every`-th from the `first` on.

    Mutants that nothing is reported of run in `seeds` drawn orders before they are held for
    equivalent, the others in a `few`.
    """
    good, table = replayed(recording, checks=ALL), Table()
    assert good.findings == (), good.findings
    for mutant in list(mutants(recording))[first::every]:
        row = table.rows.setdefault(mutant.kind, Row())
        launch = recording.changed(mutant.streams)
        got = replayed(launch, checks=ALL)
        found = bool(got.findings)
        tried = orders(few if found else seeds)
        changes = got.left != good.left or any(
            replayed(launch, order).left != good.left for order in tried
        )
        right = found and _right(recording, mutant, got.findings)
        row.mutants += 1
        row.counted += changes
        row.reported += changes and found
        row.rightly += changes and right
        row.spared += found and not changes
        if changes and not right:
            table.missed.append((str(mutant), sorted({str(f.id) for f in got.findings})))
        if not changes and not found:
            table.equivalent.append(str(mutant))
    return table


def _right(recording, mutant, findings):
    fitting = [f for f in findings if f.id.startswith(_fitting(mutant.kind))]
    lines = _lines_of_order(recording, mutant) if mutant.kind.startswith("drop") else None
    return any(_names(recording, mutant, finding, lines) for finding in fitting)


def _names(recording, mutant, finding, lines):
    named = {finding.location, *(access.location for access in finding.accesses)}
    if mutant.site[0] in named:
        return True
    if lines is None:
        return _follows(recording, mutant, finding, named)
    partners, before, after = lines
    if finding.accesses:
        earlier, later = (access.location for access in finding.accesses)
        return earlier in before and later in after
    return bool(named & partners) or any(str(where) in finding.message for where in partners)


def _lines_of_order(recording, mutant):
    """Return the lines of a flag's other instructions, and those before and behind what is gone."""
    gone = {_item(recording, place)[0] for place in mutant.touched}
    partners, before, after = set(), set(), set()
    for core, stream in recording.streams.items():
        own = [index for at, index in mutant.touched if at == core]
        for index, item in enumerate(stream):
            where = item.where if isinstance(item, Read) else item[2]
            if not isinstance(item, Read) and any(_paired(item[0], other) for other in gone):
                partners.add(where)
            if not own or index < max(own):
                before.add(where)
            if not own or index > min(own):
                after.add(where)
    return partners, before, after


def _item(recording, place):
    return recording.streams[place[0]][place[1]]


def _paired(template, other):
    if isinstance(template, (SetFlag, WaitFlag)) and isinstance(other, (SetFlag, WaitFlag)):
        return (template.src, template.dst) == (other.src, other.dst)
    flags = [getattr(t, "flag_id", None) for t in (template, other)]
    return flags[0] is not None and flags[0] == flags[1]


def _follows(recording, mutant, finding, named):
    """Whether a finding is about bytes that the site wrote, or writes now."""
    in_place = mutant.kind != "skip an initialisation"
    written = [
        run
        for streams in (recording.streams, mutant.streams)[: 1 + in_place]
        for core, index in mutant.touched
        for run in _bytes(core, streams[core][index], writes=True)
    ]
    if finding.location == recording.place:
        return any(
            finding.message.startswith(f"{tensor.name} must") for tensor in recording.tensors
        )
    written = _behind_copies(mutant.streams, written)
    return any(
        _meet(run, other)
        for core, stream in mutant.streams.items()
        for item in stream
        if not isinstance(item, Read) and item[2] in named
        for run in _bytes(core, item, writes=False)
        for other in written
    )


def _behind_copies(streams, written):
    """Return bytes, and those that copies of them reach: what is missing travels unnoticed."""
    found = dict.fromkeys(written)
    before = -1
    while before < len(found):
        before = len(found)
        for core, stream in streams.items():
            for item in stream:
                if isinstance(item, Read) or not (item[0].copies or item[0].propagates):
                    continue
                to, *of = _bytes(core, item, writes=False) or [None]
                if any(_meet(one, other) for one in of for other in found):
                    found[to] = None
    return list(found)


def _bytes(core, item, *, writes):
    """Return (memory, first, last) of what an instruction touches, masks aside."""
    if isinstance(item, Read):
        return []
    template, addresses, _ = item
    given = zip(template.operands(), addresses, footprints(template), strict=False)
    found = [
        ((core if operand.mem is not Mem.GM else None, operand.mem), at + run.low, at + run.high)
        for operand, at, run in given
        if run is not None and (operand.access.writes or not writes)
    ]
    if not writes and template.pipe.value == "FIX":  # a register says where its scales lie
        found.append(((core, Mem.FB), 0, 1 << 20))
    return found


def _meet(one, other):
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]

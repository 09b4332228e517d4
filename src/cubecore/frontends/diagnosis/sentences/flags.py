"""Sentences of flags: the call, and where its other half belongs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cubecore.frontends.diagnosis.arguments import source_lines
from cubecore.frontends.diagnosis.dependence import IssuedCore
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import SetFlag, WaitFlag, WaitFlagDev
from cubecore.machine.sanitize.findings import SanitizerFinding

_SHOWN_LINES = 3


class _FlagUse(NamedTuple):
    """A set of a flag or a wait for it: the number of its call on the core, and where it is."""

    number: int
    is_set: bool
    where: Location


def _uses(core: IssuedCore, src: str, dst: str, event: int | None) -> Iterator[_FlagUse]:
    """Yield the sets of one flag and the waits for it, in their order."""
    for number, (template, _, where) in enumerate(core.issues):
        if not isinstance(template, (SetFlag, WaitFlag)):
            continue
        if (template.src, template.dst, template.event_id) == (src, dst, event):
            yield _FlagUse(number, isinstance(template, SetFlag), where)


def doubled(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a flag that is set twice."""
    dialect = words.of(finding.location)
    if finding.pipes is None or not dialect.flag:
        return ""
    wait = dialect.wait_flag(*finding.pipes, finding.event)
    return (
        f"{words.at(finding)} sets {_flag(finding)} again before {finding.pipes[1]} has "
        f"waited for it; put {wait} between them, make {finding.pipes[0]} wait for "
        f"{finding.pipes[1]} first, or take another event"
    )


def unmet(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a wait for a flag that nothing sets."""
    dialect = words.of(finding.location)
    if finding.pipes is None or not dialect.flag:
        return ""
    other = finding.other_event
    if other is not None:
        setter, where = dialect.name(SetFlag), line_of(other.where)
        return (
            f"{words.at(finding)} waits for event {finding.event} of {_pipes(finding)}, which "
            f"nothing sets before it; {setter} at {where} sets event {other.event}: wait for "
            f"event {other.event} here, or set event {finding.event} there"
        )
    raised = dialect.set_flag(*finding.pipes, finding.event)
    swapped = swapped_set(finding, words)
    if swapped is not None:
        setter, back = dialect.name(SetFlag), finding.pipes[::-1]
        fix = f"write {raised} there"
        if not swapped.of_set:
            fix = f"write {dialect.wait_flag(*back, finding.event)} here"
        return (
            f"{words.at(finding)} waits for {_flag(finding)}, which nothing sets before it; "
            f"{setter} at {line_of(swapped.where)} has the pipes the other way round, "
            f"{' -> '.join(back)}: {fix}"
        )
    before = _sets_before(finding, words)
    if before:
        count, lines = len(before), list(dict.fromkeys(line_of(each) for each in before))
        times = "once" if count == 1 else f"{count} times"
        return (
            f"{words.at(finding)} waits for {_flag(finding)} once more than it is set: "
            f"{dialect.name(SetFlag)} at {' and '.join(lines[:_SHOWN_LINES])} sets it {times} "
            f"before; put {raised} on every path to this wait, or leave out the wait"
        )
    waits = f"{words.at(finding)} waits for ever: no {_flag(finding)} is set before it"
    return f"{waits}; put {raised} before it, on every path"


@dataclass(frozen=True, slots=True)
class Swapped:
    """A set whose pipes are those of an unmet wait the other way round, and the half that is wrong.

    `of_set`: the set stands behind what the wait is for, so that its pipes are wrong.
    """

    where: Location
    of_set: bool


def swapped_set(finding: SanitizerFinding, words: SourceWords) -> Swapped | None:
    """Return the set that an unmet wait was meant for, if one has its pipes the other way round.

    It is one of too many: without it, its flag is set as often as it is waited for.
    """
    core = words.issued.get(finding.core)
    if core is None or finding.pipes is None or finding.id != "flag-unmet":
        return None
    sets, waits = dict[str, list[int]](), 0
    for use in _uses(core, *finding.pipes[::-1], finding.event):
        if use.is_set:
            sets.setdefault(line_of(use.where), []).append(use.number)
        else:
            waits += 1
    # As many sets too many as one line makes: that line's are meant for another flag. Which half is
    # wrong, the set or the wait, follows from the pipe that worked before the set: it produces.
    excess = sum(map(len, sets.values())) - waits
    meant = [numbers[0] for numbers in sets.values() if len(numbers) == excess]
    for pipe in finding.pipes:
        for number in meant:
            if _worked_before(core, number) == pipe:
                return Swapped(core.location(number), of_set=pipe == finding.pipes[0])
    return None


def _worked_before(core: IssuedCore, number: int) -> str:
    """Return the pipe of the last instruction before a set that touches memory."""
    for template, _, _ in reversed(core.issues[:number]):
        if template.operands():
            return template.pipe.value
    return ""


def _sets_before(finding: SanitizerFinding, words: SourceWords) -> list[Location]:
    """Return the sets of a flag that its waits before the unmet one have used up."""
    core = words.issued.get(finding.core)
    if core is None or finding.pipes is None:
        return []
    sets, standing = list[Location](), 0
    for use in _uses(core, *finding.pipes, finding.event):
        if use.is_set:
            sets.append(use.where)
            standing += 1
        elif standing == 0 and line_of(use.where) == line_of(finding.location):
            return sets
        else:
            standing = max(0, standing - 1)
    return []


def leaked(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a flag that is set at the end."""
    dialect = words.of(finding.location)
    if finding.pipes is None or not dialect.flag:
        return ""
    wait = dialect.wait_flag(*finding.pipes, finding.event)
    if _is_of_last_pass(finding, words):
        return (
            f"{words.at(finding)} sets {_flag(finding)} in each pass of a loop, and the set of the "
            f"last pass has no wait: it leaks into the next kernel; put {wait} once behind the loop"
        )
    return (
        f"{words.at(finding)} sets {_flag(finding)}, which nothing waits for: it is still "
        f"set at the end and leaks into the next kernel; put {wait} behind it, or remove it"
    )


def _is_of_last_pass(finding: SanitizerFinding, words: SourceWords) -> bool:
    """Return whether a flag is set more than once by a call, and all but the last are met."""
    core = words.issued.get(finding.core)
    if core is None or finding.pipes is None:
        return False
    line, sets, waits = line_of(finding.location), 0, 0
    for use in _uses(core, *finding.pipes, finding.event):
        waits += not use.is_set
        sets += use.is_set and line_of(use.where) == line
    return sets > 1 and waits > 0


_UNSENT = re.compile(r"waits for (?P<flag>.+?) at .*?, which (?P<who>.+) (?:has|have) not sent")
_WAITING = re.compile(r" \(waiting at ([^()]+(?:\([^()]*\))?)\)")
_CORE = re.compile(r"core \d+(?: AI[CV]\d?)?")


def deadlock(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a core that waits for a signal of others that they never send."""
    lacked = _UNSENT.search(finding.message)
    if finding.instruction != WaitFlagDev.name or lacked is None:
        return ""
    dialect, where = words.of(finding.location), finding.location
    who = _CORE.sub(lambda core: words.block(core.group()), lacked["who"])
    together = dialect.all_cores.partition("(")[0]
    line = "".join(source_lines(where.file)[where.line - 1 : where.line])
    if together and re.search(rf"\b{together}\b", line):
        comes = who.replace(" (at its end)", " ends without it")
        comes = _WAITING.sub(r" waits at \1", comes)
        return (
            f"{together} at {line_of(where)} waits for ever: {comes}; let every block call "
            f"{dialect.all_cores}"
        )
    who = _WAITING.sub(r", waiting at \1,", who.replace(" (at its end)", ", at its end,"))
    signal, _ = dialect.signals(across_parts=True)
    return (
        f"{words.at(finding)} waits for ever for {lacked['flag']}, which {who} never sends; "
        f"call {signal} there before, on every path"
    )


def late(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a wait that stands before its set."""
    dialect = words.of(finding.location)
    if finding.pipes is None or not dialect.flag:
        return ""
    raised = dialect.set_flag(*finding.pipes, finding.event)
    return f"{words.at(finding)} stands before its {raised}; move it behind that"


def _pipes(finding: SanitizerFinding) -> str:
    assert finding.pipes is not None
    return " -> ".join(finding.pipes)


def _flag(finding: SanitizerFinding) -> str:
    """Return a flag by its pipes and its event."""
    return f"flag {_pipes(finding)} {finding.event}"

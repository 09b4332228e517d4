"""One sentence for each kind of finding, made from its parts in the words of the source."""

from collections.abc import Callable, Sequence

from cubecore.errors import Violation
from cubecore.frontends.diagnosis.arguments import receiver
from cubecore.frontends.diagnosis.dependence import Store
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.catalogue import instructions
from cubecore.machine.sanitizer.findings import (
    KINDS,
    OVERWRITTEN,
    SYNCCHECK,
    FindingAccess,
    SanitizerFinding,
)

Sentence = Callable[[SanitizerFinding, SourceWords], str]

_HAS = {"read": "has read", "write": "has written"}


def sentence(
    finding: SanitizerFinding, words: SourceWords, following: Sequence[SanitizerFinding] = ()
) -> str:
    """Return the text of a finding: the call and its line, what is wrong, and the remedy.

    `following` are those that follow from it: they tell which half of a flag is missing.
    """
    if finding.id in _RACES:
        return _race(finding, words, following)
    special = _SENTENCES.get(finding.id)
    text = special(finding, words) if special is not None else ""
    return text or _requirement(finding, words)


# --- races


def _race(
    finding: SanitizerFinding, words: SourceWords, following: Sequence[SanitizerFinding]
) -> str:
    earlier, later = finding.accesses
    first, second = (words.call(each.instruction, each.location) for each in finding.accesses)
    if earlier.core != later.core:
        first, second = (
            f"{call} in {words.block(each.core)}"
            for call, each in ((first, earlier), (second, later))
        )
    array = words.array(later)
    remedy = _missing_wait(finding, words, following) or _order(earlier, later, words)
    if earlier.how == later.how:
        return f"{second} and {first} may write {array} in either order; {remedy}"
    pronoun = _HAS[earlier.how]
    return f"{second} may {later.how} {array} before {first} {pronoun} it; {remedy}"


def _missing_wait(
    finding: SanitizerFinding, words: SourceWords, following: Sequence[SanitizerFinding]
) -> str:
    """Return the wait that a race lacks where the flag is set, and nothing waits for it."""
    earlier, later = finding.accesses
    pipes, dialect = (earlier.pipe, later.pipe), words.of(later.location)
    unmet = (each for each in following if each.id == "flag-leaked" and each.pipes == pipes)
    flag = next(unmet, None)
    if flag is None or not dialect.flag:
        return ""
    wait, behind = (
        dialect.wait_flag(*pipes, flag.event),
        words.short(later.instruction, later.location),
    )
    sets = words.call(flag.instruction, flag.location)
    return f"{sets} sets a flag that nothing waits for: put {wait} before {behind}"


def _order(earlier: FindingAccess, later: FindingAccess, words: SourceWords) -> str:
    """Return how the source puts one access behind another."""
    dialect = words.of(later.location)
    before, behind = (words.short(a.instruction, a.location) for a in (earlier, later))
    if not dialect.flag:
        return (
            "give each block bytes of its own"
            if earlier.core != later.core
            else f"put {behind} behind {before}"
        )
    if earlier.core != later.core and earlier.location == later.location:
        return "give each block bytes of its own there, by its index"
    if earlier.core != later.core:
        signal, wait = dialect.signals
        pair = f"signal by {signal} behind {before} and wait by {wait} before {behind}"
        return f"{dialect.all_cores}{pair}"
    if earlier.pipe == later.pipe:
        return f"put {dialect.pipe_barrier(later.pipe)} between them"
    pipes = earlier.pipe, later.pipe
    queued = dialect.queued(earlier.how)
    return (
        f"{queued}put {dialect.set_flag(*pipes, None)} behind {before} and "
        f"{dialect.wait_flag(*pipes, None)} before {behind}"
    )


def _overwritten(finding: SanitizerFinding, words: SourceWords) -> str:
    _, over, read = finding.accesses
    calls = [words.call(each.instruction, each.location) for each in finding.accesses]
    (low, high), (start, end) = finding.arrays
    shared = f"[{max(low, start)}, {min(high, end)})"
    return (
        f"{calls[1]} overwrites {words.array(over)} before {calls[2]} has read what {calls[0]} "
        f"wrote there: arrays at [{low}, {high}) and [{start}, {end}) of {read.memory} share "
        f"{shared}; move or shorten one of them, no barrier helps"
    )


def _unread(finding: SanitizerFinding, words: SourceWords) -> str:
    lost, over = finding.accesses
    return (
        f"{words.call(over.instruction, over.location)} overwrites {words.array(over)}, which "
        f"{words.call(lost.instruction, lost.location)} wrote and nothing has read; read it "
        "first, or do not compute it"
    )


# --- bounds and values


def _outside(finding: SanitizerFinding, words: SourceWords) -> str:
    if finding.limits is None or not finding.accesses:
        return ""
    access, (low, high) = finding.accesses[0], finding.limits
    verb = "reads" if access.how == "read" else "writes"
    beyond = (
        f"{access.end - high} B behind its end"
        if access.end > high
        else f"{low - access.start} B before its beginning"
    )
    is_global = access.memory in words.arrays
    dialect = words.of(finding.location)
    if finding.location.call in dialect.product_calls:
        remedy = "a block at an edge is smaller: give its rows and columns by SetTail"
        return f"{words.at(finding)} {verb} {words.array(access)}: {beyond}; {remedy}"
    has = f"which has {high - low} B" if is_global else f"whose bytes are [{low}, {high})"
    remedy = "start elsewhere" if is_global else "make it larger"
    return (
        f"{words.at(finding)} {verb} {words.array(access)}, {has}: {beyond}; take fewer elements "
        f"there, or {remedy}"
    )


def _uninitialised(finding: SanitizerFinding, words: SourceWords) -> str:
    claim = finding.claim
    if claim is None:
        return ""
    if not finding.accesses:
        return unwritten_text(claim, None, words)
    access = finding.accesses[0]
    verb, remedy = "reads", "load or fill it first"
    if words.updates(access):
        verb, remedy = "adds to", "initialise it first, or let this call begin from nothing"
    return (
        f"{words.at(finding)} {verb} {words.array(access)} before it is initialised: "
        f"{claim.value}; {remedy}"
    )


def unwritten_text(claim: Violation, store: Store | None, words: SourceWords) -> str:
    """Return the text of an output that is not written whole, with the store nearest to the gap."""
    counted = f"output {claim.subject}: {claim.value}"
    if store is None:
        return f"{counted}; store to all of it, on every path"
    call = words.call(store.instruction, store.location)
    if store.covers:
        return f"{counted}; {call} stores there what nothing has computed or loaded"
    return f"{counted}; the store that ends nearest before it is {call}: go on behind it"


def _requirement(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return what the call requires; of what is no instruction, what the message says."""
    dialect, claim = words.of(finding.location), finding.claim
    if claim is None or claim.sentence:
        return _said(finding, words)
    name, _, operand = claim.subject.partition(".")
    if name != finding.instruction or name not in instructions():
        return _said(finding, words)
    written = words.operand(name, operand, finding.location)
    subject = f" {operand}" if operand else ""
    subject += f" ({written})" if written and written != operand else ""
    remedy = f"; {dialect.in_words(claim.remedy)}" if claim.remedy else ""
    need, got = dialect.in_words(claim.requirement), dialect.in_words(claim.value)
    return f"{words.at(finding)}:{subject} must {need}, got {got}{remedy}"


def _said(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the message behind the call that it is about."""
    dialect, where = words.of(finding.location), finding.location
    message, name = finding.message, finding.instruction
    head = words.at(finding)
    called_by = where.call or name
    if message.startswith(f"{called_by}."):
        return f"{head}: {dialect.in_words(message.removeprefix(f'{called_by}.'))}"
    of_call = name in instructions() or name == where.call
    for begin in (f"{name}: ", f"{name} ") if of_call else ():
        if message.startswith(begin):
            message = message.removeprefix(begin)
            of = receiver(where)
            called = f"{of}.{head}" if of not in {"", "core"} else head
            joint = ": " if begin.endswith(": ") else " "
            kind = KINDS[finding.id]
            usual = f"; {kind.remedy}" if kind.check == SYNCCHECK and "; " not in message else ""
            return f"{called}{joint}{dialect.in_words(message + usual)}"
    if message.startswith(f"{name}."):
        return f"{head}: {dialect.in_words(message.removeprefix(f'{name}.'))}"
    begin = head if name in instructions() else f"{where.file}:{where.line}"
    return f"{begin}: {dialect.in_words(message)}"


# --- flags


def _doubled(finding: SanitizerFinding, words: SourceWords) -> str:
    if finding.pipes is None:
        return ""
    dialect = words.of(finding.location)
    if not dialect.flag:
        return ""
    wait = dialect.wait_flag(*finding.pipes, finding.event)
    return (
        f"{words.at(finding)} sets {words_of_flag(finding)} again before {finding.pipes[1]} has "
        f"waited for it; put {wait} between them, make {finding.pipes[0]} wait for "
        f"{finding.pipes[1]} first, or take another event"
    )


def _unmet(finding: SanitizerFinding, words: SourceWords) -> str:
    if finding.pipes is None:
        return ""
    dialect = words.of(finding.location)
    if not dialect.flag:
        return ""
    waits = f"{words.at(finding)} waits for ever: no {words_of_flag(finding)} is set before it"
    other = finding.other_event
    if other is not None:
        where = f"{other.where.file}:{other.where.line}"
        wait = dialect.wait_flag(*finding.pipes, other.event)
        return f"{waits}, but event {other.event} is, at {where}; if that one is meant, {wait}"
    raised = dialect.set_flag(*finding.pipes, finding.event)
    return f"{waits}; put {raised} before it, on every path"


def _leaked(finding: SanitizerFinding, words: SourceWords) -> str:
    if finding.pipes is None:
        return ""
    dialect = words.of(finding.location)
    if not dialect.flag:
        return ""
    wait = dialect.wait_flag(*finding.pipes, finding.event)
    return (
        f"{words.at(finding)} sets {words_of_flag(finding)}, which nothing waits for: it is still "
        f"set at the end and leaks into the next kernel; put {wait} behind it, or remove it"
    )


def _late(finding: SanitizerFinding, words: SourceWords) -> str:
    if finding.pipes is None:
        return ""
    dialect = words.of(finding.location)
    if not dialect.flag:
        return ""
    raised = dialect.set_flag(*finding.pipes, finding.event)
    return f"{words.at(finding)} stands before its {raised}; move it behind that"


def words_of_flag(finding: SanitizerFinding) -> str:
    """Return a flag by its pipes and its event."""
    assert finding.pipes is not None
    return f"flag {finding.pipes[0]} -> {finding.pipes[1]} {finding.event}"


_RACES = frozenset({"race-raw", "race-war", "race-waw"})
_SENTENCES: dict[str, Sentence] = {
    OVERWRITTEN: _overwritten,
    "unread": _unread,
    "out-of-bounds": _outside,
    "uninitialised": _uninitialised,
    "flag-unmet": _unmet,
    "flag-doubled": _doubled,
    "flag-leaked": _leaked,
    "flag-late": _late,
}
"""The kinds whose parts are more than a requirement of one call."""

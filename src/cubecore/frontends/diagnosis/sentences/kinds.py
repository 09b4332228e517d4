"""One sentence for each kind of finding, made from its parts in the words of the source."""

from collections.abc import Callable

from cubecore.frontends.diagnosis.arguments import receiver
from cubecore.frontends.diagnosis.sentences import bounds, flags, queues, values
from cubecore.frontends.diagnosis.sentences.races import declared_arrays, race
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.catalogue import instructions
from cubecore.machine.finding_kinds import KINDS, SYNCCHECK
from cubecore.machine.sanitize.findings import OVERWRITTEN, SanitizerFinding

Sentence = Callable[[SanitizerFinding, SourceWords], str]


def sentence(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the text of a finding: the call and its line, what is wrong, and the remedy."""
    special = _SENTENCES.get(finding.id)
    text = special(finding, words) if special is not None else ""
    return text or _requirement(finding, words)


def _overwritten(finding: SanitizerFinding, words: SourceWords) -> str:
    _, over, read = finding.accesses
    calls = [words.call(each.instruction, each.location) for each in finding.accesses]
    (low, high), (start, end) = finding.arrays
    shared = f"[{max(low, start)}, {min(high, end)})"
    declared = declared_arrays(finding.accesses[:2], words)
    which = f", {' and '.join(declared)}," if declared else ""
    return (
        f"{calls[1]} overwrites {words.array(over)} before {calls[2]} has read what {calls[0]} "
        f"wrote there: arrays at [{low}, {high}) and [{start}, {end}) of {read.memory}{which} "
        f"share {shared}; move or shorten one of them, no barrier helps"
    )


def _unread(finding: SanitizerFinding, words: SourceWords) -> str:
    lost, over = finding.accesses
    return (
        f"{words.call(over.instruction, over.location)} overwrites {words.array(over)}, which "
        f"{words.call(lost.instruction, lost.location)} wrote and nothing has read; read it "
        "first, or do not compute it"
    )


def _requirement(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return what the call requires; of what is no instruction, what the message says."""
    dialect, claim = words.of(finding.location), finding.claim
    if claim is None or claim.sentence:
        return _said(finding, words)
    name, _, operand = claim.subject.partition(".")
    if name != finding.instruction or name not in instructions():
        return _said(finding, words)
    written = words.operand(name, operand, finding.location)
    subject = f" {words.parameter(operand, finding.location)}" if operand else ""
    subject += f" ({written})" if written and written != operand else ""
    remedy = f"; {dialect.in_words(claim.remedy)}" if claim.remedy else ""
    need, got = dialect.in_words(claim.requirement), dialect.in_words(claim.value)
    return f"{words.at(finding)}:{subject} must {need}, got {got}{remedy}"


def _said(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the message behind the call that it is about."""
    where = finding.location
    message, name = finding.message, finding.instruction
    head = words.at(finding)
    called_by = where.call or name
    if message.startswith(f"{called_by}."):
        return f"{head}: {words.said(message.removeprefix(f'{called_by}.'), where)}"
    of_call = name in instructions() or name == where.call
    for begin in (f"{name}: ", f"{name} ") if of_call else ():
        if message.startswith(begin):
            message = message.removeprefix(begin)
            of = receiver(where)
            called = f"{of}.{head}" if of not in {"", "core"} else head
            joint = ": " if begin.endswith(": ") else " "
            kind = KINDS[finding.id]
            usual = f"; {kind.remedy}" if kind.check == SYNCCHECK and "; " not in message else ""
            return f"{called}{joint}{words.said(message + usual, where)}"
    if message.startswith(f"{name}."):
        return f"{head}: {words.said(message.removeprefix(f'{name}.'), where)}"
    begin = head if name in instructions() else line_of(where)
    return f"{begin}: {words.said(message, where)}"


_SENTENCES: dict[str, Sentence] = {
    "race-raw": race,
    "race-war": race,
    "race-waw": race,
    OVERWRITTEN: _overwritten,
    "unread": _unread,
    "out-of-bounds": bounds.outside,
    "misaligned": bounds.misaligned,
    "uninitialised": values.uninitialised,
    "flag-unmet": flags.unmet,
    "flag-doubled": flags.doubled,
    "flag-leaked": flags.leaked,
    "flag-late": flags.late,
    "deadlock": flags.deadlock,
    "queue-empty": queues.empty,
    "queue-full": queues.full,
    "queue-order": queues.other_queue,
    "tensor-freed": queues.other_queue,
}
"""The kinds whose parts are more than a requirement of one call."""

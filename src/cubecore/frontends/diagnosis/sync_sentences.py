"""Sentences of flags and queues: the call, and where its other half belongs."""

from cubecore.frontends.diagnosis.arguments import argument, receiver
from cubecore.frontends.diagnosis.declarations import array_name, lines_with, queue_of, tensor_of
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.machine.sanitizer.findings import SanitizerFinding


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
    waits = f"{words.at(finding)} waits for ever: no {_flag(finding)} is set before it"
    return f"{waits}; put {raised} before it, on every path"


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
    flag, line = (*finding.pipes, finding.event), line_of(finding.location)
    sets, waits = 0, 0
    for template, _, where in core.issues:
        if isinstance(template, (SetFlag, WaitFlag)):
            if (template.src, template.dst, template.event_id) != flag:
                continue
            waits += isinstance(template, WaitFlag)
            sets += isinstance(template, SetFlag) and line_of(where) == line
    return sets > 1 and waits > 0


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


# --- queues


def empty(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of DeQue of a queue that holds no tensor."""
    where = finding.location
    queue = receiver(where)
    if not queue:
        return ""
    call = f"{queue}.{words.at(finding)}"
    taken = tensor_of(where.file, queue, "AllocTensor")
    if lines_with(where.file, rf"\b{queue}\.EnQue\b"):
        return (
            f"{call} finds no tensor in {queue}: DeQue has run more often than EnQue; "
            f"call {queue}.EnQue once before each DeQue"
        )
    name = "its tensor" if taken is None else taken.name
    gave = "" if taken is None else f", which {queue}.AllocTensor gave at {where.file}:{taken.line}"
    return (
        f"{call} finds no tensor in {queue}, which no EnQue fills; put {queue}.EnQue({name}) "
        f"behind the call that writes {name}{gave}"
    )


def full(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of AllocTensor of a queue without a free buffer, or of one EnQue more."""
    where = finding.location
    queue = receiver(where)
    if not queue or finding.instruction != "AllocTensor":
        return ""
    call = f"{queue}.{words.at(finding)} finds no free buffer in {queue}"
    filled = lines_with(where.file, rf"\b{queue}\.EnQue\b")
    if filled and not lines_with(where.file, rf"\b{queue}\.DeQue\b"):
        held = f"what EnQue put there at {where.file}:{filled[0]} is never taken out"
        return f"{call}: {held}; use {queue}.DeQue here, or where that tensor is needed"
    if not lines_with(where.file, rf"\b{queue}\.FreeTensor\b"):
        taken = tensor_of(where.file, queue, "DeQue") or tensor_of(where.file, queue, "AllocTensor")
        if taken is not None:
            got = f"{taken.name}, which {queue}.{taken.call} gave at {where.file}:{taken.line}"
            free = f"{queue}.FreeTensor({taken.name})"
            return f"{call}: {got}, is never freed; put {free} behind the last call that reads it"
    begun = _buffers(where, queue)
    return (
        f"{call}: AllocTensor has run more often than FreeTensor; free each tensor before the "
        f"next AllocTensor, or give {queue} more buffers{begun}"
    )


def other_queue(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of EnQue or FreeTensor of a tensor that another queue gave."""
    where = finding.location
    queue, name = receiver(where), array_name(argument(where, 0))
    own = queue_of(where.file, name)
    call = finding.instruction
    if call not in {"EnQue", "FreeTensor"} or not queue or own in {"", queue}:
        return ""
    gave = f"{own}.AllocTensor" if call == "EnQue" else own
    return (
        f"{queue}.{words.at(finding)} takes {name}, which {gave} gave; call "
        f"{own}.{call}({name}) instead"
    )


def _buffers(where: Location, queue: str) -> str:
    """Return where a queue gets its buffers."""
    begun = lines_with(where.file, rf"\bInitBuffer\s*\(\s*{queue}\b")
    return f" (InitBuffer at {where.file}:{begun[0]})" if len(begun) == 1 else ""

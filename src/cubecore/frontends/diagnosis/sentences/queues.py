"""Sentences of queues: the call, and the one that the queue lacks."""

from cubecore.frontends.diagnosis.arguments import argument, receiver
from cubecore.frontends.diagnosis.declarations import array_name, lines_with, queue_of, tensor_of
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import SanitizerFinding


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

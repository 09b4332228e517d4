"""Sentences of bounds and addresses: the call, its array, and how far it leaves that."""

import re
from collections.abc import Sequence

from cubecore.frontends.diagnosis.arguments import source_lines
from cubecore.frontends.diagnosis.declarations import declared, global_start
from cubecore.frontends.diagnosis.dependence import key_of
from cubecore.frontends.diagnosis.sentences.outputs import SHOWN_RANGES
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding
from cubecore.units import plural

_ALIGNMENT = re.compile(r"start at a multiple of (?P<unit>\d+) B in \w+")


def outside(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of an access that leaves its array."""
    if finding.limits is None or not finding.accesses:
        return ""
    access, (low, high) = finding.accesses[0], finding.limits
    if access.memory in words.arrays:  # copies of whole blocks may pass its end by less than one
        high = len(words.arrays[access.memory])
    verb = "reads" if access.how == "read" else "writes"
    beyond = (
        f"{access.end - high} B past its end"
        if access.end > high
        else f"{low - access.start} B before its beginning"
    )
    if access.memory not in words.arrays:
        name = words.operand(access.instruction, access.operand, access.location) or "an array"
        touched = f"bytes [{access.start - low}, {access.end - low}) of {name}"
        has = f"which has {high - low} B ({access.memory}[{low}, {high}))"
        remedy = _of_local(finding, words)
        return f"{words.at(finding)} {verb} {touched}, {has}: {beyond}; {remedy}"
    sentence = f"{words.at(finding)} {verb} {words.array(access)}, which has {high - low} B"
    if gaps := _gaps(access, words, range(high)):
        return f"{sentence}: {beyond}; {gaps}"
    if access.start >= high and (started := _started_past(finding, words)):
        return f"{sentence}: {started}"
    remedy = _last_passes(access, range(high), words) or _of_global(finding, words)
    return f"{sentence}: {beyond}; {remedy}"


def _gaps(access: FindingAccess, words: SourceWords, array: range) -> str:
    """Return which strides of a call make it leave an array that is large enough without gaps.

    Of an access that begins inside of the array the strides may be those of a matrix's rows.
    """
    core, base = words.issued.get(access.core), words.arrays.get(access.memory, range(0)).start
    if core is None or access.start != array.start:
        return ""
    # Of a call in a loop the finding is about one pass: the one whose access begins where it does.
    for number in core.numbers(key_of(access.instruction, access.location)):
        touch, dense = core.operand(number, access.operand), core.dense(number, access.operand)
        if touch is None or touch.start - base != access.start:
            continue
        span = touch.end - touch.start
        if dense < span and dense <= len(array):
            return f"its strides spread {dense} B over {span} B: make them smaller"
    return ""


def _last_passes(access: FindingAccess, array: range, words: SourceWords) -> str:
    """Return that only the last passes of a call in a loop leave an array, and the remedy."""
    core, where = words.issued.get(access.core), access.location
    numbers = () if core is None else core.numbers(key_of(access.instruction, where))
    if core is None or len(numbers) < 2 or where.call in words.of(where).matmul_calls:
        return ""
    is_global = access.memory in words.arrays
    first = words.arrays[access.memory].start if is_global else 0
    touches = (core.operand(number, access.operand) for number in numbers)
    spans = [(touch.start - first, touch.end - first) for touch in touches if touch is not None]
    leaves = [low < array.start or high > array.stop for low, high in spans]
    # Each turn of a loop around it ends with the passes that leave it. A call that leaves it in
    # between, or always, is in no loop that runs on for too long.
    ends = (n for n in range(1, len(leaves)) if leaves[n - 1] > leaves[n])
    passes = next(ends, len(leaves))
    turn = leaves[:passes]
    if all(turn) or not any(turn) or leaves != turn * (len(leaves) // passes):
        return ""
    sentence = f"the loop's pass {1 + turn.index(True)} of {passes} is the first that"
    if spans[turn.index(True)][0] < array.stop:
        return f"{sentence} leaves it: take fewer elements there"
    sentence = f"{sentence} starts there: end the loop earlier"
    if is_global:
        return sentence
    larger = _larger(access, max(end for _, end in spans) - array.start, words)
    return f"{sentence}, or {larger or 'make it larger'}"


def _larger(access: FindingAccess, size: int, words: SourceWords) -> str:
    """Return that a local array be made so large, and where, as far as one line gives its size."""
    file = access.location.file
    by = declared(file, words.operand(access.instruction, access.operand, access.location))
    return f"make it {size} B ({by.by} at {file}:{by.line})" if by else ""


def _of_local(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the remedy for a local array: the count, if a call leaves several; else its size."""
    assert finding.limits is not None
    access, (low, high) = finding.accesses[0], finding.limits
    held = range(low, high)
    if remedy := _gaps(access, words, held) or _last_passes(access, held, words):
        return remedy
    same_call = {
        each.limits: words.operand(each.instruction, of.operand, of.location)
        for each in words.findings
        if each.id == finding.id and each.location == finding.location
        for of in each.accesses[:1]
    }
    if len(same_call) > 1:
        *others, last = (name or "an array" for name in same_call.values())
        short = f"{', '.join(others)} and {last}"
        return f"take fewer elements there, {short} are too short for so many"
    room = _room(access, low, words)
    if room is not None and access.end - low > room:
        return f"take fewer elements there: {access.memory} has {room} B from its first byte on"
    larger = _larger(access, access.end - low, words) if access.end > high else ""
    if not larger:
        return "take fewer elements there, or make it larger"
    return f"{larger}, or take fewer elements there"


def _room(access: FindingAccess, start: int, words: SourceWords) -> int | None:
    """Return how many bytes of its memory an array that starts there can have at most.

    None of a table of the kernel's file, which lies in global memory.
    """
    memory = next((mem for mem in Mem if mem.label == access.memory), None)
    return None if memory is None else memory_bytes(words.chip, memory)[1] - start


def alignment(finding: SanitizerFinding) -> int | None:
    """Return the bytes that an address must be a multiple of; None of another requirement."""
    need = None if finding.claim is None else _ALIGNMENT.fullmatch(finding.claim.requirement)
    return None if need is None else int(need["unit"])


def misaligned(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of an address off its alignment, and the nearest ones that are on it."""
    claim, unit = finding.claim, alignment(finding)
    if claim is None or unit is None:
        return ""
    got = int(claim.value)
    operand = claim.subject.rpartition(".")[2]
    written = words.operand(finding.instruction, operand, finding.location)
    subject = f"{operand} ({written})" if written and written != operand else operand
    past = got % unit
    return (
        f"{words.at(finding)}: {subject} must {claim.requirement}, got {got}; start it {past} B "
        f"earlier, at {got - past}, or {unit - past} B later, at {got - past + unit}"
    )


def _of_global(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the remedy for an array in global memory."""
    if finding.location.call in words.of(finding.location).matmul_calls:
        return (
            "give a smaller block at an edge its rows and columns by SetTail, or start the block "
            "earlier in SetTensorA, SetTensorB or its GlobalTensor"
        )
    return "take fewer elements there, or start elsewhere"


def _started_past(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return which blocks begin at or past the end of an array, and the remedy; else nothing."""
    access = finding.accesses[0]
    array = words.arrays[access.memory]
    key = key_of(access.instruction, access.location)
    starts = dict[int, int]()
    for name in words.issued.names:
        core, blocks = words.issued.get(name), words.blocks.get(name, range(0))
        numbers = () if core is None else core.numbers(key)
        if core is None or len(blocks) != 1 or not numbers:
            continue
        touch = core.operand(numbers[0], access.operand)
        if touch is not None:
            starts[blocks[0]] = touch.start - array.start
    past = sorted(block for block, start in starts.items() if start >= len(array))
    if not past:
        return ""
    verb = "starts" if len(past) == 1 else "start"
    sentence = f"{_listed('block', [str(block) for block in past])} {verb} at or past its end"
    first = min(starts.values())
    if first > 0:
        begun = _begun(access, words)
        return (
            f"{sentence}, and no block at byte 0, the first at {first}; start each earlier{begun}"
        )
    inside = len(starts) - len(past)
    return f"{sentence}; launch {plural(inside, 'block')}, or give each block a smaller share"


def _begun(access: FindingAccess, words: SourceWords) -> str:
    """Return where the source says at which byte of an array an access begins."""
    name = words.operand(access.instruction, access.operand, access.location)
    line = global_start(access.location.file, name)
    places = [f"{name} in this call"] if {"[", "+"} & set(name) else []
    if line and (not places or "+" in source_lines(access.location.file)[line - 1]):
        places.append(f"SetGlobalBuffer at {access.location.file}:{line}")
    return f": change {' or '.join(places)}" if places else ""


def _listed(noun: str, members: Sequence[str]) -> str:
    """Return ``block 3``, or ``blocks 2 and 3``."""
    if len(members) == 1:
        return f"{noun} {members[0]}"
    if len(members) > SHOWN_RANGES:
        return f"{noun}s {members[0]} to {members[-1]}"
    return f"{noun}s {', '.join(members[:-1])} and {members[-1]}"

"""Findings of a launch, told in the words of its source, causes before what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cubecore.frontends.diagnosis.causes import END, with_causes
from cubecore.frontends.diagnosis.dependence import nearest_store
from cubecore.frontends.diagnosis.sentences import sentence, unwritten_text
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.program.trace import InstructionTrace
from cubecore.machine.sanitizer.findings import SanitizerFinding


def diagnosed(
    findings: Iterable[SanitizerFinding],
    words: SourceWords,
    traces: Mapping[str, InstructionTrace],
    arrays: Mapping[str, range],
) -> tuple[SanitizerFinding, ...]:
    """Return findings with their texts, their blocks and their causes.

    `traces` are what cores issued, by their names, as far as that was recorded; `arrays` lie in
    global memory.
    """
    caused = with_causes(tuple(findings), traces, arrays)
    told: dict[int, SanitizerFinding] = {}
    for finding in caused:
        following = [each for each in caused if each.cause is finding]
        text, block = sentence(finding, words, following), words.blocks.get(finding.core, "")
        claim, limits = finding.claim, finding.limits
        if finding.instruction == END and claim and limits and claim.subject in arrays:
            array = arrays[claim.subject]
            store = nearest_store(traces.values(), array, array.start + limits[0])
            text = unwritten_text(claim, store, words)
        told[id(finding)] = replace(finding, text=text, block=block)
    return tuple(
        one if one.cause is None else replace(one, cause=told[id(one.cause)])
        for one in told.values()
    )

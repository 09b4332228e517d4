"""Findings of a launch, told in the words of its source, causes before what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cubecore.frontends.diagnosis.causes import with_causes
from cubecore.frontends.diagnosis.sentences import sentence
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
    told = [
        replace(
            finding,
            text=sentence(finding, words),
            block=words.blocks.get(finding.core, ""),
        )
        for finding in findings
    ]
    return with_causes(told, traces, arrays)

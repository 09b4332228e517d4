"""Findings of a launch, told in the words of its source, causes before what follows from them."""

from dataclasses import replace

from cubecore.frontends.diagnosis.causes import with_causes
from cubecore.frontends.diagnosis.sentences.kinds import sentence
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.machine.sanitize.findings import SanitizerFinding


def diagnosed(words: SourceWords) -> tuple[SanitizerFinding, ...]:
    """Return the findings of a launch with their texts, their blocks and their causes."""
    sentences = [
        replace(finding, text=sentence(finding, words), block=words.blocks_of(finding.core))
        for finding in words.findings
    ]
    return with_causes(sentences, words)

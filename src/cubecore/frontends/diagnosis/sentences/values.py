"""Sentences of values: the call, its array, and which call fell short."""

import re
from dataclasses import replace

from cubecore.frontends.diagnosis.arguments import receiver
from cubecore.frontends.diagnosis.sentences.outputs import output
from cubecore.frontends.diagnosis.sentences.sources import source_of
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.machine.sanitize.findings import SanitizerFinding

_SCALAR = re.compile(r"the scalar \w+ must be initialised in (?P<memory>\w+), got (?P<address>\d+)")


def uninitialised(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a read of bytes that nothing has written, or of such an output."""
    claim = finding.claim
    if claim is None:
        return _scalar(finding)
    if not finding.accesses:
        return output(finding, words)
    access = finding.accesses[0]
    if finding.elements is None:
        read = f"{words.at(finding)} reads {words.array(access)} before it is initialised"
        return f"{read}: {claim.value}; load or fill it first"
    kind = instructions()[finding.instruction]
    remedy = "load or fill it first"
    if access.memory == Mem.L0C.label and hasattr(kind, "c_matrix_init_val"):
        remedy = f"{words.of(finding.location).start_zero} to start from 0, or load it first"
    missing, all_of_it = finding.elements
    core = words.issued.get(finding.core)
    source = None if core is None else source_of(core, access)
    whole, counted = access, f"{all_of_it - missing} of {all_of_it} elements are written"
    if source is not None:
        whole = replace(access, start=source.read.start, end=source.read.end)
        remedy = source.remedy(words, remedy)
        counted = source.told(words, counted)
        if spread := source.spread(all_of_it):
            call = words.short(finding.instruction, finding.location)
            counted += f"; the strides of {call} spread {all_of_it} elements over {spread} B"
    verb = "adds to" if words.updates(access) else "reads"
    read = f"{words.at(finding)} {verb} {words.array(whole)} before it is initialised"
    return f"{read}: {counted}; {remedy}"


def _scalar(finding: SanitizerFinding) -> str:
    """Return the sentence of a value of memory that the scalar unit reads before it is written."""
    read = _SCALAR.fullmatch(finding.message)
    if read is None:
        return ""
    where, of = finding.location, receiver(finding.location)
    call = f"{of}.{where.call}" if of else where.call or "the scalar unit"
    spot = f"{read['memory']}[{read['address']}]"
    return (
        f"{call} at {line_of(where)} reads {spot} before it is initialised; load or fill it first"
    )

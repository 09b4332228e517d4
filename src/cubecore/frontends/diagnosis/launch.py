"""Findings of a launch for its front end: in the words of its source, causes before the rest.

The rest of the package is loaded for a launch that has findings alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.machine.sanitize.findings import SanitizerFinding

_PART = " AIC"


def told(
    findings: Sequence[SanitizerFinding],
    chip: Chip,
    language: str,
    blocks: Mapping[CoreId, range],
    arrays: Mapping[str, range],
    recorded: Mapping[CoreId, InstructionTrace],
) -> tuple[SanitizerFinding, ...]:
    """Return findings with their texts, their blocks and their causes.

    Parameters
    ----------
    findings : sequence of SanitizerFinding
        The findings of one launch.
    chip : Chip
        The chip that it ran on: whether a core has an AIC and AIVs, and how large memories are.
    language : str
        cpp, c, python or tik.
    blocks : mapping
        The blocks that each core runs in turns.
    arrays : mapping
        The bytes of global memory that each array takes.
    recorded : mapping
        What cores have issued, as far as it was recorded.
    """
    if not findings:
        return ()
    from cubecore.frontends.diagnosis.dependence import IssuedCores
    from cubecore.frontends.diagnosis.diagnose import diagnosed
    from cubecore.frontends.diagnosis.dialects import DIALECTS
    from cubecore.frontends.diagnosis.source_words import SourceWords

    split = chip.mix_aiv_per_aic > 0
    if not split:
        findings = [_of_whole_core(finding) for finding in findings]
    issued = IssuedCores({_name(core, split): trace for core, trace in recorded.items()})
    names = {_name(core, split): of_core for core, of_core in blocks.items()}
    words = SourceWords(DIALECTS[language], chip, issued, names, arrays, tuple(findings))
    return diagnosed(words)


def _name(core: CoreId, split: bool) -> str:
    """Return the name of a core, without a part where cores have none."""
    return str(core) if split else str(core).removesuffix(_PART)


def _of_whole_core(finding: SanitizerFinding) -> SanitizerFinding:
    """Return a finding of a core that has no parts."""
    accesses = tuple(
        replace(access, core=access.core.removesuffix(_PART)) for access in finding.accesses
    )
    return replace(finding, core=finding.core.removesuffix(_PART), accesses=accesses)

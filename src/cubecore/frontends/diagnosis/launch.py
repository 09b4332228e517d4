"""Findings of a launch for its front end: in the words of its source, causes before the rest.

The rest of the package is loaded for a launch that has findings alone.
"""

from collections.abc import Mapping, Sequence

from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.machine.sanitizer.findings import SanitizerFinding

_SHOWN_BLOCKS = 3
"""Blocks of a core that a finding lists."""


def told(
    findings: Sequence[SanitizerFinding],
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
    from cubecore.frontends.diagnosis.diagnose import diagnosed
    from cubecore.frontends.diagnosis.dialects import DIALECTS
    from cubecore.frontends.diagnosis.source_words import SourceWords

    names = {str(core): _block_names(of_core) for core, of_core in blocks.items()}
    words = SourceWords(DIALECTS[language], names, frozenset(arrays))
    traces = {str(core): trace for core, trace in recorded.items()}
    return diagnosed(findings, words, traces, arrays)


def _block_names(blocks: range) -> str:
    """Return the blocks that a core takes in turns."""
    if len(blocks) == 1:
        return f"block {blocks[0]}"
    shown = ", ".join(map(str, blocks[:_SHOWN_BLOCKS]))
    return f"one of blocks {shown}{', ...' if len(blocks) > _SHOWN_BLOCKS else ''}"

"""Rules on rows in global memory: where they start."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import with_nodes
from cubecore.advice.kernel_rules.changes.scaled import pitch_of, with_fields, with_pitch
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.chips.costs import LINE_BYTES
from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.tree import Issue, Node
from cubecore.units import align_up

_LEAST_BUSY = 20


@rule(
    "unaligned-rows",
    counts="bytes from the start of a row in global memory to the next one's",
    threshold="no multiple of 256 B, in loads of several rows",
    source="gm_to_l1_misaligned_block_cycles of the chip (`cubecore chips`)",
    remedy="Pad the rows of the tensor in global memory to a multiple of 256 B.",
)
def unaligned_rows(case: KernelCase) -> Iterator[Cause]:
    """Load rows that are padded to whole lines."""
    padded: dict[int, Instruction] = {}
    hottest, most, pitch = None, 0, 0
    for leaf in case.all_leaves:
        template, apart = leaf.issue.template, _pitch(case, leaf)
        if template.pipe is not Pipe.MTE2 or not apart % LINE_BYTES:
            continue
        wider = _padded(template, _rounded(apart) - apart)
        if template_violations(wider, case.chip):
            continue
        padded[id(leaf.issue)] = wider
        busy = case.busy(leaf.location, Pipe.MTE2)
        if busy > most:
            hottest, most, pitch = leaf, busy, apart
    if hottest is None or most * _LEAST_BUSY < case.timeline.cycles:
        return

    def change(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Issue) or id(node) not in padded:
            return None
        return [replace(node, template=padded[id(node)])]

    text = (
        f"rows are {pitch:,} B apart, no multiple of {LINE_BYTES}: most of them start inside of a "
        "line and take one more"
    )
    better = with_nodes(case.launch, change)
    yield Cause(hottest.location, text, better, f"rows {_rounded(pitch):,} B apart")


def _rounded(pitch: int) -> int:
    whole: int = align_up(pitch, LINE_BYTES)
    return whole


def _pitch(case: KernelCase, leaf: Leaf) -> int:
    """Return the bytes between the starts of a load's rows in global memory; 0 of a single row."""
    template, traffic = leaf.issue.template, case.traffic(leaf)
    if isinstance(template, CopyGmToCbufMultiNd2Nz):
        size: int = template.dtype.bytes_of(template.src_d_value)
        return size if template.n_value > 1 else 0
    apart = pitch_of(template, "src")
    if apart is None or traffic is None or traffic.size_bytes <= traffic.row_bytes:
        return 0
    return apart


def _padded(template: Instruction, more: int) -> Instruction:
    """Return a load whose rows are so many bytes farther apart."""
    if isinstance(template, CopyGmToCbufMultiNd2Nz):
        elements = template.src_d_value + more * 8 // template.dtype.bits
        return with_fields(template, {"src_d_value": elements})
    return with_pitch(template, "src", (pitch_of(template, "src") or 0) + more) or template

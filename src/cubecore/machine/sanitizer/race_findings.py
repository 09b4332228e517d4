"""The words of a race, and of arrays that share bytes: the accesses, and a sentence about them."""

from dataclasses import replace

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitizer.findings import FindingAccess, SanitizerFinding
from cubecore.machine.sanitizer.happens_before import PIPES
from cubecore.machine.sanitizer.shadow_memory import Clash, MemoryAccess

HOW = {"raw": ("write", "read"), "war": ("read", "write"), "waw": ("write", "write")}
"""The earlier and the later access of each hazard."""


def finding_access(
    gm: GlobalMemory, clash: Clash, touch: MemoryAccess, how: str, at: tuple[str, str]
) -> FindingAccess:
    """Return one access of a finding, of a tensor where global memory has one there."""
    memory, low, high = touch.mem.label, clash.low, clash.high
    if touch.mem is Mem.GM:
        tensor = gm.at(low)
        if tensor is not None:
            memory, low, high = tensor.name, low - tensor.address, high - tensor.address
    return FindingAccess(
        how=how,
        instruction=touch.template.name,
        operand=touch.operand,
        pipe=at[0],
        memory=memory,
        start=low,
        end=high,
        core=at[1],
        location=touch.where,
    )


_PAST = {"read": "read them", "write": "wrote them"}


def race_sentence(earlier: FindingAccess, later: FindingAccess, *, same_core: bool) -> str:
    """Return what a race should be, is, and the remedy."""
    subject = (
        f"{later.instruction}.{later.operand} must {later.how} bytes [{later.start}, {later.end}) "
        f"of {later.memory} after {earlier.instruction}.{earlier.operand}"
    )
    past = _PAST[earlier.how]
    if not same_core:
        return (
            f"{subject} of {earlier.core} {past}, got no order between {earlier.core} "
            f"({earlier.pipe}, {earlier.location}) and {later.core} ({later.pipe}, "
            f"{later.location}); signal {later.core} after the {earlier.how} and wait there"
        )
    if earlier.pipe == later.pipe:
        return (
            f"{subject} {past}, got both on {later.pipe} ({earlier.location} and "
            f"{later.location}) with no pipe_barrier({later.pipe}) between them; put one there"
        )
    pair = f"{earlier.pipe}, {later.pipe}"
    return (
        f"{subject} {past}, got no order between {earlier.pipe} ({earlier.location}) and "
        f"{later.pipe} ({later.location}); set_flag({pair}) after the {earlier.how} and "
        f"wait_flag({pair}) before the {later.how}"
    )


def overwritten_finding(gm: GlobalMemory, clash: Clash, core: str) -> tuple[SanitizerFinding, str]:
    """Return the finding about an array that another one overwrites, and what tells it apart."""
    assert clash.reader is not None
    pipe, reader = clash.reader
    accesses = lost, over, read = (
        finding_access(gm, clash, clash.earlier, "write", (PIPES[clash.earlier_pipe], core)),
        finding_access(gm, clash, clash.later, "write", (PIPES[clash.later_pipe], core)),
        finding_access(gm, clash, reader, "read", (PIPES[pipe], core)),
    )
    told = [f"{one.instruction}.{one.operand} ({one.pipe}, {one.location})" for one in accesses]
    shared = f"bytes [{over.start}, {over.end}) of {over.memory}"
    (low, high), (start, end) = clash.arrays
    got = (
        f"arrays in bytes [{low}, {high}) and [{start}, {end}) that share "
        f"[{max(low, start)}, {min(high, end)})"
    )
    message = (
        f"{told[1]} must not overwrite {shared} before {told[2]} has read the result of {told[0]} "
        f"there, got {got}; move one of them, as no barrier mends it"
    )
    about = f"{over.operand} {lost.instruction} {lost.location} {read.instruction} {read.location}"
    finding = SanitizerFinding("array-overwritten", message, over.instruction, over.location, core)
    return replace(finding, accesses=accesses, arrays=clash.arrays), about

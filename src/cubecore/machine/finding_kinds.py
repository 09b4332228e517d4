"""Kinds of findings by their stable ids: the check of each, its meaning and its remedy."""

from dataclasses import dataclass

MEMCHECK = "memcheck"
INITCHECK = "initcheck"
RACECHECK = "racecheck"
SYNCCHECK = "synccheck"
USECHECK = "usecheck"
CHECKS = (MEMCHECK, INITCHECK, RACECHECK, SYNCCHECK, USECHECK)
"""The checks; each can be switched on or off."""
USUAL = frozenset(CHECKS) - {USECHECK}
"""The default checks: a kernel that computes something for nothing is right."""
WATCHES = frozenset({RACECHECK, SYNCCHECK, USECHECK})
"""The checks that follow who touches what in which order."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding: its check, its meaning, how to fix it, and msSanitizer's words.

    A `note` is shown and counted by itself, and fails no run: rules allow what it names, which is
    seldom meant.
    """

    check: str
    text: str
    remedy: str
    vendor: str = ""
    note: bool = False


KINDS: dict[str, Kind] = {
    "out-of-bounds": Kind(
        MEMCHECK,
        "an access leaves its memory, its tensor or its array",
        "compare the bytes that the finding prints with the tensor's size; a"
        " tail block often needs a smaller count",
        "illegal read, illegal write",
    ),
    "misaligned": Kind(
        MEMCHECK,
        "an address off the alignment of its memory",
        "start at a multiple of the alignment that the finding names, or use the "
        "instruction's form for unaligned data",
        "misaligned access",
    ),
    "capacity": Kind(
        MEMCHECK,
        "an access to bytes that the system reserves",
        "keep arrays and tiles below the size that `cubecore chips` prints for the buffer",
    ),
    "overlap": Kind(
        MEMCHECK,
        "operands overlap where the instruction forbids it",
        "give the result memory of its own, or make it start where the instruction permits",
    ),
    "parameter": Kind(
        MEMCHECK,
        "a parameter, type or register value that the instruction does not take",
        "use a value within the range that the finding and the instruction's page give",
    ),
    "stale-mask": Kind(
        MEMCHECK,
        "a vector instruction under the mask left by an earlier count (C API general notes)",
        "set the mask (set_vector_mask) before the instruction, or use the form with a count",
    ),
    "stale-count": Kind(
        MEMCHECK,
        "a vector instruction does fewer repeats than it asks for, because the element count of an "
        "earlier call is still set",
        "reset the counter mode, or set the count anew before the instruction",
    ),
    "checked-access": Kind(
        MEMCHECK,
        "an access to UB bytes that CheckLocalMemoryIA guards",
        "move the access, or the range; the chip stops there with an exception",
    ),
    "mask-merge": Kind(
        MEMCHECK,
        "a register instruction is asked to keep lanes of its result, which it cannot",
        "use MaskMergeMode::ZEROING, and Select to take lanes of two registers",
    ),
    "squeeze-order": Kind(
        MEMCHECK,
        "each Squeeze that counts into the register AR must be followed by the store that uses the "
        "count, and AR cleared before the first",
        "call ClearSpr before the first squeeze, and one StoreUnAlign behind each",
    ),
    "scatter-duplicate": Kind(
        MEMCHECK,
        "a scatter of registers has one index in two active lanes: either may be stored",
        "give each active lane an index of its own, or mask the others out",
    ),
    "unalign-protocol": Kind(
        MEMCHECK,
        "an unaligned stream of registers out of order: an unfilled, shared or full buffer",
        "call LoadUnAlignPre before the first load, StoreUnAlignPost behind the last store, and"
        " keep one buffer for each stream, of four at most",
    ),
    "cast-form": Kind(
        MEMCHECK,
        "a register conversion that does not exist for these types, layout or rounding",
        "use what the finding lists, or convert in two steps",
    ),
    "shift-amount": Kind(
        MEMCHECK,
        "lanes are shifted by less than 0 bits",
        "shift the other way by the positive amount",
    ),
    "mixed-allocation": Kind(
        MEMCHECK,
        "arrays and physical addresses in one memory, which may overlap",
        "use declared arrays or physical addresses in a memory, not both",
    ),
    "uninitialised": Kind(
        INITCHECK,
        "uninitialised bytes are used",
        "write the bytes first: a load that is too short, a missing fill of a tail, or a "
        "wait that is missing are the usual causes",
        "uninitialized read",
    ),
    "register-uninitialised": Kind(
        INITCHECK,
        "a register or a mask is read that no call of its vector function has written",
        "load it, fill it (Duplicate), or make the mask (CreateMask, UpdateMask) first; registers"
        " keep nothing from one vector function to the next",
    ),
    "lanes-stale": Kind(
        INITCHECK,
        "lanes of a register are used that no call of its vector function has written",
        "write the whole register before lanes are merged into it, or leave the others out by the"
        " mask",
    ),
    "array-overwritten": Kind(
        RACECHECK,
        "a result is overwritten through another array or tensor, which shares bytes with its own,"
        " before it is read",
        "move one of the two, or make it shorter; compare the bytes that the finding prints with "
        "the sizes that the kernel plans with. A barrier between the writes only hides the loss",
    ),
    "simt-race": Kind(
        RACECHECK,
        "two threads (SIMT) access the same bytes, one of them writes, and nothing orders the two",
        "put asc_syncthreads between the accesses of a block; between blocks use atomics, or"
        " asc_threadfence and an atomic flag",
    ),
    "simt-stale": Kind(
        RACECHECK,
        "a thread loads through its core's data cache what another core has written since",
        "load it by asc_ldcg or through a volatile pointer, or call asc_dcci_single first",
    ),
    "simt-barrier": Kind(
        SYNCCHECK,
        "a barrier of threads (asc_syncthreads) is not reached by all threads of a block: on a "
        "chip the others hang",
        "move it out of the branch or the loop, or let all threads take that",
    ),
    "simt-lane": Kind(
        MEMCHECK,
        "a warp function takes the value of a lane that is not active",
        "call it where all lanes are active, or take a lane that is",
    ),
    "simt-atomic-value": Kind(
        MEMCHECK,
        "the value that an atomic of half or bfloat16 returns is used: it is not the old value",
        "use a 32-bit type, or leave the returned value alone",
    ),
    "race-raw": Kind(
        RACECHECK,
        "a read may run before the write that it needs",
        "set a flag on the writing pipe after the write and wait for it on the reading "
        "pipe before the read; within one pipe use pipe_barrier",
        "Potential RAW hazard detected",
    ),
    "race-war": Kind(
        RACECHECK,
        "a write may run before an earlier read",
        "set a flag on the reading pipe after the read and wait for it on the writing "
        "pipe before the write, or use a second buffer",
        "Potential WAR hazard detected",
    ),
    "race-waw": Kind(
        RACECHECK,
        "two writes may run in either order",
        "order the two writes by a flag between their pipes, or by pipe_barrier within one",
        "Potential WAW hazard detected",
    ),
    "vf-race": Kind(
        RACECHECK,
        "a store and another access of UB in one vector function share a byte, without an order",
        "put LocalMemBar (asc_mem_bar) of the two classes that the finding names between them; a"
        " register dependence orders them, too",
    ),
    "vf-store-order": Kind(
        RACECHECK,
        "two stores of different registers in one vector function share a byte, without an order",
        "put LocalMemBar of VEC_STORE and VEC_STORE (asc_mem_bar(VST_VST)) between them",
        note=True,
    ),
    "stale-cache": Kind(
        RACECHECK,
        "a line of 64 B of the scalar unit's data cache that differs from global memory: it is "
        "read although a copy or another core wrote there, a copy passes what the scalar unit "
        "stored, or a line that is written back takes bytes that others wrote with it",
        "issue dcci for the line between the two, behind a store and before a read, and keep "
        "what cores store by the scalar unit 64 B apart",
    ),
    "flag-unmet": Kind(
        SYNCCHECK,
        "a wait without a set_flag, or a unit flag that no Mmad sets: the pipe never goes on",
        "add the set_flag that the wait needs, with the same two pipes and the same "
        "event, on every path",
    ),
    "flag-doubled": Kind(
        SYNCCHECK,
        "a flag is set again before it was waited for, or a tile of L0C is shared again "
        "before fixpipe has cleared its unit flag",
        "wait for the flag once for each set_flag, or use another event for the second buffer",
    ),
    "flag-leaked": Kind(
        SYNCCHECK,
        "a flag, a unit flag or a cross-core counter is still set when the kernel ends, and the "
        "next kernel finds it set",
        "wait for the flag once more at the end of the kernel",
        "Unpaired set_flag instructions detected",
    ),
    "flag-late": Kind(
        SYNCCHECK,
        "a wait precedes its set_flag in program order",
        "move the set_flag before its wait in program order",
    ),
    "mutex-unpaired": Kind(
        SYNCCHECK,
        "a mutex is locked twice in a row, unlocked without a lock, or never unlocked",
        "unlock the mutex, on the pipe that locked it, before it is locked again",
    ),
    "flag-pair": Kind(
        SYNCCHECK,
        "a flag between two pipes that the AIC or AIV does not connect",
        "use two pipes of the same core, in the pairs that its documentation lists",
    ),
    "flag-parameter": Kind(
        SYNCCHECK,
        "an event, flag or pipe that does not exist",
        "use events 0 to 7 and pipes of this core",
    ),
    "flag-overflow": Kind(
        SYNCCHECK,
        "a counter between cores passes 15",
        "wait for the other core's signals before sending more than 15",
    ),
    "deadlock": Kind(
        SYNCCHECK,
        "waits form a cycle",
        "break the cycle that the finding lists: one of its waits must come after its set",
    ),
    "queue-empty": Kind(
        SYNCCHECK,
        "DeQue of a queue that holds no tensor",
        "call EnQue before DeQue, on the same queue and on every path",
    ),
    "queue-full": Kind(
        SYNCCHECK,
        "AllocTensor of a queue whose buffers are all in use, or more EnQue in a row than its "
        "depth",
        "free a tensor (FreeTensor) before the next AllocTensor, or initialise the queue "
        "with more buffers; call DeQue before the next EnQue, or declare the queue deeper",
    ),
    "queue-order": Kind(
        SYNCCHECK,
        "EnQue of a tensor that AllocTensor did not give, or that is in the queue already",
        "pass EnQue the tensor that AllocTensor of the same queue returned, once",
    ),
    "tensor-freed": Kind(
        SYNCCHECK,
        "FreeTensor of a tensor that is free, or another queue's",
        "free each tensor once, in the queue that allocated it",
    ),
    "events-used-up": Kind(
        SYNCCHECK,
        "more events between two pipes than the 8 there are",
        "release events or reuse them: two pipes have 8",
    ),
    "mode-left": Kind(
        SYNCCHECK,
        "an atomic or counter mode is still on at the end, for the next kernel",
        "reset the mode (set_atomic_none, or the mask's normal mode) before the kernel ends",
    ),
    "event-reserved": Kind(
        USECHECK,
        "an event that the vendor's libraries keep: 6 or 7",
        "use events 0 to 5 where the vendor's libraries are called in the same kernel",
    ),
    "vf-loop": Kind(
        MEMCHECK,
        "a loop of a vector function that the unit does not run by itself, but its scalar unit",
        "write for (uint16_t i = 0; i < n; ++i) without jumps in the body, four deep at most",
        note=True,
    ),
    "no-repeat": Kind(
        MEMCHECK,
        "a vector call of 0 repeats, which computes nothing",
        "pass 1 to 255 repeats; a uint8_t holds 256 as 0",
        note=True,
    ),
    "rows-overlap": Kind(
        MEMCHECK,
        "a row, a column or a repeat of a call writes into what an earlier one of it wrote",
        "make the stride of the result at least what a row, a column or a repeat writes",
        note=True,
    ),
    "atomic-type": Kind(
        MEMCHECK,
        "an atomic store of another element type than its copy's",
        "set the atomic mode for the type that the copy stores",
        note=True,
    ),
    "mask-width": Kind(
        MEMCHECK,
        "a mask that was made for lanes of one width governs lanes of another",
        "make the mask for the width of the lanes, or MaskPack, MaskUnPack it to that",
        note=True,
    ),
    "registers-spilled": Kind(
        MEMCHECK,
        "a vector function needs more values at a time than there are registers",
        "take fewer rows or columns at once, or load values anew where they are needed",
        note=True,
    ),
    "other-sign": Kind(
        MEMCHECK,
        "an array of signed integers for a typed pointer of unsigned ones, or the other way round:"
        " its bits are taken as they are",
        "pass an array of the pointer's type, or declare the parameter GM_ADDR",
        note=True,
    ),
    "unlisted-type": Kind(
        MEMCHECK,
        "an element type that the instruction's page does not list, which chips are seen to take",
        "use a type that the page lists, or check the result on the chip",
        note=True,
    ),
    "long-tensor": Kind(
        MEMCHECK,
        "a tensor of more bytes than the buffer that it is taken from, into the buffers behind it",
        "take at most what the buffer has: InitBuffer counts bytes, and Get elements",
        note=True,
    ),
    "call-order": Kind(
        MEMCHECK,
        "calls in another order than documented; chips tolerate it",
        "make the calls in the order of the page",
        note=True,
    ),
    "filling-read": Kind(
        USECHECK,
        "bytes that a copy filled in beyond its data are read for a result that is kept: lanes are"
        " taken together with them, what was computed of them is stored, or an Mmad reads a"
        " tile's padding",
        "leave the filling out by the count or the mask, load rows side by side, or give the "
        "padding a value of your own",
    ),
    "unread": Kind(
        USECHECK,
        "a result is overwritten before any byte of it is read",
        "remove the first write, or read its result before the next; swapped operands and"
        " swapped buffers show so",
    ),
}
"""Every kind by its stable id. The vendor's words are those of the msSanitizer user guide."""

FINDING_IDS: dict[str, str] = {name: kind.check for name, kind in KINDS.items()}
"""Stable ids, and the check that each belongs to."""

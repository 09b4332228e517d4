"""Records and numbers that Python and the process of C and C++ kernels exchange.

They are declared here alone: `toolchain/generated/wire_headers.py` writes the headers that the C++
side includes, and has an example of their text.
"""

import ctypes
from ctypes import c_char, c_double, c_int32, c_int64, c_uint32, c_uint64
from dataclasses import fields
from enum import IntEnum

from cubecore.isa.vector.simt.thread_work import ThreadWork

MAGIC = 0x43424543
"""Begins each message from the process."""
HOST_CODE = 2**32 - 1
"""Stands for host code where a core's number is."""
CAPACITY = 8192
"""Instructions that a core records before it must hand them over."""
MOST_OPERANDS = 12
"""Of an instruction: a vector function has four that it loads, four that it stores, four idle."""
MOST_ADDRESSES = CAPACITY * MOST_OPERANDS
MOST_READS = 4096
MOST_STEPS = 8
"""Instructions of one call."""
BOX_BYTES = 4096
"""The page of the report of a crash, before those of what is recorded."""


class Asks(IntEnum):
    """The kinds of messages from the process: questions of a core, or of host code, and ends."""

    ENDED = 0
    MISS = 1
    WHERE = 2
    PAUSE = 3
    ASK = 4
    LOAD = 5
    TEXT = 6
    DUMP = 7
    MATMUL = 8
    CONSTANT = 9
    HOST = 10
    DONE = 11
    VECTOR_FUNCTION = 12
    DUMP_REGISTER = 13
    SIMT_BEGINS = 14
    SIMT_ENDS = 15
    SIMT_SHARE = 16
    SIMT_MARKS = 17

    @classmethod
    def of_threads(cls) -> "tuple[Asks, ...]":
        """Return those about calls of threads."""
        return tuple(each for each in cls if each.name.startswith("SIMT_"))


class Tells(IntEnum):
    """The kinds of texts of a core; from NOTE on the sentence that a call brings with it."""

    FINDING = 0
    REFUSAL = 1
    PRINT = 2
    FLUSH = 4
    BUFFER = 5  # an instruction that may leave its buffer
    THROWN = 6
    ARRAY = 7  # a local array of the kernel's
    SIZE = 8  # a refusal of the size of a launch
    NOTE = 64


class SimtKinds(IntEnum):
    """The kinds of findings of threads."""

    OUT_OF_BOUNDS = 0
    MISALIGNED = 1
    UNINITIALISED = 2
    RACE = 3
    BLOCK_RACE = 4
    BARRIER = 5
    LANE = 6
    ATOMIC_VALUE = 7
    STALE = 8


class HostAsks(IntEnum):
    """The requests of host code: `cubecore/host/device.h` has the same, for any host compiler."""

    LAUNCH = 0
    ALLOCATE = 1
    WRITTEN = 2
    FREE = 3
    CHIP = 4
    KEY_OF_TILING = 5
    KERNEL_MODE = 6
    REFUSED = 7
    ANSWER = 8
    MATMUL_TILING = 9
    READ = 10
    ABSENT = 11
    GLUE = 12


class Commands(IntEnum):
    """The commands to the process."""

    ANSWER = 0
    ENTER = 1
    SYMBOL = 2
    PLACE = 3
    START = 4
    AHEAD = 5
    RESET = 6
    PAIRED = 7
    KERNELS = 8


class CallFlags(IntEnum):
    """Bits of a call: it waits for other cores, stands under the mask, sets it, does nothing."""

    WAITS = 1
    MASKED = 2
    COUNTED = 4
    SETS_MASK = 8
    DROPPED = 16


class Ends(IntEnum):
    """Ends of the process, in the place of a signal's number."""

    RAN_AHEAD = 1000
    TERMINATED = 1001
    CLOSED = 1002
    BY_POINTER = 1003


class Launch(ctypes.Structure):
    """The launch as a core sees it."""

    _fields_ = (
        ("gm_base", c_uint64),  # the host's address of global memory's address 0
        ("block", c_int64),  # index among the blocks of its kind
        ("blocks", c_int64),
        ("part", c_int64),  # which AIV of an AI Core; 0 for an AIC
        ("parts", c_int64),  # AIVs of an AI Core in a mix kernel, else 1
        ("is_cube", c_int64),
        ("tiling_key", c_uint64),
        ("workspace", c_uint64),
        *((f"{name}_bytes", c_uint64) for name in ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")),
        ("task", c_int64),  # what the launch told of its kind: 0 vector, 1 cube, 2 mix
        ("auto_sync", c_int64),  # whether dependent instructions are synchronised
        ("at_once", c_int64),  # blocks that run at the same time; the others take turns
        ("tiling", c_uint64),  # the host's address of tiling data
        ("tiling_bytes", c_uint64),
        ("ub_kept", c_uint64),  # behind UB's end, for what only mix launches need
        ("grid", c_uint64 * 3),  # blocks and threads of a kernel of threads
        ("threads", c_uint64 * 3),
        ("dynamic_bytes", c_uint64),  # of UB that the launch asks for
        ("counts", c_int64),  # whether threads count what they do, for their time
    )


class Step(ctypes.Structure):
    """An instruction of a call: Python fills it in when the call is new."""

    _fields_ = (
        ("kind", c_uint32),
        ("operands", c_uint32),
        ("weighed", c_uint32),  # operands, and what is addressed by a register that is set before
        ("pointers", c_int32 * MOST_OPERANDS),  # which pointer of the call; -1: address 0
        ("pipe", c_uint32),  # order.h's number
        # 1 sets a flag, 2 waits, 3 a barrier; the mask: 4 counts `event`, 5 by count, 6 not
        ("sync", c_uint32),
        ("far", c_uint32),  # writes global memory, or bytes of UB that are not known
        ("source", c_uint32),
        ("target", c_uint32),
        ("event", c_uint32),
        ("access", c_uint32 * MOST_OPERANDS),  # of UB: 1 reads, 2 writes, 0 neither
        ("global_access", c_uint32 * MOST_OPERANDS),  # of global memory, likewise
        ("memory", c_uint32 * MOST_OPERANDS),  # abi.h's number, 0 if it is not known
        ("low", c_int64 * MOST_OPERANDS),  # bytes, from the address on
        ("high", c_int64 * MOST_OPERANDS),
        ("stride", c_int64 * MOST_OPERANDS),  # from repeat to repeat
        ("span", c_int64 * MOST_OPERANDS),  # of a repeat
        ("width", c_uint32),  # lanes of a repeat, else 0
    )


class Read(ctypes.Structure):
    """A read of the scalar unit that a core has recorded."""

    _fields_ = (
        ("behind", c_uint32),  # instructions of these records
        ("where", c_uint32),
        ("type", c_uint64),  # the address of its text
        ("address", c_int64),
        ("bits", c_uint64),
    )


class SimtFinding(ctypes.Structure):
    """A finding of a thread: lines are offsets in the library of the user's code."""

    _fields_ = (
        ("address", c_int64),  # in UB, or in global memory
        ("number", c_int64),
        ("times", c_uint64),
        ("code", c_uint32),
        ("other", c_uint32),
        *(
            (name, c_uint32)
            for name in (
                *("kind", "bytes", "in_ub", "writes", "other_writes"),
                *("block", "thread", "other_block", "other_thread", "spare"),
            )
        ),
    )


class ThreadCounts(ctypes.Structure):
    """The work of a core's threads, as `ThreadWork` has it."""

    _fields_ = tuple((field.name, c_double) for field in fields(ThreadWork))


class Records(ctypes.Structure):
    """The records of the core that runs, in pages that Python sees."""

    _fields_ = (
        ("kinds", c_uint32 * CAPACITY),
        ("wheres", c_uint32 * CAPACITY),
        ("addresses", c_int64 * MOST_ADDRESSES),
        ("reads", Read * MOST_READS),
    )


class Head(ctypes.Structure):
    """The head of a message from the process, the last three of what its core has recorded."""

    _fields_ = tuple(
        (name, c_uint32)
        for name in ("magic", "size", "what", "core", "recorded", "addresses", "reads")
    )


class Box(ctypes.Structure):
    """The report of a crash, as the runtime writes it."""

    _fields_ = (
        ("signal", c_int32),
        ("core", c_uint32),
        ("address", c_uint64),
        ("stack", c_uint64),
        ("line", c_uint32),
        ("pipe", c_int32),  # its end says that this process has ended
        ("file", c_char * 1024),
        ("function", c_char * 256),
        ("said", c_char * 256),
    )

"""The records and callbacks of the C++ runtime, as ctypes knows them: the mirror of records.h."""

import ctypes
from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_uint32, c_uint64

from cubecore.lazy_dataclass import dataclass

_STEPS, _OPERANDS = 8, 8


class Where(ctypes.Structure):
    """A line, as `cubecore::Where`."""

    _fields_ = (("file", c_char_p), ("function", c_char_p), ("line", c_uint32))


class BridgeLaunch(ctypes.Structure):
    """The launch as a core sees it: the mirror of `cubecore::Launch`."""

    _fields_ = (
        ("gm_base", c_uint64),
        ("block", c_int64),
        ("blocks", c_int64),
        ("part", c_int64),
        ("parts", c_int64),
        ("is_cube", c_int64),
        ("tiling_key", c_uint64),
        ("workspace", c_uint64),
        *((name, c_uint64) for name in ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")),
        ("task", c_int64),
        ("auto_sync", c_int64),
        ("at_once", c_int64),
        ("tiling", c_uint64),
        ("tiling_bytes", c_uint64),
        ("ub_kept", c_uint64),
    )


class CoreState(ctypes.Structure):
    """A core's buffers, as the runtime's `Core`."""

    _fields_ = (
        ("number", c_uint32),
        ("count", c_uint32),
        ("addresses_used", c_uint32),
        ("stale", c_uint32),
        ("stale_note", c_uint32),
        ("kinds", c_uint64),
        ("wheres", c_uint64),
        ("addresses", c_uint64),
        ("launch", BridgeLaunch),
        ("last", Where),
        ("slots", c_uint64 * 16),
    )


class ProgramKernel(ctypes.Structure):
    """A kernel of a host program, as the runtime keeps it."""

    _fields_ = (
        ("name", c_char_p),
        ("kind", c_char_p),
        ("file", c_char_p),
        ("line", c_uint32),
        ("auto_sync", c_uint32),
    )


@dataclass(frozen=True, slots=True)
class RegisteredKernel:
    """A kernel of a host program, as its file says: name, kind, and where it is written."""

    name: str
    kind: str
    file: str
    line: int
    auto_sync: bool = True


class CallStep(ctypes.Structure):
    """An instruction of a call."""

    _fields_ = (
        ("kind", c_uint32),
        ("operands", c_uint32),
        ("from_", c_int32 * _OPERANDS),
        *((name, c_uint32) for name in ("pipe", "sync", "source", "target", "event")),
        ("access", c_uint32 * _OPERANDS),
        ("low", c_int64 * _OPERANDS),
        ("high", c_int64 * _OPERANDS),
        ("stride", c_int64 * _OPERANDS),
        ("span", c_int64 * _OPERANDS),
        ("width", c_uint32),
    )


class CallEntry(ctypes.Structure):
    """What a call issues."""

    _fields_ = (
        ("steps", c_uint32),
        ("flags", c_uint32),
        ("note", c_uint32),
        ("step", CallStep * _STEPS),
    )


OnMiss = PYFUNCTYPE(
    c_int, c_char_p, POINTER(c_uint64), c_uint32, c_uint32, POINTER(Where), POINTER(CallEntry)
)
OnWhere = PYFUNCTYPE(c_int, POINTER(Where), c_char_p, POINTER(c_uint64), c_uint32)
OnPause = PYFUNCTYPE(c_int, c_uint32)
OnAsk = PYFUNCTYPE(c_int, c_uint32, c_uint32, c_uint32, POINTER(c_int64))
OnLoad = PYFUNCTYPE(c_int, c_uint32, c_uint32, c_char_p, c_int64, c_uint32, POINTER(c_uint64))
OnText = PYFUNCTYPE(c_int, c_uint32, c_uint32, c_char_p, c_char_p, c_char_p, c_uint32)
OnDump = PYFUNCTYPE(
    c_int, c_uint32, c_uint32, c_char_p, c_int64, c_uint32, POINTER(c_uint32), c_uint32, c_uint32
)


OnMatmul = PYFUNCTYPE(
    c_int, c_uint32, c_uint32, ctypes.c_void_p, c_int64, c_uint32, POINTER(c_int64)
)
OnHost = PYFUNCTYPE(
    c_int, c_uint32, c_uint64, c_uint64, c_char_p, c_uint64, c_uint64, POINTER(c_uint64)
)


class Callbacks(ctypes.Structure):
    """What the runtime asks of Python."""

    _fields_ = (
        ("miss", OnMiss),
        ("where", OnWhere),
        ("pause", OnPause),
        ("ask", OnAsk),
        ("load", OnLoad),
        ("text", OnText),
        ("dump", OnDump),
        ("matmul", OnMatmul),
    )

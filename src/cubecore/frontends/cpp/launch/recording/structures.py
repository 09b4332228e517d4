"""The records of the C++ runtime, as ctypes knows them: the mirror of records.h."""

import ctypes
from ctypes import c_int32, c_int64, c_uint32, c_uint64

from cubecore.lazy_dataclass import dataclass

_OPERANDS = 8


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
        ("weighed", c_uint32),
        ("from_", c_int32 * _OPERANDS),
        *((name, c_uint32) for name in ("pipe", "sync", "far", "source", "target", "event")),
        ("access", c_uint32 * _OPERANDS),
        ("global_access", c_uint32 * _OPERANDS),
        ("memory", c_uint32 * _OPERANDS),
        ("low", c_int64 * _OPERANDS),
        ("high", c_int64 * _OPERANDS),
        ("stride", c_int64 * _OPERANDS),
        ("span", c_int64 * _OPERANDS),
        ("width", c_uint32),
    )

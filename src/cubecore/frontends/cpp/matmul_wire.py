"""A call of a Matmul object as headers pass it to Python, as `wire` has the records of others."""

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_uint64
from enum import IntEnum

from cubecore.tiling.model.tcubetiling import FIELDS

OPERANDS = ("a", "b", "bias", "scale", "c", "scale_a", "scale_b")
"""The tensors of a call, in the order of its addresses."""


class MatmulBits(IntEnum):
    """Bits of a call: what is to be done with its tiles."""

    COMPUTES = 1
    STORES = 2
    ANSWERS = 4
    SUMS_ON = 8
    IN_SEQUENCE = 16
    SHARED = 32  # one matmul for all clients
    EACH = 64  # an answer for each tile
    ALONE = 128  # a tile out of its order
    PART = 256  # of baseK columns of A alone
    OWN_A = 512  # moved by functions of the user's own
    OWN_B = 1024


class MatmulAsk(IntEnum):
    """The requests to the recorder."""

    RUN = 0  # a call on this AIC
    SEND = 1  # it is sent to the AIC
    AWAIT = 2  # an answer
    SERVE = 3  # the AIVs of the block
    FREE = 4  # what a core holds
    SCRATCH = 5  # memory
    GO_ON = 6  # behind a move of the user's own
    FACT = 7  # of such a move


class Tiling(c_int32 * len(FIELDS)):  # type: ignore[misc]
    """A TCubeTiling, field by field."""


class MatmulCall(ctypes.Structure):
    """The facts of a call."""

    _fields_ = (
        ("types", c_char_p * 4),  # of A, B, C and bias, empty without
        ("at", c_int64 * len(OPERANDS)),
        ("scale", c_uint64),  # the word of SetQuantScalar
        ("user", c_uint64 * 2),  # of SetUserDefInfo and SetSelfDefineData
        ("tiling", Tiling),
        ("org", c_int32 * 5),  # M, N, Ka, Kb, and the N of C or 0
        ("single", c_int32 * 3),
        ("trans", c_int32 * 2),
        ("formats", c_int32 * 3),  # 0 ND, 1 NZ, 3 ND with rows of whole blocks
        ("template_", c_int32),  # 0 NORM, 1 MDL, 2 IBSHARE
        ("unit_flag", c_int32),
        ("preload", c_int32),
        ("hf32", c_int32),
        ("quantises", c_int32),  # 1 with one scale, 2 with one for each column
        ("atomic", c_int32),
        ("bits", c_int32),
        ("first", c_int32),  # which tiles
        ("tiles", c_int32),  # 0: all
        ("k_first", c_int32),  # of a part of K by itself, with PART: its first column of A
        ("channel_split", c_int32),
        ("scaled", c_int32),  # MxMatmul
        ("scales_trans", c_int32 * 2),
        ("object", c_int32),  # which one of a kernel's
        ("batches", c_int32),
        ("each", c_int32 * len(OPERANDS)),  # how many matrices of a batch each tensor has
        ("strides", c_int64 * len(OPERANDS)),  # bytes from one to the next
    )

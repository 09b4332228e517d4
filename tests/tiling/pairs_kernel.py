"""Pairs (see tiling.pairs) for what a kernel needs to cut NZ operands and results."""

from tiling.pairs import Pair

NZ_A, NZ_B = {"format_a": "NZ", "a": "int8"}, {"format_b": "NZ", "a": "int8"}
NZ_C = {"format_c": "NZ"}

PAIRS = [
    Pair(
        "A-NZ-BASE",
        {"baseM": 32},
        {"baseM": 48},
        "A-NZ-BASE: baseM = 48, must be a multiple of 32; set baseM to 32",
        problem=NZ_A | {"trans_a": True},
    ),
    Pair(
        "B-NZ-BASE",
        {"baseN": 64},
        {"baseN": 80},
        "B-NZ-BASE: baseN = 80, must be a multiple of 32; set baseN to 64",
        problem=NZ_B,
    ),
    Pair(
        "C-NZ-SINGLE-CORE-N",
        {"singleCoreN": 48},
        {"singleCoreN": 50},
        "C-NZ-SINGLE-CORE-N: singleCoreN = 50, must be a multiple of 16; set singleCoreN to 48",
        problem=NZ_C,
    ),
]

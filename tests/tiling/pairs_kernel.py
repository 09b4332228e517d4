"""Pairs (see tiling.pairs) for what a kernel needs to cut NZ operands and results."""

from cubecore.tiling.model.epilogue import Epilogue
from tiling.pairs import Pair

NZ_A, NZ_B = {"format_a": "NZ", "a": "int8"}, {"format_b": "NZ", "a": "int8"}
NZ_C = {"format_c": "NZ"}
NZ_C8 = NZ_C | {"a": "int8", "epilogue": Epilogue(quant="REQ8", scale=0.5)}
COLUMNS = {"a": "int8", "epilogue": Epilogue(quant="VREQ8", scale=(1.0,) * 512)}

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
    Pair(
        "C-NZ-SINGLE-CORE-N",
        {"singleCoreN": 64},
        {"singleCoreN": 48},
        "C-NZ-SINGLE-CORE-N: singleCoreN = 48, must be a multiple of 32; set singleCoreN to 32",
        problem=NZ_C8,
    ),
    Pair(
        "C-NZ-BASE-N",
        {"baseN": 96},
        {"baseN": 80},
        "C-NZ-BASE-N: baseN = 80, must be a multiple of 32; set baseN to 64",
        problem=NZ_C8,
    ),
    Pair(
        "FB-CAPACITY",
        {"baseN": 256},
        {"baseN": 272},
        "FB-CAPACITY: 272 x 8 B of scales = 2176 B, Ascend910B3 allows 2048 B: over by 128 B; "
        "largest baseN here is 256",
        problem=COLUMNS,
    ),
]

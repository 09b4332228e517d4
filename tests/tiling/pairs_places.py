"""Pairs (see tiling.pairs) for operands outside of global memory: TSCM, UB, and transLength."""

from tiling.pairs import DOCUMENTED, Pair

OLD_CHIP = "Ascend310P3"
OLD_LETTER = {"edition": "001", "reading": "documented"}

PAIRS = [
    Pair(
        "TRANS-LENGTH",
        {"transLength": 139264},
        {"transLength": 139263},
        "TRANS-LENGTH: transLength = 139263 B, must be at least max(A1Length 69632, B1Length "
        "139264, C1Length 131072, BiasLength 0) = 139264 B; set transLength to 139264",
        soc=OLD_CHIP,
    ),
    Pair(
        "TRANS-LENGTH",
        {"transLength": 139264},
        {"transLength": 139265},
        "TRANS-LENGTH: transLength = 139265 B, must equal max(A1Length 69632, B1Length 139264, "
        "C1Length 131072, BiasLength 1024) = 139264 B; set transLength to 139264",
        problem={"bias": "float32"},
        how=DOCUMENTED,
        soc=OLD_CHIP,
    ),
    Pair(
        "TRANS-LENGTH",
        {},
        {"transLength": 32},
        "TRANS-LENGTH: transLength = 32 B, must equal max(A1Length 0, B1Length 0, C1Length 0, "
        "BiasLength 0) = 0 B; set transLength to 0",
        how=OLD_LETTER,
    ),
    Pair(
        "UB-CAPACITY",
        {"stepKb": 7, "depthB1": 7},
        {"stepKb": 8, "depthB1": 8},
        "UB-CAPACITY: conversions 278528 = 278528 B, Ascend310P3 allows 262144 B: over by 16384 "
        "B; largest stepKb here is 7",
        soc=OLD_CHIP,
    ),
    Pair(
        "UB-CAPACITY",
        {"stepKb": 7, "depthB1": 7},
        {"stepKb": 8, "depthB1": 8},
        "UB-CAPACITY: conversions 278528 = 278528 B, Ascend310P3 allows 262144 B: over by 16384 "
        "B; largest stepKb here is 7",
        how=OLD_LETTER,
        soc=OLD_CHIP,
    ),
    Pair(
        "UB-CAPACITY",
        {"singleCoreM": 64},
        {"singleCoreM": 96},
        "UB-CAPACITY: A 196608 + C 131072 = 327680 B, Ascend910B3 allows 196352 B: over by 131328 "
        "B; keep A in GM",
        problem={"pos_a": "VECOUT"},
        wrong_problem={"pos_a": "VECOUT", "pos_c": "VECIN"},
    ),
    Pair(
        "UB-CAPACITY",
        {"baseN": 160},
        {"baseN": 192},
        "UB-CAPACITY: A 131072 + C 98304 = 229376 B, Ascend910B3 allows 196352 B: over by 33024 "
        "B; largest baseN here is 112",
        problem={"pos_c": "VECIN"},
        wrong_problem={"pos_c": "VECIN", "pos_a": "VECCALC", "k": 512},
    ),
    Pair(
        "L1-CAPACITY",
        {"singleCoreM": 96},
        {"singleCoreM": 256},
        "L1-CAPACITY: 256 x 1024 x float16 in TSCM + 8 x 64 x 256 x float16 = 786432 B, "
        "Ascend910B3 allows 524288 B: over by 262144 B; keep A in GM",
        problem={"pos_a": "TSCM"},
    ),
    Pair(
        "L1-CAPACITY",
        {"singleCoreN": 256, "depthA1": 16},
        {"singleCoreN": 440, "depthA1": 16},
        "L1-CAPACITY: 16 x 128 x 64 x int8 + 1024 x 448 x int8 in TSCM = 589824 B, Ascend910B3 "
        "allows 524288 B: over by 65536 B; largest depthA1 here is 8",
        problem={"pos_b": "TSCM", "a": "int8", "n": 440, "k": 1000},
    ),
    Pair(
        "L1-CAPACITY",
        {"singleCoreN": 256},
        {"singleCoreN": 273},
        "L1-CAPACITY: 8 x 128 x 64 x float8_e5m2 + 1600 x 288 x float8_e5m2 in TSCM + 8 x 128 x 2 "
        "of scaleA + 288 x 50 of scaleB in TSCM = 542784 B, Ascend950PR_9589 allows 524288 B: over "
        "by 18496 B; largest depthA1 here is 4",
        problem={"pos_b": "TSCM", "a": "float8_e5m2", "scale_a": "float8_e8m0fnu", "k": 1600},
        soc="Ascend950PR_9589",
    ),
]

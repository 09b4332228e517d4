"""Pairs (see tiling.pairs) for Ka and Kb that differ, NZ operands and 4-bit rows."""

from tiling.pairs import DOCUMENTED, OLD, Pair

OLD_LETTER = {"edition": "001", "reading": "documented"}
A_NZ = {"format_a": "NZ"}
B_NZ = {"format_b": "NZ"}
FP4 = {"a": "float4_e2m1fn"}
NEW = "Ascend950PR_9589"

PAIRS = [
    Pair(
        "SINGLE-CORE-K",
        {"singleCoreK": 640},
        {"singleCoreK": 1024},
        "SINGLE-CORE-K: singleCoreK = 1024, must equal min(Ka, Kb) = 640; set singleCoreK to 640",
        problem={"kb": 640},
    ),
    Pair(
        "USED-CORE-NUM-PRODUCT",
        {"singleCoreK": 320, "usedCoreNum": 8},
        {"singleCoreK": 320, "usedCoreNum": 16},
        "USED-CORE-NUM-PRODUCT: usedCoreNum = 16, must equal ceil(256 / 128) x ceil(512 / 256) x "
        "ceil(640 / 320) = 8; set usedCoreNum to 8",
        problem={"split_k": True, "k": 2048, "kb": 640},
    ),
    Pair(
        "A-NZ-M",
        {},
        {},
        "A-NZ-M: M of A as NZ = 250, must be a multiple of 16; pad m to 256",
        problem=A_NZ | {"m": 240},
        wrong_problem=A_NZ | {"m": 250},
    ),
    Pair(
        "A-NZ-M",
        {},
        {},
        "A-NZ-M: M of A as NZ = 240, must be a multiple of 32; pad m to 256",
        problem=A_NZ | {"m": 224, "a": "int8", "trans_a": True},
        wrong_problem=A_NZ | {"m": 240, "a": "int8", "trans_a": True},
    ),
    Pair(
        "A-NZ-M",
        {},
        {},
        "A-NZ-M: M of A as NZ = 248, must be a multiple of 16; pad m to 256",
        problem=A_NZ | {"m": 240, "a": "int8", "trans_a": True},
        wrong_problem=A_NZ | {"m": 248, "a": "int8", "trans_a": True},
        how=OLD_LETTER,
    ),
    Pair(
        "A-NZ-K",
        {},
        {},
        "A-NZ-K: Ka of A as NZ = 1036, must be a multiple of 8; pad k to 1040",
        problem=A_NZ | {"k": 1032, "a": "float32"},
        wrong_problem=A_NZ | {"k": 1036, "a": "float32"},
    ),
    Pair(
        "A-NZ-K",
        {},
        {},
        "A-NZ-K: Ka of A as NZ = 1032, must be a multiple of 16; pad k to 1040",
        problem=A_NZ | {"k": 1040, "a": "float32", "trans_a": True, "kb": 1024},
        wrong_problem=A_NZ | {"k": 1032, "a": "float32", "trans_a": True, "kb": 1024},
    ),
    Pair(
        "B-NZ-K",
        {},
        {},
        "B-NZ-K: Kb of B as NZ = 1056, must be a multiple of 64; pad kb to 1088",
        problem=B_NZ | {"a": "int4", "kb": 1088},
        wrong_problem=B_NZ | {"a": "int4", "kb": 1056},
        how=DOCUMENTED,
    ),
    Pair(
        "B-NZ-N",
        {},
        {},
        "B-NZ-N: N of B as NZ = 496, must be a multiple of 32; pad n to 512",
        problem=B_NZ | {"n": 480, "a": "hifloat8"},
        wrong_problem=B_NZ | {"n": 496, "a": "hifloat8"},
        soc=NEW,
    ),
    Pair(
        "B-NZ-N",
        {},
        {},
        "B-NZ-N: N of B as NZ = 488, must be a multiple of 16; pad n to 496",
        problem=B_NZ | {"n": 496, "a": "int8", "trans_b": True},
        wrong_problem=B_NZ | {"n": 488, "a": "int8", "trans_b": True},
        how=OLD,
    ),
    Pair(
        "A-NZ-SINGLE-CORE-M",
        {"singleCoreM": 112},
        {"singleCoreM": 100},
        "A-NZ-SINGLE-CORE-M: singleCoreM of A as NZ = 100, must be a multiple of 16; set "
        "singleCoreM to 112",
        problem=A_NZ,
    ),
    Pair(
        "A-NZ-SINGLE-CORE-K",
        {},
        {"singleCoreK": 1032},
        "A-NZ-SINGLE-CORE-K: singleCoreK of A as NZ = 1032, must be a multiple of 16; pad k to "
        "1040",
        problem=A_NZ | {"k": 1040, "a": "float32"},
        wrong_problem=A_NZ | {"k": 1032, "a": "float32"},
        how=OLD_LETTER,
    ),
    Pair(
        "A-NZ-SINGLE-CORE-K",
        {"singleCoreK": 512},
        {"singleCoreK": 520},
        "A-NZ-SINGLE-CORE-K: singleCoreK of A as NZ = 520, must be a multiple of 16; set "
        "singleCoreK to 528",
        problem=A_NZ | {"split_k": True},
    ),
    Pair(
        "B-NZ-SINGLE-CORE-K",
        {},
        {},
        "B-NZ-SINGLE-CORE-K: singleCoreK of B as NZ = 1000, must be a multiple of 32; pad k to "
        "1024",
        problem=B_NZ | {"k": 992, "a": "int8", "kb": 2048},
        wrong_problem=B_NZ | {"k": 1000, "a": "int8", "kb": 2048},
    ),
    Pair(
        "B-NZ-SINGLE-CORE-N",
        {"singleCoreN": 816},
        {"singleCoreN": 820},
        "B-NZ-SINGLE-CORE-N: singleCoreN of B as NZ = 820, must be a multiple of 16; set "
        "singleCoreN to 832",
        problem=B_NZ | {"n": 4096, "trans_b": True},
        how=DOCUMENTED,
    ),
    Pair(
        "A-4BIT-ROW",
        {},
        {},
        "A-4BIT-ROW: Ka (rows of A in int4) = 1023, must be a multiple of 2; pad k to 1024",
        problem={"k": 1022, "a": "int4"},
        wrong_problem={"k": 1023, "a": "int4"},
    ),
    Pair(
        "A-4BIT-ROW",
        {},
        {},
        "A-4BIT-ROW: M (rows of A in float4_e2m1fn) = 255, must be a multiple of 2; pad m to 256",
        problem=FP4 | {"m": 254, "trans_a": True},
        wrong_problem=FP4 | {"m": 255, "trans_a": True},
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "B-4BIT-ROW",
        {},
        {},
        "B-4BIT-ROW: N (rows of B in float4_e2m1fn) = 511, must be a multiple of 2; pad n to 512",
        problem=FP4 | {"n": 510, "k": 1023},
        wrong_problem=FP4 | {"n": 511, "k": 1023},
        soc=NEW,
    ),
    Pair(
        "B-4BIT-ROW",
        {},
        {},
        "B-4BIT-ROW: Kb (rows of B in float4_e2m1fn) = 1023, must be a multiple of 2; pad k to "
        "1024",
        problem=FP4 | {"n": 511, "trans_b": True},
        wrong_problem=FP4 | {"n": 511, "k": 1023, "trans_b": True},
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "A-4BIT-SHARE",
        {},
        {},
        "A-4BIT-SHARE: singleCoreK (rows of A in int4) = 1023, must be a multiple of 2; pad k to "
        "1024",
        wrong_problem={"k": 1023, "a": "int4"},
        problem={"k": 1022, "a": "int4"},
    ),
    Pair(
        "B-4BIT-SHARE",
        {"singleCoreN": 100},
        {"singleCoreN": 101},
        "B-4BIT-SHARE: singleCoreN (rows of B in int4) = 101, must be a multiple of 2; set "
        "singleCoreN to 102",
        problem={"a": "int4"},
        how=OLD,
    ),
]

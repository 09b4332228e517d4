"""Pairs (see tiling.pairs) for MxMatmul: K, mxTypePara, and the scales in L1."""

from tiling.pairs import DOCUMENTED, Pair

NEW = "Ascend950PR_9589"
MX = {"a": "float8_e4m3fn", "scale_a": "float8_e8m0fnu"}
FP4 = {"a": "float4_e2m1fn"}
ONES = 0x01010101


def para(ka=1, kb=1, m=1, n=1):
    return {"mxTypePara": ka | kb << 8 | m << 16 | n << 24}


PAIRS = [
    Pair(
        "MX-BASE-K-ALIGNMENT",
        {"baseK": 128},
        {"baseK": 96},
        "MX-BASE-K-ALIGNMENT: baseK = 96, must be a multiple of 64; set baseK to 64",
        problem=MX,
        soc=NEW,
    ),
    Pair(
        "MX-BASE-K-ALIGNMENT",
        {"baseK": 192},
        {"baseK": 200},
        "MX-BASE-K-ALIGNMENT: baseK = 200, must be a multiple of 64; set baseK to 192",
        problem=FP4,
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "MX-SINGLE-CORE-K",
        {},
        {},
        "MX-SINGLE-CORE-K: singleCoreK 1030 rounded up to 32 = 1056, must be a multiple of 64; "
        "pad k to 1088",
        problem=MX | {"k": 1000, "pos_a": "TSCM"},
        wrong_problem=MX | {"k": 1030, "pos_b": "VECOUT"},
        soc=NEW,
    ),
    Pair(
        "MX-SINGLE-CORE-K",
        {"singleCoreK": 544},
        {"singleCoreK": 544},
        "MX-SINGLE-CORE-K: singleCoreK 544 rounded up to 32 = 544, must be a multiple of 64; set "
        "singleCoreK to 576",
        problem=MX | {"split_k": True},
        wrong_problem=MX | {"split_k": True, "pos_b": "TSCM", "pos_a": "TSCM"},
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "MX-SPARE-BITS",
        para(127, 127, 127, 127),
        {"mxTypePara": ONES | 1 << 15},
        "MX-SPARE-BITS: bits 7, 15, 23 and 31 of mxTypePara = 32768, must equal 0; set mxTypePara "
        "to 16843009",
        problem=MX,
        soc=NEW,
    ),
    Pair(
        "MX-SPARE-BITS",
        para(),
        {"mxTypePara": -(2**31) + ONES},
        "MX-SPARE-BITS: bits 7, 15, 23 and 31 of mxTypePara = 2147483648, must equal 0; set "
        "mxTypePara to 16843009",
        problem=MX,
        how=DOCUMENTED,
        soc=NEW,
    ),
    *(
        Pair(
            f"MX-FACTOR-{name.upper()}",
            para(),
            para(**{name: 0}),
            f"MX-FACTOR-{name.upper()}: scaleFactor{name.capitalize()} of mxTypePara = 0, must be "
            "at least 1; set mxTypePara to 16843009",
            problem=MX,
            how=how,
            soc=NEW,
        )
        for name, how in (("ka", {}), ("kb", DOCUMENTED), ("m", DOCUMENTED), ("n", {}))
    ),
    Pair(
        "MX-SCALE-A-WHOLE-K",
        para(ka=4, m=2),
        para(ka=3, m=2),
        "MX-SCALE-A-WHOLE-K: baseK x stepKa x scaleFactorKa = 64 x 4 x 3 = 768 of singleCoreK "
        "1024: scaleFactorM = 2, scaleA with a part of K allows 1: over by 1; set mxTypePara to "
        "16843011",
        problem=MX,
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-B-WHOLE-K",
        para(kb=1, n=1),
        para(kb=3, n=127),
        "MX-SCALE-B-WHOLE-K: baseK x stepKb x scaleFactorKb = 64 x 4 x 3 = 768 of singleCoreK "
        "1024: scaleFactorN = 127, scaleB with a part of K allows 1: over by 126; set mxTypePara "
        "to 16843521",
        problem=MX,
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-KA-EXTENT",
        para(ka=4),
        para(ka=5),
        "MX-SCALE-KA-EXTENT: baseK x stepKa x scaleFactorKa = 64 x 4 x 5 = 1280, singleCoreK 1000 "
        "in steps of 256 allows 1024: over by 256; set mxTypePara to 16843012",
        problem=MX | {"k": 1000},
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-KA-EXTENT",
        para(ka=3),
        para(ka=4),
        "MX-SCALE-KA-EXTENT: baseK x stepKa x scaleFactorKa = 64 x 4 x 4 = 1024, singleCoreK "
        "allows 1000: over by 24; set mxTypePara to 16843011",
        problem=MX | {"k": 1000},
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-KB-EXTENT",
        para(),
        para(kb=2),
        "MX-SCALE-KB-EXTENT: baseK x stepKb x scaleFactorKb = 64 x 4 x 2 = 512, singleCoreK 30 in "
        "steps of 256 allows 256: over by 256; set mxTypePara to 16843009",
        problem=FP4 | {"k": 30},
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-M-EXTENT",
        para(ka=4, m=2) | {"singleCoreM": 200},
        para(ka=4, m=3) | {"singleCoreM": 200},
        "MX-SCALE-M-EXTENT: baseM x stepM x scaleFactorM = 128 x 1 x 3 = 384, singleCoreM 200 in "
        "steps of 128 allows 256: over by 128; set mxTypePara to 16908548",
        problem=MX,
        soc=NEW,
    ),
    Pair(
        "MX-SCALE-N-EXTENT",
        para(kb=4, n=1),
        para(kb=4, n=2),
        "MX-SCALE-N-EXTENT: baseN x stepN x scaleFactorN = 256 x 1 x 2 = 512, singleCoreN allows "
        "256: over by 256; set mxTypePara to 16843777",
        problem=MX,
        how=DOCUMENTED,
        soc=NEW,
    ),
    Pair(
        "L1-CAPACITY",
        para(ka=4, m=15) | {"depthA1": 32, "depthB1": 8},
        para(ka=4, m=40) | {"depthA1": 32, "depthB1": 8},
        "L1-CAPACITY: 32 x 128 x 64 x float8_e4m3fn + 8 x 64 x 256 x float8_e4m3fn + 640 x 128 x 2 "
        "of scaleA + 8 x 256 x 2 of scaleB = 561152 B, Ascend950PR_9589 allows 524288 B: over by "
        "36864 B; largest depthA1 here is 24",
        problem=MX,
        soc=NEW,
    ),
    Pair(
        "L1-CAPACITY",
        para(ka=127, m=1),
        para(ka=127, m=127),
        "L1-CAPACITY: 8 x 128 x 64 x float8_e4m3fn + 8 x 64 x 256 x float8_e4m3fn + 64516 x 128 x "
        "2 of scaleA + 8 x 256 x 2 of scaleB = 16716800 B, Ascend950PR_9589 allows 524288 B: over "
        "by 16192512 B; set mxTypePara to 16843009",
        problem=MX,
        soc=NEW,
    ),
]

"""For every rule: a tiling that is right, the same one wrong by a little, the whole line."""

from dataclasses import dataclass, field

DOCUMENTED = {"reading": "documented"}
OLD = {"edition": "001"}


@dataclass(frozen=True)
class Pair:
    """`right` satisfies the rule, `wrong` does not and says `line`."""

    rule: str
    right: dict
    wrong: dict
    line: str
    problem: dict = field(default_factory=dict)
    wrong_problem: dict | None = None
    how: dict = field(default_factory=dict)
    soc: str = "Ascend910B3"


def positive(rule, name, least=1):
    line = f"{rule}: {name} = 0, must be at least 1; set {name} to {least}"
    return Pair(rule, {name: 1}, {name: 0}, line)


def flag(rule, name, low):
    high = low + 1
    line = f"{rule}: {name} = {high + 1}, must be {low} or {high}; set {name} to {low}"
    return Pair(rule, {name: high}, {name: high + 1}, line)


PAIRS = [
    positive("USED-CORE-NUM-POSITIVE", "usedCoreNum"),
    positive("SINGLE-CORE-M-POSITIVE", "singleCoreM"),
    positive("SINGLE-CORE-N-POSITIVE", "singleCoreN"),
    positive("SINGLE-CORE-K-POSITIVE", "singleCoreK"),
    positive("BASE-M-POSITIVE", "baseM", 16),
    positive("BASE-N-POSITIVE", "baseN", 16),
    positive("BASE-K-POSITIVE", "baseK", 16),
    positive("DEPTH-A1-POSITIVE", "depthA1"),
    positive("DEPTH-B1-POSITIVE", "depthB1"),
    positive("STEP-M-POSITIVE", "stepM"),
    positive("STEP-N-POSITIVE", "stepN"),
    positive("STEP-KA-POSITIVE", "stepKa"),
    positive("STEP-KB-POSITIVE", "stepKb"),
    flag("IS-BIAS", "isBias", 0),
    flag("ITERATE-ORDER", "iterateOrder", 0),
    flag("DB-L0A", "dbL0A", 1),
    flag("DB-L0B", "dbL0B", 1),
    flag("DB-L0C", "dbL0C", 1),
    Pair(
        "USED-CORE-NUM-RANGE",
        {"usedCoreNum": 20},
        {"usedCoreNum": 21},
        "USED-CORE-NUM-RANGE: usedCoreNum = 21, Ascend910B3 allows 20: over by 1; set usedCoreNum "
        "to 20",
    ),
    Pair(
        "USED-CORE-NUM-RANGE",
        {"usedCoreNum": 40},
        {"usedCoreNum": 41},
        "USED-CORE-NUM-RANGE: usedCoreNum = 41, Ascend910B3 allows 40: over by 1; set usedCoreNum "
        "to 40",
        problem={"launch": "mix", "cores": 99},
    ),
    Pair(
        "USED-CORE-NUM-RANGE",
        {"usedCoreNum": 3},
        {"usedCoreNum": 4},
        "USED-CORE-NUM-RANGE: usedCoreNum = 4, the request allows 3: over by 1; set "
        "usedCoreNum to 3",
        problem={"cores": 3},
    ),
    Pair(
        "USED-CORE-NUM-PRODUCT",
        {"singleCoreM": 200, "usedCoreNum": 4},
        {"singleCoreM": 200, "usedCoreNum": 3},
        "USED-CORE-NUM-PRODUCT: usedCoreNum = 3, must equal ceil(256 / 200) x ceil(512 / 256) = 4; "
        "set usedCoreNum to 4",
    ),
    Pair(
        "USED-CORE-NUM-PRODUCT",
        {"singleCoreK": 300, "usedCoreNum": 16},
        {"singleCoreK": 300, "usedCoreNum": 15},
        "USED-CORE-NUM-PRODUCT: usedCoreNum = 15, must equal ceil(256 / 128) x ceil(512 / 256) x "
        "ceil(1024 / 300) = 16; set usedCoreNum to 16",
        problem={"split_k": True},
    ),
    Pair(
        "USED-CORE-NUM-PRODUCT",
        {},
        {"singleCoreM": 200},
        "USED-CORE-NUM-PRODUCT: usedCoreNum x singleCoreM x singleCoreN = 4 x 200 x 256 = 204800, "
        "must equal M x N = 256 x 512 = 131072; set usedCoreNum to 1 and singleCoreM to 256 and "
        "singleCoreN to 512",
        how=DOCUMENTED,
    ),
    Pair(
        "A-INNER-EXTENT",
        {},
        {},
        "A-INNER-EXTENT: Ka = 65536, an ND row of A allows 65535: over by 1; store A transposed: "
        "its rows are then 256 long",
        problem={"k": 65535},
        wrong_problem={"k": 65536},
        how=OLD,
    ),
    Pair(
        "A-INNER-EXTENT",
        {},
        {},
        "A-INNER-EXTENT: M = 65536, an ND row of A allows 65535: over by 1; enable intrinsicsCheck",
        problem={"m": 65536, "trans_a": False},
        wrong_problem={"m": 65536, "trans_a": True},
        how=DOCUMENTED,
    ),
    Pair(
        "B-INNER-EXTENT",
        {},
        {},
        "B-INNER-EXTENT: N = 65536, an ND row of B allows 65535: over by 1; store B transposed: "
        "its rows are then 1024 long",
        problem={"n": 65535},
        wrong_problem={"n": 65536},
        how=OLD,
    ),
    Pair(
        "B-INNER-EXTENT",
        {},
        {},
        "B-INNER-EXTENT: Kb = 70000, an ND row of B allows 65535: over by 4465",
        problem={"k": 65535, "n": 70000, "trans_b": True},
        wrong_problem={"k": 70000, "n": 70000, "trans_b": True, "intrinsics_check": True},
        how=OLD,
    ),
    Pair(
        "SINGLE-CORE-M",
        {"singleCoreM": 16},
        {"singleCoreM": 17},
        "SINGLE-CORE-M: singleCoreM = 17, M = 14 rounded up to 16 allows 16: over by 1; set "
        "singleCoreM to 14",
        problem={"m": 14},
    ),
    Pair(
        "SINGLE-CORE-M",
        {"singleCoreM": 14},
        {"singleCoreM": 16},
        "SINGLE-CORE-M: singleCoreM = 16, M allows 14: over by 2; set singleCoreM to 14",
        problem={"m": 14},
        how=DOCUMENTED,
    ),
    Pair(
        "SINGLE-CORE-N",
        {"singleCoreN": 64},
        {"singleCoreN": 65},
        "SINGLE-CORE-N: singleCoreN = 65, N = 40 rounded up to 32 allows 64: over by 1; set "
        "singleCoreN to 40",
        problem={"n": 40, "a": "int8"},
    ),
    Pair(
        "SINGLE-CORE-K",
        {},
        {"singleCoreK": 1023},
        "SINGLE-CORE-K: singleCoreK = 1023, must equal Ka = 1024; set singleCoreK to 1024",
    ),
    Pair(
        "BASE-M-ALIGNMENT",
        {"baseM": 112},
        {"baseM": 120},
        "BASE-M-ALIGNMENT: baseM = 120, must be a multiple of 16; set baseM to 112",
    ),
    Pair(
        "BASE-N-ALIGNMENT",
        {"baseN": 48},
        {"baseN": 41},
        "BASE-N-ALIGNMENT: baseN = 41, must be a multiple of 16; set baseN to 48",
    ),
    Pair(
        "BASE-K-ALIGNMENT",
        {"baseK": 32},
        {"baseK": 48},
        "BASE-K-ALIGNMENT: baseK = 48, must be a multiple of 32; set baseK to 32",
        problem={"a": "int8", "trans_b": True},
    ),
    Pair(
        "BASE-K-ALIGNMENT",
        {"baseK": 48},
        {"baseK": 56},
        "BASE-K-ALIGNMENT: baseK = 56, must be a multiple of 16; set baseK to 48",
        problem={"a": "int8", "trans_b": True, "trans_a": True},
    ),
    Pair(
        "BASE-K-ALIGNMENT",
        {"baseK": 64},
        {"baseK": 48},
        "BASE-K-ALIGNMENT: baseK = 48, must be a multiple of 32; set baseK to 32",
        problem={"a": "int8"},
        how=OLD,
    ),
    Pair(
        "DEPTH-A1",
        {"stepM": 2, "stepKa": 3, "depthA1": 12},
        {"stepM": 2, "stepKa": 3, "depthA1": 18},
        "DEPTH-A1: depthA1 = 18, must be stepM x stepKa or twice that = 6 or 12; set depthA1 to 12",
    ),
    Pair(
        "DEPTH-B1",
        {"stepN": 2, "stepKb": 3, "depthB1": 6},
        {"stepN": 2, "stepKb": 3, "depthB1": 7},
        "DEPTH-B1: depthB1 = 7, must be stepN x stepKb or twice that = 6 or 12; set depthB1 to 6",
    ),
    Pair(
        "IS-BIAS-MATCHES",
        {"isBias": 1},
        {"isBias": 0},
        "IS-BIAS-MATCHES: isBias = 0, must equal the problem's bias = 1; set isBias to 1",
        problem={"bias": "float32"},
    ),
    Pair(
        "MMAD-M-EXTENT",
        {"baseM": 4095},
        {"baseM": 4096},
        "MMAD-M-EXTENT: baseM = 4096, Mmad allows 4095: over by 1; set baseM to 4080",
    ),
    Pair(
        "MMAD-N-EXTENT",
        {"baseN": 4095},
        {"baseN": 4096},
        "MMAD-N-EXTENT: baseN = 4096, Mmad allows 4095: over by 1; set baseN to 4080",
    ),
    Pair(
        "MMAD-K-EXTENT",
        {"baseK": 4095},
        {"baseK": 4096},
        "MMAD-K-EXTENT: baseK = 4096, Mmad allows 4095: over by 1; set baseK to 4064",
        problem={"a": "int8"},
    ),
    Pair(
        "MDL-STEP-M",
        {"stepM": 2, "stepKa": 16, "depthA1": 32},
        {"stepM": 2, "stepKa": 15, "depthA1": 60},
        "MDL-STEP-M: stepKa = 15 base blocks of the 16 of K: stepM = 2, must equal one block at a "
        "time = 1; set stepM to 1 and depthA1 to 30",
    ),
    Pair(
        "MDL-STEP-N",
        {"stepN": 1, "stepKb": 15, "depthB1": 15},
        {"stepN": 3, "stepKb": 15, "depthB1": 45},
        "MDL-STEP-N: stepKb = 15 base blocks of the 16 of K: stepN = 3, must equal one block at a "
        "time = 1; set stepN to 1 and depthB1 to 15",
    ),
    Pair(
        "MDL-STEP-M",
        {"stepM": 2, "stepKa": 3, "singleCoreK": 192},
        {"stepM": 2, "stepKa": 3, "singleCoreK": 193},
        "MDL-STEP-M: stepKa = 3 base blocks of the 4 of K: stepM = 2, must equal one block at a "
        "time = 1; set stepM to 1 and depthA1 to 3",
        problem={"split_k": True},
    ),
    Pair(
        "MDL-K-STEP-MULTIPLE",
        {"stepKa": 8, "depthA1": 8},
        {"stepKa": 6, "depthA1": 12},
        "MDL-K-STEP-MULTIPLE: kaStepIter = ceil(1024 / (64 x 6)) = 3, kbStepIter = ceil(1024 / (64 "
        "x 4)) = 4: the larger = 4, must be a multiple of 3; set stepKa to 4 and depthA1 to 8",
    ),
    Pair(
        "L0A-CAPACITY",
        {"baseK": 128},
        {"baseK": 192},
        "L0A-CAPACITY: 2 x 128 x 192 x float16 = 98304 B, Ascend910B3 allows 65536 B: over by "
        "32768 B; largest baseK here is 128",
    ),
    Pair(
        "L0A-CAPACITY",
        {"baseK": 112},
        {"baseK": 128},
        "L0A-CAPACITY: 2 x 128 x 128 x float16 = 65536 B, Ascend910B3 allows less than 65536 B; "
        "largest baseK here is 112",
        how=DOCUMENTED,
    ),
    Pair(
        "L0A-CAPACITY",
        {"baseM": 64, "baseK": 512},
        {"baseM": 80, "baseK": 400},
        "L0A-CAPACITY: 2 x 96 (baseM 80 padded) x 416 (baseK 400 padded) x int8 = 79872 B, "
        "Ascend910B3 allows 65536 B: over by 14336 B; largest baseK here is 320",
        problem={"a": "int8", "trans_a": True},
    ),
    Pair(
        "L0B-CAPACITY",
        {"baseN": 256},
        {"baseN": 272},
        "L0B-CAPACITY: 2 x 64 x 272 x float16 = 69632 B, Ascend910B3 allows 65536 B: over by 4096 "
        "B; largest baseK here is 48",
    ),
    Pair(
        "L0B-CAPACITY",
        {"baseN": 32, "baseK": 1024},
        {"baseN": 48, "baseK": 672},
        "L0B-CAPACITY: 2 x 672 x 64 (baseN 48 padded) x int8 = 86016 B, Ascend910B3 allows 65536 "
        "B: over by 20480 B; largest baseK here is 512",
        problem={"a": "int8"},
    ),
    Pair(
        "L0C-CAPACITY",
        {"dbL0C": 1},
        {"dbL0C": 2},
        "L0C-CAPACITY: 2 x 128 x 256 x float32 = 262144 B, Ascend910B3 allows 131072 B: over by "
        "131072 B; largest dbL0C here is 1",
    ),
    Pair(
        "L0C-CAPACITY",
        {"baseN": 240},
        {"baseN": 256},
        "L0C-CAPACITY: 1 x 128 x 256 x float32 = 131072 B, Ascend910B3 allows less than 131072 B; "
        "largest baseN here is 240",
        how=DOCUMENTED,
    ),
    Pair(
        "BIAS-TABLE-CAPACITY",
        {"baseN": 256},
        {"baseN": 272},
        "BIAS-TABLE-CAPACITY: 272 x float32 = 1088 B, Ascend910B3 allows 1024 B: over by 64 B; "
        "largest baseN here is 256",
        problem={"bias": "float16"},
    ),
    Pair(
        "BIAS-TABLE-CAPACITY",
        {"baseN": 496},
        {"baseN": 512},
        "BIAS-TABLE-CAPACITY: 512 x float16 = 1024 B, Ascend910B3 allows less than 1024 B; largest "
        "baseN here is 496",
        problem={"bias": "float16"},
        how=DOCUMENTED,
    ),
    Pair(
        "L1-CAPACITY",
        {"depthA1": 16, "depthB1": 8},
        {"depthA1": 17, "depthB1": 8},
        "L1-CAPACITY: 17 x 128 x 64 x float16 + 8 x 64 x 256 x float16 = 540672 B, Ascend910B3 "
        "allows 524288 B: over by 16384 B; largest depthA1 here is 16",
    ),
    Pair(
        "L1-CAPACITY",
        {"baseN": 496, "depthB1": 13},
        {"baseN": 496, "depthB1": 14},
        "L1-CAPACITY: 8 x 128 x 64 x int8 + 14 x 64 x 512 (baseN 496 padded) x int8 + 496 x int32 "
        "= 526272 B, Ascend910B3 allows 524288 B: over by 1984 B; largest depthA1 here is 4",
        problem={"a": "int8", "bias": "int32"},
    ),
    Pair(
        "L1-CAPACITY",
        {"depthA1": 30},
        {"depthA1": 31},
        "L1-CAPACITY: 31 x 128 x 64 x float16 + 8 x 64 x ceil(256 / 16) x float16 + 256 x float32 "
        "= 525312 B, Ascend910B3 allows 524032 B: over by 1280 B; largest depthA1 here is 28",
        problem={"bias": "float32"},
        how=DOCUMENTED,
    ),
    Pair(
        "L1-CAPACITY",
        {"depthA1": 15},
        {"depthA1": 16},
        "L1-CAPACITY: 16 x 128 x 64 x float16 + 8 x 64 x 256 x float16 = 524288 B, Ascend910B3 "
        "allows 524032 B: over by 256 B; largest depthA1 here is 12",
        problem={"bias": "float32"},
        how={"edition": "001", "reading": "documented"},
    ),
]  # fmt: skip

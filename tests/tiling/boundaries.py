"""Where each rule begins to refuse: what to move, over which values, and what must then be true.

`holds` says in plain integers what seed 000 and the vendor's pages ask for; it never calls the
package. Sizes of types and chips are the documents' own numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling

BITS = {
    **dict.fromkeys(("int4", "float4_e2m1fn", "float4_e1m2"), 4),
    **dict.fromkeys(("int8", "float8_e4m3fn", "float8_e5m2", "hifloat8"), 8),
    **dict.fromkeys(("float16", "bfloat16"), 16),
    **dict.fromkeys(("float32", "int32"), 32),
}
ON_A2 = ("float16", "bfloat16", "float32", "int8", "int4")
ON_950 = ("float16", "int8", "float8_e4m3fn", "hifloat8", "float4_e2m1fn")
SCALED = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float4_e1m2")
SMALL = tuple(range(-2, 8))
BLOCKS = tuple(range(16, 1041, 16))


@dataclass(frozen=True)
class Case:
    """A tiling and its problem."""

    t: TCubeTiling
    p: Problem


@dataclass(frozen=True)
class Boundary:
    """A rule and what takes it over its boundary: a field of the tiling or a key of the problem."""

    rule: str
    move: str
    values: tuple[int, ...]
    holds: Callable[[Case], bool]
    keys: dict = field(default_factory=dict)
    fields: dict = field(default_factory=dict)
    dtypes: tuple[str, ...] = ON_A2
    soc: str = "Ascend910B3"
    edition: str = "000"


def up(value, multiple):
    return -(-value // multiple) * multiple


def c0(dtype):
    return 256 // BITS[dtype]


def a_rows(t, p, value=None):
    return up(t.baseM if value is None else value, max(c0(p.a), 16) if p.trans_a else 16)


def b_columns(t, p, value=None):
    return up(t.baseN if value is None else value, 16 if p.trans_b else max(c0(p.b), 16))


def base_k(t, p):
    return up(t.baseK, max(c0(p.a), c0(p.b)))


def factor(t, shift):
    return t.mxTypePara // 2**shift % 128


def l1_bytes(t, p):
    share_k = up(t.singleCoreK, max(c0(p.a), c0(p.b)))
    a = t.depthA1 * a_rows(t, p) * base_k(t, p)
    if p.pos_a == "TSCM":
        a = a_rows(t, p, t.singleCoreM) * share_k
    b = t.depthB1 * b_columns(t, p) * base_k(t, p)
    if p.pos_b == "TSCM":
        b = b_columns(t, p, t.singleCoreN) * share_k
    total = a * BITS[p.a] // 8 + b * BITS[p.b] // 8
    if p.bias:
        total += t.baseN * BITS[p.bias] // 8
    if p.scale_a:
        total += up(t.baseM, 16) * t.stepM * factor(t, 16) * t.baseK * t.stepKa * factor(t, 0) // 32
        total += up(t.baseN, 16) * t.stepN * factor(t, 24) * t.baseK * t.stepKb * factor(t, 8) // 32
    return total


def scratch_bytes(t, p):
    """What a 310P takes of UB for a product of ND operands in global memory."""

    def step(rows, columns, dtype):
        return rows * (columns + 16 * (columns % 256 == 0)) * BITS[dtype] // 8

    m, ka = t.stepM * t.baseM, t.stepKa * t.baseK
    n, kb = t.stepN * t.baseN, t.stepKb * t.baseK
    return max(
        step(ka, m, p.a) if p.trans_a else step(m, ka, p.a),
        step(n, kb, p.b) if p.trans_b else step(kb, n, p.b),
        t.baseM * t.baseN * BITS[p.c] // 8,
        t.baseN * BITS[p.bias] // 8 if p.bias else 0,
    )


def from_ub_bytes(t, p):
    a = t.singleCoreM * t.singleCoreK * BITS[p.a] // 8 if p.pos_a == "VECOUT" else 0
    c = t.baseM * t.baseN * BITS[p.c] // 8 if p.pos_c == "VECIN" else 0
    return a + c


def iterations(t):
    ka = -(-t.singleCoreK // (t.baseK * t.stepKa))
    kb = -(-t.singleCoreK // (t.baseK * t.stepKb))
    return max(ka, kb), min(ka, kb)


def positive(name, rule_id):
    return Boundary(rule_id, name, SMALL, lambda c: getattr(c.t, name) > 0)


def multiple(rule_id, move, of, **how):
    values = how.pop("values", tuple(range(4, 400, 4)))
    return Boundary(rule_id, move, values, of, **how)


A_NZ, B_NZ = {"format_a": "NZ"}, {"format_b": "NZ"}
MX = {"dtypes": SCALED, "soc": "Ascend950PR_9589", "keys": {"scale_a": "float8_e8m0fnu"}}
OLD_CHIP = {"dtypes": ("float16", "int8"), "soc": "Ascend310P3"}
FOUR_BITS = {"dtypes": ("int4",), "values": tuple(range(1, 60))}

POSITIVE = [
    positive(name, f"{slug}-POSITIVE")
    for name, slug in (
        ("usedCoreNum", "USED-CORE-NUM"),
        *((f"singleCore{x}", f"SINGLE-CORE-{x}") for x in "MNK"),
        *((f"base{x}", f"BASE-{x}") for x in "MNK"),
        *((f"depth{x}", f"DEPTH-{x}") for x in ("A1", "B1")),
        *((f"step{x}", f"STEP-{x.upper()}") for x in ("M", "N", "Ka", "Kb")),
    )
]
FLAGS = [
    Boundary(rule, name, SMALL, lambda c, name=name, low=low: getattr(c.t, name) in (low, low + 1))
    for rule, name, low in (
        ("IS-BIAS", "isBias", 0),
        ("ITERATE-ORDER", "iterateOrder", 0),
        ("DB-L0A", "dbL0A", 1),
        ("DB-L0B", "dbL0B", 1),
        ("DB-L0C", "dbL0C", 1),
    )
]
FORMATS = [
    multiple(
        "A-NZ-M",
        "m",
        lambda c: c.t.M % (max(16, c0(c.p.a)) if c.p.trans_a else 16) == 0,
        keys=A_NZ,
    ),
    multiple(
        "A-NZ-K",
        "k",
        lambda c: c.t.Ka % (max(16, c0(c.p.a)) if c.p.trans_a else c0(c.p.a)) == 0,
        keys=A_NZ,
    ),
    multiple(
        "B-NZ-K",
        "k",
        lambda c: c.t.Kb % (c0(c.p.b) if c.p.trans_b else max(16, c0(c.p.b))) == 0,
        keys=B_NZ,
    ),
    multiple(
        "B-NZ-N",
        "n",
        lambda c: c.t.N % (16 if c.p.trans_b else max(16, c0(c.p.b))) == 0,
        keys=B_NZ,
    ),
    multiple(
        "A-NZ-SINGLE-CORE-M",
        "singleCoreM",
        lambda c: c.t.singleCoreM % (max(16, c0(c.p.a)) if c.p.trans_a else 16) == 0,
        keys=A_NZ,
    ),
    multiple(
        "A-NZ-SINGLE-CORE-K",
        "singleCoreK",
        lambda c: c.t.singleCoreK % max(16, c0(c.p.a)) == 0,
        keys=A_NZ,
    ),
    multiple(
        "B-NZ-SINGLE-CORE-K",
        "singleCoreK",
        lambda c: c.t.singleCoreK % max(16, c0(c.p.b)) == 0,
        keys=B_NZ,
    ),
    multiple(
        "B-NZ-SINGLE-CORE-N",
        "singleCoreN",
        lambda c: c.t.singleCoreN % (16 if c.p.trans_b else max(16, c0(c.p.b))) == 0,
        keys=B_NZ,
    ),
    multiple(
        "A-4BIT-ROW",
        "k",
        lambda c: (c.t.M if c.p.trans_a else c.t.Ka) % 2 == 0,
        keys={"trans_a": False},
        **FOUR_BITS,
    ),
    multiple(
        "A-4BIT-ROW",
        "m",
        lambda c: (c.t.M if c.p.trans_a else c.t.Ka) % 2 == 0,
        keys={"trans_a": True},
        **FOUR_BITS,
    ),
    multiple(
        "B-4BIT-ROW",
        "n",
        lambda c: (c.t.Kb if c.p.trans_b else c.t.N) % 2 == 0,
        keys={"trans_b": False},
        **FOUR_BITS,
    ),
    multiple(
        "A-4BIT-SHARE",
        "singleCoreM",
        lambda c: c.t.singleCoreM % 2 == 0,
        keys={"trans_a": True},
        **FOUR_BITS,
    ),
    multiple(
        "B-4BIT-SHARE",
        "singleCoreK",
        lambda c: c.t.singleCoreK % 2 == 0,
        keys={"trans_b": True},
        **FOUR_BITS,
    ),
]
KERNEL = [
    Boundary(
        "A-NZ-BASE",
        "baseK",
        BLOCKS,
        lambda c: c.t.baseK >= c.p.k or c.t.baseK % max(c0(c.p.a), 16) == 0,
        A_NZ | {"trans_a": False, "k": 512},
        dtypes=("int8", "int4"),
    ),
    Boundary(
        "B-NZ-BASE",
        "baseN",
        BLOCKS,
        lambda c: c.t.baseN >= c.p.n or c.t.baseN % max(c0(c.p.b), 16) == 0,
        B_NZ | {"trans_b": False, "n": 512},
        dtypes=("int8", "int4"),
    ),
    Boundary(
        "C-NZ-SINGLE-CORE-N",
        "singleCoreN",
        tuple(range(4, 400, 4)),
        lambda c: c.t.singleCoreN >= c.p.n or c.t.singleCoreN % 16 == 0,
        {"format_c": "NZ"},
    ),
    *(
        Boundary(
            rule,
            field,
            tuple(range(16, 400, 16)),
            lambda c, field=field: getattr(c.t, field) >= c.p.n or getattr(c.t, field) % 32 == 0,
            {"format_c": "NZ", "epilogue": Epilogue(quant="REQ8", scale=0.5)},
            dtypes=("int8", "int4"),
        )
        for rule, field in (
            ("C-NZ-SINGLE-CORE-N", "singleCoreN"),
            ("C-NZ-BASE-N", "baseN"),
        )
    ),
    Boundary(
        "FB-CAPACITY",
        "baseN",
        BLOCKS,
        lambda c: c.t.baseN * 8 <= 2048,
        {"epilogue": Epilogue(quant="VREQ8")},
        dtypes=("int8", "int4"),
    ),
]
EXTENTS = [
    Boundary(
        "USED-CORE-NUM-RANGE",
        "usedCoreNum",
        tuple(range(15, 46)),
        lambda c: c.t.usedCoreNum <= 20,
    ),
    Boundary(
        "USED-CORE-NUM-RANGE",
        "usedCoreNum",
        tuple(range(35, 46)),
        lambda c: c.t.usedCoreNum <= 40,
        {"launch": "mix"},
    ),
    Boundary(
        "USED-CORE-NUM-PRODUCT",
        "usedCoreNum",
        tuple(range(1, 70)),
        lambda c: (
            c.t.usedCoreNum
            == -(-c.t.M // c.t.singleCoreM)
            * -(-c.t.N // c.t.singleCoreN)
            * -(-min(c.t.Ka, c.t.Kb) // c.t.singleCoreK)
        ),
        {"split_k": True},
    ),
    Boundary(
        "A-INNER-EXTENT",
        "k",
        tuple(range(65520, 65550)),
        lambda c: (c.t.M if c.p.trans_a else c.t.Ka) <= 65535,
        {"trans_a": False},
        edition="001",
    ),
    Boundary(
        "B-INNER-EXTENT",
        "n",
        tuple(range(65520, 65550)),
        lambda c: (c.t.Kb if c.p.trans_b else c.t.N) <= 65535,
        {"trans_b": False},
        edition="001",
    ),
    Boundary(
        "SINGLE-CORE-M",
        "singleCoreM",
        tuple(range(1, 400)),
        lambda c: c.t.singleCoreM <= a_rows(c.t, c.p, c.t.M),
    ),
    Boundary(
        "SINGLE-CORE-N",
        "singleCoreN",
        tuple(range(1, 400)),
        lambda c: c.t.singleCoreN <= b_columns(c.t, c.p, c.t.N),
    ),
    Boundary(
        "SINGLE-CORE-K",
        "singleCoreK",
        tuple(range(1, 400)),
        lambda c: c.t.singleCoreK == min(c.t.Ka, c.t.Kb),
    ),
]
OTHER_BLOCKS = [
    multiple("BASE-M-ALIGNMENT", "baseM", lambda c: c.t.baseM % 16 == 0),
    multiple("BASE-N-ALIGNMENT", "baseN", lambda c: c.t.baseN % 16 == 0),
    *(
        multiple(
            "BASE-K-ALIGNMENT",
            "baseK",
            lambda c: c.t.baseK % (c0(c.p.a) if c.p.trans_b and not c.p.trans_a else 16) == 0,
            keys={"trans_a": trans_a, "trans_b": trans_b},
            dtypes=("float32", "int8", "int4"),
        )
        for trans_a, trans_b in ((False, True), (True, True), (False, False))
    ),
    Boundary(
        "DEPTH-A1",
        "depthA1",
        tuple(range(40)),
        lambda c: c.t.depthA1 / (c.t.stepM * c.t.stepKa) in (1, 2),
    ),
    Boundary(
        "DEPTH-B1",
        "depthB1",
        tuple(range(40)),
        lambda c: c.t.depthB1 / (c.t.stepN * c.t.stepKb) in (1, 2),
    ),
    Boundary("IS-BIAS-MATCHES", "isBias", (0, 1), lambda c: c.t.isBias == (c.p.bias is not None)),
    *(
        Boundary(
            f"MMAD-{x}-EXTENT",
            f"base{x}",
            tuple(range(4080, 4112)),
            lambda c, x=x: getattr(c.t, f"base{x}") <= 4095,
        )
        for x in "MNK"
    ),
    Boundary(
        "MDL-STEP-M",
        "stepKa",
        tuple(range(1, 40)),
        lambda c: c.t.baseK * c.t.stepKa >= c.t.singleCoreK or c.t.stepM == 1,
        fields={"stepM": 2},
    ),
    Boundary(
        "MDL-STEP-N",
        "singleCoreK",
        BLOCKS,
        lambda c: c.t.baseK * c.t.stepKb >= c.t.singleCoreK or c.t.stepN == 1,
        fields={"stepN": 3},
    ),
    Boundary(
        "MDL-K-STEP-MULTIPLE",
        "stepKa",
        tuple(range(1, 40)),
        lambda c: iterations(c.t)[0] % iterations(c.t)[1] == 0,
    ),
    Boundary(
        "MDL-K-STEP-MULTIPLE",
        "stepKb",
        tuple(range(1, 40)),
        lambda c: iterations(c.t)[0] % iterations(c.t)[1] == 0,
    ),
]
CAPACITIES = [
    *(
        Boundary(
            "L0A-CAPACITY",
            name,
            BLOCKS,
            lambda c: c.t.dbL0A * a_rows(c.t, c.p) * base_k(c.t, c.p) * BITS[c.p.a] // 8 <= 65536,
        )
        for name in ("baseM", "baseK")
    ),
    *(
        Boundary(
            "L0B-CAPACITY",
            name,
            BLOCKS,
            lambda c: (
                c.t.dbL0B * b_columns(c.t, c.p) * base_k(c.t, c.p) * BITS[c.p.b] // 8 <= 65536
            ),
        )
        for name in ("baseN", "baseK")
    ),
    *(
        Boundary(
            "L0C-CAPACITY",
            name,
            BLOCKS,
            lambda c: c.t.dbL0C * c.t.baseM * c.t.baseN * 4 <= 131072,
        )
        for name in ("baseM", "baseN")
    ),
    Boundary(
        "L0C-CAPACITY",
        "baseN",
        BLOCKS,
        lambda c: c.t.dbL0C * c.t.baseM * c.t.baseN * 4 <= 262144,
        soc="Ascend950PR_9589",
        dtypes=ON_950,
    ),
    Boundary(
        "BIAS-TABLE-CAPACITY",
        "baseN",
        BLOCKS,
        lambda c: c.t.baseN * 4 <= 1024,
        {"bias": "float32"},
        dtypes=("float16", "bfloat16"),
    ),
    *(
        Boundary("L1-CAPACITY", name, values, lambda c: l1_bytes(c.t, c.p) <= 524288)
        for name, values in (
            ("depthA1", tuple(range(1, 120))),
            ("depthB1", tuple(range(1, 120))),
            ("baseK", BLOCKS),
            ("baseN", BLOCKS),
        )
    ),
    Boundary(
        "L1-CAPACITY",
        "singleCoreM",
        BLOCKS,
        lambda c: l1_bytes(c.t, c.p) <= 524288,
        {"pos_a": "TSCM", "k": 1024},
    ),
    Boundary(
        "L1-CAPACITY",
        "singleCoreN",
        BLOCKS,
        lambda c: l1_bytes(c.t, c.p) <= 524288,
        {"pos_b": "TSCM", "k": 1024},
    ),
    Boundary(
        "L1-CAPACITY",
        "mxTypePara",
        tuple(0x01010101 + (i << 16) for i in range(0, 127, 3)),
        lambda c: l1_bytes(c.t, c.p) <= 524288,
        fields={"stepKa": 20},
        **MX,
    ),
    *(
        Boundary(
            "TRANS-LENGTH",
            name,
            values,
            lambda c: c.t.transLength >= scratch_bytes(c.t, c.p),
            fields={"transLength": 100_000},
            **OLD_CHIP,
        )
        for name, values in (
            ("baseM", BLOCKS),
            ("stepKa", tuple(range(1, 40))),
            ("stepN", tuple(range(1, 40))),
        )
    ),
    *(
        Boundary(
            "UB-CAPACITY",
            name,
            values,
            lambda c: scratch_bytes(c.t, c.p) <= 262144,
            **OLD_CHIP,
        )
        for name, values in (
            ("baseN", BLOCKS),
            ("stepKb", tuple(range(1, 80))),
            ("stepM", tuple(range(1, 40))),
        )
    ),
    Boundary(
        "UB-CAPACITY",
        "singleCoreM",
        BLOCKS,
        lambda c: from_ub_bytes(c.t, c.p) <= 196352,
        {"pos_a": "VECOUT", "pos_c": "VECIN"},
    ),
]
BOUNDARIES = [*POSITIVE, *FLAGS, *FORMATS, *KERNEL, *EXTENTS, *OTHER_BLOCKS, *CAPACITIES]

"""Our rules against what the vendor's tiling library broke in its own answers.

The library was asked 549 times; 535 answers came back. Each names the documented constraints that
it breaks. `AGREEMENTS` says which rule, edition and reading is which of those names, and lists
every answer on which the two differ, with the reason. `UNNAMED` are our rules that the answers
break under no such name. `GAINS` are our plans beside the legal ones among its answers.
`tests/tiling/test_reference_tilings.py` holds all of it to the record.
"""

from dataclasses import dataclass

_SHARE_GIVEN = "the share of a core was set by hand; the record leaves out what depends on it"
_PART = "the tiling is for a part of the product (SetShape); the record compares with that part"
_UNALIGNED = "the extent itself is no multiple of 16; the record looks at aligned extents only"


@dataclass(frozen=True)
class Difference:
    """Answers that only one side calls broken, `by` "cubecore" or "the record", and why."""

    by: str
    answers: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Agreement:
    """A name of the record, the rule that it is, and where the two differ.

    `broken` counts the answers that the record says break it; `elsewhere` those that our rule calls
    broken in its other reading, editions 000 and 001. Edition 001 says the same in the same
    reading, unless `older` says what it asks instead.
    """

    name: str
    rule: str
    edition: str
    reading: str
    broken: int
    elsewhere: tuple[int, int]
    differences: tuple[Difference, ...] = ()
    older: str = ""

    @property
    def found(self) -> int:
        """Answers that our rule calls broken."""
        signs = {"cubecore": 1, "the record": -1}
        return self.broken + sum(signs[d.by] * len(d.answers) for d in self.differences)


AGREEMENTS = (
    Agreement(
        "usedCoreNum literal (M/scM)*(N/scN) real division",
        "USED-CORE-NUM-PRODUCT",
        "newer",
        "documented",
        216,
        (10, 10),
        (
            Difference(
                "cubecore",
                (
                    "g0492",
                    "g0537",
                    "test_tiling.MatmulApiTilingNBuffer33MultiCoreCheckUsedCoreNum#0",
                ),
                _SHARE_GIVEN,
            ),
            Difference(
                "cubecore",
                (
                    "test_tiling.TestMatmulApiTilngL0ANoDB#0",
                    "test_tiling.TestMatmulApiTilngL0BNoDB#0",
                ),
                _PART,
            ),
        ),
    ),
    Agreement(
        "usedCoreNum == ceil(M/scM)*ceil(N/scN)[*ceil(K/scK)]",
        "USED-CORE-NUM-PRODUCT",
        "newer",
        "effective",
        8,
        (221, 221),
        (
            Difference(
                "cubecore",
                (
                    "test_tiling.TestMatmulApiTilngL0ANoDB#0",
                    "test_tiling.TestMatmulApiTilngL0BNoDB#0",
                ),
                _PART,
            ),
        ),
    ),
    Agreement(
        "cores cover output: usedCoreNum >= ceil*ceil",
        "USED-CORE-NUM-PRODUCT",
        "newer",
        "effective",
        5,
        (221, 221),
        (
            Difference(
                "cubecore",
                ("g0356", "g0358", "g0492"),
                "more cores than blocks: the name asks for enough cores, the rule for as many",
            ),
            Difference(
                "cubecore",
                (
                    "test_tiling.TestMatmulApiTilngL0ANoDB#0",
                    "test_tiling.TestMatmulApiTilngL0BNoDB#0",
                ),
                _PART,
            ),
        ),
    ),
    Agreement(
        "bias: baseN*sizeof(bias) < BT", "BIAS-TABLE-CAPACITY", "newer", "documented", 50, (0, 0)
    ),
    Agreement(
        "singleCoreM <= M",
        "SINGLE-CORE-M",
        "newer",
        "documented",
        46,
        (1, 1),
        (Difference("cubecore", ("g0537",), _SHARE_GIVEN),),
    ),
    Agreement(
        "singleCoreN <= N",
        "SINGLE-CORE-N",
        "newer",
        "documented",
        16,
        (0, 0),
        (Difference("the record", ("test_tiling_v310.MultiCoreSmallMNFP4#0",), _PART),),
    ),
    Agreement(
        "MDL: kaStepIter,kbStepIter multiples",
        "MDL-K-STEP-MULTIPLE",
        "newer",
        "documented",
        13,
        (13, 13),
    ),
    Agreement(
        "MDL: Ka not full-load => stepM==1 (literal Ka/baseK>stepKa)",
        "MDL-STEP-M",
        "newer",
        "documented",
        2,
        (0, 0),
        (
            Difference(
                "cubecore",
                ("test_tiling.MatmulApiTilingNBuffer33MultiCoreKExceedsCoreNum#0",),
                "the schedule is N_BUFFER_33, whose stepM is 3; the record leaves it out",
            ),
        ),
    ),
    Agreement("depthB1 == stepN*stepKb*{1,2}", "DEPTH-B1", "newer", "documented", 1, (1, 1)),
    Agreement(
        "baseK doc rule (C0 if A!T,B T; else 16)",
        "BASE-K-ALIGNMENT",
        "newer",
        "documented",
        1,
        (1, 0),
        older="asks for C0 always, which that answer (float32, baseK 40) keeps",
    ),
    Agreement("L0B with aligned block <=", "L0B-CAPACITY", "newer", "effective", 1, (398, 398)),
    Agreement(
        "NZ B: singleCoreK%C0, singleCoreN%16",
        "B-NZ-SINGLE-CORE-N",
        "newer",
        "documented",
        6,
        (10, 10),
        (
            Difference(
                "cubecore",
                (
                    "g0225",
                    "g0748",
                    "test_tiling.TestMatmulApiTilngInt8Case12#0",
                    "test_tiling.TestNZFp32UnalignedK#0",
                ),
                _UNALIGNED,
            ),
        ),
    ),
)
"""Every name of the record, with its rule."""


@dataclass(frozen=True)
class Unnamed:
    """A rule that the library's answers break and the record does not name.

    The counts are of newer edition and 001, documented and effective each.
    """

    rule: str
    documented: tuple[int, int]
    effective: tuple[int, int]
    reason: str


_FULL = "the letter asks for less than the buffer; the record counts a full one apart, as right"
_LONG_ROW = "long rows need intrinsicsCheck in the kernel, which the library does not see"
_UNALIGNED_NZ = "NZ extents that are not aligned, which the library answers all the same"
_NO_MX = "one unit test asks for float4 without MxMatmul; cubecore knows no other float4 product"
_RAGGED = "the last load of a scale is ragged, which the letter does not allow for"

UNNAMED = (
    Unnamed("A-INNER-EXTENT", (27, 34), (0, 34), _LONG_ROW),
    Unnamed("B-INNER-EXTENT", (11, 12), (0, 12), _LONG_ROW),
    Unnamed("SINGLE-CORE-K", (1, 1), (1, 1), "one unit test asks for a part of K (SetShape)"),
    Unnamed("A-NZ-M", (2, 2), (2, 2), _UNALIGNED_NZ),
    Unnamed("A-NZ-K", (1, 1), (1, 1), _UNALIGNED_NZ),
    Unnamed("B-NZ-K", (1, 1), (1, 1), _UNALIGNED_NZ),
    Unnamed("B-NZ-N", (4, 4), (4, 4), _UNALIGNED_NZ),
    Unnamed("A-NZ-SINGLE-CORE-M", (2, 2), (2, 2), _UNALIGNED_NZ),
    Unnamed("A-NZ-SINGLE-CORE-K", (1, 1), (1, 1), _UNALIGNED_NZ),
    Unnamed("B-NZ-SINGLE-CORE-K", (1, 1), (1, 1), _UNALIGNED_NZ),
    Unnamed(
        "C-NZ-SINGLE-CORE-N",
        (0, 0),
        (3, 3),
        "singleCoreN 479 or 47: a core's part of an NZ C begins inside a fractal",
    ),
    Unnamed(
        "MX-SINGLE-CORE-K",
        (1, 0),
        (1, 1),
        "one unit test has B in TSCM and K = 736, 23 groups of 32; the library does not mind",
    ),
    Unnamed("MX-FACTOR-KA", (1, 0), (1, 1), _NO_MX),
    Unnamed("MX-FACTOR-KB", (1, 0), (1, 1), _NO_MX),
    Unnamed("MX-FACTOR-M", (1, 0), (1, 1), _NO_MX),
    Unnamed("MX-FACTOR-N", (1, 0), (1, 1), _NO_MX),
    Unnamed("MX-SCALE-KA-EXTENT", (1, 0), (0, 0), _RAGGED),
    Unnamed("MX-SCALE-KB-EXTENT", (1, 0), (0, 0), _RAGGED),
    Unnamed("MX-SCALE-M-EXTENT", (1, 0), (0, 0), _RAGGED),
    Unnamed("L0A-CAPACITY", (120, 120), (0, 0), _FULL),
    Unnamed("L0C-CAPACITY", (241, 241), (0, 0), _FULL),
    Unnamed(
        "L1-CAPACITY",
        (2, 4),
        (3, 3),
        "unit tests with operands in TSCM larger than L1, which the record does not count; one "
        "(older edition, documented) fits as a share, but not as depthB1 blocks",
    ),
    Unnamed(
        "UB-CAPACITY",
        (42, 42),
        (42, 42),
        "the library plans transLength without looking at UB; how its kernel copes is not known",
    ),
)
"""Rules that no name of the record stands for, though answers break them."""


@dataclass(frozen=True)
class Gains:
    """How the predicted times of the library's legal answers over those of our plans are spread."""

    cores: str
    answers: int
    geometric_mean: float
    least: float
    p10: float
    median: float
    p90: float
    largest: float


GAINS = (
    Gains("several cores", 264, 1.35, 1.00, 1.01, 1.10, 2.69, 10.95),
    Gains("one core", 162, 1.23, 1.00, 1.01, 1.13, 1.70, 5.57),
)
"""Answers with return code 0 that break no rule, under the same options."""

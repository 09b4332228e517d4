"""The meaning of each field: what seeds 000 and 001 say of it, held as whole texts."""

import pytest

import cubecore
from cubecore.tiling.model.field_meanings import FIELD_MEANINGS
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.checker import rule_named

BOTH = "TCubeTiling structure, newer edition, table 1 ({0}); TCubeTiling structure, older edition, "
BOTH += "table 1 ({0})"
POSITIVE = "Greater than 0."
MEANINGS = {
    "usedCoreNum": (
        "The number of AI Cores that take part, 1 to the chip's number: (M / singleCoreM) * "
        "(N / singleCoreN).",
        "usedCoreNum",
    ),
    "Ka": (
        "An extent of A, B and C as the user holds them, in elements: the columns of A. A multiple "
        "of C0_size where A is NZ; above 65535 an A in ND that is not transposed needs "
        "intrinsicsCheck (older edition: is not allowed).",
        "M",
    ),
    "singleCoreK": (
        "An extent of A, B and C on one core, in elements: along K, equal to K, which several "
        "cores do not split. Greater than 0 (newer edition). A multiple of C0_size * fractal_num "
        "where A or B is NZ.",
        "singleCoreM",
    ),
    "baseK": (
        "An extent of A, B and C in one matrix instruction, in elements and whole fractals: along "
        "K. Greater than 0 (newer edition). A multiple of 64 in MxMatmul.",
        "baseM",
    ),
    "depthB1": (
        f"The number of baseN * baseK blocks of B that B1 (in L1) holds. {POSITIVE} The older "
        "edition calls them blocks held for B2 (L0B); its table 2 counts them in L1, too.",
        "depthA1",
    ),
    "stepKb": (f"The extent along Kb of B1's buffer in L1, in baseK. {POSITIVE}", "stepM"),
    "isBias": (
        "Whether bias is added. 0, the default: no. 1: yes. Other values are undefined.",
        "isBias",
    ),
    "iterateOrder": (
        "The order of the [baseM, baseN] blocks of C that successive Iterate calls compute. 0: "
        "along M first, then N. 1: along N first, then M. Other values are undefined.",
        "iterateOrder",
    ),
    "dbL0C": (
        "Whether the Cube double-buffers C in L0C. 1: one buffer. 2: double buffer. Other values "
        "are undefined.",
        "dbL0A",
    ),
    "shareL0CSize": ("Reserved: leave it alone.", "shareL0CSize"),
    "singleBatchN": ("Reserved: leave it alone.", "singleBatchN"),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_explain_says_what_the_table_says(name):
    text, row = MEANINGS[name]
    lines = cubecore.explain(name).text.splitlines()
    assert lines[:3] == [f"{name}: a field of TCubeTiling", "", text]
    assert lines[-1] == f"From: {BOTH.format(row)}"


def test_explain_a_reserved_field_says_no_more():
    assert cubecore.explain("batchm").text == (
        "batchM: a field of TCubeTiling\n\nReserved: leave it alone.\n\n"
        f"From: {BOTH.format('batchM')}\n"
    )


def test_mx_type_para_is_the_newer_editions():
    meaning = FIELD_MEANINGS["mxTypePara"]
    assert meaning.source == "TCubeTiling structure, newer edition, table 1 (mxTypePara)"
    assert meaning.text.endswith("It acts in the MDL template only.")


def test_fields_of_neither_page_say_so():
    unstated = {name for name in FIELDS if not FIELD_MEANINGS[name].rows}
    layouts = {f"{x}LayoutInfo{axis}" for x in "AB" for axis in "BSNGD"}
    layouts |= {f"CLayoutInfo{axis}" for axis in ("B", "S1", "N", "G", "S2")}
    assert unstated == layouts | {"BatchNum", "depthAL1CacheUB", "depthBL1CacheUB"}


@pytest.mark.parametrize("side", ["A", "B"])
def test_the_rule_of_a_depth_discloses_where_the_editions_differ(side):
    assert (
        f"The editions differ in which blocks depth{side}1 counts: those in\n{side}1 (L1) in table "
        f"1 of the newer edition, those held for {side}2 (L0{side}) in table 1 of the older.\n"
        f"cubecore counts {side}1, as table 2 of both editions does."
    ) in rule_named(f"DEPTH-{side}1").text

"""Our rules against the vendor's own answers, and our plans for the problems it was asked."""

import json
from pathlib import Path

import pytest

from cubecore.tiling.cost import predict
from cubecore.tiling.problem import Problem
from cubecore.tiling.rule_model import Case
from cubecore.tiling.rules import check_tiling, rule_named
from cubecore.tiling.solver import solve
from cubecore.tiling.struct import TCubeTiling

FACTS = Path(__file__).parents[3] / "shared" / "facts"
pytestmark = pytest.mark.skipif(
    not FACTS.is_dir(), reason="the fact sheets (../shared) are not beside this checkout"
)

BREAKS = {
    "usedCoreNum literal (M/scM)*(N/scN) real division": ("USED-CORE-NUM-PRODUCT", "documented"),
    "usedCoreNum == ceil(M/scM)*ceil(N/scN)[*ceil(K/scK)]": ("USED-CORE-NUM-PRODUCT", "effective"),
    "bias: baseN*sizeof(bias) < BT": ("BIAS-TABLE-CAPACITY", "documented"),
    "singleCoreM <= M": ("SINGLE-CORE-M", "documented"),
    "singleCoreN <= N": ("SINGLE-CORE-N", "documented"),
    "MDL: kaStepIter,kbStepIter multiples": ("MDL-K-STEP-MULTIPLE", "documented"),
    "MDL: Ka not full-load => stepM==1 (literal Ka/baseK>stepKa)": ("MDL-STEP-M", "documented"),
    "depthB1 == stepN*stepKb*{1,2}": ("DEPTH-B1", "documented"),
    "baseK doc rule (C0 if A!T,B T; else 16)": ("BASE-K-ALIGNMENT", "documented"),
    "L0B with aligned block <=": ("L0B-CAPACITY", "effective"),
}
"""The reference's name of a broken constraint: our rule and reading (edition 000)."""

NEVER_BROKEN = (
    ("USED-CORE-NUM-RANGE", "documented"),
    ("L0A-CAPACITY", "effective"),
    ("L0C-CAPACITY", "effective"),
    ("DEPTH-A1", "effective"),
    ("BASE-M-ALIGNMENT", "effective"),
    ("BASE-N-ALIGNMENT", "effective"),
    ("BASE-M-POSITIVE", "effective"),
    ("STEP-KB-POSITIVE", "documented"),
    ("MDL-STEP-N", "effective"),
    ("SINGLE-CORE-K", "effective"),
)
"""Constraints that the reference sheet says its answers always satisfy."""


def read(name):
    return [json.loads(line) for line in (FACTS / name).read_text("utf-8").splitlines()]


def problem_of(record):
    given = {k: v for k, v in record["problem"].items() if k != "name"}
    if given.get("format_a") == "VECTOR" or min(given["m"], given["n"], given["k"]) < 1:
        return None  # neither is in our contract; both are unit tests of the library
    options = record.get("options") or {}
    return Problem.from_json(given | {"split_k": bool(options.get("split_k"))})


def answered():
    """Give the vendor's answers, but for those to a platform whose sizes were set by hand."""
    for record in read("reference_tilings.jsonl"):
        p = problem_of(record)
        if p is not None and record["tiling"] and "l1" not in (record["options"] or {}):
            yield record, p, TCubeTiling.from_json(record["tiling"])


def said(case, rule_id):
    measure = rule_named(rule_id).measure(case)
    return measure is None or bool(measure.holds())


@pytest.mark.parametrize("name", BREAKS)
def test_our_rules_find_what_the_sheet_found(name):
    rule_id, reading = BREAKS[name]
    ours, theirs = set(), set()
    for record, p, t in answered():
        if name in record["breaks"]:
            theirs.add(record["id"])
        if not said(Case(t, p, p.chip_record, "000", reading), rule_id):
            ours.add(record["id"])
    # where the share of a core was given, the sheet leaves what depends on it out
    given = {r["id"] for r, _, _ in answered() if "single_core_m" in (r["options"] or {})}
    assert theirs
    assert theirs <= ours
    assert ours - given == theirs - given


@pytest.mark.parametrize(("rule_id", "reading"), NEVER_BROKEN)
def test_what_the_vendor_always_keeps(rule_id, reading):
    broken = [
        record["id"]
        for record, p, t in answered()
        if not said(Case(t, p, p.chip_record, "000", reading), rule_id)
    ]
    assert broken == []


def planned():
    """Give every problem that the spine's types and options cover, with the vendor's answer."""
    for record in read("reference_tilings.jsonl") + read("reference_crashes.jsonl"):
        p = problem_of(record)
        if p is None or record.get("options"):
            continue
        plain = {p.format_a, p.format_b, p.format_c} == {"ND"}
        in_memory = {p.pos_a, p.pos_b, p.pos_c} == {"GM"}
        if p.a in ("float16", "int8") and plain and in_memory:
            yield p, record.get("tiling")


def test_every_plan_is_legal_and_no_slower_than_the_vendors():
    count = 0
    for p, theirs in planned():
        soc = p.chip_record
        solution = solve(p, soc, count=2)
        for ranked in (solution.best, *solution.alternatives):
            assert check_tiling(ranked.tiling, p, soc).findings == (), p
            assert ranked.tiling.matches(p)
            assert ranked.predicted.cycles >= solution.best.predicted.cycles
        assert solution.best.predicted.cycles >= solution.lower_bound
        if theirs is not None:
            t = TCubeTiling.from_json(theirs)
            if check_tiling(t, p, soc).legal:
                # a core share off the fractal, which we do not try, may win a few cycles
                assert solution.best.predicted.cycles <= 1.001 * predict(t, p, soc).cycles, p
        count += 1
    assert count > 250

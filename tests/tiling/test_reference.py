"""Our rules against the vendor's own answers, and our plans for the problems it was asked."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from cubecore.tiling.agreement import AGREEMENTS, UNNAMED
from cubecore.tiling.cost import predict
from cubecore.tiling.problem import Problem
from cubecore.tiling.rule_model import EDITIONS, READINGS, Case, satisfied
from cubecore.tiling.rules import check_tiling, rule_named, rules
from cubecore.tiling.rules_ub import trans_length
from cubecore.tiling.solver import solve
from cubecore.tiling.struct import TCubeTiling

FACTS = Path(__file__).parents[3] / "shared" / "facts"
pytestmark = pytest.mark.skipif(
    not FACTS.is_dir(), reason="the fact sheets (../shared) are not beside this checkout"
)

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
    ("MX-BASE-K-ALIGNMENT", "documented"),
    ("MX-SPARE-BITS", "documented"),
    ("MX-SCALE-A-WHOLE-K", "documented"),
    ("MX-SCALE-KA-EXTENT", "effective"),
    ("TRANS-LENGTH", "documented"),
)
"""Constraints that the reference sheet says its answers always satisfy."""


def read(name):
    return [json.loads(line) for line in (FACTS / name).read_text("utf-8").splitlines()]


SIZES = {"l0a": "l0a_bytes", "l0b": "l0b_bytes", "l0c": "l0c_bytes", "bt": "bt_bytes"}
MX_MODE = 2
"""MatrixMadType::MXMODE in the record's options."""


def problem_of(record):
    given = {k: v for k, v in record["problem"].items() if k != "name"}
    if given.get("format_a") == "VECTOR" or min(given["m"], given["n"], given["k"]) < 1:
        return None  # neither is in our contract; both are unit tests of the library
    options = record.get("options") or {}
    if options.get("mad_type") == MX_MODE:
        given["scale_a"] = "float8_e8m0fnu"
    if options.get("cfg_type") == 0:
        given["template"] = "NORM"
    return Problem.from_json(given | {"split_k": bool(options.get("split_k"))})


def chip_of(record, p):
    """Return the problem's chip, with the sizes that a unit test set by hand."""
    options = record["options"] or {}
    if "l1" not in options:
        return p.chip_record
    sizes = {ours: options[theirs] or None for theirs, ours in SIZES.items()}
    sizes |= {
        f"{name}_{kind}": options[name] for name in ("l1", "ub") for kind in ("bytes", "user_bytes")
    }
    return replace(p.chip_record, **sizes)


@cache
def answered():
    """Return the vendor's answers that our contract can express."""
    found = []
    for record in read("reference_tilings.jsonl"):
        p = problem_of(record)
        if p is not None and record["tiling"]:
            soc = chip_of(record, p)
            found.append((record, p, soc, TCubeTiling.from_json(record["tiling"])))
    return found


def broken(rule_id, edition, reading):
    """Return the ids of the answers that break our rule."""
    measure = rule_named(rule_id).measure
    return {
        record["id"]
        for record, p, soc, t in answered()
        if not satisfied(Case(t, p, soc, edition, reading), measure)
    }


def named(name):
    return {record["id"] for record, *_ in answered() if name in record["breaks"]}


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda a: a.name)
def test_our_rules_find_what_the_record_found(agreement):
    theirs = named(agreement.name)
    for edition in EDITIONS:
        ours = broken(agreement.rule, edition, agreement.reading)
        if agreement.older and edition != agreement.edition:
            assert ours != theirs
            continue
        only = {"cubecore": ours - theirs, "the record": theirs - ours}
        for side, answers in only.items():
            explained = {i for d in agreement.differences if d.by == side for i in d.answers}
            assert answers == explained
    (other,) = set(READINGS) - {agreement.reading}
    counts = tuple(len(broken(agreement.rule, edition, other)) for edition in EDITIONS)
    assert counts == agreement.elsewhere
    assert (len(theirs), agreement.found) == (
        agreement.broken,
        len(broken(agreement.rule, agreement.edition, agreement.reading)),
    )


def test_every_name_of_the_record_is_a_rule():
    names = {name for record in read("reference_tilings.jsonl") for name in record["breaks"]}
    assert names == {agreement.name for agreement in AGREEMENTS}


@pytest.mark.parametrize("unnamed", UNNAMED, ids=lambda u: u.rule)
def test_rules_that_the_record_does_not_name(unnamed):
    for reading, counts in (("documented", unnamed.documented), ("effective", unnamed.effective)):
        found = tuple(len(broken(unnamed.rule, edition, reading)) for edition in EDITIONS)
        assert found == counts


def test_every_broken_rule_is_in_the_table():
    known = {a.rule for a in AGREEMENTS} | {u.rule for u in UNNAMED}
    assert len(known) == len({a.rule for a in AGREEMENTS}) + len(UNNAMED)
    for declared in rules():
        if declared.id not in known:
            for edition in EDITIONS:
                for reading in READINGS:
                    assert broken(declared.id, edition, reading) == set(), declared.id


def test_trans_length_is_the_answered_one():
    answers = [(t.transLength, Case(t, p, soc)) for _, p, soc, t in answered()]
    assert all(trans_length(case) == length for length, case in answers)
    assert sum(length > 0 for length, _ in answers) == 75


@pytest.mark.parametrize(("rule_id", "reading"), NEVER_BROKEN)
def test_what_the_vendor_always_keeps(rule_id, reading):
    assert broken(rule_id, "000", reading) == set()


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

"""transLength: the space in UB that A, B, C and bias take in turn (seeds 000 and 001).

The lengths that the vendor's tiling library answered for Ascend310P3, one line a problem:
inputs, output, bias, transposition and format of A and B, base block, steps M, N, Ka and Kb.
"""

import dataclasses

import pytest

from cubecore.chips import chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling, rule_named
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.rules.ub import trans_length, ub_lengths
from harness import make_tiling

OLD = chip("Ascend310P3")
ANSWERED = """
bfloat16 float32  -       0 1 ND NZ 256 256 64   1 1 1 8     262144
float16  float16  -       0 0 ND ND 256 256 64   1 1 8 1     270336
bfloat16 bfloat16 float32 0 0 ND ND 128 256 64   1 1 16 2    266240
int8     int32    -       0 0 ND ND 16 256 128   1 1 148 4   303360
float16  float32  -       0 1 ND NZ 16 256 64    1 1 24 6    49664
bfloat16 bfloat16 float32 0 1 ND ND 16 256 64    1 1 12 6    196608
bfloat16 bfloat16 -       0 0 ND ND 16 256 64    1 1 16 4    139264
float16  float32  -       0 0 ND ND 256 256 64   2 2 8 8     540672
int8     int32    -       0 0 ND NZ 1024 32 32   1 1 8 128   278528
float16  float32  float32 0 0 ND ND 32 80 48     1 1 1 1     10240
float16  float32  -       0 1 ND ND 32 48 80     1 1 1 1     7680
float16  float32  float32 1 0 ND ND 16 16 992    1 1 1 1     31744
float16  float32  -       0 0 ND ND 16 256 16    1 64 1 1    524800
float16  float32  float32 1 1 ND ND 256 256 64   1 1 1 16    532480
float16  float32  -       0 1 ND ND 112 256 64   1 2 11 11   720896
float32  float32  -       0 1 ND NZ 16 352 16    1 1 256 8   263168
"""
EDITIONS = ("000", "001")


def asked(a, c, bias, trans_a, trans_b, format_a, format_b, *numbers):
    """Return the problem, the tiling and the answer of one line."""
    base_m, base_n, base_k, step_m, step_n, step_ka, step_kb, answer = map(int, numbers)
    problem = Problem(
        chip=OLD.name,
        m=4096,
        n=4096,
        k=4096,
        a=a,
        c=c,
        bias=None if bias == "-" else bias,
        trans_a=trans_a == "1",
        trans_b=trans_b == "1",
        format_a=format_a,
        format_b=format_b,
    )
    steps = {"stepM": step_m, "stepN": step_n, "stepKa": step_ka, "stepKb": step_kb}
    return problem, make_tiling(problem, baseM=base_m, baseN=base_n, baseK=base_k, **steps), answer


LINES = [line for line in ANSWERED.splitlines() if line]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("edition", EDITIONS)
def test_trans_length_is_the_largest_of_four(line, edition):
    problem, tiling, answer = asked(*line.split())
    assert trans_length(RuleCase(tiling, problem, OLD, edition)) == answer
    assert max(ub_lengths(RuleCase(tiling, problem, OLD, edition)).values()) == answer
    measure = rule_named("TRANS-LENGTH").measure
    for reading in ("effective", "documented"):
        for value, right in ((answer, True), (answer - 1, False), (answer + 1, None)):
            case = RuleCase(
                dataclasses.replace(tiling, transLength=value), problem, OLD, edition, reading
            )
            want = reading == "effective" if right is None else right
            assert measure(case).holds() == want


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("reading", ["effective", "documented"])
def test_the_four_lengths_fit_ub(edition, reading):
    for line in LINES:
        problem, tiling, answer = asked(*line.split())
        measured = rule_named("UB-CAPACITY").measure(
            RuleCase(tiling, problem, OLD, edition, reading)
        )
        assert measured.used == answer
        assert measured.limit == 262144
        assert measured.holds() == (answer <= 262144)


def test_each_length_is_what_needs_ub():
    base = Problem(m=512, n=512, k=512, bias="float32", chip=OLD.name)
    tiling = make_tiling(base, baseM=32, baseN=48, baseK=16, stepM=2, stepKa=3, stepKb=5)
    all_four = {
        "A1Length": 64 * 48 * 2,
        "B1Length": 80 * 48 * 2,
        "C1Length": 32 * 48 * 4,
        "BiasLength": 48 * 4,
    }

    def lengths(soc=OLD, **changes):
        problem = dataclasses.replace(base, **changes)
        return ub_lengths(RuleCase(tiling, problem, soc))

    assert lengths() == all_four
    for name, changes in (
        ("A1Length", {"format_a": "NZ"}),
        ("A1Length", {"pos_a": "TSCM"}),
        ("B1Length", {"format_b": "NZ"}),
        ("B1Length", {"pos_b": "TSCM"}),
        ("C1Length", {"format_c": "NZ", "pos_c": "VECIN"}),
        ("BiasLength", {"bias": None}),
    ):
        assert lengths(**changes) == all_four | {name: 0}
    assert lengths(format_c="NZ") == lengths(pos_c="VECIN") == all_four
    # Chips with ND2NZ on the way and fixpipe take nothing.
    for name in ("Ascend910B3", "Ascend950PR_9589", "Ascend310B1", "Kirin9030"):
        assert set(lengths(soc=chip(name)).values()) == {0}


@pytest.mark.parametrize("name", ["Ascend910B3", "Ascend950PR_9589"])
def test_trans_length_is_0_elsewhere(name):
    problem = Problem(m=64, n=64, k=64, chip=name)
    tiling = make_tiling(problem, transLength=32)
    assert check_tiling(tiling, problem, chip(name)).legal
    for edition in EDITIONS:
        found = check_tiling(tiling, problem, chip(name), edition, "documented").findings
        assert "TRANS-LENGTH" in {f.rule for f in found}

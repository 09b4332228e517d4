"""check with its repair, and plans that cannot be: what the command line and Python answer."""

import json

import pytest

import cubecore
from cubecore.errors import NoLegalTilingError, RequestError
from cubecore.presented.text import number
from cubecore.tiling.model.export import load_tiling, tiling_data
from cubecore.tiling.model.tcubetiling import FIELDS
from tiling.cases import problem, tiling
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, names_in

SHAPE = ("--m", 256, "--n", 512, "--k", 1024)
KEYS = {"legal", "findings", "advice", "repaired", "changed", "proven", "conflict"}


@pytest.fixture
def file(tmp_path):
    """Return what writes a tiling to a file and gives its path."""

    def write(name="t.json", **changes):
        path = tmp_path / name
        path.write_bytes(tiling_data(tiling(**changes), name))
        return path

    return write


def test_a_finding_says_all_there_is(file):
    answer = cli("check", file(dbL0C=2), *SHAPE, "--json")
    assert answer.code == FOUND
    assert answer.json["findings"] == [
        {
            "rule": "L0C-CAPACITY",
            "used": 262144,
            "limit": 131072,
            "relation": "<=",
            "unit": "B",
            "terms": "2 x 128 x 256 x float32",
            "message": "L0C-CAPACITY: 2 x 128 x 256 x float32 = 262144 B, Ascend910B3 allows "
            "131072 B: over by 131072 B; largest dbL0C here is 1",
            "remedy": "largest dbL0C here is 1",
            "source": "TCubeTiling structure, newer edition, table 2",
            "rows": ["000/t2/l0c-capacity"],
            "tiling_changes": {"dbL0C": 1},
            "problem_changes": {},
        }
    ]


LETTER = "Read literally, the vendor's page also rejects this ({}); see --reading documented"


@pytest.mark.parametrize(
    ("fields", "options", "names"),
    [
        ({"baseN": 128, "depthA1": 4, "depthB1": 4}, (), []),
        ({"depthA1": 4, "depthB1": 4}, (), ["L0B-CAPACITY", "L0C-CAPACITY"]),
        # A full L1 is legal, though the tiling library keeps 256 B of it.
        ({"baseN": 128, "depthA1": 16, "stepKa": 8, "depthB1": 16, "stepKb": 8}, (), []),
        ({"baseN": 128, "transLength": 8}, (), ["TRANS-LENGTH"]),
        ({"baseN": 128, "transLength": 8}, ("--edition", "older"), ["TRANS-LENGTH"]),
        ({"baseN": 128, "transLength": 8}, ("--reading", "documented"), []),
    ],
)
def test_check_says_where_the_letter_refuses_more(file, fields, options, names):
    path = file(**fields)
    answer = cli("check", path, *SHAPE, *options)
    lines = [line for line in answer.out.splitlines() if "literally" in line]
    assert lines == ([LETTER.format(", ".join(names))] if names else [])
    assert cli("check", path, *SHAPE, *options, "--json").json["letter"] == names
    if "--reading" not in options:
        letter = cli("check", path, *SHAPE, *options, "--reading", "documented", "--json")
        assert [finding["rule"] for finding in letter.json["findings"]] == names


def test_a_rule_that_is_broken_anyway_is_none_of_the_letters(file):
    answer = cli("check", file(dbL0C=2, baseM=24), *SHAPE, "--json").json
    assert [finding["rule"] for finding in answer["findings"]] == ["BASE-M-ALIGNMENT"]
    assert answer["letter"] == ["L0B-CAPACITY"]
    both = cli("check", file(dbL0C=2), *SHAPE, "--repair", "--json").json
    assert ([finding["rule"] for finding in both["findings"]], both["letter"]) == (
        ["L0C-CAPACITY"],
        ["L0B-CAPACITY"],
    )


def test_repair_prints_what_it_changes_and_what_is_proven(file):
    answer = cli("check", file(baseM=24), *SHAPE, "--repair")
    assert answer.code == FOUND
    us = number(cubecore.time(problem(), tiling=tiling()).timeline.us)
    assert answer.out.splitlines()[:8] == [
        "illegal: 1 rule broken",
        "  BASE-M-ALIGNMENT: baseM = 24, must be a multiple of 16; set baseM to 16",
        "    TCubeTiling structure, newer edition, table 2",
        LETTER.format("L0B-CAPACITY"),
        "",
        f"Repaired by 1 change, predicted {us} us",
        "  baseM  24  ->  128  BASE-M-ALIGNMENT",
        "  No repair changes fewer fields, and none of this size is faster",
    ]


def test_repair_as_json(file):
    answer = cli("check", file(baseM=24), *SHAPE, "--repair", "--json")
    assert answer.code == FOUND
    assert set(answer.json) >= KEYS
    assert answer.json["repaired"] == tiling().to_json()
    (change,) = answer.json["changed"]
    assert {key: change[key] for key in ("field", "from", "to", "rule", "rules")} == {
        "field": "baseM",
        "from": 24,
        "to": 128,
        "rule": "BASE-M-ALIGNMENT",
        "rules": ["BASE-M-ALIGNMENT"],
    }
    assert change["message"].startswith("BASE-M-ALIGNMENT: baseM = 24, ")
    assert answer.json["proven"] == {"fewest": True, "fastest": True}
    assert answer.json["conflict"] is None


def test_a_legal_tiling_needs_no_repair(file):
    answer = cli("check", file(), *SHAPE, "--repair", "--json")
    assert answer.code == DONE
    assert answer.json["repaired"] == tiling().to_json()
    assert answer.json["changed"] == []
    text = cli("check", file(), *SHAPE, "--repair")
    assert text.out == cli("check", file(), *SHAPE).out


@pytest.mark.parametrize("name", ["fixed.json", "fixed.bin", "fixed.hex", "fixed.h"])
def test_the_repair_is_written_in_every_form(file, tmp_path, name):
    out = tmp_path / name
    assert cli("check", file(baseM=24), *SHAPE, "--repair", "--out", out).code == FOUND
    assert load_tiling(out) == tiling()
    assert cli("check", out, *SHAPE).code == DONE


def test_kept_fields_that_no_tiling_has(file):
    path = file(baseM=256, baseN=256)
    keep = ("--keep", "baseM", "--keep", "baseN")
    answer = cli("check", path, *SHAPE, "--repair", *keep)
    assert answer.code == FOUND
    assert (
        answer.out.splitlines()[-5:-1]
        == [
            "No tiling satisfies these together; without any one of them there is one",
            "  L0C-CAPACITY (C's base blocks fit L0C)",
            "  baseM = 256",
            "  baseN = 256",
        ]
        or "Advice" in answer.out
    )
    as_json = cli("check", path, *SHAPE, "--repair", *keep, "--json").json
    assert as_json["repaired"] is None
    assert as_json["changed"] == []
    assert as_json["conflict"]["minimal"]
    assert [c["name"] for c in as_json["conflict"]["constraints"]] == [
        "L0C-CAPACITY",
        "baseM",
        "baseN",
    ]


def test_nothing_is_written_where_nothing_is_repaired(file, tmp_path):
    path = file(baseM=256, baseN=256)
    before = names_in(tmp_path)
    arguments = ("--repair", "--keep", "baseM", "--keep", "baseN", "--out", tmp_path / "o.json")
    assert cli("check", path, *SHAPE, *arguments).code == FOUND
    assert names_in(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--keep", "baseM"), "--keep needs --repair"),
        (("--out", "x.json"), "--out needs --repair"),
        (
            ("--repair", "--keep", "basem"),
            "keep must name fields of TCubeTiling, got 'basem'; did you mean baseM?",
        ),
        (
            ("--repair", "--out", "no/x.json"),
            "cannot write --out no/x.json: no such file or directory",
        ),
    ],
)
def test_bad_requests(file, arguments, line):
    assert_refused(cli("check", file(), *SHAPE, *arguments), line)


def test_the_same_in_python():
    found = cubecore.check(tiling(baseM=24), problem(), repair=True)
    assert not found.legal
    assert found.repair.tiling == tiling()
    assert found.conflict is None
    assert json.loads(json.dumps(found.to_json())) == found.to_json()
    assert cubecore.check(found.repair.tiling, problem()).legal
    with pytest.raises(RequestError, match="keep must name fields of TCubeTiling, got 'x'"):
        cubecore.check(tiling(), problem(), repair=True, keep=["x"])


@pytest.mark.parametrize("edition", ["000", "001"])
@pytest.mark.parametrize("reading", ["effective", "documented"])
def test_the_repair_follows_edition_and_reading(edition, reading):
    how = {"edition": edition, "reading": reading}
    found = cubecore.check(tiling(baseM=256, baseN=512), problem(), repair=True, **how)
    assert cubecore.check(found.repair.tiling, problem(), **how).legal


# --- plans that cannot be


def test_no_plan_names_what_conflicts():
    answer = cli("plan", *SHAPE, "--set", "l0a_bytes=256")
    assert (answer.code, answer.out) == (FOUND, "")
    assert answer.err == (
        "no legal tiling for 256 x 512 x 1024 on Ascend910B3: L0A-CAPACITY (A's base blocks fit "
        "L0A) and l0a_bytes = 256 exclude each other; drop any one of them\n"
    )
    as_json = cli("plan", *SHAPE, "--set", "l0a_bytes=256", "--json")
    assert as_json.code == FOUND
    error = as_json.json["error"]
    assert error["rule"] == "L0A-CAPACITY"
    assert [c["name"] for c in error["conflict"]["constraints"]] == ["L0A-CAPACITY", "l0a_bytes"]
    assert all(set(c["without"]) == set(FIELDS) for c in error["conflict"]["constraints"])


def test_no_plan_in_python():
    with pytest.raises(NoLegalTilingError) as caught:
        cubecore.plan(problem(), settings={"l1_bytes": "600", "l1_user_bytes": "600"})
    assert caught.value.rule == "L1-CAPACITY"
    named = [c.name for c in caught.value.conflict.constraints]
    assert named == ["L1-CAPACITY", "l1_bytes, l1_user_bytes"]


def test_bad_requests_are_still_bad_requests():
    assert cli("plan", *SHAPE, "--set", "l0a_bytes=-1").code == BAD_REQUEST

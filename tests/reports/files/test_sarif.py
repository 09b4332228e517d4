"""Findings as SARIF: what a reader of the format relies on."""

import json

from cubecore.isa.program.tree import Location
from cubecore.machine.finding_kinds import FINDING_IDS
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding
from cubecore.reports.files.sarif import sarif_bytes


def access(how, pipe, line):
    where = Location("k.py", line, "kernel")
    return FindingAccess(how, "vadd", "dst", pipe, "UB", 0, 32, "core 0 AIV0", where)


def document(*findings):
    return json.loads(sarif_bytes(findings))


def test_a_race_has_both_places():
    accesses = access("write", "MTE2", 3), access("read", "V", 7)
    where = Location("k.py", 7, "kernel")
    finding = SanitizerFinding("race-raw", "a sentence", "vadd", where, "core 0 AIV0", 4, accesses)
    (run,) = document(finding)["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "race-raw"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "race-raw"
    assert result["message"] == {"text": "a sentence"}
    assert result["occurrenceCount"] == 4
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "k.py"},
        "region": {"startLine": 7},
    }
    (other,) = result["relatedLocations"]
    assert other["physicalLocation"]["region"] == {"startLine": 3}
    assert other["message"] == {"text": "write on MTE2"}


def test_a_finding_without_a_line_has_no_place():
    finding = SanitizerFinding(
        "uninitialised", "m", "end of kernel", Location("kernel", 0, "c"), "all cores"
    )
    (result,) = document(finding)["runs"][0]["results"]
    assert (result["locations"], result["relatedLocations"]) == ([], [])


def test_a_file_is_named_as_a_uri():
    finding = SanitizerFinding(
        "overlap", "m", "vadd", Location("../my k%1.py", 3, "c"), "core 0 AIV0"
    )
    (result,) = document(finding)["runs"][0]["results"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "../my%20k%251.py"}


def test_every_kind_is_a_rule():
    (run,) = document()["runs"]
    assert run["results"] == []
    rules = run["tool"]["driver"]["rules"]
    assert {r["id"]: r["properties"]["check"] for r in rules} == FINDING_IDS
    assert document()["version"] == "2.1.0"

"""Pages of the documentation: one path for a name, an address where the site is known."""

import json
from dataclasses import replace

import pytest

import cubecore
from cubecore import manual
from cubecore.reports.files.sarif import sarif_bytes
from workflows.command import cli


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("l0c-capacity", "rules/L0C-CAPACITY.html"),
        ("Mmad", "instructions/mad.html"),
        ("Reg::Muls", "registers.html#muls"),
        ("MicroAPI::GatherMask", "registers.html#squeeze"),
        ("asc_unsqueeze", "registers.html#unsqueeze"),
        ("RACE-RAW", "findings.html#race-raw"),
        ("basem", "fields.html#basem"),
        ("IDLE-CORES", "words.html#advice-idle-cores"),
        ("aiv", "words.html#ai-core"),
        ("910b3", "chips.html"),
        ("rms_norm", "words.html#operator-rms_norm"),
        ("MOE_PERMUTE", "words.html#operator-moe_permute"),
        ("asc_get_status", "instructions.html#names-that-are-not-modelled"),
    ],
)
def test_an_explanation_has_its_page(name, page):
    assert cubecore.explain(name).page == page
    assert cubecore.explain(name).to_json()["manual"] == page


@pytest.mark.parametrize(
    ("root", "address"),
    [
        ("", None),
        ("https://docs.example/cubecore/", "https://docs.example/cubecore/findings.html#deadlock"),
        ("/built/site", "file:///built/site/findings.html#deadlock"),
    ],
)
def test_an_address_needs_the_sites_root(root, address, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wrong = replace(cubecore.plan(m=64, n=64, k=64).tiling, baseM=17)
    (tmp_path / "bad.json").write_text(json.dumps(wrong.to_json()), "utf-8")
    monkeypatch.setenv(manual.VARIABLE, root)
    assert manual.address("finding", "deadlock") == address
    described = json.loads(sarif_bytes(()))["runs"][0]["tool"]["driver"]["rules"]
    (rule,) = (rule for rule in described if rule["id"] == "deadlock")
    assert rule.get("helpUri") == address
    assert (address or "deadlock: a finding") in cli("explain", "deadlock").out
    found = cli("check", "bad.json", "--m", 64, "--n", 64, "--k", 64).out
    rule_page = f"  BASE-M-ALIGNMENT: {(address or '').replace('findings.html#deadlock', '')}"
    assert (f"{rule_page}rules/BASE-M-ALIGNMENT.html\n" in found) == (address is not None)
    assert rule["help"]["text"].startswith("break the cycle")

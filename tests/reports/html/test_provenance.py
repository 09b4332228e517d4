"""Every page says at its top what made it, when, of which files, about which chip."""

import json
import re
from hashlib import sha256
from html import unescape

import pytest

import cubecore
from cubecore.presented.provenance import PLACE, PageProvenance, with_provenance
from cubecore.version import __version__
from reports.browser import browser, chromium
from workflows.command import DONE, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

SHAPE = ("--m", "64", "--n", "64", "--k", "64")
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 100, "head_dim": 64,
}  # fmt: skip
TEXT = "Ascend910B3"


def rows(page):
    """Return the terms and descriptions of a page's provenance."""
    (found,) = re.findall(r'<dl id="provenance">(.*?)</dl>', page, re.DOTALL)
    pairs = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", found)
    return {unescape(name): unescape(text) for name, text in pairs}


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("verb", "words", "inputs", "chip"),
    [
        ("time", SHAPE, (), TEXT),
        ("time", (*SHAPE, "--tiling", "a b.json"), ("a b.json",), TEXT),
        ("time", (*SHAPE, "--chip", "my.toml"), ("my.toml",), "Mine"),
        ("compare", ("a b.json", "t.json"), ("a b.json", "t.json"), TEXT),
        ("tune", ("t.json",), ("t.json",), TEXT),
        ("model", ("config.json", "--phase", "decode", "--batch", "1", "--seq", "64"),
         ("config.json",), TEXT),
        ("validate", ("--points", "points.jsonl"), ("points.jsonl",), None),
    ],
)  # fmt: skip
def test_the_commands_pages_say_where_they_come_from(folder, verb, words, inputs, chip):
    for name in ("a b.json", "t.json"):
        assert cli("plan", *SHAPE, "--out", name).code == DONE
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    (folder / "my.toml").write_text('name = "Mine"\nbase = "Ascend910B3"\n', "utf-8")
    (folder / "points.jsonl").write_text("", "utf-8")
    answer = cli(verb, *words, "--report", "r.html")
    assert answer.code == DONE, answer.err
    told = rows((folder / "r.html").read_text("utf-8"))
    line = " ".join(f"'{word}'" if " " in word else word for word in words)
    assert told.pop("made by") == f"cubecore {verb} {line} --report r.html"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", told.pop("at"))
    digests = {name: sha256((folder / name).read_bytes()).hexdigest()[:16] for name in inputs}
    files = ", ".join(f"{name} (sha256 {digest})" for name, digest in digests.items())
    assert told.pop("of") == (files or "no files")
    assert told.pop("chip", None) == chip
    assert told == {"cubecore": __version__}


def test_a_folder_is_told_by_its_small_files(folder):
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    words = ("model", ".", "--phase", "decode", "--batch", "1", "--seq", "64", "--report")
    assert cli(*words, "a.html").code == DONE
    with (folder / "weights.bin").open("wb") as made:
        made.truncate(1 << 21)
    assert cli(*words, "b.html").code == DONE
    (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": 128}), "utf-8")
    assert cli(*words, "c.html").code == DONE
    a, b, c = (rows((folder / f"{name}.html").read_text("utf-8"))["of"] for name in "abc")
    assert a.startswith(". (sha256 ")
    assert a != c
    assert b != a  # a.html lies in the folder by then, and is a small file of it


def test_a_report_of_python_says_so(tmp_path):
    cubecore.time(m=64, n=64, k=64).report(str(tmp_path / "r.html"))
    told = rows((tmp_path / "r.html").read_text("utf-8"))
    assert told["made by"] == "report of a Timed in Python"
    assert told["of"] == "no files"


def test_names_are_text_and_a_page_has_one_place():
    hostile = "<b>&\"'</dl>"
    page = f"<p>x</p>{PLACE}<p>{PLACE}</p>"
    made = with_provenance(page, PageProvenance(hostile, "now", {hostile: "0" * 64}))
    assert made.count("<dd>") == 4
    assert "<b>" not in made
    assert made.endswith(f"<p>{PLACE}</p>")


def test_the_page_of_a_validation_does_not_overflow(tmp_path, published):
    program = chromium()
    if program is None:
        pytest.skip("no browser")
    path = tmp_path / "v.html"
    published.report(str(path))
    with browser(program, tmp_path / "profile") as tab:
        for width in (1400, 400):
            tab.open(path, width=width)
            assert tab.ask("document.documentElement.scrollWidth - innerWidth") <= 0
            first = "document.querySelector('h2').textContent"
            assert tab.ask(first) == "How far off are predictions?"

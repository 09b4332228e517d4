"""Outputs are files of their own: no input, no other output, and no file that lies beside them."""

import json
import os
import shutil

import click
import pytest

import cubecore
from cubecore.cli.commands import main
from cubecore.cli.values import InputFile, OutputFile
from cubecore.errors import RequestError
from cubecore.workflows.data.operands import OperandFiles
from cubecore.workflows.sweep.resume import GrowingFile
from workflows.command import (
    DONE,
    PROBLEM,
    assert_refused,
    cli,
    names_in,
    shell,
)
from workflows.folders import folder, shelf  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures are arguments

SCRIPT = "from pathlib import Path\nPath('began').touch()\n"
PAIRS = [
    (("plan", "--store", "a", "--out", "a", "--queries", "q"), "--store", "--out"),
    (("plan", "--queries", "q", "--out", "q"), "--out", "--queries"),
    (("plan", "--queries", "q", "--store", "q"), "--store", "--queries"),
    (("check", "good.json", "--repair", "--out", "good.json"), "--out", "TILING"),
    (("run", "--tiling", "good.json", "--out", "good.json"), "--out", "--tiling"),
    (("run", "--tiling", "good.json", "--sarif", "good.json"), "--sarif", "--tiling"),
    (("run", "--a-file", "a.npy", "--out", "a.npy"), "--out", "--a-file"),
    (("run", "--scale-b-file", "a.npy", "--sarif", "a.npy"), "--sarif", "--scale-b-file"),
    (("run", "--out", "new", "--sarif", "new"), "--sarif", "--out"),
    (("run", "s.py", "--sarif", "s.py"), "--sarif", "SCRIPT"),
    (("time", "s.py", "--metrics", "s.py"), "--metrics", "SCRIPT"),
    (("time", "--tiling", "good.json", "--report", "good.json"), "--report", "--tiling"),
    (("time", "--tiling", "good.json", "--trace", "good.json"), "--trace", "--tiling"),
    (("time", "--report", "new", "--metrics", "new"), "--metrics", "--report"),
    (("compare", "other.json", "good.json", "--report", "good.json"), "--report", "SECOND"),
    (("compare", "good.json", "other.json", "--trace", "good.json"), "--trace", "FIRST"),
    (("validate", "--points", "q", "--report", "q"), "--report", "--points"),
    (("sweep", "m=16", "--tiling", "q.svg", "--plot", "q.svg"), "--plot", "--tiling"),
    (("store", "export", "q", "--out", "q"), "--out", "PATH"),
]


@pytest.fixture
def files(shelf, folder):
    """Stand in a folder with some of the shelf's files, queries and a script."""
    for name in ("good.json", "other.json", "a.npy", "two.safetensors"):
        shutil.copy(shelf / name, folder)
    query = json.dumps({"m": 16, "n": 16, "k": 16}) + "\n"
    for name in ("q", "q.svg"):
        (folder / name).write_text(query)
    (folder / "s.py").write_text(SCRIPT)
    return folder


def held(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("words", "subject", "other"), PAIRS)
def test_an_output_is_a_file_of_its_own(files, words, subject, other):
    before = held(files)
    path = words[words.index(subject) + 1]
    line = f"{subject} must name another file than {other}, got {path}"
    assert_refused(cli(*words), line)
    as_json = cli(*words, "--json")
    assert (as_json.code, as_json.err, as_json.json["error"]["message"]) == (2, "", line)
    assert held(files) == before


@pytest.mark.parametrize("how", ["link", "hard", "relative", "absolute", "folder", "dangling"])
def test_another_name_of_the_file_is_the_file(files, how):
    name, given = "other name", "good.json"
    if how == "link":
        (files / name).symlink_to("good.json")
    elif how == "hard":
        (files / name).hardlink_to(files / "good.json")
    elif how == "relative":
        (files / "sub").mkdir()
        name = "sub/../good.json"
    elif how == "absolute":
        name = str(files / "good.json")
    elif how == "folder":
        (files / "sub").symlink_to(files)
        name = "sub/good.json"
    else:
        (files / name).symlink_to("new")
        given = "new"
    before = held(files)
    if how == "dangling":  # two outputs that are not there yet
        arguments, first = ("time", *PROBLEM, "--report", given, "--trace", name), "--report"
    else:
        arguments, first = ("time", *PROBLEM, "--tiling", given, "--trace", name), "--tiling"
    line = f"--trace must name another file than {first}, got {name}, the same file as {given}"
    assert_refused(cli(*arguments), line)
    assert held(files) == before


def test_a_tensor_is_in_its_file(files):
    words = ("run", *PROBLEM, "--a-file", "two.safetensors:w", "--out", "two.safetensors")
    before = held(files)
    assert_refused(cli(*words), "--out must name another file than --a-file, got two.safetensors")
    operands = OperandFiles(a="two.safetensors:w")
    with pytest.raises(RequestError) as refused:
        cubecore.run(m=16, n=16, k=16, operands=operands, out="./two.safetensors")
    assert str(refused.value) == (
        "--out must name another file than --a-file, got ./two.safetensors, the same file as "
        "two.safetensors"
    )
    assert held(files) == before


def test_standard_input_is_a_file_too(files):
    before = held(files)
    with (files / "q").open() as given:
        answer = shell("plan", "--queries", "-", "--out", "q", stdin=given)
    line = "--out must name another file than --queries, got q, the same file as -"
    assert_refused(answer, line)
    assert held(files) == before


def test_nowhere_may_be_named_twice(files):
    assert files
    words = ("time", *PROBLEM, "--report", os.devnull, "--metrics", os.devnull)
    assert cli(*words).code == DONE
    assert cli("plan", "--queries", "q", "--out", os.devnull).code == DONE
    assert os.path.exists(os.devnull)  # noqa: PTH110 - Path.exists of a device
    assert not os.path.isfile(os.devnull)  # noqa: PTH113


def listed(group, name=""):
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            yield from listed(command, f"{name}{word} ")
        else:
            yield f"{name}{word}", command


@pytest.mark.parametrize(("name", "command"), list(listed(main)))
def test_every_file_of_a_command_is_declared(name, command):
    """What its help calls a file is an input or an output."""
    for param in command.params:
        text = getattr(param, "help", None) or ""
        if any(word in text for word in (" file", ".npy", "the same for", ".json,")):
            declared = isinstance(param.type, (InputFile, OutputFile))
            assert declared or param.multiple, f"{name} {param.name}"


def test_every_command_is_listed():
    assert {"plan", "c++", "store show"} <= {name for name, _ in listed(main)}


MINE = ("q.part", "o.part", "o.part.of", "o.tmp", ".o.part")


@pytest.mark.parametrize("link", [False, True])
def test_files_beside_an_output_are_left_alone(files, link):
    root = files / "mine"
    root.mkdir()
    (files / "precious").write_text("precious")
    for name in MINE:
        if link:
            (root / name).symlink_to(files / "precious")
        else:
            (root / name).write_text("mine")
    before = held(files)
    for words in (("plan", "--queries", "q"), ("run", *PROBLEM), ("plan", *PROBLEM)):
        out = root / ("o.json" if words[1] == "--m" and words[0] == "plan" else "o")
        assert cli(*words, "--out", out).code == DONE
        out.unlink()
    assert held(files) == before
    assert names_in(root) == sorted(MINE)
    assert all((root / name).is_symlink() == link for name in MINE)


def journal_of(root, out):
    """Return the name that a sweep's journal has: what a sweep that stopped leaves."""
    before = set(names_in(root))
    with GrowingFile(str(out), "asked"):
        made = set(names_in(root)) - before
    (journal,) = (root / name for name in made if name.endswith(".journal"))
    for name in made:
        (root / name).unlink()
    return journal


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_file_in_the_journals_place_is_not_touched(files, kind):
    out = files / "o"
    journal = journal_of(files, out)
    (files / "precious").write_text("precious")
    if kind == "file":
        journal.write_text("mine")
        line = f"--out o must find a journal of its own in {journal}, got another file"
    elif kind == "link":
        journal.symlink_to(files / "precious")
        line = "cannot write --out o: too many levels of symbolic links"
    else:
        journal.mkdir()
        line = "cannot write --out o: is a directory"
    before = held(files)
    assert_refused(cli("plan", "--queries", "q", "--out", "o"), line)
    assert held(files) == before


@pytest.mark.parametrize("name", ["../precious", "precious", ".cubecore-x/../precious.part"])
def test_a_journal_names_no_file_of_the_users(files, name):
    out = files / "o"
    journal = journal_of(files, out)
    (files / "precious").write_text("precious")
    journal.write_text(f"cubecore's journal of o\n{name}\nasked")
    before = held(files)
    assert cli("plan", "--queries", "q", "--out", "o").code == DONE
    del before[journal]
    after = held(files)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) == {out}


def test_an_answer_file_has_the_usual_rights(files):
    umask = os.umask(0o027)
    try:
        assert cli("plan", "--queries", "q", "--out", "o").code == DONE
        assert (files / "o").stat().st_mode & 0o777 == 0o640
        (files / "o").chmod(0o604)
        assert cli("plan", "--queries", "q", "--out", "o").code == DONE
        assert (files / "o").stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(umask)

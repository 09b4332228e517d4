"""Help, findings and advice in Chinese: every text has its line, and no line is of a text gone."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cubecore
from cubecore.advice.kernel_rules.advise import rules
from cubecore.cli.commands import main
from cubecore.cli.front_page import GROUPS, OPTIONS, PURPOSE
from cubecore.cli.verb import _GROUPS
from cubecore.cli.zh.translation import (
    SECTIONS,
    catalogue,
    columns,
    filled,
    sentence,
    translated,
)
from cubecore.machine.finding_kinds import KINDS
from cubecore.tiling.rules.advice import MEANINGS
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli

SOURCE = Path(inspect.getfile(cubecore)).parent
DIAGNOSIS = Path(__file__).parents[1] / "frontends" / "diagnosis"
TEXTS = tomllib.loads((DIAGNOSIS / "texts.toml").read_text("utf-8"))
TEXTS |= {
    f"remedies of {dialect}": {kind: text.partition(": ")[2] for kind, text in texts.items()}
    for dialect, texts in tomllib.loads((DIAGNOSIS / "remedies.toml").read_text("utf-8")).items()
}
FAULTS = tomllib.loads((DIAGNOSIS / "single_faults.toml").read_text("utf-8"))
TEXTS |= {
    f"single faults of {dialect}": {
        f"{name} {number}": text.partition(": ")[2]
        for name, texts in by_name.items()
        for number, text in enumerate(texts)
        if name != "work_too_small"  # is refused: its sentence is an error's
    }
    for dialect, by_name in FAULTS.items()
}
CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
ENGLISH = re.compile(r"\b(must|the|that|which|with|before|behind|have|got|its|it|are|is)\b")
RACE = """
import numpy as np
import cubecore

@cubecore.kernel
def double(core, a, c):
    x = core.ubuf("float", 64)
    core.asc_copy_gm2ub(x, a, 256)
    core.asc_add(x, x, x, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(c, x, 256)
    core.asc_sync()

a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
double[1](a, c)
"""


def helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    """Yield every text of a command's help, and of those below it."""
    with click.Context(command, info_name=name, parent=parent) as context:
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            yield " ".join(paragraph.split())
        yield from (each.help for each in command.params if getattr(each, "help", None))
        for below in command.list_commands(context) if isinstance(command, click.Group) else ():
            yield from helps(command.get_command(context, below), below, context)


def declared() -> dict[str, set[str]]:
    """Return the whole texts that are declared, by section."""
    titles = {"Options", *GROUPS, *_GROUPS, *OPTIONS.values(), PURPOSE}
    of_rules = {t for r in rules().values() for t in (r.counts, r.threshold, r.remedy)}
    of_kinds = {text for kind in KINDS.values() for text in (kind.text, kind.remedy)}
    return {
        "help": ({*helps(main, "cubecore", None)} | titles) - {""},
        "advice": of_rules | {*MEANINGS.values()},
        "findings": of_kinds,
        "errors": set(),
        "frame": set(),
    }


@pytest.mark.parametrize("section", SECTIONS)
def test_every_declared_text_has_a_chinese_line(section):
    lines = catalogue(section)
    assert declared()[section] - set(lines) == set()
    assert all(CHINESE.search(chinese) for chinese in lines.values())


def literals() -> str:
    """Return all texts of the source, those of f-strings without their values."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            found += [text] if isinstance(text, str) else []
    for path in (SOURCE / "frontends" / "cpp" / "include").rglob("*.h"):
        found += re.findall(r'"([^"]*)"', path.read_text("utf-8"))
    return "\n".join(found)


def test_no_line_is_of_a_text_that_is_gone():
    """What is no whole text has pieces that the source says, or that kernels are told."""
    assert set(catalogue("help")) - declared()["help"] == set()
    texts = (text for of_dialect in TEXTS.values() for text in of_dialect.values())
    said, whole = "\n".join([literals(), *texts]), set().union(*declared().values())
    gone = []
    for section in ("advice", "findings"):
        for english in set(catalogue(section)) - whole:
            pieces = (piece.strip(" ,;:()") for piece in re.split(r"\{\w+\}", english))
            gone += [english for piece in pieces if len(piece) > 5 and piece not in said]
    assert sorted(set(gone)) == []


def test_places_of_a_template_are_those_of_its_chinese():
    for section in SECTIONS:
        for english, chinese in catalogue(section).items():
            places = re.findall(r"\{(\w+)\}", english)
            assert len(places) == len(set(places)), english
            assert set(re.findall(r"\{(\w+)\}", chinese)) <= set(places), english


@pytest.mark.parametrize(
    ("dialect", "kind"), [(dialect, kind) for dialect, texts in TEXTS.items() for kind in texts]
)
def test_the_text_of_every_kind_of_finding_is_chinese(dialect, kind):
    """The texts are those that kernels of each dialect are held to."""
    english = TEXTS[dialect][kind]
    chinese = sentence("findings", english)
    assert CHINESE.search(chinese)
    assert not ENGLISH.search(chinese), chinese
    for name in re.findall(r"\w+\.(?:cpp|py):\d+", english):
        assert name in chinese


# --- on the command line


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(RACE, encoding="utf-8")
    return "own.py"


def test_a_race_is_told_in_chinese(script):
    answer = cli("run", script, "--lang", "zh")
    lines = answer.out.splitlines()
    assert (answer.code, lines[0], lines[3]) == (FOUND, "own.py：失败：1 项检查结果", "检查结果：1")
    assert lines[4] == (
        "  race-raw: asc_add (vadd) at own.py:9 可能在 asc_copy_gm2ub (copy_gm_to_ubuf) at "
        "own.py:8 写入之前读取 x (UB[0, 256))；在 asc_copy_gm2ub at own.py:8 之后加 "
        'core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)，并在 asc_add at own.py:9 之前加 '
        'core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)（1 次；block 0 (core 0 AIV0)）'
    )


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not k.endswith(("_s", "bytes"))}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def test_json_and_exit_codes_have_no_language(script, monkeypatch):
    english = cli("run", script, "--json")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    chinese = cli("run", script, "--json")
    assert (chinese.code, without_times(chinese.json)) == (FOUND, without_times(english.json))
    assert (cli("plan").code, cli("plan").err) == (BAD_REQUEST, "缺少 --m、--n、--k\n")
    assert cli("run", script, "--csv").out == cli("run", script, "--csv", "--lang", "en").out


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_MESSAGES": "zh_TW.UTF-8"}, True),
    ],
)
def test_the_environment_chooses_as_for_other_programs(monkeypatch, variables, chinese):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for arguments in (("--help",), ("plan", "--help")):
        assert bool(CHINESE.search(cli(*arguments).out)) is chinese
    assert not CHINESE.search(cli("plan", "--help", "--lang", "en").out)
    assert CHINESE.search(cli("plan", "--help", "--lang=zh").out)


def test_an_unknown_language_is_refused():
    line = "--lang must be en or zh, got 'fr'"
    assert_refused(cli("chips", "--lang", "fr"), line)


def test_help_in_chinese_has_every_option_and_fits_the_page(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with click.Context(main) as context:
        for name in main.list_commands(context):
            english, chinese = cli(name, "--help").out, cli(name, "--help", "--lang", "zh").out
            options = re.findall(r"^  (--[a-z][-\w]*)", english, re.MULTILINE)
            assert [option for option in options if f"  {option}" not in chinese] == []
            wide = [line for line in chinese.splitlines() if columns(line) > 80]
            assert [line for line in wide if CHINESE.search(line)] == []


def test_lines_break_between_chinese_characters_and_not_before_a_stop():
    lines = filled("按每条规则检查文件中的 Tiling；结束。", 12, "", "")
    assert "".join(lines).replace(" ", "") == "按每条规则检查文件中的Tiling；结束。"
    assert all(columns(line) <= 14 for line in lines)
    assert not any(line.startswith(("；", "。")) for line in lines)


def test_a_text_without_a_translation_stays():
    assert (
        translated("  S  140,841  37%\nno such heading\n") == "  S  140,841  37%\nno such heading\n"
    )
    assert cli("chips", "Ascend910B3", "--lang", "zh").code == DONE

"""The help of all commands is made without them, and says of each what it says of itself."""

import json
import platform
import re
import shlex
import shutil
import subprocess

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from cubecore.cli.commands import main
from cubecore.cli.front_page import (
    EXAMPLES,
    GROUPS,
    OPTIONS,
    OTHERS,
    PURPOSE,
    front_page,
    summaries,
    verbs,
)


@pytest.mark.parametrize("name", list(summaries()))
def test_a_summary_is_the_first_paragraph_of_the_command_s_own_help(name):
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert command.help is not None
    assert " ".join(command.help.split("\n\n")[0].split()) == summaries()[name]


def test_no_other_name_is_a_command():
    assert main.get_command(click.Context(main), "console") is None


def blank_lines_squeezed(text):
    return re.sub(r"\n\n+", "\n\n", text).strip()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("program", ["cubecore", "python -m cubecore", "a-long-name-of-a-program"])
def test_the_front_page_is_laid_out_as_click_lays_out_sections(program):
    """The oracle is Click's own layout of the same rows, at every width."""
    for width in range(50, 121):
        formatter = click.HelpFormatter(width=width)
        formatter.write_usage(program, "[OPTIONS] COMMAND [ARGS]...")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(PURPOSE)
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summaries()[name]) for name in names.split()])
        with formatter.section("Options"):
            formatter.write_dl(list(OPTIONS.items()))
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in EXAMPLES))
        expected = blank_lines_squeezed(formatter.getvalue())
        assert blank_lines_squeezed(front_page(program, width)) == expected


def test_every_command_stands_in_one_group(monkeypatch):
    """One that no group names stands with the chips and words."""
    grouped = [name for names in GROUPS.values() for name in names.split()]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= set(verbs())
    page = front_page("cubecore", 80)
    assert [name for name in verbs() if f"\n  {name} " not in page] == []
    others = " ".join(name for name in GROUPS[OTHERS].split() if name != "explain")
    monkeypatch.setitem(GROUPS, OTHERS, others)
    group = front_page("cubecore", 80).partition(f"\n{OTHERS}:")[2].partition("\n\n")[0]
    assert "\n  explain " in group


def leaves(context, command):
    """Yield each command below a group with its context."""
    if not isinstance(command, click.Group):
        yield context, command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        yield from leaves(below.context_class(below, info_name=name, parent=context), below)


VERBS = list(leaves(click.Context(main, info_name="cubecore"), main))


@pytest.mark.parametrize(("context", "verb"), VERBS, ids=lambda x: getattr(x, "name", ""))
def test_examples_of_a_help_are_lines_that_the_command_takes(context, verb):
    assert len(verb.examples) <= 2
    for line in verb.examples:
        words = shlex.split(re.split(r" (?:>|>>|&&|\|) ", line)[0])
        if "cubecore" in words[0] and verb.name != "env":
            start = len(context.command_path.split())
            assert " ".join(words[:start]) == context.command_path
            verb.make_context(verb.name, words[start:], parent=context.parent).close()


@pytest.mark.parametrize(("context", "verb"), VERBS, ids=lambda x: getattr(x, "name", ""))
def test_options_that_several_commands_have_stand_in_a_group(context, verb):
    text = verb.get_help(context)
    alone = text.partition("\nOptions:\n")[2].partition("\n\n")[0]
    shared = {"--m", "--chip", "--json", "--tiling", "--set", "--help", "--entry", "--blocks"}
    assert not shared & set(alone.split())


def invoked(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("words", [["plan"], ["store", "show"], ["c++"], []])
def test_help_of_a_command_is_what_its_own_option_prints(words):
    shown = invoked("help", *words)
    assert (shown.exit_code, shown.stderr) == (0, "")
    expected = invoked(*words, "--help").stdout
    assert shown.stdout.splitlines()[1:] == expected.splitlines()[1:]


def test_the_manual_page_has_every_command_and_option():
    page = invoked("help", "--man").stdout
    assert page.startswith(".TH CUBECORE 1")
    plain = page.replace("\\-", "-")
    for context, verb in VERBS:
        assert f".SS {context.command_path}" in plain
        for param in verb.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[0] in plain
    if shutil.which("groff"):
        made = ["groff", "-man", "-Tascii", "-ww"]
        printed = subprocess.run(made, input=page, text=True, capture_output=True, check=True)
        assert printed.stderr == ""


def test_help_of_no_command():
    refused = invoked("help", "nosuch")
    sentence = "no such command 'nosuch'; cubecore --help lists the commands\n"
    assert (refused.exit_code, refused.stderr) == (2, sentence)


def test_a_command_of_a_similar_name_is_suggested():
    refused = invoked("pln", "--m", "4")
    assert (refused.exit_code, refused.stderr) == (2, "no such command 'pln'; did you mean plan?\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell):
    printed = invoked("completion", shell)
    assert printed.exit_code == 0
    assert f"_CUBECORE_COMPLETE={shell}_complete" in printed.stdout


def test_completion_of_another_shell():
    refused = invoked("completion", "tcsh")
    sentence = "shell must be bash, zsh or fish, got 'tcsh'\n"
    assert (refused.exit_code, refused.stderr) == (2, sentence)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["plan", "--chip", "ascend910b"], "Ascend910B3"),
        (["plan", "--launch", ""], "mix"),
        (["explain", "l0c-c"], "L0C-CAPACITY"),
        (["explain", "copy_gm_to_c"], "copy_gm_to_cbuf"),
        (["help", "pl"], "plan"),
        (["check", "--format-a", "N"], "NZ"),
    ],
)
def test_values_are_completed(line, expected):
    *words, begun = line
    found = ShellComplete(main, {}, "cubecore", "_CUBECORE_COMPLETE").get_completions(words, begun)
    assert expected in [item.value for item in found]


def test_doctor_names_what_it_finds(monkeypatch):
    asked = invoked("doctor", "--json")
    found = json.loads(asked.stdout)
    assert found["found"]["Python"].startswith(platform.python_version())
    assert {"C++ compiler", "cache", "chip", "ziglang"} <= set(found["found"])
    monkeypatch.setenv("CUBECORE_CHIP", "nosuch.toml")
    wrong = invoked("doctor")
    assert wrong.exit_code == 1
    assert "chip: cannot read nosuch.toml: no such file" in wrong.stdout


def test_a_group_asked_for_help_among_options_answers_the_front_page():
    context = main.make_context("cubecore", [], resilient_parsing=True, terminal_width=66)
    assert main.get_help(context) == front_page("cubecore", 66)

"""A terminal gets folded lines, weight and colour; a pipe, and NO_COLOR, the plain text."""

import os
import pty
import re
import subprocess
import sys

import pytest

from cubecore.cli.terminal import emphasised, fitted
from workflows.command import cli

ESCAPE = re.compile(r"\x1b\[\d+m")
COMMAND = ("chips", "Ascend910B3")


def in_terminal(*words, columns, **environment):
    """Return what a command writes to a terminal of its own."""
    here, there = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "cubecore", *words], stdout=there, stdin=there, env=variables
    )
    os.close(there)
    parts = []
    while True:
        try:
            part = os.read(here, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(here)
    assert process.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 100])
def test_a_terminal_gets_lines_of_its_width(columns):
    shown = in_terminal(*COMMAND, columns=columns)
    plain = ESCAPE.sub("", shown)
    assert plain != shown
    words = [word for line in plain.split("\n") for word in line.split() if len(line) > columns]
    assert words == []
    assert plain.split() == cli(*COMMAND).out.split()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(environment):
    assert "\x1b" not in in_terminal(*COMMAND, columns=100, **environment)


def test_an_empty_no_color_is_none():
    assert "\x1b" in in_terminal(*COMMAND, columns=100, NO_COLOR="")


def test_a_pipe_gets_the_plain_text():
    assert "\x1b" not in cli(*COMMAND).out


@pytest.mark.parametrize(
    ("line", "width", "folded"),
    [
        ("short", 20, ["short"]),
        ("  name  value one two three four", 24, ["  name  value one two", "        three four"]),
        ("one two three four five six", 20, ["one two three four", "  five six"]),
        ("  " + "x" * 40, 20, ["  " + "x" * 40]),
        ("a " + "x" * 40 + " b", 20, ["a", "  " + "x" * 40, "  b"]),
        ("a" * 15 + "  b c d e f g", 20, ["a" * 15 + "  b c", "  d e f g"]),
    ],
)
def test_lines_are_folded_between_words_under_their_last_column(line, width, folded):
    assert fitted(line, width).split("\n") == folded


@pytest.mark.parametrize("width", range(20, 130, 7))
def test_folding_loses_no_word(width):
    text = cli(*COMMAND).out
    folded = fitted(text, width)
    assert folded.split() == text.split()
    long = [line for line in folded.split("\n") if len(line) > width]
    assert all(len(max(line.split(), key=len)) > width * 0.3 for line in long)


def test_layout_says_what_is_emphasised():
    text = "title\n\nHeading\n  name  each\n  a     1 us\nplain\n"
    assert emphasised(text).split("\n") == [
        "\x1b[1mtitle\x1b[0m", "", "\x1b[1mHeading\x1b[0m", "\x1b[2m  name  each\x1b[0m",
        "  a     1 us", "plain", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "colour"),
    [
        ("illegal: 1 rule broken", "31"),
        ("  L0A-CAPACITY: too much", "31"),
        ("FAILED: largest error 3", "31"),
        ("legal", "32"),
        ("verified: largest error 0", "32"),
    ],
)
def test_verdicts_have_a_colour(line, colour):
    assert emphasised(f"title\n{line}").split("\n")[1] == f"\x1b[{colour}m{line}\x1b[0m"

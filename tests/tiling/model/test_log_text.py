"""Tilings are read from the texts that operators, tools and people print."""

from dataclasses import replace

import pytest

from cubecore.errors import RequestError
from cubecore.tiling.model.export import parse_tiling
from cubecore.tiling.model.log_text import OPTIONAL, REQUIRED, LoggedTiling, tiling_of_text
from cubecore.tiling.model.tcubetiling import FIELDS
from tiling.cases import problem, tiling
from workflows.command import assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

TILING = replace(tiling(problem()), **OPTIONAL)
VALUES = {name: getattr(TILING, name) for name in REQUIRED}
LONG = {name: value for name, value in VALUES.items() if len(name) > 1}
ONE_K = {name: value for name, value in LONG.items() if name not in {"Ka", "Kb"}}
ALL = TILING.to_json()


def each(form, values=VALUES, between="\n"):
    pairs = values.items()
    return between.join(form.format(n=name, v=value, x=hex(value)) for name, value in pairs)


def snake(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_")


STYLES = {
    "equals": each("{n} = {v}"),
    "tight": each("{n}={v}", between=" "),
    "colons": each("{n}: {v}"),
    "commas": each("{n}:{v}", between=", "),
    "semicolons": each("{n}={v};", between=" "),
    "a member": each("tiling.{n} = {v};"),
    "a pointer": each("    tiling->{n}: {v}"),
    "nested members": each("tilingData.cubeTilingData.{n} = {v}"),
    "setters": each("tilingData.mmTiling.set_{n}({v});"),
    "getters": each("get_{n}() = {v}"),
    "a time before": each("[INFO] OP(34,python3):2024-05-01-10:11:12.123.456 [mm.cc:88] {n} = {v}"),
    "a level before": each("[DEBUG][2024/05/01 10:11:12] op_name matmul: {n}: {v}"),
    "brackets": each("{n}[{v}]", between=" "),
    "parentheses": each("{n}({v})", between=", "),
    "quoted": each('"{n}": "{v}"', between=",\n"),
    "JSON in a line": "result: {" + each('"{n}": {v}', between=", ") + "} done",
    "JSON inside of JSON": '{"op": "Matmul", "tiling": {' + each('"{n}": {v}', between=", ") + "}}",
    "JSON without an end": "{" + each('"{n}": {v}', between=", "),
    "Python's dict": "{" + each("'{n}': {v}", between=", ") + "}",
    "Python's record": "TCubeTiling(" + each("{n}={v}", between=", ") + ")",
    "a CSV": ",".join(VALUES) + "\n" + ",".join(map(str, VALUES.values())),
    "a table with tabs": "\t".join(VALUES) + "\n" + "\t".join(map(str, VALUES.values())),
    "Markdown's rows": each("| {n} | {v} |", LONG) + "\n| M: {M} | N: {N} |".format(**VALUES),
    "Markdown's table": f"| {' | '.join(VALUES)} |\n| {' | '.join(map(str, VALUES.values()))} |",
    "columns": each("{n:<24}{v:>8}", LONG) + "\nM:{M}  N:{N}".format(**VALUES),
    "hexadecimal": each("{n} = {x}"),
    "snake case": "\n".join(f"{snake(n)}: {v}" for n, v in LONG.items())
    + "\nM = {M}\nN = {N}".format(**VALUES),
    "small letters": "\n".join(f"{n.lower()}: {v}" for n, v in LONG.items())
    + "\nM = {M}\nN = {N}".format(**VALUES),
    "lists of three": "M, N, K = {M}, {N}, {Ka}\n".format(**VALUES)
    + "baseM/baseN/baseK: {baseM}/{baseN}/{baseK}\n".format(**VALUES)
    + each("{n}: {v}", {n: v for n, v in ONE_K.items() if n[:4] != "base"}),
    "one K": "M={M} N={N} K={Ka}\n".format(**VALUES)
    + each("{n} {v}", ONE_K),
    "assignments in C": each("  t.{n} = {v};  // set by hand"),
    "what a shell echoes": each("echo {n}={v}"),
    "YAML": "tiling:\n" + each("  {n}: {v}"),
    "other numbers beside": each("core 3: {n} = {v} (limit 7, step 2)"),
    "every field": each("{n} = {v}", ALL),
    "twice the same": each("core 0 {n} = {v}") + "\n" + each("core 1 {n} = {v}"),
}  # fmt: skip


@pytest.mark.parametrize("name", STYLES)
def test_a_text_in_many_styles_is_read(name):
    read = parse_tiling(STYLES[name].encode(), "x")
    assert isinstance(read, LoggedTiling)
    assert read.tiling == TILING
    wanted = () if name == "every field" else tuple(n for n in FIELDS if n not in VALUES)
    assert read.absent == wanted


def test_the_later_of_two_is_named_by_its_number():
    other = replace(TILING, baseM=TILING.baseM + 16)
    text = each("{n} = {v}") + "\n\n" + each("{n} = {v}", other.to_json())
    assert tiling_of_text(text, "x", 1).tiling == TILING
    second = tiling_of_text(text, "x", 2)
    assert (second.tiling, second.line, second.absent) == (other, len(VALUES) + 2, ())


@pytest.mark.parametrize(
    ("text", "number", "line"),
    [
        (
            f"{each('{n} = {v}')}\n{each('{n} = {v}', {**VALUES, 'baseM': 48})}",
            None,
            f"x holds 2 tilings, at lines 1, {len(VALUES) + 1}; name one as x#1 or x#2",
        ),
        (each("{n} = {v}"), 2, "x holds one tiling, not 2"),
        (each("{n} = {v}"), 0, "x holds one tiling, not 0"),
        (
            each("{n} = {v}", {n: v for n, v in VALUES.items() if n != "stepKa"}),
            None,
            "x: the tiling at line 1 lacks stepKa",
        ),
        (
            "\nbaseM = 64\nbaseN = 128",
            None,
            "x: the tiling at line 2 lacks usedCoreNum, M, N, Ka and 14 more",
        ),
        (
            each("{n} = {v}", VALUES | {"baseM": 1 << 31}),
            None,
            "tiling.baseM must fit int32, got 2147483648",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_too_many_is_one_sentence(text, number, line):
    with pytest.raises(RequestError) as caught:
        tiling_of_text(text, "x", number)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    "text",
    ["", "hello", 'printf("baseM = %d %d", t.baseM, t.baseN);', "M 5 N 6", "Mm = 3"],
)
def test_a_text_without_pairs_holds_no_tiling(text):
    assert tiling_of_text(text, "x") is None


def test_extents_come_from_the_tiling(folder):
    (folder / "mine.log").write_text(STYLES["a time before"])
    note = (
        "mine.log, line 1: absent fields are 0: isBias, transLength, iterateOrder, shareMode and "
        f"{len(OPTIONAL) - 4} more\n"
    )
    answer = cli("check", "mine.log", "--json")
    assert (answer.json["legal"], answer.err) == (True, note)
    typed = cli("time", "--tiling", "mine.log", "--m", TILING.M, "--n", TILING.N, "--k", TILING.Ka)
    assert cli("time", "--tiling", "mine.log").out == typed.out != ""
    assert_refused(
        cli("check", "mine.log", "--m", TILING.M + 1),
        note + f"tiling.M must equal the problem's m = {TILING.M + 1}, got {TILING.M}",
    )

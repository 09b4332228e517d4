"""Errors in Chinese: each sentence is translated as a whole, or stays English as a whole."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import cubecore
from cubecore.cli.zh.translation import catalogue, error_text, whole_sentence
from cubecore.frontends.cpp.documented import of_2201, replaced
from cubecore.isa.declare.not_modelled import NOT_MODELLED, NOT_MODELLED_3510
from workflows.command import BAD_REQUEST, cli

SOURCE = Path(inspect.getfile(cubecore)).parent
PACKAGES = (
    *("cli", "workflows", "answers", "chips", "planning", "presented", "reports", "frontends"),
    *("tiling", "errors.py", "output_files.py", "units.py", "dtypes.py"),
)
"""Where requests are refused: what instructions and machines refuse are findings."""
CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
ENGLISH = re.compile(r"\b(must|the|that|which|with|got|its|it|are|is|needs|has|of|no)\b")
COVERED = {"requirement": 264, "sentence": 96}
"""How many of the requirements and sentences that the source declares have Chinese, at least."""


def text_of(node: ast.expr) -> str | None:
    """Return a literal, with values in the places of an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = enumerate(node.values)
        return "".join(
            str(v.value) if isinstance(v, ast.Constant) else f"value{n}" for n, v in parts
        )
    return None


@cache
def nodes_of_source() -> dict[Path, list[ast.AST]]:
    """Return what the source is made of, by its files."""
    return {path: [*ast.walk(ast.parse(path.read_text()))] for path in SOURCE.rglob("*.py")}


def declared() -> Iterator[tuple[str, str]]:
    """Yield the requirements and the whole sentences of errors that the source has."""
    for path, nodes in nodes_of_source().items():
        if path.relative_to(SOURCE).parts[0] in PACKAGES:
            yield from refused(nodes)


def refused(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the requirements and the whole sentences of a file."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            kinds = {"refuse": "requirement", "Violation": "requirement", "unable": "sentence"}
            text = text_of(node.args[1])
            if node.func.id in kinds and text:
                yield kinds[node.func.id], text


def sentence_of(kind: str, text: str) -> str:
    return f"--shape must {text}, got 7" if kind == "requirement" else text


@cache
def sentences() -> list[tuple[str, str]]:
    return sorted({(kind, sentence_of(kind, text)) for kind, text in declared()})


@pytest.mark.parametrize("kind", COVERED)
def test_the_number_of_sentences_with_chinese_does_not_fall(kind):
    of_kind = [text for each, text in sentences() if each == kind]
    covered = [text for text in of_kind if CHINESE.search(error_text(text))]
    assert len(covered) >= COVERED[kind], f"{len(covered)} of {len(of_kind)}"


def test_no_sentence_is_half_chinese():
    for _, text in sentences():
        said = error_text(text)
        if said != text:
            assert CHINESE.search(said)
            assert not ENGLISH.search(said), said


def test_requirements_are_lines_of_the_source():
    """A line of what a value must be is declared somewhere."""
    nodes = chain.from_iterable(nodes_of_source().values())
    needs = "\n".join(str(n.value) for n in nodes if isinstance(n, ast.Constant))
    gone = []
    for english in catalogue("errors"):
        if re.match(r"(be|have|hold|name|give|take|lie|fit|vary|end) ", english):
            pieces = (piece.strip(" ,;:()[]") for piece in re.split(r"\{\w+\}", english))
            gone += [english for piece in pieces if len(piece) > 3 and piece not in needs]
    assert gone == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("plan", "--m", "x"), "--m 必须是整数，实际为 'x'"),
        (("plan", "--m", "16"), "缺少 --n, --k"),
        (("plan", "--foo"), "没有选项 '--foo'；cubecore plan --help 列出参数与选项"),
        (("pln",), "没有命令 'pln'；是否想写 plan？"),
        (("run", "no.py"), "无法读取 no.py：没有这个文件"),
        (("chips", "foo"), "chip 必须是 SoC 的全名，实际为 'foo'；cubecore chips 可列出它们"),
    ],
)
def test_an_error_is_chinese_by_lang(arguments, line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    english = cli(*arguments)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    answer = cli(*arguments)
    assert (answer.code, english.code, answer.out) == (BAD_REQUEST, BAD_REQUEST, "")
    assert answer.err == f"{line}\n"
    assert not CHINESE.search(english.err)


OF_NAMES = (
    *(f"k.cpp:3: AscendC::{name} is of architecture 2201; {of}" for name, of in of_2201().items()),
    *(f"k.cpp:3: AscendC::{name} is not supported; {of}" for name, of in replaced().items()),
    *(
        f"{name} is not modelled; {of}"
        for name, of in {**NOT_MODELLED, **NOT_MODELLED_3510}.items()
    ),
    "k.cpp:3: asc_add is of architecture 2201; use registers in a function with __simd_vf__",
    "k.cpp:3: AscendC::Hypot is of architecture 3510; run it with --chip Ascend950PR_9589",
    "k.cpp:3: asc_float2e4m3 needs an ending; use asc_float2e4m3_rn, asc_float2e4m3_rd or other",
    "k.cpp:3: AscendC::Gemm is not supported; docs/cpp_names.md lists the names that are",
)


@pytest.mark.parametrize("text", OF_NAMES)
def test_what_replaces_a_name_is_chinese(text):
    said = error_text(text)
    assert CHINESE.search(said)
    assert not ENGLISH.search(said)
    assert "use " not in said


def test_an_error_in_json_stays_english(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    answer = cli("plan", "--m", "0", "--n", "16", "--k", "16", "--json")
    assert answer.code == BAD_REQUEST
    assert answer.json["error"]["message"] == "m must be at least 1, got 0"


def test_what_has_no_line_for_a_part_stays_english():
    assert whole_sentence("--shape must be a multiple of 16, got 7") is not None
    for text in (
        "--shape must be of the colour that the user likes, got 7",
        "--shape must be a multiple of 16, got something else there",
        "--shape must be a multiple of 16, got 7; ask the person beside you",
    ):
        assert whole_sentence(text) is None
        assert error_text(text) == text

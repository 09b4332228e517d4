"""The site's sources: tutorials run, Chinese pages have the same cells, figures are evidenced."""

import ast
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.pages.pictures import CHINESE, PICTURES, picture
from tools.pages.site import figures, pages
from tools.pages.site.cells import cells
from tools.pages.site.instruction_examples import example_of, executed_examples
from tools.pages.site.rule_pages import broken_by_rule

import cubecore
from cubecore.frontends.cpp.toolchain.api_declarations import api_declarations
from cubecore.isa.catalogue import instructions
from cubecore.machine.finding_kinds import KINDS
from cubecore.manual import page
from cubecore.tiling.rules.checker import rules
from cubecore.workflows.explain import explain
from cubecore.workflows.manual.class_api import section_of
from cubecore.workflows.manual.glossary import glossary

ROOT = Path(__file__).resolve().parents[2]

DOCS = ROOT / "docs"
TUTORIALS = sorted(p.stem for p in (DOCS / "tutorials").glob("*.md") if p.stem != "index")
QUICK = {"refused", "races", "a2_to_950"}
CHINESE_PAGES = sorted(
    str(path.relative_to(DOCS / "zh"))
    for path in (DOCS / "zh").rglob("*.md")
    if path.name != "manual.md"
)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.sweep) for name in TUTORIALS],
)
def test_a_tutorials_cells_run(name, tmp_path, monkeypatch, capsys):
    if name in {"cpp", "faster"} and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no C++ compiler")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "tutorial"}
    for cell in cells((DOCS / "tutorials" / f"{name}.md").read_text("utf-8")):
        tree = ast.parse(cell)
        shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{name}.md", "exec"), names)
        if shown is not None:
            value = eval(compile(ast.Expression(shown.value), f"{name}.md", "eval"), names)
            assert not hasattr(value, "_repr_html_") or "<table>" in value._repr_html_()
    assert capsys.readouterr().out


def test_there_are_seven_tutorials_each_in_the_index_and_in_the_navigation():
    index = (DOCS / "tutorials" / "index.md").read_text("utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert TUTORIALS == ["a2_to_950", "cpp", "faster", "model", "races", "refused", "slow"]
    assert all(f"({name}.md)" in index for name in TUTORIALS)
    assert all(f"tutorials/{name}.md" in navigation for name in TUTORIALS)


@pytest.mark.parametrize("name", CHINESE_PAGES)
def test_a_chinese_page_has_the_cells_of_the_english_one(name):
    chinese = (DOCS / "zh" / name).read_text("utf-8")
    english = (DOCS / name).read_text("utf-8")
    assert cells(chinese) == cells(english)
    assert re.search("[\u4e00-\u9fff]", chinese)
    commands = re.findall(r"`cubecore [^`]*`", chinese)
    assert name != "concepts.md" or len(commands) > 2


def test_the_readme_in_chinese_has_the_python_of_the_english_one():
    chinese = (ROOT / "README.zh.md").read_text("utf-8")
    assert cells(chinese) == cells((ROOT / "README.md").read_text("utf-8"))


def test_every_label_of_a_picture_is_translated_and_used():
    used = set()
    for draw in PICTURES.values():
        draw(lambda label: used.add(label) or label)
    assert {label for label in used if label not in CHINESE} == set()
    assert set(CHINESE) <= used
    assert all(picture(name) != picture(name, chinese=True) for name in PICTURES if used)


def test_stated_figures_are_those_of_the_validation_page():
    table = (DOCS / "validation.md").read_text("utf-8")
    for name in ("index.md", "zh/index.md"):
        text = (DOCS / name).read_text("utf-8")
        filled = figures.filled(text)
        assert "{{" not in filled
        assert "%" not in text
        rows = re.findall(r"^\| [^|]* \| (\d+) \| (\S+%) \| (\S+%) \|", filled, re.MULTILINE)
        assert len(rows) == 6
        for cases, median, most in rows:
            assert f"| {cases} | {median}, {most} |" in table
    with pytest.raises(KeyError):
        figures.filled("{{ unknown.median }}")


@pytest.mark.sweep
def test_code_of_a_generated_page_is_not_escaped():
    made = pages.generated()
    code = [span for text in made.values() for span in re.findall("`[^`\\n]+`", text)]
    assert "`set_flag`" in code
    assert [span for span in code if "\\_" in span] == []
    assert "c\\[m, n] = start + sum over k of a\\[m, k] \\*" in made["instructions/mad.md"]


@pytest.mark.sweep
def test_a_rule_s_example_breaks_that_rule_and_its_plan_keeps_it():
    broken, plans = broken_by_rule(), {}
    assert len(broken) > len(rules()) * 3 // 4
    for name, example in broken.items():
        key = str(example.problem)
        if key not in plans:
            plans[key] = cubecore.plan(**example.problem, search="quick")
        plan = plans[key]
        assert getattr(plan.tiling, example.field) == example.before
        changed = replace(plan.tiling, **{example.field: example.after})
        findings = cubecore.check(changed, plan.problem).findings
        assert name in [finding.rule for finding in findings]
        assert any(name in message for message in example.messages)
    alone = sum(len(example.messages) == 1 for example in broken.values())
    assert alone > len(broken) // 2


def test_examples_of_instructions_show_what_they_compute():
    rows = executed_examples()
    assert len(rows) > len(instructions()) // 2

    def numbers(name):
        return [np.array([float(x) for x in row[2].split()]) for row in rows[name]]

    for name, combine in (("vadd", np.add), ("vmax", np.maximum), ("vmul", np.multiply)):
        dst, src0, src1 = numbers(name)
        assert np.array_equal(dst, combine(src0, src1))
        assert not np.array_equal(src0, src1)
    dst, src = numbers("vconv_f162s16")
    assert np.array_equal(dst, src)


def test_pages_of_instructions_that_are_timed_have_an_example():
    timed = [cls for cls in instructions().values() if set(cls.archs) & {"2201", "3510"}]
    without = {cls.name for cls in timed if not list(example_of(cls))}
    assert not without
    assert "core.asc_add(dst, src0, src1, 1, 1, 1, 1, 8, 8, 8)" in list(
        example_of(instructions()["vadd"])
    )


def test_an_instruction_s_page_begins_with_the_names_that_users_write():
    made = pages.generated()
    copy = made["instructions/copy_gm_to_ubuf.md"]
    assert copy.startswith("# DataCopy, asc_copy_gm2ub, data_move, copy_gm_to_ubuf\n")
    assert "`asc_copy_gm2ub(dst, src, n_burst, len_burst, src_gap, dst_gap)`" in copy
    with_cycles = [path for path, text in made.items() if "## Cycles of the pipe" in text]
    assert len(with_cycles) > 4 * len(instructions()) // 5


def test_the_navigation_has_every_generated_page():
    titles = [
        entry
        for folder in ("rules", "instructions", "api", "class_api")
        for entry in pages.listed(folder)
    ]
    paths = {path for entry in titles for path in entry.values()}
    assert paths == {path for path in pages.generated() if "/" in path}


def test_the_api_s_pages_have_every_public_name_once():
    made = {path: text for path, text in pages.generated().items() if path.startswith("api/")}
    listed = [line for text in made.values() for line in text.split("\n") if "heading: " in line]
    names = [line.rpartition(" ")[2] for line in listed]
    public = {name for name in cubecore.__all__ if hasattr(getattr(cubecore, name), "__module__")}
    assert public <= set(names)
    assert len(names) == len(set(names))


def test_every_name_that_is_printed_has_its_page_and_anchor():
    made = pages.generated()
    for rule in rules():
        assert f"{page('rule', rule.id).removesuffix('.html')}.md" in made
    for name in instructions():
        assert f"{page('instruction', name).removesuffix('.html')}.md" in made
    findings = (DOCS / "findings.md").read_text("utf-8")
    for name in KINDS:
        assert page("finding", name) == f"findings.html#{name}"
        assert f"\n### {name}\n" in findings
    for term in glossary():
        anchor = page("term", ", ".join(term.names)).partition("#")[2]
        assert made["words.md"].count(f"{{#{anchor}}}") == 1
    assert made["fields.md"].count("{#basem}") == 1


def test_every_name_of_an_api_has_its_page_and_anchor():
    made = pages.generated()
    for name in ("DataCopy", "TQue", "SetTail", "MatmulType", "data_move", "for_range", "split K"):
        path, _, anchor = explain(name).page.partition("#")
        assert f"{{#{anchor}}}" in made[path.replace(".html", ".md")], name
    assert all(f"class_api/{section_of(name)}.md" in made for name in api_declarations())


def test_the_search_takes_a_name_for_one_word():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    separator = re.search(r"separator: '([^']+)'", text)[1]
    for name in ("DataCopy", "MatmulType", "data_move", "copy_gm_to_ubuf"):
        assert re.split(separator, name) == [name]
    assert re.split(separator, "queue of MTE1 full") == ["queue", "of", "MTE1", "full"]

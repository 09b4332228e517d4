"""The source and the advice of a kernel in its report: lines as written, nothing as markup."""

import json
import re
from pathlib import Path

import pytest

from cubecore.workflows.scripts.script import time_script
from reports.browser import browser, chromium

PAIRS = Path(__file__).parents[2] / "advice" / "pairs"
HOSTILE = "</script><b>x</b>"


@pytest.fixture(scope="module")
def launch():
    return time_script(str(PAIRS / "kernels.py"), arguments=("barrier",), advise=True).longest


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_source_has_each_line_that_issues_with_the_line_s_cycles(launch):
    [file] = data_of(launch.page())["source"]
    rows = {row["line"]: row for row in file["rows"]}
    text = (PAIRS / "kernels.py").read_text().splitlines()
    assert all(row["text"] == text[number - 1] for number, row in rows.items())
    of_lines = [line for line in launch.lines if line.location is not None]
    assert {line.location.line for line in of_lines} == {n for n in rows if "busy" in rows[n]}
    for line in of_lines:
        row = rows[line.location.line]
        assert sum(row["busy"].values()) == line.busy
        assert row["stalled"] == line.stall_cycles
        assert (row["instructions"], row["bytes"]) == (line.instructions, line.bytes)


def test_the_report_has_the_advice_with_its_remedy(launch):
    advice = data_of(launch.page())["advice"]
    assert [each["rule"] for each in advice] == [each.rule for each in launch.advice]
    assert advice[0]["remedy"].startswith("Order the pipes by flags or queues")


@pytest.mark.skipif(chromium() is None, reason="no browser is here")
def test_the_page_draws_both_and_takes_nothing_for_markup(tmp_path):
    script = (PAIRS / "kernels.py").read_text()
    (tmp_path / "k.py").write_text(script.replace("# slow: barrier", f"# {HOSTILE}"))
    slow = time_script(str(tmp_path / "k.py"), arguments=("barrier",), advise=True).longest
    (tmp_path / "r.html").write_text(slow.page(), "utf-8")
    with browser(chromium(), tmp_path / "profile") as page:
        page.open(tmp_path / "r.html")
        assert page.console == []
        assert HOSTILE in page.ask("document.getElementById('source').textContent")
        assert page.ask("document.querySelectorAll('#source b').length") == 0
        line = slow.advice[0].location.line
        linked = page.ask("document.querySelector('#advice a').getAttribute('href')")
        shown = page.ask(f"document.querySelector('{linked}').textContent")
        assert shown.startswith(str(line))

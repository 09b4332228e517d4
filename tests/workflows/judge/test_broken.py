"""30 broken submissions: the verdict names the stage, the line and the cause of each."""

import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.judge.broken_submissions import ALL
from workflows.judge.judged_kernels import TASK, strings

pytestmark = needs_compiler


def lines_named(verdict):
    """The lines that a verdict names: of findings, of errors, of what wrote a wrong element."""
    found = {finding.line for finding in verdict.findings} | {e.line for e in verdict.errors}
    return found | {case.written_at.get("line") for case in verdict.cases}


@pytest.mark.thinned(15)
@pytest.mark.parametrize("broken", ALL, ids=lambda each: each.name)
def test_the_verdict_names_stage_line_and_cause(tmp_path, broken) -> None:
    kernel, host = broken.texts
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text(strings(kernel_src=kernel, host_operator_src=host))
    verdict = cubecore.judge(tmp_path / "answer.py", tmp_path / "task.py", cases=1)
    assert verdict.stage == broken.stage
    assert verdict.correct == (broken.stage == "done")
    assert not broken.kind or any(f.id.startswith(broken.kind) for f in verdict.findings)
    lines = (host if broken.host and not broken.kind else kernel).splitlines()
    named = [lines[n - 1] for n in lines_named(verdict) if n is not None and n <= len(lines)]
    assert not broken.line or any(broken.line in line for line in named)


def test_there_are_thirty_of_four_kinds() -> None:
    assert len({each.name for each in ALL}) == 30

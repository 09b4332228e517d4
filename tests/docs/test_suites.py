"""The tools that run public suites of operators: what they read, remove and count."""

from pathlib import Path

import pytest
from tools.evidence.suites import isolated, judged, mutants, packages, results
from tools.evidence.suites.pages import sections

CALLS = {
    "SetFlag<HardEvent::MTE2_V>(id);": True,
    "AscendC::CrossCoreWaitFlag<0x2, PIPE_MTE3>(3);": True,
    "AscendC::PipeBarrier<PIPE_V>();": True,
    "pipe_barrier(PIPE_ALL);": True,
    "SyncAll();": True,
    "SyncAll<false>(workspace);": True,
    "this->outQueue.EnQue<half>(made);": True,
    "inQueue.FreeTensor(taken);": True,
    "taken = inQueue.DeQue<half>();": False,
    "DataCopy(to, from, 64);": False,
}
_LEAVES = "sleep 60 >/dev/null 2>&1 & echo here; exit 3"
PACKAGE = """```python
host_tiling_src = "struct Tiling {};"
host_operator_src = '''#include "add_tiling.h"
'''
kernel_src = 'extern "C" __global__ __aicore__ void add(GM_ADDR x) {}'
count = 3
```
"""


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_order_can_be_removed(call: str) -> None:
    assert bool(mutants.REMOVABLE.fullmatch(call)) == CALLS[call]


def test_calls_in_comments_stay(tmp_path: Path) -> None:
    (tmp_path / "a.asc").write_text("// SyncAll();\nSyncAll(); /* SyncAll(); */\n")
    (tmp_path / "notes.txt").write_text("SyncAll();\n")
    assert [match.start() for _, match in mutants.places(tmp_path)] == [14]


def test_a_package_is_written_as_a_project(tmp_path: Path) -> None:
    packages.written(packages.strings(PACKAGE), tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert found == {"op_host/add.cpp", "op_host/add_tiling.h", "op_kernel/add.cpp"}
    assert (tmp_path / "op_host" / "add_tiling.h").read_text() == "struct Tiling {};"


def test_what_is_no_package_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^the file is no Python: "):
        packages.strings("host_operator_src = ")
    with pytest.raises(ValueError, match=r"^the package lacks kernel_src$"):
        packages.written({"host_operator_src": "", "host_tiling_src": ""}, tmp_path)


def test_a_command_leaves_nothing_behind(tmp_path: Path) -> None:
    done = isolated.run_alone(["sh", "-c", _LEAVES], tmp_path, 20)
    assert (done.code, done.out, done.late, done.left_over) == (3, "here\n", False, True)
    late = isolated.run_alone(["sh", "-c", "sleep 60"], tmp_path, 0.2)
    assert (late.late, late.code) == (True, -9)


def test_an_outcome_replaces_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "DATA", tmp_path / "rows.jsonl")
    for outcome in ("late", "clean"):
        results.kept({"suite": "a", "task": "t", "outcome": outcome})
    results.kept({"suite": "b", "task": "t", "outcome": "late"})
    assert [row["outcome"] for row in results.rows("a")] == ["clean"]
    assert len(results.rows()) == 2


def test_the_page_counts_every_task() -> None:
    text = "\n".join(sections())
    for row in results.rows():
        assert f"| {row['outcome']} | " in text


def test_every_judgement_says_whose_fault_a_finding_is() -> None:
    rows = judged.judged()
    assert len(rows) >= 40
    assert {row["whose"] for row in rows} <= set(judged.WHOSE)
    assert len({row["task"] for row in rows}) == len(rows)
    assert all(row["why"] and row["finding"] for row in rows)
    lines = judged.judged_section(200)
    left = sum(row["whose"] == "open" for row in rows)
    assert f"{len(rows)} of them had findings when they were looked at one by one; " in lines[3]
    assert lines[3].endswith(f"{200 - left} of 200")

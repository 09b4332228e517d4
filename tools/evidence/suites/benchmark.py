"""A benchmark of operators, task by task: which reference answers verify, and the obstacles.

`python -m tools.evidence.suites.benchmark CHECKOUT [--match REGEX] [--cases N] [--again HOW]`
judges the answers of a checkout's tasks (folders with `answer/0` and `validation`) by
`cubecore.judge`, and writes their outcomes to `suites.jsonl` beside the surveys of programs. The
chip is the one that the benchmark names, whose count of cores some answers are written for. What
was run with these headers before is kept; HOW is all, or failed for those that did not verify. It
needs torch; without it nothing is written.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.evidence.cpp_programs import obstacle
from tools.evidence.suites.results import kept, rows, stands

import cubecore
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.workflows.judge.judge import JudgeFaultError

_CHIP = "Ascend910_9392"


def tasks(checkout: Path) -> list[Path]:
    """Return the folders of a checkout's tasks that have an answer."""
    found = [path.parents[1] for path in checkout.rglob("answer/0") if path.is_dir()]
    return sorted(path for path in found if (path / "validation").is_dir())


def task_outcome(task: Path, cases: int) -> dict[str, Any]:
    """Return the outcome of a task, with its counts of cases; the first wrong case decides."""
    try:
        verdict = cubecore.judge(task / "answer" / "0", task, chip=_CHIP, cases=cases)
    except JudgeFaultError as error:
        return {"cases": {}, "cpu_s": 0.0, "outcome": "crash", "why": str(error)[-300:]}
    told: dict[str, Any] = {"cases": verdict.counts, "cpu_s": round(verdict.seconds["cpu"], 1)}
    if verdict.correct is None:
        return told | {"outcome": "late", "why": obstacle(verdict.errors[0].message)}
    if verdict.correct:
        found = any(finding.certainty != "note" for finding in verdict.findings)
        return told | {"outcome": "verified, findings" if found else "verified"}
    bad = [
        case
        for kind in ("wrong", "refused", "late")
        for case in verdict.cases
        if case.outcome == kind
    ]
    if not bad and not verdict.errors:
        return told | {"outcome": "no case"}
    why = bad[0].why if bad else verdict.errors[0].message
    print(f"{task.name}: {why[:400]}", flush=True)
    wrong = bool(bad) and bad[0].outcome == "wrong"
    said = "the result is not within the tolerance" if wrong else obstacle(why)
    return told | {"outcome": "wrong" if wrong else "refused", "why": said}


def surveyed(checkout: Path, match: str, cases: int, *, again: str) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each task that was not run before."""
    suite, made = f"{checkout.parent.name}/{checkout.name}", headers()
    known = {row["task"] for row in rows(suite) if stands(row, made, again, ("verified",))}
    wanted = {str(task.relative_to(checkout)): task for task in tasks(checkout)}
    wanted = {
        name: task for name, task in wanted.items() if name not in known and re.search(match, name)
    }
    for name, task in wanted.items():
        row = task_outcome(task, cases)
        yield {"suite": suite, "task": name, "headers": made} | row


def main() -> None:
    """Run the tasks of a checkout, and write what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--again", choices=("all", "failed"), default="")
    asked = parser.parse_args()
    asked.checkout = asked.checkout.resolve()
    for row in surveyed(**vars(asked)):
        print(row["outcome"], row["task"], row["cases"], row.get("why", ""), flush=True)
        kept(row)


if __name__ == "__main__":
    main()

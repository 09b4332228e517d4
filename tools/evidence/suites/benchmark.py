"""A benchmark of operators, task by task: which reference answers verify, and the obstacles.

`python -m tools.evidence.suites.benchmark CHECKOUT --work DIR [--match REGEX] [--seconds N]
[--again HOW]` runs the tasks of a checkout (folders with `answer/0` and `validation`, see
`benchmark_task.py`), each in a process of its own, and writes their outcomes to `suites.jsonl`
beside the surveys of programs. N are CPU seconds for a task's cases. What was run with these
headers before is kept; HOW is all, or failed for those that did not verify.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.evidence.cpp_programs import obstacle
from tools.evidence.suites.benchmark_task import MODULE, binding_text
from tools.evidence.suites.bindings import compile_bindings
from tools.evidence.suites.isolated import run_alone
from tools.evidence.suites.results import kept, rows, stands

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

_WALL_S = 900.0
_NOT_RUN = {"too large", "no time", "not comparable"}
"""Outcomes of cases that say nothing about an answer."""
_ROOT = Path(__file__).parents[3]


def tasks(checkout: Path) -> list[Path]:
    """Return the folders of a checkout's tasks that have an answer."""
    found = [path.parents[1] for path in checkout.rglob("answer/0") if path.is_dir()]
    return sorted(path for path in found if (path / "validation").is_dir())


def task_outcome(checkout: Path, task: Path, work: Path, seconds: float) -> dict[str, Any]:
    """Return the outcome of a task, with its counts of cases."""
    command = [sys.executable, "-m", "tools.evidence.suites.benchmark_task"]
    command += [str(checkout), str(task), "--work", str(work), "--seconds", str(seconds)]
    left = run_alone(command, _ROOT, _WALL_S)
    cases = [json.loads(line) for line in left.out.splitlines() if line.startswith('{"')]
    counts = Counter(case["outcome"] for case in cases)
    run = [case for case in cases if case["outcome"] not in _NOT_RUN]
    bad = [case for case in run if case["outcome"] != "verified"]
    told: dict[str, Any] = {"cases": dict(counts), "cpu_s": round(left.cpu_s, 1)}
    if left.code != 0 and not left.late:
        return told | {"outcome": "crash", "why": left.error.strip()[-300:]}
    if left.late:
        return told | {"outcome": "late", "why": f"the task took {_WALL_S:g} s"}
    if not run:
        return told | {"outcome": "no case"}
    if bad:
        why = bad[0].get("why") or "the result is not within the tolerance"
        print(f"{task.name}: {why[:400]}", flush=True)
        return told | {"outcome": bad[0]["outcome"], "why": obstacle(why)}
    found = any("findings" in case for case in run)
    return told | {"outcome": "verified, findings" if found else "verified"}


def surveyed(
    checkout: Path, work: Path, match: str, seconds: float, *, again: str
) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each task that was not run before."""
    suite, made = f"{checkout.parent.name}/{checkout.name}", headers()
    known = {row["task"] for row in rows(suite) if stands(row, made, again, ("verified",))}
    wanted = {str(task.relative_to(checkout)): task for task in tasks(checkout)}
    wanted = {
        name: task for name, task in wanted.items() if name not in known and re.search(match, name)
    }
    work.mkdir(parents=True, exist_ok=True)
    with suppress(RuntimeError):  # each by itself then
        compile_bindings([binding_text(task) for task in wanted.values()], MODULE, work)
    for name, task in wanted.items():
        row = task_outcome(checkout, task, work, seconds)
        yield {"suite": suite, "task": name, "headers": made} | row


def main() -> None:
    """Run the tasks of a checkout, and write what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--again", choices=("all", "failed"), default="")
    asked = parser.parse_args()
    asked.checkout = asked.checkout.resolve()
    for row in surveyed(**vars(asked)):
        print(row["outcome"], row["task"], row["cases"], row.get("why", ""), flush=True)
        kept(row)


if __name__ == "__main__":
    main()

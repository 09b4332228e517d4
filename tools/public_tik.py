"""The page of public TIK operators: which of them were built and run here, with what outcome.

The data beside this file (`public_tik.jsonl`) has a line for each operator: its repository and
file, and an outcome that was measured outside of this repository, which holds none of their code.
What is verified is measured, and written there, by `python -m tests.public_tik.run CHECKOUTS`.
"""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("public_tik.jsonl")
OUTCOMES = {
    "verified": "ran, and its result is what an oracle of our own gives",
    "built": "built and traced; not run to a result that was verified",
    "refused": "refused, for the reason given",
    "tensor expressions": "needs the vendor's tensor-expression language, which is not carried",
    "not tried": "no arguments for it were at hand",
}
"""What each outcome says."""


def rows() -> list[dict[str, Any]]:
    """Return the operators, by repository and file."""
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda r: (r["repository"], r["path"]))


def page() -> str:
    """Return the page: counts, then a table for each repository."""
    found = rows()
    counts = Counter(row["outcome"] for row in found)
    traced = counts["verified"] + counts["built"]
    tried = traced + counts["refused"]
    after = sum("changed" in row for row in found)
    lines = [
        "# Public TIK operators",
        "",
        "Operators of public repositories, run unmodified outside of this repository: none of",
        "their code is part of it. Arguments are those of the repository's own unit tests, or",
        "ours; results are held to oracles of our own. An operator that updates a variable was",
        "launched with its output where the variable lies, as frameworks do. Findings of a run",
        "stand beside it; whether they are the operator's fault was not looked into one by one. An",
        "empty module or a link stood in for sympy, and for modules that an operator imports under",
        "a name that its repository does not have.",
        "",
        "| outcome | operators | |",
        "|---|---|---|",
        *(f"| {name} | {counts[name]} | {says} |" for name, says in OUTCOMES.items()),
        "",
        "Every verified operator has its inputs and its oracle in `tests/public_tik`, and",
        "`python -m tests.public_tik.run CHECKOUTS` repeats the runs, where CHECKOUTS holds the",
        f"repositories as OWNER/NAME. For {after} of them the oracle was changed after a first",
        "result, as their lines say; the others are what was expected of the operator before it.",
        "",
        f"Of {tried} that were tried and need no tensor expressions, {traced} are built and traced "
        f"({100 * traced // tried} %).",
        "",
    ]
    for repository, group in groupby(found, key=lambda row: row["repository"]):
        lines += [f"## {repository}", "", "| file | kind | outcome | |", "|---|---|---|---|"]
        for row in group:
            changed = f"oracle changed: {row['changed']}" if "changed" in row else ""
            parts = row.get("why"), changed, ", ".join(row.get("findings", ()))
            note = "; ".join(filter(None, parts)).replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| {row['path']} | {row['category']} | {row['outcome']} | {note} |")
        lines.append("")
    return "\n".join(lines)

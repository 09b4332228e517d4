"""The page of public TIK operators: which of them were built and run here, with what outcome.

The data beside this file (`public_tik.jsonl`) has a line for each operator: its repository,
revision and file, and an outcome that was measured outside of this repository, which holds none
of their code. `python -m tests.public_tik.survey CHECKOUTS` measures and writes them all.
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
    "no arguments": "nobody's arguments were at hand, or its own checks refuse those that were",
    "not here": "its repository could not be had",
    "tensor expressions": "needs the vendor's tensor-expression language, which is not carried",
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
    wanted = len(found) - counts["tensor expressions"]
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
        "a name that its repository does not have. A file counts as built where its own code",
        "issued instructions of a kernel; that may be as part of another operator.",
        "",
        "| outcome | operators | |",
        "|---|---|---|",
        *(f"| {name} | {counts[name]} | {says} |" for name, says in OUTCOMES.items()),
        "",
        f"Of all {wanted} that need no tensor expressions, {traced} are built and traced "
        f"({100 * traced // wanted} %).",
        "",
        "`python -m tests.public_tik.survey CHECKOUTS` measures this page, where CHECKOUTS holds",
        "the repositories as OWNER/NAME. Every verified operator has its inputs and its oracle in",
        "`tests/public_tik`, and `python -m tests.public_tik.run CHECKOUTS` repeats their runs",
        f"alone. For {after} of them the oracle was changed after a first result, as their lines",
        "say; the others are what was expected of the operator before it.",
        "",
    ]
    for repository, rows_of_it in groupby(found, key=lambda row: row["repository"]):
        group = list(rows_of_it)
        revision = f" at {group[0]['revision'][:12]}" if group[0].get("revision") else ""
        lines += [
            f"## {repository}{revision}",
            "",
            "| file | kind | outcome | |",
            "|---|---|---|---|",
        ]
        for row in group:
            changed = f"oracle changed: {row['changed']}" if "changed" in row else ""
            given = "its unit tests' arguments" if row.get("arguments") == "its unit tests" else ""
            parts = row.get("why"), given, changed, ", ".join(row.get("findings", ()))
            note = "; ".join(filter(None, parts)).replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| {row['path']} | {row['category']} | {row['outcome']} | {note} |")
        lines.append("")
    return "\n".join(lines)

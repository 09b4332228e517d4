"""The section on findings that were looked at by hand: whose fault each of them is.

`judged.jsonl` beside the surveys has a line for each sample or task that runs with findings.
"""

import json
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parents[1] / "judged.jsonl"
WHOSE = {
    "file": "the file's own, by the page named",
    "open": "the pages leave open whether it is a fault",
    "mended": "was cubecore's; mended since",
}
"""What each judgement says."""


def judged() -> list[dict[str, str]]:
    """Return the judgements: task, finding, whose, why."""
    return [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


def judged_section(ran: int) -> list[str]:
    """Return the lines of the section; `ran` samples and tasks with data beside them run."""
    found = judged()
    counts = Counter(row["whose"] for row in found)
    others = ran - counts["open"]
    return [
        "## Findings looked at by hand",
        "",
        f"{ran} samples and benchmark tasks have data beside them and give the right result.",
        f"{len(found)} of them had findings when they were looked at one by one; {others} of {ran}",
        f"({100 * others / ran:.0f} %) run without a finding that is not the file's own fault.",
        "",
        "| whose | files | |",
        "|---|---|---|",
        *(f"| {whose} | {counts[whose]} | {says} |" for whose, says in WHOSE.items()),
        "",
        "| sample or task | finding | whose | why |",
        "|---|---|---|---|",
        *(f"| {r['task']} | {r['finding']} | {r['whose']} | {r['why']} |" for r in found),
        "",
    ]

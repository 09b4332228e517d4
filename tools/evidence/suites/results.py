"""Outcomes of suites, as lines of JSON that hold no text of anyone's operators."""

import fcntl
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "suites.jsonl"


def rows(suite: str = "") -> list[dict[str, Any]]:
    """Return what was run, of one suite or of all."""
    if not DATA.is_file():
        return []
    found = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    return [row for row in found if suite in {"", row["suite"]}]


def kept(row: dict[str, Any]) -> None:
    """Put an outcome among the others, in the place of an earlier one of its task."""
    own = (row["suite"], row["task"])
    with DATA.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # suites may run side by side
        lines = [json.dumps(each) for each in rows() if (each["suite"], each["task"]) != own]
        text = "\n".join(sorted([*lines, json.dumps(row)])) + "\n"
        DATA.write_text(text, encoding="utf-8")


def stands(row: dict[str, Any], headers: str, again: str, good: tuple[str, ...]) -> bool:
    """Return whether an outcome need not be found again: `again` is all, failed, or nothing."""
    if again == "failed":
        return str(row["outcome"]).startswith(good)
    return not again and bool(row["headers"] == headers)

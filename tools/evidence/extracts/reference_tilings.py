"""The recorded answers of the vendor's tiling library: problems, options and fields as numbers.

A field of a tiling that is 0 is left out, as is a key of a problem that all problems share; names
of broken constraints are numbered.
"""

import json
from pathlib import Path
from typing import Any

_UNUSED = ("ns_median", "reference", "entry")


def extract(shared: Path) -> dict[str, Any]:
    """Return the answers, the names of the constraints that they break, and the crashes."""
    answers = _read(shared / "facts" / "reference_tilings.jsonl")
    names = sorted({name for record in answers for name in record["breaks"]})
    return {
        "constraints": names,
        "answers": [_short(record, names) for record in answers],
        "crashes": [
            _short(record, names) for record in _read(shared / "facts" / "reference_crashes.jsonl")
        ],
    }


def _short(record: dict[str, Any], names: list[str]) -> dict[str, Any]:
    short = {key: value for key, value in record.items() if key not in _UNUSED}
    short["problem"] = {k: v for k, v in record["problem"].items() if k != "name" and v is not None}
    if record.get("tiling"):
        short["tiling"] = {name: value for name, value in record["tiling"].items() if value}
    if "breaks" in record:
        short["breaks"] = [names.index(name) for name in record["breaks"]]
    return short


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

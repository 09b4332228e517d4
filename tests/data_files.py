"""Extracts of outside documents, as `python -m tools.evidence.extracts` makes them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "data"


@cache
def data(name: str) -> Any:
    """Return what tests/data/NAME.json holds."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))

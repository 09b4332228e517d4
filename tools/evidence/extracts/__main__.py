"""Make the extracts anew: ``python -m tools.evidence.extracts [FOLDER]``.

FOLDER holds the documents that the repository does not, ../shared unless given. Tests read the
extracts alone; run this when a document, or an anchor of a ledger in tests/seeds, has changed.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from tools.evidence.extracts import c_api_names, chip_rows, reference_tilings, seed_text  # noqa: E402

DATA = ROOT / "tests" / "data"
EXTRACTS = {
    "c_api_names.json": c_api_names.extract,
    "chip_rows.json": chip_rows.extract,
    "reference_tilings.json": reference_tilings.extract,
    "seed_units.json": seed_text.extract,
}


def written(value: Any) -> str:
    """Return JSON with a line for each record of a list, so that a change is a line of a diff."""
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {written(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    if value and isinstance(value[0], (dict, list)):
        return "[\n" + ",\n".join(map(_compact, value)) + "\n]"
    return _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(shared: Path) -> None:
    """Write every extract."""
    DATA.mkdir(exist_ok=True)
    for name, extract in EXTRACTS.items():
        (DATA / name).write_text(written(extract(shared)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared")

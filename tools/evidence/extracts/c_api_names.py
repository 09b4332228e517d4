"""The C API's names, read from the inventory beside the checkout."""

import re
from pathlib import Path

SECTIONS = (
    *("vector_compute", "vector_datamove", "cube_compute", "cube_datamove", "sync", "sys_var"),
    *("scalar_compute", "simd_atomic", "cache_ctrl", "misc"),
)


def expand(pattern: str) -> list[str]:
    """Expand braces: ``asc_x{-,_rn}`` is asc_x and asc_x_rn."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [
        name
        for choice in match[1].split(",")
        for name in expand(
            pattern[: match.start()] + ("" if choice == "-" else choice) + pattern[match.end() :]
        )
    ]


def extract(shared: Path) -> dict[str, dict[str, list[str]]]:
    """Return for each architecture its names, and those that have a form with ``_sync``, too."""
    text = (shared / "spec" / "c_api_inventory.md").read_text(encoding="utf-8")
    found = {}
    for arch in ("2201", "3510"):
        forms = rows(text, arch)
        synchronous = [name for name, letters in forms.items() if "S" in letters]
        found[arch] = {"names": list(forms), "synchronous": synchronous}
    return found


def rows(text: str, arch: str) -> dict[str, str]:
    """Return every name that the architecture has, with the letters of its forms."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if heading := re.match(r"#### (\w+) ", line):
            section = heading[1]
        cells = [cell.strip() for cell in line.split(" | ")]
        if section in SECTIONS and len(cells) >= 4 and cells[1] in {arch, "both"}:
            found.update(dict.fromkeys(expand(cells[0]), cells[3]))
    return found

"""The C API's names, read from the shared inventory where there is one."""

import re
from pathlib import Path

SHARED = Path(__file__).resolve().parents[3] / "shared" / "spec" / "c_api_inventory.md"
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


def names(arch: str = "2201") -> dict[str, str]:
    """Every name that the architecture has, with its section, in the inventory's order."""
    return {name: section for name, (section, _) in rows(arch).items()}


def synchronous(arch: str = "2201") -> list[str]:
    """The names that have a form with ``_sync``, too."""
    return [name for name, (_, forms) in rows(arch).items() if "S" in forms]


def rows(arch: str) -> dict[str, tuple[str, str]]:
    """Every name that the architecture has, with its section and the letters of its forms."""
    found: dict[str, tuple[str, str]] = {}
    section = ""
    for line in SHARED.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"#### (\w+) ", line):
            section = heading[1]
        cells = [cell.strip() for cell in line.split(" | ")]
        if section in SECTIONS and len(cells) >= 4 and cells[1] in {arch, "both"}:
            found.update(dict.fromkeys(expand(cells[0]), (section, cells[3])))
    return found

"""The fact sheet's table of chips: a row of names and numbers for each."""

from pathlib import Path

_HEADER = "| SoC | NpuArch |"


def extract(shared: Path) -> list[list[str]]:
    """Return the cells of every row."""
    lines = iter((shared / "facts" / "hardware.md").read_text("utf-8").splitlines())
    next(line for line in lines if line.startswith(_HEADER))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows

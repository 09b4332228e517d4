"""Print the lowest version of each dependency that pyproject.toml allows, as pip's constraints."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
_ALLOWED = re.compile(r"([\w.-]+)>=([\w.]+)")


def lowest(project: str) -> list[str]:
    """Return ``name==version`` of each dependency in the text of a pyproject.toml."""
    found = []
    for text in tomllib.loads(project)["project"]["dependencies"]:
        allowed = _ALLOWED.fullmatch(text)
        assert allowed is not None, f"a dependency must be NAME>=VERSION, got {text}"
        found.append(f"{allowed[1]}=={allowed[2]}")
    return found


if __name__ == "__main__":
    print(*lowest(PROJECT.read_text(encoding="utf-8")), sep="\n")

"""The modules of the vendor's kit that a program imports: told without loading TIK."""

import ast
from pathlib import Path

ROOTS = ("te", "tbe", "topi")
"""The kit's packages."""
_ADAPTER = "impl.util.platform_adapter"
"""The module through which the vendor's own operators import TIK."""


def imports_tik(path: str) -> bool:
    """True if a program imports TIK, or another module of the kit; False for what is no Python."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return any(name.partition(".")[0] in ROOTS or name == _ADAPTER for name in names)

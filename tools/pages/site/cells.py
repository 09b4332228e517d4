"""The code cells of a tutorial or of any page: its Python blocks."""

import re

CELL = re.compile(r"^```python[^\n]*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def cells(text: str) -> list[str]:
    """Return the code of each cell, in order."""
    return CELL.findall(text)

"""README's blocks run from an installed wheel alone: `make dist` calls this in a clean environment.

The repository's own package is not on the path; what the commands print must be what README shows.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

from tools.pages import console

import cubecore

ROOT = Path(__file__).resolve().parents[2]
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Run every block; return the exit code."""
    home = Path(cubecore.__file__).resolve()
    if home.is_relative_to(ROOT / "src"):
        print(f"the wheel must be imported, got {home}")
        return 1
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not console.same(text, console.rendered(text)):
        print("README's console blocks print something else from the wheel")
        return 1
    blocks = _PYTHON.findall(text)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for code in blocks:
            exec(compile(code, "README.md", "exec"), {"__name__": "document"})  # noqa: S102 - ours
        os.chdir(ROOT)
    print(f"README's commands and {len(blocks)} Python blocks run from {home.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Lines of a batch for the packages of LLM4AscendC, each with its reference of MultiKernelBench.

`python pairs.py OUTPUT REFERENCE` prints a line of JSON for each text with a kernel whose stem is
that of a reference. They come by a digest of their paths below OUTPUT: the first ones of any count
are a draw.
"""

import hashlib
import json
import sys
from pathlib import Path


def main(output: Path, reference: Path) -> None:
    """Print the lines."""
    tasks = {each.stem: each for each in sorted(reference.rglob("*.py"))}
    found = {}
    for file in output.rglob("*.txt"):
        if file.stem in tasks and "kernel_src" in file.read_text("utf-8", "replace"):
            name = str(file.relative_to(output))
            found[hashlib.sha256(name.encode()).hexdigest()] = file
    for _, file in sorted(found.items()):
        paths = {"submission": str(file.resolve()), "task": str(tasks[file.stem].resolve())}
        print(json.dumps(paths))


if __name__ == "__main__":
    if len(sys.argv) != 3 or not all(Path(each).is_dir() for each in sys.argv[1:]):
        sys.exit("pairs.py takes two folders: the packages, and the references")
    main(*map(Path, sys.argv[1:]))

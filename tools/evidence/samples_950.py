"""The survey of asc-devkit's samples on Ascend 950: which of them verify themselves there.

`python -m tools.evidence.samples_950 EXAMPLES [--match REGEX] [--seconds N]` runs the projects of a
checkout's folder of examples whose build names architecture 3510, those for A2 as well with 3510 in
place of 2201, in the order of their names' hashes. What was surveyed with these headers before is
kept; N seconds later the rest waits for another call. Outcomes are written to `samples_950.jsonl`
beside this file, which holds names alone.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence.cpp_programs import obstacle

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

DATA = Path(__file__).with_name("samples_950.jsonl")
_BUILT_BY = ("CMakeLists.txt", "README.md")


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: str(row["sample"]))


def samples(examples: Path) -> list[str]:
    """Return the names of the projects for 950, in the order of their hashes."""
    found = [
        str(path.parent.relative_to(examples))
        for path in examples.rglob("CMakeLists.txt")
        if "3510" in path.read_text("utf-8", "replace")
    ]
    return sorted(found, key=lambda name: hashlib.sha256(name.encode()).digest())


def outcome_of(folder: Path) -> dict[str, str]:
    """Return the outcome of a copy of a sample that is built for 3510."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / folder.name
        shutil.copytree(folder, copy)
        for path in (copy / name for name in _BUILT_BY):
            if path.is_file():
                text = path.read_text("utf-8", "replace")
                path.write_text(text.replace("dav-2201", "dav-3510"), "utf-8")
        command = [sys.executable, "-m", "cubecore", "sample", str(copy)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    said = (done.stdout + done.stderr).strip().splitlines()
    return told(done.returncode, said[-1] if said else "")


def told(code: int, line: str) -> dict[str, str]:
    """Return the outcome that a sample's last line tells."""
    if code == 0:
        return {"outcome": "verified" if ": verified in" in line else "not compared"}
    if " verified by itself in " in line:
        return {"outcome": "verified, findings"}
    return {"outcome": "failed", "why": obstacle(line.partition(" failed: ")[2] or line)}


def surveyed(examples: Path, match: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each sample that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["sample"] for row in rows() if row["headers"] == made}
    for name in samples(examples):
        if name in known or not re.search(match, name):
            continue
        if monotonic() > end:
            return
        yield {"sample": name, "headers": made} | outcome_of(examples / name)


def main() -> None:
    """Survey samples, write what was found, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("examples", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=500)
    for row in surveyed(**vars(parser.parse_args())):
        print(row["outcome"], row["sample"], row.get("why", ""), flush=True)
        kept = [each for each in rows() if each["sample"] != row["sample"]]
        lines = [json.dumps(each) for each in [*kept, row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    print(dict(Counter(row["outcome"] for row in rows())))


if __name__ == "__main__":
    main()

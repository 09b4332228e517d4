"""The survey of asc-devkit's samples for A2 and for Ascend 950: which leave the same files on both.

`python -m tools.evidence.both_chips EXAMPLES [--match REGEX] [--seconds N]` runs the projects of a
checkout's folder of examples that name architectures 2201 and 3510, once for each, in the order of
their names' hashes, and compares the files that the programs leave in folders named output. Those
surveyed with these headers before are kept; N seconds later the rest waits for another call.
Outcomes are written to `both_chips.jsonl` beside this file, which holds names alone.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence.cpp_programs import obstacle
from tools.evidence.samples_950 import samples, told

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

DATA = Path(__file__).with_name("both_chips.jsonl")
ARCHITECTURES = ("2201", "3510")
_BUILT_BY = ("CMakeLists.txt", "README.md")
_SEEDED = "import random\nimport numpy\nrandom.seed(1)\nnumpy.random.seed(1)\n"
"""Python that a sample's scripts begin with, so that both runs draw the same inputs."""


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: str(row["sample"]))


def for_both(examples: Path) -> list[str]:
    """Return the names of the projects that name both architectures."""
    return [
        name
        for name in samples(examples)
        if any("2201" in _text(examples / name / file) for file in _BUILT_BY)
    ]


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def left_by(folder: Path, arch: str) -> tuple[dict[str, str], Mapping[str, bytes]]:
    """Return the outcome of a copy of a sample that is built for an architecture, and its files."""
    with tempfile.TemporaryDirectory() as scratch:
        copy, seeds = Path(scratch) / folder.name, Path(scratch) / "seeds"
        shutil.copytree(folder, copy)
        seeds.mkdir()
        (seeds / "sitecustomize.py").write_text(_SEEDED, "utf-8")
        for path in (copy / name for name in _BUILT_BY):
            text = re.sub("dav-(2201|3510)", f"dav-{arch}", _text(path))
            if text:
                path.write_text(text, "utf-8")
        inherited = os.environ.get("PYTHONPATH", "")
        done = subprocess.run(
            [sys.executable, "-m", "cubecore", "sample", str(copy)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(seeds), inherited])},
        )
        said = (done.stdout + done.stderr).strip().splitlines()
        files = {
            str(path.relative_to(copy)): path.read_bytes()
            for path in sorted(copy.rglob("*.bin"))
            if path.parent.name == "output"
        }
    return told(done.returncode, said[-1] if said else ""), files


def outcome_of(folder: Path) -> dict[str, str]:
    """Return the outcome of a sample: the same files on both, others, or how one chip fails."""
    left = {}
    for arch in ARCHITECTURES:
        outcome, left[arch] = left_by(folder, arch)
        if not outcome["outcome"].startswith("verified"):
            why = outcome.get("why", outcome["outcome"])
            return {"outcome": f"not verified on {arch}", "why": obstacle(why)}
    first, second = (left[arch] for arch in ARCHITECTURES)
    if not first:
        return {"outcome": "leaves no file"}
    return {"outcome": "the same" if first == second else "other files"}


def surveyed(examples: Path, match: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each sample that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["sample"] for row in rows() if row["headers"] == made}
    for name in for_both(examples):
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

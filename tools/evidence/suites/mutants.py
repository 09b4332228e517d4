"""Samples without one of their synchronisations: of those that change a result, what is reported.

`python -m tools.evidence.suites.mutants CHECKOUTS [--count N] [--seed S] [--seconds N] [--again]`
takes samples that verify (`cpp_programs.jsonl`) from CHECKOUTS/OWNER/NAME, in the order of a hash
with the seed, removes one flag, barrier or call of a queue from a copy of each, drawn by the seed,
and runs it as `cubecore sample` does: first as it is, then in other orders of the pipes until a
result changes.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence import cpp_programs
from tools.evidence.suites.results import kept, rows

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.workflows.scripts.sample import SampleRun, run_sample

SUITE = "mutants of samples"
_ORDERS = ("late", "early", "random:1", "random:2")
_TIMEOUT_S = 120.0
_SUFFIXES = {".asc", ".cpp", ".h", ".hpp"}
REMOVABLE = re.compile(
    r"(?:AscendC::)?(?:CrossCore)?(?:SetFlag|WaitFlag)(?:<[^;{}]*?>)?\([^;{}]*?\);"
    r"|(?:AscendC::)?PipeBarrier<[^;{}]*?>\(\);|(?:AscendC::)?SyncAll(?:<[^;{}]*?>)?\([^;{}]*?\);"
    r"|\b(?:set_flag|wait_flag|pipe_barrier)\([^;{}]*?\);"
    r"|\basc_sync(?:_\w+)?\([^;{}]*?\);"
    r"|[\w.\->]+\.EnQue(?:<[^;{}]*?>)?\([^;{}]*?\);"
    r"|[\w.\->]+\.FreeTensor(?:<[^;{}]*?>)?\([^;{}]*?\);"
)
"""Calls that order, which can be left out of a text as they stand."""
_PASSIVE = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def places(folder: Path) -> list[tuple[Path, re.Match[str]]]:
    """Return the removable calls of a sample, those in comments left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _SUFFIXES or not path.is_file() or "build" in path.parts:
            continue
        text = path.read_text("utf-8", "replace")
        passive = [match.span() for match in _PASSIVE.finditer(text)]
        found += [
            (path, match)
            for match in REMOVABLE.finditer(text)
            if not any(start <= match.start() < end for start, end in passive)
        ]
    return found


def samples(seed: int) -> list[dict[str, Any]]:
    """Return the samples that verify, in the order of a hash with the seed."""
    good = [row for row in cpp_programs.rows() if row["outcome"] == "verified"]
    names = {f"{row['repo']}/{row['path']}": row for row in good}
    return [names[name] for name in sorted(names, key=lambda n: _digest(f"{seed}{n}"))]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@contextmanager
def _environment(**words: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in words}
    os.environ.update(words)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(folder: Path, order: str, checks: str) -> SampleRun:
    with _environment(CUBECORE_ORDER=order, CUBECORE_CHECKS=checks):
        return run_sample(str(folder), _TIMEOUT_S)


def mutant_outcome(folder: Path, generator: random.Random) -> dict[str, Any]:
    """Return what a sample without one of its calls came to."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / folder.name
        shutil.copytree(folder, copy)
        found = places(copy)
        if not found:
            return {"outcome": "nothing to remove"}
        if _run(copy, "program", "usual").line.partition(": ")[2][:8] != "verified":
            return {"outcome": "does not verify"}
        path, match = generator.choice(found)
        text = path.read_text("utf-8", "replace")
        path.write_text(f"{text[: match.start()]};{text[match.end() :]}", "utf-8")
        line = text.count("\n", 0, match.start()) + 1
        call = re.sub(r"\s+", " ", re.sub(r"\(.*", "", match[0], flags=re.DOTALL))
        told = {"removed": f"{path.relative_to(copy)}:{line} {call}"}
        first = _run(copy, "program", "usual")
        if first.failed in {"cmake", "make"}:
            return told | {"outcome": "does not compile"}
        reported = bool(first.findings) or _is_stopped(first)
        changed = bool(first.failed)
        for order in () if changed else _ORDERS:
            if _run(copy, order, "memcheck").failed:
                changed = True
                break
    name = ("reported" if reported else "missed") if changed else "no change"
    return told | {"outcome": name, "reported": reported}


def _is_stopped(run: SampleRun) -> bool:
    """True if the program itself ended with an error, and not the comparison of its results."""
    stopped = ("deadlock", "did not end", "must ", "ended with")
    return bool(run.failed) and any(word in run.said for word in stopped)


def surveyed(
    checkouts: Path, count: int, seed: int, seconds: float, *, again: bool
) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each sample's mutant: not run before, or `again` with other headers."""
    end, made, drawn = monotonic() + seconds, headers(), 0
    stand = [r for r in rows(SUITE) if not again or r["headers"] == made]
    known = {(r["task"], r["seed"]): r for r in stand}
    for row in samples(seed):
        name = f"{row['repo']}/{row['path']}"
        folder = (checkouts / name).parent
        if drawn == count or monotonic() > end:
            return
        if not (folder / "CMakeLists.txt").is_file():
            continue
        told = known.get((name, seed))
        if told is None:
            generator = random.Random(f"{seed}{name}")  # noqa: S311 - a draw, no secret
            told = {"suite": SUITE, "task": name, "seed": seed, "headers": made}
            told |= mutant_outcome(folder, generator)
            yield told
        drawn += told["outcome"] in {"reported", "missed", "no change"}


def main() -> None:
    """Run mutants of samples, and write what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--again", action="store_true", help="what ran with other headers too")
    asked = parser.parse_args()
    asked.checkouts = asked.checkouts.resolve()
    for row in surveyed(**vars(asked)):
        print(row["outcome"], row["task"], row.get("removed", ""), flush=True)
        kept(row)


if __name__ == "__main__":
    main()

"""Run or build every listed operator, and write the page's data.

``python -m tests.public_tik.survey CHECKOUTS [WORD...]`` from the repository's root, where
CHECKOUTS holds the repositories as OWNER/NAME. The cases of the table are run and held to their
oracles; every other file is tried until it is built. With words it tries the listed files whose
path contains one, and writes nothing.

A file counts as built when a kernel was built from arguments of ours, of its repository's unit
tests or of its model generators, in which the file's own code issued instructions; that may be
as part of another operator. Attempts end with the first that builds.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .attempt import Attempt, Built, build
from .attempts import OWN
from .run import DATA, rows_after, run_all
from .table import CASES
from .unit_tests import unit_test_attempts

OWN_MOST, OTHERS_MOST, USERS_MOST = 8, 60, 12
"""How many of an operator's cases are tried, of those that import it, and of how many of these."""
_IMPORT = re.compile(r"^\s*(from|import)\b")
_WORD = re.compile(r"\w+")
_CALLS_LANGUAGE = "call_module("
"""A call of a sub-kernel of the vendor's tensor-expression language."""

File = tuple[str, str]


def spread(attempts: list[Attempt], most: int) -> list[Attempt]:
    """Return at most so many attempts, evenly spaced: neighbours are much alike."""
    step = max(1, -(-len(attempts) // most))
    return attempts[::step]


def _imports(path: Path) -> Iterable[str]:
    """Return the lines of a file that import."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return filter(_IMPORT.match, lines)


class Survey:
    """What is known of the listed files while attempts are made.

    `listed` says for each file the key of the attempt that built it the last time, if any.
    """

    def __init__(self, checkouts: Path, listed: Mapping[File, str]) -> None:
        self.checkouts = checkouts
        self.listed = listed
        self.built: dict[File, Built] = {}
        self.failed: dict[File, Built] = {}
        self._done: set[int] = set()
        self._words: dict[File, dict[str, set[str]]] = {}

    def attempt(self, attempt: Attempt) -> Built | None:
        """Make an attempt, once, and note what it says about files."""
        if id(attempt) in self._done:
            return None
        self._done.add(id(attempt))
        built = build(attempt, self.checkouts)
        sys.stdout.write(f"{built.kind:9} {attempt.path}: {built.why}\n")
        sys.stdout.flush()
        for path in built.files:
            self.built.setdefault((attempt.repository, path), built)
        if built.kind != "built":
            before = self.failed.get((attempt.repository, attempt.path))
            if before is None or before.kind == "arguments":
                self.failed[attempt.repository, attempt.path] = built
        return built

    def run(self, attempts: list[Attempt]) -> None:
        """Try each file's own attempts, then those of the operators that import it."""
        by_file: dict[File, list[Attempt]] = {}
        for attempt in attempts:
            by_file.setdefault((attempt.repository, attempt.path), []).append(attempt)
        by_key = {attempt.key: attempt for attempt in attempts}
        for file, key in self.listed.items():
            self._until_built(file, [by_key[key]] if key in by_key else [])
        for file in self.listed:
            self._until_built(file, spread(by_file.get(file, []), OWN_MOST))
        wanting = {repository for repository, path in self.listed.keys() - self.built.keys()}
        for attempt in OWN:  # of operators that are not listed, and use what is
            own = attempt.repository, attempt.path
            if attempt.repository in wanting and own not in self.listed:
                self.attempt(attempt)
        for file in self.listed:
            users = self._users(file) if file not in self.built else set()
            for user in sorted(users & by_file.keys())[:USERS_MOST]:
                self._until_built(file, spread(by_file[user], OTHERS_MOST))

    def _until_built(self, file: File, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            if file in self.built:
                return
            self.attempt(attempt)

    def _users(self, file: File) -> set[File]:
        """Return the files that import this one, or a file that does."""
        repository, path = file
        top = self.checkouts / repository
        folder = path.partition("/impl/")[0] + "/impl"
        if (repository, folder) not in self._words:
            self._words[repository, folder] = {
                str(found.relative_to(top)): set(_WORD.findall("".join(_imports(found))))
                for found in sorted((top / folder).rglob("*.py"))
            }
        reached, fresh = {path}, {path}
        while fresh:
            stems = {Path(name).stem for name in fresh}
            words = self._words[repository, folder].items()
            fresh = {user for user, named in words if named & stems and user not in reached}
            fresh = {user for user in fresh if Path(user).stem != "__init__"}
            reached |= fresh
        return {(repository, user) for user in reached - {path}}

    def row(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Return the page's row of a listed file, whose row was `before`."""
        file = before["repository"], before["path"]
        known = {key: before[key] for key in ("repository", "revision", "path", "category")}
        source = self.checkouts / file[0] / file[1]
        if not source.is_file():
            why = before.get("why") if before["outcome"] == "not here" else None
            return known | {"outcome": "not here", "why": why or "its repository was not at hand"}
        if _CALLS_LANGUAGE in source.read_text(encoding="utf-8", errors="replace"):
            why = "calls a sub-kernel of the tensor-expression language"
            return known | {"outcome": "tensor expressions", "why": why}
        if file in self.built:
            attempt = self.built[file].attempt
            extra = {"arguments": attempt.source, "attempt": attempt.key}
            via = Path(attempt.path).name
            extra |= {} if attempt.path == file[1] else {"why": f"as part of {via}"}
            return known | {"outcome": "built"} | extra
        if file in self.failed:
            failed = self.failed[file]
            outcome = "no arguments" if failed.kind == "arguments" else failed.kind
            return known | {"outcome": outcome, "why": failed.why}
        return known | {"outcome": "no arguments", "why": "nobody's were at hand"}


def main(arguments: list[str]) -> int:
    """Survey the listed files; 2 for bad arguments."""
    if not arguments or not Path(arguments[0]).is_dir():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    checkouts, words = Path(arguments[0]), arguments[1:]
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    wanted = [r for r in rows if not words or any(word in r["path"] for word in words)]
    listed = {(row["repository"], row["path"]): row.get("attempt", "") for row in wanted}
    outcomes = [] if words else run_all(checkouts)
    verified = {(o.case.repository, path) for o in outcomes if o.verified for path in o.case.files}
    listed = {file: key for file, key in listed.items() if file not in verified}
    survey = Survey(checkouts, listed)
    survey.run([*map(Attempt.of, CASES), *OWN, *unit_test_attempts(checkouts)])
    after = rows_after([survey.row(row) for row in wanted], outcomes)
    for row in after:
        sys.stdout.write(f"{row['outcome']:12} {row['path']} {row.get('why', '')}\n")
    if not words:
        lines = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in after]
        DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The trial of the ledger: each mutant is made, and the tests of its rows must fail.

``python -m seeds.trial [SEED[/SECTION[/SLUG]] ...]`` from tests/ tries the rows whose ids begin so,
or all; `make ledger` calls it. Each mutant lives in a process of its own, forked from one that has
imported the package, and runs the tests of all rows that name it. Nothing is written.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

import cubecore
from seeds import ledger
from seeds.ledger import ROOT, Entry
from seeds.mutants import MutantError, apply, name_of

SECONDS = 300
"""Longest that the tests of one mutant may run; those that are not done by then count as failed."""
TESTS_OF_KIND = {
    "rule": "tests/tiling/rules/test_boundaries.py::test_a_rule_at_its_boundary[{name}-",
    "advice": "tests/tiling/rules/test_advice.py::",
}
"""Beginnings of the ids of the tests that hold a rule or a piece of advice wherever it is named."""


def beginnings(entry: Entry) -> tuple[str, ...]:
    """Return the beginnings of the ids of the tests that hold a row: files come first."""
    named = [claim.name for claim in entry.claims if claim.kind == "test"]
    others = [
        TESTS_OF_KIND[claim.kind].format(name=claim.name)
        for claim in entry.claims
        if claim.kind in TESTS_OF_KIND
    ]
    return (*named, *others)


def is_of(nodeid: str, beginning: str) -> bool:
    """Whether a test is the one that a claim names, or one of its cases."""
    return nodeid == beginning or (
        nodeid.startswith(beginning) and (beginning[-1] in "[-:]" or nodeid[len(beginning)] in "[:")
    )


@dataclass
class Outcomes:
    """A plugin of pytest: it runs the tests wanted and notes which ran and which failed."""

    wanted: frozenset[str]
    ran: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the other tests of the files."""
        items[:] = [item for item in items if any(is_of(item.nodeid, b) for b in self.wanted)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a phase of a test."""
        if not report.skipped:
            self.ran.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)


def run_tests(wanted: frozenset[str]) -> tuple[list[str], list[str]]:
    """Run tests in this process; return the ids of those that ran and of those that failed."""
    outcomes = Outcomes(wanted)
    files = sorted({beginning.partition("::")[0] for beginning in wanted})
    plugins = ("cacheprovider", "xdist", "unraisableexception")  # the last judges after the tests
    options = ["-q", *(f"-pno:{name}" for name in plugins), "-m", "sweep or not sweep"]
    os.chdir(ROOT)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main([*options, *files], plugins=[outcomes])
    return sorted(outcomes.ran), sorted(outcomes.failed)


def tried(mutant: str, wanted: frozenset[str]) -> dict[str, object]:
    """Make a mutant (JSON; empty for none) in this process and run tests."""
    try:
        if mutant:
            apply(json.loads(mutant))
    except MutantError as error:
        return {"error": [str(error)]}
    ran, failed = run_tests(wanted)
    return {"ran": ran, "failed": failed}


class Trials:
    """Children at work, as many as there are processors."""

    def __init__(self, jobs: dict[str, frozenset[str]]) -> None:
        self.waiting = list(jobs.items())
        self.selector = selectors.DefaultSelector()
        self.texts: dict[str, bytes] = {}

    def start(self) -> None:
        """Fork a child for the next mutant."""
        mutant, wanted = self.waiting.pop(0)
        out, into = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.close(out)
            signal.alarm(SECONDS)
            try:
                with os.fdopen(into, "w", encoding="utf-8") as pipe:
                    json.dump(tried(mutant, wanted), pipe)
            finally:
                os._exit(0)
        os.close(into)
        self.texts[mutant] = b""
        self.selector.register(out, selectors.EVENT_READ, (mutant, child))

    def results(self) -> Iterable[tuple[str, dict[str, list[str]]]]:
        """Yield each mutant with what its child found, as they end."""
        while self.waiting or self.selector.get_map():
            while self.waiting and len(self.selector.get_map()) < (os.cpu_count() or 1):
                self.start()
            for key, _ in self.selector.select():
                mutant, child = key.data
                part = os.read(key.fd, 1 << 16)
                self.texts[mutant] += part
                if not part:
                    self.selector.unregister(key.fd)
                    os.close(key.fd)
                    _, status = os.waitpid(child, 0)
                    yield mutant, _answered(self.texts.pop(mutant), status)


def _answered(text: bytes, status: int) -> dict[str, list[str]]:
    """Return what a child wrote; one that wrote nothing ran too long, or is of no use."""
    if text:
        return dict(json.loads(text))
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    return {"timeout": []} if late else {"error": ["the trial ended without an answer"]}


def load_package() -> None:
    """Import the whole package: a mutant reaches every module that holds what it changes."""
    for module in pkgutil.walk_packages(cubecore.__path__, "cubecore."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def verdict(entry: Entry, found: dict[str, list[str]], right: dict[str, list[str]]) -> str:
    """Return why a row does not hold; nothing where a test of it fails with the mutant alone."""
    if "error" in found:
        return f"not tried: {found['error'][0]}"
    if "timeout" in found:
        return ""
    wanted = beginnings(entry)
    own = {name for name in right["ran"] if any(is_of(name, b) for b in wanted)}
    if not own:
        return f"no test: {', '.join(wanted) or 'none named'}"
    if red := own & set(right["failed"]):
        return f"red without the mutant: {min(red)}"
    failed = {name for name in found["failed"] if any(is_of(name, b) for b in wanted)}
    return "" if failed or not found["ran"] else f"survived: {', '.join(wanted)}"


def main(prefixes: list[str]) -> int:
    """Try the rows; print those that do not hold, then the counts; return 1 if there are any."""
    begun = time.monotonic()
    entries = [
        entry
        for book in ledger.load_all()
        for entry in book.entries
        if not prefixes or entry.id.startswith(tuple(prefixes))
    ]
    rows = [(json.dumps(mutant), entry) for entry in entries for mutant in entry.mutants]
    jobs: dict[str, set[str]] = {"": set()}
    for mutant, entry in rows:
        jobs.setdefault(mutant, set()).update(beginnings(entry))
        jobs[""].update(beginnings(entry))
    load_package()
    found = dict(Trials({name: frozenset(tests) for name, tests in jobs.items()}).results())
    bad = 0
    for mutant, entry in rows:
        if why := verdict(entry, found[mutant], found[""]):
            bad += 1
            print(f"{entry.id}: {why}\n    {name_of(json.loads(mutant))}")
    left = sum(not entry.mutants for entry in entries)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(entries)} rows, {len(jobs) - 1} mutants, {bad} that no test of the row catches, "
        f"{left} rows without one; {time.monotonic() - begun:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processors"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command line of sweeps: plan --queries, and the store. Loads nothing heavy when imported."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import click

from cubecore.console import (
    BAD_REQUEST,
    DONE,
    FOUND,
    Integer,
    common_options,
    say,
    show,
    split_options,
)


@dataclass(frozen=True, slots=True)
class SweepTargets:
    """Where the queries of a sweep come from and where its answers go."""

    queries: str
    out: str | None
    store: str | None
    processes: int | None


def run_sweep(
    targets: SweepTargets,
    keys: dict[str, Any],
    settings: dict[str, str],
    alternatives: int,
    as_json: bool,
) -> int:
    """Plan every query of a file; `keys` are what its lines leave out."""
    from cubecore.reports.progress import counting
    from cubecore.reports.sweeps import Tally
    from cubecore.workflows.files import require_writable
    from cubecore.workflows.queries import count_lines, open_queries, read_queries
    from cubecore.workflows.resume import GrowingFile, signature
    from cubecore.workflows.store import Store
    from cubecore.workflows.sweep import available_cores, make_options, sweep, useful_processes

    with ExitStack() as stack:
        options = make_options(settings, alternatives, keys.get("chip"))
        file = stack.enter_context(open_queries(targets.queries))
        store = out = None
        if targets.store is not None:
            store = stack.enter_context(Store.open(targets.store, write=True, subject="--store"))
        if targets.out is not None:
            require_writable(targets.out, "--out")
            growing = GrowingFile(targets.out, signature(file, options, keys))
            out = stack.enter_context(growing)
        total = count_lines(file)
        tally = Tally(total, 0 if out is None else out.done)
        queries = read_queries(file, keys)
        for _ in range(tally.resumed):
            next(queries, None)
        processes = targets.processes or min(available_cores(), useful_processes(total))
        advance = stack.enter_context(counting("planning", total))
        for answer in sweep(queries, options, processes, store):
            tally.add(answer)
            advance(tally.done)
            if answer.error is not None:
                for violation in answer.error.violations:
                    say(f"{targets.queries}:{answer.line}: {violation}", to_error=True)
            if out is not None:
                out.write([answer.text])
            elif store is None:
                say(answer.text)
        if out is not None:
            out.finish()
    if out is not None or store is not None:
        show(tally, as_json, lambda made: made.text)
    return DONE if tally.failed == 0 else FOUND

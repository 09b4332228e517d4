"""Plan every matmul in a file: `plan --queries`."""

from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from cubecore.aliases import Json
from cubecore.cli.console import CSV, show
from cubecore.cli.streams import DONE, FOUND, say

if TYPE_CHECKING:
    from cubecore.answers.plan import SweepTally


@dataclass(frozen=True, slots=True)
class Sweep:
    """The inputs, the outputs and the common settings of a sweep."""

    queries: str
    out: str | None
    store: str | None
    processes: int | None
    alternatives: int
    settings: dict[str, str]
    keys: Json
    """Of a problem: what the lines leave out."""
    search: str

    def run(self, form: str) -> int:
        """Plan every query; return the exit code."""
        from cubecore.answers.plan import QUERY_COLUMNS, SweepTally
        from cubecore.cli.progress import counting
        from cubecore.output_files import require_writable
        from cubecore.presented.rows import csv_lines
        from cubecore.workflows.sweep.plan_many import (
            make_options,
            require_storable,
            sweep,
            useful_processes,
        )
        from cubecore.workflows.sweep.queries import count_lines, open_queries, read_queries
        from cubecore.workflows.sweep.resume import GrowingFile, signature
        from cubecore.workflows.sweep.store import Store

        with ExitStack() as stack:
            options = make_options(
                self.settings, self.alternatives, self.keys.get("chip"), self.search
            )
            require_storable(self.store, self.search, "--search")
            file = stack.enter_context(open_queries(self.queries))
            store = out = None
            if self.store is not None:
                opened = Store.open(self.store, write=True, subject="--store")
                store = stack.enter_context(opened)
            if self.out is not None:
                require_writable(self.out, "--out")
                asked = signature(file, options, self.keys)
                out = stack.enter_context(GrowingFile(self.out, asked))
            begun = False
            tally = SweepTally(count_lines(file))
            if out is not None:
                tally.resumed, tally.planned_before = out.done, out.planned
            queries = islice(read_queries(file, self.keys), tally.resumed, None)
            processes = self.processes or useful_processes(tally.queries - tally.resumed)
            advance = stack.enter_context(counting("planning", tally.queries))
            answers = closing(sweep(queries, options, processes, store))
            try:
                for answer in stack.enter_context(answers):
                    tally.add(answer)
                    advance(tally.done)
                    if out is not None:
                        out.write([answer.text])
                    if form == CSV:
                        head, line = csv_lines(QUERY_COLUMNS, [answer.to_row()])
                        say(line if begun else head + line, newline=False)
                        begun = True
                    elif out is None and store is None:
                        say(answer.text)
            except KeyboardInterrupt:
                say(self._interrupted(tally), to_error=True)
                raise
            if out is not None:
                out.finish()
        for line in tally.complaint_lines(self.queries):
            say(line, to_error=True)
        if form != CSV and (out is not None or store is not None):
            show(tally, form)
        return DONE if tally.every_one_planned else FOUND

    def _interrupted(self, tally: "SweepTally") -> str:
        """Return how far the sweep came and how it goes on."""
        done = f"interrupted: {tally.done:,} of {tally.queries:,} queries answered"
        if self.out is None and self.store is None:
            return f"{done}; --out or --store keeps the answers of a sweep that is interrupted"
        return f"{done}; the same command goes on there"

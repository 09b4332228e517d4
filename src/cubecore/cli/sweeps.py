"""The command line of many answers: plan --queries, the store, and sweeps of timings.

Loads nothing heavy when imported.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import click

from cubecore.cli.console import (
    DONE,
    FOUND,
    CommandGroup,
    InputFile,
    Integer,
    OutputFile,
    Verb,
    Word,
    common_options,
    problem_options,
    say,
    show,
    split_options,
)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Where the queries of a sweep come from, where its answers go, and what holds for all."""

    queries: str
    out: str | None
    store: str | None
    processes: int | None
    alternatives: int
    settings: dict[str, str]
    keys: dict[str, Any]
    """Of a problem: what the lines leave out."""

    def run(self, as_json: bool) -> int:
        """Plan every query; return the exit code."""
        from cubecore.reports.text.progress import counting
        from cubecore.reports.text.sweeps import SweepTally
        from cubecore.workflows.data.files import require_writable
        from cubecore.workflows.sweep.plan_many import make_options, sweep, useful_processes
        from cubecore.workflows.sweep.queries import count_lines, open_queries, read_queries
        from cubecore.workflows.sweep.resume import GrowingFile, signature
        from cubecore.workflows.sweep.store import Store

        with ExitStack() as stack:
            options = make_options(self.settings, self.alternatives, self.keys.get("chip"))
            file = stack.enter_context(open_queries(self.queries))
            store = out = None
            if self.store is not None:
                opened = Store.open(self.store, write=True, subject="--store")
                store = stack.enter_context(opened)
            if self.out is not None:
                require_writable(self.out, "--out")
                asked = signature(file, options, self.keys)
                out = stack.enter_context(GrowingFile(self.out, asked))
            tally = SweepTally(count_lines(file))
            if out is not None:
                tally.resumed, tally.planned_before = out.done, out.planned
            queries = islice(read_queries(file, self.keys), tally.resumed, None)
            processes = self.processes or useful_processes(tally.queries - tally.resumed)
            advance = stack.enter_context(counting("planning", tally.queries))
            answers = closing(sweep(queries, options, processes, store))
            for answer in stack.enter_context(answers):
                tally.add(answer)
                advance(tally.done)
                if out is not None:
                    out.write([answer.text])
                elif store is None:
                    say(answer.text)
            if out is not None:
                out.finish()
        for line in tally.complaint_lines(self.queries):
            say(line, to_error=True)
        if out is not None or store is not None:
            show(tally, as_json, lambda made: made.text)
        return DONE if tally.every_one_planned else FOUND


@click.group(cls=CommandGroup)
def store() -> None:
    """Look into a store of plans, which plan --store fills."""


def _filters(command: Any) -> Any:
    """Add what chooses among stored plans."""
    for name, kind, text in (
        ("a", str, "type of A"),
        ("k", Integer(), "columns of A, rows of B"),
        ("n", Integer(), "columns of B and C"),
        ("m", Integer(), "rows of A and C"),
        ("chip", str, "full SoC name"),
        ("model", str, "version of the model; all unless given"),
    ):
        command = click.option(f"--{name}", type=kind, default=None, help=text)(command)
    return command


def _chosen(options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return (what `Store.plans` is to be asked for, whether JSON is wanted)."""
    from cubecore.dtypes import element_type

    keys, settings, as_json = split_options(options)
    if "a" in keys:
        keys["a"] = element_type(keys["a"], "--a").name
    return {"settings": settings or None, **keys}, as_json


@store.command("show")
@click.argument("path", type=InputFile())
@_filters
@click.option("--limit", type=Integer(), default=20, help="how many plans to show; 0 for none")
@common_options
def show_store(path: str, limit: int, **options: Any) -> int:
    """List the models that answered, and plans."""
    from cubecore.reports.text.sweeps import StoreView
    from cubecore.workflows.sweep.store import Store

    chosen, as_json = _chosen(options)
    with Store.open(path) as opened:
        if chosen.get("model") is not None:
            opened.require_model(chosen["model"])
        plans = tuple(islice(opened.plans(**chosen), max(limit, 0)))
        show(StoreView(opened.models(), plans), as_json, lambda view: view.text)
    return DONE


@store.command("compare")
@click.argument("path", type=InputFile())
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--chip", default=None, help="full SoC name; all unless given")
@common_options
def compare_store(path: str, old: str | None, new: str | None, **options: Any) -> int:
    """Compare the plans of two models: the last two unless named."""
    from cubecore.reports.text.sweeps import comparison_text
    from cubecore.workflows.sweep.store import Store
    from cubecore.workflows.sweep.store_compare import compare_models

    chosen, as_json = _chosen(options)
    with Store.open(path) as opened:
        show(compare_models(opened, old, new, **chosen), as_json, comparison_text)
    return DONE


@store.command("export")
@click.argument("path", type=InputFile())
@_filters
@click.option("--out", type=OutputFile(), help="CSV file; standard output unless given")
@common_options
def export_store(path: str, out: str | None, **options: Any) -> int:
    """Write plans as CSV, a line each."""
    from io import StringIO

    from cubecore.reports.text.sweeps import Exported
    from cubecore.workflows.data.files import require_writable, write_whole
    from cubecore.workflows.sweep.store import Store
    from cubecore.workflows.sweep.store_compare import write_csv

    chosen, as_json = _chosen(options)
    if out is not None:
        require_writable(out, "--out")
    with Store.open(path) as opened:
        if chosen.get("model") is not None:
            opened.require_model(chosen["model"])
        text = StringIO()
        count = write_csv(opened, opened.plans(**chosen), text)
    if out is None:
        say(text.getvalue(), newline=False)
    else:
        write_whole(out, text.getvalue().encode(), "--out")
        show(Exported(count, out), as_json, lambda made: made.text)
    return DONE


@click.command("sweep", cls=Verb)
@click.argument("axes", nargs=-1, required=True, metavar="NAME=VALUES [NAME=VALUES]")
@problem_options
@click.option(
    "--tiling",
    type=InputFile(),
    help="file with a tiling for every point; each point's plan unless given",
)
@click.option("--keep-tiling", is_flag=True, help="plan once, for the problem as it stands")
@click.option("--step", type=Word(["MDL", "NORM", "CONSTANT", "BASIC"]), help="as for time")
@click.option("--plot", type=OutputFile(), help="SVG file: time and TFLOPS over the first NAME")
@common_options
def sweep_timings(
    axes: tuple[str, ...],
    tiling: str | None,
    keep_tiling: bool,
    step: str | None,
    plot: str | None,
    **options: Any,
) -> int:
    """Time a product over values of its shape, its options, its tiling or its chip.

    NAME is an option of a problem (m, format_b, chip), a field of TCubeTiling (baseM) or one of the
    chip (hbm_bytes_per_second). VALUES are 64,128,512 or 512..4096/512 (every 512) or
    1024..65536x2 (doubling). The exit code is 1 if a point has no time.
    """
    from cubecore.errors import refuse
    from cubecore.reports.html.curves import sweep_svg, sweep_text
    from cubecore.reports.text.progress import counting
    from cubecore.tiling.model.export import load_tiling
    from cubecore.workflows.data.files import require_writable, write_whole
    from cubecore.workflows.sweep.vary import Axis, sweep

    keys, settings, as_json = split_options(options)
    found = [Axis.from_text(text) for text in axes]
    if plot is not None:
        if not plot.endswith(".svg"):
            raise refuse("--plot", "name a .svg file", repr(plot))
        require_writable(plot, "--plot")
    given = None if tiling is None else load_tiling(tiling)
    points = prod(len(axis.values) for axis in found)
    with counting("timing", points) as advance:
        answer = sweep(
            found,
            tiling=given,
            settings=settings,
            step=step,
            keep_tiling=keep_tiling,
            progress=advance,
            **keys,
        )
    if plot is not None:
        write_whole(plot, sweep_svg(answer).encode(), "--plot")
    show(answer, as_json, sweep_text)
    return DONE if answer.complete else FOUND

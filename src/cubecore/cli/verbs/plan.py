"""The command `plan`."""

from typing import Any

import click

from cubecore.cli.console import (
    TILING_FORMS,
    InputFile,
    Integer,
    OutputFile,
    Verb,
    Word,
    problem_options,
    show,
    split_options,
    table_options,
)
from cubecore.cli.streams import DONE


@click.command(cls=Verb)
@problem_options
@click.option("--alternatives", type=Integer(), default=5, help="number of alternatives to show")
@click.option(
    "--out", type=OutputFile(), help=f"{TILING_FORMS}; with --queries, a JSONL file of answers"
)
@click.option(
    "--queries",
    type=InputFile(),
    help="JSONL file of problems, planned on all cores; - for stdin",
)
@click.option(
    "--store",
    type=OutputFile(),
    help="SQLite file that keeps and reuses the answers of --queries",
)
@click.option(
    "--processes", type=Integer(), help="number of processes for --queries (default: all cores)"
)
@click.option(
    "--search",
    type=Word(["quick", "standard", "thorough"]),
    default="standard",
    help="how far to look for faster changes of the best tiling",
)
@click.option("--exact", is_flag=True, hidden=True)
@table_options
def plan(
    alternatives: int,
    search: str,
    exact: bool,
    out: str | None,
    queries: str | None,
    store: str | None,
    processes: int | None,
    **options: Any,
) -> int:
    """Find a legal, fast TCubeTiling for a product, or for every product in a file."""
    from cubecore.errors import unable
    from cubecore.reports.text.answers import plan_text
    from cubecore.workflows.plan import plan as make_plan

    keys, settings, form = split_options(options)
    if exact:
        raise unable("--exact", "--exact is gone: every plan is timed event by event")
    if queries is not None:
        from cubecore.cli.verbs.queries import Sweep

        asked = Sweep(queries, out, store, processes, alternatives, settings, keys, search)
        return asked.run(form)
    for name, value in (("--store", store), ("--processes", processes)):
        if value is not None:
            raise unable(name, f"{name} needs --queries")
    if out is not None:
        from cubecore.tiling.model.export import require_form, tiling_data
        from cubecore.workflows.data.files import require_writable, write_whole

        require_writable(out, "--out")
        require_form(out, "--out")
    answer = make_plan(settings=settings, alternatives=alternatives, search=search, **keys)
    if out is not None:
        write_whole(out, tiling_data(answer.tiling, out), "--out")
    show(answer, form, plan_text)
    return DONE

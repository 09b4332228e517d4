"""The command `plan`."""

from typing import Any

import click

from cubecore.cli.console import (
    TILING_FORMS,
    fix_option,
    problem_options,
    show,
    split_options,
    table_options,
)
from cubecore.cli.streams import DONE, say
from cubecore.cli.values import InputFile, Integer, OutputFile, Word
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore plan --m 4096 --n 5120 --k 4096 --out tiling.h",
        "cubecore plan --queries problems.jsonl --store plans.sqlite --out answers.jsonl",
    ],
)
@problem_options
@fix_option
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
@click.option(
    "--format",
    "written",
    type=Word(["cpp", "cpp-setters"]),
    help="write the tiling as a C++ constant, or as setters for host code; printed without --out",
)
@click.option("--name", help="name of the constant or of the function with the setters")
@click.option("--namespace", help="namespace of it, such as ours::tilings")
@click.option("--exact", is_flag=True, hidden=True)
@table_options
def plan(
    alternatives: int,
    search: str,
    written: str | None,
    name: str | None,
    namespace: str | None,
    exact: bool,
    out: str | None,
    queries: str | None,
    store: str | None,
    processes: int | None,
    **options: Any,
) -> int:
    """Find a legal, fast TCubeTiling for a matmul (GEMM), or for every matmul in a file."""
    from cubecore.answers.cpp_tiling import HEADER, cpp_source, require_cpp
    from cubecore.errors import unable
    from cubecore.workflows.plan import plan as make_plan

    keys, settings, form = split_options(options)
    if exact:
        raise unable("--exact", "--exact is gone: every plan is timed event by event")
    if queries is not None:
        for option, value in (("--format", written), ("--name", name), ("--namespace", namespace)):
            if value is not None:
                raise unable(option, f"{option} is of one plan, not of --queries")
        from cubecore.cli.requests.queries import Sweep

        asked = Sweep(queries, out, store, processes, alternatives, settings, keys, search)
        return asked.run(form)
    for option, given in (("--store", store), ("--processes", processes)):
        if given is not None:
            raise unable(option, f"{option} needs --queries")
    require_cpp(written, out, name=name, namespace=namespace)
    if out is not None:
        from cubecore.output_files import require_writable, write_whole
        from cubecore.tiling.model.export import require_form, tiling_data

        require_writable(out, "--out")
        require_form(out, "--out")
    answer = make_plan(settings=settings, alternatives=alternatives, search=search, **keys)
    cpp = written is not None or (out is not None and out.endswith((".h", ".hpp")))
    source = cpp_source(answer, written or HEADER, name, namespace) if cpp else ""
    if out is not None:
        data = source.encode() if cpp else tiling_data(answer.tiling, out)
        write_whole(out, data, "--out")
    if written is not None and out is None:
        say(source, newline=False)
    else:
        show(answer, form)
    return DONE

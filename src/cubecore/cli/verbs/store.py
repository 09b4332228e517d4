"""The command `store`: what is in a store of plans."""

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from cubecore.aliases import Json
from cubecore.cli.console import CommandGroup, show, split_options, table_options
from cubecore.cli.streams import DONE, FOUND, say
from cubecore.cli.values import InputFile, Integer, OutputFile
from cubecore.units import plural

if TYPE_CHECKING:
    from cubecore.workflows.sweep.store import Store


@click.group(cls=CommandGroup)
def store() -> None:
    """Show, compare or export a store of plans (plan --store)."""


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


def _chosen(options: Json) -> tuple[Json, str]:
    """Return (what `Store.plans` is to be asked for, the form of the answer)."""
    from cubecore.dtypes import element_type

    keys, settings, form = split_options(options)
    if "a" in keys:
        keys["a"] = element_type(keys["a"], "--a").name
    return {"settings": settings or None, **keys}, form


def _code(store: "Store") -> int:
    """Return the exit code of a look into a store, and say what it left out."""
    if not store.damaged:
        return DONE
    left = plural(store.damaged, "damaged answer")
    say(f"{left} left out; plan --queries answers anew what it is asked", to_error=True)
    return FOUND


@store.command("show")
@click.argument("path", type=InputFile())
@_filters
@click.option("--limit", type=Integer(), default=20, help="number of plans to show (0: none)")
@table_options
def show_store(path: str, limit: int, **options: Any) -> int:
    """List the models that answered, and plans."""
    from cubecore.answers.store import StoreView
    from cubecore.workflows.sweep.store import Store

    chosen, form = _chosen(options)
    with Store.open(path) as opened:
        if chosen.get("model") is not None:
            opened.require_model(chosen["model"])
        with closing(opened.plans(**chosen)) as found:
            plans = tuple(islice(found, max(limit, 0)))
            more = limit > 0 and next(found, None) is not None
        show(StoreView(opened.models(), plans, more), form)
        return _code(opened)


@store.command("compare")
@click.argument("path", type=InputFile())
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--chip", default=None, help="full SoC name (default: all)")
@table_options
def compare_store(path: str, old: str | None, new: str | None, **options: Any) -> int:
    """Compare the plans of two models: the last two unless named."""
    from cubecore.workflows.sweep.store import Store
    from cubecore.workflows.sweep.store_compare import compare_models

    chosen, form = _chosen(options)
    with Store.open(path) as opened:
        show(compare_models(opened, old, new, **chosen), form)
        return _code(opened)


@store.command("export")
@click.argument("path", type=InputFile())
@_filters
@click.option("--out", type=OutputFile(), help="CSV file (default: standard output)")
@table_options
def export_store(path: str, out: str | None, **options: Any) -> int:
    """Write plans as CSV, a line each."""
    from io import StringIO

    from cubecore.answers.store import Exported
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.sweep.store import Store
    from cubecore.workflows.sweep.store_compare import write_csv

    chosen, form = _chosen(options)
    if out is not None:
        require_writable(out, "--out")
    with Store.open(path) as opened:
        if chosen.get("model") is not None:
            opened.require_model(chosen["model"])
        text = StringIO()
        count = write_csv(opened, opened.plans(**chosen), text)
        code = _code(opened)
    if out is None:
        say(text.getvalue(), newline=False)
    else:
        write_whole(out, text.getvalue(), "--out")
        show(Exported(count, out), form)
    return code

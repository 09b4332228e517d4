"""The command line. Importing this module loads nothing heavy, so that --help is instant."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cubecore.cli.console import (
    DONE,
    FOUND,
    ArrayFile,
    Group,
    InputFile,
    Integer,
    OutputFile,
    Word,
    common_options,
    problem_options,
    say,
    show,
    split_options,
)
from cubecore.cli.scripts import (
    debug_options,
    file_options,
    require_alone,
    require_script,
    run_of_script,
    script_arguments,
    time_files,
    time_of_script,
)
from cubecore.cli.sweeps import Sweep, sweep_timings
from cubecore.cli.sweeps import store as store_commands
from cubecore.version import __version__

if TYPE_CHECKING:
    from cubecore.tiling.model.tcubetiling import TCubeTiling


RECORDED = 200_000
"""Instructions of each group of cores that --critical-path looks at."""
_TILING_FORMS = "write the tiling: .json, .bin (200 bytes), .hex (its dump) or .h (C++ header)"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cubecore")
def main() -> None:
    """Plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core."""


main.add_command(store_commands)
main.add_command(sweep_timings)


@main.command()
@problem_options
@click.option("--alternatives", type=Integer(), default=5, help="how many more to show")
@click.option(
    "--out", type=OutputFile(), help=f"{_TILING_FORMS}; with --queries, the answers as JSONL"
)
@click.option(
    "--queries",
    type=InputFile(),
    help="JSONL file: plan every line of it, on all cores; - for stdin",
)
@click.option(
    "--store",
    type=OutputFile(),
    help="with --queries, an SQLite file that keeps and reuses answers",
)
@click.option("--processes", type=Integer(), help="with --queries; as many as cores unless given")
@click.option("--exact", is_flag=True, help="time what is found event by event, fastest first")
@common_options
def plan(
    alternatives: int,
    exact: bool,
    out: str | None,
    queries: str | None,
    store: str | None,
    processes: int | None,
    **options: Any,
) -> int:
    """Find a legal, fast TCubeTiling for a product, or for every product in a file."""
    from cubecore.errors import refuse
    from cubecore.reports.text.answers import plan_text
    from cubecore.tiling.model.export import tiling_data
    from cubecore.workflows.data.files import require_writable, write_whole
    from cubecore.workflows.plan import plan as make_plan

    keys, settings, as_json = split_options(options)
    if queries is not None:
        if exact:
            raise refuse("--exact", "come without --queries", "both")
        asked = Sweep(queries, out, store, processes, alternatives, settings, keys)
        return asked.run(as_json)
    for name, value in (("--store", store), ("--processes", processes)):
        if value is not None:
            raise refuse(name, "come with --queries", "none")
    if out is not None:
        require_writable(out, "--out")
    answer = make_plan(settings=settings, alternatives=alternatives, exact=exact, **keys)
    if out is not None:
        write_whole(out, tiling_data(answer.tiling, out), "--out")
    show(answer, as_json, plan_text)
    return DONE


@main.command()
@click.argument("tiling", type=InputFile())
@problem_options
@click.option("--edition", default="000", help="seed edition: 000 (newer) or 001")
@click.option("--reading", default="effective", help="effective, or documented (the letter)")
@click.option("--repair", is_flag=True, help="find the legal tiling that changes the fewest fields")
@click.option("--keep", multiple=True, metavar="FIELD", help="a field that --repair leaves alone")
@click.option("--out", type=OutputFile(), help=f"with --repair, {_TILING_FORMS}")
@common_options
def check(tiling: str, out: str | None, **options: Any) -> int:
    """Report every rule that the tiling in a file breaks, and the nearest one that breaks none."""
    from cubecore.errors import refuse
    from cubecore.reports.text.repair import findings_text
    from cubecore.tiling.model.export import load_tiling, tiling_data
    from cubecore.workflows.check import RepairedFindings
    from cubecore.workflows.check import check as make_check
    from cubecore.workflows.data.files import require_writable, write_whole

    keys, settings, as_json = split_options(options)
    if not keys["repair"] and (out is not None or keys["keep"]):
        raise refuse("--out" if out is not None else "--keep", "come with --repair", "none")
    if out is not None:
        require_writable(out, "--out")
    answer = make_check(load_tiling(tiling), settings=settings, **keys)
    if out is not None and isinstance(answer, RepairedFindings) and answer.repair is not None:
        write_whole(out, tiling_data(answer.repair.tiling, out), "--out")
    show(answer, as_json, findings_text)
    return DONE if answer.legal else FOUND


@main.command()
@script_arguments
@problem_options
@click.option("--tiling", type=InputFile(), help="file with a tiling; the plan's unless given")
@click.option("--a-file", type=ArrayFile(), help=".npy or .safetensors with A as stored")
@click.option("--b-file", type=ArrayFile(), help="the same for B")
@click.option("--bias-file", type=ArrayFile(), help="the same for the bias row")
@click.option(
    "--scale-file", type=ArrayFile(), help="float32 scales for --quant, one for each column of C"
)
@click.option("--scale-a-file", type=ArrayFile(), help="A's scales of MxMatmul, as stored")
@click.option("--scale-b-file", type=ArrayFile(), help="the same for B's")
@click.option("--out", type=OutputFile(), help=".npy file for C")
@click.option("--engine", type=Word(["fast", "reference", "late", "early"]), default="fast")
@click.option(
    "--checks",
    default="usual",
    help="memcheck,initcheck,racecheck,synccheck,usecheck or some of them; usual (all but the "
    "last); all; none",
)
@click.option("--sarif", type=OutputFile(), help="SARIF file of the findings")
@debug_options
@common_options
def run(
    script: str | None,
    arguments: tuple[str, ...],
    tiling: str | None,
    a_file: str | None,
    b_file: str | None,
    bias_file: str | None,
    scale_file: str | None,
    scale_a_file: str | None,
    scale_b_file: str | None,
    out: str | None,
    engine: str,
    checks: str,
    sarif: str | None,
    breaks: tuple[str, ...],
    watches: tuple[str, ...],
    dumps: tuple[str, ...],
    step: bool,
    **options: Any,
) -> int:
    """Execute the kernel instruction by instruction and verify its result.

    SCRIPT is a Python file that launches kernels of its own; ARGUMENTS are the script's.
    """
    asked = {"breaks": breaks, "watches": watches, "dumps": dumps, "step": step}
    if script is not None:
        others = {"tiling": tiling, "a-file": a_file, "b-file": b_file, "bias-file": bias_file}
        others |= {"scale-file": scale_file, "out": out}
        others |= {"scale-a-file": scale_a_file, "scale-b-file": scale_b_file}
        require_alone(script, options, others)
        options |= {"engine": engine, "checks": checks}
        return run_of_script(script, arguments, sarif, asked, options)
    require_script(asked)
    from cubecore.reports.files.output_files import RunFiles
    from cubecore.reports.text.answers import run_text
    from cubecore.reports.text.progress import working
    from cubecore.tiling.model.export import load_tiling
    from cubecore.workflows.data.operands import OperandFiles
    from cubecore.workflows.run import run as make_run

    keys, settings, as_json = split_options(options)
    given = None if tiling is None else load_tiling(tiling)
    keys |= {"engine": engine, "checks": checks}
    scales = scale_file, scale_a_file, scale_b_file
    operands = OperandFiles(a_file, b_file, bias_file, *scales)
    files = RunFiles(sarif)
    files.require_writable()
    with working("executing and verifying"):
        answer = make_run(tiling=given, operands=operands, out=out, settings=settings, **keys)
        files.write(answer.findings)
    show(answer, as_json, run_text)
    return DONE if answer.verified else FOUND


@main.command()
@script_arguments
@problem_options
@click.option("--tiling", type=InputFile(), help="file with a tiling; the plan's unless given")
@click.option(
    "--step",
    type=Word(["MDL", "NORM", "CONSTANT", "BASIC"]),
    help="whose scalar cost a step has: the template's, with constant tiling, or hand-written",
)
@file_options
@click.option("--full", is_flag=True, help="walk every instruction, skip nothing that recurs")
@click.option("--critical-path", is_flag=True, help="what the end waited for, step by step")
@click.option("--advise", is_flag=True, help="time it again with each change that may help")
@common_options
def time(
    *,
    script: str | None,
    arguments: tuple[str, ...],
    tiling: str | None,
    step: str | None,
    full: bool,
    critical_path: bool,
    advise: bool,
    **options: Any,
) -> int:
    """Tell where the cycles of a kernel go.

    SCRIPT is a Python file that launches kernels of its own; ARGUMENTS are the script's.
    """
    files = time_files(options, tiling or "")
    if script is not None:
        require_alone(script, options, {"tiling": tiling, "critical-path": critical_path or None})
        return time_of_script(script, arguments, files, options | {"advise": advise})
    from cubecore.reports.text.answers import time_path_text, time_text
    from cubecore.reports.text.progress import working
    from cubecore.tiling.model.export import load_tiling
    from cubecore.workflows.time import time as make_time

    keys, settings, as_json = split_options(options)
    given = None if tiling is None else load_tiling(tiling)
    with working("timing"):
        record = max(files.record, RECORDED if critical_path else 0)
        keys |= {"tiling": given, "step": step, "settings": settings}
        files.require_openable(lambda: [make_time(**keys)])
        answer = make_time(**keys, record=record, full=full, advise=advise)
        files.write(answer)
    show(answer, as_json, time_path_text if critical_path else time_text)
    return DONE


@main.command()
@click.argument("first", type=InputFile())
@click.argument("second", type=InputFile())
@problem_options
@file_options
@common_options
def compare(first: str, second: str, **options: Any) -> int:
    """Set the tilings in two files side by side; --report and --trace draw both on one timeline."""
    from cubecore.reports.text.answers import compare_text, problem_line
    from cubecore.workflows.compare import compare as make_compare

    files = time_files(options)
    keys, settings, as_json = split_options(options)
    keys |= {"first": _named(first), "second": _named(second), "settings": settings}
    files.require_openable(lambda: make_compare(**keys).timed)
    answer = make_compare(**keys, record=files.record)
    one, other = answer.first.timed, answer.second.timed
    if one is not None and other is not None:
        title = f"1 is {first}, 2 is {second}: {problem_line(answer.request)}"
        files.write_pair(one, other, title)
    show(answer, as_json, compare_text)
    return DONE if answer.legal else FOUND


def _named(path: str) -> "TCubeTiling":
    """Return the tiling in a file; what is wrong with it names the file."""
    from cubecore.errors import RequestError
    from cubecore.tiling.model.export import load_tiling

    try:
        return load_tiling(path)
    except RequestError as error:
        raise RequestError(
            v if v.subject == path else replace(v, subject=f"{path}: {v.subject}")
            for v in error.violations
        ) from None


@main.command()
@click.argument("name", required=False)
@click.option("--chip", help="full SoC name, as NAME")
@common_options
def chips(name: str | None, chip: str | None, **options: Any) -> int:
    """List the chips, or show every fact about one with its source."""
    name = name or chip
    from cubecore.reports.text.answers import chip_text, chips_text
    from cubecore.workflows.chips import ChipSheet, chip_list, chip_sheet

    _, settings, as_json = split_options(options)
    if name is not None:
        show(chip_sheet(name, settings), as_json, chip_text)
        return DONE
    sheets = [ChipSheet(record) for record in chip_list()]
    if as_json:
        say(json.dumps({"chips": [sheet.to_json() for sheet in sheets]}))
    else:
        say(chips_text(sheets), newline=False)
    return DONE


@main.command()
@click.argument("name")
@click.option("--chip", help="full SoC name that an instruction is to run on")
@common_options
def explain(name: str, chip: str | None, **options: Any) -> int:
    """Explain a rule, a field of TCubeTiling, an instruction or a finding by its id."""
    from cubecore.workflows.explain import explain as make_explanation

    _, _, as_json = split_options(options)
    show(make_explanation(name, chip), as_json, lambda answer: answer.text)
    return DONE


@main.command()
@click.option(
    "--points",
    type=InputFile(),
    help="JSONL file of measurements, or op_summary_*.csv; else published",
)
@click.option("--chip", help="full SoC name that a profiler's table is of")
@click.option("--report", type=OutputFile(), help="HTML file: a scatter plot, and every case")
@click.option("--held-out", is_flag=True, help="errors on publications left out of a fit")
@common_options
def validate(
    *, points: str | None, chip: str | None, report: str | None, held_out: bool, **options: Any
) -> int:
    """Hold the timing model against measurements, case by case.

    The exit code is 1 if a line of the file is no point.
    """
    from cubecore.errors import refuse
    from cubecore.reports.html.scatter import scatter_page
    from cubecore.reports.text.progress import working
    from cubecore.reports.text.validation import validation_text
    from cubecore.workflows.calibration.held_out import held_out as make_held_out
    from cubecore.workflows.calibration.validate import validate as make_validation
    from cubecore.workflows.data.files import require_writable, write_whole

    if held_out and (points is not None or options["settings"]):
        raise refuse("--held-out", "come with the published points and chips as they are", "others")
    _, settings, as_json = split_options(options)
    if report is not None:
        require_writable(report, "--report")
    with working("timing the points"):
        answer = make_validation(points, settings=settings, chip=chip)
        if held_out:
            answer = replace(answer, held_out=make_held_out())
        if report is not None:
            write_whole(report, scatter_page(answer).encode(), "--report")
    show(answer, as_json, validation_text)
    return FOUND if answer.unreadable else DONE

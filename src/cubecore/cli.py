"""The command line. Importing this module loads nothing heavy, so that --help is instant."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cubecore import __version__

if TYPE_CHECKING:
    from cubecore.tiling.struct import TCubeTiling

DONE, FOUND, BAD_REQUEST, INTERRUPTED, READER_GONE = 0, 1, 2, 130, 141
_SHOW_JSON = "--json"

Command = Callable[..., Any]

_PROBLEM_OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("m", int, "rows of A and C"),
    ("n", int, "columns of B and C"),
    ("k", int, "columns of A, rows of B"),
    ("kb", int, "rows of B, if they are not K"),
    ("a", str, "type of A (half, int8_t, float16, ...)"),
    ("b", str, "type of B; A's unless given"),
    ("c", str, "type of C"),
    ("bias", str, "type of the bias row; no bias unless given"),
    ("chip", str, "full SoC name"),
    ("launch", str, "cube or mix"),
    ("cores", int, "cores to use; all unless given"),
    ("format-a", str, "ND or NZ"),
    ("format-b", str, "ND or NZ"),
    ("format-c", str, "ND or NZ"),
    ("pos-a", str, "GM, TSCM, VECIN, VECOUT or VECCALC"),
    ("pos-b", str, "as for A"),
    ("pos-c", str, "as for A"),
    ("batch", int, "products in a batch"),
    ("template", str, "NORM, MDL or IBSHARE"),
    ("seed", int, "fixes random inputs"),
)
_PROBLEM_FLAGS: tuple[tuple[str, str], ...] = (
    ("trans-a", "A is stored [k, m]"),
    ("trans-b", "B is stored [n, k]"),
    ("split-k", "split K over cores"),
    ("hf32", "round float32 inputs to HF32"),
    ("intrinsics-check", "rows longer than 65535 are moved one by one"),
)


def problem_options(command: Command) -> Command:
    """Add the problem's keys as options."""
    relu = click.option("--relu", is_flag=True, default=None, help="apply ReLU to C")
    command = relu(command)
    command = click.option(
        "--unit-flag/--no-unit-flag", default=None, help="Mmad and fixpipe overlap"
    )(command)
    for name, text in reversed(_PROBLEM_FLAGS):
        command = click.option(f"--{name}", is_flag=True, default=None, help=text)(command)
    for name, kind, text in reversed(_PROBLEM_OPTIONS):
        convert = Integer() if kind is int else kind
        command = click.option(f"--{name}", type=convert, default=None, help=text)(command)
    return command


def common_options(command: Command) -> Command:
    """Add --set and --json."""
    json_option = click.option(_SHOW_JSON, "as_json", is_flag=True, help="print one JSON object")
    settings = click.option(
        "--set", "settings", multiple=True, metavar="FIELD=VALUE", help="a what-if chip"
    )
    return settings(json_option(command))


class Integer(click.ParamType[int]):
    """An integer; says so as every other message does."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer that a text spells."""
        from cubecore.errors import refuse

        try:
            return int(value)
        except ValueError:
            subject = param.opts[0] if param is not None else "value"
            raise refuse(subject, "be an integer", repr(value)) from None


class Word(click.Choice[str]):
    """One of a few words; says so as every other message does."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word."""
        from cubecore.errors import refuse

        if value not in self.choices:
            *first, last = self.choices
            subject = param.opts[0] if param is not None else "value"
            raise refuse(subject, f"be {', '.join(first)} or {last}", repr(value))
        return str(value)


class _Group(click.Group):
    """Turns every refusal into one sentence (or one JSON object) and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        arguments = list(args[0] if args else kwargs.get("args") or sys.argv[1:])
        as_json = _SHOW_JSON in arguments
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.Exit as stop:
            sys.exit(stop.exit_code)
        except SystemExit:  # Click's own answer to a reader that went away
            sys.exit(READER_GONE)
        except click.exceptions.NoArgsIsHelpError as error:
            _say(error.format_message(), to_error=True)
            sys.exit(BAD_REQUEST)
        except click.ClickException as error:
            _fail({"kind": "RequestError", "message": _usage(error)}, as_json, BAD_REQUEST)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - only our own are handled, others are raised again
            _fail_known(error, as_json)
        sys.exit(code if isinstance(code, int) else DONE)


def _usage(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; cubecore --help lists commands and options"


def _fail_known(error: Exception, as_json: bool) -> NoReturn:
    """Report an error of cubecore's own; anything else is our bug and keeps its traceback."""
    from cubecore.errors import CubecoreError, RequestError

    if not isinstance(error, CubecoreError):
        raise error
    code = BAD_REQUEST if isinstance(error, RequestError) else FOUND
    _fail(error.to_json(), as_json, code)


def _fail(error: Mapping[str, Any], as_json: bool, code: int) -> NoReturn:
    _say(json.dumps({"error": error}) if as_json else error["message"], to_error=not as_json)
    sys.exit(code)


def _say(text: str, *, to_error: bool = False, newline: bool = True) -> None:
    """Write an answer; a reader that went away ends the program, a full disk is one line."""
    try:
        click.echo(text, err=to_error, nl=newline)
        (sys.stderr if to_error else sys.stdout).flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(READER_GONE)
    except OSError as error:
        _drop_output()
        if not to_error:
            line = f"standard output must take the answer, got {error.strerror or error}"
            click.echo(line, err=True)
        sys.exit(BAD_REQUEST)


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail on it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cubecore")
def main() -> None:
    """Plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core."""


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str], bool]:
    """Return (the problem's keys, the settings, whether JSON is wanted) of a command."""
    from cubecore.errors import RequestError, Violation

    as_json = options.pop("as_json")
    settings, wrong = {}, []
    for text in options.pop("settings"):
        name, sign, value = text.partition("=")
        if not sign or not name:
            wrong.append(Violation("--set", "be FIELD=VALUE", repr(text)))
        settings[name] = value
    if wrong:
        raise RequestError(wrong)
    keys = {name: value for name, value in options.items() if value is not None}
    if keys.pop("relu", None):
        keys["epilogue"] = {"relu": True}
    return keys, settings, as_json


def _show(answer: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    _say(json.dumps(answer.to_json()) if as_json else text(answer), newline=as_json)


@main.command()
@problem_options
@click.option("--alternatives", type=Integer(), default=5, help="how many more to show")
@click.option("--out", help="write the tiling: .json, .bin (200 bytes) or .h (C++ header)")
@common_options
def plan(alternatives: int, out: str | None, **options: Any) -> int:
    """Find a legal, fast TCubeTiling for a product."""
    from cubecore.reports.text import plan_text
    from cubecore.tiling.export import to_header, to_json_text
    from cubecore.workflows.files import require_writable, write_whole
    from cubecore.workflows.plan import plan as make_plan

    keys, settings, as_json = _split(options)
    if out is not None:
        require_writable(out, "--out")
    answer = make_plan(settings=settings, alternatives=alternatives, **keys)
    if out is not None:
        tiling = answer.tiling
        if out.endswith(".bin"):
            data = tiling.to_bytes()
        else:
            data = (
                to_header(tiling) if out.endswith((".h", ".hpp")) else to_json_text(tiling)
            ).encode()
        write_whole(out, data, "--out")
    _show(answer, as_json, plan_text)
    return DONE


@main.command()
@click.argument("tiling")
@problem_options
@click.option("--edition", default="000", help="seed edition: 000 (newer) or 001")
@click.option("--reading", default="effective", help="effective, or documented (the letter)")
@common_options
def check(tiling: str, edition: str, reading: str, **options: Any) -> int:
    """Report every rule that the tiling in a file breaks."""
    from cubecore.reports.text import findings_text
    from cubecore.tiling.export import load_tiling
    from cubecore.workflows.check import check as make_check

    keys, settings, as_json = _split(options)
    given = load_tiling(tiling)
    answer = make_check(given, edition=edition, reading=reading, settings=settings, **keys)
    _show(answer, as_json, findings_text)
    return DONE if answer.legal else FOUND


@main.command()
@problem_options
@click.option("--tiling", help="file with a tiling; the plan's unless given")
@click.option("--a-file", help=".npy or .safetensors with A as stored")
@click.option("--b-file", help="the same for B")
@click.option("--bias-file", help="the same for the bias row")
@click.option("--out", help=".npy file for C")
@click.option("--engine", type=Word(["fast", "reference"]), default="fast")
@common_options
def run(
    tiling: str | None,
    a_file: str | None,
    b_file: str | None,
    bias_file: str | None,
    out: str | None,
    engine: str,
    **options: Any,
) -> int:
    """Execute the kernel instruction by instruction and verify its result."""
    from cubecore.reports.progress import working
    from cubecore.reports.text import run_text
    from cubecore.tiling.export import load_tiling
    from cubecore.workflows.operands import OperandFiles
    from cubecore.workflows.run import run as make_run

    keys, settings, as_json = _split(options)
    given = None if tiling is None else load_tiling(tiling)
    files = OperandFiles(a_file, b_file, bias_file)
    with working("executing and verifying"):
        answer = make_run(
            tiling=given, operands=files, out=out, engine=engine, settings=settings, **keys
        )
    _show(answer, as_json, run_text)
    return DONE if answer.verified else FOUND


@main.command()
@problem_options
@click.option("--tiling", help="file with a tiling; the plan's unless given")
@click.option(
    "--step",
    type=Word(["MDL", "CONSTANT", "BASIC"]),
    default="MDL",
    help="whose scalar cost a step has: the library's, with constant tiling, or hand-written",
)
@click.option("--report", help="HTML file: a page to look at, with the timeline")
@click.option("--trace", help="Chrome JSON file of the first instructions, for Perfetto")
@common_options
def time(
    tiling: str | None, step: str, report: str | None, trace: str | None, **options: Any
) -> int:
    """Tell where the cycles of a kernel go."""
    from cubecore.reports.files import TimeFiles
    from cubecore.reports.progress import working
    from cubecore.reports.text import time_text
    from cubecore.tiling.export import load_tiling
    from cubecore.workflows.time import time as make_time

    keys, settings, as_json = _split(options)
    files = TimeFiles(report, trace, tiling or "")
    files.require_writable()
    given = None if tiling is None else load_tiling(tiling)
    with working("timing"):
        answer = make_time(tiling=given, step=step, record=files.record, settings=settings, **keys)
        files.write(answer)
    _show(answer, as_json, time_text)
    return DONE


@main.command()
@click.argument("first")
@click.argument("second")
@problem_options
@common_options
def compare(first: str, second: str, **options: Any) -> int:
    """Set the tilings in two files side by side."""
    from cubecore.reports.text import compare_text
    from cubecore.workflows.compare import compare as make_compare

    keys, settings, as_json = _split(options)
    answer = make_compare(_named(first), _named(second), settings=settings, **keys)
    _show(answer, as_json, compare_text)
    return DONE if answer.legal else FOUND


def _named(path: str) -> "TCubeTiling":
    """Return the tiling in a file; what is wrong with it names the file."""
    from cubecore.errors import RequestError
    from cubecore.tiling.export import load_tiling

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
    from cubecore.reports.text import chip_text, chips_text
    from cubecore.workflows.chips import ChipSheet, chip_list, chip_sheet

    _, settings, as_json = _split(options)
    if name is not None:
        _show(chip_sheet(name, settings), as_json, chip_text)
        return DONE
    sheets = [ChipSheet(record) for record in chip_list()]
    if as_json:
        _say(json.dumps({"chips": [sheet.to_json() for sheet in sheets]}))
    else:
        _say(chips_text(sheets), newline=False)
    return DONE


@main.command()
@click.argument("name")
@click.option("--chip", help="full SoC name that an instruction is to run on")
@common_options
def explain(name: str, chip: str | None, **options: Any) -> int:
    """Explain a rule or an instruction from its declaration."""
    from cubecore.workflows.explain import explain as make_explanation

    _, _, as_json = _split(options)
    _show(make_explanation(name, chip), as_json, lambda answer: answer.text)
    return DONE

"""Parts that every command shares: options, kinds of values, answers on a stream and exit codes.

Importing this module loads nothing heavy, so that --help is instant.
"""

import os
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import click

from cubecore.aliases import Json, JsonMapping
from cubecore.cli.streams import (
    BAD_REQUEST,
    DONE,
    FOUND,
    INTERRUPTED,
    READER_GONE,
    choose_language,
    require_output,
    say,
    speaks_chinese,
)
from cubecore.cli.values import ChipName, DeclaredWords, Integer, Number
from cubecore.cli.verb import HelpContext, Verb

if TYPE_CHECKING:
    from cubecore.errors import CubecoreError

_SHOW_JSON = "--json"
TEXT, JSON, CSV = "text", "json", "csv"
"""Forms in which an answer is printed."""
DEBUG = "CUBECORE_DEBUG"
"""The environment variable that shows the traceback of an internal error."""
_NEAR_OPTIONS = 4
"""Options, at most, that are named in place of a wrong one."""
TILING_FORMS = "write the tiling: .json, .bin (200 bytes), .hex (its dump) or .h (C++ header)"

Command = Callable[..., Any]


class _Answer(Protocol):
    """An answer of a workflow, as a command prints it."""

    @property
    def text(self) -> str:
        """The answer as lines."""

    def to_json(self) -> JsonMapping:
        """Return the answer as a JSON object."""

    def to_rows(self) -> list[Json]:
        """Return the rows of the answer's table."""


_FORMAT = DeclaredWords("cubecore.tiling.model.choices", "FORMATS")
_POSITION = DeclaredWords("cubecore.tiling.model.choices", "POSITIONS")
_LAUNCH = DeclaredWords("cubecore.tiling.model.choices", "LAUNCHES")
_LAYOUT = DeclaredWords("cubecore.tiling.model.choices", "LAYOUTS")
_TEMPLATE = DeclaredWords("cubecore.tiling.model.choices", "TEMPLATES")
_PROBLEM_OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("m", int, "rows of A and C"),
    ("n", int, "columns of B and C"),
    ("k", int, "columns of A, rows of B"),
    ("kb", int, "rows of B if different from K (the smaller is used)"),
    ("a", str, "type of A: half, int8_t, mxfp4, ... (default: float16)"),
    ("b", str, "type of B; A's unless given"),
    ("c", str, "type of C; L0C's unless given: int32 for integers, else float32"),
    ("bias", str, "type of the bias row; no bias unless given"),
    ("scale-a", str, "type of A's scales; float8_e8m0fnu asks for MxMatmul"),
    ("scale-b", str, "type of B's scales; A's unless given"),
    ("chip", str, "SoC name or chip file my.toml (default: CUBECORE_CHIP, else Ascend910B3)"),
    ("launch", _LAUNCH, "cores: Cube alone, or with AIVs"),
    ("cores", int, "cores to use; all unless given"),
    ("format-a", _FORMAT, "layout of A in memory"),
    ("format-b", _FORMAT, "layout of B in memory"),
    ("format-c", _FORMAT, "layout of C in memory"),
    ("pos-a", _POSITION, "memory that A lies in"),
    ("pos-b", _POSITION, "memory that B lies in"),
    ("pos-c", _POSITION, "memory that C lies in"),
    ("batch", int, "matmuls in a batch"),
    ("layout", _LAYOUT, "axes of a batch; fills layout fields"),
    ("heads", int, "N of the layout's axes"),
    ("groups", int, "G of the layout's axes"),
    ("batch-num", int, "matrices of the batch in one call; as many as fit L1 unless given"),
    ("template", _TEMPLATE, "kernel template"),
)
_PROBLEM_FLAGS: tuple[tuple[str, str], ...] = (
    ("trans-a", "A is stored [k, m]"),
    ("trans-b", "B is stored [n, k]"),
    ("split-k", "split K over cores"),
    ("hf32", "round float32 inputs to HF32"),
    ("intrinsics-check", "rows longer than 65535 are moved one by one"),
)


def _pairs(_ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
    """Return the pairs as an object of the problem, None without any; bytes as a number."""
    from cubecore.errors import RequestError, Violation

    pairs: Json = {}
    wrong = []
    for text in values:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            wrong.append(Violation(param.opts[0], f"be {param.metavar}", repr(text)))
        elif name in pairs:
            wrong.append(Violation(param.opts[0], "name a field once", repr(name)))
        number = param.name == "budget" and value.isascii() and value.isdigit() and len(value) < 20
        pairs[name] = int(value) if number else value
    if wrong:
        raise RequestError(wrong)
    return pairs or None


def with_options(command: Command, *options: Command) -> Command:
    """Return a command with options added; its help shows the last one first."""
    for option in options:
        command = option(command)
    return command


def _pairs_option(name: str, metavar: str, text: str) -> Command:
    """Return an option that may be given for one name after another."""
    return click.option(
        name, multiple=True, metavar=metavar, callback=_pairs, default=(), help=text
    )


def fix_option(command: Command) -> Command:
    """Add --fix, for a command that looks for tilings."""
    text = "plan with baseM=48, singleCoreN=16..512, baseK=64..256/64 (multiples), iterateOrder=1"
    return with_options(command, _pairs_option("--fix", "FIELD=VALUE", text))


def problem_options(command: Command) -> Command:
    """Add the problem's keys as options."""
    command = with_options(
        command,
        click.option("--relu", is_flag=True, default=None, help="apply ReLU to C"),
        click.option("--quant", help="mode of fixpipe with scales: DEQF16, REQ8, VDEQF16, ..."),
        click.option("--scale", type=Number(), help="scale of --quant; V modes take --scale-file"),
        click.option("--offset", type=int, help="added to an 8-bit result of --quant"),
        _pairs_option("--budget", "BUFFER=BYTES", "limit the bytes of l1, l0c, ub or bt"),
        click.option(
            "--unit-flag/--no-unit-flag",
            default=None,
            help="overlap Mmad and fixpipe by the unit flag",
        ),
    )
    for name, text in reversed(_PROBLEM_FLAGS):
        command = click.option(f"--{name}", is_flag=True, default=None, help=text)(command)
    for name, kind, text in reversed(_PROBLEM_OPTIONS):
        convert = Integer() if kind is int else ChipName() if name == "chip" else kind
        command = click.option(f"--{name}", type=convert, default=None, help=text)(command)
    return command


def common_options(command: Command) -> Command:
    """Add --set and --json."""
    json_option = click.option(_SHOW_JSON, "as_json", is_flag=True, help="print one JSON object")
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="FIELD=VALUE",
        help="replace a field of the chip (what-if)",
    )
    return settings(json_option(command))


def table_options(command: Command) -> Command:
    """Add --set, --json and --csv, for a command whose answer has a table."""
    text = "print the table as CSV, a header and a line for each row"
    return common_options(click.option("--csv", "as_csv", is_flag=True, help=text)(command))


class CommandGroup(click.Group):
    """Turns every refusal into one sentence (or one JSON object) and an exit code."""

    command_class = Verb
    context_class = HelpContext

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left; without any, show the help and leave with 2."""
        if not args and not ctx.resilient_parsing:
            say(ctx.get_help(), to_error=True)
            ctx.exit(BAD_REQUEST)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names, and the rest.

        Raises
        ------
        UsageError
            If there is none; a command of a similar name is named.
        """
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from cubecore.errors import did_you_mean

            if near := did_you_mean(args[0], self.list_commands(ctx)):
                raise click.UsageError(f"no such command '{args[0]}'; {near}", None)
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command; leave with its exit code."""
        arguments = list(args[0] if args else kwargs.get("args") or sys.argv[1:])
        as_json = _SHOW_JSON in arguments
        choose_language(arguments)
        try:
            given = {**kwargs, "standalone_mode": False, "obj": arguments}
            code = super().main(*args, **given)
        except click.exceptions.Exit as stop:
            sys.exit(stop.exit_code)
        except SystemExit as stop:  # 1 is Click's own answer to a reader that went away
            sys.exit(READER_GONE if stop.code == 1 else stop.code)
        except click.ClickException as error:
            _fail({"kind": "RequestError", "message": _usage(error)}, as_json, BAD_REQUEST)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - the last net under every command
            if isinstance(error.__cause__, KeyboardInterrupt):  # struck while a class was made
                sys.exit(INTERRUPTED)
            # parameters of a script's kernels may be called as keys of a problem are
            keys = () if any(map(is_script, arguments)) else _PROBLEM_KEYS
            fail_known(error, as_json, keys)
        sys.exit(code if isinstance(code, int) else DONE)


def _usage(error: click.ClickException) -> str:
    """Return an error of Click's as one sentence: with options that are near, or where help is."""
    text = error.format_message().rstrip(".")
    text = f"{text[:1].lower()}{text[1:]}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return text
    if isinstance(error, click.NoSuchOption):
        text = f"no such option '{error.option_name}'"
        if near := _near_options(error.option_name, context.command):
            return f"{text}; {near}"
    below = context.command_path.removeprefix(context.find_root().command_path)
    listed = "the commands" if isinstance(context.command, click.Group) else "arguments and options"
    return f"{text}; cubecore{below} --help lists {listed}"


def _near_options(name: str, command: click.Command) -> str:
    """Return a question after the options that begin as a wrong one, or after one spelled alike."""
    from cubecore.errors import did_you_mean

    names = [known for param in command.params for known in (*param.opts, *param.secondary_opts)]
    longer = [known for known in names if known.startswith(name)][:_NEAR_OPTIONS]
    return f"did you mean {' or '.join(longer)}?" if longer else did_you_mean(name, names)


def is_script(name: str) -> bool:
    """True if an argument names a script, C++ kernels, a program or a project of operators."""
    from cubecore.frontends.cpp.files import SUFFIXES, is_program, is_project

    return name.endswith((".py", *SUFFIXES)) or is_program(name) or is_project(name)


def fail_known(error: Exception, as_json: bool, keys: Collection[str] = ()) -> NoReturn:
    """Report an error of cubecore's own; anything else is our bug, and shows where if asked to.

    `keys` are those of the request that were typed as options.
    """
    from cubecore.errors import CubecoreError, RequestError, missing_package

    require_output(error.__cause__ or error)
    if isinstance(error, ModuleNotFoundError):
        error = missing_package("this command", error) or error
    if not isinstance(error, CubecoreError):
        if os.environ.get(DEBUG):
            raise error
        got = " ".join(f"{type(error).__name__}: {error}".split())
        text = f"internal error: {got}; please report it with what {DEBUG}=1 shows"
        _fail({"kind": "InternalError", "message": text}, as_json, BAD_REQUEST)
    code = BAD_REQUEST if isinstance(error, RequestError) else FOUND
    shown = error.to_json()
    others = tuple(f for f in error.findings if f.message not in shown["message"])
    if not as_json:
        shown["message"] = _as_typed(shown["message"], error, keys)
    if others and not as_json:
        from cubecore.frontends.finding_text import finding_lines

        shown["message"] = "\n".join([shown["message"], *finding_lines(others)])
    _fail(shown, as_json, code, error.detail)


_PROBLEM_KEYS = frozenset(name.replace("-", "_") for name, _, _ in _PROBLEM_OPTIONS)


def _as_typed(message: str, error: "CubecoreError", keys: Collection[str]) -> str:
    """Return a message whose sentences begin with options as they are typed, not with keys."""
    from cubecore.errors import MISSING

    for violation in error.violations:
        line = str(violation)
        if violation.sentence.startswith(MISSING):
            names = violation.subject.split(", ")
            typed = ", ".join(f"--{name}" if name.isidentifier() else name for name in names)
            message = message.replace(line, f"{MISSING}{typed}", 1)
        elif violation.subject in keys and violation.sentence.startswith(f"{violation.subject} "):
            typed = "--" + violation.subject.replace("_", "-")
            message = message.replace(line, typed + line.removeprefix(violation.subject), 1)
    return message


def _fail(error: JsonMapping, as_json: bool, code: int, detail: str = "") -> NoReturn:
    """Leave with an error: an object, or its sentence in the user's language over its detail."""
    text = _object({"error": error}) if as_json else error["message"]
    if not as_json and speaks_chinese():
        from cubecore.cli.zh.translation import error_text

        text = error_text(text)
    if detail and not as_json:
        text += f"\n{detail}"
    say(text, to_error=not as_json)
    sys.exit(code)


def split_options(options: Json) -> tuple[Json, dict[str, str], str]:
    """Return (the problem's keys, the settings, the form of the answer) of a command."""
    from cubecore.errors import RequestError, Violation

    form = taken_form(options)
    settings, wrong = {}, []
    for text in options.pop("settings"):
        name, sign, value = text.partition("=")
        if not sign or not name:
            wrong.append(Violation("--set", "be FIELD=VALUE", repr(text)))
        settings[name] = value
    if wrong:
        raise RequestError(wrong)
    keys = {name: value for name, value in options.items() if value is not None}
    epilogue = {name: keys.pop(name, None) for name in ("relu", "quant", "scale", "offset")}
    given = {name: value for name, value in epilogue.items() if value is not None}
    if given:
        keys["epilogue"] = given
    return keys, settings, form


def taken_form(options: Json) -> str:
    """Return the form of the answer, taken out of a command's options.

    Raises
    ------
    RequestError
        If two forms are asked for.
    """
    from cubecore.errors import unable

    as_json, as_csv = options.pop("as_json"), options.pop("as_csv", False)
    if as_json and as_csv:
        raise unable("--csv", "--csv excludes --json")
    return CSV if as_csv else JSON if as_json else TEXT


def show(answer: _Answer, form: str, text: str | None = None) -> None:
    """Print an answer: one JSON object on one line, its table as CSV, or its text or another."""
    if form == JSON:
        say(_object(answer.to_json()))
        return
    if form == CSV:
        from cubecore.presented.rows import csv_text

        say(csv_text(answer.to_rows()), newline=False)
        return
    text = answer.text if text is None else text
    if speaks_chinese():
        from cubecore.cli.zh.translation import translated

        text = translated(text)
    if sys.stdout.isatty():
        from cubecore.cli.terminal import dressed

        text = dressed(text)
    say(text, newline=False)


def _object(value: JsonMapping) -> str:
    import json

    return json.dumps(value)

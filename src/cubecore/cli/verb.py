"""A command and its help: options in groups, their defaults, examples, and outputs kept apart."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from cubecore.cli.streams import LANGUAGES, page_width, speaks_chinese
from cubecore.cli.values import InputFile, OutputFile, Word

_GROUPS: dict[str, str] = {
    "Matmul": "m n k kb a b c bias scale-a scale-b trans-a trans-b hf32 relu quant scale offset",
    "Memory layout and batch": "format-a format-b format-c pos-a pos-b pos-c"
    " batch layout heads groups batch-num intrinsics-check",
    "Tiling and kernel": "tiling cores launch template split-k unit-flag fix budget"
    " time:step sweep:step edition reading",
    "Operands": "seed a-file b-file bias-file scale-file scale-a-file scale-b-file",
    "Operators of vector cores": "op shape",
    "A kernel of your own": "entry blocks arg out-arg outputs scratch D tiling-data tiling-key"
    " auto-sync timeout verbose debug-inputs",
    "Results and findings": "expect rtol atol checks order engine reference sarif",
    "Debugger": "break watch dump run:step",
    "Advice": "advise without-rule try",
    "Reports and traces": "report trace trace-instructions trace-cores trace-window trace-waits"
    " metrics critical-path full",
    "Chip and form of the answer": "chip set json csv out help lang",
}
"""Groups of the help in their order; an option of one command alone is ``command:option``. What is
in none stands first, under the command's own options."""


LANG_HELP = "language of help, findings, advice and reports (default: LANG's, else en)"


def _titles() -> dict[str, str]:
    return {name: title for title, names in _GROUPS.items() for name in names.split()}


class HelpContext(click.Context):
    """A context that finds the terminal's width by itself: Click imports shutil for that."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"show_default": True, **kwargs})

    def make_formatter(self) -> click.HelpFormatter:
        """Return the formatter of a help text, at most 80 columns wide."""
        if click.formatting.FORCED_WIDTH is None and self.terminal_width is None:
            self.terminal_width = page_width(self.max_content_width or 80)
        return super().make_formatter()


class Verb(click.Command):
    """A command; before it begins, each of its outputs is known to be a file of its own.

    `examples` are lines that a user may type, which its help ends with.
    """

    context_class = HelpContext

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        words = Word(LANGUAGES)
        self.params.append(click.Option(["--lang"], type=words, expose_value=False, help=LANG_HELP))

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, in the language of the texts for people."""
        if not speaks_chinese():
            return super().get_help(ctx)
        from cubecore.cli.zh.translation import help_page

        return help_page(self, ctx, page_width())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group, the command's own first."""
        for title, rows in self.option_groups(ctx):
            with formatter.section(title):
                formatter.write_dl(rows)

    def option_groups(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the title and the rows of each group that has an option."""
        titles = _titles()
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_GROUPS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, click.Option):
                continue
            name = param.opts[-1].lstrip("-")
            title = titles.get(f"{self.name}:{name}") or titles.get(name) or "Options"
            groups[title].append(record)
        return ((title, rows) for title, rows in groups.items() if rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises
        ------
        RequestError
            If an output is one of the inputs, or another output.
        """
        given = [(p, ctx.params.get(p.name or "")) for p in self.params]
        outputs = [
            (_subject(param), value)
            for param, value in given
            if isinstance(param.type, OutputFile) and value is not None
        ]
        if outputs:
            from cubecore.output_files import require_apart

            inputs = [
                (_subject(param), path)
                for param, value in given
                if isinstance(param.type, InputFile) and value is not None
                for each in (value if isinstance(value, tuple) else (value,))
                if (path := param.type.path(each)) is not None
            ]
            require_apart(outputs, inputs)
        return super().invoke(ctx)


def _subject(param: click.Parameter) -> str:
    """Return what a user calls a parameter."""
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name

"""Pages of the site that are made from declarations while it is built, and are never committed.

The manuals of rules and instructions are one page each in the repository; on the site every rule
and instruction has a page of its own, and the manual is its index.
"""

import re
from collections.abc import Callable
from dataclasses import fields
from inspect import getdoc

import click
from tools.pages.site import api_names

import cubecore
from cubecore.advice.timed_changes import meanings_of_changes
from cubecore.cli.commands import main
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.declare.not_modelled import NOT_MODELLED, NOT_MODELLED_3510
from cubecore.kernels.operators.named import counts_of, meaning_of, operator_names
from cubecore.manual import anchor
from cubecore.presented import Presented
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.advice import MEANINGS
from cubecore.tiling.rules.checker import explain as explain_rule
from cubecore.tiling.rules.checker import rules
from cubecore.workflows.explain import explain, parameter_range, variants_of
from cubecore.workflows.manual.glossary import glossary

PAGES: dict[str, Callable[[], str]] = {}
"""Every page of a fixed name, by its path."""


def page(path: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register the decorated function as the maker of a page."""

    def register(make: Callable[[], str]) -> Callable[[], str]:
        PAGES[path] = make
        return make

    return register


def generated() -> dict[str, str]:
    """Return every generated page by its path."""
    pages = {path: make() for path, make in PAGES.items()} | api_names.pages()
    pages |= {f"rules/{rule.id}.md": _rule(rule.id) for rule in rules()}
    pages |= {f"instructions/{cls.name}.md": _instruction(cls) for cls in instructions().values()}
    return pages


@page("rules.md")
def rules_index() -> str:
    """Return the table of rules."""
    lines = [
        "# Rules of a tiling",
        "",
        "`cubecore check` judges a `TCubeTiling` by these rules. Each has a page; `cubecore explain"
        " RULE` prints it.",
        "",
        "| rule | requires |",
        "|---|---|",
    ]
    lines += [f"| [{rule.id}](rules/{rule.id}.md) | {_cell(rule.title)} |" for rule in rules()]
    return "\n".join(lines) + "\n"


def _rule(name: str) -> str:
    title, _, rest = explain_rule(name).partition("\n")
    text, _, source = rest.strip().rpartition("\n\nFrom: ")
    words = set(re.findall(r"\w+", f"{title} {text}"))
    named = [field for field in FIELDS if field in words]
    links = ", ".join(f"[{field}](../fields.md#{anchor(field)})" for field in named)
    return "\n".join(
        [
            f"# {name}",
            "",
            "[All rules](../rules.md)",
            "",
            f"**{title.partition(': ')[2]}**",
            "",
            text,
            "",
            *([f"Fields: {links}", ""] if links else []),
            f"Source: {source}",
            "",
            "`cubecore check` names this rule where a tiling breaks it, with the numbers and the"
            " largest value that fits; `--repair` finds the nearest legal tiling. See"
            " [My tiling is refused](../tutorials/refused.md).",
            "",
        ]
    )


@page("instructions.md")
def instructions_index() -> str:
    """Return the tables of instructions, by pipe, and of names that are not modelled."""
    lines = [
        "# Instructions",
        "",
        "The instructions that kernels issue, by the pipe that executes them. Each has a page with"
        " its operands, parameters and spellings; `cubecore explain NAME` prints it, for any"
        " dialect's spelling.",
        "",
    ]
    for pipe in Pipe:
        named = [cls for cls in instructions().values() if cls.pipe is pipe]
        if named:
            lines += [f"## Pipe {pipe.value}", "", "| instruction | does | architectures |"]
            lines += ["|---|---|---|"]
            lines += [
                f"| [{cls.name}](instructions/{cls.name}.md) | {_cell(_first(cls))} "
                f"| {', '.join(cls.archs)} |"
                for cls in named
            ]
            lines.append("")
    lines += ["## Names that are not modelled", "", "| C API | why |", "|---|---|"]
    named_not = NOT_MODELLED | NOT_MODELLED_3510
    lines += [f"| `{name}` | {_cell(reason)} |" for name, reason in named_not.items()]
    return "\n".join(lines) + "\n"


def _first(cls: type[Instruction]) -> str:
    return (getdoc(cls) or "").split("\n", 1)[0]


def _instruction(cls: type[Instruction]) -> str:
    lines = [f"# {cls.name}", "", "[All instructions](../instructions.md)", ""]
    lines += [f"Pipe **{cls.pipe.value}**, architectures {', '.join(cls.archs)}.", ""]
    lines += [_escaped(getdoc(cls) or ""), ""]
    if cls.declared:
        lines += ["## Operands", "", "| operand | access | memory | axes | layout | alignment |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| `{o.name}` | {o.access.value} | {o.mem.label} | {o.axes} | {o.layout or ''} "
            f"| {o.alignment} B |"
            for o in cls.declared
        ]
        lines.append("")
    documented = [field for field in fields(cls) if "doc" in field.metadata]
    if documented:
        lines += ["## Parameters", "", "| parameter | meaning |", "|---|---|"]
        lines += [
            f"| `{f.name}` | {_cell(f.metadata['doc'] + parameter_range(f.metadata))} |"
            for f in documented
        ]
        lines.append("")
    names = [(dialect, name, "") for dialect, name in cls.names.items()]
    names += variants_of(cls)
    if names:
        lines += ["## Names", "", "| dialect | name | with |", "|---|---|---|"]
        lines += [f"| {dialect} | `{name}` | {_cell(with_)} |" for dialect, name, with_ in names]
        lines.append("")
    if cls.uncertain:
        lines += ["## Uncertain", "", *(f"- {_escaped(text)}" for text in cls.uncertain), ""]
    return "\n".join([*lines, f"Source: {_escaped(cls.source)}", ""])


@page("fields.md")
def fields_page() -> str:
    """Return the fields of `TCubeTiling`, each with its meaning and the rules about it."""
    lines = [
        "# Fields of a tiling",
        "",
        "The fields of `TCubeTiling`, in their order in the structure. [Concepts](concepts.md)"
        " explains the main ones with pictures.",
        "",
    ]
    ids = {rule.id: rule.title for rule in rules()}
    for field in FIELDS:
        body = explain(field).text.split("\n")[2:]
        meaning = next(line for line in body if line)
        about = [line.split()[0] for line in body if line.startswith("  ")]
        source = body[-2].removeprefix("From: ")
        lines += [f"## {field} {{#{anchor(field)}}}", "", _escaped(meaning.strip()), ""]
        known = [name for name in about if name in ids]
        lines += [f"- [{name}](rules/{name}.md): {_escaped(ids[name])}" for name in known]
        lines += ["", f"Source: {_escaped(source)}", ""]
    return "\n".join(lines)


@page("words.md")
def words_page() -> str:
    """Return the glossary, the operators, and the advice that `check` and `plan` give."""
    lines = [
        "# Words",
        "",
        "Words of the field and of the answers. `cubecore explain WORD` prints a meaning.",
        "",
        "## Terms",
        "",
    ]
    for term in glossary():
        title = ", ".join(term.names)
        lines += [f"### {_escaped(title)} {{#{anchor(title)}}}", "", _escaped(term.meaning), ""]
        if term.forms:
            lines += [f"Printed as: {', '.join(map(_escaped, term.forms))}", ""]
    lines += [
        "## Operators",
        "",
        "What `cubecore time --op NAME` times, and its shape.",
        "",
    ]
    for name in operator_names():
        about = f"{meaning_of(name)}: {' x '.join(counts_of(name))}"
        lines += [f"### {_escaped(name)} {{#operator-{anchor(name)}}}", "", _escaped(about), ""]
    lines += ["## Changes", "", "Changes that `cubecore time --advise` times.", ""]
    for name, meaning in meanings_of_changes().items():
        lines += [f"### {name} {{#change-{anchor(name)}}}", "", _escaped(meaning), ""]
    lines += ["## Advice", "", "Recommendations that a legal tiling does not follow.", ""]
    for name, meaning in MEANINGS.items():
        lines += [f"### {name} {{#advice-{anchor(name)}}}", "", _escaped(meaning), ""]
    return "\n".join(lines)


@page("api.md")
def api_page() -> str:
    """Return the directives that make the Python API's reference from the docstrings."""
    lines = [
        "# Python API",
        "",
        "The public names of `import cubecore`. Every result prints as its command does, and has"
        " `to_json()`, `to_frame()` and, where there is a page, `report(path)`.",
        "",
    ]
    public = {name: getattr(cubecore, name) for name in cubecore.__all__}
    public = {name: thing for name, thing in public.items() if hasattr(thing, "__module__")}
    results = {cls.__name__: cls for cls in _results() if cls.__name__ not in public}
    for title, things in (("Functions and classes", public), ("Results", results)):
        lines += [f"## {title}", ""]
        for name in sorted(things, key=str.lower):
            thing = things[name]
            lines += [f"::: {thing.__module__}.{name}", "    options:", f"      heading: {name}"]
            if any(base.__name__.endswith("TilingBase") for base in getattr(thing, "__mro__", ())):
                lines.append("      inherited_members: true")
            lines.append("")
    return "\n".join(lines)


def _results() -> list[type]:
    """Return the classes of results that print themselves."""
    for name in cubecore.__all__:
        getattr(cubecore, name)
    found, open_ = [], [Presented]
    while open_:
        below = open_.pop().__subclasses__()
        found += below
        open_ += below
    return found


@page("commands.md")
def commands_page() -> str:
    """Return the help of every command."""
    lines = [
        "# Commands",
        "",
        "The help of each command; exit codes"
        " are 0 for success, 1 for findings, 2 for a bad request.",
        "",
    ]
    with main.make_context("cubecore", [], resilient_parsing=True) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=context) as inner:
                inner.terminal_width = inner.max_content_width = 100
                lines += [f"## cubecore {name}", "", "```text", command.get_help(inner), "```", ""]
    return "\n".join(lines)


_MARKED = re.compile(r"(`[^`\n]+`)|([\\*_\[])|<")


def _escaped(text: str) -> str:
    """Return text that Markdown prints as it is, but for code between backticks."""
    return _MARKED.sub(lambda m: m[1] or (f"\\{m[2]}" if m[2] else "&lt;"), text)


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")

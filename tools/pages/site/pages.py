"""Pages of the site that are made from declarations while it is built, and are never committed.

The manuals of rules and instructions are one page each in the repository; on the site every rule
and instruction has a page of its own, and the manual is its index.
"""

from collections.abc import Callable
from functools import cache

from tools.pages.site import api_names, api_pages, command_pages, instruction_pages, rule_pages
from tools.pages.site.text import escaped

from cubecore.advice.timed_changes import meanings_of_changes
from cubecore.isa.catalogue import instructions
from cubecore.kernels.operators.named import counts_of, meaning_of, operator_names
from cubecore.manual import anchor
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.advice import MEANINGS
from cubecore.tiling.rules.checker import rules
from cubecore.workflows.explain import explain
from cubecore.workflows.manual.glossary import glossary

PAGES: dict[str, Callable[[], str]] = {}
"""Every page of a fixed name, by its path."""


def page(path: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register the decorated function as the maker of a page."""

    def register(make: Callable[[], str]) -> Callable[[], str]:
        PAGES[path] = make
        return make

    return register


PAGES["rules.md"] = rule_pages.index
PAGES["instructions.md"] = instruction_pages.index
PAGES["commands.md"] = command_pages.page


@cache
def generated() -> dict[str, str]:
    """Return every generated page by its path."""
    pages = {path: make() for path, make in PAGES.items()} | api_pages.pages() | api_names.pages()
    pages |= {f"rules/{rule.id}.md": rule_pages.page(rule.id) for rule in rules()}
    of_instructions = {cls.name: instruction_pages.page(cls) for cls in instructions().values()}
    return pages | {f"instructions/{name}.md": text for name, text in of_instructions.items()}


def listed(folder: str) -> list[dict[str, str]]:
    """Return the generated pages of a folder as entries of the navigation, by their titles."""
    return [
        {text.partition("\n")[0].removeprefix("# "): path}
        for path, text in generated().items()
        if path.startswith(f"{folder}/")
    ]


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
        lines += [f"## {field} {{#{anchor(field)}}}", "", escaped(meaning.strip()), ""]
        known = [name for name in about if name in ids]
        lines += [f"- [{name}](rules/{name}.md): {escaped(ids[name])}" for name in known]
        lines += ["", f"Source: {escaped(source)}", ""]
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
        lines += [f"### {escaped(title)} {{#{anchor(title)}}}", "", escaped(term.meaning), ""]
    lines += [
        "## Operators",
        "",
        "What `cubecore time --op NAME` times, and its shape.",
        "",
    ]
    for name in operator_names():
        about = f"{meaning_of(name)}: {' x '.join(counts_of(name))}"
        lines += [f"### {escaped(name)} {{#operator-{anchor(name)}}}", "", escaped(about), ""]
    lines += ["## Changes", "", "Changes that `cubecore time --advise` times.", ""]
    for name, meaning in meanings_of_changes().items():
        lines += [f"### {name} {{#change-{anchor(name)}}}", "", escaped(meaning), ""]
    lines += ["## Advice", "", "Recommendations that a legal tiling does not follow.", ""]
    for name, meaning in MEANINGS.items():
        lines += [f"### {name} {{#advice-{anchor(name)}}}", "", escaped(meaning), ""]
    return "\n".join(lines)

"""A page for each rule of a tiling, with a tiling that keeps it and a change that breaks it.

The examples are found, not written: fields of planned tilings are changed one by one until the rule
is broken, alone if that can be. Its page then says::

    `cubecore plan --m 512 --n 1024 --k 2048` keeps it with `baseM = 128`. With `baseM = 256` ...
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tools.pages.site.text import cell, table

import cubecore
from cubecore.errors import CubecoreError
from cubecore.manual import anchor
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import explain as explain_rule
from cubecore.tiling.rules.checker import rules

PROBLEMS: tuple[dict[str, Any], ...] = (
    {"m": 512, "n": 1024, "k": 2048},
    {"m": 512, "n": 1024, "k": 2048, "bias": "float32"},
    {"m": 1000, "n": 3000, "k": 2000, "split_k": True},
    {"m": 256, "n": 512, "k": 512, "a": "int8", "launch": "mix"},
    {"m": 512, "n": 512, "k": 512, "a": "mxfp8_e4m3", "chip": "Ascend950PR_9589"},
    {"m": 512, "n": 512, "k": 512, "a": "float32", "hf32": True, "format_b": "NZ"},
    {"m": 512, "n": 512, "k": 512, "format_a": "NZ", "format_c": "NZ"},
    {"m": 512, "n": 512, "k": 512, "format_a": "NZ", "trans_a": True, "trans_b": True},
    {"m": 512, "n": 512, "k": 512, "a": "int4"},
    {"m": 512, "n": 512, "k": 512, "template": "IBSHARE", "launch": "mix"},
    {"m": 512, "n": 512, "k": 512, "template": "NORM"},
    {"m": 256, "n": 256, "k": 256, "pos_a": "TSCM", "launch": "mix"},
    {"m": 256, "n": 256, "k": 256, "pos_c": "VECIN", "launch": "mix"},
    {"m": 64, "n": 64, "k": 64, "batch": 6},
)


@dataclass(frozen=True)
class Broken:
    """A planned tiling with one field changed, and what `check` says of it."""

    problem: dict[str, Any]
    field: str
    before: int
    after: int
    messages: tuple[str, ...]
    others: tuple[tuple[str, int], ...]
    """The other fields that the rule names, and their values."""


@cache
def broken_by_rule() -> dict[str, Broken]:
    """Return for each rule the change that breaks it and the fewest others."""
    found: dict[str, Broken] = {}
    for asked in PROBLEMS:
        plan = cubecore.plan(**asked, search="quick")
        for field in FIELDS:
            before = getattr(plan.tiling, field)
            for after in _other_values(before):
                try:
                    findings = cubecore.check(replace(plan.tiling, **{field: after}), plan.problem)
                except CubecoreError:  # no value of the field at all
                    continue
                messages = tuple(finding.message for finding in findings.findings)
                for finding in findings.findings:
                    known = found.get(finding.rule)
                    # The first problem is the plainest: another one must have fewer messages.
                    if known is None or len(messages) < len(known.messages):
                        others = _named(finding.rule, field, plan.tiling)
                        found[finding.rule] = Broken(asked, field, before, after, messages, others)
    return found


def _named(rule: str, changed: str, tiling: TCubeTiling) -> tuple[tuple[str, int], ...]:
    """Return the fields that a rule names but for the changed one, with their values."""
    words = set(re.findall(r"\w+", explain_rule(rule)))
    return tuple((f, getattr(tiling, f)) for f in FIELDS if f in words and f != changed)


def _other_values(value: int) -> list[int]:
    near = (value * 2, value * 4, value + 16, value + 1, value - 1, value // 2, value * 8)
    return [each for each in (*near, 0, 1, 2, 5, 17, 1000, 100_000, -1) if each != value]


def index() -> str:
    """Return the table of rules."""
    rows = ((f"[{rule.id}](rules/{rule.id}.md)", cell(rule.title)) for rule in rules())
    return "\n".join(
        [
            "# Rules of a tiling",
            "",
            "`cubecore check` judges a `TCubeTiling` by these rules. Each has a page; `explain"
            " RULE` prints it.",
            "",
            *table(("rule", "requires"), rows),
        ]
    )


def page(name: str) -> str:
    """Return the page of a rule."""
    title, _, rest = explain_rule(name).partition("\n")
    text, _, source = rest.strip().rpartition("\n\nFrom: ")
    words = set(re.findall(r"\w+", f"{title} {text}"))
    named = [field for field in FIELDS if field in words]
    links = ", ".join(f"[{field}](../fields.md#{anchor(field)})" for field in named)
    return "\n".join(
        [
            f"# {name}",
            "",
            f"**{title.partition(': ')[2]}**",
            "",
            text,
            "",
            *([f"Fields: {links}", ""] if links else []),
            *_example(name),
            f"Source: {source}",
            "",
            "`cubecore check` names this rule where a tiling breaks it, with the numbers and the"
            " largest value that fits; `--repair` finds the nearest legal tiling. See"
            " [My tiling is refused](../tutorials/refused.md).",
            "",
        ]
    )


def _example(name: str) -> Iterator[str]:
    """Yield what breaks a rule; nothing if no change of one field of the problems' plans does."""
    broken = broken_by_rule().get(name)
    if broken is None:
        return
    yield from ("## Example", "")
    kept = ", ".join(f"`{f} = {v}`" for f, v in broken.others)
    yield f"The tiling of `{command(broken.problem)}` keeps it: `{broken.field} = {broken.before}`"
    yield f"beside {kept}." if kept else "."
    yield f"With `{broken.field} = {broken.after}`, `cubecore check` says"
    yield from ("", "```text", *broken.messages, "```", "")


def command(problem: dict[str, Any]) -> str:
    """Return the command that plans a problem."""
    words = ["cubecore plan"]
    for key, value in problem.items():
        option = f"--{key.replace('_', '-')}"
        words.append(option if value is True else f"{option} {value}")
    return " ".join(words)

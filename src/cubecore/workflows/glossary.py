"""The glossary: words of the field and of cubecore's answers, each with its meaning."""

import tomllib
from functools import cache

from cubecore.lazy_dataclass import dataclass
from cubecore.package_data import packaged


@dataclass(frozen=True, slots=True)
class Term:
    """Words that share a meaning."""

    names: tuple[str, ...]
    meaning: str


@cache
def glossary() -> tuple[Term, ...]:
    """Return the terms, the hardware's first."""
    text = packaged("workflows", "glossary.toml").read_text("utf-8")
    return tuple(Term(tuple(t["names"]), t["meaning"]) for t in tomllib.loads(text)["term"])


def term_named(word: str) -> Term | None:
    """Return the term that has a word among its names; case does not matter."""
    wanted = word.lower()
    return next((t for t in glossary() if wanted in map(str.lower, t.names)), None)

"""The glossary: words of the field and of cubecore's answers, each with its meaning."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from cubecore.package_data import packaged


@dataclass(frozen=True, slots=True)
class Term:
    """Words that share a meaning; in a `form` PIPE stands for any pipe's name, N for a number."""

    names: tuple[str, ...]
    meaning: str
    forms: tuple[str, ...] = ()

    def has_form(self, words: str) -> bool:
        """Return whether words are one of the forms; case does not matter."""
        from cubecore.timing.pipes.queues import NAMES

        pipes = f"(?:{'|'.join(NAMES)})"
        for form in self.forms:
            spelled = re.escape(form).replace("PIPE", pipes).replace("N", r"\d+")
            if re.fullmatch(spelled, words, re.IGNORECASE):
                return True
        return False


@cache
def glossary() -> tuple[Term, ...]:
    """Return the terms, the hardware's first."""
    text = packaged("workflows", "manual", "glossary.toml").read_text("utf-8")
    return tuple(
        Term(tuple(t["names"]), t["meaning"], tuple(t.get("forms", ())))
        for t in tomllib.loads(text)["term"]
    )


def term_named(word: str) -> Term | None:
    """Return the term that has a word among its names; case does not matter.

    A pipe is named as flags of kernels spell it, too: PIPE_V.
    """
    from cubecore.timing.pipes.queues import NAMES

    pipe = word.removeprefix("PIPE_")
    wanted = (pipe if pipe in NAMES else word).lower()
    named = (t for t in glossary() if wanted in map(str.lower, t.names))
    return next(named, None) or next((t for t in glossary() if t.has_form(word)), None)

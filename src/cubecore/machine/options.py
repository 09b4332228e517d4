"""Options of a run: the engine that executes it, the order of its queues, and its checks."""

from collections.abc import Iterable

from cubecore.errors import did_you_mean, one_of, refuse
from cubecore.machine.finding_kinds import CHECKS, USUAL

ENGINES = ("fast", "blas", "lockstep", "reference")
"""Words that ask for an engine; a run tells which of the last three executed it.

`fast` takes the fastest engine that applies: `blas` for trees of Cube products, `lockstep` for
kernels in Python, C++ and TIK. Products that `blas` does not prove are `reference`'s, and so are
other orders of the queues and runs with a debugger; `lockstep` runs whatever it is given.
"""
ORDERS = ("program", "late", "early")
"""Orders with a name; the others are ``random:SEED``."""
_WORDS = "program, late, early or random:SEED"
_SETS: dict[str, frozenset[str]] = {"usual": USUAL, "all": frozenset(CHECKS), "none": frozenset()}


def require_engine(engine: str) -> None:
    """Refuse a word that is no engine.

    Raises
    ------
    RequestError
        If no engine has that name.
    """
    if engine not in ENGINES:
        raise refuse("engine", one_of(ENGINES), repr(engine))


def require_order(order: str) -> None:
    """Refuse a word that is no order.

    Raises
    ------
    RequestError
        If no order has that name.
    """
    word, _, seed = order.partition(":")
    if order not in ORDERS and (word != "random" or not seed.isdecimal()):
        raise refuse("order", f"be {_WORDS}", repr(order))


def checks_of(words: Iterable[str]) -> frozenset[str]:
    """Return the checks that `words` name; ``usual``, ``all`` and ``none`` are words too.

    Raises
    ------
    RequestError
        If a name is not a check's.
    """
    checks: set[str] = set()
    for word in words:
        if word not in {*CHECKS, *_SETS}:
            need = one_of((*CHECKS, *_SETS))
            raise refuse("a check", need, repr(word), did_you_mean(word, CHECKS))
        checks |= _SETS.get(word, frozenset({word}))
    return frozenset(checks)

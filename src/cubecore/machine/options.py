"""Options of a run: the engine that executes it, and the order in which its queues run."""

from cubecore.errors import refuse

ENGINES = ("fast", "blas", "lockstep", "reference")
"""Words that ask for an engine; a run tells which of the last three executed it.

`fast` takes the fastest engine that applies: `blas` for trees of Cube products, `lockstep` for
kernels in Python, C++ and TIK. Products that `blas` does not prove are `reference`'s, and so are
other orders of the queues and runs with a debugger; `lockstep` runs whatever it is given.
"""
ORDERS = ("program", "late", "early")
"""Orders with a name; the others are ``random:SEED``."""
_WORDS = "program, late, early or random:SEED"


def require_engine(engine: str) -> None:
    """Refuse a word that is no engine.

    Raises
    ------
    RequestError
        If no engine has that name.
    """
    if engine not in ENGINES:
        raise refuse("engine", f"be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}", repr(engine))


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

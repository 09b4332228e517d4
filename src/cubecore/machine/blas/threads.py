"""Threads of BLAS while cores run."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache

from threadpoolctl import ThreadpoolController

from cubecore.isa.program.topology import CoreId


def one_thread(cores: Iterable[CoreId]) -> AbstractContextManager[object]:
    """Return what keeps BLAS to one thread if one of the cores multiplies.

    Base blocks are small: two threads on one of them fight, and are many times slower. Without a
    Cube nothing is set, since in a forked process that starts threads, which spin for 30 ms.
    """
    if any(core.is_aic for core in cores):
        limits: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
        return limits
    return nullcontext()


@lru_cache
def _libraries() -> ThreadpoolController:
    """Return the process's libraries: NumPy has loaded its own, and a search takes 4 ms."""
    return ThreadpoolController()

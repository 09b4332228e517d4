"""Threads of BLAS while cores run."""

import ctypes
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING

from cubecore.isa.program.topology import CoreId

if TYPE_CHECKING:
    from threadpoolctl import LibController, ThreadpoolController

_OPENBLAS_THREADS = "blas_cpu_number"
"""The variable in which OpenBLAS keeps the number of its threads."""
_forks: list[int] = []
"""The forked processes from the first one to this."""
if hasattr(os, "register_at_fork"):  # no Windows
    os.register_at_fork(after_in_child=lambda: _forks.append(os.getpid()))


def one_thread(cores: Iterable[CoreId]) -> AbstractContextManager[object]:
    """Return what keeps BLAS to one thread if one of the cores multiplies.

    Base blocks are small: two threads on one of them fight, and are many times slower. Without a
    Cube nothing is set. In a forked process OpenBLAS would start threads first, which spin for
    30 ms: its variable is set instead, to the end of the process.
    """
    if not any(core.is_aic for core in cores):
        return nullcontext()
    if _forks and _all_by_variable():
        return nullcontext()
    return one_thread_each()


def one_thread_each() -> AbstractContextManager[object]:
    """Return what keeps each of our threads that multiplies to one thread of BLAS."""
    limits: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limits


def _all_by_variable() -> bool:
    """Set the variable of each library to one thread; return whether all have it."""
    return all(map(_by_variable, _libraries().select(user_api="blas").lib_controllers))


def _by_variable(library: "LibController") -> bool:
    try:
        threads = ctypes.c_int.in_dll(library.dynlib, _OPENBLAS_THREADS)
    except ValueError:
        return False
    threads.value = 1
    return True


@lru_cache
def _libraries() -> "ThreadpoolController":
    """Return the process's libraries: NumPy has loaded its own, and a search takes 4 ms."""
    from threadpoolctl import ThreadpoolController  # loaded where cores multiply, and only there

    return ThreadpoolController()

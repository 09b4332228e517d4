"""Kernels that a run of a program builds, and their launches."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from cubecore.frontends.tik.host.kernel import Kernel, TikRun
from cubecore.frontends.tik.trace.run_options import Options, run_with


class Instance(Protocol):
    """A Tik object whose BuildCCE was called."""

    kernel: Kernel | None

    def launch(
        self,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Any] | None = None,
        inplace: Mapping[str, str] | None = None,
    ) -> TikRun:
        """Run the built kernel."""


@dataclass(eq=False, slots=True)
class Session:
    """Kernels in the order in which they were built, and their launches."""

    options: Options = field(default_factory=Options)
    built: list[Instance] = field(default_factory=list)
    runs: list[TikRun] = field(default_factory=list)

    @contextmanager
    def collecting(self) -> Iterator["Session"]:
        """Collect what is built and launched inside."""
        token = _active.set(self)
        try:
            with run_with(self.options):
                yield self
        finally:
            _active.reset(token)


_active: ContextVar[Session | None] = ContextVar("tik_session", default=None)


def active() -> Session:
    """Return the session that collects now; outside of any, one of its own."""
    return _active.get() or Session()

"""Kernels that a run of a program builds, and their launches."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from cubecore.frontends.tik.host.kernel import TikKernel, TikRun
from cubecore.frontends.tik.trace.run_options import TikOptions, run_with


class Instance(Protocol):
    """A Tik object whose BuildCCE was called; `launched` tells if its kernel ran."""

    launched: bool

    @property
    def built_kernel(self) -> TikKernel:
        """The kernel that BuildCCE finished."""

    def launch(
        self,
        feeds: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
        inplace: Mapping[str, str] | None = None,
    ) -> TikRun:
        """Run the built kernel."""


@dataclass(eq=False, slots=True)
class TikSession:
    """Kernels in the order in which they were built, and their launches."""

    options: TikOptions = field(default_factory=TikOptions)
    built: list[Instance] = field(default_factory=list)
    runs: list[TikRun] = field(default_factory=list)

    @property
    def not_launched(self) -> tuple[Instance, ...]:
        """The instances whose kernels were built and not run."""
        return tuple(instance for instance in self.built if not instance.launched)

    @contextmanager
    def collecting(self) -> Iterator["TikSession"]:
        """Collect what is built and launched inside."""
        token = _active.set(self)
        try:
            with run_with(self.options):
                yield self
        finally:
            _active.reset(token)


_active: ContextVar[TikSession | None] = ContextVar("tik_session", default=None)


def active() -> TikSession:
    """Return the session that collects now; outside of any, one of its own."""
    return _active.get() or TikSession()

"""What one run of a program builds and launches, and what replaces its own choices."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cubecore.machine.findings import checks_of

if TYPE_CHECKING:
    from cubecore.frontends.tik.instance import Tik
    from cubecore.frontends.tik.kernel import TikRun


@dataclass(frozen=True, slots=True)
class Options:
    """What replaces the choices of a program's kernels; None leaves them.

    `order` is late or early: consumers, or producers, as early as the flags allow. With `echo`
    a debug run writes its findings to standard error; `trace` keeps what each core issues where
    that depends on what it reads.
    """

    chip: str | None = None
    settings: Mapping[str, str] | None = None
    checks: str | None = None
    order: str | None = None
    echo: bool = True
    trace: bool = False

    @property
    def engine(self) -> str:
        """The engine that runs kernels."""
        return self.order or "reference"

    @property
    def wanted_checks(self) -> frozenset[str]:
        """The checks that are on."""
        return checks_of((self.checks or "usual").split(","))


@dataclass(eq=False, slots=True)
class Session:
    """Kernels in the order in which they were built, and their launches."""

    options: Options = field(default_factory=Options)
    built: list["Tik"] = field(default_factory=list)
    runs: list["TikRun"] = field(default_factory=list)

    @contextmanager
    def collecting(self) -> Iterator["Session"]:
        """Collect what is built and launched inside."""
        token = _active.set(self)
        try:
            yield self
        finally:
            _active.reset(token)


_active: ContextVar[Session | None] = ContextVar("tik_session", default=None)


def active() -> Session:
    """Return the session that collects now; outside of any, one of its own."""
    return _active.get() or Session()

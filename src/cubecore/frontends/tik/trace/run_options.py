"""Options of a run of TIK programs, which replace the choices that the programs make."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from cubecore.machine.options import checks_of


@dataclass(frozen=True, slots=True)
class TikOptions:
    """Overrides for the choices of a program's kernels; None leaves a choice as it is.

    `order` is program, late or early (consumers, or producers, as early as the flags allow) or
    random:SEED. With `echo` a debug run writes its findings to standard error; `trace` keeps what
    each core issues where that depends on what it reads.
    """

    chip: str | None = None
    settings: Mapping[str, str] | None = None
    checks: str | None = None
    order: str | None = None
    echo: bool = True
    trace: bool = False

    @property
    def wanted_checks(self) -> frozenset[str]:
        """The checks that are on."""
        return checks_of((self.checks or "usual").split(","))


_options: ContextVar[TikOptions] = ContextVar("tik_run_options", default=TikOptions())  # noqa: B039 - frozen


def run_options() -> TikOptions:
    """Return the options of the run that goes on; outside of any, the defaults."""
    return _options.get()


@contextmanager
def run_with(options: TikOptions) -> Iterator[None]:
    """Run what is inside with `options`."""
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)

"""Options of the command line for the launch of a C or C++ kernel."""

from dataclasses import dataclass, fields

from cubecore.errors import refuse
from cubecore.sandbox.words import NONE, checked

TIMEOUT_S = 60.0
"""Seconds that a launch may take, unless told."""
LIMIT = 10_000_000
"""Instructions of a launch, unless told: more than of one in Python, since its time is limited."""


@dataclass(frozen=True, slots=True)
class CppLaunchOptions:
    """Options of a launch on the command line: texts, as they were typed."""

    entry: str | None = None
    blocks: int | None = None
    grid: str | None = None
    block: str | None = None
    dynamic_ub: int = 0
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    marked_outputs: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    tiling_data: str | None = None
    tiling_key: int = 0
    timeout_s: float = TIMEOUT_S
    auto_sync: str = "on"
    verbose: bool = False
    sandbox: str = NONE

    def __post_init__(self) -> None:
        """Refuse a limit that leaves no time."""
        if not self.timeout_s > 0:
            raise refuse("--timeout", "be above 0 s", f"{self.timeout_s:g}")
        checked(self.sandbox)

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given: for a file that has none of them."""
        plain = CppLaunchOptions()
        names = {"arguments": "--arg", "outputs": "--out-arg", "defines": "-D"}
        names |= {"timeout_s": "--timeout", "marked_outputs": "--outputs"}
        return tuple(
            names.get(f.name, "--" + f.name.replace("_", "-"))
            for f in fields(self)
            if getattr(self, f.name) != getattr(plain, f.name)
        )

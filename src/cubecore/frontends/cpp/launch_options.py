"""Options of the command line for the launch of a C or C++ kernel."""

from dataclasses import fields

from cubecore.lazy_dataclass import dataclass

SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".asc", ".cce")
"""The suffixes of files with C and C++ kernels."""
TIMEOUT_S = 60.0
"""Seconds that a launch may take, unless told."""


@dataclass(frozen=True, slots=True)
class CppLaunchOptions:
    """Options of a launch on the command line: texts, as they were typed."""

    entry: str | None = None
    blocks: int | None = None
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    tiling_data: str | None = None
    tiling_key: int = 0
    timeout_s: float = TIMEOUT_S
    verbose: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given: for a file that has none of them."""
        plain = CppLaunchOptions()
        names = {"arguments": "--arg", "outputs": "--out-arg", "defines": "-D"}
        names["timeout_s"] = "--timeout"
        return tuple(
            names.get(f.name, "--" + f.name.replace("_", "-"))
            for f in fields(self)
            if getattr(self, f.name) != getattr(plain, f.name)
        )

"""Letting a public operator import what it expects beside itself."""

import contextlib
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from .case import AI_CORE, BUILT_IN, GEKOWA, VENDOR

_SAMPLES = "tools/custom_operator_sample"
SAMPLE_UTILS = f"{_SAMPLES}/dependency_files"
"""What the vendor's samples expect in their package: its own copy of `util`."""


class Placed(Protocol):
    """An operator's place: its repository, the folder that it is imported from, its module."""

    @property
    def repository(self) -> str:
        """The repository, as OWNER/NAME."""

    @property
    def folder(self) -> str:
        """What Python imports the module from."""

    @property
    def module(self) -> str:
        """The module's name."""

    @property
    def generator(self) -> tuple[str, ...] | None:
        """What a program that writes the operator is started with; None for an operator."""


class _Package(types.ModuleType):
    """A package without what its own code imports: it finds a name when asked for it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            return getattr(import_module(f"{self.__name__}{self._source_of(name)}"), name)

    def _source_of(self, name: str) -> str:
        """Return the module, with its dot, from which the package's own code imports a name."""
        for folder in self.__path__:
            path = Path(folder, "__init__.py")
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            if found := re.search(rf"^from (\.\w+) import\b.*\b{name}\b", text, re.MULTILINE):
                return found[1]
        raise AttributeError(name)


def _leave_out_the_rest(roots: list[Path]) -> None:
    """Let packages not import every operator that they hold: it takes seconds, DSL ones fail."""
    for name, below in (("impl", "."), ("impl.dynamic", "dynamic")):
        package = _Package(name)
        package.__path__ = [str(root / below) for root in roots if (root / below).is_dir()]
        sys.modules[name] = package
    vars(sys.modules["impl"])["dynamic"] = sys.modules["impl.dynamic"]
    with contextlib.suppress(ImportError):  # two modules import each other: this is the order
        import_module("impl.util.util_common")


@contextlib.contextmanager
def importable(placed: Placed, checkout: Path) -> Iterator[None]:
    """Let the operator import what it expects beside itself."""
    with tempfile.TemporaryDirectory() as made:
        root = checkout / placed.folder
        if placed.generator is not None:
            target = Path(made, f"{placed.module}.py")
            program = root / f"{placed.module}.py"
            subprocess.run([sys.executable, program, *placed.generator, target], check=True)
            root = target.parent
        if (root / "impl").is_dir():
            Path(made, "mxIndex_impl").symlink_to(root / "impl")
        sympy = types.ModuleType("sympy")
        sympy.__dict__["re"] = None
        sys.modules.setdefault("sympy", sympy)
        sys.path[:0] = [str(root)]
        sys.path += [made] + ([str(checkout / BUILT_IN)] if placed.repository == VENDOR else [])
        if placed.repository in {GEKOWA, VENDOR}:
            behind = BUILT_IN if placed.repository == VENDOR else AI_CORE
            beside = [checkout / SAMPLE_UTILS] if placed.folder.startswith(_SAMPLES) else []
            _leave_out_the_rest([root / "impl", *beside, checkout / behind / "impl"])
        yield

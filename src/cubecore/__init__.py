"""cubecore: plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core.

The four questions are four functions: `plan`, `check`, `run` and `time`; `compare`, `explain` and
`chip` help; `kernel` makes a kernel of a Python function. They load what they need on first use, so
that importing cubecore costs nothing. The public names are those that ``__init__.pyi`` imports.
"""

from cubecore.version import __version__ as __version__

_homes: dict[str, tuple[str, str]] = {}
"""The module and the name in it by public name; empty until one is asked for."""


def __getattr__(name: str) -> object:
    """Load a public name from where it lives."""
    if not _homes:
        _homes.update(_listed())
    if name == "__all__":
        return sorted(_homes)
    if name not in _homes:
        raise AttributeError(f"module cubecore has no attribute {name}")
    home, own = _homes[name]
    try:
        value: object = getattr(__import__(home, fromlist=[own]), own)
    except ModuleNotFoundError as error:
        from cubecore.errors import missing_package

        raise missing_package(f"cubecore.{name}", error) or error from None
    globals()[name] = value
    return value


def _listed() -> dict[str, tuple[str, str]]:
    """Return the names that the stub imports or assigns, one a line.

    They are ``from MODULE import NAME as PUBLIC`` and ``PUBLIC = IMPORTED``.
    """
    from cubecore.package_data import packaged

    homes = {}
    for line in packaged("__init__.pyi").read_text("utf-8").splitlines():
        match line.split():
            case ["from", module, "import", own, "as", name]:
                homes[name] = module, own
            case [name, "=", imported]:
                homes[name] = homes.pop(imported)
    return homes


def __dir__() -> list[str]:
    """Return the public names, and nothing that this module needs for itself."""
    return sorted(__getattr__("__all__"))  # type: ignore[call-overload]

"""What the benchmarks share: their arguments, and a figure beside its target."""

import argparse
from typing import Any


def arguments(about: str, **defaults: float) -> argparse.ArgumentParser:
    """Return a parser of positional arguments that may be left out, of their defaults' types."""
    lines, keep = argparse.RawDescriptionHelpFormatter, "%(default)s unless told"
    parser = argparse.ArgumentParser(description=about, formatter_class=lines)
    for name, default in defaults.items():
        kind = type(default)
        parser.add_argument(
            name, nargs="?", type=kind, default=default, metavar=name.upper(), help=keep
        )
    return parser


def against(value: float, target: float, *, least: bool = False, **more: Any) -> dict[str, Any]:
    """Return a figure beside its target, which it must not pass, or must reach if `least`."""
    met = value >= target if least else value <= target
    return {"value": value, "target": target, "met": met, **more}

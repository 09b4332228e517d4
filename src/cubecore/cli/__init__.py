"""The command line."""

from cubecore.cli.commands import main

__all__ = ["main"]

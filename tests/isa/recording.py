"""A plugin of pytest that notes which types of which instructions ran.

``python -m pytest -p isa.recording --isa-ran FILE ...`` writes them as JSON: {name: {field: [type,
...]}}, fields that hold an element type; {} for an instruction without such a field.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from cubecore.timing.memory.reuse_marks import ReuseMark

Ran = dict[str, dict[str, set[str]]]


def types_of(template: Any) -> dict[str, str]:
    """Return the element types of a template by its fields."""
    fields = [f for f in dataclasses.fields(template) if "types" in f.metadata]
    return {f.name: getattr(template, f.name).name for f in fields}


class Recorder:
    """Watches what tests run: one instruction, a kernel's, or a tree's leaves."""

    def __init__(self, file: Path) -> None:
        self.file, self.ran = file, Ran()

    def note(self, template: Any) -> None:
        """Take one template; marks that stand for a loop's reuse are no instructions."""
        if isinstance(template, ReuseMark):
            return
        found = self.ran.setdefault(template.name, {})
        for field, name in types_of(template).items():
            found.setdefault(field, set()).add(name)

    def watch(self) -> None:
        """Stand before what runs an instruction."""
        from cubecore.isa.program.trace import Names
        from cubecore.isa.program.tree import Issue
        from cubecore.machine.execute.core import Core
        from cubecore.machine.group.recorder import Recorder as CoreRecorder
        from isa.bench import Bench

        for owner, method, place in (
            (Bench, "do", 0),
            (Core, "record", 0),
            (Names, "kind", 0),  # what a recorded core issues, from Python or from a child process
            (Core, "scalars", 0),
            (CoreRecorder, "scalars", 0),
            (Issue, "__init__", 0),
        ):
            setattr(owner, method, self._before(getattr(owner, method), place))

    def _before(self, call: Any, place: int) -> Any:
        def noting(owner: Any, *arguments: Any, **words: Any) -> Any:
            self.note(words["template"] if "template" in words else arguments[place])
            return call(owner, *arguments, **words)

        return noting

    def pytest_sessionfinish(self) -> None:
        """Write what ran."""
        sorted_types = {
            name: {field: sorted(names) for field, names in sorted(fields.items())}
            for name, fields in sorted(self.ran.items())
        }
        self.file.write_text(json.dumps(sorted_types, indent=1) + "\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--isa-ran", help="file for what ran")


def pytest_configure(config: pytest.Config) -> None:
    recorder = Recorder(Path(config.getoption("--isa-ran")))
    recorder.watch()
    config.pluginmanager.register(recorder)

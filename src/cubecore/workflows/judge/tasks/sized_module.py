"""A task's module with other numbers: those that its constants and the makers of its inputs have.

A number is a site: an integer of an assignment at the top of the module, or in the body of a
function that makes inputs. What is computed from a constant follows it, as the module is executed
anew; numbers inside of the model stay as they are.
"""

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

_MAKERS = {"get_inputs", "get_init_inputs"}
LEAST = 16
"""Numbers up to it are no sizes: strides, kernels, counts of layers or channels of a picture."""


@dataclass(frozen=True, slots=True)
class NumberSite:
    """A number of a task that may be a size: its name, or where it stands, and its value."""

    name: str
    value: int


class TaskModule:
    """The source of a task, from which modules with other numbers are made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tree = ast.parse(path.read_text("utf-8"), str(path))
        self.sites = tuple(NumberSite(name, _value(node)) for name, node in _sites(self._tree))

    def made(self, values: Sequence[int]) -> ModuleType:
        """Return the module with a value for each site."""
        tree = copy.deepcopy(self._tree)
        for (_, node), value in zip(list(_sites(tree)), values, strict=True):
            node.value = value
        module = ModuleType("cubecore_task")
        module.__file__ = str(self._path)
        exec(compile(tree, str(self._path), "exec"), vars(module))  # noqa: S102 - the task
        return module

    def changed(self, values: Sequence[int]) -> Mapping[str, list[int]]:
        """Return the sites that other values have, each with its own value and the other."""
        pairs = zip(self.sites, values, strict=True)
        return {site.name: [site.value, value] for site, value in pairs if site.value != value}


def _sites(tree: ast.Module) -> list[tuple[str, ast.Constant]]:
    """Return the sites of a module in the order of the source, each with a name of its own."""
    found: list[tuple[str, ast.Constant]] = []
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            parts = _numbers(node.value)
            word = ast.unparse(target)
            names = [word] if len(parts) == 1 else [f"{word}[{n}]" for n in range(len(parts))]
            found += zip(names, parts, strict=True)
        elif isinstance(node, ast.FunctionDef) and node.name in _MAKERS:
            found += [(f"{node.name}[{n}]", part) for n, part in enumerate(_numbers(node))]
    return found


def _numbers(node: ast.AST) -> list[ast.Constant]:
    found = [
        each for each in ast.walk(node) if isinstance(each, ast.Constant) and _value(each) > LEAST
    ]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _value(node: ast.Constant) -> int:
    """Return an integer of a source; 0 of another constant, a truth value among them."""
    return node.value if type(node.value) is int else 0

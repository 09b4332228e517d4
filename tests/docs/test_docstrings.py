"""The first line of a docstring says what the thing is or does, in the field's words."""

import ast
from pathlib import Path

import pytest

import cubecore

SOURCE = Path(cubecore.__file__).parent
MODULES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))
RIDDLES = {"What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why", "How"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_s_first_line_names_the_thing(module):
    docstring = ast.get_docstring(ast.parse((SOURCE / module).read_text()))
    assert docstring is not None
    first, *rest = docstring.splitlines()
    assert first.split()[0].strip(",:").removesuffix("'s") not in RIDDLES, first
    assert first.endswith("."), first
    assert not rest or not rest[0]


@pytest.mark.parametrize("module", MODULES)
def test_no_docstring_begins_with_a_riddle(module):
    tree = ast.parse((SOURCE / module).read_text())
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    first = [(node.name, (ast.get_docstring(node) or "-").split()[0]) for node in documented]
    assert [each for each in first if each[1].strip(",:").removesuffix("'s") in RIDDLES] == []

"""The first line of a module's docstring says what the module is, in the field's words."""

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

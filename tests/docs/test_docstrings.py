"""The first line of a docstring says what the thing is or does, in the field's words."""

import ast
import dataclasses
import doctest
import inspect
from pathlib import Path

import pytest

import cubecore

SOURCE = Path(cubecore.__file__).parent
MODULES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))
RIDDLES = {"What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why", "How"}


@pytest.mark.parametrize("package", sorted({Path(module).parent for module in MODULES}), ids=str)
@pytest.mark.thinned(4)
def test_no_docstring_begins_with_a_riddle(package):
    for module in MODULES:
        if Path(module).parent == package:
            tree = ast.parse((SOURCE / module).read_text())
            assert_module_line(module, ast.get_docstring(tree))
            assert_no_riddle(module, tree)


def assert_module_line(module, docstring):
    assert docstring is not None, module
    first, *rest = docstring.splitlines()
    assert first.split()[0].strip(",:").removesuffix("'s") not in RIDDLES, (module, first)
    assert first.endswith("."), (module, first)
    assert not rest or not rest[0], module


def assert_no_riddle(module, tree):
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    first = [(node.name, (ast.get_docstring(node) or "-").split()[0]) for node in documented]
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    first += [(text, (text.split() or ["-"])[0]) for text in texts]  # of constants and fields
    riddles = [each for each in first if each[1].strip(",:").removesuffix("'s") in RIDDLES]
    assert riddles == [], module


def public_callables():
    """Yield the functions and classes of the public interface, and their public methods."""
    for name in cubecore.__all__:
        thing = getattr(cubecore, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for method, value in vars(thing).items():
                function = getattr(value, "__func__", value)
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{method}", function


PUBLIC = dict(public_callables())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_callable_documents_its_parameters_and_its_result(name):
    lines = [line.strip() for line in inspect.getdoc(PUBLIC[name]).splitlines()]
    shown = inspect.signature(PUBLIC[name])
    keys = {f.name for f in dataclasses.fields(cubecore.Problem)}
    own = [p for p in shown.parameters if p not in {"self", "cls"} | (keys - {"m", "n", "k", "a"})]
    if "**keys" in lines:
        own = [p for p in own if p not in keys]
    documented = [
        word.strip(" *`")
        for line in lines
        if " : " in line
        for word in line.split(" : ")[0].split(",")
    ]
    assert [p for p in own if p not in documented] == []
    if shown.return_annotation not in {None, "None"}:
        assert {"Returns", "Yields"} & {*lines}


@pytest.mark.parametrize("name", sorted({name.partition(".")[0] for name in PUBLIC}))
@pytest.mark.thinned(4)
def test_the_examples_of_the_public_interface_hold(name):
    runner = doctest.DocTestRunner()
    finder = doctest.DocTestFinder()
    for test in finder.find(
        getattr(cubecore, name), name, globs={"cubecore": cubecore}, module=False
    ):
        assert runner.run(test).failed == 0

"""House style that a reader would notice and no linter looks for."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cubecore

SOURCE = Path(cubecore.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_fixed_tuple(annotation: ast.expr | None) -> bool:
    """Return whether an annotation, or one of its alternatives, is a tuple of so many members."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return is_fixed_tuple(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp):
        return is_fixed_tuple(annotation.left) or is_fixed_tuple(annotation.right)
    if not (isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name)):
        return False
    if annotation.value.id in {"Optional", "Union"}:
        members = annotation.slice
        return any(map(is_fixed_tuple, getattr(members, "elts", [members])))
    if annotation.value.id not in {"tuple", "Tuple"}:
        return False
    members = getattr(annotation.slice, "elts", [annotation.slice])
    return not any(isinstance(m, ast.Constant) and m.value is Ellipsis for m in members)


def nameless_tuples(text: str) -> Iterator[str]:
    """Yield the parameters that take a nameless tuple, as function(parameter)."""
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, FUNCTIONS):
            taken = function.args
            for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs):
                if is_fixed_tuple(each.annotation):
                    yield f"{function.name}({each.arg})"


def test_no_parameter_is_a_tuple_whose_members_have_no_name():
    found = [
        f"{path.relative_to(SOURCE)}: {parameter}"
        for path in sorted(SOURCE.rglob("*.py"))
        for parameter in nameless_tuples(path.read_text())
    ]
    assert found == [], "take two parameters, a record with named fields, a range or a slice"


@pytest.mark.parametrize(
    ("annotation", "is_nameless"),
    [
        ("tuple[int, int]", True),
        ("tuple[int]", True),
        ("tuple[int, str] | None", True),
        ("None | tuple[Expr, Extent]", True),
        ("'tuple[Sites, int]'", True),
        ("Optional[tuple[int, int]]", True),
        ("tuple[int, ...]", False),
        ("tuple[tuple[int, int], ...]", False),
        ("Sequence[tuple[int, int]]", False),
        ("range", False),
    ],
)
def test_which_annotations_are_nameless_tuples(annotation, is_nameless):
    text = f"class A:\n    async def f(self, one, *, two: {annotation} = None): ..."
    assert list(nameless_tuples(text)) == ["f(two)"] * is_nameless


def test_a_module_has_at_most_500_lines_and_its_functions_60():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert text.count("\n") <= 500, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTIONS):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


@pytest.mark.parametrize("suffix", ["py", "h"])
def test_a_folder_holds_at_most_14_files_of_a_kind(suffix):
    folders = {path.parent for path in SOURCE.rglob(f"*.{suffix}")}
    sizes = {
        str(folder.relative_to(SOURCE)): len(
            set(folder.glob(f"*.{suffix}")) - {folder / "__init__.py"}
        )
        for folder in folders
    }
    assert {folder: size for folder, size in sizes.items() if size > 14} == {}


def test_comments_are_signposts_in_the_source():
    lines = [
        line.lstrip() for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines()
    ]
    comments = sum(line.startswith("#") for line in lines)
    hint = "say where hard code begins why it is so and which state holds there"
    assert comments >= 0.015 * len(lines), f"{comments} of {len(lines)} lines: {hint}"

"""The floors of the packages, and the proof that no import runs in a circle.

Every import counts: at the top of a module, inside a function, for type checkers alone, and by a
name that is given to `import_module`. A module added inside a package edits nothing here; a package
added beside those of a table takes a floor in it.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import cubecore

SOURCE = Path(cubecore.__file__).parent

FLOORS = {
    "cubecore": {
        "cli": "options, exit codes and streams of the command line",
        "workflows": "a request answered: a verb is a function of one module",
        "answers": "the record of each verb with all its looks",
        "reports": "parts of pages, and files for other tools",
        "advice | frontends": "causes and changes; kernels in Python's C API, C and C++, or TIK",
        "planning": "plans: tilings of the search, ranked by their event timing",
        "kernels": "programs that a tiling or an operator implies",
        "machine | models | timing": "values of a program, products of a model, time of a program",
        "isa | tiling": "instructions with their meaning and cost; tilings with rules and search",
        "chips": "sizes, rates and constants of a chip with their sources",
        "numerics": "number formats: rounding, saturation, codes",
        "presented": "what every answer shows of itself, and text in columns",
        "sandbox": "boxes that hold a submission's processes",
    },
    "cubecore.frontends": {
        "cpp | tik": "languages that are compiled or traced",
        "kernels": "Python kernels, tensors of the host, script files",
        "capi | diagnosis": "calls bound to instructions; findings in the source's words",
        "matmul_tiling": "setters of the vendor's host tiling, which no kernel needs",
    },
    "cubecore.frontends.cpp": {
        "operator_projects": "registrations and tiling functions of an op_host, and their launches",
        "host_programs": "a main that launches kernels, and the compiler driver",
        "launch": "a kernel's arguments, its child process, and recording",
        "toolchain": "compiler, cache, generated headers, errors in the user's words",
        "rewriting": "what is rewritten before the compiler sees a file",
    },
    "cubecore.frontends.tik": {
        "host": "the Tik object and the vendor's modules that a program imports",
        "calls": "calls by family",
        "trace": "tensors, scalars, loops and scopes while a program is traced",
    },
    "cubecore.isa": {
        "cube | vector": "instructions of the two units that compute",
        "mte | program | scalar": "copies; program trees; flags and registers",
        "declare": "parts of a declaration",
    },
    "cubecore.isa.vector": {
        "elementwise | permute | registers | simt": "instructions by family; functions as one",
        "common": "masks, repeats, forms",
    },
    "cubecore.kernels": {
        "operators": "kernels of vector cores, which may hold products",
        "matmul": "the matmul kernel as a program, and its time without one",
        "build": "builders of programs",
    },
    "cubecore.machine": {
        "debug | group": "steps of one core; groups of equal cores at once",
        "execute": "one instruction, on one core or on many",
        "blas | sanitize": "products proven and computed by BLAS; checks of a run",
        "memory": "bytes and what was written to them",
    },
    "cubecore.reports": {
        "files": "files for other tools",
        "html": "the page and its parts",
    },
    "cubecore.tiling": {
        "repair": "the nearest legal tiling, by search",
        "solver": "the best legal tiling, by search",
        "cost": "predicted cycles",
        "rules": "what makes a tiling legal",
        "model": "the problem and the tiling",
    },
    "cubecore.timing": {
        "tiles": "products without trees, from stages",
        "steady_state": "walks of trees that skip what recurs",
        "pipes": "clocks of one core",
        "memory": "device memory and L2, which the cores share",
    },
    "cubecore.workflows": {
        "judge | sweep": "submissions against a task; many requests",
        "manual": "meanings of words",
        "operators | scripts": "requests without a tiling: an operator, a user's file",
        "calibration | data": "published measurements; operands, files and references",
    },
}
"""For each package that is stated here its packages from the top floor to the bottom one.

A package imports what stands below it, directly or by a chain. `|` stands between packages that
must not know each other. Modules outside of any package lie below all floors of `cubecore`; other
modules beside packages stand where their imports put them.
"""

ROOT_MODULES = sorted(
    path.stem for path in SOURCE.glob("*.py") if path.stem not in {"__init__", "__main__"}
)


def named_imports(path, package):
    """Return the modules or, with a final dot, the packages that `import_module` is given."""
    text = path.read_text(encoding="utf-8")
    calls = [
        node
        for node in ast.walk(ast.parse(text) if "import_module(" in text else ast.Module([], []))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
    ]
    names = [
        ast.unparse(call.args[0]).removeprefix("f").strip("'\"").replace("{__package__}", package)
        for call in calls
    ]
    return [name.partition("{")[0] for name in names if name.startswith("cubecore.")]


def whole_graph():
    """Return the graph of all imports, with those by name."""
    graph = grimp.build_graph("cubecore", cache_dir=None)
    for path in sorted(SOURCE.rglob("*.py")):
        *folders, stem = path.relative_to(SOURCE.parent).with_suffix("").parts
        package = ".".join(folders)
        module = package if stem == "__init__" else f"{package}.{stem}"
        for name in named_imports(path, package):
            loaded = graph.find_descendants(name[:-1]) if name.endswith(".") else {name}
            for imported in loaded - {module}:
                graph.add_import(importer=module, imported=imported)
    return graph


@pytest.fixture(scope="module")
def graph():
    return whole_graph()


def packages_of(graph, container):
    """Return the names of the packages that lie directly in `container`."""
    return {
        child.rpartition(".")[2]
        for child in graph.find_children(container)
        if graph.find_children(child)
    }


def upward(graph, container, rows, below=()):
    """Return each import or chain from a floor of `container` to one that it must not know."""
    layers = [grimp.Layer(*row.split(" | "), independent=True) for row in rows]
    if below:
        layers.append(grimp.Layer(*below, independent=False))
    return sorted(
        " imports ".join([min(route.heads), *route.middle, min(route.tails)])
        for broken in graph.find_illegal_dependencies_for_layers(layers, {container})
        for route in broken.routes
    )


def circle(edges):
    """Return a circle in `edges` in the order of the imports; none is an empty list."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def circle_of_modules(graph):
    """Return a circle of modules, if there is one."""
    return circle({m: graph.find_modules_directly_imported_by(m) for m in graph.modules})


def circle_inside(graph, package):
    """Return a circle of what lies directly in `package`: a package is one with its modules."""
    children = graph.find_children(package)
    home = {m: child for child in children for m in {child} | graph.find_descendants(child)}
    edges = {child: set() for child in children}
    for module, child in home.items():
        used = graph.find_modules_directly_imported_by(module)
        edges[child] |= {home[m] for m in used if m in home} - {child}
    return circle(edges)


@pytest.mark.parametrize("container", FLOORS)
def test_a_package_imports_only_from_floors_below_it(graph, container):
    below = ROOT_MODULES if container == "cubecore" else []
    assert upward(graph, container, FLOORS[container], below) == []


@pytest.mark.parametrize("container", FLOORS)
def test_every_package_beside_those_of_a_table_has_a_floor(graph, container):
    stated = [name for row in FLOORS[container] for name in row.split(" | ")]
    assert sorted(stated) == sorted(packages_of(graph, container))


def test_no_import_runs_in_a_circle_of_modules(graph):
    assert circle_of_modules(graph) == []


def test_nothing_inside_a_package_runs_in_a_circle(graph):
    packages = sorted(m for m in graph.modules if graph.find_children(m))
    assert {package: c for package in packages if (c := circle_inside(graph, package))} == {}


def test_no_module_imports_the_front_door(graph):
    assert sorted(graph.find_modules_that_directly_import("cubecore")) == []


def small_graph(*imports):
    graph = grimp.ImportGraph()
    for module in ["a", "a.low", "a.low.x", "a.high", "a.high.x", "a.high.y", "a.alone"]:
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    return graph


ROWS = {"high": "", "low": ""}


def test_an_import_or_a_chain_to_a_higher_floor_is_reported():
    down = [("a.high.x", "a.low.x"), ("a.high.x", "a.alone")]
    assert upward(small_graph(*down), "a", ROWS) == []
    direct = small_graph(*down, ("a.low.x", "a.high.y"))
    assert upward(direct, "a", ROWS) == ["a.low.x imports a.high.y"]
    chain = small_graph(("a.low.x", "a.alone"), ("a.alone", "a.high.y"))
    assert upward(chain, "a", ROWS) == ["a.low.x imports a.alone imports a.high.y"]


def test_packages_of_one_floor_must_not_know_each_other():
    graph = small_graph(("a.high.x", "a.low.x"))
    assert upward(graph, "a", {"high | low": ""}) == ["a.high.x imports a.low.x"]


def test_a_circle_of_modules_or_of_packages_is_reported():
    modules = small_graph(("a.high.x", "a.high.y"), ("a.high.y", "a.high.x"))
    assert circle_of_modules(modules) in (
        ["a.high.x", "a.high.y", "a.high.x"],
        ["a.high.y", "a.high.x", "a.high.y"],
    )
    assert circle_inside(modules, "a") == []
    packages = small_graph(("a.high.x", "a.low.x"), ("a.low.x", "a.high.y"))
    assert circle_of_modules(packages) == []
    assert sorted(set(circle_inside(packages, "a"))) == ["a.high", "a.low"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import_module('cubecore.cli.entry')", ["cubecore.cli.entry"]),
        ('x = importlib.import_module("cubecore.cli")', ["cubecore.cli"]),
        ("def f():\n    import_module(f'cubecore.cli.{name}')", ["cubecore.cli."]),
        ("import_module(f'{__package__}.{name}')", ["cubecore.isa."]),
        ("import_module(name)", []),
        ("import_module('numpy')", []),
    ],
)
def test_a_module_loaded_by_name_counts_as_an_import(tmp_path, line, names):
    path = tmp_path / "module.py"
    path.write_text(line, encoding="utf-8")
    assert named_imports(path, "cubecore.isa") == names

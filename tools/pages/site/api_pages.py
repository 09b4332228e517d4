"""The reference of the Python API, by task: a page for each, made of the docstrings."""

import re

import cubecore
from cubecore.presented import Presented

TASKS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "matmul": (
        "Matmul tilings",
        "Plan, check, run and time a matmul (GEMM).",
        (
            *("plan", "plan_many", "check", "run", "time", "tune", "compare", "sweep"),
            *("Problem", "TCubeTiling", "load_tiling", "Store"),
        ),
    ),
    "kernels": (
        "Kernels of your own",
        "Run kernels in Python, C++, C and TIK.",
        (
            *("kernel", "load", "load_op", "time_kernel", "debug", "compare_result", "inline"),
            *("Kernel", "KernelRun", "CoreHandle", "Pointer", "Struct", "Debugging", "capi"),
        ),
    ),
    "models": ("Models, chips and words", "", ("model", "chip", "explain", "validate")),
}
"""The title, a sentence and the first names of each page; the others follow by what they are."""


def pages() -> dict[str, str]:
    """Return the page of each task, that of the setters and of results, and their index."""
    public = {name: getattr(cubecore, name) for name in cubecore.__all__}
    public = {name: thing for name, thing in public.items() if hasattr(thing, "__module__")}
    made, rest = {}, dict(public)
    for path, (title, sentence, names) in TASKS.items():
        named = {name: rest.pop(name) for name in names if name in rest}
        made[f"api/{path}.md"] = _page(title, sentence, named)
    setters = {name: rest.pop(name) for name in sorted(rest) if _is_setters(public[name])}
    results = {cls.__name__: cls for cls in _results() if cls.__name__ not in public}
    errors = {name: rest.pop(name) for name in sorted(rest) if name.endswith("Error")}
    made["api/tiling_setters.md"] = _page("The vendor's tiling API", "", setters, inherited=True)
    made["api/types.md"] = _page("Records and types", "", dict(sorted(rest.items())))
    made["api/errors.md"] = _page("Errors", "Their texts are one sentence each.", errors)
    made["api/results.md"] = _page("Results", "", dict(sorted(results.items())))
    made["api.md"] = _index(made)
    return made


def _page(title: str, sentence: str, things: dict[str, type], *, inherited: bool = False) -> str:
    lines = [f"# {title}", "", *([sentence, ""] if sentence else [])]
    for name, thing in things.items():
        lines += [f"::: {thing.__module__}.{name}", "    options:", f"      heading: {name}"]
        lines += ["      inherited_members: true"] * inherited
        lines.append("")
    return "\n".join(lines)


def _index(made: dict[str, str]) -> str:
    lines = [
        "# Python API",
        "",
        "The public names of `import cubecore`. Every result prints as its command does, and has"
        " `to_json()`, `to_frame()` and, where there is a page, `report(path)`.",
        "",
    ]
    for path, text in made.items():
        title = text.partition("\n")[0].removeprefix("# ")
        names = re.findall(r"^      heading: (.+)$", text, re.MULTILINE)
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(f"- [{title}]({path}): {listed}")
    return "\n".join([*lines, ""])


def _is_setters(thing: object) -> bool:
    """Return whether a class holds the setters of the vendor's host tiling API."""
    return any(base.__name__.endswith("TilingBase") for base in getattr(thing, "__mro__", ()))


def _results() -> list[type]:
    """Return the classes of results that print themselves."""
    found, open_ = [], [Presented]
    while open_:
        below = open_.pop().__subclasses__()
        found += below
        open_ += below
    return found

"""The page of ``cubecore --help``: no command is loaded for it, nor is Click.

What a command does is read from the text of its module: the first paragraph of its help.
"""

import os

TYPE_CHECKING = False  # typing would be most of what --help loads
if TYPE_CHECKING:
    from collections.abc import Iterator

PURPOSE = "Plan, check, simulate and time kernels for Ascend NPUs, without an NPU or CANN."
OPTIONS = {
    "--version": "Show the version and exit.",
    "-h, --help": "Show this message and exit.",
}
GROUPS = {
    "Matmul tilings": "plan check tune compare sweep store",
    "Kernels, operators and matmuls": "run time judge",
    "C++ projects": "sample c++ env",
    "Models, chips and words": "model chips explain validate",
    "This program": "help completion doctor",
}
"""The commands by what they are for."""
OTHERS = "Models, chips and words"
"""The group of commands that no group names."""
EXAMPLES = (
    "cubecore plan --m 4096 --n 5120 --k 4096",
    "cubecore run kernel.cpp --blocks 8 --arg x=x.npy --out-arg z=half:16384:z.npy",
)
_USAGE = "Usage: "
_VERBS = f"{os.path.dirname(__file__)}/verbs/"  # noqa: PTH120 - pathlib takes longer than the page
_TEXT_BYTES = 1 << 14
"""The bytes of a module within which its command's help begins and ends."""


def verbs() -> dict[str, str]:
    """Return the file of each command by the command's name, sorted."""
    files = dict(_files(""))
    return {name: files[name] for name in sorted(files)}


def _files(folder: str) -> "Iterator[tuple[str, str]]":
    """Yield the commands in a folder of modules and in its folders."""
    for name in _listed(folder):
        if name.endswith(".py"):
            stem = name[:-3]
            if stem != "__init__":
                yield "c++" if stem == "cpp" else stem, f"{folder}{name}"
        elif "." not in name and name != "__pycache__":
            yield from _files(f"{name}/")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(_VERBS + folder)  # noqa: PTH208
    except OSError:  # in an archive
        from cubecore.package_data import packaged

        return [entry.name for entry in packaged("cli", "verbs", folder).iterdir()]


def summaries() -> dict[str, str]:
    """Return what each command does."""
    return {name: _summary(file) for name, file in verbs().items()}


def _summary(file: str) -> str:
    """Return the first paragraph of the docstring of the function that is called as its module."""
    name = file[file.rfind("/") + 1 : -3]
    help_text = _text(file).partition(f"\ndef {name}(")[2].split('"""', 2)[1]
    return " ".join(help_text.partition("\n\n")[0].split())


def _text(file: str) -> str:
    try:
        opened = os.open(_VERBS + file, os.O_RDONLY)
    except OSError:  # in an archive
        from cubecore.package_data import packaged

        return packaged("cli", "verbs", *file.split("/")).read_text("utf-8")
    text = os.read(opened, _TEXT_BYTES)
    os.close(opened)
    return text.decode()


def front_page(program: str, width: int) -> str:
    """Return the page for a program of a name, of lines of at most `width` characters."""
    texts = summaries()
    lines = [*_usage(program, width), "", *_filled(PURPOSE, width, "  ", "  ")]
    named = " ".join(GROUPS.values()).split()
    others = [name for name in texts if name not in named]
    for title, names in GROUPS.items():
        rows = {name: texts[name] for name in names.split()}
        if title == OTHERS:
            rows |= {name: texts[name] for name in others}
        lines += ["", f"{title}:", *_table(rows, width)]
    lines += ["", "Options:", *_table(OPTIONS, width)]
    lines += ["", "Examples:", *(f"  {line}" for line in EXAMPLES)]
    return "\n".join(lines)


def _usage(program: str, width: int) -> list[str]:
    """Return the lines of the usage; behind a long name the arguments have a line of their own."""
    start, arguments = f"{_USAGE}{program} ", "[OPTIONS] COMMAND [ARGS]..."
    if len(start) + 20 <= width:
        return _filled(arguments, width, start, " " * len(start))
    indent = " " * (len(_USAGE) + 4)
    return [start, *_filled(arguments, width, indent, indent)]


def _filled(text: str, width: int, first: str, rest: str) -> list[str]:
    """Return the lines of a text, the first and the others behind their indents."""
    lines, line = [], first
    for word in text.split():
        if line not in (first, rest) and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = rest
        line += f"{word} "
    return [*lines, line.rstrip()]


def _table(rows: dict[str, str], width: int) -> list[str]:
    """Return a name and its whole text a row; lines behind the first stand below the text."""
    column = max(map(len, rows)) + 4
    lines = []
    for name, text in rows.items():
        lines += _filled(text, width, f"  {name:{column - 2}}", " " * column)
    return lines

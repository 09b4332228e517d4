"""Draws docs/architecture.svg: the packages of cubecore and which of them import which.

Everything shown is read from the source: rows and arrows from the imports, the line under a
package's name from the docstring of its `__init__`, the names below from its folder. An arrow that
follows from others is left out. `python -m tools.pages.docs architecture.svg` writes the file.
"""

import textwrap
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import grimp

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "cubecore"

Graph = dict[str, set[str]]
"""Each package with the packages that it imports."""

WIDTH, BOX, GAP, ROW_GAP, MARGIN = 1120, 330, 30, 46, 20
LINE, HEAD = 17, 24
STYLE = """\
    :root{--paper:#fff;--box:#eef3fb;--edge:#2b5c9e;--ink:#16202c;--soft:#44546a}
    @media (prefers-color-scheme: dark){
      :root{--paper:#0d1117;--box:#18243a;--edge:#7fb0f5;--ink:#eef3fb;--soft:#b4c2d6}
    }
    .paper{fill:var(--paper)}
    .box{fill:var(--box);stroke:var(--edge);stroke-width:1.4}
    .name{font-weight:bold;font-size:17px;fill:var(--ink)}
    .text{font-size:13px;fill:var(--ink)}
    .note{font-size:13px;fill:var(--soft)}
    .arrow{stroke:var(--edge);stroke-width:1.6;fill:none;marker-end:url(#tip)}
    #tip path{fill:var(--edge)}"""


def imports() -> Graph:
    """Return the imports between the packages of cubecore; those for type checkers do not count."""
    modules = grimp.build_graph("cubecore", cache_dir=None, exclude_type_checking_imports=True)
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    graph: Graph = {name: set() for name in sorted(packages)}
    for module in modules.modules:
        for imported in modules.find_modules_directly_imported_by(module):
            user, used = (name.split(".")[1:2] for name in (module, imported))
            if user != used and packages.issuperset(user + used) and user and used:
                graph[user[0]].add(used[0])
    return graph


def ranks(graph: Graph) -> dict[str, int]:
    """Return for each package the length of the longest chain of imports below it."""
    known: dict[str, int] = {}

    def rank(name: str) -> int:
        if name not in known:
            known[name] = max((rank(used) + 1 for used in graph[name]), default=0)
        return known[name]

    return {name: rank(name) for name in graph}


def reduced(graph: Graph) -> Graph:
    """Return `graph` without the imports that a chain of others implies."""

    def below(name: str) -> set[str]:
        return graph[name].union(*(below(used) for used in graph[name]))

    return {
        name: {used for used in uses if not any(used in below(other) for other in uses)}
        for name, uses in graph.items()
    }


def modules_of(package: str) -> list[str]:
    """Return the names in a package's folder: its packages with a slash, then its modules."""
    folder = SOURCE / package
    inner = sorted(path.parent.name + "/" for path in folder.glob("*/__init__.py"))
    own = sorted(path.stem for path in folder.glob("[!_]*.py"))
    return inner + own


def _lines(package: str) -> list[tuple[str, str]]:
    """Return the lines below a package's name, each with its style."""
    first = (SOURCE / package / "__init__.py").read_text(encoding="utf-8").splitlines()[0]
    note = first.strip('"').rstrip(".")
    columns = (BOX - 20) * 10 // 64
    names = "  ".join(modules_of(package))
    return [("note", line) for line in textwrap.wrap(note, columns)] + [
        ("text", line) for line in textwrap.wrap(names, columns, break_on_hyphens=False)
    ]


def _rows(graph: Graph, links: Graph) -> list[list[str]]:
    """Return the packages from the top row to the bottom one, in the order that they stand in.

    Packages stand over those that they import: the mean position of the row below decides.
    """
    rank = ranks(graph)
    rows: list[list[str]] = []
    position: dict[str, float] = {}
    for level in range(max(rank.values()) + 1):
        over = {
            name: fmean(position[used] for used in links[name]) if links[name] else 0.5
            for name in graph
            if rank[name] == level
        }
        row = [name for _, name in sorted((mean, name) for name, mean in over.items())]
        position |= {name: (index + 0.5) / len(row) for index, name in enumerate(row)}
        rows.append(row)
    return rows[::-1]


def _gaps(row: list[str]) -> list[float]:
    """Return where an arrow may pass a row of boxes."""
    left = (WIDTH - len(row) * BOX - (len(row) - 1) * GAP) / 2
    return [left - GAP / 2 + index * (BOX + GAP) for index in range(len(row) + 1)]


def _arrow(points: list[tuple[float, float]]) -> str:
    """Return a path through `points` that leaves and enters each of them vertically."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"
    return f'  <path class="arrow" d="{path}"/>'


def picture() -> str:
    """Return the SVG."""
    graph = imports()
    links = reduced(graph)
    rows = _rows(graph, links)
    boxes: dict[str, tuple[float, float]] = {}
    bands: list[tuple[float, float]] = []
    y = float(MARGIN)
    for row in rows:
        height = HEAD + LINE * max(len(_lines(name)) for name in row) + 12
        left = (WIDTH - len(row) * BOX - (len(row) - 1) * GAP) / 2
        for index, name in enumerate(row):
            boxes[name] = (left + index * (BOX + GAP), y)
        bands.append((y, y + height))
        y += height + ROW_GAP
    level = {name: index for index, row in enumerate(rows) for name in row}
    body = []
    for name, uses in sorted(links.items()):
        targets = sorted(uses, key=lambda used: boxes[used])
        for index, used in enumerate(targets, 1):
            start = boxes[name][0] + BOX * index / (len(targets) + 1)
            users = sorted((user for user in links if used in links[user]), key=boxes.__getitem__)
            end = boxes[used][0] + BOX * (users.index(name) + 1) / (len(users) + 1)
            points = [(start, bands[level[name]][1])]
            for passed in range(level[name] + 1, level[used]):
                share = (passed - level[name]) / (level[used] - level[name])
                straight = start + (end - start) * share
                gap = min(_gaps(rows[passed]), key=lambda x: abs(x - straight))
                points += [(gap, edge) for edge in bands[passed]]
            body.append(_arrow([*points, (end, bands[level[used]][0] - 2)]))
    for name, (x, top) in boxes.items():
        bottom = bands[level[name]][1]
        body += [
            f'  <rect class="box" x="{x:.0f}" y="{top:.0f}" width="{BOX}"'
            f' height="{bottom - top:.0f}" rx="6"/>',
            f'  <text class="name" x="{x + 10:.0f}" y="{top + 20:.0f}">{name}</text>',
        ]
        body += [
            f'  <text class="{style}" x="{x + 10:.0f}" y="{top + HEAD + LINE * index:.0f}">'
            f"{escape(line)}</text>"
            for index, (style, line) in enumerate(_lines(name), 1)
        ]
    height = round(y - ROW_GAP + MARGIN)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            ' font-family="sans-serif">',
            "  <title>Packages of cubecore; an arrow points to what a package imports</title>",
            "  <style>",
            STYLE,
            "  </style>",
            '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>',
            f'  <rect class="paper" width="{WIDTH}" height="{height}"/>',
            *body,
            "</svg>",
            "",
        ]
    )

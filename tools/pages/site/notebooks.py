"""Tutorials: Markdown whose Python blocks are the cells of a notebook, executed for the site.

A tutorial is written once, as Markdown that any viewer shows. `executed` runs its cells in a
kernel of its own, in an empty folder; `page` puts the outputs behind the cells, and `notebook`
gives the notebook that a reader can download. `cells` is what tests execute and compare.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from html import escape

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from tools.pages.site.cells import CELL, cells
from traitlets.config import Config

_TIMEOUT_S = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@cache
def executed(text: str) -> NotebookNode:
    """Return the notebook of a tutorial with the outputs of its cells.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    # A block of shell commands would be a cell, too: it is shown and not run.
    book = jupytext.reads(text.replace("```sh\n", "```text\n"), fmt="md")
    book.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    with tempfile.TemporaryDirectory() as folder:
        # Sockets of files: no network, and no warning of it.
        sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
        client = NotebookClient(
            book,
            timeout=_TIMEOUT_S,
            kernel_name="python3",
            config=Config({"KernelManager": sockets}),
        )
        client.execute(cwd=folder, env=os.environ | {"IPYKERNEL_CELL_NAME": "notebook"})
    return book


def page(text: str, book: NotebookNode) -> str:
    """Return the Markdown of a tutorial with each cell's outputs behind it."""
    outputs = [cell.outputs for cell in book.cells if cell.cell_type == "code"]
    assert len(outputs) == len(cells(text)), "a cell is lost between Markdown and notebook"
    remaining = iter(outputs)
    return CELL.sub(lambda match: match[0] + _shown(next(remaining)), text)


def notebook(text: str, book: NotebookNode) -> str:
    """Return the notebook file: this text's prose with the outputs of `book`."""
    own = jupytext.reads(text, fmt="md")
    own.metadata = book.metadata
    done = [cell for cell in book.cells if cell.cell_type == "code"]
    mine = [cell for cell in own.cells if cell.cell_type == "code"]
    for cell, other in zip(mine, done, strict=True):
        cell.outputs, cell.execution_count = other.outputs, other.execution_count
    for number, cell in enumerate(own.cells):
        cell["id"] = f"cell-{number}"
    written: str = nbformat.writes(own)
    return written


def _shown(outputs: Sequence[NotebookNode]) -> str:
    """Return the outputs of a cell as Markdown: text in a block, tables and pictures as HTML."""
    parts: list[str] = []
    printed = ""
    for output in outputs:
        data = output.get("data", {})
        if "text/html" not in data:
            printed += output.get("text") or data.get("text/plain") or ""
            continue
        parts += _block(printed)
        printed = ""
        html = "".join(line.strip() for line in data["text/html"].splitlines())
        parts.append(f'<div class="cell-output">{html}</div>')
    parts += _block(printed)
    return "".join(f"\n{part}\n" for part in parts)


def _block(text: str) -> list[str]:
    """Return printed text as a block of its own; none where nothing was printed."""
    if not text.strip():
        return []
    plain = escape(_COLOURS.sub("", text).rstrip(), quote=False)
    return [f'<pre class="cell-output"><code>{plain}</code></pre>']

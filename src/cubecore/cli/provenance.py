"""The provenance of the pages that commands write."""

import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import click

from cubecore.cli.streams import speaks_chinese
from cubecore.cli.values import InputFile
from cubecore.presented.provenance import PageProvenance, with_provenance

_SMALL_BYTES = 1 << 20
"""Files of a folder that are longer are weights or data, and not what a command reads of it."""


def signed(page: str, chip: str = "") -> str:
    """Return a page with the command that makes it, the time, its inputs and the chip.

    It is in the language of the texts for people.

    Without a command it is a program of `cubecore c++` that runs, by the name that it was called.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        command, inputs = sys.argv[1:], {sys.argv[1]: _digest(Path(sys.argv[1]))}
    else:
        command = ["cubecore", *(context.find_root().obj or sys.argv[1:])]
        inputs = dict(_digests(context))
    now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    page = with_provenance(page, PageProvenance(shlex.join(command), now, inputs, chip))
    if not speaks_chinese():
        return page
    from cubecore.cli.zh.pages import chinese_page  # only with Chinese

    return chinese_page(page)


def _digests(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each file that the command line names as an input, with its SHA-256."""
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if not isinstance(param.type, InputFile) or value is None:
            continue
        for each in value if isinstance(value, tuple) else (value,):
            path = param.type.path(each)
            if path is not None and (digest := _digest(Path(path))):
                yield path, digest


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder's small files; empty of what is none."""
    hasher = sha256()
    try:
        if path.is_dir():
            small = (f for f in sorted(path.iterdir()) if f.is_file())
            for file in small:
                if file.stat().st_size <= _SMALL_BYTES:
                    hasher.update(file.name.encode("utf-8", "surrogateescape") + b"\0")
                    hasher.update(file.read_bytes())
        else:
            with path.open("rb") as opened:
                while part := opened.read(_SMALL_BYTES):
                    hasher.update(part)
    except OSError:
        return ""
    return hasher.hexdigest()

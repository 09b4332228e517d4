"""Requests of a batch: a folder of submissions for one task, or a JSONL file with a line for each.

A request is known by the content of its submission and its task, and by its options: one that is in
the store is not judged again, wherever its files lie now.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.verdict import SCHEMA
from cubecore.errors import RequestError, refuse, unable, unreadable
from cubecore.version import __version__
from cubecore.workflows.judge.content import content_digest
from cubecore.workflows.judge.limits import options_of

_PLACES = ("submission", "task")


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A submission and a task, paths of files or folders, with options of `judge` and a chip."""

    submission: str
    task: str
    chip: str
    options: Json


def keys_of(requests: Iterable[BatchRequest]) -> list[str]:
    """Return each request by its content: that of the files, the options and cubecore's version.

    Raises
    ------
    RequestError
        If a file cannot be read, or an option does not take its value.
    """
    # A batch has few tasks: each is read once.
    digest = cache(content_digest)
    keys = []
    for each in requests:
        asked = asdict(options_of(each.chip, each.options))
        content = [SCHEMA, __version__, digest(each.submission), digest(each.task), asked]
        keys.append(hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())
    return keys


def batch_requests(source: str, task: str | None, chip: str, options: Json) -> list[BatchRequest]:
    """Return the requests of a folder or a JSONL file, in the order of names or lines.

    Parameters
    ----------
    source : str
        A folder, of which every file and folder is a submission but those that begin with a point;
        or a JSONL file. A line has ``submission``, ``task`` unless `task` says it, and options of
        `judge` by their names. Its paths begin at the file's folder.
    task : str or None
        The task of all that name none.
    chip : str
        The chip of all that name none.
    options : dict
        Options of `judge` that a line may replace.

    Raises
    ------
    RequestError
        If the source cannot be read, is empty, or has a line that is no request.
    """
    place = Path(source)
    if place.is_dir():
        if task is None:
            raise unable("--batch", "--batch with a folder needs --task, the task of them all")
        names = sorted(each for each in place.iterdir() if not each.name.startswith("."))
        found = [BatchRequest(str(each), task, chip, options) for each in names]
    else:
        found = list(_lines(place, source, task, chip, options))
    if not found:
        raise refuse(source, "have at least one submission", "none")
    return found


def _lines(
    place: Path, source: str, task: str | None, chip: str, options: Json
) -> Iterator[BatchRequest]:
    try:
        text = place.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise unreadable(source, error) from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{source} line {number}"
        parsed = _object(line, where)
        names = {"task": task, **parsed}
        for name in _PLACES:
            if not isinstance(names.get(name), str):
                raise refuse(where, f"have a {name}, the path of a file or folder", names.get(name))
        other = {name: value for name, value in parsed.items() if name not in {*_PLACES, "chip"}}
        base = place.parent
        at = str(base / parsed["task"]) if "task" in parsed else str(task)
        request = BatchRequest(
            str(base / parsed["submission"]),
            at,
            str(parsed.get("chip", chip)),
            {**options, **other},
        )
        _require_options(request, where)
        yield request


def _object(line: str, where: str) -> JsonMapping:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise refuse(where, "be a JSON object", repr(line[:60])) from None
    if not isinstance(parsed, dict):
        raise refuse(where, "be a JSON object", type(parsed).__name__)
    return parsed


def _require_options(request: BatchRequest, where: str) -> None:
    try:
        options_of(request.chip, request.options)
    except RequestError as error:
        raise RequestError(each.within(where) for each in error.violations) from None
    except TypeError as error:
        raise unable(where, f"{where}: {error}") from None

"""A tiling as text and bytes, and back: JSON, blob, hex dump, C++ header; and out of any log.

Functions return text or bytes; writing files is the caller's.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from cubecore.aliases import Json
from cubecore.errors import RequestError, Violation, no_json, refuse, unreadable
from cubecore.tiling.model.cpp_source import to_header
from cubecore.tiling.model.hexdump import from_hex_dump, looks_like_hex, to_hex_dump
from cubecore.tiling.model.log_text import OPTIONAL, LoggedTiling, tiling_of_text
from cubecore.tiling.model.tcubetiling import DEFAULTS, FIELDS, SIZE_BYTES, TCubeTiling

MAX_FILE_BYTES = 1024 * 1024
"""Longer files are no tilings and are not read."""
_DEFINITION = re.compile(r"\bTCubeTiling\s+(\w+)\s*=?\s*\{([^{}]*)\}\s*;")
_ENTRY = re.compile(r"\s*(?:\.(?P<name>\w+)\s*=\s*)?(?P<value>[+-]?\w+)\s*\Z")
_LINE_COMMENT = re.compile(r"//[^\n]*")
_NAMED = re.compile(r"\b(?:base|singleCore)[MNK]\b")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def to_json_text(tiling: TCubeTiling) -> str:
    """Return the 50 fields as an indented JSON object with a final newline."""
    return json.dumps(tiling.to_json(), indent=2) + "\n"


def from_header(text: str, subject: str = "tiling header") -> TCubeTiling:
    """Return the tiling that a header's only TCubeTiling definition holds.

    Values may be positional, as `to_header` writes them, or designated (``.baseM = 128``); comments
    are ignored.

    Raises
    ------
    RequestError
        If the header has no definition or several, a value is not an integer, positional values are
        too few or too many, or a designated field is missing or misspelt.
    """
    definitions = _DEFINITION.findall(_bare(text))
    if len(definitions) != 1:
        raise refuse(subject, "define one TCubeTiling", f"{len(definitions)} definitions")
    entries = [entry for entry in definitions[0][1].split(",") if entry.strip()]
    named: Json = {}
    values: list[int] = []
    violations = []
    for entry in entries:
        match = _ENTRY.match(entry)
        value = _integer(match["value"]) if match else None
        if match is None or value is None:
            violations.append(Violation(subject, "hold integers only", repr(entry.strip())))
        elif match["name"] is None:
            values.append(value)
        elif match["name"] in named:
            violations.append(Violation(subject, "give a field once", match["name"]))
        else:
            named[match["name"]] = value
    if named and values:
        violations.append(Violation(subject, "name all of its fields or none", "both kinds"))
    if violations:
        raise RequestError(violations)
    if named:
        return TCubeTiling.from_json(named)
    if len(values) != len(FIELDS):
        raise refuse(subject, f"hold the {len(FIELDS)} values of TCubeTiling", len(values))
    return TCubeTiling(*values)


def parse_tiling(
    data: bytes, subject: str = "tiling", number: int | None = None
) -> TCubeTiling | LoggedTiling:
    """Return the tiling in `data`; its format is recognised by content.

    JSON, a header, a hex dump and the 200-byte blob are whole tilings. Of any other text of names
    and numbers, as logs print them, the fields that are absent come with the tiling; `number`
    chooses among several tilings of a text.

    Raises
    ------
    RequestError
        If the data holds no tiling, is malformed, or holds several; the message begins with
        `subject`.
    """
    text = _text(data)
    if text is None:
        return TCubeTiling.from_bytes(data, subject)
    if _is_object(text):
        return _of_json(_json_object(text, subject))
    if "TCubeTiling" in text and (_DEFINITION.search(_bare(text)) or not _NAMED.search(text)):
        return from_header(text, subject)
    if looks_like_hex(text):
        return from_hex_dump(text, subject)
    if len(data) == SIZE_BYTES and not text.isprintable():
        return TCubeTiling.from_bytes(data, subject)
    logged = tiling_of_text(text, subject, number)
    if logged is None and text.lstrip().startswith("{"):
        _json_object(text, subject)
    if logged is None:
        forms = f"a JSON object, a {SIZE_BYTES}-byte blob, its hex dump, a header or a log"
        raise refuse(subject, f"hold a TCubeTiling: {forms}", f"{len(data)} B of none of them")
    return logged


def tiling_data(tiling: TCubeTiling, path: str) -> bytes:
    """Return the bytes of the form that `path` ends with: .bin, .hex, .h or .hpp, else JSON."""
    if path.endswith(".bin"):
        return tiling.to_bytes()
    if path.endswith(".hex"):
        return to_hex_dump(tiling).encode()
    text = to_header(tiling) if path.endswith((".h", ".hpp")) else to_json_text(tiling)
    return text.encode()


_FORMS = ("", ".json", ".bin", ".hex", ".h", ".hpp")


def require_form(path: str, subject: str) -> None:
    """Refuse a name that ends as no form of a tiling does; without an ending it is JSON.

    Raises
    ------
    RequestError
        If the path has another ending.
    """
    if Path(path).suffix not in _FORMS:
        raise refuse(subject, f"end in {', '.join(_FORMS[1:-1])} or {_FORMS[-1]}", path)


def load_tiling(path: str | Path) -> TCubeTiling:
    """Return the tiling in a file.

    Parameters
    ----------
    path : str or Path
        A file with JSON, the 200 bytes of the structure, their dump in hexadecimal, a C++ header,
        or any text of names and numbers, such as a log; ``FILE#2`` is the second tiling of a text,
        ``-`` standard input. Fields that a text leaves out are 0.

    Returns
    -------
    TCubeTiling
        The tiling.

    Raises
    ------
    RequestError
        If the file cannot be read, is longer than 1 MiB, holds no tiling, or several.

    Examples
    --------
    >>> cubecore.load_tiling("tiling.json")  # doctest: +SKIP
    """
    read = read_tiling(path)
    return read.tiling if isinstance(read, LoggedTiling) else read


def read_tiling(path: str | Path) -> TCubeTiling | LoggedTiling:
    """Return the tiling in a file as `load_tiling` does; of a text with the absent fields."""
    name, number = tiling_file(str(path))
    subject = "standard input" if name == "-" else name
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(subject, error) from None
    if len(data) > MAX_FILE_BYTES:
        raise refuse(subject, f"be at most {MAX_FILE_BYTES} B long", "a longer file")
    return parse_tiling(data, subject, number)


def tiling_file(path: str) -> tuple[str, int | None]:
    """Return the file that a path names, and the number behind ``#`` of one of its tilings."""
    name, sign, number = path.rpartition("#")
    if not (sign and number.isdecimal()):
        return path, None
    try:
        whole = Path(path).exists()
    except OSError:  # too long
        whole = False
    return (path, None) if whole else (name, int(number))


def _text(data: bytes) -> str | None:
    """Return `data` as text; None if it is binary (a NUL, or not UTF-8)."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _of_json(given: Json) -> TCubeTiling | LoggedTiling:
    """Return an object's tiling; one that lacks no more than a log may is taken as a log is."""
    absent = tuple(name for name in FIELDS if name not in given)
    if set(absent) <= set(OPTIONAL) and not set(absent) <= set(DEFAULTS):
        return LoggedTiling(TCubeTiling.from_json({**OPTIONAL, **given}), 1, absent)
    return TCubeTiling.from_json(given)


def _bare(text: str) -> str:
    """Return a header without its comments."""
    return _LINE_COMMENT.sub("", _BLOCK_COMMENT.sub("", text))


def _is_object(text: str) -> bool:
    """True for JSON, unless the fields lie deeper or a list of fields is cut off."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return not _NAMED.search(text)
    return not isinstance(read, dict) or not any(isinstance(v, dict | list) for v in read.values())


def _integer(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _json_object(text: str, subject: str) -> Json:
    def unique(pairs: list[tuple[str, Any]]) -> Json:
        """Return the object; refuse a name that stands twice."""
        record = dict(pairs)
        if len(record) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise refuse(subject, "give a field once", twice)
        return record

    try:
        loaded = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise refuse(subject, "be JSON", no_json(error)) from None
    if not isinstance(loaded, dict):
        raise refuse(subject, "be a JSON object", type(loaded).__name__)
    return loaded

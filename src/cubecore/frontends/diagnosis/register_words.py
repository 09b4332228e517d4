"""Findings of vector functions in the words of a dialect.

A check names register instructions as the class API does, and gives the C API's call beside it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache

from cubecore.frontends.diagnosis.arguments import calls_at
from cubecore.isa.vector.registers.c_api.names import c_names

_EITHER = re.compile(r"\w+<[^()]*>\(\) or (asc_\w+)\((\w*)\)")
"""A call of the class API, and the same of the C API."""
_BOTH = re.compile(r"(\w+) \((asc_\w+)\)")
_MOVES = {
    f"{move}{align}": f"asc_{move}{align}".lower()
    for move in ("Load", "Store")
    for align in ("Align", "UnAlign")
}
_MASKS = {"CreateMask": "asc_create_mask", "UpdateMask": "asc_update_mask"}
"""Masks are made by a call for each width."""
_TYPES = {"MaskReg": "vector_bool", "RegTensor": "vector register"}
_OTHER_NAMES = {"SqueezeCounted": "Squeeze", "StoreCounted": "StoreUnAlign"}
"""Names in sentences of instructions that the class API calls so under a mode."""
_LOCATED = re.compile(r"\b([A-Z]\w+) \((\S+):(\d+)\)")
"""An instruction, and where it was called."""
_NAMES = re.compile(r"^[A-Z]\w*(?= must )|\b[A-Z][a-z]+[A-Z]\w*\b")
"""The instruction that a sentence is about, and names that are no English words."""


def of_class_api(sentence: str) -> str:
    """Return a sentence without the C API's calls."""
    sentence = _EITHER.sub(lambda match: match[0].partition(" or ")[0], sentence)
    return _BOTH.sub(r"\1", sentence)


def of_c_api(sentence: str, receiver: str, calls: Collection[str] = ()) -> str:
    """Return a sentence in the C API's names; behind a `receiver` words are strings.

    `calls` stand at the line that the sentence is about, which begins with one of them.
    """

    def called(match: re.Match[str]) -> str:
        word = f'"{match[2]}"' if receiver and match[2] else match[2]
        return f"{receiver}{match[1]}({word})"

    def located(match: re.Match[str]) -> str:
        name = _written(match[1], calls_at(match[2], int(match[3])))
        return f"{name} ({match[2]}:{match[3]})"

    sentence = _BOTH.sub(r"\2", _EITHER.sub(called, sentence))
    sentence = _LOCATED.sub(located, sentence)
    subject, verb, rest = sentence.partition(" must ")
    if verb and subject.isidentifier():
        sentence = f"{_written(subject, calls)}{verb}{rest}"
    return _NAMES.sub(lambda match: _c_names().get(match[0], match[0]), sentence)


def _written(instruction: str, calls: Collection[str]) -> str:
    """Return the one of `calls` that issues an instruction; its own name where none does."""
    named = {call for call in calls if call in _all_names().get(instruction, ())}
    return named.pop() if len(named) == 1 else instruction


@cache
def _all_names() -> Mapping[str, set[str]]:
    """Return the C API's names of each instruction, by its name in sentences."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name, rows in c_names().items():
        for row in rows:
            names[row.operation].add(name)
            names[_OTHER_NAMES.get(row.operation, row.operation)].add(name)
            for word, begin in (_MOVES | _MASKS).items():
                if name.startswith(begin):
                    names[word].add(name)
    return names


@cache
def _c_names() -> Mapping[str, str]:
    """Return the C API's name of each instruction that has one, or one that begins all others."""
    names = _all_names()
    shortest = {operation: min(found, key=len) for operation, found in names.items()}
    return (
        {
            operation: name
            for operation, name in shortest.items()
            if all(other.startswith(name) for other in names[operation])
        }
        | _MOVES
        | _MASKS
        | _TYPES
    )

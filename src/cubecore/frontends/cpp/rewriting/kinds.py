"""The kind of a kernel, which says the cores of a block: its file's words, else what it uses."""

import struct
from collections.abc import Iterable

from cubecore.errors import refuse
from cubecore.frontends.cpp.rewriting.scanner import Entry

_CUBE_WORDS = frozenset(
    {"Mmad", "LoadData", "LoadImageToLocal", "Fixpipe", "CO1", "MatmulImpl", "mad", "asc_mmad"}
)
_VECTOR_WORDS = frozenset({"VECIN", "VECOUT", "VECCALC", "ASCEND_IS_AIV", "asc_copy_gm2ub"})
_TASK = "KERNEL_TYPE_"
_MARK, _RECORD = b"cubecore type of key\0\0\0\0", struct.Struct("<24s40s128sQ")
"""The beginning and the layout of what macros.h leaves in a library for each tiling key."""
_MIXES = {("1", "0"): "cube", ("0", "1"): "vector", ("1", "1"): "mix_1_1", ("1", "2"): "mix"}
"""The kind of a mix by its AICs and AIVs a block."""


def kind_of(entry: Entry | None, words: frozenset[str]) -> str:
    """Return the kind of an entry whose file has these words.

    Where types of several tiling keys differ, a block has all the cores that one of them needs.

    Raises
    ------
    RequestError
        If the entry is a mix of cores that no block has.
    """
    said = entry.words if entry else ()
    if "__vector__" in said:
        return "vector"
    if "__cube__" in said:
        return "cube"
    if "__mix__" in said:
        return _mixed(*said[said.index("__mix__") + 1 :][:2])
    own = {each for _, each in entry.tasks if each.startswith(_TASK)} if entry else set[str]()
    kinds = {_task_kind(each) for each in own or words if each.startswith(_TASK)}
    if kinds:
        return kinds.pop() if len(kinds) == 1 else _widest(kinds)
    if "REGIST_MATMUL_OBJ" in words:
        return "cube" if "ASCENDC_CUBE_ONLY" in words else "mix"
    if words & _CUBE_WORDS:
        return "mix" if words & _VECTOR_WORDS else "cube"
    return "vector"


def types_of_keys(library: bytes) -> list[tuple[str, int, str]]:
    """Return the entry, the tiling key and the type of each KERNEL_TASK_TYPE in a library.

    They are what macros.h leaves in it.
    """
    found = []
    at = library.find(_MARK)
    while at >= 0:
        _, task, entry, key = _RECORD.unpack_from(library, at)
        if task.startswith(_TASK.encode()):
            found.append((_text(entry), key, _text(task)))
        at = library.find(_MARK, at + _RECORD.size)
    return found


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def kind_of_key(entry: Entry | None, key: int, types: Iterable[tuple[str, int, str]]) -> str | None:
    """Return the kind of an entry for a tiling key, None if no key of it has a type.

    `types` are those of `types_of_keys`.
    """
    if entry is None:
        return None
    own = {number: task for name, number, task in types if name == entry.name}
    task = own.get(key, dict(entry.tasks).get("")) if own else None
    return _task_kind(task) if task is not None and task.startswith(_TASK) else None


def kind_with_headers(entry: Entry | None, own: frozenset[str], words: frozenset[str]) -> str:
    """Return the kind of an entry if the words of its file and headers are all it uses.

    What the file itself says stays.
    """
    if any(word.startswith(_TASK) for word in own) or kind_of(entry, own) != "vector":
        return kind_of(entry, own)
    return kind_of(entry, own | words)


def words_of_kinds(words: frozenset[str]) -> frozenset[str]:
    """Return those of a file's words that say the kind of its kernels."""
    known = _CUBE_WORDS | _VECTOR_WORDS | {"REGIST_MATMUL_OBJ", "ASCENDC_CUBE_ONLY"}
    return frozenset(word for word in words if word in known or word.startswith(_TASK))


def _task_kind(task: str) -> str:
    """Return the kind of a kernel by its type, KERNEL_TYPE_AIV_ONLY to KERNEL_TYPE_MIX_AIC_1_2.

    KERNEL_TYPE_MIX_VECTOR_CORE gives a vector kernel more cores, on chips that have them.
    """
    if "_MIX_AI" not in task:
        return "cube" if task.endswith("AIC_ONLY") else "vector"
    main, first, second = task.split("_")[-3:]
    return _mixed(first, second) if main == "AIC" else _mixed(second, first)


def _widest(kinds: set[str]) -> str:
    return "mix" if "mix" in kinds or "mix_1_1" not in kinds else "mix_1_1"


def _mixed(cubes: str = "1", vectors: str = "2") -> str:
    """Return the kind of a mix of so many AICs and AIVs a block."""
    if (cubes + vectors).isdigit() and (cubes, vectors) not in _MIXES:
        need = "be (1, 0), (0, 1), (1, 1) or (1, 2)"
        raise refuse("__mix__", need, f"({cubes}, {vectors})")
    return _MIXES.get((cubes, vectors), "mix")

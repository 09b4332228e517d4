"""The kind of a kernel, which says the cores of a block: its file's words, else what it uses."""

from cubecore.errors import refuse
from cubecore.frontends.cpp.compile.scanner import Entry

_CUBE_WORDS = frozenset(
    {"Mmad", "LoadData", "LoadImageToLocal", "Fixpipe", "CO1", "MatmulImpl", "mad", "asc_mmad"}
)
_VECTOR_WORDS = frozenset({"VECIN", "VECOUT", "VECCALC", "ASCEND_IS_AIV", "asc_copy_gm2ub"})
_TASK = "KERNEL_TYPE_"
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


def kind_of_key(entry: Entry | None, key: int) -> str | None:
    """Return the kind of an entry for a tiling key, None if no type is set for keys in numbers."""
    types = {_number(text): each for text, each in entry.tasks} if entry else {}
    numbers = [number for number in types if number is not None]
    own = types.get(key, types.get(None))
    return _task_kind(own) if numbers and own is not None and own.startswith(_TASK) else None


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


def _number(key: str) -> int | None:
    """Return a tiling key, None for all keys."""
    try:
        return int(key.rstrip("uUlL"), 0)
    except ValueError:
        return None


def _widest(kinds: set[str]) -> str:
    return "mix" if "mix" in kinds or "mix_1_1" not in kinds else "mix_1_1"


def _mixed(cubes: str = "1", vectors: str = "2") -> str:
    """Return the kind of a mix of so many AICs and AIVs a block."""
    if (cubes + vectors).isdigit() and (cubes, vectors) not in _MIXES:
        need = "be (1, 0), (0, 1), (1, 1) or (1, 2)"
        raise refuse("__mix__", need, f"({cubes}, {vectors})")
    return _MIXES.get((cubes, vectors), "mix")

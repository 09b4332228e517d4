"""The columns of the points file: their names, the values that they take, and contradictions."""

import re
from collections.abc import Mapping

from cubecore.aliases import Json, JsonMapping

NEEDED = ("id", "kind", "chip", "measured")
_TEXTS = ("id", "kind", "source", "chip", "note")
_COUNTS = ("cores", "M", "N", "K")
_WORDS = ("dtype_a", "dtype_b", "dtype_c", "formats", "trans")
_TABLES = ("tiling", "measured")
STATED = ("soc", "repository", "op", "api", "cache", "launch", "counts", "left_out", "doubt")
"""Columns of text that say how a measurement was made."""
FIELDS = (*_TEXTS, *_COUNTS, *_WORDS, *_TABLES, *STATED, "assumed")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "api": ("basic", "matmul", "library"),
    "cache": ("cold", "warm"),
    "launch": ("counted", "not counted", "looped"),
    "counts": ("2MNK", "read", "write", "read+write"),
}
"""Values of the columns that take one of a few."""
ATTENTION = "attention"
"""The operator whose extents are `tiling.shape`: heads, queries, keys and the size of a head."""
OURS = "cubecore"
"""The authors of assumptions in the package's own points; others are named in the report."""
_OF_TILING = (
    *("baseM", "baseN", "baseK", "stepM", "stepN", "stepKa", "stepKb", "depthA1", "depthB1"),
    *("scaleFactor", "usedCoreNum", "batch", "rounds", "swizzleOffset", "buffers", "dataCopyLen"),
    *("tileLen", "slices", "repeats", "singleM", "singleN", "singleK"),
)
_FLAGS = ("unitFlag", "constant_tiling", "split_k", "past_l2", "pads", "causal", "clears_c")
_PAIRS = ("tensor", "tile", "l2_tiles")
_TILING_CHOICES: Mapping[str, tuple[str, ...]] = {
    "epilogue": ("fixpipe", "vector cores"),
    "full_load": ("A",),
    "into": ("L1", "UB"),
    "order": ("own", "same", "staggered"),
    "shared": ("AB",),
}
_UNITS = re.compile(
    r"(\w*_us|\w*_ratio|\w*_rate|\w*_pct|\w*cycles\w*|\w*TBps\w*|\w*GBps|TFLOPS|TOPS|GFLOPS|MB"
    r"|\w*_bytes_read|\w*_read_cache_\w+|\w*_l2_(hit|miss|victim)|\w*block_num|waves)"
)


def wrong_value(record: JsonMapping) -> str:
    """Return the sentence about the first column of a point that is wrong; "" of none."""
    return (
        _wrong_text(record)
        or _wrong_count(record)
        or _wrong_tiling(record.get("tiling") or {})
        or _wrong_measured(record["measured"])
        or _wrong_assumption(record.get("assumed"))
        or _contradiction(record)
    )


def _wrong_text(record: JsonMapping) -> str:
    for name in (*_TEXTS, *_WORDS, *STATED):
        if not isinstance(record.get(name), str | None):
            return f"{name} must be a text, got {record[name]!r}"
    for name, choices in CHOICES.items():
        if record.get(name) and record[name] not in choices:
            return f"{name} must be one of {', '.join(choices)}, got {record[name]!r}"
    return ""


def _wrong_count(record: JsonMapping) -> str:
    for name in _COUNTS:
        if not _is_count(record.get(name)):
            return f"{name} must be a positive integer, got {record[name]!r}"
    for name in _TABLES:
        if not isinstance(record.get(name), dict | None):
            return f"{name} must be an object, got {record[name]!r}"
    return ""


def _is_count(value: object) -> bool:
    """Return whether a value is a positive integer or not stated."""
    return value is None or (type(value) is int and 0 < value < 2**31)


def _wrong_tiling(tiling: Json) -> str:
    for name in _OF_TILING:
        if not _is_count(tiling.get(name)):
            return f"tiling.{name} must be a positive integer, got {tiling[name]!r}"
    for name in _FLAGS:
        if not isinstance(tiling.get(name), bool | None):
            return f"tiling.{name} must be true or false, got {tiling[name]!r}"
    for name in _PAIRS:
        value = tiling.get(name)
        pair = isinstance(value, list) and len(value) == 2
        if value is not None and not (pair and all(x is not None and _is_count(x) for x in value)):
            return f"tiling.{name} must be two positive integers, got {value!r}"
    for name, choices in _TILING_CHOICES.items():
        if tiling.get(name) is not None and tiling[name] not in choices:
            return f"tiling.{name} must be one of {', '.join(choices)}, got {tiling[name]!r}"
    return ""


def _wrong_measured(measured: Mapping[str, object]) -> str:
    for name, value in measured.items():
        if not _UNITS.fullmatch(name):
            return f"measured.{name} must have a known unit (_us, _ratio, TFLOPS, ...), got {name}"
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
            return f"measured.{name} must be a number, not negative, got {value!r}"
    return ""


def _wrong_assumption(assumed: object) -> str:
    if assumed is None:
        return ""
    rule = 'assumed must be a list of {"text": ..., "by": ...}'
    if not isinstance(assumed, list):
        return f"{rule}, got {assumed!r}"
    for one in assumed:
        if (
            not isinstance(one, dict)
            or set(one) != {"text", "by"}
            or not all(isinstance(text, str) and text for text in one.values())
        ):
            return f"{rule}, got {one!r}"
    return ""


def _contradiction(record: JsonMapping) -> str:
    """Return the sentence about two columns that exclude each other."""
    tiling = record.get("tiling") or {}
    if record["kind"] == "launch" and record.get("launch") == "not counted":
        return "kind launch measures a launch and contradicts launch 'not counted'"
    if record.get("api") == "basic" and tiling.get("template"):
        template = tiling["template"]
        return f"api basic has no kernel template and contradicts tiling.template {template!r}"
    if record.get("op") == ATTENTION and (sentence := _wrong_attention(record, tiling)):
        return sentence
    if record.get("counts") == "2MNK" and record["kind"] not in {"matmul", "grouped_matmul"}:
        return f"counts 2MNK counts a product and contradicts kind {record['kind']!r}"
    return ""


def _wrong_attention(record: JsonMapping, tiling: Json) -> str:
    """Return the sentence about extents of attention that are wrong, or contradict M or N."""
    shape = tiling.get("shape")
    four = isinstance(shape, list) and len(shape) == 4 and None not in shape
    if not isinstance(shape, list) or not four or not all(map(_is_count, shape)):
        need = "four positive integers (heads, queries, keys, head size) of attention"
        return f"tiling.shape must be {need}, got {shape!r}"
    heads, queries, _, width = shape
    for name, value, said in (("M", heads * queries, "heads x queries"), ("N", width, "head size")):
        if record.get(name) not in {None, value}:
            return f"{name} {record[name]} contradicts tiling.shape, whose {said} is {value}"
    return ""

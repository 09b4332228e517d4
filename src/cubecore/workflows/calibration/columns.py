"""The columns of the points file: their names, the values that they take, and contradictions."""

import re
from collections.abc import Mapping

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import did_you_mean
from cubecore.kernels.operators.functions import FUNCTIONS
from cubecore.units import FRACTAL_ROWS, align_up

NEEDED = ("id", "kind", "chip", "measured")
_TEXTS = ("id", "kind", "source", "chip", "note")
_COUNTS = ("cores", "M", "N", "K")
_WORDS = ("dtype_a", "dtype_b", "dtype_c", "formats", "trans")
_TABLES = ("tiling", "measured")
STATED = ("soc", "repository", "op", "api", "cache", "launch", "counts", "left_out", "doubt")
"""Columns of text that say how a measurement was made."""
FIELDS = (*_TEXTS, *_COUNTS, *_WORDS, *_TABLES, *STATED, "assumed", "kernels")
OF_A_KERNEL = ("kind", *_COUNTS, *_WORDS, "tiling", "op", "api", "left_out")
"""Columns of each of several kernels in one time; all others are the point's."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "api": ("basic", "matmul", "library"),
    "cache": ("cold", "warm"),
    "launch": ("counted", "not counted", "looped"),
    "counts": ("2MNK", "read", "write", "read+write"),
}
"""Values of the columns that take one of a few."""
OPERATIONS: Mapping[str, float] = {"TFLOPS": 1e12, "TOPS": 1e12, "GFLOPS": 1e9}
"""Rates of operations, which need `counts`, and how many one is a second."""
ATTENTION = "attention"
ATTENTION_CUTS = ("kv_heads", "rows", "keys", "splits", "ahead")
"""Columns of `tiling` that say how a kernel of attention cuts its work."""
"""The operator whose sizes are `tiling.shape`: heads, queries, keys and the size of a head."""
HALVED = tuple(name for name, function in FUNCTIONS.items() if function.halves)
"""Functions of the two halves of a row: N is the length of both, as a profile has it."""
ELEMENTWISE = "elementwise"
"""Any operator on whole arrays, by `tiling.reads`, `writes` and `instructions`."""
AIV_PER_AIC = 2
"""Vector cores of an AI Core, which `usedCoreNum` of a mix launch counts."""
OURS = "cubecore"
"""The authors of assumptions in the package's own points; others are named in the report."""
_OF_TILING = (
    *("baseM", "baseN", "baseK", "stepM", "stepN", "stepKa", "stepKb", "depthA1", "depthB1"),
    *("scaleFactor", "usedCoreNum", "batch", "rounds", "swizzleOffset", "buffers", "dataCopyLen"),
    *("tileLen", "slices", "repeats", "singleM", "singleN", "singleK", "writes"),
    *ATTENTION_CUTS,
)
_NATURALS = ("reads", "instructions")
_FLAGS = ("unitFlag", "constant_tiling", "split_k", "past_l2", "pads", "causal", "clears_c")
_PAIRS = ("tensor", "tile", "l2_tiles")
_TILING_CHOICES: Mapping[str, tuple[str, ...]] = {
    "epilogue": ("fixpipe", "vector cores"),
    "full_load": ("A",),
    "into": ("L1", "UB"),
    "order": ("own", "same", "staggered"),
    "scheduler": ("ASWT", "swizzle"),
    "shared": ("AB",),
    "sync": ("automatic", "manual"),
    "template": ("NORM", "MDL", "IBSHARE"),
}
_TILES = ("L1", "L0")
_DESCRIBING = (
    *("L1tileB", "X", "Kf", "hk", "wk", "bias", "blocks", "case", "config", "cv_overlap"),
    *("dbL0", "dbL0A", "dbL0B", "dbL1", "diagonal", "dst", "dstNzC0Stride", "src0", "src1"),
    *("src0BlkStride", "src0RepStride", "enableKdimReorderLoad", "fused", "groupM", "group_list"),
    *("groups", "kernel", "l2_split", "m_per_expert", "mode", "nd2nz", "note", "op", "paddedM"),
    *("paddedN", "preload", "ratio", "shape", "split", "strategy", "thread_blocks", "tile_KB"),
    *("topk", "validCol", "vec_db", "vf_bytes"),
)
"""Columns of a tiling with any value: most say what a publication calls its variant."""
_OF_A_TILING = (*_OF_TILING, *_NATURALS, *_FLAGS, *_PAIRS, *_TILING_CHOICES, *_TILES, *_DESCRIBING)
_BLOCKS = ("base", "single", "step", "depth")
"""First words of the columns that only a matmul's tiling has."""
_WITHOUT_BLOCKS = ("vector", "dma_read", "vector_ubench", "launch")
"""Kinds of kernels that have no product."""
FRACTAL = ("NZ", "zN", "nZ", "FRACTAL_NZ")
"""Layouts of fractals in `formats`, in the words of several publications."""
_FORMATS = (
    *("ND", "DN", *FRACTAL, "Row", "Col", "RowMajor", "ColumnMajor"),
    *("NC1HWC0", "FRACTAL_Z", "NCHW", "NHWC", "?"),
)
_THREE = re.compile(r"([1-9]\d{0,5},){2}[1-9]\d{0,5}")
_STORED = re.compile(r"A:[NT] B:[NT]|\?")
_PRODUCTS = ("matmul", "grouped_matmul")
_WITHOUT_EXTENTS: Mapping[str, tuple[str, ...]] = {"vector": ("K",), "launch": ("M", "N", "K")}
"""Extents that a kind of kernel does not have."""
_LONGER = 1.05
"""A pipe that is busy for more than this part of the launch contradicts it."""
_UNITS = re.compile(
    r"(\w*_us|\w*_ratio|\w*_rate|\w*_pct|\w*cycles\w*|\w*TBps\w*|\w*GBps|TFLOPS|TOPS|GFLOPS|MB"
    r"|\w*_bytes_read|\w*_read_cache_\w+|\w*_l2_(hit|miss|victim)|\w*block_num|waves)"
)


def wrong_value(record: JsonMapping) -> str:
    """Return the sentence about the first column of a point that is wrong; "" of none."""
    # In this order: a column's own form first, then what two columns say of each other, so that the
    # first sentence names the cause and not what follows from it.
    return (
        _wrong_text(record)
        or _wrong_count(record)
        or _wrong_tiling(record.get("tiling") or {})
        or _wrong_measured(record["measured"])
        or _wrong_assumption(record.get("assumed"))
        or _contradiction(record)
        or _wrong_kernels(record)
    )


def _wrong_kernels(record: JsonMapping) -> str:
    """Return the sentence about the first of several kernels that is wrong."""
    kernels = record.get("kernels")
    if kernels is None:
        return ""
    if (
        not isinstance(kernels, list)
        or not kernels
        or not all(isinstance(k, dict) for k in kernels)
    ):
        return f"kernels must be a list of objects, got {kernels!r}"
    for number, kernel in enumerate(kernels):
        for name in kernel:
            if name not in OF_A_KERNEL:
                return f"kernels[{number}] must have only columns of a kernel, got {name!r}"
        if sentence := wrong_value(kernel_record(record, kernel)):
            return f"kernels[{number}]: {sentence}"
    return ""


def kernel_record(record: JsonMapping, kernel: JsonMapping) -> Json:
    """Return one of several kernels as a point of its own that lacks a time."""
    # What belongs to the launch as a whole (its time, its bytes) says nothing of one kernel; what
    # kernels share (chip, versions) is each one's, and its own columns go before both.
    common = {
        name: value for name, value in record.items() if name not in {*OF_A_KERNEL, "kernels"}
    }
    shared = {name: record[name] for name in ("kind", "cores", "api") if name in record}
    return {**common, **shared, **kernel, "measured": {}}


def _wrong_text(record: JsonMapping) -> str:
    for name in (*_TEXTS, *_WORDS, *STATED):
        if not isinstance(record.get(name), str | None):
            return f"{name} must be a text, got {record[name]!r}"
    for name, choices in CHOICES.items():
        if record.get(name) and record[name] not in choices:
            return f"{name} must be one of {', '.join(choices)}, got {record[name]!r}"
    if (trans := record.get("trans")) and not _STORED.fullmatch(trans):
        return f"trans must be A:N or A:T and B:N or B:T, got {trans!r}"
    formats = record.get("formats") or ""
    if formats and not all(_named(part) for part in formats.split("/")):
        return f"formats must name layouts ({', '.join(_FORMATS[:-1])}), got {formats!r}"
    return ""


def _named(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+|\?", text) if word in _FORMATS]


def layouts(formats: str) -> list[str]:
    """Return the layouts of A, B and C as far as `formats` tells them apart."""
    parts = formats.split("/")
    return [_named(part)[0] for part in parts] if len(parts) > 1 else []


def _wrong_count(record: JsonMapping) -> str:
    for name in _COUNTS:
        if not _is_count(record.get(name)):
            return f"{name} must be a positive integer, got {record[name]!r}"
    for name in _TABLES:
        if not isinstance(record.get(name), dict | None):
            return f"{name} must be an object, got {record[name]!r}"
    return ""


def is_extent(value: object) -> bool:
    """Return whether a value is a positive integer that an array's extent may be."""
    return type(value) is int and 0 < value < 2**31


def _is_count(value: object) -> bool:
    """Return whether a value is an extent or not stated."""
    return value is None or is_extent(value)


def _wrong_tiling(tiling: Json) -> str:
    for name in tiling:
        if name not in _OF_A_TILING:
            meant = did_you_mean(name, _OF_A_TILING)
            rest = f"; {meant}" if meant else ""
            return f"tiling must have only known columns, got {name!r}{rest}"
    for name in _OF_TILING:
        if not _is_count(tiling.get(name)):
            return f"tiling.{name} must be a positive integer, got {tiling[name]!r}"
    for name in _NATURALS:
        if tiling.get(name) != 0 and not _is_count(tiling.get(name)):
            return f"tiling.{name} must be 0 or a positive integer, got {tiling[name]!r}"
    for name in _FLAGS:
        if not isinstance(tiling.get(name), bool | None):
            return f"tiling.{name} must be true or false, got {tiling[name]!r}"
    for name in _PAIRS:
        value = tiling.get(name)
        pair = isinstance(value, list) and len(value) == 2
        if value is not None and not (pair and all(x is not None and _is_count(x) for x in value)):
            return f"tiling.{name} must be two positive integers, got {value!r}"
    for name, choices in _TILING_CHOICES.items():
        if name in tiling and tiling[name] not in choices:
            return f"tiling.{name} must be one of {', '.join(choices)}, got {tiling[name]!r}"
    for name in _TILES:
        if name in tiling and not _THREE.fullmatch(str(tiling[name])):
            return f"tiling.{name} must be three extents as '128,256,64', got {tiling[name]!r}"
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
    counts, kind = record.get("counts"), record["kind"]
    if counts == "2MNK" and kind not in _PRODUCTS:
        return f"counts 2MNK counts a product and contradicts kind {kind!r}"
    if counts and counts != "2MNK" and kind != "vector":
        return f"counts {counts} counts bytes of a vector kernel and contradicts kind {kind!r}"
    for name in _WITHOUT_EXTENTS.get(kind, ()):
        if record.get(name) is not None:
            return f"{name} {record[name]} contradicts kind {kind!r}, which has no {name}"
    for name in OPERATIONS:
        if not counts and record["measured"].get(name):
            return f"counts must be stated for measured.{name}, got none"
    return _contradicting_tiling(record, tiling) or _contradicting_times(record)


def _contradicting_tiling(record: JsonMapping, tiling: Json) -> str:
    """Return the sentence about a column of a tiling that another column excludes."""
    if (kind := record["kind"]) in _WITHOUT_BLOCKS:
        for name, value in tiling.items():
            if name.startswith(_BLOCKS):
                return f"tiling.{name} {value} is a product's and contradicts kind {kind!r}"
    if ("L1" in tiling) != ("L0" in tiling):
        return "tiling.L1 and tiling.L0 must be given together, got one of them"
    if "L0" in tiling and "baseM" in tiling:
        return "tiling.L0 is a tile of CATLASS and contradicts tiling.baseM"
    for axis in "MNK":
        single, base = (tiling.get(f"{part}{axis}") for part in ("single", "base"))
        if single and base and base > align_up(single, FRACTAL_ROWS):
            return f"tiling.base{axis} {base} contradicts tiling.single{axis} {single}"
    whole = record.get("K")
    if whole and tiling.get("singleK", 0) > align_up(whole, FRACTAL_ROWS):
        return f"tiling.singleK {tiling['singleK']} contradicts K {whole}"
    for operand, axis in ("AM", "BN"):
        depth, steps = tiling.get(f"depth{operand}1"), tiling.get(f"stepK{operand.lower()}", 1)
        held = steps * tiling.get(f"step{axis}", 1)
        if depth and depth < held:
            return f"tiling.depth{operand}1 {depth} contradicts the {held} blocks of its steps"
    cores, used = record.get("cores"), tiling.get("usedCoreNum")
    if cores and used and used > AIV_PER_AIC * cores:
        return f"tiling.usedCoreNum {used} contradicts cores {cores}"
    return ""


def _contradicting_times(record: JsonMapping) -> str:
    """Return the sentence about a part of a launch that takes longer than all of it."""
    measured, kind = record["measured"], record["kind"]
    if kind == "vector" and measured.get("aic_mac_us"):
        return "measured.aic_mac_us is the Cube's and contradicts kind 'vector'"
    whole = measured.get("total_us")
    for name, value in measured.items():
        part = name.startswith(("aic", "aiv")) and name.endswith("_us")
        if whole and part and (value or 0) > _LONGER * whole:
            return f"measured.{name} {value} contradicts measured.total_us {whole}"
    return ""


def _wrong_attention(record: JsonMapping, tiling: Json) -> str:
    """Return the sentence about sizes of attention that are wrong, or contradict M or N."""
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

"""A body for each overload of the C API's names on registers, as C and as a call of Python.

Both are written from the parameters that the table says: registers are loaded from UB, the call is
made, and what it has changed is stored: results, what it returns, and what it stored to UB.
"""

from dataclasses import dataclass

import numpy as np

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.c_api.conversions import C_TYPES
from cubecore.isa.vector.registers.c_api.names import c_names
from cubecore.isa.vector.registers.operations.catalogue import operations

REGISTER = 256
GIVEN, INDEX, STORED, MADE, END = 0, 4096, 5120, 6144, 8192
"""Addresses in UB: random bytes, indices, bytes of stores, results."""
NUMBERS = {"distance": 64, "stride": 64, "bytes": 32, "count": 5, "block": 1, "amount": 3}
NUMBERS |= {"block_stride": 2, "repeat_stride": 1, "value": 3}
_BYTES = {"distance", "stride"}
"""Numbers that are given in bytes here, and counted in elements by the call."""
MASKS = {"mask": "PAT_H", "src": "PAT_M3", "src0": "PAT_M3", "src1": "PAT_M4", "carried": "PAT_M3"}
WORDS = {"pattern": "PAT_VL3", "type": "VST_VLD"}
PREFERRED = ("float32", "int32", "uint32", "float16", "int16", "uint16", "uint8", "int8")


@dataclass(frozen=True)
class Body:
    """The statements of a function `name` in both languages."""

    name: str
    row: object
    c: tuple[str, ...]
    python: tuple[str, ...]


def types_of(row):
    """Return the types of a row's result and of its source."""
    operation = operations().get(row.operation)
    if row.source:
        return row.result, row.source
    if operation is None or row.bits:
        kind = f"uint{row.bits or 8}"
        return kind, kind
    if row.operation in {"GatherUB", "Scatter"}:
        return "float32", "float32"
    if operation.pairs:
        pairs = operation.pairs_of(row.mode)
        source, result = next((p for p in pairs if p[0] == p[1]), pairs[0])
        return result, source
    fitting = [n for n in PREFERRED if not operation.types or n in operation.types]
    if "{" in row.mode or row.mode.startswith(("UNPACK", "PACK4")):
        wide = row.mode.startswith(("UNPACK", "PACK4"))
        fitting = ["uint32" if wide else "uint16"]
    return fitting[0], fitting[0]


class Writer:
    """Writes both texts of a row at once."""

    def __init__(self, row):
        self.row, self.c, self.python = row, [], []
        self.result, self.source = types_of(row)
        self.loaded = self.stored = 0

    def both(self, c, python):
        self.c.append(c + ";")
        self.python.append(python)

    def vector(self, name, kind, *, loads):
        """Declare a register; load it from UB if the call reads it."""
        word = f"vector_{C_TYPES[kind][1]}"
        self.both(f"{word} {name}", f"{name} = core.{word}()")
        if loads:
            at = INDEX if name in {"index", "amounts"} else GIVEN + REGISTER * self.loaded
            self.loaded += 1
            self.both(
                f"asc_loadalign({name}, (__ubuf__ {C_TYPES[kind][1]}*)(u + {at}))",
                f"core.asc_loadalign({name}, (u + {at}).cast({kind!r}))",
            )

    def mask(self, name, *, reads):
        self.both(f"vector_bool {name}", f"{name} = core.vector_bool()")
        if reads:
            bits = max(element_type(self.source).bits, 8)
            if bits == 64:
                bits = 32
            call = f"asc_create_mask_b{bits}"
            self.both(f"{name} = {call}({MASKS[name]})", f'{name} = core.{call}("{MASKS[name]}")')

    def pointer(self, name):
        kind, at = self.pointed, STORED if name == "dst" else GIVEN
        word = C_TYPES[kind][1]
        self.both(
            f"__ubuf__ {word}* {name} = (__ubuf__ {word}*)(u + {at})",
            f"{name} = (u + {at}).cast({kind!r})",
        )

    @property
    def pointed(self):
        """The type that pointers point to: of an unpacking load the narrow one."""
        if self.row.mode.startswith("UNPACK"):
            return "uint16" if "{" in self.row.mode else "uint8"
        return self.result

    def number(self, name):
        number = NUMBERS[name]
        size = element_type(self.pointed).bits // 8
        return number // size if name in _BYTES else number

    def show(self, c, python, size):
        at = MADE + self.stored
        self.stored += size
        self.both(c.format(at=f"u + {at}"), python.format(at=f"u + {at}"))

    def show_vector(self, name):
        self.show(
            f"asc_storealign((__ubuf__ uint8_t*)({{at}}), (vector_uint8_t){name}, every)",
            f'core.asc_storealign({{at}}, {name}.cast("uint8"), every)',
            REGISTER,
        )

    def show_mask(self, name):
        self.show(f"asc_storealign({{at}}, {name})", f"core.asc_storealign({{at}}, {name})", 32)


def body(number, row):
    """Return the function of a row."""
    write = Writer(row)
    every = "asc_create_mask_b8"
    write.both(f"vector_bool every = {every}(PAT_ALL)", f'every = core.{every}("PAT_ALL")')
    arguments = [argument(write, parameter) for parameter in row.parameters]
    c = f"{row.name}({', '.join(arguments)})"
    quoted = [f'"{one}"' if one in WORDS.values() else one for one in arguments]
    made(write, c, f"core.{row.name}({', '.join(quoted)})")
    for parameter in row.parameters:
        if parameter.is_result:
            (write.show_vector if parameter.kind == "v" else write.show_mask)(parameter.name)
    return Body(f"F{number}", row, tuple(write.c), tuple(write.python))


def argument(write, parameter):
    """Write what a parameter needs before the call; return what is given for it."""
    row, word = write.row, parameter.name
    if parameter.kind == "v":
        bits = 32 if row.operation == "GatherB" else element_type(write.result).bits
        of_index = {"index": f"uint{bits}", "amounts": f"int{bits}"}
        kind = write.result if parameter.is_result else write.source
        write.vector(word, of_index.get(word, kind), loads=parameter.is_source)
    elif parameter.kind == "m":
        write.mask(word, reads=parameter.is_source)
    elif parameter.kind == "p":
        write.pointer(word)
    elif parameter.kind == "u":
        write.both(f"vector_load_unalign {word}", f"{word} = core.vector_load_unalign()")
    elif parameter.kind == "t":
        return WORDS[word]
    elif row.operation != "UpdateMask":
        return str(write.number(word))
    return word


def made(write, c, python):
    """Write the call, and what shows what it returns."""
    row = write.row
    if row.operation in {"CreateMask", "MoveMask"}:
        write.both(f"vector_bool got = {c}", f"got = {python}")
        write.show_mask("got")
    elif row.operation == "UpdateMask":
        write.both("uint32_t count = 5", "count = 5")
        write.both(f"vector_bool got = {c}", f"got, count = {python}")
        write.show_mask("got")
    elif row.operation == "StoreCounted":
        write.vector("squeezed", write.result, loads=False)
        write.mask("mask", reads=True)
        for before in ("asc_clear_ar_spr()", "asc_squeeze_with_status(squeezed, src, mask)"):
            write.both(before, f"core.{before}")
        write.both(c, python)
    elif row.moves:
        pointer = next(p.name for p in row.parameters if p.kind == "p")
        write.both(c, f"{pointer} = {python}")
        if row.operation not in {"StoreMask", "StoreUnAlignPost"}:  # where it points to now
            word = C_TYPES[write.pointed][1]
            write.both(f"vector_{word} moved", f"moved = core.vector_{word}()")
            load = f"asc_load(moved, {pointer})"
            write.both(load, f"core.{load}")
            write.show_vector("moved")
    else:
        write.both(c, python)


def bodies():
    """Return a function for every overload of every name."""
    rows = [row for name in c_names().values() for row in name]
    return [body(number, row) for number, row in enumerate(rows)]


def c_text(each):
    """Return the function in C."""
    lines = "\n  ".join(each.c)
    return f"__simd_vf__ inline void {each.name}(__ubuf__ uint8_t* u) {{\n  {lines}\n}}\n"


def python_function(each):
    """Return the function in Python."""
    lines = "\n    ".join(each.python)
    names = {}
    exec(f"def {each.name}(core, u):\n    {lines}\n", names)
    return names[each.name]


def image():
    """Return the bytes of UB before: numbers that are small in every type, indices below 32."""
    rng = np.random.default_rng(5)
    given = rng.integers(0, 256, END, np.uint8)
    given[INDEX:STORED] = 0
    given[INDEX:STORED:4] = rng.integers(0, 32, (STORED - INDEX) // 4)
    return given

"""Random kernels, each written in C++ and in Python from one description.

A kernel's statements stand on the same lines in both files, so that findings can be compared with
their locations. Statements come from tables of pairs: the class API's line, and the C API's call
of a Python kernel. Some synchronisations are left out on purpose.
"""

import random
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cubecore import kernel as kernel_decorator

VECTOR, CUBE = "vector", "cube"
LENGTH = 4096
"""Elements of each array in global memory."""
SLOTS = 6
LANES = 256
"""Elements of a slot of UB."""
EDGES = (16, 32, 48)
"""Extents of a tile on the Cube; slots hold the largest."""
TILE = max(EDGES) ** 2
ALL = 2**64 - 1
SYNC_ALL = 11
"""The flag that the class API keeps for SyncAll on the AIVs."""
NUMPY = {"float": np.float32, "half": np.float16, "int32_t": np.int32}
BYTES = {name: np.dtype(kind).itemsize for name, kind in NUMPY.items()}
LIKELY_LEFT_OUT = 0.3
MOST_BLOCKS, MOST_TRIPS = 12, 5


@dataclass
class Text:
    """A kernel in both languages, line by line, and its launch."""

    name: str
    kind: str
    element: str
    blocks: int
    cpp: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    depth: int = 1

    def line(self, cpp: str, python: str) -> None:
        """Add a line."""
        self.cpp.append("  " * self.depth + cpp)
        self.python.append("    " * self.depth + python)


class Writer:
    """Draws a kernel, statement by statement."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.kind = self.rng.choice((VECTOR, VECTOR, CUBE))
        element = self.rng.choice(tuple(NUMPY)) if self.kind == VECTOR else "half"
        self.text = Text(name, self.kind, element, self.rng.choice((1, 1, 2, 3, MOST_BLOCKS)))
        if self.kind == CUBE:
            self.text.blocks = min(self.text.blocks, 3)
        self.loops: list[str] = []
        self.pending: list[tuple[str, str, int]] = []

    def written(self) -> Text:
        """Return the kernel."""
        text, out = self.text, "float" if self.kind == CUBE else self.text.element
        types = f'{{"x": "{text.element}", "y": "{text.element}", "z": "{out}"}}'
        text.depth = 0
        decorator = f'@kernel(kind="{self.kind}", types={types})'
        entry = f'extern "C" __global__ __{self.kind}__ void {text.name}'
        text.line(f"{entry}(GM_ADDR x, GM_ADDR y, GM_ADDR z) {{", decorator)
        text.line("", f"def {text.name}(core, x, y, z):")
        text.depth = 1
        for array, kind in (("x", text.element), ("y", text.element), ("z", out)):
            made = (
                f"GlobalTensor<{kind}> g{array}; g{array}.SetGlobalBuffer((__gm__ {kind}*){array});"
            )
            text.line(made, f"g{array} = {array}")
        (self._vector if self.kind == VECTOR else self._cube)()
        text.depth = 0
        text.line("}", "")
        return text

    # --- what both kinds have

    def _body(self, statements: int, depth: int = 0) -> None:
        for _ in range(statements):
            roll = self.rng.random()
            if roll < 0.12 and depth < 2:
                self._loop(depth)
            elif roll < 0.17 and depth == 0 and self.text.blocks > 1:
                self._on_a_block()
            else:
                self.rng.choice(self.choices)()

    def _loop(self, depth: int) -> None:
        variable, trips = f"i{len(self.loops)}", self.rng.choice((1, 2, 3, MOST_TRIPS))
        self.text.line(
            f"for (int {variable} = 0; {variable} < {trips}; ++{variable}) {{",
            f"for {variable} in range({trips}):",
        )
        self._inside(variable, depth)

    def _on_a_block(self) -> None:
        block = self.rng.randrange(min(self.text.blocks, 3))
        self.text.line(f"if (GetBlockIdx() == {block}) {{", f"if core.block_idx == {block}:")
        self._inside(None, 0)

    def _inside(self, variable: str | None, depth: int) -> None:
        self.text.depth += 1
        if variable:
            self.loops.append(variable)
        self.text.line("", "pass")
        self._body(self.rng.randint(1, 4), depth + 1)
        if self.rng.random() < 0.7:
            self._barrier("ALL")
        if variable:
            self.loops.pop()
        self.text.depth -= 1
        self.text.line("}", "")

    def _barrier(self, pipe: str) -> None:
        self.text.line(f"PipeBarrier<PIPE_{pipe}>();", f'core.asc_sync_pipe("PIPE_{pipe}")')

    def _order(self, source: str, target: str) -> None:
        """Put a flag between two pipes, most likely with both of its halves."""
        event, keep = self.rng.randrange(3), self.rng.random()
        pair, words = f"HardEvent::{source}_{target}", f'"PIPE_{source}", "PIPE_{target}"'
        if keep < LIKELY_LEFT_OUT:
            return
        cpp, python = f"SetFlag<{pair}>({event});", f"core.asc_sync_notify({words}, {event})"
        if keep > 1 - LIKELY_LEFT_OUT / 200:
            self.text.line(cpp, python)  # nobody waits
            return
        wait = f"core.asc_sync_wait({words}, {event})"
        self.text.line(f"{cpp} WaitFlag<{pair}>({event});", f"{python}; {wait}")

    def _offset(self, most: int, step: int) -> str:
        """Return where an access begins: by loops and blocks, inside of an array."""
        terms, room = [], most
        for variable in (*self.loops, "block"):
            times = MOST_BLOCKS if variable == "block" else MOST_TRIPS
            if self.rng.random() < 0.5 and room >= times * step:
                factor = self.rng.randrange(step, room // times + 1, step)
                terms.append(f"{variable} * {factor}")
                room -= factor * times
        if room > 0:
            terms.append(str(self.rng.randrange(0, room + 1, step)))
        return " + ".join(terms) or "0"

    # --- vectors

    def _vector(self) -> None:
        text, size = self.text, BYTES[self.text.element]
        text.line("const int block = GetBlockIdx();", "block = core.block_idx")
        for slot in range(SLOTS):
            text.line(
                f"LocalTensor<{text.element}> t{slot}(TPosition::VECCALC, {slot * LANES * size}, "
                f"{LANES});",
                f't{slot} = core.ubuf("{text.element}", {LANES})',
            )
        self.choices = [self._load, self._load, self._compute, self._compute, self._compute]
        self.choices += [self._store, self._store, self._sync, self._sync, self._filled]
        if text.element == "int32_t":
            self.choices.append(self._by_value)
        for slot in range(SLOTS):
            if self.rng.random() < 0.97:
                zero = self.rng.randint(1, 3)
                text.line(
                    f"Duplicate(t{slot}, ({text.element}){zero}, {LANES});",
                    f"core.asc_duplicate(t{slot}, {zero}, {LANES})",
                )
        self._barrier("ALL")
        self._body(self.rng.randint(4, 12))

    def _count(self) -> int:
        return self.rng.choice((LANES, LANES, 8, 64, self.rng.randrange(1, LANES + 1)))

    def _moved(self) -> tuple[int, int, str]:
        size = BYTES[self.text.element]
        count = self.rng.randrange(1, LANES * size // 32 + 1) * 32 // size
        return count, count * size, self._offset(LENGTH - LANES - 40 * 8, 32 // size)

    def _load(self) -> None:
        slot, (count, size, at) = self.rng.randrange(SLOTS), self._moved()
        array = self.rng.choice("xy")
        self._order("V", "MTE2")
        self.text.line(
            f"DataCopy(t{slot}, g{array}[{at}], {count});",
            f"core.asc_copy_gm2ub(t{slot}, g{array} + ({at}), {size})",
        )
        self._order("MTE2", "V")

    def _store(self) -> None:
        slot, (count, size, at) = self.rng.randrange(SLOTS), self._moved()
        self._order("V", "MTE3")
        atomic = self.rng.random() < 0.2
        kind = {"float": "float", "half": "float16", "int32_t": "int"}[self.text.element]
        if atomic:
            self.text.line(
                f"SetAtomicAdd<{self.text.element}>();", f"core.asc_set_atomic_add_{kind}()"
            )
        self.text.line(
            f"DataCopy(gz[{at}], t{slot}, {count});",
            f"core.asc_copy_ub2gm(gz + ({at}), t{slot}, {size})",
        )
        if atomic:
            self.text.line("SetAtomicNone();", "core.asc_set_atomic_none()")
        self._order("MTE3", "V")

    def _compute(self) -> None:
        to, one, other = (self.rng.randrange(SLOTS) for _ in range(3))
        count = self._count()
        form = self.rng.randrange(3)
        if form == 0:
            name, call = self.rng.choice(
                (("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Max", "max"), ("Min", "min"))
            )
            operands = f"t{to}, t{one}, t{other}, {count}"
        elif form == 1:
            name, call = self.rng.choice((("Adds", "add_scalar"), ("Muls", "mul_scalar")))
            value = self.rng.randint(-2, 3)
            operands = f"t{to}, t{one}, ({{}}){value}, {count}"
        else:
            unary = {"float": "Abs Relu Exp", "half": "Abs Relu Exp", "int32_t": "Relu"}
            name = self.rng.choice(unary[self.text.element].split())
            call, operands = name.lower(), f"t{to}, t{one}, {count}"
        cpp = operands.replace("{}", self.text.element)
        self.text.line(f"{name}({cpp});", f"core.asc_{call}({operands.replace('({})', '')})")
        if self.rng.random() < 0.8:
            self._barrier("V")

    def _filled(self) -> None:
        slot, value = self.rng.randrange(SLOTS), self.rng.randint(-3, 3)
        count = self._count()
        self.text.line(
            f"Duplicate(t{slot}, ({self.text.element}){value}, {count});",
            f"core.asc_duplicate(t{slot}, {value}, {count})",
        )

    def _by_value(self) -> None:
        """Read a number, and issue by it."""
        slot, lane, to = self.rng.randrange(SLOTS), self.rng.randrange(LANES), 0
        self._barrier("ALL")
        self.text.line(f"if (t{slot}.GetValue({lane}) > 1) {{", f"if t{slot}[{lane}] > 1:")
        self.text.depth += 1
        to = self.rng.randrange(SLOTS)
        self.text.line(f"Adds(t{to}, t{to}, 1, 64);", f"core.asc_add_scalar(t{to}, t{to}, 1, 64)")
        self.text.depth -= 1
        self.text.line("}", "")
        self._barrier("V")

    def _sync(self) -> None:
        roll = self.rng.random()
        if roll < 0.5:
            self._barrier(self.rng.choice(("V", "ALL", "MTE3", "MTE2")))
        elif roll < 0.8 or self.text.depth > 1 or self.text.blocks == 1:
            self._order(*self.rng.choice((("V", "MTE2"), ("MTE2", "V"), ("V", "MTE3"))))
        else:
            self.text.line(
                "SyncAll();",
                'core.asc_sync_pipe("PIPE_ALL"); '
                f'core.asc_sync_inter_arrive("PIPE_MTE3", {SYNC_ALL}); '
                f'core.asc_sync_inter_wait("PIPE_S", {SYNC_ALL})',
            )

    # --- the Cube

    def _cube(self) -> None:
        text = self.text
        text.line("const int block = GetBlockIdx();", "block = core.block_idx")
        for name, position, call, kind in (
            ("a1", "A1", "cbuf", "half"),
            ("b1", "B1", "cbuf", "half"),
            ("a2", "A2", "ca", "half"),
            ("b2", "B2", "cb", "half"),
            ("c", "CO1", "cc", "float"),
        ):
            for slot in range(2):
                place = (slot + 2 * (name == "b1")) * TILE * BYTES[kind]
                text.line(
                    f"LocalTensor<{kind}> {name}{slot}(TPosition::{position}, {place}, {TILE});",
                    f'{name}{slot} = core.{call}("{kind}", {TILE})',
                )
        self.extents = tuple(self.rng.choice(EDGES) for _ in range(3))
        self.choices = [self._product, self._product, self._fetch, self._cube_sync]
        for slot in range(2):
            self._fetch(slot)
        self._barrier("ALL")
        self._body(self.rng.randint(2, 6))

    def _fetch(self, given: int | None = None) -> None:
        m, n, k = self.extents
        for name, array, rows, columns in (("a1", "x", m, k), ("b1", "y", k, n)):
            at = self._offset(LENGTH - TILE - 64, 16)
            slot = self.rng.randrange(2) if given is None else given
            self._order("MTE1", "MTE2")
            self.text.line(
                f"FETCH({name}{slot}, g{array}[{at}], {rows}, {columns});",
                f"core.asc_copy_gm2l1_nd2nz({name}{slot}, g{array} + ({at}), 1, {rows}, {columns}, "
                f"0, {columns}, {rows}, 1, 0)",
            )
            self._order("MTE2", "MTE1")

    def _product(self) -> None:
        m, n, k = self.extents
        held, l0, out = (self.rng.randrange(2) for _ in range(3))
        self._order("M", "MTE1")
        for row in range(m // 16):
            place = f"a2{l0}", row * (k // 16) * 256, f"a1{held}", row, k // 16, m // 16
            self._load_2d("a", *place)
        for row in range(k // 16):
            place = f"b2{l0}", row * (n // 16) * 256, f"b1{held}", row, n // 16, k // 16
            self._load_2d("b", *place)
        self._order("MTE1", "M")
        first = self.rng.random() < 0.8
        self._order("FIX", "M")
        self.text.line(
            f"MULTIPLY(c{out}, a2{l0}, b2{l0}, {m}, {n}, {k}, {str(first).lower()});",
            f"core.asc_mmad(c{out}, a2{l0}, b2{l0}, {m}, {k}, {n}, 0, False, False, {first})",
        )
        if self.rng.random() < 0.6:
            self._barrier("M")
        if self.rng.random() < 0.6:
            self._order("M", "FIX")
            at = self._offset(LENGTH - TILE - 64, 16)
            self.text.line(
                f"Fixpipe(gz[{at}], c{out}, FixpipeParamsV220({n}, {m}, {m}, {n}, false));",
                "core.asc_set_l0c_copy_params(1, 0, 0); "
                f"core.asc_copy_l0c2gm(gz + ({at}), c{out}, {n}, {m}, {n}, {m}, 0, "
                '"NoQuant", False, False, True)',
            )

    def _load_2d(
        self, side: str, to: str, at: int, held: str, first: int, repeat: int, stride: int
    ) -> None:
        transposed = str(side == "b").lower()
        cpp = f"LoadData({to}[{at}], {held}, LoadData2DParams({first}, {repeat}, {stride}, 0, 0, "
        call = f"core.asc_copy_l12l0{side}{'_trans' if side == 'b' else ''}"
        more = ", False, 0" if side == "b" else ""
        self.text.line(
            f"{cpp}{transposed}, 0));",
            f"{call}({to} + {at}, {held}, {first}, {repeat}, {stride}, 0{more})",
        )

    def _cube_sync(self) -> None:
        self._barrier(self.rng.choice(("ALL", "M", "MTE1", "FIX")))


MACROS = (
    "#define FETCH(to, at, rows, columns) { Nd2NzParams p; p.ndNum = 1; p.nValue = rows; "
    "p.dValue = columns; p.srcNdMatrixStride = 0; p.srcDValue = columns; p.dstNzC0Stride = rows; "
    "p.dstNzNStride = 1; p.dstNzMatrixStride = 0; DataCopy(to, at, p); }",
    "#define MULTIPLY(c, a, b, m, n, k, first) { MmadParams p(m, n, k); p.cmatrixInitVal = first; "
    "Mmad(c, a, b, p); }",
)
HEAD = ('#include "kernel_operator.h"', "using namespace AscendC;", *MACROS)


@cache
def drawn(first: int, count: int) -> tuple[Text, ...]:
    """Return the kernels of some seeds."""
    return tuple(Writer(f"k{seed}", seed).written() for seed in range(first, first + count))


def cpp_text(texts: tuple[Text, ...]) -> str:
    """Return the C++ file."""
    return "\n".join((*HEAD, *(line for text in texts for line in text.cpp))) + "\n"


def python_text(texts: tuple[Text, ...]) -> str:
    """Return the Python file, whose lines are those of the C++ file."""
    return "\n".join((*("" for _ in HEAD), *(line for text in texts for line in text.python)))


def python_kernels(texts: tuple[Text, ...], name: str) -> dict:
    """Return the kernels of the Python file."""
    made = {"kernel": kernel_decorator, "__name__": "random_kernels"}
    exec(compile(python_text(texts), name, "exec"), made)
    return made


def arrays(text: Text) -> tuple[np.ndarray, ...]:
    """Return x, y and z of a launch."""
    rng = np.random.default_rng(int(text.name[1:]))
    kind = NUMPY[text.element]
    x, y = ((rng.integers(-4, 5, LENGTH) / 2).astype(kind) for _ in range(2))
    return x, y, np.zeros(LENGTH, np.float32 if text.kind == CUBE else kind)

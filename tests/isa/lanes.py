"""A plain-loop machine for vector instructions that work lane by lane, from seed 003 alone."""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.scalar.control_registers import SetCtrl
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from isa.bench import ALL_ONES, Bench, Image

CODES = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
}
LARGEST = {"float16": 65504.0, "float32": float(np.finfo(np.float32).max)}
FLOATS = ("float16", "bfloat16", "float32")
IEEE, SATURATE = 1 << 48, 1 << 53
CTRL = {"plain": 0, "ieee": IEEE, "saturating": SATURATE, "both": IEEE | SATURATE}
INF, NAN = float("inf"), float("nan")


def unpack(dtype: str, raw: bytes) -> float | int:
    """One value; bfloat16 is the upper half of a float."""
    if dtype == "bfloat16":
        return struct.unpack("<f", b"\0\0" + raw)[0]
    return struct.unpack("<" + CODES[dtype], raw)[0]


def size_of(dtype: str) -> int:
    """Bytes."""
    return 2 if dtype == "bfloat16" else struct.calcsize(CODES[dtype])


def pack_integer(value: int, dtype: str, saturates: bool) -> bytes:
    """Clamp or wrap an exact integer."""
    bits = 8 * size_of(dtype)
    low = 0 if dtype.startswith("u") else -(1 << bits - 1)
    if saturates:
        value = min(max(value, low), low + (1 << bits) - 1)
    else:
        value = (value - low) % (1 << bits) + low
    return struct.pack("<" + CODES[dtype], value)


def pack_float(value: float, dtype: str, ctrl: int) -> bytes:
    """Round an exact value to nearest even; half is clamped unless CTRL[48], float never is."""
    code, largest = CODES[dtype], LARGEST[dtype]
    ieee = bool(ctrl & IEEE) or dtype == "float32"
    if math.isnan(value):
        return struct.pack("<" + code, NAN if ieee else 0.0)
    try:
        if not math.isinf(value):
            return struct.pack("<" + code, value)
    except OverflowError:
        pass
    return struct.pack("<" + code, math.copysign(INF if ieee else largest, value))


def lane_byte(repeat: int, lane: int, size: int, block_stride: int, repeat_stride: int) -> int:
    """Where a lane lies from the operand's address (spec/isa_semantics.md 2.2)."""
    per_block = 32 // size
    block = repeat * repeat_stride + (lane // per_block) * block_stride
    return 32 * block + (lane % per_block) * size


@dataclass
class Operand:
    """Where an operand lies: its address, its type, its strides in blocks."""

    at: int
    dtype: str
    block: int = 1
    repeat: int = 8

    def byte(self, repeat: int, lane: int) -> int:
        """Where a lane begins."""
        return self.at + lane_byte(repeat, lane, size_of(self.dtype), self.block, self.repeat)


@dataclass
class Mask:
    """The mask registers and CTRL."""

    low: int = ALL_ONES
    high: int = ALL_ONES
    count: int | None = None
    ctrl: int = 0

    def repeats(self, stated: int, width: int) -> int:
        """Repeats of `width` lanes."""
        return stated if self.count is None else -(-self.count // width)

    def on(self, repeat: int, lane: int, width: int) -> bool:
        """Whether a lane computes."""
        if self.count is not None:
            return repeat * width + lane < self.count
        return bool((self.low | self.high << 64) >> lane & 1)

    def set(self, bench: Bench) -> None:
        """Set the machine's registers."""
        bench.do(SetCtrl(value=self.ctrl))
        bench.do(SetMaskNorm() if self.count is None else SetMaskCount())
        low, high = (self.low, self.high) if self.count is None else (self.count, 0)
        bench.do(SetVectorMask(mask_high=high, mask_low=low))


Lane = Callable[[dict[str, float | int]], bytes]


@dataclass
class Run:
    """One instruction under test: a template, its operands, and what one lane computes.

    `lane` takes the values of the operands that are read, by name, and returns dst's bytes.
    """

    template: Instruction
    operands: dict[str, Operand]
    lane: Lane
    mask: Mask = field(default_factory=Mask)

    @property
    def width(self) -> int:
        """Lanes of a repeat."""
        return 256 // max(size_of(o.dtype) for o in self.operands.values())

    def by_hand(self, before: Image) -> Image:
        """Repeat after repeat; within one, all lanes are read before any is written."""
        after = Image(bytearray(before.data), bytearray(before.valid))
        stated: int = self.template.repeat
        read = [n for n in self.operands if n != "dst"]
        if any(o.name == "dst" and o.access.reads for o in self.template.declared):
            read.append("dst")
        for repeat in range(self.mask.repeats(stated, self.width)):
            results = []
            for lane in range(self.width):
                if not self.mask.on(repeat, lane, self.width):
                    continue
                values = {}
                for name in read:
                    operand = self.operands[name]
                    raw = after.get(operand.byte(repeat, lane), size_of(operand.dtype))
                    values[name] = unpack(operand.dtype, raw)
                results.append((self.operands["dst"].byte(repeat, lane), self.lane(values)))
            for place, raw in results:
                after.put(place, raw)
        return after

    def check(self, bench: Bench, *findings: str) -> None:
        """Run the instruction and compare every byte of UB with the loops."""
        expected = self.by_hand(bench.image(Mem.UB))
        self.mask.set(bench)
        bench.do(self.template, *(o.at for o in self.operands.values()))
        assert bench.messages == list(findings), (self.template, self.mask)
        any_nan(bench, expected, self.operands["dst"].dtype)
        bench.check(Mem.UB, expected)


def any_nan(bench: Bench, expected: Image, dtype: str) -> None:
    """Which of the NaNs an operation gives is not documented: take the machine's."""
    if dtype in FLOATS:
        got = bench.buffer(Mem.UB).data.view(element_type(dtype).numpy)
        wanted = np.frombuffer(expected.data, got.dtype)
        with np.errstate(invalid="ignore"):
            both = np.isnan(wanted) & np.isnan(got)
        wanted[both] = got[both]


def fill(bench: Bench, dtype: str, at: int = 0, count: int | None = None) -> None:
    """Fill UB from `at`: every exponent of floats, both ends of integers, infinities and NaN."""
    rng, size = bench.rng, size_of(dtype)
    count = (196608 - at) // size if count is None else count
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, count, endpoint=True, dtype=dtype)
        values[::3] //= dtype_of(dtype, 1 << 4 * size)
        values[1::41], values[2::41], values[3::41] = info.min, info.max, 0
    else:
        limit = 15 if dtype == "float16" else 127
        scale = 2.0 ** rng.integers(-limit - 8, limit + 1, count)
        most = LARGEST.get(dtype, 3.3895e38)
        raw = (rng.uniform(-2, 2, count) * scale).clip(-most, most)
        raw[::3] = rng.uniform(-3, 3, raw[::3].size)
        for place, value in enumerate((INF, -INF, NAN, 0.0, -0.0, most, -most)):
            raw[place + 5 :: 37] = value
        values = raw.astype(element_type(dtype).numpy)
    bench.poke(Mem.UB, at, values.tobytes())


def dtype_of(dtype: str, value: int) -> np.generic:
    """A NumPy scalar."""
    return np.dtype(dtype).type(value)

"""TIK's matmul and fixpipe (TIK matmul): sequences of loads, matmuls and stores."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from cubecore.aliases import JsonMapping
from cubecore.dtypes import INT8, ElementType
from cubecore.frontends.tik.trace.errors import refuse, require_immediate, unable
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyUbufToGm, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.mte.copies_joined_core import CopyMatrixCcToUbuf
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import AddressRule
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, ceil_div

_MOST_M = _MOST_N = 4096
_MOST_K = {"float16": 16384, "int8": 32768}
_RESULTS = {("int8", "int8"): "int32", ("float16", "float16"): "float32"}
"""TIK matmul, table 2: types of a and b, and of dst."""
_SOURCE_ALIGN, _DST_ALIGN = 512, 1024
_MOST_REPEATS = 255
_MOST_K_AT_ONCE = 4095
"""Columns of a, and rows of b, that one matmul of L0 takes."""
_MOST_COLUMNS = 255
"""Columns of fractals that one fixpipe of arch 2201 takes: n_size is at most 4095."""
_TILE_ROWS = 2048
"""Rows of a beyond which one column of fractals of c is made tile by tile."""


class MatmulCalls(Language):
    """matmul and fixpipe."""

    def matmul(
        self,
        dst: Tensor,
        a: Tensor,
        b: Tensor,
        m: TikValue,
        k: TikValue,
        n: TikValue,
        init_l1out: bool = True,
    ) -> None:
        """Dst [N1, M, 16] = a [K1, M, K0] x b [K1, N, K0], or added to it.

        All pipes are joined before and after. Padding of k does not count; rows beyond m and
        columns beyond n are left unspecified.
        """
        self.require_operands("matmul", dst, a, b)
        rows = require_immediate(m, "matmul.m", 1, _MOST_M)
        depth = require_immediate(k, "matmul.k", 1, _MOST_K[a.dtype])
        columns = require_immediate(n, "matmul.n", 1, _MOST_N)
        if not isinstance(init_l1out, (bool, int)):
            raise refuse("matmul.init_l1out", "be a bool", type(init_l1out).__name__)
        shape = FractalShape(rows, depth, columns, a.record.c0)
        require_room("matmul", dst, a, b, shape)
        self.multiply_tiles(Tiles(self, dst, a, b, shape), init_l1out)

    def multiply_tiles(self, tiles: "Tiles", init_l1out: bool) -> None:
        """Issue a matmul tile by tile, between barriers."""
        self.trace.join()  # no Vector instruction runs beside it (TIK matmul)
        for m in steps(tiles.shape.m1, tiles.tall):
            for n in steps(tiles.shape.n1, tiles.wide):
                for k in steps(tiles.shape.k1, tiles.deep):
                    starts = bool(init_l1out) and k.start == 0
                    tiles.multiply(m, k, n, starts=starts)
        self.trace.join()

    def require_operands(self, call: str, dst: Tensor, a: Tensor, b: Tensor) -> None:
        """Require a matmul's operands where they lie, of types that multiply, and aligned."""
        for name, tensor, mem, label in (
            ("dst", dst, Mem.L0C, "L1OUT"),
            ("a", a, Mem.L1, "L1"),
            ("b", b, Mem.L1, "L1"),
        ):
            if not isinstance(tensor, Tensor):
                raise refuse(f"{call}.{name}", "be a tensor", type(tensor).__name__)
            if tensor.mem is not mem:
                raise refuse(f"{call}.{name}", f"lie in {label}", tensor.mem.label)
        wanted = _RESULTS.get((a.dtype, b.dtype))
        if wanted != dst.dtype:
            rows = ", ".join(f"{x} x {y} -> {z}" for (x, y), z in _RESULTS.items())
            raise refuse(call, f"multiply one of {rows}", f"{a.dtype} x {b.dtype} -> {dst.dtype}")
        # Table text: the inference matmul's a and b at 512 B; a fractal starts there anyhow.
        for name, tensor, align in (
            ("a", a, _SOURCE_ALIGN),
            ("b", b, _SOURCE_ALIGN),
            ("dst", dst, _DST_ALIGN),
        ):
            at = tensor.address.constant
            if at is not None and at % align:
                offset = at - tensor.buffer.start
                need = f"start at a multiple of {align} B"
                raise refuse(f"{call}.{name}", need, f"{offset} B into {tensor.name}")

    def fixpipe(
        self,
        dst: Tensor,
        src: Tensor,
        cburst_num: TikValue,
        burst_len: TikValue,
        dst_stride: TikValue,
        src_stride: TikValue,
        extend_params: dict[str, Any] | None = None,
    ) -> None:
        """Move the first rows of each [M, 16] plane of L1OUT to global memory, with ReLU or not.

        cburst_num planes; burst_len is rows * 16 * size(src) / 32; dst_stride is a gap in 32 B.
        """
        if src.mem is not Mem.L0C or dst.mem is not Mem.GM:
            raise refuse("fixpipe", "move L1OUT to GM", f"{src.mem.label} to {dst.mem.label}")
        planes = require_immediate(cburst_num, "fixpipe.cburst_num", 1, 4095)
        length = require_immediate(burst_len, "fixpipe.burst_len", 1, 65535)
        gap = require_immediate(dst_stride, "fixpipe.dst_stride", 0, 65535)
        skipped = require_immediate(src_stride, "fixpipe.src_stride", 0, 65535)
        row_blocks = FRACTAL_ROWS * src.record.size_bytes // DATA_BLOCK_BYTES
        if length % row_blocks:
            raise refuse(
                "fixpipe.burst_len", f"be a multiple of {row_blocks} blocks, a row", length
            )
        options = extend_params or {}
        if unknown := sorted(set(options) - {"relu", "quantize_params", "bias"}):
            raise refuse(
                "fixpipe.extend_params", "have the keys bias, quantize_params, relu", unknown[0]
            )
        if options.get("bias") is not None:
            raise unable("fixpipe.extend_params", "fixpipe with a bias is not supported")
        relu, rows = bool(options.get("relu", False)), length // row_blocks
        self._require_conversion(dst, src, options.get("quantize_params"))
        if src.dtype == "int32" and dst.record is not src.record:
            raise unable("fixpipe", f"fixpipe of int32 to {dst.dtype} is not supported")
        pitch = -(-rows // FRACTAL_ROWS) * FRACTAL_ROWS + skipped * FRACTAL_ROWS
        store = self._store_planes if self.trace.chip.joins_vector else self._fixpipe_planes
        store(dst, src, _Planes(planes, rows, pitch, gap), relu=relu)

    def _require_conversion(self, dst: Tensor, src: Tensor, quantize: JsonMapping | None) -> None:
        mode = None if quantize is None else quantize.get("mode")
        wanted = {"fp322fp16": "float16", "int322fp16": "float16", None: src.dtype}.get(mode)
        if wanted is None:
            raise refuse("fixpipe.quantize_params", "have mode fp322fp16 or int322fp16", mode)
        if dst.dtype != wanted:
            raise refuse("fixpipe.dst", f"be {wanted}", dst.dtype)

    def _fixpipe_planes(self, dst: Tensor, src: Tensor, shape: "_Planes", *, relu: bool) -> None:
        plane = shape.dst_bytes(dst.record)
        for part in steps(shape.planes, _MOST_COLUMNS):
            parameters = {
                "src_type": src.record,
                "n_size": len(part) * FRACTAL_ROWS,
                "m_size": shape.rows,
                "dst_stride": plane // DATA_BLOCK_BYTES,
                "src_stride": shape.pitch,
                "relu_pre": relu,
                "quant_pre": "NoQuant" if dst.record is src.record else "F322F16",
            }
            at = (
                dst.address + part.start * plane,
                src.address + part.start * shape.src_bytes(src.record),
            )
            self.trace.issue(CopyMatrixCcToGm, parameters, (dst, src), "fixpipe", at)

    def _store_planes(self, dst: Tensor, src: Tensor, shape: "_Planes", *, relu: bool) -> None:
        """Without a fixpipe: L0C to the free part of UB, and from there to global memory."""
        buffers, size, rows = self.trace.buffers, dst.record.size_bytes, shape.rows
        fractals = ceil_div(rows, FRACTAL_ROWS)
        _, room = buffers.free(Mem.UB)
        per_plane = fractals * FRACTAL_ROWS * FRACTAL_ROWS * size
        at_once = min(shape.planes, room // per_plane, 4095)
        if at_once < 1:
            sentence = f"fixpipe needs {per_plane} B of UB for a plane; {room} B are free"
            raise unable("fixpipe", sentence)
        buffers.open()
        staged = self.Tensor(
            dst.dtype, (at_once * per_plane // size,), "local.UB", f"fixpipe_{id(shape)}"
        )
        for part in steps(shape.planes, at_once):
            parameters = {
                "src_type": src.record,
                "dst_type": dst.record,
                "n_burst": len(part),
                "len_burst": fractals,
                "src_gap": shape.pitch // FRACTAL_ROWS - fractals,
                "relu": relu,
            }
            at = (staged.address, src.address + part.start * shape.src_bytes(src.record))
            self.trace.issue(CopyMatrixCcToUbuf, parameters, (staged, src), "fixpipe", at)
            row_blocks = FRACTAL_ROWS * size // DATA_BLOCK_BYTES
            moves = {
                "n_burst": len(part),
                "len_burst": rows * row_blocks,
                "src_gap": (fractals * FRACTAL_ROWS - rows) * row_blocks,
                "dst_gap": shape.gap,
            }
            to = (dst.address + part.start * shape.dst_bytes(dst.record), staged.address)
            self.trace.issue(CopyUbufToGm, moves, (dst, staged), "fixpipe", to)
        buffers.close()


class _Planes(NamedTuple):
    """The planes of 16 columns that one fixpipe moves out of L0C."""

    planes: int
    rows: int
    pitch: int
    """Rows from one plane of L0C to the next."""
    gap: int
    """Blocks of 32 B behind each plane in global memory."""

    def src_bytes(self, record: ElementType) -> int:
        """Return the bytes from one plane of L0C to the next."""
        return self.pitch * FRACTAL_ROWS * record.size_bytes

    def dst_bytes(self, record: ElementType) -> int:
        """Return the bytes from one plane of global memory to the next."""
        return self.rows * FRACTAL_ROWS * record.size_bytes + self.gap * DATA_BLOCK_BYTES


class FractalShape(NamedTuple):
    """A matmul's m, k and n in elements, and in fractals of 16 x c0 (a), c0 x 16 (b)."""

    m: int
    k: int
    n: int
    c0: int

    @property
    def m1(self) -> int:
        """Fractals along m."""
        return int(ceil_div(self.m, FRACTAL_ROWS))

    @property
    def k1(self) -> int:
        """Fractals along k."""
        return int(ceil_div(self.k, self.c0))

    @property
    def n1(self) -> int:
        """Fractals along n."""
        return int(ceil_div(self.n, FRACTAL_ROWS))


class Tiles:
    """The tiles of one matmul: how large they are, and how one is multiplied.

    Tiles, and the ranges of m, k and n that one covers, count fractals.
    """

    def __init__(
        self, kernel: MatmulCalls, dst: Tensor, a: Tensor, b: Tensor, shape: FractalShape
    ) -> None:
        self.kernel, self.dst, self.a, self.b, self.shape = kernel, dst, a, b, shape
        chip = kernel.trace.chip
        in_a, in_b = chip.l0a_bytes // FRACTAL_BYTES, chip.l0b_bytes // FRACTAL_BYTES
        # L0C keeps a column of fractals of dst together, so that a tile of it is whole columns,
        # or part of one.
        self.tall = min(shape.m1, _TILE_ROWS // FRACTAL_ROWS, in_a)
        self.deep = 1 if shape.m == 1 else max(1, min(shape.k1, in_a // self.tall, _MOST_REPEATS))
        self.wide = (
            1 if self.tall < shape.m1 else max(1, min(shape.n1, in_b // self.deep, _MOST_REPEATS))
        )
        self.deep = max(1, min(self.deep, in_b // self.wide, _MOST_K_AT_ONCE // a.record.c0))

    def multiply(self, m: range, k: range, n: range, *, starts: bool) -> None:
        """Load a tile of a and of b, and multiply them onto dst's."""
        trace, shape = self.kernel.trace, self.shape
        l0a, l0b = (_whole(self.kernel, mem) for mem in (Mem.L0A, Mem.L0B))
        self.load_a(l0a, m, k)
        for step, depth in enumerate(k):
            to = l0b.address + step * len(n) * FRACTAL_BYTES
            source = self._fractal(self.b, depth * shape.n1 + n.start)
            load: dict[str, object] = {"repeat": len(n), "src_stride": 1}
            self._load(LoadCbufToCb, load, "b", self.b, source, to=to, dst=l0b)
        parameters = {
            "a_type": self.a.record,
            "b_type": self.b.record,
            "c_type": self.dst.record,
            "m": min(shape.m, m.stop * FRACTAL_ROWS) - m.start * FRACTAL_ROWS,
            "k": min(shape.k, k.stop * shape.c0) - k.start * shape.c0,
            "n": min(shape.n, n.stop * FRACTAL_ROWS) - n.start * FRACTAL_ROWS,
            "c_matrix_init_val": starts,
        }
        # dst is NZ: columns of fractals one behind another, each m1 fractals high.
        tile = (n.start * shape.m1 + m.start) * FRACTAL_ROWS * FRACTAL_ROWS
        start = self.dst.address + tile * self.dst.record.size_bytes
        addresses = (start, l0a.address, l0b.address)
        trace.issue(Mad, parameters, (self.dst, l0a, l0b), "matmul", addresses)

    def load_a(self, l0a: Tensor, m: range, k: range) -> None:
        """Load rows m of fractals of a, at depths k, into L0A."""
        for step, row in enumerate(m):
            to = l0a.address + step * len(k) * FRACTAL_BYTES
            source = self._fractal(self.a, k.start * self.shape.m1 + row)
            load: dict[str, object] = {"repeat": len(k), "src_stride": self.shape.m1}
            self._load(LoadCbufToCa, load, "a", self.a, source, to=to, dst=l0a)

    def _load(
        self,
        kind: type[LoadCbufToCa | LoadCbufToCb],
        parameters: dict[str, object],
        name: str,
        operand: Tensor,
        source: Expr,
        *,
        to: Expr,
        dst: Tensor,
    ) -> None:
        """Issue a load; the start of an operand that only the run knows is checked there."""
        late = operand.address.constant is None
        rules = [AddressRule(1, _SOURCE_ALIGN, f"matmul.{name}")] if late else []
        tensors, addresses = (dst, operand), (to, source)
        self.kernel.trace.issue(kind, parameters, tensors, "matmul", addresses, rules=rules)

    def _fractal(self, tensor: Tensor, number: int) -> Expr:
        return tensor.address + number * FRACTAL_BYTES


def _whole(kernel: MatmulCalls, mem: Mem) -> Tensor:
    """Return L0A or L0B as one tensor: matmul has both to itself."""
    from cubecore.frontends.tik.trace.buffers import TensorBuffer

    size = kernel.trace.buffers.capacity[mem]
    buffer = TensorBuffer(mem.label, mem, Expr(0), 0, size)
    return Tensor(buffer, INT8, (size,), mem.label, lambda _tensor, _value: None)


def require_room(
    call: str,
    dst: Tensor,
    a: Tensor,
    b: Tensor,
    shape: FractalShape,
    *,
    a_bytes: int | None = None,
) -> None:
    """Refuse tensors that are shorter than what m, k and n round up to."""
    m1, k1, n1 = shape.m1, shape.k1, shape.n1
    sizes = {"dst": (dst, m1 * n1 * 256 * dst.record.size_bytes)}
    sizes["a"] = (a, m1 * k1 * FRACTAL_BYTES if a_bytes is None else a_bytes)
    sizes["b"] = (b, n1 * k1 * FRACTAL_BYTES)
    for name, (tensor, need) in sizes.items():
        start = tensor.address.constant
        if start is None:
            continue
        room = tensor.buffer.size_bytes - (start - tensor.buffer.start)
        if room < need:
            raise refuse(f"{call}.{name}", f"hold {need} B, m, k and n rounded up", f"{room} B")


def steps(total: int, step: int) -> Iterator[range]:
    """Yield the parts of a total, each of a step's length but the last."""
    for first in range(0, total, step):
        yield range(first, min(first + step, total))

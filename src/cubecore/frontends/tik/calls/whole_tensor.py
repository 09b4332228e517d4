"""TIK's calls on whole tensors (h_): as many plain vector calls as their elements need."""

from collections.abc import Callable, Iterator
from math import factorial, pi, prod
from typing import Any

from cubecore.frontends.tik.calls.compare_select import RELATIONS, CompareSelectCalls
from cubecore.frontends.tik.calls.convert import ConvertCalls
from cubecore.frontends.tik.calls.reduce_transpose import ReduceTransposeCalls
from cubecore.frontends.tik.trace.buffers import SCOPE_UB
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

_MOST_REPEATS = 255
_REPEAT_BYTES = 256
_TWO = {
    "h_add": ("vec_add", "vec_adds"),
    "h_sub": ("vec_sub", ""),
    "h_mul": ("vec_mul", "vec_muls"),
    "h_div": ("vec_div", ""),
    "h_max": ("vec_max", "vmaxs"),
    "h_min": ("vec_min", "vmins"),
}
"""The call for two tensors, and for a tensor and a scalar."""
_ONE = {"h_abs": "vec_abs", "h_exp": "vec_exp", "h_ln": "vec_ln", "h_rec": "vec_rec"}
_ONE |= {"h_sqrt": "vec_sqrt", "h_rsqrt": "vec_rsqrt", "h_relu": "vec_relu", "h_not": "vec_not"}

_AT_ONCE = 1024
"""Elements of a sine that are computed at once: scratch of 20 KiB."""
_MASK_BYTES = 16
_PI_PARTS = (3.140625, 9.67653589793e-4)
"""pi in two parts: the first has 9 bits, so that its products with small integers are exact."""
_SINE = tuple((-1) ** (n // 2) / factorial(n) for n in range(11, 0, -2))
"""Taylor's coefficients, from x**11 down to x: the rest is below 1e-7 up to a quarter turn."""


class WholeTensorCalls(ConvertCalls, CompareSelectCalls, ReduceTransposeCalls):
    """h_add and its kin, h_abs and its kin, h_sin, h_cmpv, h_reduce_sum, h_cast, h_data_move."""

    def h_duplicate(self, dst: Tensor, scalar: TikValue) -> None:
        """Fill a tensor."""
        self._pieces(
            "h_duplicate",
            (dst,),
            lambda n, r, t: self.vec_dup(n, t[0], scalar, r, 8),
        )

    def h_data_move(self, dst: Tensor, src: Tensor) -> None:
        """Copy a tensor of whole blocks."""
        count = self._count("h_data_move", (dst, src))
        blocks, rest = divmod(count * dst.record.size_bytes, DATA_BLOCK_BYTES)
        if rest:
            size = f"{count * dst.record.size_bytes} B"
            raise refuse("h_data_move.dst", f"be a multiple of {DATA_BLOCK_BYTES} B", size)
        self.data_move(dst, src, 0, 1, blocks, 0, 0)

    def h_cast(self, dst: Tensor, src: Tensor, round_mode: str) -> None:
        """Convert a tensor."""
        widest = max(dst.record.bits, src.record.bits)
        to, of = (8 * t.record.bits // widest for t in (dst, src))
        self._pieces(
            "h_cast",
            (dst, src),
            lambda n, r, t: self.vec_conv(n, round_mode, t[0], t[1], r, to, of),
        )

    def whole(self, call: str, dst: Tensor, src0: Tensor, src1: Any = None) -> None:
        """Issue the plain call on every element.

        Raises
        ------
        RequestError
            If the tensors differ in size, a view is not contiguous, or the call does not take a
            scalar.
        """
        if call in _ONE:
            plain = getattr(self, _ONE[call])
            self._pieces(call, (dst, src0), lambda n, r, t: plain(n, t[0], t[1], r, 8, 8))
            return
        both, one = _TWO[call]
        if isinstance(src1, Tensor):
            plain = getattr(self, both)
            self._pieces(call, (dst, src0, src1), lambda n, r, t: plain(n, *t, r, *[8] * len(t)))
            return
        # With a number the difference is a sum and the quotient a product; there are no calls for
        # them.
        if call == "h_sub":
            one, src1 = "vec_adds", src1 * -1
        elif call == "h_div":
            one, src1 = "vec_muls", 1.0 / src1
        plain = getattr(self, one)
        blocks = (1, 1) if one in {"vmaxs", "vmins"} else ()
        self._pieces(
            call, (dst, src0), lambda n, r, t: plain(n, t[0], t[1], src1, r, *blocks, 8, 8)
        )

    # --- sine and cosine, from a polynomial

    def h_sin(self, dst: Tensor, src: Tensor) -> None:
        """Take the sine: of a quotient by pi rounded away, by a polynomial; about 1e-6 in float32.

        The page states no precision.
        """
        self._wave("h_sin", dst, src, 0.0)

    def h_cos(self, dst: Tensor, src: Tensor) -> None:
        """Take the cosine: the sine of a quarter turn more."""
        self._wave("h_cos", dst, src, 0.5)

    def _wave(self, call: str, dst: Tensor, src: Tensor, turn: float) -> None:
        """Take sin(x + turn * pi): it is (-1)**n * sin(x - (n - turn) * pi), n the nearest."""
        count = self._count(call, (dst, src))
        to, of = dst.flatten(), src.flatten()
        for first in range(0, count, _AT_ONCE):
            here = min(_AT_ONCE, count - first)
            with self._scope():
                self._wave_of(to[first : first + here], of[first : first + here], turn)

    def _wave_of(self, dst: Tensor, src: Tensor, turn: float) -> None:
        names = ("wave_x", "wave_n", "wave_r", "wave_half")
        x, n, r, half = (self.Tensor("float32", dst.shape, SCOPE_UB, name) for name in names)
        whole = self.Tensor("int32", dst.shape, SCOPE_UB, "wave_whole")
        # All is computed in float32, whatever the tensors are.
        if src.dtype == x.dtype:
            self.whole("h_add", x, src, 0.0)
        else:
            self.h_cast(x, src, "none")
        # n = the whole number nearest to x / pi + turn, so that x - (n - turn) * pi lies within a
        # quarter turn of 0, where the polynomial holds.
        self.whole("h_mul", n, x, 1 / pi)
        self.whole("h_add", n, n, turn)
        self.h_cast(whole, n, "round")
        self.h_cast(n, whole, "none")
        self.whole("h_mul", half, n, 0.5)  # n is odd where half of it is not whole
        self.h_cast(whole, half, "floor")
        self.h_cast(r, whole, "none")
        # half is 0 where n is even and 0.5 where it is odd: 1 - 4 * half is the sign (-1)**n.
        self.whole("h_sub", half, half, r)
        self.whole("h_mul", half, half, -4.0)
        self.whole("h_add", half, half, 1.0)
        # n - turn is whole or a half, so exact; of its product with pi only the small part is
        # rounded.
        self.whole("h_add", n, n, -turn)
        for part in _PI_PARTS:
            self.whole("h_mul", r, n, part)
            self.whole("h_sub", x, x, r)
        # Horner's rule in x * x; n, no longer needed, holds the square.
        self.whole("h_mul", n, x, x)
        self.h_duplicate(r, _SINE[0])
        for term in _SINE[1:]:
            self.whole("h_mul", r, r, n)
            self.whole("h_add", r, r, term)
        self.whole("h_mul", r, r, x)
        if dst.dtype == r.dtype:
            self.whole("h_mul", dst, r, half)
        else:
            self.whole("h_mul", r, r, half)
            self.h_cast(dst, r, "none")

    # --- comparisons, and the last axis

    def h_cmpv(self, mask_tensor: Tensor, src0: Tensor, src1: Tensor, cmp_mode: str) -> None:
        """Write a bit for each pair of elements, from the lowest up."""
        relation = cmp_mode.lower()
        if relation not in RELATIONS:
            relations = ", ".join(r.upper() for r in RELATIONS)
            raise refuse("h_cmpv.cmp_mode", f"be one of {relations}", repr(cmp_mode))
        compare = getattr(self, f"vcmp_{relation}")
        bits = mask_tensor.reinterpret_cast_to("uint8").flatten()
        for number, here, (one, other) in self._repeats("h_cmpv", (src0, src1)):
            compared = compare(here, one, other)
            self.mov_cmpmask_to_tensor(bits[number * _MASK_BYTES :], compared)

    def h_sel(self, dst: Tensor, src0: Tensor, src1: Tensor, mask_tensor: Tensor) -> None:
        """Take src0 where the bit that h_cmpv wrote is 1, else src1."""
        bits = mask_tensor.reinterpret_cast_to("uint8").flatten()
        for number, here, (to, one, other) in self._repeats("h_sel", (dst, src0, src1)):
            self.vec_sel(here, 0, to, bits[number * _MASK_BYTES :], one, other, 1, 8, 8, 8)

    def _repeats(
        self, call: str, tensors: tuple[Tensor, ...]
    ) -> Iterator[tuple[int, int, list[Tensor]]]:
        """Yield the number of each repeat, its lanes, and where the tensors are there."""
        count = self._count(call, tensors)
        lanes = _REPEAT_BYTES // tensors[0].record.size_bytes
        flat = [t.flatten() for t in tensors]
        for number, first in enumerate(range(0, count, lanes)):
            yield number, min(lanes, count - first), [t[first:] for t in flat]

    def h_reduce_sum(self, dst: Tensor, src: Tensor, axis: TikValue) -> None:
        """Add along the last axis."""
        self._reduce_rows("h_reduce_sum", "vec_reduce_add", dst, src, axis)

    def h_reduce_max(self, dst: Tensor, src: Tensor, axis: TikValue) -> None:
        """Find the largest along the last axis."""
        self._reduce_rows("h_reduce_max", "vec_reduce_max", dst, src, axis)

    def _reduce_rows(self, call: str, name: str, dst: Tensor, src: Tensor, axis: TikValue) -> None:
        """Reduce each row: of one repeat or part of one, or of whole repeats."""
        *outer, length = src.shape
        if axis not in {-1, len(outer)}:
            raise refuse(f"{call}.axis", f"be -1 or {len(outer)}, the last axis", axis)
        # The reduction call takes one mask for all of its repeats: a row is either part of one
        # repeat or whole ones.
        rows, lanes = prod(outer, start=1), _REPEAT_BYTES // src.record.size_bytes
        if not isinstance(rows, int) or not isinstance(length, int) or not src.contiguous:
            raise refuse(f"{call}.src", "have a known shape and no gaps", src.shape)
        if length * src.record.size_bytes % DATA_BLOCK_BYTES or (length > lanes and length % lanes):
            need = f"have rows of whole blocks of 32 B, and above {lanes} elements of whole repeats"
            raise refuse(f"{call}.src", need, length)
        repeats = ceil_div(length, lanes)
        to, of = dst.flatten(), src.flatten()
        with self._scope():
            work = self.Tensor(src.dtype, (repeats,), SCOPE_UB, f"{call}_work")
            for row in range(rows):
                reduce = getattr(self, name)
                reduce(min(length, lanes), to[row:], of[row * length :], work, repeats, 8)

    def _count(self, call: str, tensors: tuple[Tensor, ...]) -> int:
        counts = [prod(t.shape, start=1) for t in tensors]
        if not all(isinstance(c, int) and c == counts[0] for c in counts):
            shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
            raise refuse(call, "take tensors of one known shape", shapes)
        if not all(t.contiguous for t in tensors):
            raise refuse(call, "take contiguous tensors", "a view with gaps")
        return int(counts[0])

    def _pieces(
        self,
        call: str,
        tensors: tuple[Tensor, ...],
        piece: Callable[[int, int, list[Tensor]], None],
    ) -> None:
        """Issue a call for 255 repeats at a time, for those that are left, and for the rest."""
        count = self._count(call, tensors)
        lanes = _REPEAT_BYTES // max(t.record.size_bytes for t in tensors)
        flat = [t.flatten() for t in tensors]
        # The widest type decides how many elements a repeat has, so that all operands go on by as
        # many. The last call has one repeat under a mask of what is left.
        done = 0
        for first in range(0, count // lanes, _MOST_REPEATS):
            repeats = min(_MOST_REPEATS, count // lanes - first)
            piece(lanes, repeats, [t[first * lanes :] for t in flat])
            done = (first + repeats) * lanes
        if ceil_div(count - done, lanes):
            piece(count - done, 1, [t[done:] for t in flat])


def _method(call: str) -> Callable[..., None]:
    def method(self: WholeTensorCalls, dst: Tensor, src0: Tensor, *src1: object) -> None:
        self.whole(call, dst, src0, *src1)

    method.__name__ = call
    method.__doc__ = f"{(_ONE.get(call) or _TWO[call][0]).removeprefix('vec_')} of whole tensors."
    return method


for _name in (*_TWO, *_ONE):
    setattr(WholeTensorCalls, _name, _method(_name))

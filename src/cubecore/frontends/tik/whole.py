"""TIK's calls on whole tensors (h_): as many plain vector calls as their elements need."""

from collections.abc import Callable
from math import prod
from typing import Any

from cubecore.frontends.tik.conversions import Conversions
from cubecore.frontends.tik.errors import refuse
from cubecore.frontends.tik.tensor import Tensor
from cubecore.frontends.tik.vector import Vector
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


class Whole(Conversions, Vector):
    """h_add and its kin, h_abs and its kin, h_cast, h_duplicate, h_data_move."""

    def h_duplicate(self, dst: Tensor, scalar: Any) -> None:
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
            raise refuse("h_data_move.dst", "be whole blocks of 32 B", f"{rest} B more")
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

        Raises:
            RequestError: tensors of other counts, views that are not contiguous, or a scalar where
                no call takes one.
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
        if call == "h_sub":
            one, src1 = "vec_adds", src1 * -1
        elif call == "h_div":
            one, src1 = "vec_muls", 1.0 / src1
        plain = getattr(self, one)
        blocks = (1, 1) if one in {"vmaxs", "vmins"} else ()
        self._pieces(
            call, (dst, src0), lambda n, r, t: plain(n, t[0], t[1], src1, r, *blocks, 8, 8)
        )

    def _count(self, call: str, tensors: tuple[Tensor, ...]) -> int:
        counts = [prod(t.shape, start=1) for t in tensors]
        if not all(isinstance(c, int) and c == counts[0] for c in counts):
            shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
            raise refuse(call, "have tensors of one shape, known while it is built", shapes)
        if not all(t.contiguous for t in tensors):
            raise refuse(call, "have tensors without gaps", "a view with gaps")
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
        done = 0
        for first in range(0, count // lanes, _MOST_REPEATS):
            repeats = min(_MOST_REPEATS, count // lanes - first)
            piece(lanes, repeats, [t[first * lanes :] for t in flat])
            done = (first + repeats) * lanes
        if ceil_div(count - done, lanes):
            piece(count - done, 1, [t[done:] for t in flat])


def _method(call: str) -> Callable[..., None]:
    def method(self: Whole, dst: Tensor, src0: Tensor, *src1: Any) -> None:
        self.whole(call, dst, src0, *src1)

    method.__name__ = call
    method.__doc__ = f"{(_ONE.get(call) or _TWO[call][0]).removeprefix('vec_')} of whole tensors."
    return method


for _name in (*_TWO, *_ONE):
    setattr(Whole, _name, _method(_name))

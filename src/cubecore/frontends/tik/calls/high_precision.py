"""TIK's high-precision forms of functions."""

from typing import Any

from cubecore.dtypes import FLOAT32
from cubecore.frontends.tik.calls.convert import ConvertCalls
from cubecore.frontends.tik.trace.buffers import SCOPE_UB
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue, Value, as_value, integer
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

_LANES, _HALF = 128, 64
"""Lanes of a repeat of float16, and of float32."""
_PARTS = 11
"""The room that the work tensor of vec_expm1_high_preci must have, in sources (its page)."""
_BLOCK = 16
_DOUBLINGS = 8
_FARTHEST = 20.0
"""Beyond this exp(x) - 1 is -1, or more than float16 holds."""
_SERIES = (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0)
"""Coefficients of (exp(y) - 1) / y; what they leave out is 4e-9 of it where |y| < 20 / 2^8."""


class HighPrecisionCalls(ConvertCalls):
    """vec_rec_high_preci and its kin."""

    def vec_rec_high_preci(self, *args: Any, **kwargs: Any) -> None:
        """Take the reciprocal, correctly rounded, as every vrec here."""
        self._precise("vec_rec", *args, **kwargs)

    def vec_rsqrt_high_preci(self, *args: Any, **kwargs: Any) -> None:
        """Take the reciprocal of the square root, correctly rounded."""
        self._precise("vec_rsqrt", *args, **kwargs)

    def vec_ln_high_preci(self, *args: Any, **kwargs: Any) -> None:
        """Take the logarithm, correctly rounded."""
        self._precise("vec_ln", *args, **kwargs)

    def _precise(
        self,
        call: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Issue the plain form: its result is rounded correctly; the work tensor stays as it is."""
        strides = {"dst_rep_stride": dst_rep_stride, "src_rep_stride": src_rep_stride}
        given = {"mask": mask, "dst": dst, "src": src, "repeat_times": repeat_times, **strides}
        self.plain(call, given)

    def vec_expm1_high_preci(
        self,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Take exp(x) - 1 of float16, in float32 in the work tensor, which is overwritten."""
        call = "vec_expm1_high_preci"
        tensors = {"dst": dst, "src": src, "work_tensor": work_tensor}
        for name, tensor in tensors.items():
            if not isinstance(tensor, Tensor):
                raise refuse(f"{call}.{name}", "be a tensor", type(tensor).__name__)
            if tensor.dtype != "float16" or tensor.scope != SCOPE_UB:
                got = f"{tensor.dtype} in {tensor.mem.label}"
                raise refuse(f"{call}.{name}", "be float16 in UB", got)
        times = integer(repeat_times, f"{call}.repeat_times").constant
        stride = integer(src_rep_stride, f"{call}.src_rep_stride").constant
        if times is not None and stride is not None:
            extent = (times - 1) * max(stride, _LANES // _BLOCK) * _BLOCK + _LANES
            room, need = work_tensor.size, _PARTS * ceil_div(extent, _BLOCK) * _BLOCK
            if isinstance(room, int) and room < need:
                wanted = f"hold {need} elements, {_PARTS} times the source's {extent}"
                raise refuse(f"{call}.work_tensor", wanted, room)
        work = work_tensor.reinterpret_cast_to("float32")

        def do(lanes: TikValue, first: int) -> None:
            tensors = dst[first:], src[first:], work[first:]
            self._expm1(lanes, *tensors, repeat_times, dst_rep_stride, src_rep_stride)

        # float32 has 64 lanes a repeat, the mask 128: each half is a call of its own, which must
        # not be issued if the run finds it empty.

        if isinstance(mask, (list, tuple)) and len(mask) == 2:
            for word, first in zip(reversed(mask), (0, _HALF), strict=True):
                if isinstance(word, Value):
                    with self.if_scope(word != 0):
                        do([0, word], first)
                elif word:
                    do([0, word], first)
        elif isinstance(mask, Value):
            count = as_value(mask, f"{call}.mask")
            with self.if_scope(count > _HALF):
                do(_HALF, 0)
                do(count - _HALF, _HALF)
            with self.else_scope():
                do(count, 0)
        else:
            lanes = integer(mask, f"{call}.mask").constant
            if lanes is None or not 1 <= lanes <= _LANES:
                raise refuse(f"{call}.mask", f"be in [1, {_LANES}]", mask)
            do(min(lanes, _HALF), 0)
            if lanes > _HALF:
                do(lanes - _HALF, _HALF)

    def _expm1(
        self,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work: Tensor,
        repeat: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Issue exp(x) - 1 of up to 64 lanes: a series near 0, then e = e (e + 2) doubles x."""
        y, e, t = (work[part * _LANES :] for part in range(3))
        stride = 3 * _LANES * FLOAT32.size_bytes // DATA_BLOCK_BYTES

        def step(name: str, to: Tensor, *sources: Tensor, **scalar: float) -> None:
            names = ("src",) if len(sources) == 1 else ("src0", "src1")
            operands = {"dst": to} | dict(zip(names, sources, strict=True))
            strided = {f"{operand}_rep_stride": stride for operand in operands}
            self.plain(
                name, {"mask": mask, "repeat_times": repeat, **operands, **scalar, **strided}
            )

        given: dict[str, Any] = {"mask": mask, "dst": y, "src": y, "repeat_times": repeat}
        given |= {f"{operand}_blk_stride": 1 for operand in ("dst", "src")}
        given |= {f"{operand}_rep_stride": stride for operand in ("dst", "src")}
        self.vec_conv(mask, "none", y, src, repeat, stride, src_rep_stride)
        for name, far in (("vmins", _FARTHEST), ("vmaxs", -_FARTHEST)):
            self.plain(name, given | {"scalar": far})
        step("vec_muls", y, y, scalar=0.5**_DOUBLINGS)
        first, *others = _SERIES
        step("vec_muls", e, y, scalar=first)
        for coefficient in others:
            step("vec_adds", e, e, scalar=coefficient)
            step("vec_mul", e, e, y)
        for _ in range(_DOUBLINGS):
            step("vec_adds", t, e, scalar=2.0)
            step("vec_mul", e, e, t)
        self.vec_conv(mask, "none", dst, e, repeat, dst_rep_stride, stride)

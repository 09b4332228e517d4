"""TIK's conversions of element types over the declared vconv instructions."""

from collections.abc import Mapping
from dataclasses import fields

from cubecore.dtypes import FLOAT16
from cubecore.frontends.tik.calls.vector import VectorCalls
from cubecore.frontends.tik.trace.errors import refuse, unable
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue, converted, integer
from cubecore.isa.catalogue import instruction_named, instructions

_SHORT = {
    "float16": "f16",
    "float32": "f32",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "int32": "s32",
    "int64": "s64",
    "bfloat16": "bf16",
}
_ROUNDINGS = {
    "": "none",
    "none": "none",
    "round": "rint",
    "floor": "floor",
    "ceil": "ceil",
    "ceiling": "ceil",
    "away-zero": "round",
    "to-zero": "trunc",
    "odd": "odd",
}
_ANY_FRACTION_AWAY = "1001"
"""The architecture where away-zero takes any fraction away from zero (TIK, conversions)."""


class ConvertCalls(VectorCalls):
    """vconv and vec_conv."""

    def vec_conv(
        self,
        mask: TikValue,
        round_mode: str,
        dst: Tensor,
        src: Tensor,
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
        deqscale: TikValue | None = None,
        ldst_high_half: bool = False,
    ) -> None:
        """Convert lane by lane."""
        strides = {"dst_repeat_stride": dst_rep_stride, "src_repeat_stride": src_rep_stride}
        self._convert("vec_conv", mask, round_mode, dst, src, repeat_times, strides, deqscale)

    def vconv(
        self,
        mask: TikValue,
        round_mode: str,
        dst: Tensor,
        src: Tensor,
        repeat_times: TikValue,
        dst_blk_stride: TikValue,
        src_blk_stride: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
        deqscale: TikValue | None = None,
        ldst_high_half: bool = False,
    ) -> None:
        """Convert lane by lane."""
        strides = {
            "dst_block_stride": dst_blk_stride,
            "src_block_stride": src_blk_stride,
            "dst_repeat_stride": dst_rep_stride,
            "src_repeat_stride": src_rep_stride,
        }
        self._convert("vconv", mask, round_mode, dst, src, repeat_times, strides, deqscale)

    def _convert(
        self,
        call: str,
        mask: TikValue,
        round_mode: str,
        dst: Tensor,
        src: Tensor,
        repeat: TikValue,
        strides: Mapping[str, TikValue],
        deqscale: TikValue | None,
    ) -> None:
        pair = f"{_SHORT.get(src.dtype, src.dtype)}2{_SHORT.get(dst.dtype, dst.dtype)}"
        parameters: dict[str, object] = {n: integer(v, f"{call}.{n}") for n, v in strides.items()}
        if pair == "s322f16":
            if deqscale is None:
                raise refuse(f"{call}.deqscale", "be given for int32 to float16", "none")
            name, scale = "vconv_deq", converted(deqscale, FLOAT16)
            self.trace.issue(instruction_named("set_deqscale"), {"value": scale}, ())
        else:
            name = f"vconv_{pair}"
            if name not in instructions():
                raise unable(call, f"{call} does not convert {src.dtype} to {dst.dtype}")
            parameters["rounding"] = self._rounding(call, round_mode, name)
        kind = instruction_named(name)
        width = 2048 // max(dst.record.bits, src.record.bits)
        parameters["repeat"] = self.vectors(call, kind, mask, width, repeat)
        self.trace.issue(kind, parameters, (dst, src), call)

    def _rounding(self, call: str, mode: str, name: str) -> str:
        rounding = _ROUNDINGS.get(mode)
        if rounding is None:
            raise refuse(f"{call}.round_mode", f"be one of {', '.join(_ROUNDINGS)}", repr(mode))
        chip = self.trace.chip
        if mode == "away-zero" and chip.arch == _ANY_FRACTION_AWAY:
            need = f"be a mode that cubecore has on {chip.name}"
            raise refuse(f"{call}.round_mode", need, "away-zero, which takes any fraction there")
        (options,) = (
            f.metadata["options"]
            for f in fields(instruction_named(name))  # type: ignore[arg-type]
            if f.name == "rounding"
        )
        if rounding == "none" and rounding not in options:
            raise refuse(f"{call}.round_mode", f"be given for {name[6:]}", repr(mode))
        return rounding

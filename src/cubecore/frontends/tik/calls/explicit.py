"""TIK's explicit style: fractals to L0, and matmuls of L0."""

from collections.abc import Mapping

from cubecore.frontends.tik.trace.errors import refuse, require_immediate
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue, integer
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.mte.copies import (
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)

_LOADS: dict[Mem, type[Instruction]] = {Mem.L0A: LoadCbufToCa, Mem.L0B: LoadCbufToCb}
_TRANSPOSING: dict[Mem, type[Instruction]] = {
    Mem.L0A: LoadCbufToCaTranspose,
    Mem.L0B: LoadCbufToCbTranspose,
}
_TRANSPOSED_BITS = 16
"""Types whose square of 16 x 16 is one fractal, so that it can be transposed in place."""


class ExplicitCalls(Language):
    """load2dv1, load2dv2 and mmad."""

    def load2dv1(
        self,
        dst: Tensor,
        src: Tensor,
        index: TikValue,
        repeat_times: TikValue,
        src_stride: TikValue,
        sid: TikValue = 0,
        if_transpose: bool = False,
        *_options: object,
    ) -> None:
        """Move fractals from L1: fractal index + r * src_stride is the r-th of dst."""
        numbers = {"index": index, "repeat_times": repeat_times, "src_stride": src_stride}
        self._fractals("load2dv1", dst, src, numbers | {"dst_gap": 0}, transposed=if_transpose)

    def load2dv2(
        self,
        dst: Tensor,
        src: Tensor,
        index: TikValue,
        repeat_times: TikValue,
        dst_gap: TikValue,
        src_stride: TikValue,
        sid: TikValue = 0,
        if_transpose: bool = False,
        *_options: object,
    ) -> None:
        """Move fractals as `load2dv1`, with a gap of fractals after each of dst."""
        numbers = {"index": index, "repeat_times": repeat_times, "src_stride": src_stride}
        self._fractals(
            "load2dv2", dst, src, numbers | {"dst_gap": dst_gap}, transposed=if_transpose
        )

    def _fractals(
        self,
        call: str,
        dst: Tensor,
        src: Tensor,
        numbers: Mapping[str, TikValue],
        *,
        transposed: bool,
    ) -> None:
        if src.mem is not Mem.L1 or dst.mem not in _LOADS:
            raise refuse(call, "move L1 to L0A or L0B", f"{src.mem.label} to {dst.mem.label}")
        common: dict[str, object] = {n: integer(v, f"{call}.{n}") for n, v in numbers.items()}
        index, common["repeat"] = common.pop("index"), common.pop("repeat_times")
        if not transposed:
            parameters = {"start_index": index, **common}
            self.trace.issue(_LOADS[dst.mem], parameters, (dst, src), call)
            return
        if dst.record.bits != _TRANSPOSED_BITS:
            need = f"be False but for {_TRANSPOSED_BITS}-bit types"
            raise refuse(f"{call}.if_transpose", need, f"True for {dst.dtype}")
        parameters = {"index_id": index, "dtype": dst.record, **common}
        self.trace.issue(_TRANSPOSING[dst.mem], parameters, (dst, src), call)

    def mmad(
        self,
        dst: Tensor,
        a: Tensor,
        b: Tensor,
        m: TikValue,
        k: TikValue,
        n: TikValue,
        accumulates: TikValue,
    ) -> None:
        """Multiply a tile of L0A by one of L0B into L0C, from 0 or onto what is there."""
        memories = (dst.mem, a.mem, b.mem)
        if memories != (Mem.L0C, Mem.L0A, Mem.L0B):
            got = ", ".join(mem.label for mem in memories)
            raise refuse("mmad", "take dst in L0C, a in L0A and b in L0B", got)
        extents = {
            name: require_immediate(value, f"mmad.{name}", 1, 4095)
            for name, value in (("m", m), ("k", k), ("n", n))
        }
        types = {"a_type": a.record, "b_type": b.record, "c_type": dst.record}
        parameters = {**types, **extents, "c_matrix_init_val": not accumulates}
        self.trace.issue(Mad, parameters, (dst, a, b), "mmad")

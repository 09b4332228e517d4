"""TIK's data movement over the declared copies."""

from typing import Any

from cubecore.dtypes import FLOAT16, FLOAT32, element_type
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import TikValue, Value, integer
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.mte.copies import Bursts, CopyGmToCbuf, CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.mte.copies_joined_core import (
    CopyCbufToUbuf,
    CopyMatrixCcToUbuf,
    CopyUbufToCbuf,
    CopyUbufToMatrixCc,
)
from cubecore.isa.program.expr import Expr
from cubecore.isa.vector.permute.copies import CopyUbufToUbuf
from cubecore.numerics.conversion import bits_of

_PATHS: dict[tuple[Mem, Mem], type[Bursts]] = {
    (Mem.GM, Mem.UB): CopyGmToUbuf,
    (Mem.UB, Mem.GM): CopyUbufToGm,
    (Mem.UB, Mem.UB): CopyUbufToUbuf,
    (Mem.GM, Mem.L1): CopyGmToCbuf,
    (Mem.L1, Mem.UB): CopyCbufToUbuf,
    (Mem.UB, Mem.L1): CopyUbufToCbuf,
}
_CONVERTING = {1: False, 2: True}
"""data_move's eighth argument from L0C: to half, without and with ReLU (TIK, data_move)."""


class DataMoveCalls(Language):
    """data_move, tensor_mov, set_atomic_add."""

    def data_move(
        self,
        dst: Tensor,
        src: Tensor,
        sid: TikValue = 0,
        nburst: TikValue = 1,
        burst: TikValue = 1,
        src_stride: TikValue = 0,
        dst_stride: TikValue = 0,
        *args: Any,
        **_options: object,
    ) -> None:
        """Move nburst pieces of burst x 32 B; strides are gaps, the source's first.

        Bytes move as they are, whatever the types are called: public programs rely on it.
        From L1OUT or L0C to UB and back, burst and strides count fractals of 256 elements.
        """
        numbers = {
            "nburst": nburst,
            "burst": burst,
            "src_stride": src_stride,
            "dst_stride": dst_stride,
        }
        counts = {n: integer(v, f"data_move.{n}") for n, v in numbers.items()}
        _require_tensors("data_move", dst, src)
        if (src.mem, dst.mem) == (Mem.L0C, Mem.UB):
            code = args[0] if args else 0
            self._from_l0c("data_move", dst, src, counts, relu=_CONVERTING.get(code, False))
            return
        if (src.mem, dst.mem) == (Mem.UB, Mem.L0C):
            self._to_l0c("data_move", dst, src, counts)
            return
        path = _PATHS.get((src.mem, dst.mem))
        if path is None:
            paths = ", ".join(f"{a.label} to {b.label}" for a, b in _PATHS)
            need = f"move {paths}"
            raise refuse("data_move", need, f"{src.mem.label} to {dst.mem.label}")
        self._bursts("data_move", path, dst, src, counts)

    def tensor_mov(
        self,
        dst: Tensor,
        src: Tensor,
        block_mode: str,
        nburst: TikValue,
        burst: TikValue,
        dst_stride: TikValue,
        src_stride: TikValue,
        deqscale: TikValue | None = None,
        **_options: object,
    ) -> None:
        """Move as `data_move`, the destination's stride first; mode "m" moves fractals.

        Mode "v" moves blocks of 32 B between global memory and UB, as "" does.
        """
        numbers = {
            "nburst": nburst,
            "burst": burst,
            "src_stride": src_stride,
            "dst_stride": dst_stride,
        }
        counts = {n: integer(v, f"tensor_mov.{n}") for n, v in numbers.items()}
        _require_tensors("tensor_mov", dst, src)
        if block_mode == "m" and (src.mem, dst.mem) == (Mem.UB, Mem.L0C):
            self._to_l0c("tensor_mov", dst, src, counts)
            return
        if block_mode == "m":
            self._from_l0c("tensor_mov", dst, src, counts, deqscale=deqscale)
            return
        path = _PATHS.get((src.mem, dst.mem))
        vectors = block_mode == "v" and {src.mem, dst.mem} == {Mem.GM, Mem.UB}
        if path is None or not (vectors or block_mode == ""):
            need = 'be "m" from L1OUT, "v" or "" between global memory and UB, "" elsewhere'
            raise refuse("tensor_mov.block_mode", need, repr(block_mode))
        self._bursts("tensor_mov", path, dst, src, counts)

    def _bursts(
        self, call: str, path: type[Bursts], dst: Tensor, src: Tensor, counts: dict[str, Expr]
    ) -> None:
        symbolic = [counts[n] for n in ("nburst", "burst") if counts[n].constant is None]
        parameters = {
            "n_burst": counts["nburst"],
            "len_burst": counts["burst"],
            "src_gap": counts["src_stride"],
            "dst_gap": counts["dst_stride"],
        }
        if not symbolic:
            self.trace.issue(path, parameters, (dst, src), call)
            return
        some = Expr(1)  # a Scalar of 0 moves nothing
        for count in symbolic:
            some = some.applied("bitand", count.applied("gt", 0))
        with self.trace.branch(some):
            self.trace.issue(path, parameters, (dst, src), call)

    def _from_l0c(
        self,
        call: str,
        dst: Tensor,
        src: Tensor,
        counts: dict[str, Expr],
        *,
        relu: bool = False,
        deqscale: TikValue | None = None,
    ) -> None:
        scale = 0
        if src.dtype == "int32" and dst.record is FLOAT16:
            if deqscale is None:
                raise refuse(f"{call}.deqscale", "be given for int32 to float16", "none")
            if isinstance(deqscale, Value):
                raise refuse(f"{call}.deqscale", "be an immediate here", "a Scalar")
            scale = bits_of(float(deqscale), FLOAT32)
        parameters = {
            "src_type": src.record,
            "dst_type": dst.record,
            "n_burst": counts["nburst"],
            "len_burst": counts["burst"],
            "src_gap": counts["src_stride"],
            "dst_gap": counts["dst_stride"],
            "relu": relu,
            "scale": scale,
        }
        self.trace.issue(CopyMatrixCcToUbuf, parameters, (dst, src), call)

    def _to_l0c(self, call: str, dst: Tensor, src: Tensor, counts: dict[str, Expr]) -> None:
        if src.record is not dst.record:
            raise refuse(f"{call}.src", f"have dst's type {dst.dtype}", src.dtype)
        parameters = {
            "dtype": dst.record,
            "n_burst": counts["nburst"],
            "len_burst": counts["burst"],
            "src_gap": counts["src_stride"],
            "dst_gap": counts["dst_stride"],
        }
        self.trace.issue(CopyUbufToMatrixCc, parameters, (dst, src), call)

    def set_atomic_add(self, code: Any) -> None:
        """Let later stores to global memory add: 1 float32, 2 float16, 0 ends it."""
        types = {0: None, 1: "float32", 2: "float16", 3: "int16", 4: "int32", 5: "int8"}
        names = {"float32": 1, "fp32": 1, "float16": 2, "fp16": 2}
        number = names.get(code, code) if isinstance(code, str) else code
        if number not in types:
            raise refuse("set_atomic_add", "be 0 to 5", code)
        self.trace.sync.barrier()
        dtype = types[number]
        operation = "add" if dtype else "none"
        self.trace.issue(
            SetAtomic, {"operation": operation, "dtype": element_type(dtype or "float32")}, ()
        )


def _require_tensors(call: str, dst: object, src: object) -> None:
    for name, tensor in (("dst", dst), ("src", src)):
        if not isinstance(tensor, Tensor):
            raise refuse(f"{call}.{name}", "be a tensor", type(tensor).__name__)

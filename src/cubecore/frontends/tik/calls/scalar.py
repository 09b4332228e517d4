"""TIK's scalar unit, and what programs say of order themselves."""

from typing import Any

from cubecore.dtypes import FLOAT16, element_type
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.values import (
    Scalar,
    TikValue,
    Value,
    as_float,
    as_value,
    converted,
    integer,
)
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev

_MEETING = 0
"""The flag on which cores meet; TIK has no other use of those flags."""
_ROUNDINGS = {
    "": "trunc",
    "none": "trunc",
    "round": "rint",
    "floor": "floor",
    "ceil": "ceil",
    "ceiling": "ceil",
    "away-zero": "away",
    "to-zero": "trunc",
}


class ScalarCalls(Language):
    """scalar_*, set_flag, wait_flag, pipe_barrier."""

    def scalar_max(self, dst: Scalar, a: TikValue, b: TikValue) -> None:
        """Keep the larger of two."""
        self._pick(dst, a, b, "gt")

    def scalar_min(self, dst: Scalar, a: TikValue, b: TikValue) -> None:
        """Keep the smaller of two."""
        self._pick(dst, a, b, "lt")

    def _pick(self, dst: Scalar, a: TikValue, b: TikValue, relation: str) -> None:
        x, y = as_value(a), as_value(b)
        if not (x.is_float or y.is_float):
            chosen = x.expr.maximum(y.expr) if relation == "gt" else x.expr.minimum(y.expr)
            dst.set_as(Value(chosen))
            return
        first = self.Scalar("float32", init_value=x)
        second = self.Scalar("float32", init_value=y)
        dst.set_as(second)
        with self.if_scope(first > second if relation == "gt" else first < second):
            dst.set_as(first)

    def scalar_abs(self, dst: Scalar, src: TikValue) -> None:
        """Take the absolute value."""
        value = as_value(src)
        if value.is_float:
            dst.set_as(
                Value(as_float(value).applied("bitand", 0x7FFFFFFF), element_type("float32"))
            )
            return
        dst.set_as(Value(value.expr.maximum(-value.expr)))

    def scalar_sqrt(self, dst: Scalar, src: TikValue) -> None:
        """Take the square root."""
        root = as_float(as_value(src)).applied("f32sqrt")
        dst.set_as(Value(root, element_type("float32")))

    def scalar_conv(self, round_mode: str, dst: Scalar, src: TikValue) -> None:
        """Convert between int32, float32 and float16."""
        if round_mode not in _ROUNDINGS:
            raise refuse(
                "scalar_conv.round_mode", f"be one of {', '.join(_ROUNDINGS)}", repr(round_mode)
            )
        value = as_value(src)
        if value.dtype_record is FLOAT16 and dst.dtype_record.kind != "float":
            raise refuse("scalar_conv", "convert int32, float32 or float16 to float", value.dtype)
        self.trace.assign(dst.var, converted(value, dst.dtype_record, _ROUNDINGS[round_mode]))

    def scalar_countbit1(self, dst: Scalar, src: Scalar) -> None:
        """Count the ones."""
        dst.set_as(Value(integer(src, "scalar_countbit1.src").applied("countbits", 64)))

    def scalar_countbit0(self, dst: Scalar, src: Scalar) -> None:
        """Count the zeros of 64 bits."""
        ones = integer(src, "scalar_countbit0.src").applied("countbits", 64)
        dst.set_as(Value(-ones + 64))

    def scalar_countleading0(self, dst: Scalar, src: Scalar) -> None:
        """Count the zeros before the first one of 64 bits."""
        dst.set_as(Value(integer(src, "scalar_countleading0.src").applied("leadingzeros", 64)))

    def block_barrier(self, workspace: TikValue | None = None) -> None:
        """Let all cores meet: each waits until every other has come here too."""
        self.trace.join()
        self.trace.issue(FftsCrossCoreSync, {"mode": 0, "flag_id": _MEETING}, (), "block_barrier")
        self.trace.issue(WaitFlagDev, {"flag_id": _MEETING}, (), "block_barrier")

    def pipe_barrier(self, pipe: str) -> None:
        """Let a pipe's later instructions wait for its earlier ones."""
        on = _pipe(pipe, "pipe_barrier")
        self.trace.issue(PipeBarrier, {"on": on}, (), "pipe_barrier")

    def set_flag(self, src_pipe: str, dst_pipe: str, event: int) -> None:
        """Raise a flag."""
        self._flag(SetFlag, src_pipe, dst_pipe, event)

    def wait_flag(self, src_pipe: str, dst_pipe: str, event: int) -> None:
        """Wait for a flag."""
        self._flag(WaitFlag, src_pipe, dst_pipe, event)

    def _flag(self, kind: type[Any], src_pipe: str, dst_pipe: str, event: int) -> None:
        ends = {"src": _pipe(src_pipe, kind.name), "dst": _pipe(dst_pipe, kind.name)}
        self.trace.issue(
            kind, {**ends, "event_id": integer(event, f"{kind.name}.event")}, (), kind.name
        )


def _pipe(name: str, call: str) -> str:
    if not isinstance(name, str) or not name.startswith("PIPE_"):
        raise refuse(f"{call}.pipe", "be a name such as PIPE_V", repr(name))
    return name.removeprefix("PIPE_")

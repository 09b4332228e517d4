"""TIK's reductions and transposes over the declared vector instructions."""

from collections.abc import Callable, Sequence
from typing import Any

from cubecore.dtypes import element_type
from cubecore.frontends.tik.calls.vector import VectorCalls
from cubecore.frontends.tik.trace.arguments import bound
from cubecore.frontends.tik.trace.buffers import SCOPE_UB
from cubecore.frontends.tik.trace.errors import refuse, require_immediate
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.tree import touch_of
from cubecore.frontends.tik.trace.values import TikValue, Value, integer
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

_BLOCKS_OF_LIST = 16
_MOST_REPEATS, _MOST_IN_ALL = 255, 4095
"""Repeats of an instruction, and of vec_reduce_*, which issues several (its page)."""
_SHORT_BITS = 16
_EACH = ("vcadd", "vcgadd", "vcgmax", "vcgmin", "vcpadd", "vcmax", "vcmin")
_MATRIX = element_type("uint16")


class ReduceTransposeCalls(VectorCalls):
    """vcadd and its kin, vec_reduce_*, vnchwconv, vec_trans."""

    def reduce(
        self,
        call: str,
        name: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        numbers: dict[str, Any],
    ) -> None:
        """Issue a reduction of each repeat, block or pair."""
        if dst.record is not src.record:
            raise refuse(f"{call}.dst", f"have src's type {src.dtype}", dst.dtype)
        kind = instruction_named(name)
        parameters: dict[str, object] = {
            n: integer(v, f"{call}.{n}") for n, v in numbers.items() if n != "repeat"
        }
        parameters["dtype"] = src.record
        width = 2048 // src.record.bits
        parameters["repeat"] = self.vectors(call, kind, mask, width, numbers["repeat"])
        self.trace.issue(kind, parameters, (dst, src), call)

    def reduce_all(
        self,
        call: str,
        name: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work: Tensor,
        repeat_times: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Reduce every lane of every repeat: in each repeat, then so its results, and on.

        The work tensor holds the repeats' results.

        Raises
        ------
        RequestError
            If the repeats are an immediate outside [1, 4095], or more than the work tensor holds.
        """
        times = integer(repeat_times, f"{call}.repeat_times")
        if times.constant is None:
            late = Value(times)
            self._reduce_counted(call, name, mask, dst, src, work, late, src_rep_stride)
            return
        require_immediate(times.constant, f"{call}.repeat_times", 1, _MOST_IN_ALL)
        width = 2048 // src.record.bits
        per_repeat = _blocks_of(src_rep_stride, src)
        # Levels: each repeat to one value, then 128 (or 64) of these to one, and on, until one
        # instruction reduces what is left.
        for first in range(0, times.constant, _MOST_REPEATS):
            of, repeats = src[first * per_repeat :], min(_MOST_REPEATS, times.constant - first)
            self._level(name, call, mask, work[first:], of, repeats, src_rep_stride)
        count = times.constant
        self.trace.buffers.open()
        while count > width:
            whole, rest = divmod(count, width)
            if rest and isinstance(work.size, int) and work.size <= whole * width:
                need = f"hold {count} elements, one for each repeat"
                raise refuse(f"{call}.work_tensor", need, work.size)
            name_of = f"{call}_{count}"
            spare = self.Tensor(src.dtype, (ceil_div(count, width),), SCOPE_UB, name_of)
            self._level(name, call, width, spare, work, whole, 8)
            if rest:
                self._level(name, call, rest, spare[whole:], work[whole * width :], 1, 8)
            work, count = spare, ceil_div(count, width)
        self._level(name, call, count, dst, work, 1, 8)
        self.trace.buffers.close()

    def _reduce_counted(
        self,
        call: str,
        name: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work: Tensor,
        times: Value,
        stride: TikValue,
    ) -> None:
        """Reduce repeats whose number only the run knows: at most 255, so that there are 3 levels.

        None of them: nothing is done.
        """
        width = 2048 // src.record.bits
        with self.if_scope(times > 0):
            self._level(name, call, mask, work, src, times, stride)
            # 255 values make at most 4 repeats of 64, so that the third level is the last.
            spare = self.Tensor(
                src.dtype, (ceil_div(_MOST_REPEATS, width),), SCOPE_UB, f"{call}_counted"
            )
            whole, rest = times // width, times % width
            with self.if_scope(whole > 0):
                self._level(name, call, width, spare, work, whole, 8)
            with self.if_scope(rest > 0):
                self._level(name, call, rest, spare[whole:], work[whole * width :], 1, 8)
            self._level(name, call, (times + width - 1) // width, dst, spare, 1, 8)

    def find(
        self,
        call: str,
        name: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work: Tensor,
        times: TikValue,
        stride: TikValue,
    ) -> None:
        """Find the extreme lane of all repeats, and its index: the first of equal ones.

        The work tensor holds value and index of each repeat; the scalar unit goes through them. The
        index counts the lanes of all repeats.
        """
        width = 2048 // src.record.bits
        repeats = integer(times, f"{call}.repeat_times")
        self._level(name, call, mask, work, src, _value(repeats), stride, order="value_index")
        index_type = "uint16" if src.record.bits == _SHORT_BITS else "uint32"
        indices, result = work.reinterpret_cast_to(index_type), dst.reinterpret_cast_to(index_type)
        best = self.Scalar(src.dtype, f"{call}_best", work[0])
        lane = self.Scalar("int64", f"{call}_lane", indices[1])
        value = self.Scalar(src.dtype, f"{call}_value")
        with self.for_range(1, _value(repeats), name="repeat") as turn:
            value.set_as(work[2 * turn])
            with self.if_scope(value > best if name == "vcmax" else value < best):
                best.set_as(value)
                lane.set_as(indices[2 * turn + 1])
                lane.set_as(lane + turn * width)
        dst[0].set_as(best)
        result[1].set_as(lane)

    def _level(
        self,
        name: str,
        call: str,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        repeats: TikValue,
        stride: TikValue,
        order: str = "only_value",
    ) -> None:
        kind = instruction_named(name)
        parameters = {
            "dtype": src.record,
            "repeat": self.vectors(call, kind, mask, 2048 // src.record.bits, repeats),
            "src_repeat_stride": integer(stride, f"{call}.src_rep_stride"),
        }
        if name != "vcadd":
            parameters["order"] = order
        self.trace.issue(kind, parameters, (dst, src), call)

    # --- transposes

    def vec_trans_scatter(
        self,
        dst_high_half: bool,
        src_high_half: bool,
        dst_list: Sequence[Tensor],
        src_list: Sequence[Tensor],
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Transpose between sixteen blocks of src and sixteen of dst."""
        call = "vec_trans_scatter"
        for name, tensors in (("dst_list", dst_list), ("src_list", src_list)):
            if len(tensors) != _BLOCKS_OF_LIST:
                raise refuse(f"{call}.{name}", f"have {_BLOCKS_OF_LIST} tensors", len(tensors))
        bits = src_list[0].record.bits
        for register, tensors in enumerate(
            (dst_list[:8], dst_list[8:], src_list[:8], src_list[8:])
        ):
            addresses = {f"address{i}": tensor.address for i, tensor in enumerate(tensors)}
            self.trace.issue(
                instruction_named("set_va_reg_sb"), {"va": register, **addresses}, (), call
            )
        parameters: dict[str, object] = {
            "dst_va": 0,
            "src_va": 2,
            "repeat": integer(repeat_times, f"{call}.repeat_times"),
            "dst_stride": integer(dst_rep_stride, f"{call}.dst_rep_stride"),
            "src_stride": integer(src_rep_stride, f"{call}.src_rep_stride"),
        }
        if bits == 8:
            parameters |= {
                "dst_high_half": bool(dst_high_half),
                "src_high_half": bool(src_high_half),
            }
        touches = [touch_of(t, writes=True) for t in dst_list]
        touches += [touch_of(t, writes=False) for t in src_list]
        kind = instruction_named(f"scatter_vnchwconv_b{bits}")
        self.trace.issue(kind, parameters, (), call, touches=list(dict.fromkeys(touches)))

    vnchwconv = vec_trans_scatter

    def vec_trans(
        self,
        dst: Tensor,
        src: Tensor,
        repeat_times: TikValue,
        dst_rep_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        """Transpose 16 x 16 elements of 16 bits, repeat by repeat; strides are of 512 bytes."""
        repeats = integer(repeat_times, "vec_trans.repeat_times")
        steps = [
            integer(s, "vec_trans.stride") * (_BLOCKS_OF_LIST**2)
            for s in (dst_rep_stride, src_rep_stride)
        ]
        with self.for_range(0, _value(repeats)) as i:
            self._transpose("vec_trans", dst[i * _value(steps[0]) :], src[i * _value(steps[1]) :])

    def vtranspose(self, dst: Tensor, src: Tensor) -> None:
        """Transpose 16 x 16 elements of 16 bits."""
        self._transpose("vtranspose", dst, src)

    def _transpose(self, call: str, dst: Tensor, src: Tensor) -> None:
        self.trace.issue(instruction_named("vtranspose"), {"dtype": _MATRIX}, (dst, src), call)


def _value(expression: Expr) -> TikValue:
    return Value(expression) if expression.constant is None else expression.constant


def _blocks_of(stride: TikValue, tensor: Tensor) -> TikValue:
    """Return the elements of a stride of blocks."""
    return stride * (DATA_BLOCK_BYTES // tensor.record.size_bytes)


def _each(name: str, call: str) -> Callable[..., None]:
    """Return a call that reduces each repeat: with block strides, or as vec_cpadd without."""
    blocks = ("src_blk_stride",) if name == call else ()
    names = ("mask", "dst", "src", "repeat_times", "dst_rep_stride", *blocks, "src_rep_stride")

    def method(self: ReduceTransposeCalls, *args: object, **named: object) -> None:
        given = bound(call, names, args, named, {"stride_unit": 0})
        if given["stride_unit"]:
            raise refuse(f"{call}.stride_unit", "be 0", given["stride_unit"])
        numbers = {
            n.replace("rep_", "repeat_").replace("blk_", "block_"): given[n] for n in names[4:]
        }
        numbers["repeat"] = given["repeat_times"]
        self.reduce(call, name, given["mask"], given["dst"], given["src"], numbers)

    method.__name__ = call
    method.__doc__ = f"{name} of each repeat."
    return method


def _all(call: str, name: str) -> Callable[..., None]:
    """Return a call that reduces all repeats to one value."""

    def method(
        self: ReduceTransposeCalls,
        mask: TikValue,
        dst: Tensor,
        src: Tensor,
        work_tensor: Tensor,
        repeat_times: TikValue,
        src_rep_stride: TikValue,
        cal_index: bool = False,
    ) -> None:
        if cal_index and name == "vcadd":
            raise refuse(f"{call}.cal_index", "be False for a sum", "True")
        if cal_index:
            self.find(call, name, mask, dst, src, work_tensor, repeat_times, src_rep_stride)
        else:
            self.reduce_all(call, name, mask, dst, src, work_tensor, repeat_times, src_rep_stride)

    method.__name__ = call
    method.__doc__ = f"{name} of all repeats."
    return method


for _name in _EACH:
    setattr(ReduceTransposeCalls, _name, _each(_name, _name))
ReduceTransposeCalls.vec_cpadd = _each("vcpadd", "vec_cpadd")  # type: ignore[attr-defined]
for _kind, _name in (("add", "vcadd"), ("max", "vcmax"), ("min", "vcmin")):
    setattr(ReduceTransposeCalls, f"vec_reduce_{_kind}", _all(f"vec_reduce_{_kind}", _name))

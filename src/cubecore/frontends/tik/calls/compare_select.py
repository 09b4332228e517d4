"""TIK's comparisons and selections over the declared vector instructions."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from cubecore.dtypes import FLOAT32
from cubecore.frontends.tik.calls.vector import VectorCalls
from cubecore.frontends.tik.trace.arguments import bound
from cubecore.frontends.tik.trace.buffers import SCOPE_UB
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.tree import touch_of
from cubecore.frontends.tik.trace.values import TikValue, Value, converted, integer
from cubecore.isa.catalogue import instruction_named

RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")


class CompareMask:
    """The contents of the compare register after one call; a later call makes them stale."""


class CompareSelectCalls(VectorCalls):
    """vcmp*, vsel and their vec_ forms."""

    _held: CompareMask | None = None

    # --- comparisons

    def compare_bits(
        self,
        call: str,
        relation: str,
        dst: Tensor,
        sources: tuple[Any, ...],
        numbers: Mapping[str, TikValue],
    ) -> None:
        """Write the bits of whole repeats; the last source may be a scalar."""
        first = sources[0]
        parameters: dict[str, object] = {n: integer(v, f"{call}.{n}") for n, v in numbers.items()}
        parameters["dtype"] = first.record
        if self.trace.chip.arch == "m100" and first.record is FLOAT32:
            raise refuse(f"{call}.src0", "be float16 on Ascend310", first.dtype)
        scalar = not isinstance(sources[-1], Tensor)
        if scalar:
            parameters["value"] = converted(sources[-1], first.record)
        kind = instruction_named(f"{'vcmpvs' if scalar else 'vcmpv'}_{relation}")
        tensors = [s for s in sources if isinstance(s, Tensor)]
        self.trace.issue(kind, parameters, (dst, *tensors), call)

    def compare_once(
        self,
        call: str,
        relation: str,
        mask: TikValue,
        src0: Tensor,
        src1: Tensor,
        *,
        src0_stride: TikValue,
        src1_stride: TikValue,
    ) -> CompareMask:
        """Compare one repeat into the compare register."""
        kind = instruction_named(f"vcmp_{relation}")
        self.vectors(call, kind, mask, 2048 // src0.record.bits, 1)
        parameters = {
            "dtype": src0.record,
            "src0_block_stride": integer(src0_stride, f"{call}.src0_stride"),
            "src1_block_stride": integer(src1_stride, f"{call}.src1_stride"),
        }
        self.trace.issue(kind, parameters, (src0, src1), call)
        return self._hold()

    def _hold(self) -> CompareMask:
        self._held = CompareMask()
        return self._held

    def mov_tensor_to_cmpmask(self, src: Tensor) -> CompareMask:
        """Load the compare register's 128 bits."""
        self.trace.issue(instruction_named("set_cmpmask"), {}, (src,), "mov_tensor_to_cmpmask")
        return self._hold()

    def mov_cmpmask_to_tensor(self, dst: Tensor, cmpmask: CompareMask) -> None:
        """Store the compare register's 128 bits."""
        self._require_held("mov_cmpmask_to_tensor.cmpmask", cmpmask)
        self.trace.issue(instruction_named("get_cmpmask"), {}, (dst,), "mov_cmpmask_to_tensor")

    def _require_held(self, subject: str, mask: object) -> None:
        if not isinstance(mask, CompareMask) or mask is not self._held:
            got = "an older one" if isinstance(mask, CompareMask) else type(mask).__name__
            raise refuse(subject, "be the mask of the last comparison", got)

    # --- selections

    def select(
        self,
        call: str,
        mask: TikValue,
        mode: int,
        dst: Tensor,
        sel: Any,
        src0: Tensor,
        src1: Any,
        repeat: TikValue,
        *,
        numbers: Mapping[str, TikValue],
    ) -> None:
        """Take src0 where the bit is 1, else src1."""
        if mode not in {0, 1, 2}:
            raise refuse(f"{call}.mode", "be 0, 1 or 2", mode)
        if self.trace.chip.arch == "m100" and dst.record is FLOAT32:
            raise refuse(f"{call}.dst", "be float16 on Ascend310", dst.dtype)
        if mode:
            self._select_by_memory(call, mask, dst, sel, src0, src1, repeat, numbers)
            return
        if isinstance(sel, Tensor):
            self.mov_tensor_to_cmpmask(sel)
        else:
            self._require_held(f"{call}.sel", sel)
        kind = instruction_named("vsel")
        parameters: dict[str, object] = {n: integer(v, f"{call}.{n}") for n, v in numbers.items()}
        parameters["dtype"] = dst.record
        parameters["repeat"] = self.vectors(call, kind, mask, 2048 // dst.record.bits, repeat)
        self.trace.issue(kind, parameters, (dst, src0, src1), call)

    def _select_by_memory(
        self,
        call: str,
        mask: TikValue,
        dst: Tensor,
        sel: Any,
        src0: Tensor,
        src1: Any,
        repeat: TikValue,
        numbers: Mapping[str, TikValue],
    ) -> None:
        """Select with bits of its own for each repeat; src1 is a tensor, or one scalar.

        The compare register holds where the bits are, or the scalar: loaded from free bytes of UB.
        """
        if not isinstance(sel, Tensor):
            raise refuse(f"{call}.sel", "be a tensor in UB in mode 1 and 2", type(sel).__name__)
        tensor = isinstance(src1, Tensor) and src1.size != 1
        name = "vsel_tensor" if tensor else "vsel_scalar"
        self.trace.buffers.open()
        # Between two tensors the compare register holds the address of the bits, else the scalar.
        held = "int64" if tensor else dst.dtype
        staged = self.Tensor(held, (32,), SCOPE_UB, f"{call}_register")
        staged[0].set_as(Value(sel.address) if tensor else src1)
        for word in range(1, 16 // staged.record.size_bytes):
            staged[word].set_as(0)
        self.mov_tensor_to_cmpmask(staged)
        kind = instruction_named(name)
        names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        parameters: dict[str, object] = {
            n: integer(v, f"{call}.{n}") for n, v in numbers.items() if n in names
        }
        parameters["dtype"] = dst.record
        parameters["repeat"] = self.vectors(call, kind, mask, 2048 // dst.record.bits, repeat)
        tensors = (dst, src0, src1) if tensor else (dst, src0, sel)
        touches = [touch_of(sel, writes=False)]
        self.trace.issue(kind, parameters, tensors, call, touches=touches)
        self.trace.buffers.close()


def _bits(relation: str, *, blocks: bool) -> Callable[..., None]:
    """Return vcmpv_ (with block strides) or vec_cmpv_ of a relation."""
    call = f"{'vcmpv' if blocks else 'vec_cmpv'}_{relation}"

    def low(
        self: CompareSelectCalls,
        dst: Tensor,
        src0: Tensor,
        src1: Tensor,
        repeat_times: TikValue,
        src0_blk_stride: TikValue,
        src1_blk_stride: TikValue,
        src0_rep_stride: TikValue,
        src1_rep_stride: TikValue,
    ) -> None:
        numbers = {
            "repeat": repeat_times,
            "src0_block_stride": src0_blk_stride,
            "src1_block_stride": src1_blk_stride,
            "src0_repeat_stride": src0_rep_stride,
            "src1_repeat_stride": src1_rep_stride,
        }
        self.compare_bits(call, relation, dst, (src0, src1), numbers)

    def high(
        self: CompareSelectCalls,
        dst: Tensor,
        src0: Tensor,
        src1: Tensor,
        repeat_times: TikValue,
        src0_rep_stride: TikValue,
        src1_rep_stride: TikValue,
    ) -> None:
        low(self, dst, src0, src1, repeat_times, 1, 1, src0_rep_stride, src1_rep_stride)

    return low if blocks else high


def _bits_of_scalar(relation: str) -> Callable[..., None]:
    def method(
        self: CompareSelectCalls,
        dst: Tensor,
        src: Tensor,
        scalar: TikValue,
        repeat_times: TikValue,
        src_blk_stride: TikValue,
        src_rep_stride: TikValue,
    ) -> None:
        numbers = {
            "repeat": repeat_times,
            "src_block_stride": src_blk_stride,
            "src_repeat_stride": src_rep_stride,
        }
        self.compare_bits(f"vcmpvs_{relation}", relation, dst, (src, scalar), numbers)

    return method


def _register(relation: str) -> Callable[..., CompareMask]:
    def method(
        self: CompareSelectCalls,
        mask: TikValue,
        src0: Tensor,
        src1: Tensor,
        src0_stride: TikValue = 1,
        src1_stride: TikValue = 1,
    ) -> CompareMask:
        return self.compare_once(
            f"vcmp_{relation}",
            relation,
            mask,
            src0,
            src1,
            src0_stride=src0_stride,
            src1_stride=src1_stride,
        )

    return method


def _selection(call: str, *, blocks: bool) -> Callable[..., None]:
    """Return vsel (with block strides) or vec_sel; strides that are not given are 1 and 0."""
    operands = ("dst", "src0", "src1")
    strides = {f"{o}_blk_stride": 1 for o in operands} if blocks else {}
    strides |= {f"{o}_rep_stride": 0 for o in operands}
    names = ("mask", "mode", "dst", "sel", "src0", "src1", "repeat_times")

    def method(self: CompareSelectCalls, *args: object, **named: object) -> None:
        given = bound(call, names, args, named, strides)
        numbers = {
            n.replace("rep_", "repeat_").replace("blk_", "block_"): given[n] for n in strides
        }
        self.select(call, *(given[n] for n in names), numbers=numbers)

    method.__name__ = call
    method.__doc__ = "Take src0 where the bit is 1, else src1."
    return method


CompareSelectCalls.vec_sel = _selection("vec_sel", blocks=False)  # type: ignore[attr-defined]
CompareSelectCalls.vsel = _selection("vsel", blocks=True)  # type: ignore[attr-defined]
for _relation in RELATIONS:
    setattr(CompareSelectCalls, f"vcmpv_{_relation}", _bits(_relation, blocks=True))
    setattr(CompareSelectCalls, f"vec_cmpv_{_relation}", _bits(_relation, blocks=False))
    setattr(CompareSelectCalls, f"vcmpvs_{_relation}", _bits_of_scalar(_relation))
    setattr(CompareSelectCalls, f"vcmp_{_relation}", _register(_relation))

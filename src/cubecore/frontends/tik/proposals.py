"""TIK's region proposals: components in and out, sorting, merging."""

from collections.abc import Sequence
from typing import Any

from cubecore.frontends.tik.errors import refuse
from cubecore.frontends.tik.tensor import Tensor
from cubecore.frontends.tik.values import integer
from cubecore.frontends.tik.vector import Vector
from cubecore.isa.spec import instruction_named
from cubecore.units import DATA_BLOCK_BYTES

_QUEUES = {2: 3, 3: 7, 4: 15}
"""valid_bit of two, three and four queues."""
_ELEMENTS = 8


class Proposals(Vector):
    """vconcat, vextract, vrpsort16, vmrgsort4."""

    def vconcat(self, dst: Tensor, src: Tensor, repeat_times: Any, mode: Any) -> None:
        """Put 16 elements a repeat into a component of proposals."""
        self._component("vconcat", dst, src, repeat_times, mode)

    def vextract(self, dst: Tensor, src: Tensor, repeat_times: Any, mode: Any) -> None:
        """Take 16 elements a repeat out of a component of proposals."""
        self._component("vextract", dst, src, repeat_times, mode)

    def _component(self, call: str, dst: Tensor, src: Tensor, repeat: Any, mode: Any) -> None:
        parameters = {
            "dtype": dst.record,
            "repeat": integer(repeat, f"{call}.repeat_times"),
            "mode": integer(mode, f"{call}.mode"),
        }
        self.trace.issue(instruction_named(call), parameters, (dst, src), call)

    def vrpsort16(self, dst: Tensor, src: Tensor, repeat_times: Any) -> None:
        """Sort each group of 16 proposals from the largest score down."""
        repeats = integer(repeat_times, "vrpsort16.repeat_times")
        parameters = {"dtype": dst.record, "repeat": repeats}
        self.trace.issue(instruction_named("vrpsort16"), parameters, (dst, src), "vrpsort16")

    def vmrgsort4(
        self,
        dst: Tensor,
        src_list: Sequence[Tensor],
        element_lengths: Any,
        if_exhausted_suspension: bool = False,
        valid_bit: Any = 15,
        repeat_times: Any = 1,
        *counts: Any,
    ) -> None:
        """Merge two to four queues of proposals; more repeats go on behind one another."""
        call = "vmrgsort4"
        bits = int(valid_bit, 2) if isinstance(valid_bit, str) else valid_bit
        queues = next((count for count, code in _QUEUES.items() if code == bits), None)
        if queues is None or queues > len(src_list):
            got = f"{valid_bit!r} with {len(src_list)} queues"
            raise refuse(f"{call}.valid_bit", "be 3, 7 or 15, one bit for each queue", got)
        if counts:
            raise refuse(call, "give no counts of the queues, as far as it goes", "an array")
        each = element_lengths
        lengths = each if isinstance(each, (list, tuple)) else [each] * queues
        parameters: dict[str, Any] = {
            "dtype": dst.record,
            "if_exhausted_suspension": bool(if_exhausted_suspension),
            "valid_bit": bits,
        }
        lanes = [integer(length, f"{call}.element_lengths") for length in lengths[:queues]]
        parameters |= {f"element_length_{i}": length for i, length in enumerate(lanes)}
        kind = instruction_named("vmrgsort4_proposals")
        tensors = (dst, *src_list[:queues])
        if repeat_times == 1:
            self.trace.issue(kind, parameters, tensors, call)
            return
        size = _ELEMENTS * dst.record.size_bytes
        step = sum(lanes[1:], lanes[0]) * size
        with self.for_range(0, repeat_times) as turn:
            places = [tensor.address + turn.expr * step for tensor in tensors]
            if size < DATA_BLOCK_BYTES and step.constant is None:
                raise refuse(f"{call}.repeat_times", "be 1 for lengths of Scalars", repeat_times)
            self.trace.issue(kind, parameters, tensors, call, places)

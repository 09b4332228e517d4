"""TIK's vector calls, both dialects, from one table over the declared vector instructions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.tik.trace.arguments import bound
from cubecore.frontends.tik.trace.buffers import SCOPE_L1, SCOPE_UB
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import Scalar, TikValue, Value, converted, integer
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.expr import Expr
from cubecore.units import DATA_BLOCK_BYTES

_WORD = 64
_BLOCK = {"n_burst": 1, "len_burst": 1, "src_gap": 0, "dst_gap": 0}
_REPEAT_BYTES = 256


@dataclass(frozen=True, slots=True)
class VectorCall:
    """One TIK call: the instruction, its sources, whether a scalar follows, block strides or not.

    `absent_on_310` are element types that Ascend310 does not have (TIK, chips).
    """

    instruction: str
    sources: tuple[str, ...]
    scalar: str = ""
    blocks: bool = False
    absent_on_310: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names in TIK's order."""
        scalar = ("scalar",) if self.scalar else ()
        operands = ("dst", *self.sources)
        blocks = tuple(f"{o}_blk_stride" for o in operands) if self.blocks else ()
        repeats = tuple(f"{o}_rep_stride" for o in operands)
        return ("mask", *operands, *scalar, "repeat_times", *blocks, *repeats)


_PLAIN = (
    *("vadd", "vsub", "vmul", "vmax", "vmin", "vdiv", "vand", "vor", "vmla", "vmadd", "vmaddrelu"),
    *("vexp", "vln", "vabs", "vrec", "vrsqrt", "vsqrt", "vrelu", "vnot", "vcopy", "vadds", "vmuls"),
    *("vaxpy", "vmaxs", "vmins", "vshl", "vshr", "vector_dup"),
)
_NO_FLOAT_ON_310 = ("vexp", "vln")


def _plain(instruction: str, *, blocks: bool) -> VectorCall:
    """Return the call of an instruction: its operands, and the number that it takes."""
    kind: type[Any] = instruction_named(instruction)
    sources = tuple(operand.name for operand in kind.declared if operand.name != "dst")
    numbers = (field.name for field in fields(kind) if field.name in {"value", "distance"})
    absent = ("float32",) if instruction in _NO_FLOAT_ON_310 else ()
    return VectorCall(instruction, sources, next(numbers, ""), blocks, absent)


CALLS: dict[str, VectorCall] = {
    call: _plain(name, blocks=call == name)
    for name in _PLAIN
    for call in (name, instruction_named(name).names["tik"])
}
"""Every call of the plain template (TIK, vector calls)."""
_NEVER_COUNTS = ("m100", "1001")
"""Architectures that ignore mask_mode (TIK, vector calls)."""
_COMMUTE = ("vadd", "vmul", "vmax", "vmin")
_MIXED = ("vaxpy", "vmla")


def mask_words(mask: TikValue, width: int, call: str) -> tuple[Expr, Expr]:
    """Return a mask's high and low word: n lanes from the first, or [high, low] as given.

    Raises
    ------
    RequestError
        If an immediate lies outside [1, `width`], or bits lie beyond the type's lanes.
    """
    subject = f"{call}.mask"
    if isinstance(mask, (list, tuple)):
        if len(mask) != 2:
            raise refuse(subject, "be a count or a list of two words", f"{len(mask)} words")
        high, low = (integer(word, subject) for word in mask)
        if width <= _WORD and high.constant:
            raise refuse(subject, f"have no bits above {width} lanes", high.constant)
        return high, low
    count = integer(mask, subject)
    if count.constant is not None:
        if not 1 <= count.constant <= width:
            raise refuse(subject, f"be in [1, {width}]", count.constant)
        bits = (1 << count.constant) - 1
        return Expr(bits >> _WORD), Expr(bits & (1 << _WORD) - 1)
    # The count is known on the chip only. Bits 0 to n - 1 of 128 are set, so that the low word has
    # min(n, 64) of them and the high one max(n - 64, 0).
    one = Expr(1)
    low = one.applied("shl", count.minimum(_WORD)) - 1
    high = one.applied("shl", (count - _WORD).maximum(0)) - 1
    return high, low


class VectorCalls(Language):
    """The calls of the plain template: mask, operands, scalar, repeats, strides."""

    def vectors(
        self, call: str, kind: type[Instruction], mask: TikValue, width: int, repeat: TikValue
    ) -> Expr:
        """Set the mask of a call and return its repeats.

        Raises
        ------
        RequestError
            If the repeat is an immediate of 0 or above 255.
        """
        times = integer(repeat, f"{call}.repeat_times")
        if times.constant is not None and not 1 <= times.constant <= 255:
            raise refuse(f"{call}.repeat_times", "be in [1, 255] as an immediate", times.constant)
        self.trace.mask(*mask_words(mask, width, call))
        return times

    def registered(self, name: str, targets: Sequence[Scalar]) -> None:
        """Give Scalars the numbers of a register, by way of 32 bytes of UB.

        Where a program uses all of UB its last bytes stay in L1 meanwhile.
        """
        self.trace.buffers.open()
        # The instruction writes to UB only. Where no 32 B of it are free the last ones are
        # borrowed: saved in L1, overwritten, read by the scalar unit, and restored.
        if self.trace.chip.joins_vector and self.trace.buffers.free(Mem.UB)[1] < DATA_BLOCK_BYTES:
            buffer = self.trace.buffers.last(name, Mem.UB, DATA_BLOCK_BYTES)
            record = element_type("int64")
            staged = Tensor(buffer, record, (4,), SCOPE_UB, self._store, load=self._load)
            kept = self.Tensor("int64", (4,), SCOPE_L1, f"{name}_kept")
            self.trace.issue(instruction_named("copy_ubuf_to_cbuf"), _BLOCK, (kept, staged), name)
            self._registered(name, staged, targets)
            self.trace.issue(instruction_named("copy_cbuf_to_ubuf"), _BLOCK, (staged, kept), name)
        else:
            self._registered(name, self.Tensor("int64", (4,), SCOPE_UB, name), targets)
        self.trace.buffers.close()

    def _registered(self, name: str, staged: Tensor, targets: Sequence[Scalar]) -> None:
        self.trace.issue(instruction_named(name), {}, (staged,), name)
        for index, target in enumerate(targets):
            target.set_as(staged[index])

    def plain(self, name: str, given: dict[str, Any]) -> None:
        """Issue a call of the table."""
        call = CALLS[name]
        kind = instruction_named(call.instruction)
        operands: list[Tensor] = [given["dst"], *(given[source] for source in call.sources)]
        for operand, tensor in zip(("dst", *call.sources), operands, strict=True):
            if not isinstance(tensor, Tensor):
                raise refuse(f"{name}.{operand}", "be a tensor", type(tensor).__name__)
        dst = operands[0]
        if self.trace.chip.arch == "m100" and dst.dtype in call.absent_on_310:
            raise refuse(f"{name}.dst", f"not be {dst.dtype} on {self.trace.chip.name}", dst.dtype)
        parameters = self._types(name, call, operands)
        widest = max(tensor.record.bits for tensor in operands)
        width = _REPEAT_BYTES * 8 // widest
        counted = self._counted(name, given)
        # In counter mode the mask is the number of elements in all, and the repeats follow from it.
        if counted:
            parameters["repeat"] = 1
            self.trace.count(integer(given["mask"], f"{name}.mask"))
        else:
            times = given["repeat_times"]
            parameters["repeat"] = self.vectors(name, kind, given["mask"], width, times)
        if call.scalar:
            parameters[call.scalar] = _scalar(name, call, given["scalar"], operands[-1].record)
        for operand in ("dst", *call.sources):
            stride = integer(given[f"{operand}_rep_stride"], f"{name}.{operand}_rep_stride")
            parameters[f"{operand}_repeat_stride"] = stride
            if call.blocks:
                stride = integer(given[f"{operand}_blk_stride"], f"{name}.{operand}_blk_stride")
                parameters[f"{operand}_block_stride"] = stride
        # Repeats that add up in one place: the rules of overlap let dst be src1 of the next repeat,
        # and no other source. As the operation commutes, the sources can change places with their
        # strides.
        if _accumulates_in_src0(call, operands, parameters):
            operands[1], operands[2] = operands[2], operands[1]
            for part in ("repeat", "block"):
                one, other = (f"src{i}_{part}_stride" for i in (0, 1))
                if one in parameters:
                    parameters[one], parameters[other] = parameters[other], parameters[one]
        self.trace.issue(kind, parameters, operands, name)
        if counted:
            self.trace.count(None)

    def _counted(self, name: str, given: Mapping[str, object]) -> bool:
        """True if the mask counts elements: where the chip has that mode, else it is ignored."""
        mode = given.get("mask_mode", "normal")
        if mode not in {"normal", "counter"}:
            raise refuse(f"{name}.mask_mode", "be normal or counter", repr(mode))
        if given.get("stride_unit"):
            raise refuse(f"{name}.stride_unit", "be 0", given["stride_unit"])
        if given.get("round_en"):
            raise refuse(f"{name}.round_en", "be False", given["round_en"])
        return mode == "counter" and self.trace.chip.arch not in _NEVER_COUNTS

    def _types(self, name: str, call: VectorCall, operands: Sequence[Tensor]) -> dict[str, Any]:
        dst, *sources = operands
        if call.instruction in _MIXED:
            return {"dst_type": dst.record, "src_type": sources[0].record}
        for source, tensor in zip(call.sources, sources, strict=True):
            if tensor.record is not dst.record:
                raise refuse(f"{name}.{source}", f"have dst's type {dst.dtype}", tensor.dtype)
        if call.instruction == "vcopy":  # bits, whatever their type
            return {"dtype": element_type(f"uint{dst.record.bits}")}
        return {"dtype": dst.record}


def _accumulates_in_src0(
    call: VectorCall, operands: Sequence[Tensor], parameters: Mapping[str, Any]
) -> bool:
    """True if a sum runs through src0; the documents name src1 for it, programs use either."""
    if call.instruction not in _COMMUTE:
        return False
    dst, src0, _ = operands
    strides = (parameters["dst_repeat_stride"], parameters["src0_repeat_stride"])
    same = dst.buffer is src0.buffer and dst.start == src0.start
    return same and all(stride.constant == 0 for stride in strides)


def _scalar(name: str, call: VectorCall, value: TikValue, dtype: ElementType) -> Expr:
    if call.scalar == "distance":
        return integer(value, f"{name}.scalar")
    is_float = isinstance(value, float) or (isinstance(value, Value) and value.is_float)
    if is_float and dtype.kind != "float":
        raise refuse(f"{name}.scalar", f"be an integer for {dtype}", value)
    return converted(value, dtype)


def _method(name: str) -> Callable[..., None]:
    call = CALLS[name]
    optional: dict[str, object] = {"round_en": False} if call.scalar == "distance" else {}
    if name == "vcopy":  # public programs give the mode alone behind the strides
        optional |= {"mask_mode": "normal", "stride_unit": 0}
    else:
        optional |= {"stride_unit": 0, "mask_mode": "normal"}

    def method(self: VectorCalls, *args: object, **kwargs: object) -> None:
        given = bound(name, call.parameters, args, kwargs, optional)
        self.plain(name, given)

    method.__name__ = name
    method.__doc__ = f"{call.instruction} of {', '.join(call.parameters)}."
    return method


for _name in CALLS:
    setattr(VectorCalls, _name, _method(_name))

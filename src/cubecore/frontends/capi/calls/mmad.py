"""Mmad of the basic API in a kernel: operands, perhaps a bias, and a struct of parameters."""

from collections.abc import Sequence

from cubecore.chips.model import Chip
from cubecore.errors import refuse, unable
from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.cube.mmad_params import MmadParams
from cubecore.isa.declare.instruction import Mem

_OPERANDS = {"dst": (Mem.L0C, "CO1"), "fm": (Mem.L0A, "A2"), "filter": (Mem.L0B, "B2")}
"""Operands, the memory that each lies in, and the memory's name in the basic API."""


def bind_mmad(arguments: Sequence[object], chip: Chip) -> BoundCall:
    """Return what ``Mmad(dst, fm, filter[, bias], params)`` issues on `chip`.

    Raises
    ------
    RequestError
        Another number of arguments, an operand that is no pointer or lies elsewhere, parameters
        that are no MmadParams, and what `MmadParams.template` refuses.
    """
    if len(arguments) not in {len(_OPERANDS) + 1, len(_OPERANDS) + 2}:
        taken = "dst, fm, filter, a bias or none, and a MmadParams"
        raise unable("Mmad", f"Mmad takes {taken}; got {len(arguments)} arguments")
    *given, params = arguments
    if not isinstance(params, MmadParams):
        raise refuse("Mmad.mmadParams", "be a capi.MmadParams", repr(params))
    pointers: list[Pointer] = []
    for name, pointer in zip((*_OPERANDS, "bias"), given, strict=False):
        if not isinstance(pointer, Pointer):
            raise refuse(f"Mmad.{name}", "be a pointer", repr(pointer))
        mem, position = _OPERANDS.get(name, (pointer.mem, ""))
        if pointer.mem is not mem:
            raise refuse(f"Mmad.{name}", f"lie in {position}, which is {mem.label}", str(pointer))
        pointers.append(pointer)
    result, left, right, *bias = pointers
    types = left.dtype, right.dtype, result.dtype
    bias_mem, bias_type = (bias[0].mem, bias[0].dtype) if bias else (None, None)
    template = params.template(chip, types, bias_mem, bias_type)
    count = len(template.operands())
    indices = tuple(range(count)) if len(pointers) == count else (0, 1, 2, None)
    return BoundCall(((template, indices[:count]),), masked=False, counted=False, reusable=False)

"""One operation on places in memory: read, compute, write, and follow what was never written."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.machine.memory.places import Known, Place

Read = tuple[str, Place, bool]
"""An operand that is read, its elements, and whether what was never written there propagates."""
Write = tuple[str, Callable[[Array, Known], None]]
"""An operand that is written, and what stores its values and the known part of them."""
Inputs = dict[str, Array]


def combines(template: Instruction, registers: Registers) -> bool:
    """Return whether stores to global memory are combined with it: the scalar unit's never are."""
    return bool(registers.atomic) and template.pipe is not Pipe.S


def operate(
    reads: Sequence[Read],
    writes: Sequence[Write],
    compute: Callable[[Inputs], Mapping[str, Array]],
    unwritten: Callable[[str, Place], object],
    template: Instruction,
    padded: Callable[[NDArray[np.bool_]], NDArray[np.bool_]] = lambda ready: ready,
    needed: Callable[[Sequence[Remark]], object] | None = None,
) -> Inputs:
    """Compute of what is read, store the results, and return what was read, perhaps as views.

    Results of elements that were never written are unknown where that propagates; elsewhere
    `unwritten` is called for an operand some of whose bytes were not, before anything is computed.
    `padded` adds the elements that count as written to those that were; `needed` takes what the
    instruction itself says of others.
    """
    inputs: Inputs = {}
    partly = {}
    for name, operand, propagates in reads:
        inputs[name] = operand.read()
        if not operand.written():
            if propagates:
                partly[name] = padded(operand.ready())
            else:
                unwritten(name, operand)
    if partly and needed is not None and (remarks := template.needs(partly)):
        needed(remarks)
    results = compute(inputs)
    known: Mapping[str, Known] = template.known(partly) if partly else {}
    for name, write in writes:
        write(results[name], known.get(name))
    return inputs

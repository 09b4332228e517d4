"""Copies by cores in lockstep: bytes and their maps, for all cores at once."""

from collections.abc import Callable
from operator import itemgetter

from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import relation
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.operands import Cores, finding, limits_of, require_inside, side
from cubecore.machine.lockstep.sanitizer import NOWHERE
from cubecore.machine.memory.moves import move_of

_MOST_PLACED = 4096
"""Addresses of one template that are remembered as checked."""


def moving(cores: Cores, template: Instruction) -> Callable[[tuple[int, ...]], None]:
    """Return the act of a copy."""
    names = [operand.name for operand in template.operands()]
    fill, limits = template.fill(cores.registers), limits_of(cores, template)
    moves = []
    for pair in template.pairs:
        dst, src = (side(cores, template, names.index(name)) for name in pair)
        if src.elements.offsets.size:
            move = move_of(template, src.operand, dst.operand, fill)
            moves.append((dst.place, finding(cores, dst), src.place, finding(cores, src), move))
    follow = cores.watch.follower(template, NOWHERE, cores.registers)
    inside = [index for index, o in enumerate(template.operands()) if o.mem is not Mem.GM]
    local = itemgetter(*inside)
    checked = BoundedCache[object, None](_MOST_PLACED)

    def act(addresses: tuple[int, ...]) -> None:
        places = template.operand_addresses(addresses)
        key = local(places)
        if key not in checked:
            require_inside(template, limits, places)
            if any(relation(template, places)):
                raise IrregularError(f"{template.name}: operands that meet")
            checked[key] = None
        follow(places)
        for to, find_to, from_, find_from, move in moves:
            move(find_from(places[from_]), find_to(places[to]))

    return act

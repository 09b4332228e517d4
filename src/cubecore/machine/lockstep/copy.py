"""Copies by cores in lockstep: bytes and their maps, for all cores at once."""

from operator import itemgetter

from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import relation
from cubecore.isa.program.tree import Location
from cubecore.machine.lockstep.operands import (
    Act,
    ApartError,
    Cores,
    finding,
    limits_of,
    require_inside,
    side,
)
from cubecore.machine.memory.moves import move_of

_MOST_CHECKED = 4096
"""Addresses of one template that are remembered as checked."""


def moving(cores: Cores, template: Instruction) -> Act:
    """Return the act of a copy."""
    names = [operand.name for operand in template.operands()]
    fill, limits = template.fill(cores.registers), limits_of(cores.chip, template)
    moves = []
    for pair in template.pairs:
        dst, src = (side(cores, template, names.index(name)) for name in pair)
        if src.elements.offsets.size:
            move = move_of(template, src.operand, dst.operand, fill)
            moves.append((move, finding(cores, src), src.number, finding(cores, dst), dst.number))
    follow = cores.watch.followers(template, cores.registers)
    inside = [index for index, o in enumerate(template.operands()) if o.mem is not Mem.GM]
    local = itemgetter(*inside)
    checked = BoundedCache[object, None](_MOST_CHECKED)

    def act(addresses: tuple[int, ...], where: Location) -> None:
        all_addresses = template.operand_addresses(addresses)
        key = local(all_addresses)
        if key not in checked:
            require_inside(template, limits, all_addresses)
            if any(relation(template, all_addresses)):
                raise ApartError(f"{template.name}: operands that meet")
            checked[key] = None
        spots = [
            (m, find(all_addresses[from_]), there(all_addresses[to]))
            for m, find, from_, there, to in moves
        ]
        follow(all_addresses, where)
        for move, here, there in spots:
            move(here, there)

    return act

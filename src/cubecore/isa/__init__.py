"""Every instruction, declared once; importing this package declares them all."""

from cubecore.isa import cube, fixpipe, moves, scales, sync, system, vector
from cubecore.isa.spec import instruction_named, instructions

__all__ = [
    "cube",
    "fixpipe",
    "instruction_named",
    "instructions",
    "moves",
    "scales",
    "sync",
    "system",
    "vector",
]

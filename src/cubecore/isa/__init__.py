"""Every instruction, declared once; importing this package declares them all."""

from cubecore.isa import cube, fixpipe, moves, scales, sync, system
from cubecore.isa.spec import instruction_named, instructions
from cubecore.isa.vector import binary, convert, mask, unary

__all__ = [
    "binary",
    "convert",
    "cube",
    "fixpipe",
    "instruction_named",
    "instructions",
    "mask",
    "moves",
    "scales",
    "sync",
    "system",
    "unary",
]

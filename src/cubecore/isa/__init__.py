"""Every instruction, declared once; importing this package declares them all."""

from cubecore.isa import (
    caches,
    cube,
    fixpipe,
    joined,
    moves,
    scalar,
    scales,
    sync,
    system,
    variables,
    vector,
)
from cubecore.isa.spec import instruction_named, instructions

__all__ = [
    "caches",
    "cube",
    "fixpipe",
    "instruction_named",
    "instructions",
    "joined",
    "moves",
    "scalar",
    "scales",
    "sync",
    "system",
    "variables",
    "vector",
]

"""Every instruction, declared once; importing this package declares them all."""

from cubecore.isa import (
    caches,
    cube,
    fill,
    fixpipe,
    joined,
    load3d,
    moves,
    mx,
    paths,
    scalar,
    scales,
    sparse,
    sync,
    system,
    variables,
    vector,
)
from cubecore.isa.spec import instruction_named, instructions

__all__ = [
    "caches",
    "cube",
    "fill",
    "fixpipe",
    "instruction_named",
    "instructions",
    "joined",
    "load3d",
    "moves",
    "mx",
    "paths",
    "scalar",
    "scales",
    "sparse",
    "sync",
    "system",
    "variables",
    "vector",
]

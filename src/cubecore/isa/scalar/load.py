"""The scalar unit's read of a value in memory."""

from cubecore.isa.declare.instruction import Instruction, Pipe


class ScalarLoad(Instruction):
    """The scalar unit's read of one value; not an instruction that a program lists."""

    name = "scalar load"
    pipe = Pipe.S


class CachedLoad(ScalarLoad):
    """The scalar unit's read of one value by its data cache."""

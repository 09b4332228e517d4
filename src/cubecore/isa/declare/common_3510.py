"""Field bounds and cache hints shared by the instructions of the 3510 architecture."""

ARCH = ("3510",)
L2_HINTS = (0, 1, 2, 4)
FAR = 2**40 - 1
"""Largest distance between pieces in global memory: 40 bits."""
NEAR = 2**21 - 1
"""Largest length or distance in a local memory: 21 bits."""

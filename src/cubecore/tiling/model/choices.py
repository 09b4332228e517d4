"""Words that a problem takes, apart so that the help of a command loads nothing else."""

POSITIONS = ("GM", "TSCM", "VECIN", "VECOUT", "VECCALC")
"""Memories that a matrix may lie in."""
FORMATS = ("ND", "NZ")
LAUNCHES = ("cube", "mix")
TEMPLATES = ("NORM", "MDL", "IBSHARE")
LAYOUTS = ("NORMAL", "BSNGD", "SBNGD", "BNGS1S2")
"""The layouts of a batch's matrices in memory (vendor's IterateBatch)."""

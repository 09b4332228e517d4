"""Boundaries (see tiling.boundaries) of the rules of MxMatmul."""

from tiling.boundaries import BLOCKS, MX, Boundary, factor

BOUNDARIES = [
    Boundary("MX-BASE-K-ALIGNMENT", "baseK", BLOCKS, lambda c: c.t.baseK % 64 == 0, **MX),
    Boundary(
        "MX-SINGLE-CORE-K",
        "k",
        tuple(range(2, 400, 2)),
        lambda c: -(-c.t.singleCoreK // 32) % 2 == 0,
        **(MX | {"keys": MX["keys"] | {"pos_b": "TSCM"}}),
    ),
    Boundary(
        "MX-SPARE-BITS",
        "mxTypePara",
        tuple(0x01010101 | 1 << bit for bit in range(31)),
        lambda c: not any(c.t.mxTypePara >> bit & 1 for bit in (7, 15, 23, 31)),
        **MX,
    ),
    *(
        Boundary(
            f"MX-FACTOR-{slug}",
            "mxTypePara",
            tuple((0x01010101 & ~(127 << shift)) | i << shift for i in range(128)),
            lambda c, shift=shift: factor(c.t, shift) >= 1,
            **MX,
        )
        for slug, shift in (("KA", 0), ("KB", 8), ("M", 16), ("N", 24))
    ),
    *(
        Boundary(
            f"MX-SCALE-{x}-WHOLE-K",
            "mxTypePara",
            tuple(
                0x01010100 - (1 << along) + 1 + (1 << across) + (i << along) for i in range(1, 40)
            ),
            lambda c, step=step, along=along, across=across: (
                factor(c.t, across) <= 1
                or c.t.baseK * getattr(c.t, step) * factor(c.t, along) >= c.t.singleCoreK
            ),
            **MX,
        )
        for x, step, along, across in (("A", "stepKa", 0, 16), ("B", "stepKb", 8, 24))
    ),
    *(
        Boundary(
            f"MX-SCALE-{slug}-EXTENT",
            "mxTypePara",
            tuple(0x01010101 + (i << shift) for i in range(60)),
            lambda c, base=base, step=step, single=single, shift=shift: (
                factor(c.t, shift) == 1
                or getattr(c.t, base) * getattr(c.t, step) * (factor(c.t, shift) - 1)
                < getattr(c.t, single)
            ),
            **MX,
        )
        for slug, base, step, single, shift in (
            ("KA", "baseK", "stepKa", "singleCoreK", 0),
            ("KB", "baseK", "stepKb", "singleCoreK", 8),
            ("M", "baseM", "stepM", "singleCoreM", 16),
            ("N", "baseN", "stepN", "singleCoreN", 24),
        )
    ),
]

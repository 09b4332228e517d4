"""The product against the chip's ceilings: operations a second over operations a byte."""

from cubecore.aliases import Json
from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.chips.model import Chip
from cubecore.tiling.model.problem import Problem
from cubecore.timing.records import Timeline


def roofline(problem: Problem, chip: Chip, timeline: Timeline) -> Json | None:
    """Return ceilings (TFLOPS, TB/s) and the product's points; None where a figure is unknown.

    The intensity counts the bytes that MTE2 read: those that device memory served, and all of them,
    which L2 delivered.
    """
    peak, hertz = peak_ops_per_cycle(chip, problem.a_type), chip.frequency_hz
    memory, link = chip.hbm_bytes_per_second, chip.l2_read_bytes_per_cycle
    if peak is None or hertz is None or timeline.tflops is None or not timeline.read_bytes:
        return None
    bands = []
    if memory is not None:
        bands.append(
            {"name": "device memory", "tbps": memory / 1e12, "fact": "hbm_bytes_per_second"}
        )
    if link is not None:
        bands.append(
            {
                "name": f"L2, {chip.aic_count} cores",
                "tbps": link * chip.aic_count * hertz / 1e12,
                "fact": "l2_read_bytes_per_cycle x aic_count x frequency_hz",
            }
        )
    operations = timeline.tflops * timeline.us * 1e6
    return {
        "peak": peak * hertz / 1e12,
        "peak_name": f"Cube, {problem.a} on {chip.aic_count} cores",
        "bands": bands,
        "tflops": timeline.tflops,
        "points": points(operations, timeline),
        "unit": "TFLOPS",
        "of": "product",
        "facts": ["cube_k"],
    }


def points(operations: float, timeline: Timeline) -> list[Json]:
    """Return the operations over the bytes read from device memory, and over all bytes read."""
    return [
        {"name": name, "bytes": size, "intensity": operations / size}
        for name, size in (
            ("device memory", timeline.hbm_read_bytes),
            ("L2", timeline.read_bytes),
        )
        if size
    ]

"""A launch against the chip's ceilings: operations a second over operations a byte."""

from dataclasses import dataclass

from cubecore.aliases import Json
from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.chips.model import Chip
from cubecore.tiling.model.problem import Problem
from cubecore.timing.records import Timeline

CUBE, VECTOR = "Cube", "Vector"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that a unit of all cores of a kind ("aic", "aiv") does with elements of a type.

    `per_cycle` are its operations a cycle, `link` and `rate` the fields of the chip with the bytes
    a cycle that L2 delivers to a core, and with the unit's own rate.
    """

    unit: str
    element: str
    per_cycle: float
    kind: str
    link: str
    rate: str

    @property
    def counted(self) -> str:
        """The unit of operations in a second."""
        return "TFLOPS" if self.unit == CUBE else "tera lanes a second"


def cube_ceiling(element: str, per_cycle: float) -> Ceiling:
    """Return the Cube's."""
    return Ceiling(CUBE, element, per_cycle, "aic", "l2_read_bytes_per_cycle", "cube_k")


def roofline(problem: Problem, chip: Chip, timeline: Timeline) -> Json | None:
    """Return ceilings (TFLOPS, TB/s) and the matmul's points; None where a figure is unknown.

    The intensity counts the bytes that MTE2 read: those that device memory served, and all of them,
    which L2 delivered.
    """
    peak = peak_ops_per_cycle(chip, problem.a_type)
    if peak is None or timeline.tflops is None:
        return None
    operations = timeline.tflops * timeline.us * 1e6
    return below(cube_ceiling(problem.a, peak), "product", operations, chip, timeline)


def below(
    ceiling: Ceiling, of: str, operations: float, chip: Chip, timeline: Timeline
) -> Json | None:
    """Return the ceilings, and the points of a matmul or kernel that does so many operations."""
    hertz, memory = chip.frequency_hz, chip.hbm_bytes_per_second
    cores, link = getattr(chip, f"{ceiling.kind}_count"), getattr(chip, ceiling.link)
    if hertz is None or not timeline.read_bytes:
        return None
    bands = []
    if memory is not None:
        bands.append(
            {"name": "device memory", "tbps": memory / 1e12, "fact": "hbm_bytes_per_second"}
        )
    if link is not None:
        fact = f"{ceiling.link} x {ceiling.kind}_count x frequency_hz"
        bands.append(
            {"name": f"L2, {cores} cores", "tbps": link * cores * hertz / 1e12, "fact": fact}
        )
    read = ("device memory", timeline.hbm_read_bytes), ("L2", timeline.read_bytes)
    return {
        "peak": ceiling.per_cycle * hertz / 1e12,
        "peak_name": f"{ceiling.unit}, {ceiling.element} on {cores} cores",
        "bands": bands,
        "tflops": operations / timeline.us / 1e6,
        "points": [
            {"name": name, "bytes": size, "intensity": operations / size}
            for name, size in read
            if size
        ],
        "unit": ceiling.counted,
        "of": of,
        "facts": [ceiling.rate, f"{ceiling.kind}_count"],
    }

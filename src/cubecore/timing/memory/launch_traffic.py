"""Demand of a launch on memory: groups of equal cores, and the part of it that each has."""

from collections.abc import Mapping

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.program.launch import Launch
from cubecore.timing.memory.global_accesses import accesses
from cubecore.timing.memory.l2_reuse import Traffic
from cubecore.timing.memory.row_alignment import apart
from cubecore.units import align_up

_TENSOR_SPACING = 4096


def launch_start(kind: str, chip: Chip) -> int:
    """Return the cycle at which the first instruction of a kind of kernel may be issued."""
    chip.require("start_cycles", "timing")
    return costs.kernel_start_cycles(chip, kind)


def launch_traffic(launch: Launch, chip: Chip, *, crossing: bool = False) -> Traffic:
    """Return what the groups of equal cores of a launch ask of the shared memory.

    `crossing`: cores signal each other.
    """
    groups = launch.groups(_bases(launch), whole=crossing)
    if not crossing:
        loads = {program: accesses(program, chip).loads for program in launch.programs}
        groups = apart(groups, loads, chip)
    accesses_of_groups = [accesses(group.program, chip) for group in groups]
    sizes = {tensor.name: tensor.size_bytes for tensor in launch.tensors}
    return Traffic(groups, accesses_of_groups, chip, launch.warm, launch.past_l2, sizes)


def memory_parts(traffic: Traffic) -> list[float]:
    """Return each group's part of device memory's time.

    What it misses over what all miss: then all groups need it for equally long. But every core has
    its turn: a group that misses little is served as often as its cores ask, and done sooner.
    """
    # Two lower bounds of a group's part: by demand and by number of cores. The parts may add up to
    # more than 1: a group that is done early leaves its part to the others.
    demands = [traffic.demand(number) for number in range(len(traffic.groups))]
    cores = [
        len(group.cores) if demand else 0
        for group, demand in zip(traffic.groups, demands, strict=True)
    ]
    return [
        max(demand / sum(demands), count / sum(cores)) if demand else 1.0
        for demand, count in zip(demands, cores, strict=True)
    ]


def _bases(launch: Launch) -> Mapping[str, int]:
    """Return where each tensor starts, all apart from each other."""
    bases, address = {}, _TENSOR_SPACING
    for tensor in launch.tensors:
        bases[tensor.name] = address
        address += align_up(tensor.size_bytes, _TENSOR_SPACING) + _TENSOR_SPACING
    return bases

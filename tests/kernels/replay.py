"""Executing one core's instructions in another order than the program's."""

from collections.abc import Mapping, Sequence

from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Location
from cubecore.machine.execute.core import Core, CoreId
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.tiling.model.problem import Problem
from harness import A2, Array, Issued, as_stored, result_of, tensor_of

HERE = Location("replay", 0, "replay")


def replay(
    launch: Launch, problem: Problem, order: Sequence[Issued], operands: Mapping[str, Array]
) -> tuple[Array, tuple[SanitizerFinding, ...]]:
    """Return C and findings after core 0 ran `order`, a reordered `harness.listing` of it."""
    gm = GlobalMemory()
    placed = {
        spec.name: gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
        if spec.output
        else gm.allocate_from(spec.name, as_stored(problem, operands)[spec.name])
        for spec in launch.tensors
    }

    def moved(template, addresses):
        for operand, address in zip(template.operands(), addresses, strict=True):
            if operand.mem.name == "GM":
                name, offset = tensor_of(launch, address)
                yield placed[name].address + offset
            else:
                yield address

    def body(core: Core) -> None:
        for template, addresses in order:
            core.record(template, tuple(moved(template, addresses)), HERE)

    outcome = run(A2, gm, [Task(CoreId(0), body)])
    c = placed["c"].buffer.data.view(problem.c_type.numpy)
    return result_of(problem, c), outcome.findings

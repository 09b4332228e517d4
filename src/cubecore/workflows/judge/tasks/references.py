"""The reference's side of a judgement: cases with their expected results, and comparisons.

It runs in a process of its own, which the submission's has nothing of but the cases' inputs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cubecore.errors import refuse, unable
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.cases import Reference, ReferenceCase, module_of
from cubecore.workflows.judge.tasks.comparison import Compared, close, same
from cubecore.workflows.judge.tasks.kinds import (
    ARRAYS,
    CANN_BENCH,
    FUNCTION,
    NPU_KERNEL_BENCH,
    SAMPLE_DATA,
    JudgeTask,
)

_EXPECTED = "expected_"
"""The beginning of the names of expected arrays in a file of arrays."""


def reference_of(task: JudgeTask) -> Reference:
    """Return the reference of a task.

    Raises
    ------
    RequestError
        If its file cannot be loaded, or it has none.
    """
    if task.kind == ARRAYS:
        return _Arrays(task)
    if task.kind == FUNCTION:
        return _Function(task)
    if task.kind == NPU_KERNEL_BENCH:
        from cubecore.workflows.judge.tasks.npu_kernel_bench import NpuKernelBenchTask

        return NpuKernelBenchTask(task)
    if task.kind == CANN_BENCH:
        from cubecore.workflows.judge.tasks.cann_bench import CannBenchTask

        return CannBenchTask(task)
    if task.kind == SAMPLE_DATA:
        from cubecore.workflows.judge.tasks.sample_tasks import SampleTask

        return SampleTask(task)
    from cubecore.workflows.judge.tasks.torch_tasks import TorchTask

    return TorchTask(task)


class _Arrays:
    """A file of arrays, of one case: those called expected_NAME are the results."""

    def __init__(self, task: JudgeTask) -> None:
        try:
            with np.load(task.path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise unable(str(task.path), f"cannot read {task.path.name}: {error}") from None
        self._inputs = {n: a for n, a in arrays.items() if not n.startswith(_EXPECTED)}
        self._expected = {
            n.removeprefix(_EXPECTED): a for n, a in arrays.items() if n.startswith(_EXPECTED)
        }
        if not self._expected:
            remedy = "np.savez(file, x=x, y=y, expected_z=z) makes one"
            sentence = f"{task.path.name} has no reference: no array expected_NAME"
            raise unable(str(task.path), sentence, remedy)

    def cases(self, _: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the one case."""
        yield ReferenceCase("arrays", self._inputs, self._expected)

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare by the types' tolerances."""
        return close(case.expected, got)


class _Function:
    """A Python file: `inputs(case, rng)` returns a case, `reference(**inputs)` its results.

    CASES says how many there are, RTOL and ATOL how near results must be.
    """

    def __init__(self, task: JudgeTask) -> None:
        self._module, self._shown = module_of(task.path), task.path.name
        self._count = int(getattr(self._module, "CASES", 1))
        self._limits = [getattr(self._module, name, None) for name in ("ATOL", "RTOL")]

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the cases, drawn with the seed and their number."""
        for number in range(min(self._count, options.cases)):
            generator = np.random.default_rng((options.seed, number))
            inputs = self._module.inputs(number, generator)
            if not isinstance(inputs, Mapping):
                need = "return the inputs by name, as {'x': x}"
                raise refuse(f"{self._shown}: inputs", need, type(inputs).__name__)
            copies = _copied(inputs)
            expected = self._module.reference(**copies)
            keeps = same(copies, inputs)
            named = self._named(expected)
            yield ReferenceCase(f"case {number}", dict(inputs), named, keeps_inputs=keeps)

    def _named(self, expected: Any) -> Any:
        if expected is None:
            raise refuse(f"{self._shown}: reference", "return the expected results", "None")
        return expected

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare within the task's limits, else by the types' tolerances."""
        return close(case.expected, got, *self._limits)


def _copied(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs that a reference may change."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in inputs.items()}

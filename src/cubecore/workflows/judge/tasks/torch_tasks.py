"""Tasks of torch as MultiKernelBench and KernelBench have them: Model, get_inputs, one file."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cubecore.errors import refuse, unable
from cubecore.workflows.judge.limits import AUTO_SIZES, REDUCED_BYTES, JudgeOptions
from cubecore.workflows.judge.tasks.cases import ReferenceCase, called, module_of
from cubecore.workflows.judge.tasks.comparison import (
    TOO_LARGE,
    Compared,
    close,
    leaves,
    plain,
    same,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask
from cubecore.workflows.judge.tasks.reduction import (
    ALIGNED,
    FULL,
    MOST_BYTES,
    MOST_OPERATIONS,
    ODD,
    TaskSizes,
    task_sizes,
)
from cubecore.workflows.judge.tasks.sized_module import TaskModule
from cubecore.workflows.judge.tasks.torch_modules import copied, stand_in

if TYPE_CHECKING:
    from cubecore.aliases import Json

SEED = 1024
"""The random seed that weights are drawn with, of both models."""
_LIMIT = 1e-4


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The call of a task's cases: a ModelNew, of the submission or in `text`.

    `binding` is C++ that the task itself has, and `module` its name in Python.
    """

    text: str = ""
    binding: str = ""
    module: str = ""
    names: tuple[str, ...] = ()


class TorchTask:
    """A file with Model, get_init_inputs, and get_inputs or get_input_groups."""

    def __init__(self, task: JudgeTask) -> None:
        stand_in()
        self._task, self._module = task, module_of(task.path)
        self.model = ModelSource()
        self.full: Json = {}
        """The costs of the task's own sizes, of a task whose cases are smaller."""
        if not any(hasattr(self._module, n) for n in ("get_inputs", "get_input_groups")):
            raise unable(task.path.name, f"{task.path.name} has no get_inputs()")

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the groups of inputs, or as many draws as there are cases asked for."""
        import torch

        module = self._module
        if not hasattr(module, "get_input_groups"):
            sizes = None
            if options.sizes == AUTO_SIZES:
                sizes = task_sizes(self._task.path, REDUCED_BYTES)
            if sizes is not None:
                yield from self._reduced(sizes, options)
                return
            if self._large(options):
                yield ReferenceCase("case 0", None, None, outcome=TOO_LARGE)
                return
        made_with = self._made_with(module)
        torch.manual_seed(SEED)
        model = self._called(module, "Model", *copied(made_with))
        torch.manual_seed(options.seed)
        for number, inputs in enumerate(self._groups(options.cases)):
            copies = copied(list(inputs))
            with torch.no_grad():
                expected = self._called(model, "Model.forward", *copies)
            name, keeps = f"case {number}", same(copies, list(inputs))
            yield ReferenceCase(name, list(inputs), expected, made_with, keeps_inputs=keeps)

    def _called(self, owner: object, name: str, *arguments: Any) -> Any:
        return called(self._task.path.name, owner, name, *arguments)

    def _made_with(self, module: ModuleType) -> list[Any]:
        if not hasattr(module, "get_init_inputs"):
            return []
        return self._listed("get_init_inputs", self._called(module, "get_init_inputs"))

    def _listed(self, name: str, value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            what = f"{self._task.path.name}: {name}"
            raise refuse(what, "return a list", type(value).__name__)
        return list(value)

    def _reduced(self, sizes: TaskSizes, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield a case with odd tails, and one with the remainders of the task's own sizes."""
        import torch

        self.full = sizes.full
        task = TaskModule(self._task.path)
        variants = [(ODD, sizes.odd, sizes.odd_cost), (ALIGNED, sizes.aligned, sizes.aligned_cost)]
        for name, values, cost in variants[-options.cases :]:
            if not values:
                continue
            sizes_record = {"variant": name, "numbers": task.changed(values), **cost}
            if cost["bytes"] > MOST_BYTES or cost["operations"] > MOST_OPERATIONS:
                yield ReferenceCase(name, None, None, outcome=TOO_LARGE, sizes=sizes_record)
                continue
            module = task.made(values)
            made_with = list(getattr(module, "get_init_inputs", list)())
            torch.manual_seed(SEED)
            model = module.Model(*copied(made_with))
            torch.manual_seed(options.seed)
            inputs = list(module.get_inputs())
            copies = copied(inputs)
            with torch.no_grad():
                expected = model(*copies)
            keeps = same(copies, inputs)
            yield ReferenceCase(
                name, inputs, expected, made_with, keeps_inputs=keeps, sizes=sizes_record
            )

    def sized(self) -> ReferenceCase:
        """Return the task's own sizes as a case: its tensors have shapes and types alone."""
        import torch

        with torch.device("meta"):
            made_with = list(getattr(self._module, "get_init_inputs", list)())
            return ReferenceCase(FULL, list(self._module.get_inputs()), None, made_with)

    def _large(self, options: JudgeOptions) -> bool:
        """Return whether a draw has too large a tensor; where only making it tells, False."""
        import torch

        try:
            with torch.device("meta"):
                inputs = self._module.get_inputs()
            tensors = [leaf for _, leaf in leaves(inputs) if hasattr(leaf, "element_size")]
        except Exception:  # noqa: BLE001 - the task's own code, which may need values
            return False
        sizes = (t.numel() * t.element_size() for t in tensors)
        return max(sizes, default=0) > options.cap_bytes

    def _groups(self, most: int) -> Iterator[Any]:
        groups = getattr(self._module, "get_input_groups", None)
        if groups is not None:
            yield from self._listed("get_input_groups", self._called(groups, "get_input_groups"))[
                :most
            ]
            return
        for _ in range(most):
            yield self._listed("get_inputs", self._called(self._module, "get_inputs"))

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare as the suites do: within 1e-4 + 1e-4 times the value, truth values exactly."""
        first = case.expected[0] if isinstance(case.expected, (list, tuple)) else case.expected
        if plain(first).dtype.kind == "b":
            return close(case.expected, got)
        return close(case.expected, got, _LIMIT, _LIMIT)

"""Costs of a task's model: the bytes of its arrays and its operations, without computing them."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cubecore.workflows.judge.tasks.comparison import leaves
from cubecore.workflows.judge.tasks.torch_modules import copied

_MOST_CALLS = 2000
UNCOUNTED = 1 << 62
"""Stands for the operations of a model that was not followed."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Bytes of inputs, weights and results, of the largest of these, and operations of products.

    `shapes` are those of the inputs and the results. A model of more than 2,000 calls of torch is
    not followed: its results are missing here, and its operations beyond any limit.
    """

    bytes: int
    largest: int
    operations: int
    shapes: tuple[tuple[int, ...], ...]


def model_cost(module: ModuleType) -> ModelCost:
    """Return what a task's model costs, on torch's meta device: shapes without values.

    Raises
    ------
    Exception
        Whatever the task raises: its model does not run at these sizes, or needs values.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    # A kernel that only the meta device lacks, and a model that reads a value, raise as well: the
    # caller cannot tell these from sizes that do not fit, but for the task's own sizes.
    with torch.device("meta"), torch.no_grad():
        model = module.Model(*copied(list(getattr(module, "get_init_inputs", list)())))
        inputs = module.get_inputs()
        counter = FlopCounterMode(display=False)
        try:
            with counter, _few_calls():
                results = model(*inputs)
        except _ManyCallsError:
            results = None
    arrays = [leaf for _, leaf in (*leaves(inputs), *leaves(results)) if _is_array(leaf)]
    sizes = [_bytes(each) for each in (*arrays, *_weights(model))]
    shapes = tuple(tuple(int(n) for n in each.shape) for each in arrays)
    operations = counter.get_total_flops() if results is not None else UNCOUNTED
    return ModelCost(sum(sizes), max(sizes, default=0), operations, shapes)


class _ManyCallsError(Exception):
    """A model calls more functions of torch than are worth following."""


def _few_calls() -> Any:
    """Return what ends a model after many calls of torch: a recurrent one has thousands."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):  # type: ignore[misc] # torch is an extra
        """Count the calls of an operator that torch dispatches."""

        def __init__(self) -> None:
            super().__init__()
            self.left = _MOST_CALLS

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.left -= 1
            if self.left < 0:
                raise _ManyCallsError
            return func(*args, **(kwargs or {}))

    return Counting()


def _is_array(value: Any) -> bool:
    return hasattr(value, "element_size")


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _weights(model: Any) -> list[Any]:
    parts = (getattr(model, name, None) for name in ("parameters", "buffers"))
    return [each for part in parts if part is not None for each in part()]


def runs(module: ModuleType) -> bool:
    """Return whether a task's model runs with values: an index may be beyond a smaller array."""
    import torch

    try:
        torch.manual_seed(0)
        model = module.Model(*copied(list(getattr(module, "get_init_inputs", list)())))
        with torch.no_grad():
            model(*module.get_inputs())
    except Exception:  # noqa: BLE001 - the task's own code, at sizes that it does not know
        return False
    return True

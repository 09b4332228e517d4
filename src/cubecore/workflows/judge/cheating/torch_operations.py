"""Computations of PyTorch while a model runs, which its kernels should have done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOVES = frozenset(
    (
        *("empty", "empty_like", "empty_strided", "new_empty", "detach", "view", "reshape", "t"),
        *("transpose", "permute", "expand", "squeeze", "unsqueeze", "select", "clone", "copy_"),
        *("to", "contiguous", "as_strided", "cat", "stack", "split", "chunk", "zeros", "ones"),
        *("zeros_like", "ones_like", "full", "full_like", "arange", "flatten", "unflatten"),
        *("rand", "randn", "uniform_", "normal_", "kaiming_uniform_", "fill_", "zero_", "narrow"),
        *("float", "half", "bfloat16", "int", "long", "double", "bool", "cpu", "npu", "cuda"),
        *("type", "view_as", "reshape_as", "expand_as", "movedim", "swapaxes", "pad", "flip"),
        *("tensor", "as_tensor", "from_numpy", "requires_grad_", "numpy", "data_ptr", "unbind"),
    )
)
"""Functions that move, convert or make values; all others compute."""


class Operations:
    """The functions that computed, each with the elements of its largest result."""

    def __init__(self) -> None:
        self.computed: dict[str, int] = {}


current = Operations()
"""Those of the call that runs, or ran last, in this process."""


@contextmanager
def noted() -> Iterator[None]:
    """Note the functions of PyTorch that the model calls inside."""
    from torch.overrides import TorchFunctionMode

    current.computed.clear()

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            __tracebackhide__ = True
            result = function(*args, **(kwargs or {}))
            name = getattr(function, "__name__", "")
            moves = name in _MOVES or name.startswith("__get")
            if not moves and hasattr(result, "numel") and result is not None:
                most = max(current.computed.get(name, 0), int(result.numel()))
                current.computed[name] = most
            return result

    with Mode():
        yield

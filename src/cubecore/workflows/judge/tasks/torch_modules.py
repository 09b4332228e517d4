"""Torch, which is an extra, and stand-ins for modules that only a machine with an NPU has."""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from cubecore.errors import unable

_NPU_MODULES = ("torch_npu", "torch_npu.contrib", "torch_npu.contrib.transfer_to_npu")


def require_torch() -> None:
    """Load torch for one thread.

    Raises
    ------
    RequestError
        If it is not installed.
    """
    if find_spec("torch") is None:
        remedy = "pip install torch, its CPU build"
        raise unable("torch", "the task needs torch, which is not installed", remedy)
    import torch

    torch.set_num_threads(1)


def load_torch() -> None:
    """Load torch, and what its first call without values loads: a second of a task's first sizes.

    Raises
    ------
    RequestError
        As `require_torch`.
    """
    require_torch()
    import torch

    torch.relu(torch.empty(1, device="meta"))


def stand_in() -> None:
    """Register what tasks import on a machine with an NPU, and let torch draw integers as there."""
    for name in _NPU_MODULES:
        sys.modules.setdefault(name, ModuleType(name))
    sys.modules["torch_npu.contrib"].__dict__["transfer_to_npu"] = None
    import torch

    if not hasattr(torch, "cubecore_draws"):
        torch.rand = _drawing(torch, torch.rand)
        torch.randn = _drawing(torch, torch.randn)
        torch.Tensor.uniform_ = _uniform(torch, torch.Tensor.uniform_)
        torch.cubecore_draws = True


def _drawing(torch: Any, draw: Any) -> Any:
    """Return a function that draws integers by rounding floats, which torch lacks on the CPU."""

    def drawn(*shape: Any, dtype: Any = None, **words: Any) -> Any:
        # Torch knows by identity which of its functions a `with torch.device` is for.
        __tracebackhide__ = True
        words.setdefault("device", torch.get_default_device())
        if dtype is None or dtype.is_floating_point or dtype.is_complex:
            return draw(*shape, dtype=dtype, **words)
        return draw(*shape, **words).to(dtype)

    return drawn


def _uniform(torch: Any, fill: Any) -> Any:
    def filled(tensor: Any, *bounds: float, **words: Any) -> Any:
        __tracebackhide__ = True
        if tensor.is_floating_point():
            return fill(tensor, *bounds, **words)
        return tensor.copy_(fill(torch.empty(tensor.shape), *bounds, **words))

    return filled


def copied(value: Any) -> Any:
    """Return a value with tensors of its own."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(each) for each in value)
    return value.clone() if hasattr(value, "clone") else value

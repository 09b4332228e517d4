"""Random inputs for kernels that a program builds and does not run."""

import numpy as np

from cubecore.arrays import Array
from cubecore.errors import unable
from cubecore.frontends.tik.host.kernel import TikKernel
from cubecore.frontends.tik.trace.tensor import Tensor

_LARGEST = 100
"""The largest whole number drawn."""


def random_inputs(kernel: TikKernel, seed: int = 0) -> dict[str, Array]:
    """Return an array for each input by name, the same ones for the same seed.

    Floats lie in [-1, 1), integers in [-100, 100], unsigned ones in [0, 100].

    Raises
    ------
    RequestError
        If the shape of a tensor is only given at launch.
    """
    rng = np.random.default_rng(seed)
    for tensor in (*kernel.inputs, *kernel.outputs, *kernel.others):
        if not all(isinstance(extent, int) for extent in tensor.shape):
            said = f"tensor {tensor.name} has a symbolic shape, for which no random input is drawn"
            raise unable(f"tensor {tensor.name}", said)
    return {tensor.name: _drawn(rng, tensor) for tensor in kernel.inputs}


def _drawn(rng: np.random.Generator, tensor: Tensor) -> Array:
    shape = tuple(int(extent) for extent in tensor.shape if isinstance(extent, int))
    if tensor.record.kind == "float":
        return rng.uniform(-1, 1, shape).astype(tensor.record.numpy)
    low = 0 if tensor.record.kind == "uint" else -_LARGEST
    return rng.integers(low, _LARGEST + 1, shape).astype(tensor.record.numpy)

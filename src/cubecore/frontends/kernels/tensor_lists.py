"""Lists of tensors: several arrays that a kernel takes as one argument."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.frontends.kernels.host_tensors import HostTensor, host_tensor

_WORD = 8


@dataclass(frozen=True, eq=False, slots=True)
class TensorList:
    """Arrays that a kernel takes as one argument: it is given the address of a description.

    The description begins with the bytes from there to the arrays' addresses. Between are the
    arrays' shapes: of each the dimensions and the array's index in 4 B each, and the extents in
    8 B each (page ListTensorDesc).
    """

    arrays: Sequence[object]

    def hosts(self, name: str) -> list[HostTensor]:
        """Return the arrays as tensors, the description last; addresses in it are 0.

        Raises
        ------
        RequestError
            If one of them cannot be a tensor of the chip.
        """
        found: list[HostTensor] = []
        for index, array in enumerate(self.arrays):
            host = host_tensor(self.element(name, index), array)
            assert host is not None
            found.append(host)
        words: list[int] = []
        for index, host in enumerate(found):
            words += (len(host.shape) | index << 32, *host.shape)
        whole = [_WORD * (1 + len(words)), *words, *(0 for _ in found)]
        description = host_tensor(name, np.array(whole, np.uint64))
        assert description is not None
        return [*found, description]

    def complete(
        self, name: str, description: NDArray[np.uint8], addresses: Mapping[str, int]
    ) -> None:
        """Write the arrays' addresses into the description."""
        words = description.view(np.uint64)
        for index in range(len(self.arrays)):
            words[len(words) - len(self.arrays) + index] = addresses[self.element(name, index)]

    @staticmethod
    def element(name: str, index: int) -> str:
        """Return the name that reports have for one of the arrays."""
        return f"{name}[{index}]"

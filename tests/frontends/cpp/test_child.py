"""The process of a launch: what Python itself cannot do there is one sentence."""

import mmap
import sys

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.child import MOST_MEMORY, answer_of


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's memory")
@pytest.mark.parametrize(
    "take",
    [
        lambda: np.zeros(2 * MOST_MEMORY, np.uint8).size,
        lambda: len(mmap.mmap(-1, 2 * MOST_MEMORY)),
    ],
)
def test_memory_that_python_lacks_is_told(take) -> None:
    with pytest.raises(CubecoreError) as raised:
        answer_of(take, "k.cpp")
    assert str(raised.value) == "the launch must run in 4 GiB of memory beside its tensors"

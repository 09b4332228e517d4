"""C++ examples and their Python twins: the same bytes, findings and instructions, and times."""

import numpy as np
import pytest

import cubecore
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler
from frontends.cpp.example_cases import BLOCKS, CASES, small

pytestmark = needs_compiler


def arrays(arguments):
    return [a for a in arguments if isinstance(a, np.ndarray)]


def launched(made, arguments, **options):
    """Return a launch, the bytes of its arrays, and its cycles."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    run = made.using(trace=True, **options)[BLOCKS](*own)
    return (
        run,
        [a.tobytes() for a in arrays(own)],
        times_of(run.kernel, (run,), 0).longest.timeline.cycles,
        own,
    )


@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.thinned(16)
def test_an_example_is_its_twin(case):
    file, name = case
    made = small(*case)
    for options in ({}, {"order": "late"}):
        module = cubecore.load(EXAMPLES / f"{file}.cpp", auto_sync=False)
        run, got, cycles, own = launched(module[name], made.arguments, **options)
        other, wanted, expected, _ = launched(made.twin, made.arguments, **options)
        assert (run.findings, other.findings) == ((), ())
        assert got == wanted
        assert abs(cycles / expected - 1) <= 0.02
    result, exact = arrays(own)[made.result].astype(np.float64), made.exact()
    assert np.allclose(
        result.flat[0] if np.ndim(exact) == 0 else result, exact, atol=2e-3, rtol=1e-3
    )

"""Traces folded into loops: unfolded again they are what was recorded; trees list the same."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.program.launch import TensorSpec
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Location, Loop
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.build.fold_trace import Folder
from cubecore.kernels.build.recorded_launch import RecordedTensor, Recording, recorded_launch

VADD = instruction_named("vadd")(dtype=element_type("float32"))
SUB = instruction_named("vsub")(dtype=element_type("float32"))
BLOCK = {"n_burst": 1, "len_burst": 8}
FETCH, STORE = CopyGmToUbuf(**BLOCK), CopyUbufToGm(**BLOCK)
UP, DOWN = (kind(src="MTE2", dst="V", event_id=0) for kind in (SetFlag, WaitFlag))


def trace_of(*steps):
    """Return the trace of (template, addresses, line)."""
    trace = InstructionTrace()
    for template, addresses, line in steps:
        trace.append(template, tuple(addresses), Location("k.py", line, "k"))
    return trace


def folded(trace):
    folder = Folder()
    return folder, folder.fold(trace)


def assert_unfolds(trace):
    folder, items = folded(trace)
    again = [
        (trace.templates[leaf.kind], bases, trace.locations[leaf.location])
        for leaf, bases in folder.unfold(items)
    ]
    assert again == list(trace)
    return items


def test_a_trace_gives_back_what_it_took():
    steps = [(VADD, (1, 2, 3), 7), (UP, (), 8), (VADD, (4, 5, 6), 7)]
    trace = trace_of(*steps)
    assert len(trace) == 3
    assert [(t, a, w.line) for t, a, w in trace] == steps
    assert (len(trace.templates), len(trace.locations)) == (2, 2)


def test_a_loop_with_even_steps_is_one_item():
    trace = trace_of(*((VADD, (256 * i, 0, 512), 3) for i in range(1000)))
    assert len(assert_unfolds(trace)) == 1


def test_nested_loops():
    steps = []
    for i in range(20):
        steps.append((FETCH, (0, 4096 * i), 2))
        for j in range(7):
            steps.extend([(VADD, (64 * j, 0, 0), 4), (UP, (), 5)])
        steps.append((DOWN, (), 6))
    assert len(assert_unfolds(trace_of(*steps))) == 1


def test_a_head_and_a_tail_that_differ():
    steps = [(SUB, (0, 0, 0), 1)]
    steps += [(VADD, (32 * i, 0, 0), 2) for i in range(50)]
    steps += [(SUB, (9, 9, 9), 3)]
    assert len(assert_unfolds(trace_of(*steps))) == 3


def test_uneven_steps_stay_apart():
    trace = trace_of(*((VADD, (32 * i * i, 0, 0), 2) for i in range(50)))
    assert len(assert_unfolds(trace)) > 10


def test_random_traces_come_back(drawn_seed):
    rng = np.random.default_rng(drawn_seed)
    for _ in range(60):
        steps = []
        for _ in range(int(rng.integers(1, 8))):
            body = [
                (VADD if rng.random() < 0.5 else SUB, rng.integers(0, 9, 3), int(rng.integers(3)))
                for _ in range(int(rng.integers(1, 4)))
            ]
            moves = rng.integers(0, 3, 3)
            for trip in range(int(rng.integers(1, 6))):
                steps += [(t, (a + trip * moves).tolist(), line) for t, a, line in body]
        assert_unfolds(trace_of(*steps))


def test_a_million_instructions_are_recorded_in_100_mb():
    trace = trace_of(*((VADD, (256, 0, 512), line % 50) for line in range(1000)))
    held = sum(a.itemsize * len(a) for a in (trace.kinds, trace.wheres, trace.addresses))
    assert held / len(trace) <= 100


# --- trees


def recording(core, offset, trips=5):
    steps = []
    for i in range(trips):
        steps += [
            (FETCH, (0, 4096 + offset + 256 * i), 1),
            (UP, (), 2),
            (DOWN, (), 3),
            (VADD, (0, 0, 512), 4),
            (STORE, (65536 + offset + 256 * i, 0), 5),
        ]
    return Recording(core, 1, trace_of(*steps))


TENSORS = [
    RecordedTensor(TensorSpec("a", 8192), 4096),
    RecordedTensor(TensorSpec("c", 8192, output=True), 65536),
]


def test_cores_that_differ_by_a_distance_share_a_tree():
    recordings = [recording(core, 1280 * core) for core in range(4)]
    launch = recorded_launch("k", TENSORS, recordings)
    assert len(launch.programs) == 1
    (loop,) = launch.programs[0].body
    assert isinstance(loop, Loop)
    bases = {"a": 4096, "c": 65536}
    for core, its in zip(launch.cores, recordings, strict=True):
        listed = list(core.program.listing(core.addresses(bases)))
        assert listed == [(t, a) for t, a, _ in its.trace]
        assert (core.core, core.sub) == (its.core, 1)
    assert launch.programs[0].is_uniform


def test_of_cores_that_differ_by_a_distance_one_is_folded(monkeypatch):
    folds = []
    fold = Folder.fold
    monkeypatch.setattr(Folder, "fold", lambda self, trace: folds.append(1) or fold(self, trace))
    recorded_launch("k", TENSORS, [recording(core, 1280 * core) for core in range(4)])
    assert len(folds) == 1


def test_a_loop_over_two_tensors_at_other_distances_has_a_tree_of_its_own():
    tensors = [
        RecordedTensor(TensorSpec("a", 512), 4096),
        RecordedTensor(TensorSpec("b", 4096, output=True), 4608),
    ]
    recordings = [
        Recording(core, 1, trace_of(*((FETCH, (0, address), 1) for address in addresses)))
        for core, addresses in enumerate([(4096, 4352, 4608, 4864), (4096, 4352, 4672, 4928)])
    ]
    launch = recorded_launch("k", tensors, recordings)
    for core, its in zip(launch.cores, recordings, strict=True):
        listed = list(core.program.listing(core.addresses({"a": 4096, "b": 4608})))
        assert listed == [(t, a) for t, a, _ in its.trace]


@pytest.mark.parametrize("other", [recording(1, 0, trips=4), recording(1, 32, trips=6)])
def test_cores_that_differ_otherwise_have_trees_of_their_own(other):
    launch = recorded_launch("k", TENSORS, [recording(0, 0), other])
    assert len(launch.programs) == 2
    for core, its in zip(launch.cores, [recording(0, 0), other], strict=True):
        listed = list(core.program.listing(core.addresses({"a": 4096, "c": 65536})))
        assert listed == [(t, a) for t, a, _ in its.trace]


def muls(value):
    return instruction_named("vmuls")(dtype=element_type("float32"), value=value)


def test_values_of_the_scalar_unit_keep_no_loop_apart_and_a_line_says_so():
    """Line 1 takes another value each time, line 2 always the same one."""
    steps = []
    for trip in range(9):
        steps += [(muls(trip), (0, 256 * trip), 1), (muls(5), (0, 256 * trip), 2)]
    recording = Recording(0, 1, trace_of(*steps))
    (loop,) = recorded_launch("k", TENSORS, [recording]).programs[0].body
    assert isinstance(loop, Loop)
    assert loop.trips.constant == 9
    assert [(issue.location.line, issue.varies) for issue in loop.body] == [(1, True), (2, False)]


def test_other_parameters_keep_instructions_apart():
    """A count that the mask takes decides the time: it is no value of a vector instruction."""
    mask = instruction_named("set_vector_mask")
    steps = [(mask(mask_high=0, mask_low=trip + 1), (), 1) for trip in range(4)]
    recording = Recording(0, 1, trace_of(*steps))
    issues = recorded_launch("k", TENSORS, [recording]).programs[0].issues
    assert [issue.template.mask_low for issue in issues] == [1, 2, 3, 4]

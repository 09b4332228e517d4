"""What engines prepare for every template, and templates as keys of what they prepared."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.vector.common.mask import MaskState
from cubecore.machine.memory.elements import Elements, elements, part

HALF, INT4 = element_type("float16"), element_type("int4")
ALL = 2**64 - 1


def vabs(high=ALL, low=ALL, **params):
    return instruction_named("vabs")(dtype=HALF, lanes=MaskState(high, low, counts=False), **params)


def test_everything_in_one_piece():
    found = elements(vabs(repeat=2), "src")
    assert found.offsets.shape == (2, 128)
    assert (found.active, found.first, found.span) == (None, 0, (0, 512))


def test_a_mask_lets_some_through():
    found = elements(vabs(high=0, low=0b1010_0000), "dst")
    assert found.through.tolist() == [5, 7]
    assert found.span == (10, 16)
    assert found.active is not None
    assert np.flatnonzero(found.active).tolist() == [5, 7]


def test_gaps_leave_no_first():
    """Every other block: from the first byte of block 0 to the last of block 14."""
    found = elements(vabs(src_block_stride=2), "src")
    assert (found.first, found.span) == (None, (0, 15 * 32))


def test_one_repeat_of_several():
    found = part(vabs(low=1, high=0, repeat=3, src_repeat_stride=9), "src", 2)
    assert found.offsets.shape == (1, 128)
    assert found.through.tolist() == [2 * 9 * 16]
    assert found.first == 288


@pytest.mark.parametrize(
    ("offsets", "element", "first", "span"),
    [
        ([3, 4, 5], HALF, 3, (6, 12)),
        ([5, 4, 3], HALF, None, (6, 12)),
        ([3, 3], HALF, None, (6, 8)),
        ([-1, 0, 1], HALF, None, (0, 4)),
        ([-2, -1], HALF, None, None),
        ([], HALF, None, None),
        ([2, 3], INT4, None, (1, 2)),
    ],
)
def test_first_and_span(offsets, element, first, span):
    """Fillers (below 0) and elements of half a byte are never a plain run of bytes."""
    found = Elements.of(np.array(offsets, np.intp), None, element)
    assert (found.first, found.span) == (first, span)


def test_a_template_is_the_same_key_in_another_process():
    """Its hash is kept, but does not travel: strings hash differently there."""
    text = (
        "import pickle, sys\n"
        "from cubecore.isa.scalar.sync import SetFlag\n"
        "flag = SetFlag(src='MTE2', dst='V', event_id=3)\n"
        "hash(flag)\n"
        "sys.stdout.buffer.write(pickle.dumps(flag))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, check=True, env=environment
    )
    own = instruction_named("set_flag")(src="MTE2", dst="V", event_id=3)
    assert {own: "found"}[pickle.loads(done.stdout)] == "found"

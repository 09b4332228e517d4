"""The signals that waits between cores are for, in a reader's words."""

import pytest

from cubecore.isa.scalar.sync import AwaitBlock, AwaitMessage, WaitFlagDev


@pytest.mark.parametrize(
    ("wait", "signal"),
    [
        (WaitFlagDev(flag_id=3), "flag 3"),
        (AwaitBlock(flag_id=128), "notice at GM 0x1000"),
        (AwaitMessage(flag_id=2**47 + 66), "message of the Matmul object"),
    ],
)
def test_a_wait_names_its_signal(wait, signal):
    assert wait.signal == signal

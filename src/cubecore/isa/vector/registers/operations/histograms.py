"""Histograms of bytes in a register (*Reg*, Histograms)."""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    RegisterOperation,
    declare,
    lanes,
    raw,
)

_BINS = REGISTER_BYTES // 2
"""Counts of 16 bits in a register."""


def _histogram(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    kind, half = call.mode.split(".")
    before = lanes(inputs[1], call.dtype)
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    shape = np.broadcast_shapes(inputs[0].shape, on.shape, (*before.shape[:-1], REGISTER_BYTES))
    values = np.broadcast_to(inputs[0], shape).reshape(-1, REGISTER_BYTES)
    active = np.broadcast_to(on, shape).reshape(-1, REGISTER_BYTES)
    counts = np.stack(
        [
            np.bincount(each[let], minlength=REGISTER_BYTES)
            for each, let in zip(values, active, strict=True)
        ]
    )
    if kind == "ACCUMULATE":
        counts = np.cumsum(counts, axis=-1)
    first = _BINS if half == "BIN1" else 0
    counts = counts[:, first : first + _BINS].reshape(*shape[:-1], _BINS)
    return (raw(before + counts.astype(before.dtype)),)


declare(
    RegisterOperation(
        name="Histograms",
        form=Form.HISTOGRAM,
        doc="Add to each lane of dst how many active bytes have its number, or one up to it",
        compute=_histogram,
        types=(),
        pairs=(("uint8", "uint16", ""),),
        cycles=(("", 8),),
        alone=True,
        by_lane=False,
        uncertain=("a cumulative count of the upper bin has the lower bin's bytes in it",),
    ),
)

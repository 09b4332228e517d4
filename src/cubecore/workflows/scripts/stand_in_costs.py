"""Times where no costs are published: another chip's costs, marked as such."""

from dataclasses import fields, replace

from cubecore.chips import chip
from cubecore.chips.model import Chip

STAND_IN = "Ascend910B3"
"""The chip whose costs stand for those of the earlier AI Cores: the nearest that was measured."""
_RATES = {
    "gm_to_ub_bytes_per_cycle": "l2_read_bytes_per_cycle",
    "gm_to_l1_bytes_per_cycle": "l2_read_bytes_per_cycle",
    "ub_to_gm_bytes_per_cycle": "ub_to_l2_bytes_per_cycle",
}
"""Costs that a configured rate of the chip's own gives."""


def rough_chip(unpriced: Chip) -> tuple[Chip, str]:
    """Return a chip with costs for one that has none, and a sentence that says so.

    Its sizes, clock, cores and configured rates are its own, unknown ones apart; every other cost
    is that of `STAND_IN`. What only the earlier cores have, but for their moves between L0C, L1 and
    UB, costs nothing.
    """
    stated = {f.name: getattr(unpriced, f.name) for f in fields(unpriced) if f.name != "arch"}
    stated = {name: value for name, value in stated.items() if value is not None}
    rates = {cost: stated[rate] for cost, rate in _RATES.items() if rate in stated}
    clock, cores, width = unpriced.frequency_hz, unpriced.aic_count, unpriced.ddr_bytes_per_cycle
    if clock and cores and width:
        rates["hbm_bytes_per_second"] = width * cores * clock
    said = (
        f"rough: no costs of {unpriced.name} are published; its own clock, cores and configured "
        f"rates were taken, and {STAND_IN}'s costs of instructions"
    )
    return replace(chip(STAND_IN), **(stated | rates)), said

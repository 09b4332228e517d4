"""Chips as frozen data: sizes, rates and cost constants, one TOML file per SoC."""

from cubecore.chips.catalog import chip, chip_names, expand_family
from cubecore.chips.model import Chip, Fact

__all__ = ["Chip", "Fact", "chip", "chip_names", "expand_family"]

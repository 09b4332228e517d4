"""Chips as frozen data: sizes, rates and cost constants, one TOML file per SoC."""

from cubecore.chips.catalog import (
    DEFAULT_CHIP,
    chip,
    chip_names,
    default_chip,
    expand_family,
    soc_name,
)
from cubecore.chips.model import Chip, Fact

__all__ = [
    "DEFAULT_CHIP",
    "Chip",
    "Fact",
    "chip",
    "chip_names",
    "default_chip",
    "expand_family",
    "soc_name",
]

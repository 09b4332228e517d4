"""Chips as frozen data: sizes, rates and cost constants, one TOML file per SoC."""

from cubecore.chips.catalog import (
    DEFAULT_CHIP,
    chip,
    chip_key,
    chip_names,
    default_chip,
    expand_family,
    is_chip,
    soc_name,
)
from cubecore.chips.chip_file import is_chip_file
from cubecore.chips.model import Chip, Fact

__all__ = [
    "DEFAULT_CHIP",
    "Chip",
    "Fact",
    "chip",
    "chip_key",
    "chip_names",
    "default_chip",
    "expand_family",
    "is_chip",
    "is_chip_file",
    "soc_name",
]

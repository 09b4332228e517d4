"""Topology of a launch: cores, their parts, and which of them receive a signal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cubecore.isa.declare.registers import (
    CROSS_CORE_FLAGS,
    FIRST_OF_PARTS,
    TO_ALL,
    TO_PART,
    TO_PARTNER,
    CorePosition,
)


class CoreId(NamedTuple):
    """A core and its part: sub 0 is the AIC, 1 and 2 its AIVs."""

    core: int
    sub: int = 0

    @property
    def is_aic(self) -> bool:
        """True if it is the Cube part."""
        return self.sub == 0

    def __str__(self) -> str:
        """Return ``core 3 AIC`` or ``core 3 AIV1``."""
        return f"core {self.core} " + ("AIC" if self.is_aic else f"AIV{self.sub - 1}")


@dataclass(frozen=True, slots=True)
class Topology:
    """The cores of a launch; modes are those of ffts_cross_core_sync (C API, synchronisation)."""

    cores: Sequence[CoreId]

    def peers(self, core: CoreId, mode: int) -> list[CoreId]:
        """Return the cores that must all signal before `mode`'s receivers may go on."""
        if mode in {TO_ALL, TO_PARTNER, TO_PART}:
            return [core]
        if mode == 0:
            return [c for c in self.cores if c.is_aic == core.is_aic]
        if mode == 1 or not core.is_aic:
            return [c for c in self.cores if c.core == core.core and not c.is_aic]
        return [core]

    def counters(self, core: CoreId, mode: int, counter: int) -> list[tuple[CoreId, int]]:
        """Return the cores whose counters go up, each with its counter's number there."""
        if mode != TO_PART:
            return [(receiver, counter) for receiver in self.receivers(core, mode)]
        # At the AIC the flags of AIV1 follow those of AIV0.
        part, flag = divmod(counter - FIRST_OF_PARTS, CROSS_CORE_FLAGS)
        if core.is_aic:
            to, there = CoreId(core.core, 1 + part), flag
        else:
            to, there = CoreId(core.core), flag + CROSS_CORE_FLAGS * (core.sub - 1)
        return [(to, FIRST_OF_PARTS + there)] if to in self.cores else []

    def receivers(self, core: CoreId, mode: int) -> list[CoreId]:
        """Return the cores whose counters go up, in a mode without flags of one part."""
        if mode == TO_ALL:
            return [c for c in self.cores if not c.is_aic]
        if mode in {2, TO_PARTNER}:
            return [c for c in self.cores if c.core == core.core and c.is_aic != core.is_aic]
        return self.peers(core, mode)

    def position(self, core: CoreId) -> CorePosition:
        """Return what a core knows of its launch; without an AIC every AIV is a block of its own.

        asc-devkit, GetBlockNum and GetSubBlockNum.
        """
        if not any(c.is_aic for c in self.cores):
            return CorePosition(sorted(self.cores).index(core), len(self.cores))
        blocks = sorted({c.core for c in self.cores})
        block = blocks.index(core.core)
        if core.is_aic:
            return CorePosition(block, len(blocks))
        parts = [c for c in self.cores if c.core == core.core and not c.is_aic]
        return CorePosition(block, len(blocks), sorted(parts).index(core), len(parts))

"""The grid of cores: the block of C that each core computes (D12)."""

from dataclasses import dataclass
from functools import lru_cache

from cubecore.chips import Chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import ceil_div


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """The share of one core, elements: rows from m0, columns from n0 of C, summed over K from k0.

    It does so for the matrices batch0, batch0 + batch_step, ...: `batches` of them.
    """

    core: int
    m0: int
    n0: int
    m_len: int
    n_len: int
    k0: int = 0
    k_len: int = 0
    batch0: int = 0
    batches: int = 1
    batch_step: int = 1

    def to_json(self) -> dict[str, int]:
        """Return the ten numbers."""
        return {name: getattr(self, name) for name in self.__slots__}


def batch_groups(problem: Problem, chip: Chip, used_cores: int) -> int:
    """Return how many matrices of a batch are computed at a time, by `used_cores` cores each."""
    return max(1, min(problem.batch, problem.core_count(chip) // max(used_cores, 1)))


def core_blocks(tiling: TCubeTiling, batch: int = 1, groups: int = 1) -> tuple[CoreBlock, ...]:
    """Return one record per core that has work, in the order of the cores.

    Block i is (i mod mBlocks, i div mBlocks mod nBlocks, i div mBlocks * nBlocks) of the grid of
    singleCoreM x singleCoreN x singleCoreK; the last of each axis is ragged. Cores beyond the grid
    are idle and have no record; with fewer cores than blocks (which the rules refuse) the
    remaining blocks have none either. A batch is dealt out to `groups` of usedCoreNum cores. The
    tiling's single-core sizes must be positive.
    """
    t = tiling
    extents, shares = (t.M, t.N, min(t.Ka, t.Kb)), (t.singleCoreM, t.singleCoreN, t.singleCoreK)
    return _blocks(extents, shares, t.usedCoreNum, batch, groups)


Axes = tuple[int, int, int]


@lru_cache(maxsize=64)
def _blocks(
    extents: Axes, shares: Axes, cores: int, batch: int, groups: int
) -> tuple[CoreBlock, ...]:
    """Return the records of a grid; tilings that differ inside of a core have the same."""
    (m, n, k), (m_share, n_share, k_share) = extents, shares
    m_blocks, n_blocks, k_blocks = ceil_div(m, m_share), ceil_div(n, n_share), ceil_div(k, k_share)
    used = min(cores, m_blocks * n_blocks * k_blocks)
    blocks = []
    for group in range(groups):
        # The index of a core in its group, read as a number of three digits: M's block changes
        # fastest, then N's, then K's. Neighbours so share columns of B.
        for index in range(used):
            m0 = index % m_blocks * m_share
            n0 = index // m_blocks % n_blocks * n_share
            k0 = index // (m_blocks * n_blocks) * k_share
            blocks.append(
                CoreBlock(
                    core=group * used + index,
                    m0=m0,
                    n0=n0,
                    m_len=min(m_share, m - m0),
                    n_len=min(n_share, n - n0),
                    k0=k0,
                    k_len=min(k_share, k - k0),
                    batch0=group,
                    batches=ceil_div(batch - group, groups),
                    batch_step=groups,
                )
            )
    return tuple(blocks)


def problem_blocks(problem: Problem, chip: Chip, tiling: TCubeTiling) -> tuple[CoreBlock, ...]:
    """Return the shares of all cores of a launch."""
    groups = batch_groups(problem, chip, tiling.usedCoreNum)
    return core_blocks(tiling, problem.batch, groups)

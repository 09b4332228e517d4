"""Which core computes which block of C (D12)."""

from dataclasses import asdict, dataclass

from cubecore.tiling.struct import TCubeTiling
from cubecore.units import ceil_div


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """The block of one core: rows m0 .. m0 + m_len and columns n0 .. n0 + n_len of C, elements."""

    core: int
    m0: int
    n0: int
    m_len: int
    n_len: int

    def to_json(self) -> dict[str, int]:
        """Return the five numbers."""
        return asdict(self)


def core_blocks(tiling: TCubeTiling) -> tuple[CoreBlock, ...]:
    """Return one record per core that has work, in the order of the cores.

    Block i is (i mod mBlocks, i div mBlocks) of the singleCoreM x singleCoreN grid over C; the last
    row and column of blocks are ragged. Cores beyond the grid are idle and have no record; with
    fewer cores than blocks (which the rules refuse) the remaining blocks have none either. The
    tiling's singleCoreM and singleCoreN must be positive.
    """
    m_blocks = ceil_div(tiling.M, tiling.singleCoreM)
    n_blocks = ceil_div(tiling.N, tiling.singleCoreN)
    blocks = []
    for core in range(min(tiling.usedCoreNum, m_blocks * n_blocks)):
        m0 = core % m_blocks * tiling.singleCoreM
        n0 = core // m_blocks * tiling.singleCoreN
        m_len = min(tiling.singleCoreM, tiling.M - m0)
        n_len = min(tiling.singleCoreN, tiling.N - n0)
        blocks.append(CoreBlock(core, m0, n0, m_len, n_len))
    return tuple(blocks)

"""The 64 largest of each row of 2048 floats, with their places, by sorting.

A record holds a score and its place. A row is sorted in groups of 32 by one instruction; groups are
merged four at a time: 64 groups of 32 to 16 of 128, and from there on only the first 64 of each
queue, since no other can be among the 64 largest. Last the scores and the places are gathered from
the records, which hold them in turn.

Blocks (AIVs) take rows in turn, two buffers each. Shapes: x is [rows, 2048]; places is [2048], the
numbers that records carry along: 0, 1, 2 ...; scores and picks are [rows, 64].
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

COLUMNS = 2048
K = 64
GROUP = 32
QUEUE = 4 * GROUP
WORDS = 2  # of a record
SLOTS = (0, 1)
EVERY_FIRST, EVERY_SECOND = 1, 2  # patterns of asc_reduce
Scores = NDArray[np.float32]
Places = NDArray[np.uint32]
TYPES = {"x": "float", "places": "uint32", "scores": "float", "picks": "uint32"}


@kernel(outputs=("scores", "picks"), types=TYPES)
def top_k(
    core: CoreHandle, x: Pointer, places: Pointer, scores: Pointer, picks: Pointer, rows: int
) -> None:
    """Find the largest of every block_num-th row."""
    row_at = [core.ubuf("float", COLUMNS) for _ in SLOTS]
    place = core.ubuf("uint32", COLUMNS)
    groups, queues = (core.ubuf("float", WORDS * COLUMNS) for _ in range(2))
    halfway, merged = core.ubuf("float", 4 * WORDS * 4 * K), core.ubuf("float", WORDS * 4 * K)
    score, pick = ([core.ubuf("uint32", K) for _ in SLOTS] for _ in range(2))
    core.asc_copy_gm2ub(place, places, 4 * COLUMNS)
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for turn, row in enumerate(range(core.block_idx, rows, core.block_num)):
        slot = turn % 2
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(row_at[slot], x + row * COLUMNS, 4 * COLUMNS)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_bitsort(groups, row_at[slot], place, COLUMNS // GROUP)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_pipe("PIPE_V")
        four = [groups + WORDS * GROUP * i for i in range(4)]
        core.asc_mrgsort4(queues, four, COLUMNS // QUEUE, [GROUP] * 4, False, 15)
        core.asc_sync_pipe("PIPE_V")
        for part in range(4):
            four = [queues + WORDS * QUEUE * (4 * part + i) for i in range(4)]
            core.asc_mrgsort4(halfway + WORDS * 4 * K * part, four, 1, [K] * 4, False, 15)
        core.asc_sync_pipe("PIPE_V")
        four = [halfway + WORDS * 4 * K * i for i in range(4)]
        core.asc_mrgsort4(merged, four, 1, [K] * 4, False, 15)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        words = merged.cast("uint32")
        core.asc_reduce(score[slot], words, words, WORDS * K // 64, 1, EVERY_FIRST, 8, 0)
        core.asc_reduce(pick[slot], words, words, WORDS * K // 64, 1, EVERY_SECOND, 8, 0)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(scores + row * K, score[slot], 4 * K)
        core.asc_copy_ub2gm(picks + row * K, pick[slot], 4 * K)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (top_k,)


def inputs(rows: int, seed: int = 1) -> tuple[Scores]:
    """Return x, [rows, 2048]: in each row all scores differ, since ties have no stated order."""
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(COLUMNS), (rows, 1)), axis=1)
    return ((ranks - COLUMNS / 2 + rng.random((rows, 1)) / 2).astype(np.float32),)


def small() -> tuple[Scores]:
    """Return an input that is quick to try: three rows for each of two blocks."""
    return inputs(6)


def launch(x: Scores, blocks: int = 2) -> tuple[Scores, Places]:
    """Return the largest scores of each row, from the largest down, and where they stand."""
    scores, picks = np.empty((len(x), K), np.float32), np.empty((len(x), K), np.uint32)
    top_k[blocks](x, np.arange(COLUMNS, dtype=np.uint32), scores, picks, len(x))
    return scores, picks


def reference(x: Scores) -> tuple[NDArray[np.float64], ...]:
    """Return the same by a full sort."""
    picks = np.argsort(-x, axis=1)[:, :K]
    return np.take_along_axis(x, picks, axis=1).astype(np.float64), picks.astype(np.float64)


def tolerance(x: Scores) -> tuple[NDArray[np.float64], ...]:
    """Return no tolerance: nothing is computed."""
    return np.zeros((len(x), K)), np.zeros((len(x), K))


def main() -> None:
    """Find the largest of 160 rows on 40 blocks."""
    (x,) = inputs(160)
    for got, want in zip(launch(x, 40), reference(x), strict=True):
        assert (got == want).all(), f"{(got != want).sum()} of {got.size} are others"
    print(f"the {K} largest of {COLUMNS:,} in each of {len(x)} rows")


if __name__ == "__main__":
    main()

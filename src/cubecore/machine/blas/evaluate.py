"""Computing proven stores: sums of matmuls of blocks by BLAS, and their bytes in global memory."""

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.machine.blas.block_products import (
    EXACT_FLOAT32_BITS,
    Block,
    Leftover,
    ProductSum,
    fits_int32,
    product_bound,
)
from cubecore.machine.blas.operand_cache import OperandCache, row_values
from cubecore.machine.blas.stores import ProvenStore
from cubecore.machine.memory.buffers import POISON_BYTE
from cubecore.numerics import saturate
from cubecore.numerics.quantisation import atomic
from cubecore.units import FRACTAL_ROWS, distinct

Known = NDArray[np.bool_] | None
"""The elements written in L0C; None: all."""


def computed(store: ProvenStore, core: int, cache: OperandCache) -> tuple[Array, Known]:
    """Return what one core stores, [m, n] in the target's type."""
    total, defined = _sum(store.tile, core, cache)[: store.m, : store.n], None
    # A store may take whole columns of fractals where the tile's n is not a multiple of 16: the
    # lanes behind n are older tiles', or were never written.
    if total.shape != (store.m, store.n):
        whole = np.full((store.m, store.n * total.itemsize), POISON_BYTE, np.uint8)
        whole = whole.view(total.dtype)
        defined = np.zeros(whole.shape, bool)
        whole[:, : total.shape[1]], defined[:, : total.shape[1]] = total, True
        for leftover in store.leftovers:
            _add_leftover(whole, leftover, core, cache)
            defined[leftover.rows, leftover.columns] = True
        total, scratch = whole, store.tensor.scratch
        padding = store.template.padding(defined, whole=scratch)
        if padding is not None:
            defined |= padding[0]
    inputs = {"src": total}
    if store.scales is not None:
        inputs["scales"] = row_values(store.scales, core)[: store.n]
    return store.template.compute(inputs, store.registers)["dst"], defined


def commit(store: ProvenStore, core: int, values: Array, defined: Known) -> None:
    """Write what one core stores, and which elements are initialised by that."""
    buffer, kind = store.tensor.buffer, store.target.kind
    size = kind.size_bytes
    for columns, panel in store.located(buffer.data.view(kind.numpy), core):
        values_of_panel = _by_panel(values[:, columns], panel.shape)
        if store.atomic:
            finite = not store.registers.float_ieee
            values_of_panel = atomic(store.atomic, panel, values_of_panel, finite=finite)
        panel[...] = values_of_panel
    if store.atomic:
        return  # all of it was initialised, and is
    whole = np.ones(size, np.uint8).view(f"u{size}")[0]
    for columns, panel in store.located(buffer.valid.view(f"u{size}"), core):
        panel[...] = (
            whole if defined is None else _by_panel(defined[:, columns], panel.shape) * whole
        )


def _by_panel(values: Array, shape: tuple[int, ...]) -> Array:
    """Return [m, columns] as [columns of fractals, m, columns in one]."""
    groups, m, wide = shape
    return values.reshape(m, groups, wide).transpose(1, 0, 2)


def _add_leftover(total: Array, leftover: Leftover, core: int, cache: OperandCache) -> None:
    """Fill in the lanes of an older tile: 16 columns of it at a time are computed again."""
    groups = leftover.tile_columns // FRACTAL_ROWS
    for group in distinct(groups):
        first = int(group) * FRACTAL_ROWS
        values = _sum(leftover.tile.columns(first), core, cache)
        here = groups == group
        lanes = values[leftover.tile_rows[here], leftover.tile_columns[here] - first]
        total[leftover.rows[here], leftover.columns[here]] = lanes


def _sum(tile: ProductSum, core: int, cache: OperandCache) -> Array:
    """Return start + sum of matmuls, [m, n]."""
    bias = None if tile.bias is None else row_values(tile.bias, core)[: tile.n]
    integer = tile.kind.kind == "int"
    return (_integer_sum if integer else _float_sum)(tile, bias, core, cache)


def _float_sum(tile: ProductSum, bias: Array | None, core: int, cache: OperandCache) -> Array:
    """Return the sum in float32; BLAS chooses the order within each matmul.

    Products with scales too far for float32 are made in float64.
    """
    total: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in tile.terms:
            product = _rows(a, tile.m, core, cache) @ cache.factor(b, core).T
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None
        if bias is not None:
            total += bias.astype(np.float32)
        return total.astype(np.float32, copy=False)


def _integer_sum(tile: ProductSum, bias: Array | None, core: int, cache: OperandCache) -> Array:
    """Return the sum as int32, clamped after each matmul that may leave its range.

    Parts of K are exact in float32.
    """
    total = np.zeros((tile.m, tile.n), np.int32)
    if bias is not None:
        total += bias
    largest = tile.largest - sum(product_bound(a, b) for a, b in tile.terms)
    for a, b in tile.terms:
        largest += product_bound(a, b)
        left, right = _rows(a, tile.m, core, cache), cache.values(b, core)
        # int8 products have 14 bits, so sums of 2^10 of them are exact in float32, where BLAS is
        # fast.
        exact = 1 << (EXACT_FLOAT32_BITS - (a.kind.bits - 1) - (b.kind.bits - 1))
        parts = (slice(k, k + exact) for k in range(0, a.k, exact))
        pieces = (left[:, part] @ right[:, part].T for part in parts)
        if fits_int32(largest):
            for piece in pieces:
                total += piece.astype(np.int32)
        else:
            # As `mad` does: each matmul of L0 is summed in full and clamped once.
            wide = total.astype(np.int64)
            for piece in pieces:
                wide += piece.astype(np.int64)
            total = saturate(wide, tile.kind)
    return total


def _rows(a: Block, m: int, core: int, cache: OperandCache) -> Array:
    """Return the block's [r, k] with rows of zeros up to m."""
    values = cache.factor(a, core)
    return values if a.r == m else np.pad(values, ((0, m - a.r), (0, 0)))

"""The order in which the cores of attention go over blocks of keys.

AIC and AIVs walk the same steps: Q K_j^T and P_j of a block, and the product of P_j and V_j of one
before it. S_{j+1} comes before O_j: while one side makes P_j the other one multiplies. The order is
S_0, (S_1, O_0), (S_2, O_1), ..., O_last, with `ahead` of 2 S_0, S_1, (S_2, O_0), ...
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.operators.attention.shape import AttentionShape


class KeyStep(NamedTuple):
    """A step: the scores of a block of `keys` keys, or the `values` that its P_j gives.

    `number` is the block's among those of the rows. It is `before` the loop, in a slot of its own
    number, or as many blocks ahead of the one whose values are next as `ahead` says. `diagonal`:
    the mask leaves out some of its keys.
    """

    values: bool
    keys: int
    number: Expr = Expr(0)
    before: bool = False
    diagonal: bool = False
    ahead: int = 0

    def turn(self, next_values: Expr, slots: int) -> Expr:
        """Return the slot of its scores, where `next_values` is that of the next values."""
        return (self.number if self.before else next_values + self.ahead) % slots


def key_steps(builder: Builder, shape: AttentionShape, row_block: Expr) -> Iterator[KeyStep]:
    """Yield the steps of a block of rows; the body of the ``for`` statement is built for each."""
    if shape.causal:
        yield from _MaskedSteps(builder, shape, row_block).steps()
        return
    blocks, ahead = shape.blocks, min(shape.ahead, len(shape.blocks))
    for number in range(ahead):
        yield KeyStep(values=False, keys=blocks[number], number=Expr(number), before=True)
    behind = len(blocks) - ahead
    # All blocks but the last are equal: where that one is shorter, its turn is not in the loop.
    short = bool(behind) and blocks[-1] != shape.block
    with builder.loop("keys", behind - short) as block:
        yield KeyStep(values=False, keys=shape.block, number=block + ahead, ahead=ahead)
        yield KeyStep(values=True, keys=shape.block)
    if short:
        last = Expr(len(blocks) - 1)
        yield KeyStep(values=False, keys=blocks[-1], number=last, ahead=ahead)
        yield KeyStep(values=True, keys=shape.block)
    for keys in blocks[behind:]:
        yield KeyStep(values=True, keys=keys)


class _MaskedSteps:
    """The steps where rows see the keys up to their own: how many blocks depends on the rows.

    Blocks of keys beyond the diagonal are left out. The last one of a block of rows ends on the
    diagonal; of the lengths that it may have each has a branch.
    """

    def __init__(self, builder: Builder, shape: AttentionShape, row_block: Expr) -> None:
        self.builder, self.shape = builder, shape
        rows = [row_block.constant] if row_block.constant is not None else range(shape.row_blocks)
        self.counts = {shape.key_blocks(each) for each in rows}
        self.lengths = sorted(
            {shape.visible(each) - (shape.key_blocks(each) - 1) * shape.block for each in rows}
        )
        seen = row_block * shape.stored_rows + shape.visible(0)
        self.count = (seen + (shape.block - 1)) // shape.block
        self.last = seen - (self.count - 1) * shape.block

    def steps(self) -> Iterator[KeyStep]:
        """Yield the steps."""
        # The same pipeline as without a mask, but its length is known to the scalar unit alone:
        # steps that a short one lacks stand in branches, and the last block behind the loop.
        ahead, block = self.shape.ahead, self.shape.block
        for number in range(ahead):
            for final in self._present(number):
                yield from self._scores(Expr(number), final=final, before=True)
        with self.builder.loop("keys", self._more_than(ahead + 1)) as index:
            yield from self._scores(index + ahead, final=False)
            yield KeyStep(values=True, keys=block)
        if max(self.counts) > ahead:
            with self.builder.when(self.count, ">", ahead):
                yield from self._scores(self.count - 1, final=True)
                yield KeyStep(values=True, keys=block)
        for number in range(ahead):
            for final in self._present(number):
                if final or number + 1 == ahead:
                    yield from self._of_length(KeyStep(values=True, keys=block))
                else:
                    yield KeyStep(values=True, keys=block)

    def _more_than(self, blocks: int) -> Expr:
        """Return how many more blocks there are than so many."""
        if max(self.counts) <= blocks:
            return Expr(0)
        more = self.count - blocks
        return more if min(self.counts) >= blocks else more.maximum(0)

    def _present(self, number: int) -> Iterator[bool]:
        """Yield, where there is a block of a number, whether it is the last one."""
        if max(self.counts) <= number:
            return
        always = min(self.counts) > number
        with nullcontext() if always else self.builder.when(self.count, ">", number):
            if min(self.counts) > number + 1:
                yield False
            elif max(self.counts) == number + 1:
                yield True
            else:
                yield from self.builder.choose(self.count, "==", number + 1)

    def _scores(self, number: Expr, *, final: bool, before: bool = False) -> Iterator[KeyStep]:
        ahead = self.shape.ahead
        step = KeyStep(False, self.shape.block, number, before, final, ahead)
        yield from self._of_length(step) if final else (step,)

    def _of_length(self, step: KeyStep) -> Iterator[KeyStep]:
        """Yield the step of a last block for each length that it may have."""
        if len(self.lengths) == 1:
            yield step._replace(keys=self.lengths[0])
            return
        for keys in self.lengths:
            with self.builder.when(self.last, "==", keys):
                yield step._replace(keys=keys)

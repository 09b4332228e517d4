"""Bank conflicts of the Unified Buffer, from the addresses of a vector instruction.

Blocks of 32 bytes lie in bank groups in turn. A group gives one block a cycle to the readers, and
takes one from the writer; a repeat takes as many cycles as its busiest group has blocks (published:
1000 Adds at addresses in the same and in different groups; asc-devkit, bank conflicts on UB).
"""

from collections import Counter
from functools import lru_cache

from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Issue
from cubecore.units import DATA_BLOCK_BYTES


def conflict_factor(issue: Issue, template: Instruction, groups: int | None) -> int:
    """Return how many times longer each repeat takes; 1 where addresses are not known enough."""
    operands = template.operands()
    in_buffer = all(operand.mem is Mem.UB for operand in operands)
    if not groups or not template.in_repeats or not in_buffer or len(operands) < 2:
        return 1
    if len(issue.addresses) != len(operands):  # address registers hold some
        return 1
    cycle = groups * DATA_BLOCK_BYTES
    remainders: list[tuple[int, int]] = []
    for address in issue.addresses:
        remainder = _remainder(address, cycle)
        if remainder is None:
            return 1
        # Operands at one address share its blocks, others do not.
        remainders.append((issue.addresses.index(address), remainder))
    return _factor(template, tuple(remainders), groups)


def _remainder(address: Expr, cycle: int) -> int | None:
    if any(factor % cycle for _, factor in address.terms):
        return None
    return address.const % cycle


@lru_cache(maxsize=4096)
def _factor(template: Instruction, remainders: tuple[tuple[int, int], ...], groups: int) -> int:
    reads: set[tuple[int, int]] = set()
    most = 1
    for operand, (array, remainder) in zip(template.operands(), remainders, strict=True):
        blocks = {(array, block) for block in _blocks(template, operand, remainder)}
        if operand.access.reads:
            reads |= blocks
        if operand.access.writes:
            most = max(most, _busiest(blocks, groups))
    return max(most, _busiest(reads, groups))


def _blocks(template: Instruction, operand: Operand, remainder: int) -> set[int]:
    """Return the blocks of the first repeat."""
    offsets = template.offsets(operand.name)
    if not offsets.size:
        return set()
    size = template.element(operand).size_bytes
    return {(remainder + int(offset) * size) // DATA_BLOCK_BYTES for offset in offsets[0]}


def _busiest(blocks: set[tuple[int, int]], groups: int) -> int:
    return max(Counter(block % groups for _, block in blocks).values(), default=0)

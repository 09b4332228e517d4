"""Bank conflicts against a count over every byte that a repeat touches."""

from collections import Counter
from itertools import product

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Issue
from cubecore.kernels.elementwise import vector_instruction
from cubecore.timing.pipes.bank_conflicts import conflict_factor
from timing.clock import HERE, busy, clock_of

GROUPS = 16
WORD = element_type("float32")
VADD = vector_instruction("vadd", WORD, 4)
PLACES = [*(i * 32 for i in (0, 1, 7, 8, 15)), 512, 0x10000, 0x10100, 0x4000]


def leaf(template, *addresses):
    return Issue(template, tuple(Expr.of(a) for a in addresses), HERE)


def busiest(addresses):
    """Blocks of 32 B of whole repeats at distinct addresses, over the bank groups."""
    blocks = {(a, (a + byte) // 32) for a in addresses for byte in range(256)}
    return max(Counter(block % GROUPS for _, block in blocks).values())


@pytest.mark.parametrize("dst", PLACES)
def test_reads_meet_in_a_group_and_writes_do_not_meet_reads(dst):
    for src0, src1 in product(PLACES, PLACES):
        want = max(busiest([src0, src1]), busiest([dst]))
        assert conflict_factor(leaf(VADD, dst, src0, src1), VADD, GROUPS) == want, (src0, src1)


def test_strides_count():
    """Eight blocks of 16 groups apart all lie in one group."""
    kinds = instruction_named("vadd")
    spread = kinds(dtype=WORD, repeat=1, src0_block_stride=GROUPS)
    assert conflict_factor(leaf(spread, 0, 0, 0x10000), spread, GROUPS) == 9
    assert conflict_factor(leaf(spread, 0, 0, 0), spread, GROUPS) == 8


def test_an_address_that_loops_whole_cycles_on_is_known_and_another_is_not():
    i = Var("i", 0)
    for step, want in ((512, 2), (256, 1)):
        issue = leaf(VADD, 0x10000, Expr.of(i) * step, 0x4000)
        assert conflict_factor(issue, VADD, GROUPS) == want


def test_a_chip_without_stated_groups_has_no_conflicts():
    assert conflict_factor(leaf(VADD, 0, 0, 512), VADD, None) == 1


def test_a_conflict_doubles_the_repeats_and_not_the_head():
    apart, meets = (busy(clock_of(leaf(VADD, 0x8000, 0, src1)))["V"] for src1 in (0x10100, 0x4000))
    assert meets - apart == 4

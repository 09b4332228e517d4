"""What may be wrong with one leaf of a kernel's tree, and both engines on a kernel that has it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from cubecore.chips import Chip
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Issue
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.isa.scalar.sync import Sync
from harness import Array
from kernels.broken import changed, leaves
from machine.agreement import assert_agree

Changes = Mapping[str, Callable[[Issue], Issue | None]]
"""By its name what is done to a leaf; the same leaf, where it says nothing of it."""


def moved(amount: int, place: int) -> Callable[[Issue], Issue]:
    def change(leaf):
        at = list(leaf.addresses)
        if place >= len(at):
            return leaf
        at[place] = at[place] + amount
        return replace(leaf, addresses=tuple(at))

    return change


def longer(field: str, amount: int, least: int = 0) -> Callable[[Issue], Issue]:
    """Change a parameter of the instructions that have it, where it stays at least `least`."""

    def change(leaf):
        value = getattr(leaf.template, field, None)
        if value is None or isinstance(value, bool) or value + amount < least:
            return leaf
        return replace(leaf, template=replace(leaf.template, **{field: value + amount}))

    return change


def flipped(field: str) -> Callable[[Issue], Issue]:
    def change(leaf):
        if not hasattr(leaf.template, field):
            return leaf
        template = replace(leaf.template, **{field: not getattr(leaf.template, field)})
        alike = len(template.operands()) == len(leaf.addresses)
        return replace(leaf, template=template) if alike else leaf

    return change


SHORTER = (
    *("n_value", "d_value", "repeat", "m", "n", "k", "m_size", "n_size", "n_burst", "len_burst"),
    *("src_stride", "dst_stride", "src_d_value", "dst_nz_c0_stride"),
)
LONGER = ("src_gap", "dst_gap", "dst_frac_gap", "index_id", "start_index", "src_stride")
FLAGS = ("k_direction_align", "relu_pre", "nz2nd_en", "decrement", "enable", "c_matrix_init_val")
CHANGES: Changes = (
    {"dropped": lambda _: None}
    | {f"operand {i} {n} B on": moved(n, i) for i in range(3) for n in (32, 512, 1024)}
    | {f"{name} less 1": longer(name, -1, 1) for name in SHORTER}
    | {f"{name} less 16": longer(name, -16, 1) for name in ("n_size", "d_value", "k")}
    | {f"{name} more by 1": longer(name, 1) for name in LONGER}
    | {f"{name} flipped": flipped(name) for name in FLAGS}
)


def ways(launch: Launch, changes: Changes) -> list[tuple[str, int]]:
    """Return every (change, number of the leaf) that changes something."""
    return [
        (change, number)
        for number, leaf in enumerate(leaves(launch))
        if not isinstance(leaf.template, Sync | ScalarWork)
        for change, alter in changes.items()
        if alter(leaf) is not leaf
    ]


def assert_broken_agrees(
    intact: tuple[Launch, Mapping[str, Array]], changes: Changes, way: tuple[str, int], on: Chip
) -> None:
    """Run a launch and its operands on both engines, one leaf changed."""
    (launch, operands), (change, number) = intact, way
    count = iter(range(100_000))

    def alter(leaf: Issue) -> Issue | None:
        return changes[change](leaf) if next(count) == number else leaf

    leaf = leaves(launch)[number]
    told = f"{change}, {leaf.template} at {leaf.location} (leaf {number})"
    assert_agree(changed(launch, alter), operands, told, on)

"""Unit flags: an exhaustive comparison with two queues that wait for flags, and what is said."""

from itertools import product

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.scale_registers import SetFpc
from cubecore.machine.memory.buffers import GlobalMemory
from machine.sanitize.test_racecheck import AIC, barrier, check

HALF, WORD = element_type("float16"), element_type("float32")
TILE_BYTES = 1024


def mad(tile, flag, n=16):
    template = Mad(a_type=HALF, b_type=HALF, c_type=WORD, m=16, k=16, n=n, unit_flag=flag)
    return template, tile * TILE_BYTES, 0, 0


def fix(tile, flag, n=16):
    template = CopyMatrixCcToGm(
        src_type=WORD,
        n_size=n,
        m_size=16,
        dst_stride=n,
        src_stride=16,
        nz2nd_en=True,
        unit_flag=flag,
    )
    return template, PLACE.address, tile * TILE_BYTES


GM = GlobalMemory()
PLACE = GM.allocate("c", 4096, zeroed=True)


def said(program, checks=frozenset({"synccheck"})):
    return [
        (f.id, f.location.line, f.message)
        for f in check(program, gm=GM, sub=AIC, checks=checks).findings
    ]


def hands_over(steps):
    """Let two queues run as the flags allow; say whether they end, as the program orders them.

    A step is (queue, tile, flag). A queue's first step goes when its tile's flag is down (M) or up
    (FIX), and turns it with 3.
    """
    queues = {name: [s for s in enumerate(steps) if s[1][0] == name] for name in ("M", "FIX")}
    up, done = {}, []
    while True:
        able = [
            name
            for name, queue in queues.items()
            if queue and up.get(queue[0][1][1], False) == (name == "FIX")
        ]
        if not able:
            break
        number, (_, tile, flag) = queues[able[0]].pop(0)
        done.append((tile, number))
        if flag == 3:
            up[tile] = not up.get(tile, False)
    ordered = all(
        [n for t, n in done if t == tile] == sorted(n for t, n in done if t == tile)
        for tile in (0, 1)
    )
    return not any(queues.values()) and ordered and not any(up.values())


STEPS = list(product(("M", "FIX"), (0, 1), (2, 3)))
FEW = [step for step in STEPS if step[1] == 0]


@pytest.mark.parametrize(
    ("steps", "length"), [(STEPS, 3), (FEW, 4), pytest.param(FEW, 5, marks=pytest.mark.sweep)]
)
def test_every_short_program(steps, length):
    right = 0
    for program in product(steps, repeat=length):
        issued = [(mad if queue == "M" else fix)(tile, flag) for queue, tile, flag in program]
        right += hands_over(program)
        assert bool(said(issued)) != hands_over(program), program
    assert right


def test_what_is_said():
    assert said([mad(1, 2), fix(1, 3)]) == [
        (
            "flag-unmet",
            2,
            "the unit flag of bytes [1024, 1536) of L0C is not set when copy_matrix_cc_to_gm "
            "shares the tile; give the last product on the tile unit_flag 3",
        )
    ]
    assert said([mad(1, 3), mad(0, 2, n=32), fix(1, 3)]) == [
        (
            "flag-doubled",
            2,
            "the unit flag of bytes [1024, 1536) of L0C is still set when mad shares the tile "
            "again, since k.py:1 (kernel); let fixpipe clear it with unit_flag 3",
        )
    ]
    assert said([mad(0, 3, n=48), fix(0, 3), fix(1, 2)]) == [
        (
            "flag-leaked",
            1,
            "the unit flag of bytes [1024, 1536) of L0C is still set at the end, since k.py:1 "
            "(kernel); let fixpipe clear it with unit_flag 3",
        )
    ]


def test_who_is_not_judged():
    """Another check; flags that somebody resets; what does not share them."""
    assert said([mad(0, 2), fix(0, 3)], frozenset({"racecheck"})) == []
    reset = (SetFpc(scales_at=0, reset_unit_flags=True),)
    assert said([reset, mad(0, 3)]) == []
    assert said([mad(0, 0), barrier(), fix(0, 0)]) == []


@pytest.mark.parametrize("other", [0, 1])
def test_every_fractal_of_a_tile_counts(other):
    """A tile of two fractals, of which the flag of one alone is down, or up."""
    first = 1024 * (1 - other)
    assert said([mad(other, 3), fix(0, 3, n=32)])[0] == (
        "flag-unmet",
        2,
        f"the unit flag of bytes [{first}, {first + 512}) of L0C is not set when "
        "copy_matrix_cc_to_gm shares the tile; give the last product on the tile unit_flag 3",
    )
    assert [f[:2] for f in said([mad(other, 3), mad(0, 2, n=32)])] == [
        ("flag-doubled", 2),
        ("flag-leaked", 1),
    ]

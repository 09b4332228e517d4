"""Filling: which elements copies write beyond the data that they were asked for."""

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction

FLOAT, HALF = element_type("float32"), element_type("float16")
ALIGN, ALIGN_3510 = "copy_gm_to_ubuf_align", "copy_gm_to_ubuf_align_v2"


def filling(name: str, **parameters: object) -> tuple[list[int], str] | None:
    """Return the bytes of UB or elements of L1 that are filling, and what they lie behind."""
    template = instructions()[name](**parameters)  # type: ignore[call-arg]
    filled = template.filling()
    if filled is None:
        return None
    chosen, behind = filled
    offsets = template.offsets("dst")
    assert chosen.shape == offsets.shape
    return sorted(offsets[chosen].tolist()), behind


def test_a_copy_of_any_length_fills_the_rest_of_its_blocks() -> None:
    for name in (ALIGN, ALIGN_3510):
        steps = {"dst_stride": 32, "src_stride": 4} if name == ALIGN_3510 else {}
        rows = filling(name, dtype=FLOAT, n_burst=2, len_burst=4, **steps)
        assert rows == ([*range(1, 8), *range(9, 16)], "runs of 4 B"), name
        one = filling(name, dtype=HALF, n_burst=1, len_burst=34)
        assert one == ([*range(17, 32)], "a run of 34 B"), name
        assert filling(name, dtype=FLOAT, n_burst=1, len_burst=64) is None, name


def test_padding_of_a_given_value_is_data() -> None:
    padded = {"dtype": FLOAT, "n_burst": 1, "len_burst": 4, "right_padding_num": 3}
    assert filling(ALIGN, **padded) is None
    assert filling(ALIGN_3510, **padded, enable_constant_pad=True) is None
    left = filling(ALIGN_3510, **padded, left_padding_num=1)
    assert left == ([0, *range(2, 8)], "a run of 4 B")


def test_runs_side_by_side_have_none_between_them() -> None:
    packed = {"dtype": FLOAT, "n_burst": 3, "len_burst": 4, "dst_stride": 4, "src_stride": 4}
    assert filling(ALIGN_3510, **packed) is None


@pytest.mark.parametrize("columns", [16, 20])
def test_columns_beyond_a_row_are_filled_in_l1(columns: int) -> None:
    shape = {"n_value": 2, "d_value": columns, "src_d_value": columns, "dst_nz_c0_stride": 2}
    found = filling("copy_gm_to_cbuf_multi_nd2nz", dtype=HALF, **shape)
    second = [32 + 16 * row + column for row in range(2) for column in range(4, 16)]
    assert found == (None if columns == 16 else (second, "rows of 40 B"))


def test_what_fills_in_declares_a_mask_of_its_destination() -> None:
    """Those with a declaration of their own are copies to local memory with a `dst`."""
    own = [kind for kind in instructions().values() if kind.filling is not Instruction.filling]
    assert {ALIGN, ALIGN_3510, "copy_gm_to_cbuf_multi_nd2nz"} < {kind.name for kind in own}
    for kind in own:
        assert kind.copies, kind.name
        assert ("dst", "src") in kind.pairs, kind.name

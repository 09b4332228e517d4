"""The stretches of memory that copies ask for: rows without a gap are one."""

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.mte.copies import CopyGmToCbuf, CopyGmToCbufMultiNd2Nz, CopyGmToUbuf, CopyUbufToGm

B1 = chip("Ascend910B1")
HALF = element_type("float16")


def stretch(instruction):
    return instruction.cost(B1).traffic.row_bytes


def matrix(rows, columns, pitch, **keys):
    return CopyGmToCbufMultiNd2Nz(
        dtype=HALF, n_value=rows, d_value=columns, src_d_value=pitch, dst_nz_c0_stride=rows, **keys
    )


@pytest.mark.parametrize(("gap", "bytes_"), [(0, 4 * 96), (1, 96)])
def test_runs_without_a_gap_are_one_stretch(gap, bytes_):
    runs = {"n_burst": 4, "len_burst": 3}
    assert stretch(CopyGmToCbuf(**runs, src_gap=gap)) == bytes_
    assert stretch(CopyGmToUbuf(**runs, src_gap=gap)) == bytes_
    assert stretch(CopyUbufToGm(**runs, dst_gap=gap)) == bytes_
    assert stretch(CopyUbufToGm(**runs, src_gap=gap)) == 4 * 96


def test_rows_as_long_as_they_are_apart_are_one_stretch_a_matrix():
    assert stretch(matrix(8, 64, 64)) == 8 * 128
    assert stretch(matrix(8, 64, 128)) == 128
    several = matrix(8, 64, 64, nd_num=2, src_nd_matrix_stride=4096, dst_nz_matrix_stride=8 * 64)
    assert stretch(several) == 8 * 128
    assert several.cost(B1).traffic.size_bytes == 2 * 8 * 128


def test_rows_8_kib_apart_meet_in_a_bank_of_l2():
    a_row = B1.gm_to_l1_pitch_row_cycles
    conflict = {
        pitch: matrix(8, 64, pitch).cost(B1).traffic.conflict_cycles for pitch in (2048, 4096, 8192)
    }
    assert conflict == {2048: 0, 4096: pytest.approx(8 * a_row), 8192: pytest.approx(8 * a_row)}

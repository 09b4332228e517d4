"""Where the documents lay traps, and which test stands in each; one that is renamed fails."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
TRAPS = {
    "a count stays in the mask of the next call with strides": (
        *("isa/vector/common/test_forms.py::test_the_count_stays_in_the_mask",),
        "isa/vector/common/test_mask.py::test_a_stale_count_is_the_mask_of_normal_mode",
    ),
    "the size form drops a tail of less than 32 B": (
        "frontends/capi/test_binding.py::test_the_form_with_a_size_drops_what_is_no_whole_block",
    ),
    "a comparison into the register keeps the bits of lanes that are off": (
        "isa/vector/elementwise/test_compare.py::test_to_the_register",
    ),
    "half sums are clamped pair by pair": (
        "isa/vector/permute/test_reduce.py::test_half_sums_are_clamped_pair_by_pair",
    ),
    "a scale has 19 bits": (
        *("isa/cube/test_fixpipe_quantisation.py::test_every_factor",),
        "isa/cube/test_fixpipe_quantisation.py::test_the_low_13_bits_of_a_factor_do_not_count",
    ),
    "the C API orders m, k, n; the basic API m, n, k": (
        *("frontends/capi/test_binding.py::test_mmad_in_the_apis_order_m_k_n",),
        "isa/test_traps.py::test_mmad_params_name_their_extents",
    ),
    "four numbers of asc_copy_gm2l1 are runs, and fractals by name": (
        "frontends/capi/test_binding.py::test_runs_and_fractals_share_a_name",
    ),
    "2201 counts gaps where 3510 counts strides": (
        "isa/mte/test_copies_3510.py::test_one_call_has_gaps_on_2201_and_strides_on_3510",
    ),
    "loops of copies stay for the next copy (3510)": (
        "isa/mte/test_copies_unaligned_3510.py::test_loops_stay_until_they_are_set_anew",
    ),
    "a single repeat of transto5hd adds its stride": (
        "isa/vector/permute/test_transpose.py::test_blocks_at_addresses",
    ),
    "fixpipe counts 32 B on 2201 where 3510 counts elements": (
        "isa/cube/test_fixpipe_3510.py::test_every_conversion",
    ),
    "a call leaves its mask to a call whose lanes differ": (
        "isa/vector/common/test_forms.py::test_a_count_of_0_leaves_an_empty_mask",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_has_its_test(trap):
    for place in TRAPS[trap]:
        file, test = place.split("::")
        assert f"\ndef {test}(" in (TESTS / file).read_text(encoding="utf-8")


def test_mmad_params_name_their_extents():
    """MmadParams{m, n, k} of seed 002: the second is n there, and k in asc_mmad."""
    from dataclasses import fields

    from cubecore.isa.cube.mad import Mad
    from cubecore.isa.cube.mmad_params import MmadParams

    assert [f.name for f in fields(MmadParams)][:3] == ["m", "n", "k"]
    assert [n for n in Mad.signature if len(n) == 1] == ["c", "a", "b", "m", "k", "n"]

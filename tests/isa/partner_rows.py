"""The catalogue's rows of what an AIC and its AIVs do in each other's memories, and of mode 4."""

from typing import Any

from cubecore.isa.declare.instruction import Mem
from isa import fixpipe_rows

_RUNS = {"n_burst": 1, "len_burst": 1}
EXAMPLES: dict[str, dict[str, Any]] = {
    "copy_matrix_cc_to_ub": fixpipe_rows.TILE | {"dst_stride": 256},
    "copy_ubuf_to_cbuf_v2": _RUNS,
    "copy_cbuf_to_ubuf_v2": _RUNS,
    "set_intra_block": {"flag_id": 0},
    "wait_intra_block": {"flag_id": 0},
}
HOME = dict.fromkeys(EXAMPLES, "Ascend950PR_9599")
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    "copy_matrix_cc_to_ub": {"dst": (Mem.UB, 32), "src": (Mem.L0C, 64), "scales": (Mem.FB, 128)},
    "copy_ubuf_to_cbuf_v2": {"dst": (Mem.L1, 32), "src": (Mem.UB, 32)},
    "copy_cbuf_to_ubuf_v2": {"dst": (Mem.UB, 32), "src": (Mem.L1, 32)},
}
_U16 = (0, 65535)
_BURSTS = {"n_burst": (1, 4095), "len_burst": (1, 65535), "src_gap": _U16, "dst_gap": _U16}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "copy_matrix_cc_to_ub": fixpipe_rows.RANGES["copy_matrix_cc_to_cbuf_v2"]
    | {"sub_blockid": (0, 1)},
    "copy_ubuf_to_cbuf_v2": _BURSTS,
    "copy_cbuf_to_ubuf_v2": _BURSTS | {"sub_blockid": (0, 1)},
    "set_intra_block": {"mode": (5, 5), "flag_id": (0, 31)},
    "wait_intra_block": {"flag_id": (0, 31)},
}
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    **{
        ("copy_matrix_cc_to_ub", field): words
        for (name, field), words in fixpipe_rows.WORDS.items()
        if name == "copy_matrix_cc_to_gm_v2"
    },
    ("copy_matrix_cc_to_ub", "dual_dst_ctl"): (0, 1, 2),
}
TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    ("copy_matrix_cc_to_ub", "src_type"): ("float32", "int32"),
    ("copy_ubuf_to_cbuf_v2", "block"): ("datablock",),
    ("copy_cbuf_to_ubuf_v2", "block"): ("datablock",),
}
_TESTS = "frontends/kernels/test_partner.py"
ORACLES: dict[str, str] = {
    "copy_matrix_cc_to_ub": f"{_TESTS}::test_a_tile_goes_to_the_aivs_in_every_form",
    "copy_ubuf_to_cbuf_v2": f"{_TESTS}::test_runs_go_from_ub_to_l1_and_back",
    "copy_cbuf_to_ubuf_v2": f"{_TESTS}::test_runs_go_from_ub_to_l1_and_back",
    "set_intra_block": f"{_TESTS}::test_flags_of_mode_4_are_of_one_part",
    "wait_intra_block": f"{_TESTS}::test_flags_of_mode_4_are_of_one_part",
}

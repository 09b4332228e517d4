"""The catalogue's rows of scalar work, system variables and cache control."""

from typing import Any

_COUNTS = ("clz", "ffs", "ffz", "popc", "zero_bits_cnt", "sflbits")
_PLACES = ("get_block_idx", "get_block_num", "get_sub_block_id", "get_sub_block_num", "get_core_id")
_CHECKED = [f"{unit}_{how}" for unit in ("scalar", "vector", "mte") for how in ("read", "write")]
_WORD = (-(2**63), 2**64 - 1)
_SIGNED = (-(2**63), 2**63 - 1)
_ADDRESS = (0, 2**64 - 1)

EXAMPLES: dict[str, dict[str, Any]] = {
    **{name: {"value": 1} for name in _COUNTS},
    "set_nthbit": {"bits": 0, "idx": 2},
    "clear_nthbit": {"bits": 7, "idx": 2},
    **{name: {} for name in _PLACES},
    "get_ctrl": {},
    "get_ar": {},
    "get_ffts_base_addr": {},
    "set_ffts_base_addr": {"config": 0},
    "get_phy_buf_addr": {"offset": 0},
    "get_atomic": {},
    "init": {},
    "dcci": {},
    "dc_preload": {"address": 0, "offset": 0},
    "preload": {"address": 0, "prefetch_len": 32},
    "get_icache_preload_status": {},
    "check_ub": {"number": 0, "start": 0, "end": 0, "enable": 1} | dict.fromkeys(_CHECKED, 0),
}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    **{name: {"value": _WORD} for name in _COUNTS},
    "set_nthbit": {"bits": _WORD, "idx": _SIGNED},
    "clear_nthbit": {"bits": _WORD, "idx": _SIGNED},
    "set_ffts_base_addr": {"config": (0, 2**48 - 1)},
    "get_phy_buf_addr": {"offset": _ADDRESS},
    "dcci": {"address": _ADDRESS},
    "dc_preload": {"address": _ADDRESS, "offset": _SIGNED},
    "preload": {"address": _ADDRESS, "prefetch_len": _SIGNED},
    "check_ub": {"number": (0, 3), "start": (0, 65535), "end": (0, 65535)}
    | dict.fromkeys((*_CHECKED, "enable"), (0, 1)),
}
WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("dcci", "lines"): ("single", "entire"),
    ("dcci", "where"): ("all", "ub", "out", "atomic"),
}
ORACLES: dict[str, str] = {
    **dict.fromkeys(_COUNTS, "isa/scalar/test_bits.py::test_counts"),
    "set_nthbit": "isa/scalar/test_bits.py::test_one_bit",
    "clear_nthbit": "isa/scalar/test_bits.py::test_one_bit",
    **dict.fromkeys(
        _PLACES, "isa/scalar/test_system_variables.py::test_a_launch_of_one_aic_and_two_aivs_each"
    ),
    "get_ctrl": "isa/scalar/test_system_variables.py::test_ctrl_is_read_back",
    "get_ffts_base_addr": "isa/scalar/test_system_variables.py::test_the_base_address_is_read_back",
    "set_ffts_base_addr": "isa/scalar/test_system_variables.py::test_the_base_address_is_read_back",
    "get_phy_buf_addr": "isa/scalar/test_system_variables.py::test_addresses_are_offsets",
    "get_ar": "frontends/cpp/test_register_indexed.py::test_values_and_no_finding",
    "get_atomic": "isa/scalar/test_system_variables.py::test_the_atomic_store_is_read_back",
    "init": "isa/scalar/test_system_variables.py::test_init_takes_back_stores_and_masks",
    **dict.fromkeys(
        ("dcci", "dc_preload", "preload"),
        "isa/scalar/test_system_variables.py::test_caches_change_nothing",
    ),
    "check_ub": "isa/scalar/test_ub_checks.py::test_an_access_is_found_where_its_bytes_and_kind_are_checked",
    "get_icache_preload_status": "isa/scalar/test_system_variables.py::test_the_instruction_cache_is_idle",
}

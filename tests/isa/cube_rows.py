"""The catalogue's rows of the Cube's registers, and of what moves beside its main path."""

from typing import Any

from cubecore.isa.spec import Mem

BIT = (0, 1)
EXAMPLES: dict[str, dict[str, Any]] = {
    "set_mmad_direction": {"first": "m"},
    "set_lrelu_alpha": {"alpha": 0x3F000000},
    "get_l0c2gm_prequant": {},
    "get_l0c2gm_relu": {},
    "get_l0c2gm_unitflag": {},
    "dsb": {"memory": "DSB_ALL"},
}
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "set_lrelu_alpha": {"alpha": (0, 2**32 - 1)},
}
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("set_mmad_direction", "first"): ("m", "n"),
    ("dsb", "memory"): ("DSB_ALL", "DSB_DDR", "DSB_UB"),
}
TYPES: dict[tuple[str, str], tuple[str, ...]] = {}
ORACLES: dict[str, str] = {
    "set_mmad_direction": "isa/test_cube_registers.py::test_the_direction_changes_no_value",
    "set_lrelu_alpha": "isa/test_cube_registers.py::test_leaky_relu",
    "get_l0c2gm_prequant": "isa/test_cube_registers.py::test_what_set_fpc_left_is_read_back",
    "get_l0c2gm_relu": "isa/test_cube_registers.py::test_what_set_fpc_left_is_read_back",
    "get_l0c2gm_unitflag": "isa/test_cube_registers.py::test_what_set_fpc_left_is_read_back",
    "dsb": "machine/test_data_barrier.py::test_what_a_barrier_orders",
}

"""What holds for every declared instruction.

A new one without rows fails the tests of the sets, and those of its own name.
"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, instructions, spelled
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.tree import Issue, Program
from cubecore.isa.scalar.sync import Sync
from cubecore.isa.vector.common.mask import SetVectorMask
from isa import (
    cube_rows,
    fixpipe_rows,
    functions_rows,
    joined_rows,
    partner_rows,
    scalar_rows,
    vector_rows,
)
from isa.bench import A2, ALL_ONES, HERE, Bench

HALF = element_type("float16")
WORD = element_type("float32")
MASK_64 = 2**64 - 1

EXAMPLES: dict[str, dict[str, Any]] = {
    "copy_cbuf_to_bt": {"src_type": WORD, "len_burst": 1},
    "mad": {"a_type": HALF, "b_type": HALF, "c_type": WORD, "m": 16, "k": 16, "n": 16}
    | {"c_matrix_init_val": False, "c_matrix_source": True},
    "copy_gm_to_cbuf": {"n_burst": 1, "len_burst": 1},
    "copy_gm_to_cbuf_multi_nd2nz": {"dtype": HALF, "n_value": 1, "d_value": 16}
    | {"src_d_value": 16, "dst_nz_c0_stride": 1},
    "load_cbuf_to_ca": {"repeat": 1},
    "load_cbuf_to_cb": {"repeat": 1},
    "load_cbuf_to_ca_transpose": {"dtype": HALF, "repeat": 1},
    "load_cbuf_to_cb_transpose": {"dtype": HALF, "repeat": 1},
    "copy_gm_to_ubuf": {"n_burst": 1, "len_burst": 1},
    "copy_ubuf_to_gm": {"n_burst": 1, "len_burst": 1},
    "set_flag": {"src": "MTE2", "dst": "MTE1", "event_id": 0},
    "wait_flag": {"src": "MTE2", "dst": "MTE1", "event_id": 0},
    "pipe_barrier": {},
    "ffts_cross_core_sync": {"mode": 0, "flag_id": 0},
    "wait_flag_dev": {"flag_id": 0},
    "notify_blocks": {"flag_id": 0},
    "await_block": {"flag_id": 0},
    "send_message": {"flag_id": 0},
    "await_message": {"flag_id": 0},
    "set_ctrl": {"value": 0},
    "set_hf32_mode": {"enable": True},
    "set_hf32_trans_mode": {"mode": 1},
    "scalar_work": {},
    "set_vector_mask": {"mask_high": 0, "mask_low": 1},
    "set_mask_norm": {},
    "set_mask_count": {},
} | (fixpipe_rows.EXAMPLES | scalar_rows.EXAMPLES | vector_rows.EXAMPLES | joined_rows.EXAMPLES)
EXAMPLES |= cube_rows.EXAMPLES | functions_rows.EXAMPLES | partner_rows.EXAMPLES
"""A legal template of each instruction, with every operand it can have."""

GM, L1, L0A, L0B, L0C, BT, UB = Mem.GM, Mem.L1, Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT, Mem.UB
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    "copy_cbuf_to_bt": {"dst": (BT, 64), "src": (L1, 32)},
    "mad": {"c": (L0C, 1024), "a": (L0A, 512), "b": (L0B, 512), "bias": (BT, 128)}
    | {"start": (L0C, 128)},
    "copy_gm_to_cbuf": {"dst": (L1, 32), "src": (GM, 1)},
    "copy_gm_to_cbuf_multi_nd2nz": {"dst": (L1, 32), "src": (GM, 1)},
    "load_cbuf_to_ca": {"dst": (L0A, 512), "src": (L1, 32)},
    "load_cbuf_to_cb": {"dst": (L0B, 512), "src": (L1, 32)},
    "load_cbuf_to_ca_transpose": {"dst": (L0A, 512), "src": (L1, 32)},
    "load_cbuf_to_cb_transpose": {"dst": (L0B, 512), "src": (L1, 32)},
    "copy_gm_to_ubuf": {"dst": (UB, 32), "src": (GM, 1)},
    "copy_ubuf_to_gm": {"dst": (GM, 1), "src": (UB, 32)},
} | (fixpipe_rows.OPERANDS | vector_rows.OPERANDS | joined_rows.OPERANDS | cube_rows.OPERANDS)
OPERANDS |= partner_rows.OPERANDS
OPERANDS |= functions_rows.OPERANDS
"""Memory and alignment of each operand: seed 003, table 1; seed 002, table 2 for mad."""

BIT = (0, 1)
BURSTS = {"n_burst": (1, 4095), "len_burst": (1, 65535)}
GAPS = {"src_gap": (0, 65535), "dst_gap": (0, 65535)}
LOAD = {"start_index": (0, 65535), "repeat": (0, 255), "src_stride": (0, 65535)} | {
    "dst_gap": (0, 65535),
    "decrement": BIT,
}
SQUARES = {"index_id": (0, 65535), "repeat": (0, 255), "src_stride": (0, 65535)} | {
    "dst_gap": (0, 65535),
    "decrement": BIT,
    "dst_frac_gap": (0, 65535),
}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "copy_cbuf_to_bt": BURSTS
    | {"source_gap": (0, 65535), "dst_gap": (0, 65535), "conv_control": BIT},
    "mad": dict.fromkeys("mkn", (0, 4095))
    | {"c_matrix_init_val": BIT, "c_matrix_source": BIT}
    | {"k_direction_align": BIT, "bias_in_c2": BIT, "bias_in_l0c": BIT, "disable_gemv": BIT},
    "copy_gm_to_cbuf": BURSTS | GAPS,
    "copy_gm_to_ubuf": BURSTS | GAPS,
    "copy_ubuf_to_gm": BURSTS | GAPS,
    "copy_gm_to_cbuf_multi_nd2nz": {"nd_num": (0, 4095), "n_value": (0, 16384)}
    | {"d_value": (0, 65535), "src_nd_matrix_stride": (0, 65535), "src_d_value": (1, 65535)}
    | {"dst_nz_c0_stride": (1, 16384), "dst_nz_n_stride": (1, 16384)}
    | {"dst_nz_matrix_stride": (1, 65535)},
    "load_cbuf_to_ca": LOAD,
    "load_cbuf_to_cb": LOAD,
    "load_cbuf_to_ca_transpose": SQUARES,
    "load_cbuf_to_cb_transpose": SQUARES | {"src_frac_gap": (0, 65535), "in_fractals": BIT},
    "set_flag": {"event_id": (0, 7)},
    "wait_flag": {"event_id": (0, 7)},
    "ffts_cross_core_sync": {"mode": (0, 2), "flag_id": (0, 15)},
    "wait_flag_dev": {"flag_id": (0, 15)},
    "notify_blocks": {"mode": (3, 3), "flag_id": (0, 2**48)},
    "await_block": {"flag_id": (0, 2**48)},
    "send_message": {"mode": (4, 4), "flag_id": (0, 2**48)},
    "await_message": {"flag_id": (0, 2**48)},
    "set_ctrl": {"value": (0, MASK_64)},
    "set_hf32_mode": {"enable": BIT},
    "set_hf32_trans_mode": {"mode": BIT},
    "set_vector_mask": {"mask_high": (0, MASK_64), "mask_low": (0, MASK_64)},
    **functions_rows.RANGES,
    **cube_rows.RANGES,
    **partner_rows.RANGES,
    **fixpipe_rows.RANGES,
    **scalar_rows.RANGES,
    **vector_rows.RANGES,
    **joined_rows.RANGES,
}
"""Every number's range: seed 002 table 3, seed 003, spec/isa_semantics.md 2.2, 3.2 to 3.5, 5."""

BETWEEN_CORES = {
    *("ffts_cross_core_sync", "wait_flag_dev", "notify_blocks", "await_block"),
    *("send_message", "await_message", *partner_rows.EXAMPLES),
}
"""Instructions that one core alone does not execute."""
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("copy_gm_to_cbuf", "pad_func_mode"): (0,),
    ("mad", "unit_flag"): (0, 2, 3),
    ("mad", "a_layout"): ("ZZ", "NZ"),
    ("mad", "hf32"): (
        *("off", "nearest_even", "toward_zero", "nearest_even_10", "toward_zero_10"),
    ),
    **dict.fromkeys(
        (
            *(("set_flag", "src"), ("set_flag", "dst"), ("wait_flag", "src")),
            *(
                ("wait_flag", "dst"),
                ("ffts_cross_core_sync", "on"),
                ("set_intra_block", "on"),
                ("notify_blocks", "on"),
                ("send_message", "on"),
            ),
        ),
        ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"),
    ),
    ("pipe_barrier", "on"): ("V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"),
    ("scalar_work", "step"): ("NORM", "MDL", "CONSTANT", "BASIC"),
    ("scalar_work", "part"): ("step", "load", "tile"),
    **functions_rows.WORDS,
    **cube_rows.WORDS,
    **partner_rows.WORDS,
    **fixpipe_rows.WORDS,
    **scalar_rows.WORDS,
    **vector_rows.WORDS,
}
BLOCKS = dict.fromkeys(("copy_gm_to_cbuf", "copy_gm_to_ubuf", "copy_ubuf_to_gm"), "datablock")
FRACTALS = dict.fromkeys(("load_cbuf_to_ca", "load_cbuf_to_cb"), "fractal")
TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    ("copy_cbuf_to_bt", "src_type"): ("float32", "int32", "float16"),
    ("mad", "a_type"): (
        *("float16", "bfloat16", "float32", "int8", "int4", "float8_e4m3fn", "float8_e5m2"),
        "hifloat8",
    ),
    ("mad", "b_type"): (
        *("float16", "bfloat16", "float32", "int8", "int4", "float8_e4m3fn", "float8_e5m2"),
        "hifloat8",
    ),
    ("mad", "c_type"): ("float32", "int32", "float16"),
    **{(name, "block"): (block,) for name, block in (BLOCKS | FRACTALS).items()},
    **{
        (name, "dtype"): (
            *("int8", "uint8", "float16", "bfloat16", "int16", "uint16"),
            *("float32", "int32", "uint32"),
        )
        for name in ("copy_gm_to_cbuf_multi_nd2nz", "load_cbuf_to_ca_transpose")
    },
    ("load_cbuf_to_cb_transpose", "dtype"): (
        *("int4", "int8", "uint8", "float16", "bfloat16", "int16", "uint16"),
        *("float32", "int32", "uint32", "float8_e4m3fn", "float8_e5m2", "hifloat8"),
        *("float4_e2m1fn", "float4_e1m2"),
    ),
    **functions_rows.TYPES,
    **cube_rows.TYPES,
    **partner_rows.TYPES,
    **fixpipe_rows.TYPES,
    **vector_rows.TYPES,
    **joined_rows.TYPES,
}

ARCHS = {
    **dict.fromkeys(
        (
            *("copy_gm_to_cbuf", "copy_gm_to_cbuf_multi_nd2nz", "load_cbuf_to_ca"),
            *("load_cbuf_to_cb", "load_cbuf_to_cb_transpose"),
            *("set_flag", "wait_flag", "pipe_barrier", "dsb", "set_mmad_direction", "scalar_work"),
            *("create_cbuf_matrix", "copy_cbuf_to_bt", "set_quant_pre", "set_fpc", "set_atomic"),
            *("store_scalar", "store_scalar_gm"),
            *("send_message", "await_message", "notify_blocks", "await_block"),
            *("set_hf32_mode", "set_hf32_trans_mode"),
            *("set_ctrl", "clz", "ffs", "ffz", "popc", "zero_bits_cnt", "sflbits", "init"),
            *("clear_nthbit", "set_nthbit", "get_ctrl", "get_block_idx", "get_block_num"),
            *("get_core_id", "get_sub_block_id", "get_sub_block_num", "get_phy_buf_addr"),
            *("dcci", "dc_preload", "preload", "get_icache_preload_status"),
            *("vbitsort", "vmrgsort4", "vtranspose", "set_va_reg_sb", "copy_ubuf_to_ubuf"),
            *(f"scatter_vnchwconv_b{bits}" for bits in (8, 16, 32)),
            *("set_mov_pad_val", "set_lrelu_alpha", "set_fmatrix", "set_fmatrix_b"),
            *("set_l3d_padding", "ffts_cross_core_sync", "wait_flag_dev", "get_atomic"),
        ),
        ("2201", "3510"),
    ),
    "mad": ("2201", "3510", "3003", "3113"),
}
"""Instructions of more architectures than 2201: seed 002, table of products; for 3510 the tables of
products of the basic API's pages (LoadData 2D, LoadDataWithTranspose to L0B, DataCopy, Fixpipe)."""

ORACLES: dict[str, str] = {
    "copy_cbuf_to_bt": "isa/cube/test_mad.py::test_l1_to_bias_table",
    "mad": "isa/cube/test_mad.py::test_mad",
    "copy_gm_to_cbuf": "isa/mte/test_copies.py::test_runs_of_blocks",
    "copy_gm_to_cbuf_multi_nd2nz": "isa/mte/test_copies.py::test_nd_to_nz",
    "load_cbuf_to_ca": "isa/mte/test_copies.py::test_fractals_to_l0",
    "load_cbuf_to_cb": "isa/mte/test_copies.py::test_fractals_to_l0",
    "load_cbuf_to_ca_transpose": "isa/mte/test_copies.py::test_transposed_squares_to_l0",
    "load_cbuf_to_cb_transpose": "isa/mte/test_copies.py::test_transposed_squares_to_l0",
    "copy_gm_to_ubuf": "isa/mte/test_copies.py::test_runs_of_blocks",
    "copy_ubuf_to_gm": "isa/mte/test_copies.py::test_runs_of_blocks",
    "set_flag": "timing/pipes/test_core_clock.py::test_a_flag_orders_two_pipes",
    "wait_flag": "timing/pipes/test_core_clock.py::test_a_flag_orders_two_pipes",
    "pipe_barrier": "timing/pipes/test_core_clock.py::test_a_barrier_joins_every_pipe",
    "ffts_cross_core_sync": "machine/execute/test_scheduler.py::test_mode_0_waits_for_every_core",
    "wait_flag_dev": "machine/execute/test_scheduler.py::test_mode_0_waits_for_every_core",
    "notify_blocks": "frontends/cpp/test_blocks.py::test_each_block_waits_for_the_one_before",
    "await_block": "frontends/cpp/test_blocks.py::test_each_block_waits_for_the_one_before",
    "send_message": "frontends/cpp/test_matmul_object.py::test_clients_on_aivs",
    "await_message": "frontends/cpp/test_matmul_object.py::test_clients_on_aivs",
    "set_ctrl": "isa/vector/common/test_mask.py::test_ctrl_is_replaced_whole",
    "set_hf32_mode": "isa/cube/test_hf32.py::test_hf32_registers",
    "set_hf32_trans_mode": "isa/cube/test_hf32.py::test_hf32_registers",
    "scalar_work": "timing/pipes/test_core_clock.py::test_scalar_work_delays_what_is_issued_after_it",
    "set_vector_mask": "isa/vector/common/test_mask.py::test_masks",
    "set_mask_norm": "isa/vector/common/test_mask.py::test_a_stale_count_is_the_mask_of_normal_mode",
    "set_mask_count": "isa/vector/common/test_mask.py::test_masks",
    **functions_rows.ORACLES,
    **cube_rows.ORACLES,
    **partner_rows.ORACLES,
    **fixpipe_rows.ORACLES,
    **scalar_rows.ORACLES,
    **vector_rows.ORACLES,
    **joined_rows.ORACLES,
}
"""The test that compares each instruction's effect with an independent one."""

TESTS = Path(__file__).parent.parent
every_instruction = pytest.mark.parametrize("name", sorted(instructions()))


def example(name: str, **changes: Any) -> Instruction:
    return instruction_named(name)(**(EXAMPLES[name] | changes))


KIRIN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("set_flag", "wait_flag", "pipe_barrier", "scalar_work", "copy_gm_to_cbuf"),
            *("copy_cbuf_to_gm", "load_gm_to_cbuf", "load_gm_to_ca", "load_gm_to_cb"),
            *("load_cbuf_to_ca", "load_cbuf_to_cb", "copy_gm_to_cbuf_multi_nd2nz"),
            *("load_cbuf_to_ca_transpose", "load_cbuf_to_cb_transpose"),
            *("copy_matrix_cc_to_gm", "copy_matrix_cc_to_cbuf", "set_quant_pre", "set_nd_para"),
            *("set_fmatrix", "set_fmatrix_b", "set_l3d_padding"),
            *("create_ca_matrix", "create_cb_matrix", "create_cbuf_matrix"),
        ),
        ("3003", "3113"),
    ),
    **dict.fromkeys(("copy_cbuf_to_bt", "img2colv2_cbuf_to_ca", "img2colv2_cbuf_to_cb"), ("3003",)),
}
"""Kirin X90 and 9030: the basic API's pages, tables of products."""


def archs_of(name: str) -> tuple[str, ...]:
    """The architectures by the documents: where it is from, and the earlier ones."""
    if name in cube_rows.HOME | functions_rows.HOME | partner_rows.HOME:
        return ("3510",)
    if name in joined_rows.LATE:
        return ("2002",)
    if name in joined_rows.HOME:
        return ("m100", "1001", "2002")
    kirin = () if name == "mad" else KIRIN.get(name, ())
    own = ("2201", "3510") if name in functions_rows.CARRIED else ARCHS.get(name, ("2201",))
    return (*own, *joined_rows.EARLIER.get(name, ()), *kirin)


def home(name: str):
    """The chip that an instruction is tried on."""
    homes = joined_rows.HOME | cube_rows.HOME | functions_rows.HOME | partner_rows.HOME
    return chip(homes[name]) if name in homes else A2


def violations(template: Instruction, on=None) -> list[str]:
    on = home(template.name) if on is None else on
    return [str(violation) for violation in template_violations(template, on)]


def start_of(template: Instruction, operand: str) -> int:
    """Where `execute` puts an operand in its local memory: those in UB keep apart."""
    names = [o.name for o in template.operands()]
    mem, _ = OPERANDS[template.name][operand]
    return 16384 * names.index(operand) if mem is UB else 0


def execute(template: Instruction, moved: str = "", by: int = 0) -> Bench:
    """Run a template on memories that are all written; one operand may be moved."""
    operands = OPERANDS.get(template.name, {})
    sub = int(any(mem is UB for mem, _ in operands.values()))
    bench = Bench(sub, gm_bytes=8192, on=home(template.name))
    for mem in {mem for mem, _ in operands.values()}:
        bench.poke(mem, 0, bytes(bench.buffer(mem).size_bytes))
    addresses = []
    for operand in template.operands():
        mem, _ = operands[operand.name]
        start = bench.base + 1024 if mem is GM else start_of(template, operand.name)
        addresses.append(start + (by if operand.name == moved else 0))
    vector_rows.prepare(bench)
    for first in cube_rows.PREPARED.get(template.name, ()):
        bench.do(example(first))
    if template.name.startswith("v"):
        bench.do(SetVectorMask(mask_high=ALL_ONES, mask_low=ALL_ONES))
    bench.do(template, *addresses)
    return bench


def unlike(rows, names):
    """Say which names a table lacks, and which it has too many."""
    lacking, left = sorted(set(names) - set(rows)), sorted(set(rows) - set(names))
    return ", ".join(lacking), ", ".join(left)


@pytest.mark.parametrize(("rows", "kind"), [(EXAMPLES, "example"), (ORACLES, "oracle")])
def test_every_instruction_has_its_row(rows, kind):
    lacking, left = unlike(rows, instructions())
    assert not lacking, f"these names have no {kind} row: {lacking}"
    assert not left, f"these {kind} rows name no instruction: {left}"


def test_every_instruction_with_operands_has_its_row_of_operands():
    lacking, left = unlike(OPERANDS, [n for n, kind in instructions().items() if kind.declared])
    assert not lacking, f"these names have no operand row: {lacking}"
    assert not left, f"these operand rows name no instruction with operands: {left}"


def test_every_oracle_is_a_test():
    texts = {file: (TESTS / file).read_text() for file, _ in map(split, ORACLES.values())}
    missing = [
        name
        for name, (file, test) in ((n, split(o)) for n, o in ORACLES.items())
        if f"\ndef {test}(" not in texts[file]
    ]
    assert missing == []


def split(oracle):
    """Return the file and the function of an oracle."""
    return oracle.split("::")


@every_instruction
def test_it_is_documented(name):
    kind = instructions()[name]
    assert kind.name == name
    assert kind.__doc__ is not None
    assert kind.__doc__.strip().split("\n")[0].endswith(".")
    assert not kind.__doc__.startswith(f"{kind.__name__}(")  # what dataclass writes by itself
    assert kind.source
    assert kind.archs == archs_of(name)
    assert all(line == line.strip() and line for line in kind.uncertain)
    for field in fields(kind):
        assert_documented(name, field.name, field.metadata)


FIELDS = [(name, f.name) for name, kind in instructions().items() for f in fields(kind)]


def assert_documented(name, field, meta):
    """A parameter is documented and its values are its row's."""
    assert meta.get("doc", "").strip(), field
    if "low" in meta:
        assert (meta["low"], meta["high"]) == RANGES[name][field], field
    elif "options" in meta:
        assert meta["options"] == WORDS[name, field], field
    elif "taken" not in meta:  # what the instruction takes when it starts has no range
        assert meta["types"] == TYPES[name, field], field


def test_no_row_is_left_over():
    declared = set(FIELDS)
    rows = {(name, field) for name, row in RANGES.items() for field in row}
    assert (rows | set(WORDS) | set(TYPES)) <= declared


def kind_of(name):
    """Return the id of a finding about an instruction's parameters."""
    return "flag-parameter" if issubclass(instructions()[name], Sync) else "parameter"


@pytest.mark.parametrize("name", RANGES)
def test_numbers_out_of_range(name):
    for field, (low, high) in RANGES[name].items():
        assert_range_is_checked(name, field, low, high)


def assert_range_is_checked(name, field, low, high):
    """A number beside the range is found by the check and by the machine, one in it is not."""
    for value in (low - 1, high + 1):
        template = example(name, **{field: value})
        message = f"{name}.{field} must be in [{low}, {high}], got {value}"
        if template.is_idle(field):  # isa/declare/test_idle_strides.py judges it repeated
            assert [str(v) for v in template.violations(home(name), letter=True)] == [message]
            continue
        assert violations(template) == [message]
        if name not in BETWEEN_CORES:
            bench = execute(template)
            assert bench.messages == [f"{kind_of(name)}: {message}"]
            assert [f.page for f in bench.log] == [instructions()[name].source]
    for value in (False, True) if (low, high) == BIT else (low, high):
        messages = violations(example(name, **{field: value}))
        assert not [m for m in messages if " must be in [" in m], messages


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("ffts_cross_core_sync", "mode", 3),
        ("ffts_cross_core_sync", "flag_id", 16),
        ("wait_flag_dev", "flag_id", 16),
    ],
)
def test_cross_core_numbers_out_of_range_are_findings(name, field, value):
    bench = Bench()
    bench.core.signal = bench.core.wait = lambda *_: None
    bench.core.record(example(name, **{field: value}), (), HERE)
    bench.core.flush()
    low, high = RANGES[name][field]
    assert bench.messages == [
        f"{kind_of(name)}: {name}.{field} must be in [{low}, {high}], got {value}"
    ]


@pytest.mark.parametrize(("name", "field"), WORDS)
def test_words_that_are_none_of_its_options(name, field):
    template = example(name, **{field: "MTE9"})
    options = ", ".join(map(str, WORDS[name, field]))
    message = f"{name}.{field} must be one of {options}, got 'MTE9'"
    assert violations(template) == [message]
    if name not in BETWEEN_CORES:
        bench = execute(template)
        assert bench.messages == [f"{kind_of(name)}: {message}"]
        assert [f.page for f in bench.log] == [instructions()[name].source]


@pytest.mark.parametrize(("name", "field"), TYPES)
def test_types_that_it_does_not_take(name, field):
    other = "float8_e5m2" if "int64" in TYPES[name, field] else "int64"
    template = example(name, **{field: element_type(other)})
    allowed = ", ".join(TYPES[name, field])
    message = f"{name}.{field} must be one of {allowed}, got {other}"
    assert violations(template) == [message]
    if name not in BETWEEN_CORES:
        bench = execute(template)
        assert bench.messages == [f"{kind_of(name)}: {message}"]
        assert [f.page for f in bench.log] == [instructions()[name].source]


def test_two_broken_ranges_are_both_found():
    template = example("mad", m=-1, n=4096)
    assert violations(template) == [
        "mad.m must be in [0, 4095], got -1",
        "mad.n must be in [0, 4095], got 4096",
    ]


@every_instruction
def test_a_legal_example_runs_without_a_finding_on_its_documented_operands(name):
    template = example(name)
    assert violations(template) == []
    if name not in BETWEEN_CORES:
        assert execute(template).messages == []
    stated = (*instructions()[name].declared, *template.operands())
    assert {o.name: (o.mem, o.alignment) for o in stated} == OPERANDS.get(name, {})
    again = example(name)
    assert template == again
    assert hash(template) == hash(again)
    assert replace(template) == template


ALIGNED = [
    (name, operand, mem, align)
    for name, row in OPERANDS.items()
    for operand, (mem, align) in row.items()
    if align > 1
    and name not in partner_rows.EXAMPLES
    and operand not in {"scales", "start"}  # no part of an example
    and (name, operand) not in vector_rows.BY_REGISTER
]


@pytest.mark.parametrize("name", sorted({name for name, *_ in ALIGNED}))
@pytest.mark.thinned(4)
def test_alignment_is_enforced(name):
    for of, operand, mem, align in ALIGNED:
        if of == name:
            assert_alignment_is_enforced(name, operand, mem, align)


def assert_alignment_is_enforced(name, operand, mem, align):
    """An operand may be moved by its alignment, and by nothing less."""
    template = example(name)
    assert execute(template, operand, align).messages == []
    for off in (align // 2, 1):
        bench = execute(template, operand, align + off)
        assert bench.messages == [
            f"misaligned: {name}.{operand} must start at a multiple of {align} B in {mem.label}, "
            f"got {(bench.base + 1024 if mem is GM else start_of(template, operand)) + align + off}"
        ]


ARCH_CHIPS = ("Ascend950PR_9599", "Ascend310P3", "Ascend310", "Ascend910A", "KirinX90")


@every_instruction
def test_it_runs_only_on_its_architectures(name):
    archs = archs_of(name)
    for elsewhere in map(chip, ARCH_CHIPS):
        messages = violations(example(name), elsewhere)
        if elsewhere.arch in archs:
            assert not [m for m in messages if "architecture" in m]
        else:
            where = " or ".join(archs)
            assert messages == [f"{name} must run on architecture {where}, got {elsewhere.arch}"]


SHARED = {f"asc_{relation}" for relation in ("eq", "ne", "lt", "le", "gt", "ge")}
SHARED |= {"asc_copy_gm2l1", "asc_copy_l12l0a", "asc_copy_l12l0b", "asc_copy_gm2l1_nd2nz"}
SHARED |= {"asc_copy_gm2ub", "asc_copy_ub2gm", "asc_copy_l12fb", "asc_copy_l0c2gm"}
SHARED |= {"asc_copy_gm2ub_align", "asc_copy_ub2gm_align", "asc_set_l13d_rpt", "asc_copy_l0c2l1"}
"""Names of the C API that are several instructions: operands, or the chip, tell them apart."""
SHARED_ELSEWHERE = {
    *("DataCopy", "data_move", "fixpipe", "Cast", "vec_conv", "CastDequant", "Compare"),
    *("Compares", "Select", "TransDataTo5HD", "load3dv1", "vec_trans_scatter", "DataCopyPad"),
    *(
        "CrossCoreSetFlag",
        "CrossCoreWaitFlag",
        "Fixpipe",
        "Fixpipe(A1)",
        "SetLoadDataRepeat",
        "SetFixpipeNz2ndFlag",
    ),
}
"""Names of other dialects that are several."""


@every_instruction
def test_every_name_finds_it(name):
    kind = instructions()[name]
    assert instruction_named(name) is kind
    for dialect in kind.names.values():
        assert kind in [found for found, _ in spelled(dialect)]
        if dialect not in SHARED_ELSEWHERE | SHARED:
            assert instruction_named(dialect) is kind
    for variant, fixed in kind.variants.items():
        assert (kind, fixed) in spelled(variant)
        assert set(fixed) <= {f.name for f in fields(kind)}


def test_hardware_names_are_taken_once():
    names = [k.names["c_api"] for k in instructions().values() if "c_api" in k.names]
    assert sorted({name for name in names if names.count(name) > 1}) == sorted(SHARED)


def test_a_program_states_each_broken_template_once():
    from cubecore.isa.program.check import program_violations

    bad = example("mad", m=5000)
    issues = tuple(Issue(t, (), HERE) for t in (bad, example("pipe_barrier"), bad))
    found = [str(v) for v in program_violations(Program(issues), A2)]
    assert found == ["mad.m must be in [0, 4095], got 5000"]


def test_an_unknown_name_is_refused():
    from cubecore.errors import RequestError

    with pytest.raises(RequestError) as caught:
        instruction_named("vmagic")
    assert str(caught.value) == "instruction must be one that is declared, got 'vmagic'"

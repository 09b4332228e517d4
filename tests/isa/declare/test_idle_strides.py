"""Strides of repetitions that do not exist are not judged, in any instruction."""

from dataclasses import fields, replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, instructions
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.check import template_violations
from isa.bench import Bench
from isa.test_catalogue import archs_of, example, home

WORDS = ("stride", "gap", "src_d_value")


def strided():
    """Return (instruction, stride, field that counts its repetitions) as declared."""
    found = []
    for name, kind in sorted(instructions().items()):
        parameters = {f.name for f in fields(kind)}
        for stride, count in kind.steps.items():
            given = "repeat" if count == "repeats" else count
            if given in parameters:
                found.append((name, stride, given))
    return found


CASES = strided()


def test_what_is_counted_by_a_parameter_is_a_stride_of_it():
    assert len(CASES) > 100
    assert all(any(word in stride for word in WORDS) for _, stride, _ in CASES)
    kinds = {name for name, _, _ in CASES}
    assert {"copy_gm_to_cbuf_multi_nd2nz", "copy_gm_to_ubuf", "load_cbuf_to_ca"} <= kinds


@pytest.mark.parametrize(("name", "stride", "count"), CASES)
def test_a_stride_of_one_repetition_is_not_judged(name, stride, count):
    """And one of two is; by the letter both are."""
    kind, on = instructions()[name], home(name)
    if on.arch not in archs_of(name):
        on = chip("Ascend310P3")
    bounds = next(f.metadata for f in fields(kind) if f.name == stride)
    beyond = bounds["high"] + bounds["multiple"]
    message = f"{name}.{stride} must be in [{bounds['low']}, {bounds['high']}], got {beyond}"
    one = replace(example(name), **{count: 1, stride: beyond})
    two = replace(one, **{count: 2})
    assert message not in [str(v) for v in template_violations(one, on)]
    repeats_once = name.startswith("vcmp_")  # into the register: one repetition, whatever is said
    assert (message in [str(v) for v in template_violations(two, on)]) is not repeats_once
    assert message in [str(v) for v in template_violations(one, on, letter=True)]


def nd2nz(**fields_):
    shape = {"n_value": 2, "d_value": 32, "src_d_value": 32, "dst_nz_c0_stride": 2} | fields_
    return CopyGmToCbufMultiNd2Nz(dtype=element_type("float16"), **shape)


A2 = chip("Ascend910B3")


@pytest.mark.parametrize(
    ("alone", "more", "line"),
    [
        (
            {"dst_nz_matrix_stride": 0},
            {"nd_num": 2},
            "copy_gm_to_cbuf_multi_nd2nz.dst_nz_matrix_stride must be in [1, 65535], got 0",
        ),
        (
            {"n_value": 1, "dst_nz_n_stride": 0},
            {"n_value": 2},
            "copy_gm_to_cbuf_multi_nd2nz.dst_nz_n_stride must be in [1, 16384], got 0",
        ),
        (
            {"n_value": 1, "src_d_value": 0},
            {"n_value": 2},
            "copy_gm_to_cbuf_multi_nd2nz.src_d_value must be in [1, 65535], got 0",
        ),
        (
            {"d_value": 16, "dst_nz_c0_stride": 0},
            {"d_value": 17},
            "copy_gm_to_cbuf_multi_nd2nz.dst_nz_c0_stride must be in [1, 16384], got 0",
        ),
    ],
    ids=str,
)
def test_nd2nz(alone, more, line):
    assert template_violations(nd2nz(**alone), A2) == ()
    assert [str(v) for v in template_violations(nd2nz(**(alone | more)), A2)] == [line]
    assert [str(v) for v in template_violations(nd2nz(**alone), A2, letter=True)] == [line]


def test_it_moves_what_it_would_with_any_stride():
    """The public programs' dst_nz_matrix_stride of 0 with one matrix."""
    for stride in (0, 1, 4096):
        bench = Bench(0, gm_bytes=128)
        rows = np.arange(64, dtype=np.float16).reshape(2, 32)
        bench.poke(Mem.GM, 0, rows.tobytes())
        bench.do(nd2nz(dst_nz_matrix_stride=stride), 0, bench.base)
        assert bench.messages == []
        found = np.frombuffer(bench.image(Mem.L1).get(0, 128), np.float16).reshape(2, 2, 16)
        assert np.array_equal(found, rows.reshape(2, 2, 16).swapaxes(0, 1))


@pytest.mark.parametrize(
    ("fields_", "line"),
    [
        ({"m_size": 2, "n_size": 16}, "copy_matrix_cc_to_gm.dst_stride must be in "),
        ({"m_size": 1, "n_size": 16}, ""),
        ({"m_size": 40, "n_size": 32, "nz2nd_en": False}, "copy_matrix_cc_to_gm.dst_stride must "),
        ({"m_size": 40, "n_size": 16, "nz2nd_en": False}, ""),
    ],
    ids=str,
)
def test_fixpipe_steps_by_rows_or_by_columns_of_fractals(fields_, line):
    shape = {"src_stride": 48, "dst_stride": 0, "nz2nd_en": True} | fields_
    template = CopyMatrixCcToGm(src_type=element_type("float32"), **shape)
    found = [str(v) for v in template_violations(template, A2)]
    assert len(found) == bool(line)
    assert all(text.startswith(line) for text in found)


def test_blocks_of_a_single_run_on_3510():
    """asc_copy_gm2ub: dst_stride is a multiple of 32 B where there is a second run."""
    kind, on = instruction_named("copy_gm_to_ubuf_v2"), chip("Ascend950PR_9599")
    one = kind(n_burst=1, len_burst=64, src_stride=0, dst_stride=7)
    assert template_violations(one, on) == ()
    assert [str(v) for v in template_violations(replace(one, n_burst=2), on)] == [
        "copy_gm_to_ubuf_v2.dst_stride must be len_burst or a multiple of 32 B, got 7"
    ]

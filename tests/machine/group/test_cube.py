"""The Cube's side in lockstep: all cores at once, and to the bit what the reference engine does."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import CorePosition
from cubecore.isa.mte.copies_3510 import NzPara, SetMte2NzPara
from cubecore.isa.mte.load3d import SetFmatrix, SetL3dPadding
from cubecore.isa.program.topology import CoreId
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.sanitize.aliasing import Snapshots
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.racecheck import Sanitizer
from isa.bench import HERE

A2, A5, OLD = "Ascend910B3", "Ascend950PR_9599", "Ascend310P3"
FAR = 1 << 16
CORES = [CoreId(n, 0) for n in range(3)]
F16, F32, I8, I32, FP8 = map(element_type, ("float16", "float32", "int8", "int32", "float8_e5m2"))
HALF, WHOLE = ({"a_type": t, "b_type": t, "c_type": c} for t, c in ((F16, F32), (I8, I32)))
ROUGH = {"a_type": F32, "b_type": F32, "c_type": F32}
SMALL, WIDE = {"m": 19, "k": 40, "n": 33}, {"m": 64, "k": 96, "n": 48}
ADD = {"c_matrix_init_val": False}
BIAS = ADD | {"c_matrix_source": True}
TILE = {"n_size": 32, "m_size": 20, "src_stride": 32, "dst_stride": 40}
ND = {"src_type": F32, "nz2nd_en": True}
NZ2 = {"dtype": F16, "nd_num": 2, "n_value": 5, "d_value": 23, "src_d_value": 40}
NZ2 |= {"src_nd_matrix_stride": 250, "dst_nz_c0_stride": 7, "dst_nz_matrix_stride": 512}
SCALE = 0x3F800000 | 1 << 46 | 5 << 37
WINDOW = {"m_step": 2, "k_step": 3, "src_stride": 4, "dst_stride": 3}
RUNS = {"n_burst": 3, "len_burst": 5, "src_gap": 2, "dst_gap": 4}
IMAGE = {"height": 6, "width": 7, "pad_left": 1, "pad_top": 1, "filter_w": 3, "filter_h": 2}
IMAGE |= {"repeat": 2, "stride_w": 1, "stride_h": 2}
FILLS = {"repeat": 3, "blk_num": 2, "dst_gap": 1}


def quantised(mode, kind=F32, **more):
    return {"src_type": kind, "quant_pre": mode, **TILE, **more}


CASES = [
    ("mad", A2, HALF | SMALL),
    ("mad", A2, HALF | SMALL | ADD),
    ("mad", A2, HALF | WIDE | BIAS),
    ("mad", A2, HALF | SMALL | ADD | {"bias_in_l0c": True}),
    ("mad", A2, HALF | {"m": 1, "k": 200, "n": 48}),
    ("mad", A2, HALF | {"m": 16, "k": 0, "n": 16}),
    ("mad", A2, WHOLE | SMALL | ADD),
    ("mad", A2, WHOLE | WIDE | BIAS),
    ("mad", A2, ROUGH | SMALL),
    ("mad", A5, HALF | SMALL | {"a_layout": "NZ"}),
    ("mad_mx", A5, {"a_type": FP8, "b_type": FP8, "m": 19, "k": 128, "n": 33}),
    ("mad_mx", A5, {"a_type": FP8, "b_type": FP8, "m": 19, "k": 64, "n": 33} | BIAS),
    ("mad_mx", A5, {"a_type": FP8, "b_type": FP8, "m": 1, "k": 64, "n": 33} | ADD),
    ("copy_matrix_cc_to_gm", A2, ND | TILE | {"n_size": 27}),
    ("copy_matrix_cc_to_gm", A2, quantised("F322F16", relu_pre=1)),
    ("copy_matrix_cc_to_gm", A2, quantised("F322BF16", nz2nd_en=True, dst_stride=41)),
    ("copy_matrix_cc_to_gm", A2, quantised("DEQF16", I32)),
    ("copy_matrix_cc_to_gm", A2, quantised("VDEQF16", I32, nz2nd_en=True)),
    ("copy_matrix_cc_to_gm", A2, quantised("VREQ8", I32, nz2nd_en=True, relu_pre=1)),
    ("copy_matrix_cc_to_gm", A2, ND | TILE | {"channel_split": True, "nz2nd_en": False}),
    ("copy_matrix_cc_to_cbuf", A2, quantised("F322F16")),
    ("copy_matrix_cc_to_cbuf", A2, quantised("VREQ8", I32)),
    ("copy_gm_to_cbuf_multi_nd2nz", A2, NZ2),
    ("copy_gm_to_cbuf_multi_nd2nz", A2, NZ2 | {"dtype": F32}),
    (
        *("copy_gm_to_cbuf_multi_dn2nz", A5),
        {"dtype": F16, "n_value": 9, "d_value": 21, "loop1_src_stride": 96},
    ),
    ("load_cbuf_to_ca", A2, {"repeat": 3, "src_stride": 2, "dst_gap": 1}),
    ("load_cbuf_to_ca_transpose", A2, {"dtype": F16, "repeat": 3, "src_stride": 2}),
    ("load_cbuf_to_cb_transpose", A2, {"dtype": I8, "repeat": 2, "src_stride": 2}),
    ("load_cbuf_to_cb_transpose", A2, {"dtype": F32, "repeat": 2, "src_stride": 2}),
    ("load_cbuf_to_ca_v2", A5, WINDOW),
    ("load_cbuf_to_ca_v2_transpose", A5, WINDOW | {"dtype": F16}),
    (
        *("img2colv2_cbuf_to_ca", A2),
        {"dtype": F16, "k_extension": 48, "m_extension": 32, "channel_size": 16, "filter_w": 3},
    ),
    ("create_ca_matrix", A2, {"dtype": F16, "bits": 0x3C01} | FILLS),
    ("create_cbuf_matrix", A2, {"dtype": F32, "bits": 0x3F800000} | FILLS),
    ("copy_cbuf_to_bt", A2, {"src_type": F32, "len_burst": 2, "n_burst": 2, "dst_gap": 2}),
    ("copy_cbuf_to_bt", A2, {"src_type": F16, "len_burst": 3, "conv_control": True}),
    ("copy_cbuf_to_matrix_cc", A2, {"src_type": F32, "dst_type": F32} | RUNS),
    ("copy_cbuf_to_matrix_cc", A2, {"src_type": F32, "dst_type": F16} | RUNS),
    ("load_cbuf_to_cb_sp", A2, {"repeat": 3, "start_index": 2}),
    ("load_cbuf_to_cb_sp", A2, {"repeat": 0}),
    *(("copy_gm_to_cbuf_pad", A2, {"mode": mode} | RUNS) for mode in (1, 3, 5, 6, 8)),
    ("load_cbuf_to_ca", A2, {"repeat": 3, "start_index": 4, "decrement": True}),
    ("load_cbuf_to_ca", A2, {"repeat": 3, "src_stride": 0}),
    ("copy_gm_to_cbuf_multi_nd2nz", A2, NZ2 | {"dst_nz_n_stride": 2, "dst_nz_c0_stride": 1}),
    ("copy_matrix_cc_to_gm_v2", A5, ND | TILE | {"n_size": 27}),
    ("copy_matrix_cc_to_gm_v2", A5, quantised("F322F16", nz2nd_en=True)),
    *((name, OLD, RUNS) for name in ("copy_cbuf_to_ubuf", "copy_ubuf_to_cbuf")),
    ("copy_matrix_cc_to_ubuf", OLD, {"src_type": F32, "dst_type": F16, "relu": True} | RUNS),
    ("copy_ubuf_to_matrix_cc", OLD, {"dtype": F32} | RUNS),
    ("broadcast_ub_to_cc", OLD, {"dtype": F16} | RUNS),
    *((f"img2col_cbuf_to_{to}", OLD, {"dtype": F16} | IMAGE) for to in ("ca", "cb", "ub")),
]
BEFORE = {
    "copy_gm_to_cbuf_multi_dn2nz": [SetMte2NzPara(config=NzPara(1, 1, 12, 0).pack())],
    "img2colv2_cbuf_to_ca": [
        SetFmatrix(l1_height=6, l1_width=7, padding_left_size=1, padding_top_size=1),
        SetL3dPadding(config=0x4321),
    ],
    "copy_matrix_cc_to_gm": [instruction_named("set_quant_pre")(scale=SCALE)],
}


def contents(rng, template, operand, cores, size):
    """Elements for each core: numbers that are no NaN, and scales that are signed."""
    element = template.element(operand)
    count = size * 8 // element.bits
    if element.name == "uint64":
        found = np.full((cores, count), SCALE, np.uint64) + rng.integers(0, 1 << 20, (cores, count))
    elif element.name == "float8_e8m0fnu":
        found = rng.integers(120, 135, (cores, count)).astype(np.uint8)
    elif element.kind == "float":
        found = (rng.standard_normal((cores, count)) * 3).astype(element.numpy)
    else:
        return rng.integers(0, 256, (cores, size), np.uint8)
    return found.view(np.uint8)


class Pair:
    """Three AICs twice: apart under the reference engine, and in lockstep."""

    def __init__(self, name, on, params, seed, *, even):
        self.rng, self.chip = np.random.default_rng(seed), chip(on)
        self.template = instruction_named(name)(**params)
        self.log, self.alone = FindingLog(), []
        self.far = np.array([0, 1, 2] if even else [0, 2, 1]) * FAR
        self.gm, self.other = GlobalMemory(), GlobalMemory()
        values = (self.rng.standard_normal(2 * FAR) * 3).astype(np.float16)
        self.tensor, _ = (gm.allocate_from("tensor", values) for gm in (self.gm, self.other))
        self.apart = [self.core(core) for core in CORES]
        sanitizer = Sanitizer(self.other, FindingLog(), CORES)
        on_places = [(core, CorePosition(n, 3)) for n, core in enumerate(CORES)]
        self.group = LockstepGroup(self.chip, sanitizer, Snapshots(), on_places)
        self.group.aliasing.agree(self.tensor.address, self.far)
        self.group._each = lambda *issue: self.alone.append(issue)
        for setting in BEFORE.get(name, ()):
            if self.template.takes_registers:
                self.issue(setting, ())
        if getattr(self.template, "scaling", "") == "column":
            self.issue(instruction_named("set_fpc")(scales_at=0), ())

    def core(self, core):
        def unmet(*_):
            raise AssertionError

        return Core(core, self.chip, self.gm, self.log, one_core.execute, unmet, unmet)

    def issue(self, template, addresses):
        mems = [operand.mem for operand in template.operands()]
        for core, far in zip(self.apart, self.far.tolist(), strict=True):
            own = [a + far * (m is Mem.GM) for a, m in zip(addresses, mems, strict=True)]
            core.execute(core, (template, tuple(own), HERE))
        self.group.issue(template, tuple(addresses), HERE)

    def fill(self, known):
        """Give every local memory contents: of what is `known` a thousandth is unwritten."""
        resolved = self.template.resolved(self.apart[0].registers)
        for operand in resolved.operands():
            if operand.mem is Mem.GM:
                continue
            stack = self.group.memory(operand.mem)
            part = contents(self.rng, resolved, operand, 3, min(stack.size_bytes, 16384))
            stack.data[:] = np.tile(part, stack.size_bytes // part.shape[1])
            stack.valid[:] = 1
            if operand.name == "src" and not known:
                stack.valid[self.rng.random(stack.size_bytes) < 0.001] = 0
            for core, own in zip(self.apart, stack.data, strict=True):
                core.memory(operand.mem).data[:] = own
                core.memory(operand.mem).valid[:] = stack.valid

    def assert_equal(self):
        for mem, stack in self.group.stacks.items():
            for n, core in enumerate(self.apart):
                assert core.memory(mem).data.tobytes() == stack.data[n].tobytes(), mem
                assert core.memory(mem).valid.tobytes() == stack.valid.tobytes(), mem
        here, there = (gm.at(self.tensor.address).buffer for gm in (self.gm, self.other))
        assert here.data.tobytes() == there.data.tobytes()
        assert here.valid.tobytes() == there.valid.tobytes()


@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{n}-{CASES[n][0]}")
@pytest.mark.thinned(4)
def test_an_instruction_of_the_cube_is_done_for_all_cores_at_once(number, even):
    name, on, params = CASES[number]
    pair = Pair(name, on, params, number, even=even)
    pair.fill(known=number % 2)
    for turn in range(2):  # the second time it is prepared, and finds what the first left
        start = {Mem.GM: pair.tensor.address + 64 + 32 * turn, Mem.BT: 256 * turn}
        at = [start.get(o.mem, 4096 * turn) for o in pair.template.operands()]
        if params.get("bias_in_l0c"):
            at[-1] = 32768
        pair.issue(pair.template, at)
        assert pair.alone == []
        assert [finding.message for finding in pair.log] == []
        pair.assert_equal()


FROM_GLOBAL = [number for number, (name, *_) in enumerate(CASES) if "gm_to" in name]


@pytest.mark.parametrize("fault", ["leaves", "unwritten"])
@pytest.mark.parametrize("number", FROM_GLOBAL, ids=lambda n: f"{n}-{CASES[n][0]}")
def test_a_fault_of_one_core_in_global_memory_sends_all_one_by_one(number, fault):
    name, on, params = CASES[number]
    pair = Pair(name, on, params, number, even=True)
    pair.fill(known=True)
    tensor, other = (gm.allocate("more", 3 * FAR) for gm in (pair.gm, pair.other))
    for each in (tensor, other):
        each.buffer.data[:], each.buffer.valid[:] = 0, 1
    far = [0, FAR, 3 * FAR - 32] if fault == "leaves" else [0, FAR, 2 * FAR]
    if fault == "unwritten":
        for each in (tensor, other):
            each.buffer.valid[2 * FAR :] = 0
    pair.far = np.array(far)
    pair.group.aliasing.agree(other.address, pair.far)
    at = [tensor.address if o.mem is Mem.GM else 4096 for o in pair.template.operands()]
    pair.issue(pair.template, at)
    ((*_, reason),) = pair.alone
    assert "uninitialised" in str(reason) if fault == "unwritten" else "leaves" in str(reason)
    if fault == "leaves":  # copies move what nobody wrote
        assert {finding.core for finding in pair.log} == {str(CORES[2])}

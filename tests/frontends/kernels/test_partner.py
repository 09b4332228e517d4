"""What an AIC and its AIVs of Ascend 950 do in each other's memories, and the flags of mode 4."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

from cubecore import kernel
from cubecore.errors import DeadlockError

CHIP = "Ascend950PR_9589"
M = N = 32
BLOCKS = 2
SENTINEL = 77
TO_AIC, TO_AIV = 2, 3
SIZE = 8192
"""Bytes of each Unified Buffer that are looked at."""


def joined(core, source, target):
    core.asc_sync_notify(source, target, 0)
    core.asc_sync_wait(source, target, 0)


def tile_in_l0c(core, x, w, kind):
    """Leave x w^T, [M, N] in NZ, in L0C: x and w are [32, 16] halves, or [32, 32] bytes."""
    wide = 16 if kind == "half" else 32
    l1 = core.cbuf(kind, 4 * 16 * wide)
    a, b = core.ca(kind, 32 * wide), core.cb(kind, 32 * wide)
    c = core.cc("float" if kind == "half" else "int32_t", M * N)
    block = 16 * wide
    core.asc_copy_gm2l1(l1, x, 1, block * 2 // (16 if kind == "half" else 32), 0, 0, 0)
    core.asc_copy_gm2l1(l1 + 2 * block, w, 1, block * 2 // (16 if kind == "half" else 32), 0, 0, 0)
    joined(core, "PIPE_MTE2", "PIPE_MTE1")
    for part in range(2):
        core.asc_copy_l12l0a(a + part * block, l1 + part * block, 0, 0, 1, 1, 1, 1)
        core.asc_copy_l12l0b(b + part * block, l1 + (2 + part) * block, 0, 0, 1, 1, 1, 1)
    joined(core, "PIPE_MTE1", "PIPE_M")
    for row in range(2):
        for column in range(2):
            at = column * M * 16 + row * 256
            core.asc_mmad(
                *(c + at, a + row * block, b + column * block),
                *(16, wide, 16, 0, False, False, True),
            )
    joined(core, "PIPE_M", "PIPE_FIX")
    return c


def sent(kind, to, params, order="program", post=None):
    """Return both UBs of each block behind a copy from L0C, as lanes of a type, and the tile.

    `post` is the word of the second conversion.
    """

    @kernel(kind="mix", chip=CHIP, outputs="y", types={"x": kind, "w": kind, "s": to, "y": to})
    def copy(core, x, w, s, y):
        ub = core.ubuf.at(to, 0)
        if core.is_aic:
            tile = tile_in_l0c(core, x, w, kind)
            for part in range(2):
                core.asc_sync_intra_wait("PIPE_FIX", TO_AIC + 16 * part)
            if params.get("nz2dn_en"):
                core.asc_set_l0c2gm_channel_para(1 << 48)
            if post is not None:
                core.asc_set_l0c2gm_quant_post(post)
            core.asc_copy_l0c2ub(ub, tile, **params)
            for part in range(2):
                core.asc_sync_intra_arrive("PIPE_FIX", TO_AIV + 16 * part)
        else:
            core.asc_copy_gm2ub(ub, s, SIZE)
            core.asc_sync_intra_arrive("PIPE_MTE2", TO_AIC)
            core.asc_sync_intra_wait("PIPE_MTE3", TO_AIV)
            joined(core, "PIPE_MTE2", "PIPE_MTE3")
            lanes = SIZE // s.dtype.size_bytes
            core.asc_copy_ub2gm(y + core.block_idx * lanes, ub, SIZE)

    rng = np.random.default_rng(1)
    wide, given = (16, np.float16) if kind == "half" else (32, np.int8)
    x, w = (rng.integers(-8, 8, (M, wide)).astype(given) for _ in range(2))
    kinds = {"float": np.float32, "half": np.float16, "bfloat16_t": bfloat16, "int32_t": np.int32}
    dtype = np.dtype({**kinds, "int8_t": np.int8, "int16_t": np.int16}[to])
    lanes = SIZE // dtype.itemsize
    s = np.full(lanes, SENTINEL, dtype)
    y = np.zeros((BLOCKS, 2, lanes), dtype)
    assert copy.using(order=order)[BLOCKS](x, w, s, y).clean
    return y, x.astype(np.int64) @ w.astype(np.int64).T


def placed(tile, layout, stride, lanes):
    """Return a UB with a part of a tile, by a loop from the page's words."""
    held = np.full(lanes, SENTINEL, np.float64)
    for (i, j), value in np.ndenumerate(tile):
        at = {
            "nz": j // 16 * stride + i * 16 + j % 16,
            "rows": i * stride + j,
            "columns": j * stride + i,
        }[layout]
        held[at] = value
    return held


LAYOUTS = {"nz": {}, "rows": {"nz2nd_en": True}, "columns": {"nz2dn_en": True}}
TYPES = [
    ("half", "float", "NoQuant"),
    ("half", "half", "F322F16"),
    ("half", "bfloat16_t", "F322BF16"),
    ("int8_t", "int32_t", "NoQuant"),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "to", "mode"), TYPES)
@pytest.mark.parametrize("target", ["AIV0", "AIV1", "rows of both", "columns of both"])
def test_a_tile_goes_to_the_aivs_in_every_form(layout, kind, to, mode, target):
    dual = {"rows of both": 1, "columns of both": 2}.get(target, 0)
    if dual and (layout == "columns" or mode != "NoQuant"):
        return  # test_what_two_targets_do_not_have
    stride = 40 * 16 if layout == "nz" else 48
    params = {"n_size": N, "m_size": M, "dst_stride": stride, "src_stride": M}
    params |= {"dual_dst_ctl": dual, "sub_blockid": target == "AIV1", "quant_pre": mode}
    y, tile = sent(kind, to, params | LAYOUTS[layout])
    nothing = np.zeros((0, 0))
    parts = {
        "AIV0": (tile, nothing),
        "AIV1": (nothing, tile),
        "rows of both": (tile[:16], tile[16:]),
        "columns of both": (tile[:, :16], tile[:, 16:]),
    }[target]
    for block in range(BLOCKS):
        for part in range(2):
            expected = placed(parts[part], layout, stride, y.shape[-1]).astype(y.dtype)
            assert np.array_equal(y[block, part].view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize(("to", "mode"), [("int8_t", "QF162B8_POST"), ("int16_t", "QF162S16_POST")])
def test_a_tile_is_converted_again(to, mode):
    """A quarter of each half, to nearest even, and 3; 8-bit results are signed here."""
    params = {"n_size": N, "m_size": M, "dst_stride": 32, "src_stride": M, "nz2nd_en": True}
    params |= {"quant_pre": "F322F16", "quant_post": mode}
    y, tile = sent("half", to, params, post=0x3E800000 | 1 << 9 * (to == "int8_t") | 3)
    low, high = (-128, 127) if to == "int8_t" else (-(2**15), 2**15 - 1)
    wide = [
        [max(min(round(v / 4), 2 * high + 1), 2 * low) + 3 for v in row] for row in tile.tolist()
    ]
    expected = np.clip(wide, low, high)
    for block in range(BLOCKS):
        assert np.array_equal(y[block, 0, : M * N].reshape(M, N), expected)


@pytest.mark.parametrize("order", ["late", "early", "random:7"])
def test_another_order_gives_the_same(order):
    params = {"n_size": N, "m_size": M, "dst_stride": 32, "src_stride": M, "nz2nd_en": True}
    params |= {"dual_dst_ctl": 1}
    assert np.array_equal(sent("half", "float", params, order)[0], sent("half", "float", params)[0])


PARAMS = {"n_size": N, "m_size": M, "dst_stride": 48, "src_stride": M}
WRONG = {
    "rows": ({"m_size": 31, "dual_dst_ctl": 1, "nz2nd_en": True},
             "copy_matrix_cc_to_ub.m_size must be a multiple of 2 for two targets by rows, got 31"),
    "columns": ({"n_size": 16, "dual_dst_ctl": 2, "nz2nd_en": True},
                "copy_matrix_cc_to_ub.n_size must be a multiple of 32 for two targets by columns, "
                "got 16"),
    "by columns": ({"dual_dst_ctl": 1, "nz2dn_en": True},
                   "copy_matrix_cc_to_ub.dual_dst_ctl must be 0 with nz2dn_en, got 1"),
    "converted": ({"dual_dst_ctl": 1, "nz2nd_en": True, "relu_pre": 1},
                  "copy_matrix_cc_to_ub.dual_dst_ctl must be 0 with relu_pre, got 1"),
    "third": ({"dual_dst_ctl": 3, "nz2nd_en": True},
              "copy_matrix_cc_to_ub.dual_dst_ctl must be one of 0, 1, 2, got 3"),
    "outside": ({"nz2nd_en": True, "dst_stride": 8192},
                "copy_matrix_cc_to_ub.dst must stay inside UB (0 to 262144 B), got bytes "
                "[0, 1015936)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_two_targets_do_not_have(name):
    changes, sentence = WRONG[name]
    assert _findings(PARAMS | changes) == [sentence]


def _findings(params, kind="mix", at=0):
    @kernel(kind=kind, chip=CHIP, types={"x": "half", "w": "half"})
    def copy(core, x, w):
        if core.is_aic:
            core.asc_copy_l0c2ub(
                core.ubuf.at("float", at), tile_in_l0c(core, x, w, "half"), **params
            )

    x = np.zeros((M, 16), np.float16)
    findings = copy[1](x, x).findings
    return [each.message for each in findings if each.id == "parameter"]


@pytest.mark.parametrize("part", [0, 1])
def test_an_aiv_that_the_launch_lacks_is_a_finding(part):
    params = PARAMS | {"nz2nd_en": True, "sub_blockid": bool(part)}
    sentence = (
        "copy_matrix_cc_to_ub must be in a mix launch with that AIV, got AIV{} of a launch with {}"
    )
    assert _findings(params, "cube") == [sentence.format(part, "no AIVs")]
    one = [sentence.format(1, "1 AIV")] if part else []
    assert _findings(params, "mix_1_1") == one
    assert _findings(params) == []


def test_an_address_within_a_block_is_a_finding():
    sentence = "copy_matrix_cc_to_ub.dst must start at a multiple of 32 B in UB, got 16"
    assert _findings(PARAMS | {"nz2nd_en": True}, at=16) == [sentence]


def test_runs_go_from_ub_to_l1_and_back():
    lanes = 512

    @kernel(kind="mix", chip=CHIP, outputs="y", types={"x": "half", "y": "half"})
    def there_and_back(core, x, y):
        ub, l1 = core.ubuf.at("half", 1024), core.cbuf.at("half", 2048)
        if core.is_aic:
            for part in range(2):
                core.asc_sync_intra_wait("PIPE_MTE1", TO_AIC + 16 * part)
            for part in range(2):  # each AIV gets the other one's
                core.asc_copy_l12ub(ub, l1 + 1024 * (1 - part), bool(part), 4, 2, 1, 3)
                core.asc_sync_intra_arrive("PIPE_MTE1", TO_AIV + 16 * part)
        else:
            part = core.block_idx % 2
            core.asc_copy_gm2ub(ub, x + core.block_idx * lanes, 2 * lanes)
            joined(core, "PIPE_MTE2", "PIPE_MTE3")
            core.asc_copy_ub2l1(l1 + 1024 * part, ub, 4, 3, 2, 0)
            core.asc_sync_intra_arrive("PIPE_MTE3", TO_AIC)
            core.asc_sync_intra_wait("PIPE_MTE3", TO_AIV)
            core.asc_copy_ub2gm(y + core.block_idx * lanes, ub, 2 * lanes)

    x = np.arange(2 * BLOCKS * lanes, dtype=np.float16).reshape(2 * BLOCKS, lanes)
    y = np.zeros_like(x)
    assert there_and_back[BLOCKS](x, y).clean
    for number, kept in enumerate(x):
        other = x[number ^ 1].reshape(-1, 16)
        in_l1 = np.concatenate([other[5 * run : 5 * run + 3] for run in range(4)])
        expected = kept.reshape(-1, 16).copy()
        for run in range(4):
            expected[5 * run : 5 * run + 2] = in_l1[3 * run : 3 * run + 2]
        assert np.array_equal(y[number], expected.reshape(-1))


def test_a_direction_that_is_first_used_behind_a_value():
    """Each AIV reads a value of what has come to UB, and only then sends to L1, which is in use."""
    lanes = 512

    @kernel(kind="mix", chip=CHIP, outputs="y", types={"x": "half", "y": "half"})
    def late(core, x, y):
        ub, l1 = core.ubuf.at("half", 0), core.cbuf.at("half", 0)
        if core.is_aic:
            core.asc_copy_gm2l1(l1, x, 1, 64, 0, 0, 0)
            joined(core, "PIPE_MTE2", "PIPE_MTE1")
            for part in range(2):
                core.asc_copy_l12ub(ub, l1 + lanes * part, bool(part), 1, 32, 0, 0)
            core.asc_sync_block_arrive("PIPE_MTE1", 3)
            core.asc_sync_block_wait("PIPE_MTE1", 2)
            core.asc_copy_gm2l1(l1 + 8 * lanes, x, 1, 64, 0, 0, 0)
            for part in range(2):
                core.asc_copy_l12ub(ub + lanes, l1 + lanes * (3 - part), bool(part), 1, 32, 0, 0)
            core.asc_sync_block_arrive("PIPE_MTE1", 3)
        else:
            part = core.block_idx % 2
            core.asc_sync_block_wait("PIPE_MTE3", 3)
            joined(core, "PIPE_MTE3", "PIPE_S")
            at = l1 + lanes * (2 + part) if ub[0] >= 0 else l1
            core.asc_copy_ub2l1(at, ub, 1, 32, 0, 0)
            core.asc_sync_block_arrive("PIPE_MTE3", 2)
            core.asc_sync_block_wait("PIPE_MTE3", 3)
            core.asc_copy_ub2gm(y + core.block_idx * lanes, ub + lanes, 2 * lanes)

    x = np.arange(2 * lanes, dtype=np.float16).reshape(2, lanes)
    y = np.zeros((BLOCKS, 2, lanes), np.float16)
    assert late[BLOCKS](x, y).clean
    assert all(np.array_equal(of_block, x[::-1]) for of_block in y)


def test_flags_of_mode_4_are_of_one_part():
    @kernel(kind="mix", chip=CHIP)
    def signals(core):
        if core.is_aic:
            core.asc_sync_intra_arrive("PIPE_FIX", 16 + 5)
            core.asc_sync_intra_wait("PIPE_S", 16 + 4)
            core.asc_sync_block_arrive("PIPE_FIX", 5)
        else:
            if core.block_idx % 2:
                core.asc_sync_intra_wait("PIPE_S", 5)
                core.asc_sync_intra_arrive("PIPE_MTE3", 4)
            core.asc_sync_block_wait("PIPE_S", 5)

    assert signals[BLOCKS]().clean


@pytest.mark.parametrize("flag", [16, 31])
def test_an_aiv_has_16_flags_of_mode_4(flag):
    @kernel(kind="mix", chip=CHIP)
    def signals(core):
        if core.is_aiv:
            core.asc_sync_intra_arrive("PIPE_MTE3", flag)

    (message,) = {each.message for each in signals[1]().findings}
    assert message == f"set_intra_block.flag_id must be in [0, 15] on an AIV, got {flag}"


def test_a_flag_of_mode_4_that_nobody_waits_for_is_a_finding():
    @kernel(kind="mix", chip=CHIP)
    def signals(core):
        if core.is_aic:
            core.asc_sync_intra_arrive("PIPE_FIX", 18)

    (finding,) = signals[1]().findings
    assert finding.id == "flag-leaked"
    assert finding.message.startswith("flag 2 of mode 4 of core 0 AIV1 counts 1 at the end")


STREAM = """
@kernel(kind="mix", chip=CHIP, outputs="y", types={"x": "half", "w": "half", "y": "float"})
def stream(core, x, w, y):
    ub = core.ubuf.at("float", 0)
    if core.is_aic:
        tile = tile_in_l0c(core, x, w, "half")
        for turn in range(3):
            if turn:
                core.asc_sync_intra_wait("PIPE_FIX", TO_AIC)  # free 0
                core.asc_sync_intra_wait("PIPE_FIX", TO_AIC + 16)  # free 1
            core.asc_copy_l0c2ub(ub, tile, **PARAMS, dual_dst_ctl=1, nz2nd_en=True)
            core.asc_sync_intra_arrive("PIPE_FIX", TO_AIV)  # full 0
            core.asc_sync_intra_arrive("PIPE_FIX", TO_AIV + 16)  # full 1
        for part in range(2):
            core.asc_sync_intra_wait("PIPE_FIX", TO_AIC + 16 * part)
    else:
        for turn in range(3):
            core.asc_sync_intra_wait("PIPE_MTE3", TO_AIV)
            core.asc_copy_ub2gm(y + (3 * core.block_idx + turn) * 768, ub, 4 * 768)
            core.asc_sync_intra_arrive("PIPE_MTE3", TO_AIC)
"""
FAULTS = {
    "right": ("", "", set()),
    "no wait of the AIC for AIV0": ("# free 0", "free 0", {"race-war"}),
    "no wait of the AIC for AIV1": ("# free 1", "free 1", {"race-war"}),
    "another flag": ('"PIPE_FIX", TO_AIV)', '"PIPE_FIX", TO_AIV + 1)', {"deadlock"}),
    "signal of another pipe": ('arrive("PIPE_FIX", TO_AIV)', 'arrive("PIPE_M", TO_AIV)',
                               {"race-raw"}),
    "release before the read": ('core.asc_sync_intra_arrive("PIPE_MTE3", TO_AIC)\n',
                                'core.asc_sync_intra_arrive("PIPE_V", TO_AIC)\n', {"race-war"}),
    "no wait of the AIV": ('core.asc_sync_intra_wait("PIPE_MTE3", TO_AIV)', "pass",
                           {"race-raw", "uninitialised", "flag-leaked"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_an_exchange_are_found(name):
    old, new, kinds = FAULTS[name]
    text = STREAM
    if old.startswith("#"):
        (line,) = (each for each in STREAM.splitlines() if each.endswith(old))
        text = STREAM.replace(line, line.replace(line.strip(), "pass"))
    elif old:
        assert old in STREAM
        text = STREAM.replace(old, new)
    space = {**globals()}
    exec(compile(text, "stream.py", "exec"), space)
    x = np.ones((M, 16), np.float16)
    y = np.zeros((4, 3, 768), np.float32)
    if "deadlock" in kinds:
        with pytest.raises(DeadlockError):
            space["stream"][2](x, x, y)
        return
    found = {each.id for each in space["stream"][2](x, x, y).findings}
    found -= {"uninitialised"}  # what lies behind 32 of 48 columns
    assert kinds - {"uninitialised"} <= found
    assert found <= {"race-raw", "race-war", "race-waw", "flag-leaked"}
    assert bool(found) == bool(kinds)

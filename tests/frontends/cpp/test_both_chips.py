"""Class-API kernels written for A2 give the same bytes, without findings, on A2 and on 950."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import EXAMPLES, kernels, needs_compiler
from frontends.cpp.example_cases import BLOCKS, CASES

pytestmark = needs_compiler
CHIPS = ("Ascend910B3", "Ascend950PR_9589")
VECTOR = ("vector_add", "softmax", "layernorm", "reduction", "top_k", "histogram")
KERNELS = [key for key in CASES if key[0] in VECTOR]


@pytest.mark.thinned(7)
@pytest.mark.parametrize(("file", "name"), KERNELS)
def test_an_example_gives_the_same_bytes(file, name):
    given = CASES[file, name](BLOCKS, 1).arguments
    results = []
    for chip in CHIPS:
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        made = getattr(cubecore.load(EXAMPLES / f"{file}.cpp", chip=chip), name)
        run = made[BLOCKS](*arguments)
        assert [f.message for f in run.findings] == []
        results.append([a.tobytes() for a in arguments if isinstance(a, np.ndarray)])
    assert results[0] == results[1]


FLAGGED = """
  GlobalTensor<float> xg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  zg.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECIN, 0, 128), d(TPosition::VECOUT, 512, 128);
  DataCopy(a, xg, 128);
  LOADED
  Muls(d, a, 3.0f, 128);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(zg, d, 128);
"""
FLAG = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_missing_flag_is_a_finding_on_both(chip):
    bodies = {"right": FLAGGED.replace("LOADED", FLAG), "wrong": FLAGGED.replace("LOADED", "")}
    made = kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=chip)
    x, z = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    assert [f.message for f in made.right[1](x, z).findings] == []
    assert np.array_equal(z, 3 * x)
    assert "race-raw" in {f.id for f in made.wrong[1](x, z).findings}


SIZES = ("ASC_UB_SIZE", "ASC_L1_SIZE", "ASC_L0A_SIZE", "ASC_L0B_SIZE", "ASC_L0C_SIZE")
LISTED = """
  GlobalTensor<int64_t> to;
  to.SetGlobalBuffer((__gm__ int64_t*)z);
  const uint64_t sizes[] = {SIZES};
  for (int n = 0; n < 5; ++n) to.SetValue(n, static_cast<int64_t>(sizes[n]));
"""
ARRAY = "__ubuf__ uint8_t held[BYTES]; (void)held; (void)z;"


@pytest.mark.parametrize("chip", CHIPS)
def test_memories_have_the_sizes_of_the_chip_and_arrays_may_fill_ub(chip):
    facts = cubecore.chip(chip)
    bodies = {
        "listed": LISTED.replace("SIZES", ", ".join(SIZES)),
        "whole": ARRAY.replace("BYTES", "ASC_UB_SIZE"),
        "more": ARRAY.replace("BYTES", "ASC_UB_SIZE + 32"),
    }
    made, z = kernels(bodies, "GM_ADDR z", chip=chip), np.zeros(5, np.int64)
    assert [f.message for f in made.listed[1](z).findings] == []
    names = ("ub_user_bytes", "l1_user_bytes", "l0a_bytes", "l0b_bytes", "l0c_bytes")
    assert z.tolist() == [getattr(facts, name) for name in names]
    assert [f.message for f in made.whole[1](z).findings] == []
    need = f"an array must fit {facts.ub_user_bytes} B, got {facts.ub_user_bytes + 32} B"
    with pytest.raises(CubecoreError, match=need):
        made.more[1](z)


@pytest.mark.parametrize("chip", CHIPS)
def test_arrays_of_python_may_fill_ub(chip):
    most = cubecore.chip(chip).ub_user_bytes

    def allocating(size):
        @cubecore.kernel(chip=chip)
        def held(core):
            core.ubuf("uint8_t", size)

        return held

    assert allocating(most)[1]().clean
    with pytest.raises(CubecoreError, match=f"{most} B"):
        allocating(most + 32)[1]()

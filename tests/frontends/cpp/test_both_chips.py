"""Class-API kernels written for A2 give the same bytes, without findings, on A2 and on 950."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import EXAMPLES, kernels, needs_compiler
from frontends.cpp.example_cases import BLOCKS, CASES

pytestmark = needs_compiler
CHIPS = ("Ascend910B3", "Ascend950PR_9589")
VECTOR = ("vector_add", "softmax", "layernorm", "reduction", "top_k", "histogram")
KERNELS = [key for key in CASES if key[0] in VECTOR]


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


@pytest.mark.parametrize("chip", CHIPS)
def test_a_missing_flag_is_a_finding_on_both(chip):
    bodies = {"right": FLAGGED.replace("LOADED", FLAG), "wrong": FLAGGED.replace("LOADED", "")}
    made = kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=chip)
    x, z = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    assert [f.message for f in made.right[1](x, z).findings] == []
    assert np.array_equal(z, 3 * x)
    assert "race-raw" in {f.id for f in made.wrong[1](x, z).findings}

"""Launches that save work: cores that go on behind a wait, calls that earlier launches bound."""

import numpy as np
import pytest

import cubecore
from cubecore.chips import chip as chip_named
from cubecore.frontends.capi.calls import bound_calls
from cubecore.frontends.capi.calls.call_sites import known_calls as calls_of
from cubecore.frontends.cpp.launch import kernels as launches
from frontends.cpp.cpp_kernels import EXAMPLES, kernels, needs_compiler
from frontends.cpp.example_cases import CASES

pytestmark = needs_compiler
COUNT = 64
PARAMETERS = "GM_ADDR x, GM_ADDR w, GM_ADDR z"
TURNS = """
KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
constexpr uint32_t n = 64;
GlobalTensor<int32_t> xg, wg, zg;
xg.SetGlobalBuffer((__gm__ int32_t*)x);
wg.SetGlobalBuffer((__gm__ int32_t*)w);
zg.SetGlobalBuffer((__gm__ int32_t*)z);
int32_t start = ((__gm__ int32_t*)x)[1];
if ASCEND_IS_AIC {
  CrossCoreWaitFlag(0);
  CrossCoreSetFlag<2, PIPE_FIX>(1);
  return;
}
LocalTensor<int32_t> a(TPosition::VECIN, 0, n);
if (GetSubBlockIdx() == 0) {
  DataCopy(a, xg, n);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Adds(a, a, start, n);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(wg, a, n);
}
CrossCoreSetFlag<2, PIPE_MTE3>(0);
CrossCoreWaitFlag(1);
"""
STORE = """
if (GetSubBlockIdx() == 1) {
  int32_t read = READ;
  Duplicate(a, read, n);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(zg, a, n);
}
"""
READS = {"through_pointer": "((__gm__ int32_t*)w)[3]", "by_value": "wg.GetValue(3)", "none": "0"}
BODIES = {name: TURNS + STORE.replace("READ", read) for name, read in READS.items()}
BODIES["printed"] = BODIES["by_value"].replace("DataCopy(zg", 'printf("%d.", read);DataCopy(zg')


@pytest.fixture(scope="module")
def module():
    return kernels(BODIES, PARAMETERS)


def launch(module, name):
    x, w, z = np.arange(COUNT, dtype=np.int32) * 5, np.zeros(COUNT, "i4"), np.zeros(COUNT, "i4")
    run = module[name].changed(outputs=("z",))[1](x, w, z)
    assert run.findings == ()
    return w, z, run


@pytest.mark.parametrize("name", BODIES)
def test_a_core_sees_what_it_waited_for(module, name, capfd):
    w, z, _ = launch(module, name)
    assert (w == np.arange(COUNT) * 5 + 5).all()
    assert (z == (0 if name == "none" else 20)).all()
    assert capfd.readouterr().out == ("core 0 AIV1: 20.\n" if name == "printed" else "")


def test_only_a_reader_through_pointers_pauses(module, monkeypatch):
    pausing = set()
    monkeypatch.setattr(launches, "_PAUSING", pausing)
    launch(module, "by_value")
    launch(module, "none")
    assert not pausing
    first = launch(module, "through_pointer")
    assert pausing
    again = launch(module, "through_pointer")
    assert [run.issued for _, _, run in (first, again)] == [first[2].issued] * 2


def test_later_launches_bind_no_call_again(module, monkeypatch):
    before = launch(module, "by_value")[0]
    monkeypatch.setattr(bound_calls, "bind", None)
    assert (launch(module, "by_value")[0] == before).all()


def test_a_launch_that_was_in_order_is_known_to_the_next_process():
    mix = cubecore.load(EXAMPLES / "matmul_leaky_relu.cpp").matmul_leaky_relu
    given = CASES["matmul_leaky_relu", "matmul_leaky_relu"](2, 1).arguments
    known = calls_of(mix.function, chip_named("Ascend910B3")).launches
    left = []
    for _ in range(2):
        assert mix[2](*given).findings == ()
        left.append((len(known.names.templates), len(known.ordered)))
    assert left[0] == left[1]
    assert left[0][1] == 1


@pytest.mark.sweep
def test_a_launch_out_of_order_is_never_known(tmp_path):
    text = (EXAMPLES / "matmul_leaky_relu.cpp").read_text()
    (tmp_path / "cube_tiles.h").write_text((EXAMPLES / "cube_tiles.h").read_text())
    (tmp_path / "mix.cpp").write_text(text.replace("CrossCoreWaitFlag<2, PIPE_MTE2>(READY);", ""))
    mutant = cubecore.load(tmp_path / "mix.cpp").matmul_leaky_relu
    given = CASES["matmul_leaky_relu", "matmul_leaky_relu"](2, 1).arguments
    found = [mutant[2](*given).findings for _ in range(2)]
    assert found[0]
    assert found[0] == found[1]

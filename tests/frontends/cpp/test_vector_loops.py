"""Loops of vector functions that the unit does not run by itself, found in the text."""

import numpy as np
import pytest

from cubecore.frontends.cpp.rewriting.tokens import tokens
from cubecore.frontends.cpp.rewriting.vector_loops import software_loops
from frontends.cpp.cpp_kernels import kernels, needs_compiler

HARDWARE = "for (uint16_t i = 0; i < n; ++i) { f(i); }"
LOOPS = {
    HARDWARE: [],
    "for (uint16_t i = 0; i < n; i++) f(i);": [],
    "for (uint16_t i = 0; i < n; i += 1) { if constexpr (k) { f(i); } }": [],
    "for (int32_t i = 0; i < n; ++i) f(i);": ["a counter of int32_t"],
    "for (uint16_t i = 1; i < n; ++i) f(i);": ["a counter from 1"],
    "for (uint16_t i = 0; i < n; i += 2) f(i);": ["the step i+=2"],
    "for (i = 0; i < n; ++i) f(i);": ["the counter i from outside"],
    "while (n) { --n; }": ["a while"],
    "do { --n; } while (n);": ["a do"],
    "for (uint16_t i = 0; i < n; ++i) { if (i) f(i); }": ["an if in its body"],
    "for (uint16_t i = 0; i < n; ++i) { continue; }": ["a continue in its body"],
    f"for (uint16_t k = 0; k < n; ++k) {{ {HARDWARE} }}": [],
    f"for (uint32_t k = 0; k < n; ++k) {{ {HARDWARE} }}": ["a counter of uint32_t"],
    "for (uint16_t a = 0; a < n; ++a) " * 5 + "f(a);": ["4 loops around it"],
}


@pytest.mark.parametrize("text", LOOPS)
def test_reasons(text):
    code = [token for token in tokens(text) if token.kind not in {"space", "comment"}]
    assert [loop.reason for loop in software_loops(code, 0, len(code))] == LOOPS[text]


BODY = """__ubuf__ float* xu = (__ubuf__ float*)0;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 1024);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  Doubled(xu);
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)x, (__ubuf__ void*)xu, 1024);"""
FUNCTION = """__simd_vf__ inline void Doubled(__ubuf__ float* x) {
  Reg::RegTensor<float> a;
  Reg::MaskReg all = Reg::CreateMask<float>();
  for (KIND i = 0; i < 4; ++i) {
    Reg::LoadAlign(a, x + 64 * i);
    Reg::Add(a, a, a, all);
    Reg::StoreAlign(x + 64 * i, a, all);
  }
}"""


@pytest.mark.thinned(2)
@needs_compiler
@pytest.mark.parametrize("kind", ["uint16_t", "int32_t"])
def test_a_software_loop_is_a_note_at_its_line(kind):
    before = FUNCTION.replace("KIND", kind)
    kernel = kernels(
        {"k": BODY}, "GM_ADDR x", before, chip="Ascend950PR_9589", auto_sync=False, checks="all"
    ).k
    x = np.arange(256, dtype=np.float32)
    run = kernel[1](x)
    assert np.array_equal(x, 2 * np.arange(256))
    found = [(finding.id, finding.location.line) for finding in run.findings]
    assert found == ([] if kind == "uint16_t" else [("vf-loop", 6)])

"""Bodies on vectors as kernels of one file: a frame around each, compiled together, once."""

import numpy as np
from ml_dtypes import bfloat16

from frontends.cpp.cpp_kernels import kernels

N = 512
"""Elements of every vector: eight repeats of float, four of half."""

FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> all;
  pipe.InitBuffer(all, 65536);
  LocalTensor<{A}> a = all.GetWithOffset<{A}>({n}, 0);
  LocalTensor<{A}> b = all.GetWithOffset<{A}>({n}, 8192);
  LocalTensor<{Z}> z = all.GetWithOffset<{Z}>({m}, 16384);
  LocalTensor<{A}> work = all.GetWithOffset<{A}>({n}, 32768);
  LocalTensor<uint8_t> bits = all.GetWithOffset<uint8_t>(4096, 49152);
  GlobalTensor<{A}> ga, gb;
  GlobalTensor<{Z}> gz;
  ga.SetGlobalBuffer((__gm__ {A}*)x, {n});
  gb.SetGlobalBuffer((__gm__ {A}*)y, {n});
  gz.SetGlobalBuffer((__gm__ {Z}*)out, {m});
  DataCopy(a, ga, {n});
  DataCopy(b, gb, {n});
  DataCopy(z, gz, {m});
  PipeBarrier<PIPE_ALL>();
  {body}
  PipeBarrier<PIPE_ALL>();
  DataCopy(gz, z, {m});
"""
C_NAMES = {
    np.float32: "float",
    np.float16: "half",
    np.int32: "int32_t",
    np.int16: "int16_t",
    np.uint16: "uint16_t",
    np.uint32: "uint32_t",
    np.int8: "int8_t",
    np.uint8: "uint8_t",
    np.int64: "int64_t",
    bfloat16: "bfloat16_t",
}


def drawn(kind, seed, n=N):
    rng = np.random.default_rng(seed)
    if np.issubdtype(kind, np.integer):
        return rng.integers(-100 if np.issubdtype(kind, np.signedinteger) else 0, 100, n).astype(
            kind
        )
    return (rng.standard_normal(n) * 4).astype(kind)


class Case:
    """A body on vectors a and b of global memory, whose z goes back to it."""

    def __init__(self, cases, body, kind=np.float32, out=None, m=N):
        self.cases, self.kind, self.out, self.m = cases, kind, out or kind, m
        values = {"A": C_NAMES[kind], "Z": C_NAMES[self.out], "n": str(N), "m": str(m)}
        text = FRAME
        for name, value in (values | {"body": body}).items():
            text = text.replace("{" + name + "}", value)
        self.text, self.name = text, f"k{len(cases.all)}"

    def run(self, x=None, y=None):
        """Return the vectors, what z was, and what it is."""
        a = drawn(self.kind, 1) if x is None else x
        b = drawn(self.kind, 2) if y is None else y
        before = drawn(self.out, 3, self.m)
        z = before.copy()
        run = self.cases.compiled()[self.name][1](a.copy(), b.copy(), z)
        assert run.findings == (), run.findings
        return a, b, before, z


class Cases:
    """The cases of one test file."""

    def __init__(self, before=""):
        self.all, self.before, self.module = [], before, None

    def case(self, *arguments, **words):
        self.all.append(Case(self, *arguments, **words))
        return self.all[-1]

    def compiled(self):
        if self.module is None:
            bodies = {case.name: case.text for case in self.all}
            parameters = "GM_ADDR x, GM_ADDR y, GM_ADDR out"
            self.module = kernels(bodies, parameters, self.before)
        return self.module


def same(got, want):
    assert np.array_equal(got, want, equal_nan=True), (got[:8], want[:8])

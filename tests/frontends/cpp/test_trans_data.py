"""TransData between NCDHW and its formats in blocks of 16, against NumPy."""

from functools import cache

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
SHAPES = [(1, 32, 2, 2, 8), (2, 20, 1, 3, 5), (17, 16, 2, 1, 3), (18, 5, 1, 4, 4)]
BEFORE = """
#define FORMAT(FROM, TO) \\
  static constexpr TransDataConfig config = {DataFormat::FROM, DataFormat::TO}
"""
BODY = """
  FORMAT({formats});
  GlobalTensor<half> from, to;
  from.SetGlobalBuffer((__gm__ half*)x);
  to.SetGlobalBuffer((__gm__ half*)z);
  TPipe pipe;
  TBuf<TPosition::VECCALC> held, work;
  pipe.InitBuffer(held, 2 * 40960);
  pipe.InitBuffer(work, {work});
  LocalTensor<half> a = held.Get<half>(), b = a[20480];
  DataCopy(a, from, given);
  DataCopy(b, to, taken);
  PipeBarrier<PIPE_ALL>();
  auto volume = MakeLayout(MakeShape(n, c, d, h, w), MakeStride());
  auto blocks = MakeLayout(MakeShape(n, d, (c + 15) / 16, h, w, 16), MakeStride());
  auto fractals =
      MakeLayout(MakeShape(d, (c + 15) / 16, h, w, (n + 15) / 16, 16, 16), MakeStride());
  TransDataParams<decltype({source}), decltype({target})> params = {{{source}, {target}}};
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, b, taken);
"""
WITH = "TransData<config>(b, a, work.Get<uint8_t>(), params);"
CASES = {
    "blocks": ("NCDHW, NDC1HWC0", "volume", "blocks", WITH),
    "from_blocks": ("NDC1HWC0, NCDHW", "blocks", "volume", "TransData<config>(b, a, params);"),
    "fractals": ("NCDHW, FRACTAL_Z_3D", "volume", "fractals", WITH),
    "from_fractals": ("FRACTAL_Z_3D, NCDHW", "fractals", "volume", WITH),
}
PARAMETERS = "GM_ADDR x, GM_ADDR z, int n, int c, int d, int h, int w, int given, int taken"


@cache
def module():
    bodies = {
        name: BODY.format(formats=formats, source=source, target=target, call=call, work=1024)
        for name, (formats, source, target, call) in CASES.items()
    }
    formats, source, target, _ = CASES["blocks"]
    bodies["small"] = BODY.format(
        formats=formats, source=source, target=target, call=WITH, work="111 * 1024"
    ).replace("work.Get<uint8_t>()", "work.Get<uint8_t>(992)")
    return kernels(bodies, PARAMETERS, BEFORE)


def padded(values, axis, to=16):
    """Return values with zeros behind an axis, up to a multiple."""
    more = [(0, 0)] * values.ndim
    more[axis] = (0, -values.shape[axis] % to)
    return np.pad(values, more)


def oracle(x, fractals):
    """Return NDC1HWC0, or FRACTAL_Z_3D, of NCDHW."""
    n, _, d, h, w = x.shape
    blocks = padded(x, 1).reshape(n, -1, 16, d, h, w)
    if not fractals:
        return blocks.transpose(0, 3, 1, 4, 5, 2)
    blocks = padded(blocks, 0)
    return blocks.reshape(-1, 16, *blocks.shape[1:]).transpose(4, 2, 5, 6, 0, 1, 3)


def stored(x):
    """Return NCDHW with its rows of H and W padded to blocks."""
    n, c, d, h, w = x.shape
    return padded(x.reshape(n, c, d, h * w), 3)


def launched(name, given, taken, shape):
    z = np.full(taken, 7, np.float16)
    x = np.ascontiguousarray(given).reshape(-1)
    run = module()[name][1](x, z, *shape, x.size, z.size)
    assert run.findings == ()
    return z


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fractals", [False, True])
@pytest.mark.thinned(8)
def test_a_volume_is_put_into_blocks_of_channels_and_back(shape, fractals):
    x = np.random.default_rng(1).integers(1, 2000, shape).astype(np.float16)
    name = "fractals" if fractals else "blocks"
    want = oracle(x, fractals)
    assert np.array_equal(launched(name, stored(x), want.size, shape), want.reshape(-1))
    rows = launched(f"from_{name}", want, stored(x).size, shape)
    area = shape[3] * shape[4]
    assert np.array_equal(rows.reshape(stored(x).shape)[..., :area], stored(x)[..., :area])


def test_a_workspace_that_holds_no_matrix_is_refused():
    with pytest.raises(CubecoreError) as caught:
        launched("small", np.zeros(32 * 32 * 2, np.float16), 32 * 32 * 2, (1, 32, 2, 4, 8))
    assert str(caught.value).partition("): ")[2] == (
        "TransData.sharedTmpBuffer must have 2048 B or more, got 992 B"
    )

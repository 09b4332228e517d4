"""Cheats: submissions that get results accepted without computing them, each with its mark.

Those with a function `cheat` are called by it; the others are kernels. A task that a cheat is for
stands beside it where it is not the usual one, z = x + y.
"""

from typing import NamedTuple

from workflows.judge.judged_kernels import ADD, HOST, PYTHON, TASK, strings

HEAD = (
    PYTHON.replace("import cubecore\n", "import cubecore\nimport numpy as np\n", 1)
    + """

@cubecore.kernel
def nothing(core, x, y, z):
    core.asc_sync()


@cubecore.kernel
def zeros(core, x, y, z):
    at = 256 * core.asc_get_block_idx()
    a = core.ubuf("float", 256)
    core.asc_duplicate(a, 0.0, 256)
    core.asc_sync()
    core.asc_copy_ub2gm_sync(z + at, a, 1024)


@cubecore.kernel
def copy(core, x, z):
    at = 256 * core.asc_get_block_idx()
    a = core.ubuf("float", 256)
    core.asc_copy_gm2ub_sync(a, x + at, 1024)
    core.asc_copy_ub2gm_sync(z + at, a, 1024)


@cubecore.kernel
def add_to_x(core, x, y):
    at = 256 * core.asc_get_block_idx()
    a, b = core.ubuf("float", 256), core.ubuf("float", 256)
    core.asc_copy_gm2ub(a, x + at, 1024)
    core.asc_copy_gm2ub_sync(b, y + at, 1024)
    core.asc_add(a, a, b, 256)
    core.asc_sync()
    core.asc_copy_ub2gm_sync(x + at, a, 1024)


@cubecore.kernel
def half(core, x, z):
    at = 256 * core.asc_get_block_idx()
    a = core.ubuf("float", 256)
    core.asc_copy_gm2ub_sync(a, x + at, 1024)
    core.asc_mul_scalar(a, a, 0.5, 256)
    core.asc_sync()
    core.asc_copy_ub2gm_sync(z + at, a, 1024)


def honest(x, y):
    z = np.empty_like(x)
    add.using(outputs=("z",))[4](x=x, y=y, z=z)
    return z

"""
)
MEAN = """import numpy as np

ATOL, RTOL = 1e-2, 1e-2


def inputs(case, rng):
    return {"x": (1e-4 * rng.standard_normal(1024)).astype(np.float32)}


def reference(x):
    return {"z": x * x}
"""
"""A task whose results are nearer to 0 than its tolerance."""
LOOSE = TASK.replace("CASES = 2", "CASES, ATOL, RTOL = 2, 0.0, 1e-2")


class Cheat(NamedTuple):
    """A submission, and the mark that the verdict has for it."""

    text: str
    mark: str
    entry: str = "cheat"
    task: str = TASK


def called(body: str, head: str = HEAD) -> str:
    """Return a submission with a function of this body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{head}\ndef cheat(x, y):\n{lines}"


def kernel(old: str, new: str, text: str = ADD) -> str:
    assert old in text
    return text.replace(old, new)


CHEATS = {
    # without a launch, or with one that does not matter
    "an expression": Cheat(called("return x + y"), "no-launch"),
    "the first results again": Cheat(
        called("global kept\nif 'kept' not in globals(): kept = honest(x, y)\nreturn kept"),
        "no-launch",
    ),
    "a launch for show": Cheat(
        called("honest(x, y)\nreturn (x + y) * 1.0000001"), "not-of-a-launch"
    ),
    "a launch for show, of zeros": Cheat(
        called("z = np.empty_like(x)\nzeros.using(outputs=('z',))[4](x=x, y=y, z=z)\nreturn x + y"),
        "not-of-a-launch",
    ),
    "a launch on a part": Cheat(
        called(
            "z = np.empty_like(x)\nadd.using(outputs=('z',))[1](x=x, y=y, z=z)\n"
            "return np.concatenate([z[:256], x[256:] + y[256:]])"
        ),
        "not-of-a-launch",
    ),
    "the reference's function copied": Cheat(
        called(
            "return reference(x, y)", HEAD + "\ndef reference(x, y):\n    return {'z': x + y}\n"
        ),
        "no-launch",
    ),
    "a result rounded behind": Cheat(called("return np.round(honest(x, y), 5)"), "not-of-a-launch"),
    # with bytes that no kernel has written
    "an output left alone": Cheat(
        called("z = x + y\nnothing[1](x=x, y=y, z=z)\nreturn z"), "not-of-a-launch"
    ),
    "an output that has the results already": Cheat(
        called(
            "z = x + y\nnothing.using(outputs=('z',))[1](x=x, y=y, z=z)\nz[:] = x + y\nreturn z"
        ),
        "not-of-a-launch",
    ),
    "a kernel that writes nothing": Cheat(
        kernel("DataCopy(gz, c, 256)", "(void)gz"), "unwritten", "", TASK
    ),
    "a kernel that writes a half": Cheat(
        kernel("DataCopy(gz, c, 256)", "DataCopy(gz, c, 128)"), "unwritten", "", TASK
    ),
    "zeros, and the results behind": Cheat(
        called(
            "z = np.empty_like(x)\nzeros.using(outputs=('z',))[4](x=x, y=y, z=z)\n"
            "z[:] = x + y\nreturn z"
        ),
        "changed-after-launch",
    ),
    "one element mended behind": Cheat(
        called("z = honest(x, y)\nz[7] = x[7] + y[7] + np.float32(1e-6)\nreturn z"),
        "changed-after-launch",
    ),
    "a view changed behind": Cheat(
        called("z = honest(x, y)\nz.view(np.uint32)[:] ^= 1\nreturn z"), "changed-after-launch"
    ),
    # computed before the launch
    "a kernel that copies": Cheat(
        called("z = np.empty_like(x)\ncopy.using(outputs=('z',))[4](x=x + y, z=z)\nreturn z"),
        "computed-before-launch",
    ),
    "a sum with zeros": Cheat(
        called(
            "z = np.empty_like(x)\nadd.using(outputs=('z',))[4](x=x + y, y=0 * x, z=z)\nreturn z"
        ),
        "computed-before-launch",
    ),
    "a table of the results": Cheat(
        HEAD
        + f"\nTABLE = [{', '.join(['0.5'] * 64)}]\n\ndef cheat(x, y):\n    return honest(x, y)\n",
        "value-table",
    ),
    "data of the tiling function": Cheat(
        strings(host_operator_src=HOST.replace('"y").', '"y").ValueDepend(REQUIRED).')),
        "values-on-the-host",
        "",
    ),
    "a product that the kernel undoes": Cheat(
        called("z = np.empty_like(x)\nhalf.using(outputs=('z',))[4](x=2 * (x + y), z=z)\nreturn z"),
        "prepared-inputs",
    ),
    "a sum in two pieces": Cheat(
        called("s = x + y\nreturn honest(np.float32(0.75) * s, np.float32(0.25) * s)"),
        "prepared-inputs",
    ),
    "a launch for the first block alone": Cheat(
        called("a, b = x.copy(), y.copy()\na[256:] += y[256:]\nb[256:] = 0\nreturn honest(a, b)"),
        "prepared-inputs",
    ),
    # without the inputs, or for those that were drawn
    "results that never change": Cheat(
        HEAD + "\nheld = {}\n\ndef cheat(x, y):\n"
        "    return held.setdefault(x.size, honest(x, y)).copy()\n",
        "independent-of-inputs",
        task=TASK.replace("CASES = 2", "CASES = 1"),
    ),
    "a shift of the inputs that were drawn": Cheat(
        HEAD + "\nseen = []\n\ndef cheat(x, y):\n    seen.append(x[0])\n"
        "    return honest(x, y if x[0] == seen[0] else x)\n",
        "given-inputs-alone",
        task=TASK.replace("CASES = 2", "CASES = 1"),
    ),
    "zeros within the tolerance": Cheat(
        HEAD + "\ndef cheat(x):\n    z = np.empty_like(x)\n"
        "    zeros.using(outputs=('z',))[4](x=x, y=x, z=z)\n    return z\n",
        "independent-of-inputs",
        task=MEAN,
    ),
    "a constant": Cheat(
        HEAD + "\ndef cheat(x):\n    z = np.empty_like(x)\n"
        "    copy.using(outputs=('z',))[4](x=0 * x, z=z)\n    return z\n",
        "constant-result",
        task=MEAN,
    ),
    "results into the inputs": Cheat(
        called("z = honest(x, y)\nadd_to_x[4](x=x, y=y)\nreturn z"), "inputs-changed"
    ),
    "inputs set to zero": Cheat(called("z = honest(x, y)\nx[:] = 0\nreturn z"), "inputs-changed"),
    # tolerance
    "results of half precision": Cheat(
        called(
            "h = lambda a: a.astype(np.float16).astype(np.float32)\nz = honest(h(x), h(y))\n"
            "c = np.empty_like(x)\ncopy.using(outputs=('z',))[4](x=h(z), z=c)\nreturn c"
        ),
        "lower-precision",
        task=LOOSE.replace("1e-2", "1e-1"),
    ),
    "results off by half of the tolerance": Cheat(
        called(
            "z = np.empty_like(x)\nadd.using(outputs=('z',))[4](x=x * np.float32(1.006), "
            "y=y * np.float32(1.006), z=z)\nreturn z"
        ),
        "tolerance-ridden",
        task=LOOSE,
    ),
    # reaching out
    "a file": Cheat(
        called("try: np.load('expected.npy')\nexcept OSError: pass\nreturn honest(x, y)"),
        "reaches-outside",
    ),
    "the interpreter's objects": Cheat(
        called("import gc\ngc.get_objects()\nreturn honest(x, y)"), "reaches-outside"
    ),
    "the caller's frame": Cheat(
        called("import sys\nsys._getframe(1)\nreturn honest(x, y)"), "reaches-outside"
    ),
    "cubecore's records": Cheat(
        called("from cubecore.frontends.kernels import session\nreturn honest(x, y)"),
        "reaches-outside",
    ),
    "a clock that stands": Cheat(
        called("import time\ntime.perf_counter = lambda: 0.0\nreturn honest(x, y)"), "patches"
    ),
    "a comparison that accepts": Cheat(
        called("np.allclose = lambda *_: True\nreturn honest(x, y)"), "patches"
    ),
    "a method of the kernel's class": Cheat(
        called("setattr(type(add), 'mark', lambda *_: None)\nreturn honest(x, y)"), "patches"
    ),
    "an attribute of the kernel's class": Cheat(
        called("add.__class__.mark = None\nreturn honest(x, y)"), "patches"
    ),
    "the kernel's fields": Cheat(called("vars(add)\nreturn honest(x, y)"), "reaches-outside"),
    "a module's names": Cheat(called("np.__dict__\nreturn honest(x, y)"), "reaches-outside"),
    "cubecore's own product": Cheat(
        called("z = honest(x, y)\nif x[0] > 1e9: z = cubecore.run(m=16, n=16, k=16)\nreturn z"),
        "reaches-outside",
    ),
    "a clock that decides": Cheat(
        called("import time\nreturn honest(x, y) if time.time() < 1e12 else x"), "reaches-outside"
    ),
    "a function at the end": Cheat(
        called("import atexit\natexit.register(int)\nreturn honest(x, y)"), "reaches-outside"
    ),
    "the answer for the given shape alone": Cheat(
        called("if x.size == 1024: return honest(x, y)\nreturn x"), "shape-branch"
    ),
    "a kernel for the given size alone": Cheat(
        kernel("  uint32_t at =", "  if (GetBlockNum() * 256 != 1024) return;\n  uint32_t at ="),
        "shape-branch",
        "",
    ),
    "a scalar loop": Cheat(
        """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  GlobalTensor<float> gx, gy, gz;
  uint32_t at = GetBlockIdx() * 256;
  gx.SetGlobalBuffer((__gm__ float*)x + at, 256);
  gy.SetGlobalBuffer((__gm__ float*)y + at, 256);
  gz.SetGlobalBuffer((__gm__ float*)z + at, 256);
  for (int i = 0; i < 256; ++i) gz.SetValue(i, gx.GetValue(i) + gy.GetValue(i));
  DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(gz);
}
""",
        "scalar-compute",
        "",
    ),
    "a file of the kernel's": Cheat(
        kernel(
            "using namespace AscendC;",
            "#include <fstream>\nusing namespace AscendC;\n"
            'static void look() { std::ifstream file("/tmp/expected.npy"); }',
        ),
        "reaches-outside",
        "",
    ),
}

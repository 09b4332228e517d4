"""Random requests of the command line, and random products beside an oracle of their own."""

import numpy as np

import cubecore
from cubecore.errors import CubecoreError
from fuzz.judge import judge

_WORDS = (
    *(
        "0",
        "-1",
        "1",
        "17",
        "1e3",
        "nan",
        "inf",
        "9" * 30,
        "9" * 5000,
        "0x10",
        "\u2028",
        "\udcff",
        "",
    ),
    *(
        "ND",
        "NZ",
        "GM",
        "VECIN",
        "TSCM",
        "NORM",
        "MDL",
        "IBSHARE",
        "mix",
        "cube",
        "DEQF16",
        "VREQ8",
    ),
    *(
        "float16",
        "int8",
        "bfloat16",
        "float32",
        "int4",
        "mxfp8",
        "half",
        "float8_e4m3fn",
        "None",
        "[]",
    ),
    *(
        "Ascend910B3",
        "Ascend950PR_9589",
        "Ascend310P3",
        "A2",
        "-",
        "/dev/null",
        ".",
        "x.npy",
        "all",
    ),
)
_OPTIONS = (
    *("a", "b", "c", "bias", "chip", "launch", "cores", "kb", "batch", "template", "format-a"),
    *(
        "format-b",
        "format-c",
        "pos-a",
        "pos-c",
        "quant",
        "scale",
        "offset",
        "scale-a",
        "scale-file",
    ),
    *(
        "checks",
        "engine",
        "order",
        "step",
        "alternatives",
        "tiling",
        "a-file",
        "set",
        "fix",
        "budget",
    ),
    *(
        "layout",
        "heads",
        "seed",
        "trace-window",
        "trace-cores",
        "out",
        "report",
        "sarif",
        "timeout",
    ),
)
_FLAGS = ("trans-a", "trans-b", "split-k", "hf32", "relu", "unit-flag", "json", "exact", "repair")
_VERBS = (
    "plan",
    "check",
    "run",
    "time",
    "chips",
    "explain",
    "compare",
    "store",
    "sweep",
    "validate",
)


def try_requests(tally, folder, rng, count):
    """Try requests of random words."""
    for _ in range(count):
        verb = rng.choice(_VERBS[:4] if rng.random() < 0.7 else _VERBS)
        asked = [verb, *rng.choices(_WORDS, k=rng.choice((0, 0, 1)))]
        if verb in _VERBS[:4] or verb == "sweep":
            most = 60 if verb in {"run", "time", "sweep"} else 3000
            for name in ("--m", "--n", "--k"):
                asked += [name, str(rng.randint(1, most))]
        for _ in range(rng.randrange(4)):
            asked += [f"--{rng.choice(_OPTIONS)}", rng.choice(_WORDS)]
        asked += [f"--{name}" for name in rng.sample(_FLAGS, rng.randrange(3))]
        judge(tally, "random requests", asked, folder)


_TYPES = {"float16": (np.float16, 1e-2), "float32": (np.float32, 1e-4), "int8": (np.int8, 0)}


def try_products(tally, rng, count):
    """Try products of random shapes and options: C must be what long integers or float64 give."""
    name = "random products"
    for _ in range(count):
        m, n, k = (rng.randint(1, rng.choice((20, 70, 200))) for _ in range(3))
        a, (kind, most) = rng.choice(list(_TYPES.items()))
        keys = {
            "trans_a": rng.random() < 0.3,
            "trans_b": rng.random() < 0.3,
            "cores": rng.randint(1, 4),
        }
        draw = np.random.default_rng(rng.randrange(2**32))
        left, right = (draw.integers(-9, 10, shape).astype(kind) for shape in ((m, k), (k, n)))
        stored = (left.T if keys["trans_a"] else left), (right.T if keys["trans_b"] else right)
        tally.tried[name] += 1
        order = rng.choice(("program", "late", "early", f"random:{rng.randrange(99)}"))
        try:
            made = cubecore.run(
                m=m,
                n=n,
                k=k,
                a=a,
                **keys,
                operands=tuple(map(np.ascontiguousarray, stored)),
                order=order,
            )
        except CubecoreError as error:
            tally.fail(name, f"{m} x {n} x {k} {a} {keys}: {error}")
            continue
        exact = left.astype(np.float64) @ right.astype(np.float64)
        error = np.abs(made.c.astype(np.float64) - exact).max()
        if error > most * max(1.0, np.abs(exact).max()):
            tally.fail(name, f"{m} x {n} x {k} {a} {keys} {order}: off by {error}")
        elif not made.verified:
            tally.fail(name, f"{m} x {n} x {k} {a} {keys} {order}: right, and not verified")

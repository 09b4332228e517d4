"""Every function of mathematics of threads against NumPy: one table here, one there.

Functions are compiled by their signatures into one file, each signature with one kernel, which
takes the function's number. Oracles compute in float64, or exactly, and round once.
"""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.frontends.cpp.thread_functions import ThreadMath, thread_functions
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = [needs_compiler, pytest.mark.sweep]
CHIP = "Ascend950PR_9589"
BFLOAT = ml_dtypes.bfloat16
TYPES = {
    "float": "f4", "int": "i4", "unsigned int": "u4", "long": "i8", "unsigned long": "u8",
    "long long": "i8", "unsigned long long": "u8", "int32_t": "i4", "int64_t": "i8",
    "half": "f2", "bfloat16_t": BFLOAT, "unsigned short": "u2", "bool": "u1",
    "half2": "f2", "bfloat16x2_t": BFLOAT, "float2": "f4",
}  # fmt: skip
PAIRS = {"half2", "bfloat16x2_t", "float2"}
FUNCTIONS = [
    each for each in thread_functions() if not any("*" in text for text in each.parameters)
]
BY_POINTER = [each for each in thread_functions() if any("*" in text for text in each.parameters)]


def kinds(function):
    return tuple(text.rpartition(" ")[0] for text in function.parameters)


def signature(function):
    return function.result, kinds(function)


SIGNATURES = sorted({signature(each) for each in FUNCTIONS})
OF_SIGNATURE = {one: [f for f in FUNCTIONS if signature(f) == one] for one in SIGNATURES}


def text():
    lines = ['#include "simt_api/asc_simt.h"']
    for number, (result, given) in enumerate(SIGNATURES):
        types = ", ".join(given)
        arguments = [f"a{n}" for n in range(len(given))]
        parameters = ", ".join(f"{t} {a}" for t, a in zip(given, arguments, strict=True))
        rows = ",\n".join(
            f"[]({parameters}) -> {result} {{ return {f.name}({', '.join(arguments)}); }}"
            for f in OF_SIGNATURE[result, given]
        )
        out = "uint8_t" if result == "bool" else result
        arrays = ", ".join(f"{t}* {a}" for t, a in zip(given, arguments, strict=True))
        each = ", ".join(f"{a}[i]" for a in arguments)
        lines.append(
            f"static {result} (*const table{number}[])({types}) = {{{rows}}};\n"
            f"__global__ void k{number}({arrays}, {out}* out) {{\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;\n"
            f"  out[n * blockIdx.y + i] = table{number}[blockIdx.y]({each});\n}}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def module():
    return cubecore.inline(text(), chip=CHIP)


def inputs(kind, rng, count):
    """Return values of a type: edges first, then some of all sizes."""
    dtype = np.dtype(TYPES[kind])
    lanes = count * (2 if kind in PAIRS else 1)
    if dtype.kind in "iu" and kind != "bool":
        info = np.iinfo(dtype)
        edges = [0, 1, info.max, info.min, info.max // 2, 7]
        some = rng.integers(info.min, info.max, lanes - 6, dtype=dtype, endpoint=True)
        shift = rng.integers(0, 8 * dtype.itemsize, some.size).astype(dtype)
        return np.concatenate([np.array(edges, dtype), some >> shift])
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, -2.5, 3.5, 1e5, -3e38, 6e-8]
    power = rng.uniform(-6, 6, lanes - len(edges))
    some = rng.choice([-1, 1], power.size) * 2.0**power
    with np.errstate(all="ignore"):
        return np.concatenate([edges, some]).astype(np.float32).astype(dtype)


def ran(module, one, given):
    """Return what each function of a signature gives for arrays, by name."""
    (result, types), group = one, OF_SIGNATURE[one]
    count = given[0].size // (2 if types[0] in PAIRS else 1)
    lanes = 2 if result in PAIRS else 1
    out = np.zeros((len(group), count * lanes), TYPES[result])
    kernel = getattr(module, f"k{SIGNATURES.index(one)}")
    kernel[(count // 32, len(group)), 32](*given, out)
    return {function.name: values for function, values in zip(group, out, strict=True)}


ROUND = {
    "rn": round,
    "rna": lambda q: math.floor(abs(q) + Fraction(1, 2)) * (1 if q > 0 else -1),
    "rd": math.floor,
    "ru": math.ceil,
    "rz": math.trunc,
    "ro": lambda q: (
        math.trunc(q)
        if q == math.trunc(q) or math.trunc(q) % 2
        else math.trunc(q) + (1 if q > 0 else -1)
    ),
}
REALS = {
    "half": ("f2", 10, -14, 15),
    "bfloat16": (BFLOAT, 7, -126, 127),
    "float": ("f4", 23, -126, 127),
}
WHOLE = {"int": "i4", "uint": "u4", "ll": "i8", "ull": "u8"}


def to_real(x, target, how):
    _dtype, mantissa, least, most = REALS[target]
    if isinstance(x, float) and not math.isfinite(x):
        return x
    q = Fraction(x)
    if q == 0:
        return float(x)
    power = max(math.floor(math.log2(abs(q))), least)
    power += abs(q) >= Fraction(2) ** (power + 1)
    power -= power > least and abs(q) < Fraction(2) ** power
    unit = Fraction(2) ** (power - mantissa)
    made = ROUND[how](q / unit) * unit
    largest = (2 - Fraction(1, 2**mantissa)) * Fraction(2) ** most
    if abs(made) > largest:
        return math.inf if made > 0 else -math.inf
    return float(made) if made else math.copysign(0.0, q)


def converted(name, x):
    """Return the exact conversion of a number, by the name of its function."""
    source, _, rest = name.strip("_").partition("2")
    target, _, ending = rest.partition("_")
    how = ending.partition("_")[0]
    if target in WHOLE:
        info = np.iinfo(WHOLE[target])
        if math.isnan(x):
            return 0
        return info.max if x >= info.max else info.min if x <= info.min else max(
            info.min, min(info.max, ROUND[how](Fraction(x))))  # fmt: skip
    if source == target:
        return x if not math.isfinite(x) else math.copysign(float(ROUND[how](Fraction(x))), x)
    return to_real(x, target, how)


def erf_inverse(y):
    """Return the x that erf maps to y, by halving."""
    if not -1 <= y <= 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return low


def erfc_inverse(y):
    if not 0 <= y <= 2:
        return math.nan
    if y in {0, 2}:
        return math.inf if y == 0 else -math.inf
    low, high = -30.0, 30.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > y else (low, middle)
    return low


def bessel(order, x):
    """Return I0 or I1 as the mean of an integrand, which converges fast for periodic ones."""
    if not math.isfinite(x) or abs(x) > 80:
        return math.nan if math.isnan(x) else math.copysign(math.inf, x) if order else math.inf
    angle = (np.arange(512) + 0.5) * np.pi / 512
    return float(np.mean(np.exp(x * np.cos(angle)) * np.cos(order * angle)))


def scaled_erfc(x):
    if math.isnan(x) or x < -26 or x > 26:
        return None
    return math.exp(x * x) * math.erfc(x)


def turned(function):
    def of(x):
        if not math.isfinite(x):
            return math.nan
        half = Fraction(x) % 2
        return function(float(half) * math.pi) if half * 2 % 1 else {
            0: (0.0, 1.0), 1: (1.0, 0.0), 2: (0.0, -1.0), 3: (-1.0, 0.0)}[int(half * 2)][
            function is math.cos]  # fmt: skip

    return of


def by_numpy(function):
    def of(*given):
        with np.errstate(all="ignore"):
            return float(function(*(np.float64(each) for each in given)))

    return of


def popcount(x):
    return (int(x) % 2**64).bit_count()


def away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) else x


IN_NUMPY = {
    "acosf": np.arccos, "acoshf": np.arccosh, "asinf": np.arcsin, "asinhf": np.arcsinh,
    "atan2f": np.arctan2, "atanf": np.arctan, "atanhf": np.arctanh, "cbrtf": np.cbrt,
    "ceilf": np.ceil, "copysignf": np.copysign, "cosf": np.cos, "coshf": np.cosh,
    "exp2f": np.exp2, "expf": np.exp, "expm1f": np.expm1, "fabsf": np.abs, "floorf": np.floor,
    "fmaxf": np.fmax, "fminf": np.fmin, "fmodf": np.fmod, "hypotf": np.hypot,
    "log10f": np.log10, "log1pf": np.log1p, "log2f": np.log2, "logf": np.log,
    "nearbyintf": np.rint, "powf": np.power, "rintf": np.rint, "sinf": np.sin, "sinhf": np.sinh,
    "sqrtf": np.sqrt, "tanf": np.tan, "tanhf": np.tanh, "truncf": np.trunc,
    "exp10f": lambda x: np.power(10.0, x), "fdividef": np.divide, "__fdividef": np.divide,
    "rsqrtf": lambda x: 1 / np.sqrt(x), "rcbrtf": lambda x: 1 / np.cbrt(x),
    "rhypotf": lambda x, y: 1 / np.sqrt(x * x + y * y),
    "norm3df": lambda a, b, c: np.sqrt(a * a + b * b + c * c),
    "norm4df": lambda a, b, c, d: np.sqrt(a * a + b * b + c * c + d * d),
    "rnorm3df": lambda a, b, c: 1 / np.sqrt(a * a + b * b + c * c),
    "rnorm4df": lambda a, b, c, d: 1 / np.sqrt(a * a + b * b + c * c + d * d),
    "fdimf": lambda x, y: np.nan if math.isnan(x) or math.isnan(y) else x - y if x > y else 0.0,
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "signbit": np.signbit,
}  # fmt: skip
IN_PYTHON = {
    "erff": math.erf, "erfcf": math.erfc, "roundf": away,
    "remainderf": lambda x, y: math.remainder(x, y)
    if math.isfinite(x) and y and not math.isnan(y) else math.nan,
    "fmaf": lambda x, y, z: x * y + z,
    "lgammaf": lambda x: math.lgamma(x) if math.isfinite(x) and not (x <= 0 and x == int(x))
    else x if math.isnan(x) else math.inf,
    "tgammaf": lambda x: math.gamma(x) if 0 < x < 30 else None,
    "logbf": lambda x: math.frexp(x)[1] - 1.0 if math.isfinite(x) and x
    else x if math.isnan(x) else math.inf if x else -math.inf,
    "ilogbf": lambda x: math.frexp(x)[1] - 1 if math.isfinite(x) and x else None,
    "ldexpf": lambda x, n: math.ldexp(x, max(-900, int(n))) if math.isfinite(x) and n < 900
    else None,
    "scalblnf": lambda x, n: math.ldexp(x, max(-900, int(n))) if math.isfinite(x) and n < 900
    else None,
    "scalbnf": lambda x, n: math.ldexp(x, max(-900, int(n))) if math.isfinite(x) and n < 900
    else None,
    "nextafterf": lambda x, y: float(np.nextafter(np.float32(x), np.float32(y))),
    "erfinvf": erf_inverse, "erfcinvf": erfc_inverse, "erfcxf": scaled_erfc,
    "normcdff": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
    "normcdfinvf": lambda x: -math.sqrt(2) * erfc_inverse(2 * x),
    "cyl_bessel_i0f": lambda x: bessel(0, x), "cyl_bessel_i1f": lambda x: bessel(1, x),
    "sinpif": turned(math.sin), "cospif": turned(math.cos),
    "tanpif": lambda x: None if not math.isfinite(x) or Fraction(x) * 2 % 1 == 0
    else math.tan(float(Fraction(x) % 1) * math.pi),
    "__saturatef": lambda x: 0.0 if math.isnan(x) else min(max(x, 0.0), 1.0),
    "llrintf": lambda x: round(x) if abs(x) < 2**62 else None,
    "lrintf": lambda x: round(x) if abs(x) < 2**62 else None,
    "llroundf": lambda x: int(away(x)) if abs(x) < 2**62 else None,
    "lroundf": lambda x: int(away(x)) if abs(x) < 2**62 else None,
    "__float_as_int": lambda x: int(np.float32(x).view("i4")) if not math.isnan(x) else None,
    "__float_as_uint": lambda x: int(np.float32(x).view("u4")) if not math.isnan(x) else None,
    "__int_as_float": lambda x: float(np.int32(x).view("f4")),
    "__uint_as_float": lambda x: float(np.uint32(x).view("f4")),
}  # fmt: skip
IN_INTEGERS = {
    "__byte_perm": lambda x, y, s: sum(
        ((y << 32 | x) >> 8 * (s >> 4 * n & 7) & 255) << 8 * n for n in range(4)),
    "__hadd": lambda x, y: (x + y) >> 1, "__rhadd": lambda x, y: (x + y + 1) >> 1,
    "__uhadd": lambda x, y: (x + y) >> 1, "__urhadd": lambda x, y: (x + y + 1) >> 1,
    "__mul24": lambda x, y: ((x + 2**23) % 2**24 - 2**23) * ((y + 2**23) % 2**24 - 2**23),
    "__umul24": lambda x, y: (x % 2**24) * (y % 2**24),
    "__mulhi": lambda x, y: x * y >> 32, "__umulhi": lambda x, y: x * y >> 32,
    "__mul64hi": lambda x, y: x * y >> 64, "__umul64hi": lambda x, y: x * y >> 64,
    "__mul_i32toi64": lambda x, y: x * y,
    "__sad": lambda x, y, z: abs(x - y) + z, "__usad": lambda x, y, z: abs(x - y) + z,
    "labs": abs, "llabs": abs,
    "llmax": max, "ullmax": max, "umax": max, "llmin": min, "ullmin": min, "umin": min,
    "__ffs": lambda x: (x & -x).bit_length(),
}  # fmt: skip
OF_HALF = {
    "hceil": np.ceil, "hcos": np.cos, "hexp": np.exp, "hexp10": lambda x: np.power(10.0, x),
    "hexp2": np.exp2, "hfloor": np.floor, "hlog": np.log, "hlog10": np.log10, "hlog2": np.log2,
    "hrcp": np.reciprocal, "hrint": np.rint, "hrsqrt": lambda x: 1 / np.sqrt(x), "hsin": np.sin,
    "hsqrt": np.sqrt, "htanh": np.tanh, "htrunc": np.trunc,
    "__habs": np.abs, "__hadd": np.add, "__hsub": np.subtract, "__hmul": np.multiply,
    "__hdiv": np.divide, "__hneg": np.negative, "__hmax": np.fmax, "__hmin": np.fmin,
    "__hmax_nan": np.maximum, "__hmin_nan": np.minimum,
    "__hfma": lambda x, y, z: x * y + z, "__hfma_relu": lambda x, y, z: np.maximum(x * y + z, 0),
    "__heq": lambda x, y: x == y, "__hne": lambda x, y: x < y or x > y,
    "__hge": lambda x, y: x >= y, "__hgt": lambda x, y: x > y,
    "__hle": lambda x, y: x <= y, "__hlt": lambda x, y: x < y,
    "__hisinf": np.isinf, "__hisnan": np.isnan,
}  # fmt: skip
COMPARED = {f"{name}u": name for name in ("__heq", "__hne", "__hge", "__hgt", "__hle", "__hlt")}


def oracle(function):
    """Return the oracle of one value, or None for those that tests below hold as pairs."""
    name, given = function.name, kinds(function)
    if ("half" in given and len(set(given)) == 1) or (
        "bfloat16_t" in given and len(set(given)) == 1
    ):
        if name in OF_HALF:
            return by_numpy(OF_HALF[name])
        if name in COMPARED:
            plain = OF_HALF[COMPARED[name]]
            return lambda x, y: math.isnan(x) or math.isnan(y) or plain(x, y)
    for table in (IN_PYTHON, IN_INTEGERS):
        if name in table and not set(given) & {"half", "bfloat16_t"}:
            return table[name]
    if name in IN_NUMPY:
        return by_numpy(IN_NUMPY[name])
    if name == "__popc":
        return popcount
    bits = 64 if "long" in given[0] else 32
    if name == "__clz":
        return lambda x: bits - (x % 2**bits).bit_length()
    if name == "__brev":
        return lambda x: int(f"{x:0{bits}b}"[::-1], 2)
    ending = name.rpartition("2")[2].partition("_")[2]
    if (
        ending.partition("_")[0] in ROUND
        and not set(given) & PAIRS
        and function.result not in PAIRS
    ):
        return lambda x: converted(name, x)
    if name in {"__half2float", "__bfloat162float"}:
        return float
    if name in {"__float2half", "__float2bfloat16"}:
        return lambda x: converted(f"{name}_rn", x)
    return None


SINGLE = [each for each in FUNCTIONS if oracle(each) is not None]


def close(function, got, wanted):
    """Return whether a result is right: equal, or within two ulps where it is transcendental."""
    if function.result not in {"float", "half", "bfloat16_t"}:
        kind = np.dtype(TYPES[function.result])
        return int(got) == int(wanted) % 2 ** (8 * kind.itemsize) - (
            2 ** (8 * kind.itemsize)
            if kind.kind == "i"
            and int(wanted) % 2 ** (8 * kind.itemsize) >= 2 ** (8 * kind.itemsize - 1)
            else 0
        )
    with np.errstate(all="ignore"):
        got, wanted = float(got), float(np.asarray(wanted, TYPES[function.result]))
    if got == wanted or (math.isnan(got) and math.isnan(wanted)):
        return True
    if not math.isfinite(wanted) or not math.isfinite(got):
        return False
    digits = {"float": 23, "half": 10, "bfloat16_t": 7}[function.result]
    exact = "2" in function.name and function.name.startswith("__")
    # Half a unit more is what the oracle itself leaves, where it computes in float64 as well.
    return not exact and abs(got - wanted) <= 2 * 2.0**-digits * max(abs(wanted), 1e-9)


@pytest.mark.parametrize("one", sorted(set(map(signature, SINGLE))), ids=str)
def test_each_function_is_its_oracle(module, one):
    rng = np.random.default_rng(9)
    given = [inputs(kind, rng, 64) for kind in one[1]]
    for n, array in enumerate(given[1:], 1):
        given[n] = np.roll(array, n)
    made = ran(module, one, given)
    for function in OF_SIGNATURE[one]:
        of, out = oracle(function), made[function.name]
        if of is None:
            continue
        for at, values in enumerate(zip(*given, strict=True)):
            plain = [v.item() if v.dtype.kind in "iu" else float(v) for v in values]
            with np.errstate(all="ignore"):
                wanted = _wanted(of, plain)
            if wanted is not None:
                assert close(function, out[at], wanted), (function.name, plain, out[at], wanted)


def _wanted(of, plain):
    try:
        return of(*plain)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("single", ["half", "bfloat16_t"])
def test_functions_on_pairs_are_those_of_their_halves(module, single):
    rng, pair = np.random.default_rng(2), "half2" if single == "half" else "bfloat16x2_t"
    x = [inputs(pair, rng, 64), *(np.roll(inputs(pair, rng, 64), n) for n in (1, 2))]
    low, high = [array[::2].copy() for array in x], [array[1::2].copy() for array in x]
    of_one: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for one in SIGNATURES:
        if set(one[1]) == {single}:
            n = len(one[1])
            lower, upper = ran(module, one, low[:n]), ran(module, one, high[:n])
            of_one |= {name: (lower[name], upper[name]) for name in lower}
    held = 0
    for one in SIGNATURES:
        if set(one[1]) != {pair}:
            continue
        for name, out in ran(module, one, x[: len(one[1])]).items():
            if _of_one(name) in of_one:
                with np.errstate(all="ignore"):
                    _require_pair(name, one[0], out, *of_one[_of_one(name)])
                held += 1
    assert held > 60


def _of_one(name):
    if name.startswith("h2"):
        return f"h{name[2:]}"
    plain = name.replace("__hb", "__h").replace("x2_mask", "").replace("x2", "")
    return plain.replace("__hfma2", "__hfma").replace("__isnan", "__hisnan")


def _require_pair(name, result, out, low, high):
    if result == "bool":
        assert (out == (low & high)).all(), name
    elif result == "unsigned int":
        masks = low.astype("u4") * 0xFFFF + high.astype("u4") * np.uint32(0xFFFF0000)
        assert (out == masks).all(), name
    else:
        both = np.stack([low, high], axis=1).reshape(-1).astype("f4")
        same = (out.astype("f4") == both) | (np.isnan(out.astype("f4")) & np.isnan(both))
        assert same.all(), name


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_halves_of_pairs_move_as_their_names_say(module, kind):
    pair = "half2" if kind == "half" else "bfloat16x2_t"
    named = {f.name: f for f in FUNCTIONS if pair in (*kinds(f), f.result)}
    x = inputs(pair, np.random.default_rng(1), 64).astype("f4").astype(TYPES[pair])
    x = np.nan_to_num(x.astype("f4"), posinf=3, neginf=-3).astype(TYPES[pair])
    y = np.roll(x, 2)
    low, high = x[::2], x[1::2]
    short = "half" if kind == "half" else "bfloat16"
    twice = "half2" if kind == "half" else "bfloat162"

    def both(a, b):
        return np.stack([a, b], axis=1).reshape(-1)

    wanted = {
        f"__low2{short}": low, f"__high2{short}": high,
        f"__low2{twice}": both(low, low), f"__high2{twice}": both(high, high),
        "__lowhigh2highlow": both(high, low),
        "__low2float": low.astype("f4"), "__high2float": high.astype("f4"),
        "__half22float2" if kind == "half" else "__bfloat1622float2": x.astype("f4"),
    }  # fmt: skip

    def only(name, given):
        return ran(module, signature(named[name]), given)[name]

    for name, values in wanted.items():
        assert (only(name, [x]) == values).all(), name
    for name, values in {
        f"__lows2{twice}": both(low, y[::2]), f"__highs2{twice}": both(high, y[1::2]),
    }.items():  # fmt: skip
        assert (only(name, [x, y]) == values).all(), name
    made = only(f"__halves2{twice}", [low.copy(), high.copy()])
    assert (made == x).all()


def test_the_table_has_what_the_pages_have():
    names = {each.name for each in thread_functions()}
    assert len(thread_functions()) > 560
    assert {"rsqrtf", "__popc", "hexp2", "__hgtux2_mask", "__float2half_ro_sat"} <= names
    assert all(isinstance(each, ThreadMath) for each in BY_POINTER)

"""Mathematics of code of threads (SIMT): one table of functions, with their C++.

A function without an expression is C++'s own (`acosf`), which needs no other. Pages: mathematics of
SIMT. Saturating conversions saturate where vector code calls threads: a kernel of threads cannot
set the register that turns this on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ROW = re.compile(r"(?P<result>[\w ]+?) (?P<name>\w+)\((?P<parameters>[^)]*)\)(?: = (?P<body>.+))?")


@dataclass(frozen=True, slots=True)
class ThreadMath:
    """A function: its result's type, its name, its parameters, and what it returns in C++."""

    result: str
    name: str
    parameters: tuple[str, ...]
    body: str

    @property
    def declaration(self) -> str:
        """Its head in C++."""
        return f"{self.result} {self.name}({', '.join(self.parameters)})"


_FLOAT = """
float acosf(float x)
float acoshf(float x)
float asinf(float x)
float asinhf(float x)
float atan2f(float y, float x)
float atanf(float x)
float atanhf(float x)
float cbrtf(float x)
float ceilf(float x)
float copysignf(float x, float y)
float cosf(float x)
float coshf(float x)
float erfcf(float x)
float erff(float x)
float exp2f(float x)
float expf(float x)
float expm1f(float x)
float fabsf(float x)
float fdimf(float x, float y)
float floorf(float x)
float fmaf(float x, float y, float z)
float fmaxf(float x, float y)
float fminf(float x, float y)
float fmodf(float x, float y)
float frexpf(float x, int* exp)
float hypotf(float x, float y)
int ilogbf(float x)
float j0f(float x)
float j1f(float x)
float jnf(int n, float x)
float ldexpf(float x, int exp)
float lgammaf(float x)
long long llrintf(float x)
long long llroundf(float x)
float log10f(float x)
float log1pf(float x)
float log2f(float x)
float logbf(float x)
float logf(float x)
long lrintf(float x)
long lroundf(float x)
float modff(float x, float* n)
float nearbyintf(float x)
float nextafterf(float x, float y)
float powf(float x, float y)
float remainderf(float x, float y)
float remquof(float x, float y, int* quo)
float rintf(float x)
float roundf(float x)
float scalblnf(float x, int64_t n)
float scalbnf(float x, int32_t n)
void sincosf(float x, float* s, float* c)
float sinf(float x)
float sinhf(float x)
float sqrtf(float x)
float tanf(float x)
float tanhf(float x)
float tgammaf(float x)
float truncf(float x)
float y0f(float x)
float y1f(float x)
float ynf(int n, float x)
float exp10f(float x)
bool isfinite(float x)
bool isinf(float x)
bool isnan(float x)
int signbit(float x)
float __fdividef(float x, float y) = x / y
float fdividef(float x, float y) = x / y
float __saturatef(float x) = x >= 1 ? 1.0f : x > 0 ? x : 0.0f
float cospif(float x) = half_turns(x, true)
float sinpif(float x) = half_turns(x, false)
float tanpif(float x) = half_turns(x, false) / half_turns(x, true)
void sincospif(float x, float* s, float* c) = void(*s = sinpif(x)), void(*c = cospif(x))
float cyl_bessel_i0f(float x) = bessel_i(0, x)
float cyl_bessel_i1f(float x) = bessel_i(1, x)
float erfcinvf(float x) = x > 0.5f ? erf_inverse(1.0 - x) : erfc_inverse(x)
float erfcxf(float x) = scaled_erfc(x)
float erfinvf(float x) = erf_inverse(x)
float norm3df(float a, float b, float c) = std::sqrt(square(a) + square(b) + square(c))
float norm4df(float a, float b, float c, float d) = \
std::sqrt(square(a) + square(b) + square(c) + square(d))
float normcdff(float x) = 0.5 * std::erfc(-x / std::sqrt(2.0))
float normcdfinvf(float x) = -std::sqrt(2.0) * erfc_inverse(2.0 * x)
float normf(int n, float* a) = std::sqrt(sum_of_squares(n, a))
float rcbrtf(float x) = 1.0 / std::cbrt(double(x))
float rhypotf(float x, float y) = 1.0 / std::sqrt(square(x) + square(y))
float rnorm3df(float a, float b, float c) = 1.0 / std::sqrt(square(a) + square(b) + square(c))
float rnorm4df(float a, float b, float c, float d) = \
1.0 / std::sqrt(square(a) + square(b) + square(c) + square(d))
float rnormf(int n, float* a) = 1.0 / std::sqrt(sum_of_squares(n, a))
float rsqrtf(float x) = 1.0 / std::sqrt(double(x))
int __float_as_int(float x) = of_bits<int>(bits_of(x))
unsigned int __float_as_uint(float x) = of_bits<unsigned int>(bits_of(x))
float __int_as_float(int x) = of_bits<float>(bits_of(x))
float __uint_as_float(unsigned int x) = of_bits<float>(bits_of(x))
"""
_INTEGER = """
unsigned int __brev(unsigned int x) = reversed<unsigned int>(x)
unsigned long __brev(unsigned long x) = reversed<unsigned long>(x)
unsigned long long __brev(unsigned long long x) = reversed<unsigned long long>(x)
unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int s) = chosen_bytes(x, y, s)
int __clz(int x) = x == 0 ? 32 : __builtin_clz(unsigned(x))
int __clz(long x) = x == 0 ? 64 : __builtin_clzl((unsigned long)(x))
int __clz(long long x) = x == 0 ? 64 : __builtin_clzll((unsigned long long)(x))
int __ffs(int x) = __builtin_ffs(x)
int __ffs(long x) = __builtin_ffsl(x)
int __ffs(long long x) = __builtin_ffsll(x)
int __hadd(int x, int y) = int(((long long)(x) + y) >> 1)
int __rhadd(int x, int y) = int(((long long)(x) + y + 1) >> 1)
unsigned int __uhadd(unsigned int x, unsigned int y) = unsigned(((unsigned long long)(x) + y) >> 1)
unsigned int __urhadd(unsigned int x, unsigned int y) = \
unsigned(((unsigned long long)(x) + y + 1) >> 1)
int __mul24(int x, int y) = int((long long)(low_24(x)) * low_24(y))
unsigned int __umul24(unsigned int x, unsigned int y) = (x & 0xFFFFFF) * (y & 0xFFFFFF)
int __mulhi(int x, int y) = int((long long)(x) * y >> 32)
unsigned int __umulhi(unsigned int x, unsigned int y) = unsigned((unsigned long long)(x) * y >> 32)
long long __mul64hi(long long x, long long y) = (long long)((__int128)(x) * y >> 64)
unsigned long long __umul64hi(unsigned long long x, unsigned long long y) = \
(unsigned long long)((unsigned __int128)(x) * y >> 64)
long long __mul_i32toi64(int x, int y) = (long long)(x) * y
unsigned long long __mul_i32toi64(unsigned int x, unsigned int y) = (unsigned long long)(x) * y
int __popc(unsigned int x) = __builtin_popcount(x)
int __popc(unsigned long x) = __builtin_popcountl(x)
int __popc(unsigned long long x) = __builtin_popcountll(x)
unsigned int __sad(int x, int y, unsigned int z) = unsigned(x > y ? x - y : y - x) + z
unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) = (x > y ? x - y : y - x) + z
long labs(long x)
long long llabs(long long x)
long long llmax(long long x, long long y) = x > y ? x : y
long long llmin(long long x, long long y) = x < y ? x : y
unsigned long long ullmax(unsigned long long x, unsigned long long y) = x > y ? x : y
unsigned long long ullmin(unsigned long long x, unsigned long long y) = x < y ? x : y
unsigned int umax(unsigned int x, unsigned int y) = x > y ? x : y
unsigned int umin(unsigned int x, unsigned int y) = x < y ? x : y
"""
_OF_HALVES = """
T hceil(T x) = T(::ceilf(x))
T hcos(T x) = T(std::cos(double(x)))
T hexp(T x) = T(std::exp(double(x)))
T hexp10(T x) = T(::exp10(double(x)))
T hexp2(T x) = T(std::exp2(double(x)))
T hfloor(T x) = T(::floorf(x))
T hlog(T x) = T(std::log(double(x)))
T hlog10(T x) = T(std::log10(double(x)))
T hlog2(T x) = T(std::log2(double(x)))
T hrcp(T x) = T(1.0 / double(x))
T hrint(T x) = T(::rintf(x))
T hrsqrt(T x) = T(1.0 / std::sqrt(double(x)))
T hsin(T x) = T(std::sin(double(x)))
T hsqrt(T x) = T(std::sqrt(double(x)))
T htanh(T x) = T(std::tanh(double(x)))
T htrunc(T x) = T(::truncf(x))
bool __heq(T x, T y) = float(x) == float(y)
bool __hne(T x, T y) = float(x) < float(y) || float(x) > float(y)
bool __hge(T x, T y) = float(x) >= float(y)
bool __hgt(T x, T y) = float(x) > float(y)
bool __hle(T x, T y) = float(x) <= float(y)
bool __hlt(T x, T y) = float(x) < float(y)
bool __hequ(T x, T y) = !__hne(x, y)
bool __hneu(T x, T y) = !__heq(x, y)
bool __hgeu(T x, T y) = !__hlt(x, y)
bool __hgtu(T x, T y) = !__hle(x, y)
bool __hleu(T x, T y) = !__hgt(x, y)
bool __hltu(T x, T y) = !__hge(x, y)
bool __hisinf(T x) = std::isinf(float(x))
bool __hisnan(T x) = std::isnan(float(x))
T __hmax(T x, T y) = greatest(x, y)
T __hmin(T x, T y) = least(x, y)
T __hmax_nan(T x, T y) = __hisnan(x) ? x : __hisnan(y) ? y : __hmax(x, y)
T __hmin_nan(T x, T y) = __hisnan(x) ? x : __hisnan(y) ? y : __hmin(x, y)
T __habs(T x) = T(::fabsf(x))
T __hadd(T x, T y) = x + y
T __hsub(T x, T y) = x - y
T __hmul(T x, T y) = x * y
T __hdiv(T x, T y) = x / y
T __hneg(T x) = -x
T __hfma(T x, T y, T z) = T(std::fma(double(x), double(y), double(z)))
T __hfma_relu(T x, T y, T z) = relu(__hfma(x, y, z))
"""
_OF_PAIRS = """
P __habsx2(P x) = {__habs(x.x), __habs(x.y)}
P __haddx2(P x, P y) = x + y
P __hsubx2(P x, P y) = x - y
P __hmulx2(P x, P y) = x * y
P __hdivx2(P x, P y) = x / y
P __hnegx2(P x) = -x
P __hfmax2(P x, P y, P z) = {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)}
P __hfmax2_relu(P x, P y, P z) = {__hfma_relu(x.x, y.x, z.x), __hfma_relu(x.y, y.y, z.y)}
P __hcmadd(P x, P y, P z) = {__hfma(-x.y, y.y, __hfma(x.x, y.x, z.x)), \
__hfma(x.y, y.x, __hfma(x.x, y.y, z.y))}
P __hmaxx2(P x, P y) = {__hmax(x.x, y.x), __hmax(x.y, y.y)}
P __hminx2(P x, P y) = {__hmin(x.x, y.x), __hmin(x.y, y.y)}
P __hmaxx2_nan(P x, P y) = {__hmax_nan(x.x, y.x), __hmax_nan(x.y, y.y)}
P __hminx2_nan(P x, P y) = {__hmin_nan(x.x, y.x), __hmin_nan(x.y, y.y)}
P __isnanx2(P x) = {T(__hisnan(x.x)), T(__hisnan(x.y))}
P __lowhigh2highlow(P x) = {x.y, x.x}
float __low2float(P x) = float(x.x)
float __high2float(P x) = float(x.y)
"""
_OF_HALF_ALONE = """
float __half2float(half x) = float(x)
half __float2half(float x) = half(x)
half __ushort_as_half(unsigned short x) = of_bits<half>(bits_of(x))
unsigned short __half_as_ushort(half x) = of_bits<unsigned short>(bits_of(x))
float2 __half22float2(half2 x) = {float(x.x), float(x.y)}
half2 __floats2half2_rn(float x, float y) = {half(x), half(y)}
half2 __halves2half2(half x, half y) = {x, y}
half __low2half(half2 x) = x.x
half __high2half(half2 x) = x.y
half2 __low2half2(half2 x) = {x.x, x.x}
half2 __high2half2(half2 x) = {x.y, x.y}
half2 __lows2half2(half2 x, half2 y) = {x.x, y.x}
half2 __highs2half2(half2 x, half2 y) = {x.y, y.y}
"""
_OF_BFLOAT_ALONE = """
float __bfloat162float(bfloat16_t x) = float(x)
bfloat16_t __float2bfloat16(float x) = bfloat16_t(x)
bfloat16_t __ushort_as_bfloat16(unsigned short x) = of_bits<bfloat16_t>(bits_of(x))
unsigned short __bfloat16_as_ushort(bfloat16_t x) = of_bits<unsigned short>(bits_of(x))
float2 __bfloat1622float2(bfloat16x2_t x) = {float(x.x), float(x.y)}
bfloat16x2_t __bfloat162bfloat162(bfloat16_t x) = {x, x}
bfloat16x2_t __float2bfloat162_rn(float x) = {bfloat16_t(x), bfloat16_t(x)}
bfloat16x2_t __floats2bfloat162_rn(float x, float y) = {bfloat16_t(x), bfloat16_t(y)}
bfloat16x2_t __halves2bfloat162(bfloat16_t x, bfloat16_t y) = {x, y}
bfloat16_t __low2bfloat16(bfloat16x2_t x) = x.x
bfloat16_t __high2bfloat16(bfloat16x2_t x) = x.y
bfloat16x2_t __low2bfloat162(bfloat16x2_t x) = {x.x, x.x}
bfloat16x2_t __high2bfloat162(bfloat16x2_t x) = {x.y, x.y}
bfloat16x2_t __lows2bfloat162(bfloat16x2_t x, bfloat16x2_t y) = {x.x, y.x}
bfloat16x2_t __highs2bfloat162(bfloat16x2_t x, bfloat16x2_t y) = {x.y, y.y}
"""
_ROUNDINGS = ("rn", "rna", "rd", "ru", "rz")
_INTEGERS = {"int": "int", "uint": "unsigned int", "ll": "long long", "ull": "unsigned long long"}
_REALS = {"half": "half", "bfloat16": "bfloat16_t", "float": "float"}
_HALVES = {"half": ("half", "half2"), "bfloat16": ("bfloat16_t", "bfloat16x2_t")}
_COMPARED = tuple(f"{how}{u}" for how in ("eq", "ne", "ge", "gt", "le", "lt") for u in ("", "u"))
_PAIRED = (
    *("ceil", "cos", "exp", "exp10", "exp2", "floor", "log", "log10", "log2", "rcp", "rint"),
    *("rsqrt", "sin", "sqrt", "tanh", "trunc"),
)


def thread_functions() -> tuple[ThreadMath, ...]:
    """Return the functions, each behind those that it calls."""
    rows = [*_rows(_FLOAT), *_rows(_INTEGER)]
    for value, pair in _HALVES.values():
        rows += _rows(_OF_HALVES, value, pair)
        rows += _rows(_OF_PAIRS, value, pair)
        rows += _pairwise(value, pair)
    rows += [*_rows(_OF_HALF_ALONE), *_rows(_OF_BFLOAT_ALONE), *_conversions()]
    return tuple(rows)


def _rows(text: str, value: str = "", pair: str = "") -> Iterator[ThreadMath]:
    """Yield the functions of a text, with T and P as types of halves and of pairs."""
    for line in text.strip().splitlines():
        plain = re.sub(r"\bP\b", pair, re.sub(r"\bT\b", value, line))
        match = _ROW.fullmatch(plain)
        assert match is not None, line
        parameters = tuple(filter(None, match["parameters"].split(", ")))
        yield ThreadMath(match["result"], match["name"], parameters, match["body"] or "")


def _pairwise(value: str, pair: str) -> Iterator[ThreadMath]:
    """Yield functions on pairs that are those of their halves."""
    one, two = (f"{pair} x",), (f"{pair} x", f"{pair} y")
    for name in _PAIRED:
        yield ThreadMath(pair, f"h2{name}", one, f"{{h{name}(x.x), h{name}(x.y)}}")
    for how in _COMPARED:
        low, high = f"__h{how}(x.x, y.x)", f"__h{how}(x.y, y.y)"
        yield ThreadMath("bool", f"__hb{how}x2", two, f"{low} && {high}")
        yield ThreadMath(pair, f"__h{how}x2", two, f"{{{value}({low}), {value}({high})}}")
        mask = f"({low} ? 0xFFFFu : 0u) | ({high} ? 0xFFFF0000u : 0u)"
        yield ThreadMath("unsigned int", f"__h{how}x2_mask", two, mask)


def _conversions() -> Iterator[ThreadMath]:
    """Yield conversions by their types, with a rounding behind their names."""
    for source, kind in _REALS.items():
        taken = (f"{kind} x",)
        for rounding in _ROUNDINGS:
            how = f"Round::{rounding.upper()}"
            for target, integer in _INTEGERS.items():
                body = f"integer_of<{integer}>(x, {how})"
                yield ThreadMath(integer, f"__{source}2{target}_{rounding}", taken, body)
            whole = f"{kind}(whole_of(x, {how}))"
            yield ThreadMath(kind, f"__{source}2{source}_{rounding}", taken, whole)
    # A float is no target of the narrower ones: these conversions are exact and have plain names.
    for source, kind in {**_INTEGERS, **_REALS}.items():
        for target, real in _REALS.items():
            if (source in {target, "float"} and target == "float") or source == target:
                continue
            yield from _to_real(source, kind, target, real)
    for target, (_, pair) in _HALVES.items():
        name = "half2" if target == "half" else "bfloat162"
        for ending in _endings("float", target):
            one = f"__float2{target}_{ending}"
            body = f"{{{one}(x.x), {one}(x.y)}}"
            yield ThreadMath(pair, f"__float22{name}_{ending}", ("float2 x",), body)


def _to_real(source: str, kind: str, target: str, real: str) -> Iterator[ThreadMath]:
    if target == "float" and source in {"half", "bfloat16"}:
        return  # exact, and has a name of its own
    for ending in _endings(source, target):
        rounding, _, saturating = ending.partition("_")
        word = "saturates()" if saturating else "false"
        body = f"real_of<{real}>(x, Round::{rounding.upper()}, {word})"
        yield ThreadMath(real, f"__{source}2{target}_{ending}", (f"{kind} x",), body)


def _endings(source: str, target: str) -> Iterator[str]:
    """Yield the roundings of a conversion, with those that saturate."""
    odd = ("ro",) if (source, target) == ("float", "half") else ()
    saturates = target != "float" and (source == "float" or target == "half")
    saturates = saturates and source not in {"ll", "ull"}
    for rounding in (*_ROUNDINGS, *odd):
        yield rounding
        if saturates:
            yield f"{rounding}_sat"

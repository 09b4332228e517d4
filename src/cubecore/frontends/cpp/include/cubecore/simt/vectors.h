// Short vectors and their makers. Page: built-in types of SIMT code.
#pragma once

#include "cubecore/seam/types.h"

#define CUBECORE_VECTOR2(NAME, TYPE, ALIGN)      \
  struct alignas(ALIGN) NAME {                   \
    TYPE x, y;                                   \
  };                                             \
  constexpr NAME make_##NAME(TYPE x, TYPE y) { return {x, y}; }
#define CUBECORE_VECTOR4(NAME, TYPE, ALIGN)      \
  struct alignas(ALIGN) NAME {                   \
    TYPE x, y, z, w;                             \
  };                                             \
  constexpr NAME make_##NAME(TYPE x, TYPE y, TYPE z, TYPE w) { return {x, y, z, w}; }
#define CUBECORE_VECTORS(NAME, TYPE)               \
  CUBECORE_VECTOR2(NAME##2, TYPE, 2 * sizeof(TYPE)) \
  CUBECORE_VECTOR4(NAME##4, TYPE, 4 * sizeof(TYPE))
CUBECORE_VECTORS(char, signed char)
CUBECORE_VECTORS(uchar, unsigned char)
CUBECORE_VECTORS(short, short)
CUBECORE_VECTORS(ushort, unsigned short)
CUBECORE_VECTORS(int, int)
CUBECORE_VECTORS(uint, unsigned int)
CUBECORE_VECTORS(long, long)
CUBECORE_VECTORS(ulong, unsigned long)
CUBECORE_VECTORS(longlong, long long)
CUBECORE_VECTORS(ulonglong, unsigned long long)
CUBECORE_VECTORS(float, float)
CUBECORE_VECTOR2(half2, half, 4)
#undef CUBECORE_VECTORS
#undef CUBECORE_VECTOR4
#undef CUBECORE_VECTOR2

struct alignas(4) bfloat16x2_t {
  bfloat16_t x, y;
};
constexpr bfloat16x2_t make_bfloat162(bfloat16_t x, bfloat16_t y) { return {x, y}; }

// Pairs of small floats, which code only moves.
struct float4_e2m1x2_t {
  uint8_t bits;
};
struct float4_e1m2x2_t {
  uint8_t bits;
};
struct alignas(2) float8_e4m3x2_t {
  float8_e4m3_t x, y;
};
struct alignas(2) float8_e5m2x2_t {
  float8_e5m2_t x, y;
};
struct alignas(2) hifloat8x2_t {
  hifloat8_t x, y;
};

#define CUBECORE_PAIRED(PAIR, SIGN)                                                  \
  constexpr PAIR operator SIGN(const PAIR& a, const PAIR& b) {                       \
    return {a.x SIGN b.x, a.y SIGN b.y};                                             \
  }                                                                                  \
  constexpr PAIR& operator SIGN##=(PAIR& a, const PAIR& b) { return a = a SIGN b; }
#define CUBECORE_PAIR(PAIR)                                                          \
  CUBECORE_PAIRED(PAIR, +)                                                           \
  CUBECORE_PAIRED(PAIR, -)                                                           \
  CUBECORE_PAIRED(PAIR, *)                                                           \
  CUBECORE_PAIRED(PAIR, /)                                                           \
  constexpr PAIR operator-(const PAIR& a) { return {-a.x, -a.y}; }                   \
  constexpr bool operator==(const PAIR& a, const PAIR& b) { return a.x == b.x && a.y == b.y; } \
  constexpr bool operator!=(const PAIR& a, const PAIR& b) { return a.x != b.x && a.y != b.y; }
CUBECORE_PAIR(half2)
CUBECORE_PAIR(bfloat16x2_t)
#undef CUBECORE_PAIR
#undef CUBECORE_PAIRED

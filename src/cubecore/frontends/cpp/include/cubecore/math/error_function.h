// Pages: Erf, Erfc.
#pragma once

#include "cubecore/math/compensated.h"

namespace AscendC {

namespace detail {

// 1 - e^-p(|x|): p is -ln(1 - erf), by a polynomial up to `most`, from where on 1 is the nearest.
struct ErrorFunction {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float most = 4.0f;
    constexpr float terms[] = {-1.1930007985938573e-06f, 2.135149043169804e-05f,
                               -0.00016746770415920764f, 0.0007406558142974973f,
                               -0.0017993143992498517f,  0.00025303082657046616f,
                               0.019117707386612892f,    -0.10277128219604492f,
                               -0.6366198062896729f,     -0.12837916612625122f};
    s.abs(t[0], x);
    s.mins(t[0], t[0], most);
    s.polynomial(t[1], t[0], terms);
    s.mul(t[1], t[1], t[0]);
    s.sub(t[0], t[1], t[0]);
    exp_less_one(s, t[0], t[0], t[1], t[2]);
    s.abs(t[0], t[0]);
    s.copy_sign(d, t[0], x, t[1]);
  }
};

// Of a = |x|: e^-a^2 (1 + g) / (1 + 2a), with a^2 in two parts, the quotient in two, and g a
// polynomial in a / (a + 5/2). Below 0 it is what 2 has more than that. Page Erfc computes a
// quotient of polynomials by e^-x^2; its coefficients are not stated.
struct ErrorComplement {
  void operator()(const Steps& s, const Floats& d, const Floats& x, const Floats* t) const {
    constexpr float most = 10.5f, grid = 49152.0f, offset = 2.5f, middle = 0.4f;
    constexpr float exponential[] = {0.041666666666666664f, 0.16666666666666667f, 0.5f};
    constexpr float terms[] = {0.22935467958450317f, -0.217042475938797f,  -0.4443274736404419f,
                               0.631582498550415f,   0.6384693384170532f,  -2.3976809978485107f,
                               2.9807634353637695f,  -2.0758438110351562f, 0.7097810506820679f};
    const Floats &a = t[0], &power = t[1], &rest = t[2], &g = t[3], &by = t[4], &lost = t[5];
    const Floats &part = t[6], &more = t[7];
    s.abs(a, x);
    s.mins(a, a, most);
    s.adds(part, a, grid);  // a in twelve bits: its square is exact
    s.adds(part, part, -grid);
    s.mul(power, part, part);
    s.muls(power, power, -1.0f);
    s.exp(power, power);
    s.signed_one(more, x, g);
    s.mul(power, power, more);  // with the sign of x, which is not read again
    s.sub(rest, part, a);
    s.add(part, part, a);
    s.mul(part, part, rest);  // e^part is the rest of the exponential
    s.polynomial(rest, part, exponential);
    s.mul(rest, rest, part);
    s.mul(rest, rest, part);
    s.add(rest, rest, part);
    s.add(part, a, a);
    s.adds(by, part, 1.0f);
    sum_error(s, lost, by, part, 1.0f, g);
    s.adds(g, a, offset);
    s.div(a, a, g);
    s.adds(part, a, -middle);
    s.polynomial(g, part, terms);
    s.mul(g, g, a);
    s.adds(a, g, 1.0f);
    sum_error(s, more, a, g, 1.0f, part);
    s.div(g, a, by);
    quotient_error(s, a, &more, by, lost, g, part, more, d);
    s.mla(a, g, rest);
    s.mul(g, g, power);
    s.mul(a, a, power);
    s.signed_one(part, power, rest);
    s.rsubs(part, part, 1.0f);  // 0, or 2 below 0
    s.add(more, part, g);
    s.sub(part, more, part);
    s.sub(g, g, part);
    s.add(a, a, g);
    s.add(d, more, a);
  }
};

}  // namespace detail

CUBECORE_OF_WAYS(Erf, 3, detail::ErrorFunction(), defaultErfConfig, PADE_APPROXIMATION,
                 SUBSECTION_POLYNOMIAL_APPROXIMATION)
CUBECORE_OF_ONE(Erfc, 8, detail::ErrorComplement())

}  // namespace AscendC

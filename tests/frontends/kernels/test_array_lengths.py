"""Lengths of arrays of Python kernels: constants, and those that have come from a launch."""

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest

from cubecore import KernelError, Struct, kernel
from frontends.kernels import lengths_elsewhere as elsewhere

SIZE = 64
SIZES = {"big": 128, "small": 16}


def as_it_is(core, k):
    core.ubuf("half", k)


def as_int(core, k):
    core.ubuf("half", int(k))


def of_a_name(core, k):
    n = int(k)
    tile = n * 2
    core.ubuf("half", tile)


def of_itself(core, k):
    k = int(k)
    core.ubuf("half", k)


def rounded(core, k):
    core.ubuf("half", round(k / 3))


def upwards(core, k):
    core.ubuf("half", 16 * math.ceil(k / 16))


def as_index(core, k):
    core.ubuf("half", operator.index(k))


def by_its_method(core, k):
    core.ubuf("half", k.__int__())


def by_text(core, k):
    core.ubuf("half", int(f"{k}"))


def of_numpy(core, k):
    core.ubuf("half", np.int64(k))


def chosen(core, k):
    core.ubuf("half", 64 if k > 3 else 32)


def in_a_loop(core, k):
    for n in (16, int(k)):
        core.ubuf("half", n)


def in_a_comprehension(core, k):
    return [core.ubuf("half", n) for n in (16, int(k))]


def of_a_part(core, k):
    other, n = 16, int(k)
    core.ubuf("half", other)
    core.ubuf("half", n)


def size_of(k):
    return int(k)


def made_by_a_helper(core, k):
    core.ubuf("half", size_of(k))


def declare(core, size):
    return core.ubuf("half", size)


def declared_by_a_helper(core, k):
    declare(core, int(k))


def declared_by_name(core, k):
    words = {"size": int(k)}
    declare(core, size=words["size"])


def in_a_closure(core, k):
    n = int(k)

    def inner():
        return core.ubuf("half", n)

    inner()


def declared_elsewhere(core, k):
    elsewhere.declare(core, int(k))


def of_a_struct(core, k):
    class Buffers(Struct):
        one = ("half", int(k))

    core.ubuf(Buffers())


LEARNED: tuple[Callable[..., object], ...] = (
    *(as_it_is, as_int, of_a_name, of_itself, rounded, upwards, as_index, by_its_method, by_text),
    *(of_numpy, chosen, in_a_loop, in_a_comprehension, of_a_part, made_by_a_helper),
    *(declared_by_a_helper, declared_by_name, in_a_closure, declared_elsewhere, of_a_struct),
)
REMEDY = (
    "make it a constant of the module, or of a function that makes the kernel, at its largest value"
)


@pytest.mark.parametrize("body", LEARNED, ids=lambda body: body.__name__)
def test_a_length_that_a_launch_says_is_refused(body):
    with pytest.raises(KernelError) as caught:
        kernel(body)[1](96)
    said = str(caught.value)
    assert ": an array's length must be known when the kernel is compiled, got " in said
    assert said.endswith(f" from the argument k; {REMEDY}")


def test_the_sentence_has_the_value():
    with pytest.raises(KernelError) as caught:
        kernel(as_int)[1](96)
    assert str(caught.value).partition(": ")[2] == (
        "an array's length must be known when the kernel is compiled, got 96 from the argument k; "
        + REMEDY
    )


@pytest.mark.parametrize(
    ("body", "origin"),
    [
        (lambda core: core.ubuf("half", 16 + int(core.block_idx)), "block_idx"),
        (lambda core: core.ubuf("half", int(core.asc_get_block_num())), "get_block_num"),
    ],
)
def test_what_a_core_says_is_learned_too(body, origin):
    with pytest.raises(KernelError) as caught:
        kernel(body)[1]()
    assert str(caught.value).endswith(f" from {origin}; {REMEDY}")


def test_an_element_is_learned_too():
    def body(core, x):
        core.ubuf("half", int(x[0]))

    with pytest.raises(KernelError) as caught:
        kernel(body)[1](np.full(8, 32, np.int32))
    assert str(caught.value).endswith(f" got 32 from x[...]; {REMEDY}")


def constants(core, k):
    core.ubuf("half", SIZE)
    core.ubuf("half", SIZES["big"])
    tile = SIZE // 2
    left, other = int(k) % tile, 16
    core.ubuf("half", tile)
    core.ubuf("half", other)
    for n in (16, 32):
        declare(core, n)
    for _ in range(int(k)):
        core.ubuf("half", 16)
    if left > 3:
        core.ubuf("half", tile * 2)
    elsewhere.declare(core, tile)
    return [core.ubuf("half", n) for n in (16, 32)]


def maker(size):
    def made(core, k):
        tile = int(size)
        core.ubuf("half", tile)
        core.ubuf("half", size)
        declare(core, min(100, size))
        return k

    return made


@pytest.mark.parametrize("body", [constants, maker(96)], ids=["of the module", "of a maker"])
def test_constants_are_lengths(body):
    assert kernel(body)[2](5).findings == ()

"""Element types: names, widths, C0, and NumPy's types."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.dtypes import DATA_BLOCK, ELEMENT_TYPES, FRACTAL, element_type
from cubecore.errors import RequestError

CONTRACT = (
    *("float16", "bfloat16", "float32", "int8", "int4", "int32", "float8_e4m3fn", "float8_e5m2"),
    *("hifloat8", "float4_e2m1fn", "float4_e1m2", "float8_e8m0fnu"),
)
BITS = {
    **dict.fromkeys(("int4", "float4_e2m1fn", "float4_e1m2"), 4),
    **dict.fromkeys(("int8", "uint8", "hifloat8"), 8),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"), 8),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 16),
    **dict.fromkeys(("int32", "uint32", "float32"), 32),
    **dict.fromkeys(("int64", "uint64"), 64),
}
every_type = pytest.mark.parametrize("name", ELEMENT_TYPES)


def test_the_names_of_the_public_contract_exist():
    assert set(CONTRACT) <= set(ELEMENT_TYPES)
    assert set(BITS) == set(ELEMENT_TYPES)


@every_type
def test_width_and_c0(name):
    """C0 is 32 B of elements: 8 for float32, 16 for half, 32 for int8, 64 for int4."""
    kind = ELEMENT_TYPES[name]
    assert kind.bits == BITS[name]
    assert kind.c0 == 256 // BITS[name]
    assert kind.bytes_of(64) == 8 * BITS[name]
    assert kind.nz_fractals == (2 if name == "float32" else 1)
    assert str(kind) == name


@every_type
def test_numpys_type_has_the_same_width_and_kind(name):
    kind = ELEMENT_TYPES[name]
    if name in {"hifloat8", "float4_e1m2"}:
        assert kind.numpy == np.uint8  # a code in each byte
        return
    own = hasattr(ml_dtypes, name)
    assert kind.numpy == np.dtype(getattr(ml_dtypes, name) if own else name)
    if kind.bits >= 8:
        assert kind.numpy.itemsize == kind.size_bytes == kind.bits // 8


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn", "float4_e1m2"])
def test_half_a_byte_has_no_size(name):
    with pytest.raises(RequestError) as caught:
        _ = ELEMENT_TYPES[name].size_bytes
    assert str(caught.value) == f"{name} must be at least 8 bits wide to be addressed alone, got 4"


@every_type
def test_every_spelling_finds_the_one_record(name):
    kind = ELEMENT_TYPES[name]
    assert element_type(name) is kind
    assert kind.aliases or name == "float8_e8m0fnu"
    for alias in kind.aliases:
        assert element_type(alias) is kind


def test_no_spelling_means_two_types():
    names = [n for t in ELEMENT_TYPES.values() for n in (t.name, *t.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        *(("half", "float16"), ("float", "float32"), ("int8_t", "int8")),
        *(("bfloat16_t", "bfloat16"), ("int4b_t", "int4"), ("DT_FLOAT16", "float16")),
        *(("DT_FLOAT", "float32"), ("DT_BF16", "bfloat16"), ("DT_INT8", "int8")),
        *(("DT_INT32", "int32"), ("hifloat8_t", "hifloat8")),
    ],
)
def test_the_vendors_spellings(alias, name):
    assert element_type(alias).name == name


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("flaot16", "; did you mean float16?"), ("Half", "; did you mean half?"), ("zzz", "")],
)
def test_an_unknown_name_is_refused_with_the_nearest(name, remedy):
    with pytest.raises(RequestError) as caught:
        element_type(name, "a")
    known = ", ".join(ELEMENT_TYPES)
    assert str(caught.value) == f"a must be an element type ({known}), got {name!r}{remedy}"


def test_blocks_and_fractals_are_bytes_that_move_together():
    assert (DATA_BLOCK.size_bytes, FRACTAL.size_bytes) == (32, 512)
    assert (DATA_BLOCK.numpy.itemsize, FRACTAL.numpy.itemsize) == (32, 512)


@pytest.mark.parametrize("count", [0, 1, 31, 1000])
def test_bytes_of_arrays(count):
    for kind in ELEMENT_TYPES.values():
        array = np.array([count * 2, 0])
        assert kind.bytes_of(array).tolist() == [count * kind.bits // 4, 0]

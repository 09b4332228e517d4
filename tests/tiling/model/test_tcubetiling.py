import json
import re
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.errors import RequestError
from cubecore.tiling.model.cpp_source import to_header, to_setters
from cubecore.tiling.model.export import (
    from_header,
    load_tiling,
    parse_tiling,
    to_json_text,
)
from cubecore.tiling.model.tcubetiling import FIELDS, SIZE_BYTES, TCubeTiling
from tiling.cases import problem, tiling

TABLE_1 = """
usedCoreNum M N Ka Kb singleCoreM singleCoreN singleCoreK baseM baseN baseK depthA1 depthB1
stepM stepN stepKa stepKb isBias transLength iterateOrder dbL0A dbL0B dbL0C
shareMode shareL1Size shareL0CSize shareUbSize batchM batchN singleBatchM singleBatchN
"""
DEFAULTS_OF_PAGES = """
isBias shareMode shareL1Size shareL0CSize shareUbSize batchM batchN singleBatchM singleBatchN
mxTypePara
"""
INT32 = st.integers(-(2**31), 2**31 - 1)
NONE_OF_THEM = (
    "x must hold a TCubeTiling: a JSON object, a 200-byte blob, its hex dump, a header or a log"
)
TILINGS = st.lists(INT32, min_size=50, max_size=50).map(lambda values: TCubeTiling(*values))


def refused(call, *args):
    with pytest.raises(RequestError) as caught:
        call(*args)
    return str(caught.value).split("\n")


def test_the_struct_is_fifty_int32_in_the_references_order():
    assert (len(FIELDS), SIZE_BYTES) == (50, 200)
    places = {"usedCoreNum": 0, "Kb": 4, "baseM": 8, "depthB1": 12, "iterateOrder": 17}
    places |= {"stepKa": 26, "dbL0A": 30, "dbL0C": 32, "BatchNum": 48, "mxTypePara": 49}
    assert {name: FIELDS.index(name) for name in places} == places


@given(TILINGS)
def test_every_form_reads_back(made):
    assert TCubeTiling.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert TCubeTiling.from_bytes(made.to_bytes()) == made
    assert parse_tiling(made.to_bytes()) == made
    assert parse_tiling(to_json_text(made).encode()) == made
    assert parse_tiling(to_header(made).encode()) == made


def test_the_blob_is_little_endian_in_order():
    made = TCubeTiling(*range(-3, 47))
    assert made.to_bytes() == struct.pack("<50i", *range(-3, 47))


def test_the_header_is_c_plus_plus_to_paste():
    text = to_header(tiling(), "kOurs")
    lines = text.splitlines()
    assert "#pragma once" in lines
    assert 'static_assert(sizeof(TCubeTiling) == 200, "50 fields of int32");' in lines
    assert "constexpr TCubeTiling kOurs = {" in lines
    assert lines[lines.index("constexpr TCubeTiling kOurs = {") + 1] == "    4,  // usedCoreNum"
    assert lines[-1] == "};"
    assert refused(to_header, tiling(), "3x") == ["header name must be a C++ identifier, got '3x'"]


def test_the_header_has_a_namespace_and_a_comment_and_reads_back():
    text = to_header(tiling(), "kOurs", "ours::tilings", ("C = A x B", "8 us"))
    assert text.splitlines()[1:4] == ["// C = A x B", "// 8 us", "#pragma once"]
    assert "namespace ours { namespace tilings {" in text
    assert text.endswith("};\n}}  // namespace ours::tilings\n")
    assert parse_tiling(text.encode()) == tiling()
    assert refused(to_header, tiling(), "k", "a..b") == [
        "header namespace must be identifiers joined by ::, got 'a..b'"
    ]


def test_the_setters_set_every_field_once():
    text = to_setters(tiling(), "SetOurs")
    assert "template <typename Tiling>\ninline void SetOurs(Tiling& tiling)\n{" in text
    calls = re.findall(r"tiling\.set_(\w+)\((-?\d+)\);", text)
    assert {name: int(value) for name, value in calls} == tiling().to_json()
    assert len(calls) == len(FIELDS)


def test_a_designated_header_reads_back_in_any_order():
    fields = tiling().to_json()
    body = ", ".join(f".{name} = {fields[name]:#x}" for name in reversed(FIELDS))
    text = f"/* TCubeTiling x = {{}}; */ static const TCubeTiling t{{{body}}};"
    assert from_header(text) == tiling()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("TCubeTiling t;", "h must define one TCubeTiling, got 0 definitions"),
        ("TCubeTiling t={}; TCubeTiling u={};", "h must define one TCubeTiling, got 2 definitions"),
        ("TCubeTiling t = {1, 2};", "h must hold the 50 values of TCubeTiling, got 2"),
        ("TCubeTiling t = {1, 2.5};", "h must hold integers only, got '2.5'"),
        ("TCubeTiling t = {x};", "h must hold integers only, got 'x'"),
        ("TCubeTiling t = {1, .M = 2};", "h must name all of its fields or none, got both kinds"),
        ("TCubeTiling t = {.M = 1, .M = 2};", "h must give a field once, got M"),
    ],
)
def test_broken_headers(text, want):
    assert refused(from_header, text, "h") == want.split("\n")


def test_every_bad_field_is_reported_at_once():
    fields = tiling().to_json()
    del fields["baseK"], fields["stepM"]
    fields |= {"baseKK": 64, "baseM": 1.5, "baseN": 2**31, "M": True, "zz": 1}
    assert refused(TCubeTiling.from_json, fields) == [
        "tiling must have only the fields of TCubeTiling, got 'baseKK'; did you mean baseK?",
        "tiling must have only the fields of TCubeTiling, got 'zz'",
        "missing tiling.baseK",
        "missing tiling.stepM",
        "tiling.M must be an integer, got True",
        "tiling.baseM must be an integer, got 1.5",
        "tiling.baseN must fit int32, got 2147483648",
    ]


def test_many_missing_fields_are_one_line():
    fields = tiling().to_json()
    for name in ("M", "baseK", "stepM", "dbL0A"):
        del fields[name]
    assert len(refused(TCubeTiling.from_json, fields)) == 4
    del fields["dbL0C"]
    assert refused(TCubeTiling.from_json, fields | {"zz": 1}) == [
        "tiling must have only the fields of TCubeTiling, got 'zz'",
        "tiling must give the 22 fields of TCubeTiling without a default, got 17; missing are M, "
        "baseK, stepM, dbL0A and 1 more",
    ]
    assert refused(TCubeTiling.from_json, {}) == [
        "tiling must give the 22 fields of TCubeTiling without a default, got 0; missing are "
        "usedCoreNum, M, N, Ka and 18 more"
    ]


def test_the_fields_of_either_page_are_a_tiling():
    """Of table 1, newer edition (32 fields) and older (31): the rest is 0."""
    older = TABLE_1.split()
    assert len(older) == 31
    made = tiling(problem(bias="float32"), transLength=7, batchM=1)
    for names in (older, [*older, "mxTypePara"]):
        fields = {name: getattr(made, name) for name in names}
        assert TCubeTiling.from_json(fields) == made
        assert parse_tiling(json.dumps(fields).encode()) == made
        for name in names:
            rest = {key: value for key, value in fields.items() if key != name}
            if name in DEFAULTS_OF_PAGES.split():
                assert TCubeTiling.from_json(rest) == replace(made, **{name: 0})
            else:
                want = f"missing tiling.{name}"
                assert refused(TCubeTiling.from_json, rest) == [want]


def test_a_field_of_neither_page_is_refused():
    fields = dict.fromkeys(TABLE_1.split(), 1) | {"baseMN": 1, "iterOrder": 0}
    assert refused(TCubeTiling.from_json, fields) == [
        "tiling must have only the fields of TCubeTiling, got 'baseMN'",
        "tiling must have only the fields of TCubeTiling, got 'iterOrder'",
    ]


def test_fields_are_int32_at_construction_too():
    assert refused(lambda: tiling(baseM=-(2**31) - 1)) == [
        "tiling.baseM must fit int32, got -2147483649"
    ]
    assert tiling(baseM=2**31 - 1).baseM == 2**31 - 1


@pytest.mark.parametrize("length", [0, 4, 199, 201, 400])
def test_a_blob_of_another_length_states_it(length):
    want = [f"t.bin must be 200 B long (50 x int32), got {length} B"]
    assert refused(TCubeTiling.from_bytes, bytes(length), "t.bin") == want


@pytest.mark.parametrize("length", [1, 199, 201])
def test_a_truncated_blob_is_no_tiling(length):
    want = [f"x must be 200 B long (50 x int32), got {length} B"]
    assert (
        refused(parse_tiling, (tiling().to_bytes() * 2)[:length].replace(b"\4", b"\0"), "x") == want
    )


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"[1]", "x must be a JSON object, got list"),
        (b'{"M": 1, "M": 2}', "x must give a field once, got M"),
        (b"hello", f"{NONE_OF_THEM}, got 5 B of none of them"),
        (b"", f"{NONE_OF_THEM}, got 0 B of none of them"),
    ],
)
def test_other_contents(data, want):
    assert refused(parse_tiling, data, "x") == [want]


def test_broken_json_says_where():
    (line,) = refused(parse_tiling, b'{"M": 1,', "x")
    assert line.startswith("x must be JSON, got ")
    (line,) = refused(parse_tiling, b"[" * 100_000, "x")
    assert line.startswith("x must be JSON, got ")


def test_files_are_told_apart_by_content(tmp_path):
    for name, data in (
        ("a.txt", to_json_text(tiling()).encode()),
        ("b.json", tiling().to_bytes()),
        ("c.bin", to_header(tiling()).encode()),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert load_tiling(path) == tiling()
        assert load_tiling(str(path)) == tiling()


def test_files_that_cannot_be_read(tmp_path):
    absent = tmp_path / "absent"
    want = f"cannot read {absent}: no such file"
    assert refused(load_tiling, absent) == [want]
    want = f"cannot read {tmp_path}: is a directory"
    assert refused(load_tiling, tmp_path) == [want]
    large = tmp_path / "large"
    large.write_bytes(b" " * (1024 * 1024 + 1))
    want = f"{large} must be at most 1048576 B long, got a longer file"
    assert refused(load_tiling, large) == [want]


def test_extents_must_be_the_problems():
    p = problem()
    assert not tiling().mismatches(*p.extents)
    tiling().require_match(*p.extents)
    assert refused(tiling(M=1, N=2, Ka=3, Kb=4).require_match, *p.extents) == [
        "tiling.M must equal the problem's m = 256, got 1",
        "tiling.N must equal the problem's n = 512, got 2",
        "tiling.Ka must equal the problem's k = 1024, got 3",
        "tiling.Kb must equal the problem's k = 1024, got 4",
    ]
    for name in ("M", "N", "Ka", "Kb"):
        assert replace(tiling(), **{name: 5}).mismatches(*p.extents)
    want = "tiling.Kb must equal the problem's kb = 1024, got 9"
    assert refused(tiling(Kb=9).require_match, *problem(kb=1024).extents) == [want]

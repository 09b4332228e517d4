"""A tiling's hex dump, and what other tools print of its 200 bytes."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.errors import RequestError
from cubecore.tiling.model.export import load_tiling, parse_tiling, tiling_data
from cubecore.tiling.model.hexdump import from_hex_dump, looks_like_hex, to_hex_dump
from cubecore.tiling.model.tcubetiling import TCubeTiling
from tiling.cases import tiling

INT32 = st.integers(-(2**31), 2**31 - 1)
TILINGS = st.lists(INT32, min_size=50, max_size=50).map(lambda values: TCubeTiling(*values))
SPARSE = st.lists(st.sampled_from([0, 0, 0, 0, 1, 64]), min_size=50, max_size=50).map(
    lambda values: TCubeTiling(*values)
)


def refused(text, subject="d"):
    with pytest.raises(RequestError) as caught:
        from_hex_dump(text, subject)
    return str(caught.value)


@given(TILINGS)
def test_a_dump_reads_back(made):
    assert from_hex_dump(to_hex_dump(made)) == made
    assert parse_tiling(to_hex_dump(made).encode()) == made


def test_the_dump_is_offset_bytes_and_text():
    lines = to_hex_dump(tiling()).splitlines()
    assert lines[0] == (
        "00000000  04 00 00 00 00 01 00 00  00 02 00 00 00 04 00 00  |................|"
    )
    assert lines[12] == "000000c0  00 00 00 00 00 00 00 00                           |........|"
    assert lines[13] == "000000c8"
    assert len(lines) == 14


def squeezed(made):
    """Return the dump as `hexdump -C` prints it: repeated lines as one `*`."""
    out, last = [], ""
    for line in to_hex_dump(made).splitlines():
        if len(line) > 60 and line[10:58] == last:
            out += ["*"] if out[-1] != "*" else []
        else:
            out.append(line)
        last = line[10:58]
    return "\n".join(out) + "\n"


@given(SPARSE)
def test_repeated_lines_may_be_left_out(made):
    assert from_hex_dump(squeezed(made)) == made


@given(TILINGS)
def test_bare_digits_and_bytes_of_c(made):
    data = made.to_bytes()
    assert from_hex_dump(data.hex()) == made
    assert from_hex_dump(data.hex(" ", 4).upper()) == made
    assert from_hex_dump(", ".join(f"0x{b:02x}" for b in data)) == made
    assert from_hex_dump(",\n".join(f"0x{b:X}" for b in data) + ",") == made
    sixty = data.hex()
    plain = "\n".join(sixty[i : i + 60] for i in range(0, 400, 60))
    assert from_hex_dump(plain) == made


@pytest.mark.parametrize(
    "command",
    [
        ["hexdump", "-C"],
        ["hexdump", "-v", "-C"],
        ["xxd"],
        ["xxd", "-p"],
        ["xxd", "-g", "1"],
        ["xxd", "-u", "-c", "8"],
        ["od", "-A", "x", "-t", "x1"],
        ["od", "-v", "-A", "x", "-t", "x1"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("changes", [{}, {"transLength": 0x41424344, "mxTypePara": 0x7C7C2020}])
def test_what_the_tools_print_is_read(tmp_path, command, changes):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    made = tiling(**changes)
    path = tmp_path / "t.bin"
    path.write_bytes(made.to_bytes())
    printed = subprocess.run([*command, path], capture_output=True, text=True, check=True).stdout
    assert from_hex_dump(printed) == made
    (tmp_path / "t.txt").write_text(printed)
    assert load_tiling(tmp_path / "t.txt") == made


WHOLE = to_hex_dump(tiling())
LINES = WHOLE.splitlines()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "d must hold 200 bytes in hex, got 0"),
        ("04 00 00 0", "d, line 1, must hold whole bytes of two digits, got 7 digits"),
        ("04 00\n0g 00", "d, line 2, must hold hexadecimal digits, got '0g'"),
        (tiling().to_bytes().hex()[:-2], "d must hold 200 bytes in hex, got 199"),
        (tiling().to_bytes().hex() + "00", "d must hold 200 bytes in hex, got 201"),
        (tiling().to_bytes().hex()[:-1], "d, line 1, must hold whole bytes of two digits, got 399 "
         "digits"),
        ("\n".join(LINES[:5]), "d must hold 200 bytes in hex, got 80"),
        ("\n".join([*LINES[:2], *LINES[3:]]), "d, line 3, must have the offset 00000020, got "
         "00000030"),
        ("*\n" + WHOLE, "d, line 1, must repeat a line before it, got '*' at the start"),
        ("\n".join([*LINES[:5], "*"]), "d must have an offset after '*', got the end"),
        ("0400\n*\n0400", "d, line 3, must have an offset after '*', got '0400'"),
        ("\n".join([*LINES[:12], "*", "ffffffff"]), "d, line 14, must have the offset 000000d0, "
         "got ffffffff"),
    ],
)  # fmt: skip
def test_broken_dumps(text, want):
    assert refused(text) == want


def test_what_a_dump_looks_like():
    assert looks_like_hex(WHOLE)
    assert looks_like_hex("\n\n 0x04, 0x00\n")
    assert looks_like_hex("040\n")
    assert not looks_like_hex("")
    assert not looks_like_hex("hello")
    assert not looks_like_hex("*\n00")
    assert not looks_like_hex('{"M": 1}')


def test_a_file_of_odd_digits_says_so():
    with pytest.raises(RequestError, match=r"^x, line 1, must hold whole bytes of two digits"):
        parse_tiling(b"04 00 0", "x")


@pytest.mark.parametrize("name", ["t.bin", "t.hex", "t.h", "t.hpp", "t.json", "t"])
def test_the_form_is_the_paths_ending(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(tiling_data(tiling(), str(path)))
    assert load_tiling(path) == tiling()

"""One chip's record: what-if fields, required facts, derived values."""

from xml.etree import ElementTree as ET

import pytest

from cubecore.chips import chip
from cubecore.errors import RequestError

B3 = chip("Ascend910B3")


def test_what_if_replaces_a_field_and_says_so():
    changed = B3.what_if({"l1_bytes": "1048576", "gm_to_l1_row_cycles": "0.5"})
    assert (changed.l1_bytes, changed.gm_to_l1_row_cycles) == (1048576, 0.5)
    assert changed.sources["l1_bytes"].reliability == "WHAT-IF"
    assert changed.sources["l0a_bytes"] == B3.sources["l0a_bytes"]
    assert (B3.l1_bytes, changed.name, changed.l0c_bytes) == (524288, B3.name, B3.l0c_bytes)


def test_whole_numbers_may_be_written_with_an_exponent():
    assert B3.what_if({"hbm_bytes_per_second": "3e12"}).hbm_bytes_per_second == 3 * 10**12


def test_what_if_nothing_is_the_same_chip():
    assert B3.what_if({}) == B3


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        (
            "l1_byte",
            "1",
            "--set: no chip field named l1_byte; did you mean l1_bytes?",
        ),
        ("zzz", "1", "--set: no chip field named zzz; `cubecore chips NAME` lists them"),
        ("name", "Toy", "--set: no chip field named name; `cubecore chips NAME` lists them"),
        ("l1_bytes", "big", "--set l1_bytes must be a whole number, got 'big'"),
        ("l1_bytes", "0.5", "--set l1_bytes must be a whole number, got '0.5'"),
        ("l1_bytes", "", "--set l1_bytes must be a whole number, got ''"),
        ("l1_bytes", "0", "--set l1_bytes must be greater than 0 and finite, got 0"),
        ("l1_bytes", "-1", "--set l1_bytes must be greater than 0 and finite, got -1"),
        ("gm_to_l1_row_cycles", "x", "--set gm_to_l1_row_cycles must be a number, got 'x'"),
        (
            "gm_to_l1_row_cycles",
            "nan",
            "--set gm_to_l1_row_cycles must be greater than 0 and finite, got nan",
        ),
        (
            "gm_to_l1_row_cycles",
            "inf",
            "--set gm_to_l1_row_cycles must be greater than 0 and finite, got inf",
        ),
        (
            "cube_k",
            "16",
            "--set cannot replace cube_k, a table of several numbers",
        ),
    ],
)
def test_what_if_refuses(field, text, message):
    with pytest.raises(RequestError) as error:
        B3.what_if({field: text})
    assert str(error.value) == message


def test_a_known_fact_is_given():
    assert B3.require("frequency_hz", "a time") == 1_800_000_000


def test_an_unknown_fact_is_refused_with_a_way_out():
    with pytest.raises(RequestError) as error:
        chip("KirinX90").require("frequency_hz", "a time in microseconds")
    assert str(error.value) == (
        "KirinX90.frequency_hz must be known for a time in microseconds, got no published value; "
        "give one with --set frequency_hz=VALUE"
    )


def test_cycles_become_microseconds_only_with_a_known_clock():
    assert B3.microseconds(1800) == 1.0
    assert chip("Kirin9030").microseconds(1800) is None


@pytest.mark.parametrize(
    ("name", "pairs"), [("Ascend910B3", 2), ("Ascend910A", 0), ("Ascend310P3", 0)]
)
def test_vector_cores_beside_an_ai_core(name, pairs):
    assert chip(name).mix_aiv_per_aic == pairs


def card_of(name):
    card = ET.fromstring(chip(name)._repr_html_())
    rows = [[cell.text for cell in row] for row in card.iter("tr")]
    return card.find("strong").text, dict(rows)


def test_a_notebook_shows_a_chip_as_a_card():
    title, rows = card_of("Ascend910B3")
    assert title == "Ascend910B3"
    assert rows == {
        "architecture": "2201",
        "cores": "20 AIC, 40 AIV",
        "clock": "1.8 GHz",
        "device memory": "64 GiB",
        "L2": "192 MiB",
        "L1": "512 KiB",
        "L0A": "64 KiB",
        "L0B": "64 KiB",
        "L0C": "128 KiB",
        "UB": "192 KiB",
        "BT": "1 KiB",
        "FB": "2 KiB",
    }


def test_a_card_leaves_out_what_is_unknown():
    _, rows = card_of("KirinX90")
    assert "clock" not in rows
    assert rows["L0A"].endswith("KiB")

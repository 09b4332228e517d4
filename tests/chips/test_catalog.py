"""The catalogue: every file of it, names and families, and how a bad file is refused."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import cubecore
from cubecore.chips import catalog, chip, chip_names, expand_family
from cubecore.chips.model import FACT_FIELDS, REQUIRED_FACTS
from cubecore.dtypes import ELEMENT_TYPES
from cubecore.errors import RequestError
from cubecore.tiling.model.problem import Problem
from cubecore.units import FRACTAL_BYTES

RELIABILITIES = {"INI", "DOC", "MEAS", "CODE", "FIT", "INF"}
DATA = Path(str(catalog._DATA))
A2 = (
    "Ascend910B1",
    "Ascend910B2",
    "Ascend910B2C",
    "Ascend910B3",
    "Ascend910B4",
    "Ascend910B4-1",
)
TRAINING = ("Ascend910A", "Ascend910B", "Ascend910PremiumA", "Ascend910ProA")

every_chip = pytest.mark.parametrize("name", chip_names())
every_file = pytest.mark.parametrize("path", sorted(DATA.glob("*.toml")), ids=lambda p: p.stem)


@every_chip
def test_every_known_field_has_a_sourced_fact_and_every_fact_is_a_field(name):
    c = chip(name)
    assert set(c.sources) == {key for key in FACT_FIELDS if getattr(c, key) is not None}
    for key, fact in c.sources.items():
        assert (fact.field, fact.value) == (key, getattr(c, key))
        assert fact.reliability in RELIABILITIES
        assert fact.source


@every_chip
def test_sizes_are_sane(name):
    c = chip(name)
    for buffer in (c.l0a_bytes, c.l0b_bytes, c.l0c_bytes, c.l1_bytes):
        assert buffer.bit_count() == 1
    assert c.l0a_bytes == c.l0b_bytes >= 2 * FRACTAL_BYTES
    assert c.l0c_bytes >= 2 * FRACTAL_BYTES
    assert c.l1_bytes >= c.l0a_bytes + c.l0b_bytes
    assert c.ub_bytes % 4096 == 0
    assert c.l1_user_bytes % 32 == c.ub_user_bytes % 32 == 0
    assert all(size % 1024 == 0 for size in (c.bt_bytes, c.fb_bytes) if size is not None)
    assert c.l2_bytes is None or c.l2_bytes % 2**20 == 0
    assert c.gm_bytes is None or c.gm_bytes > 16e9
    assert c.frequency_hz is None or 0.4e9 <= c.frequency_hz <= 2e9
    assert c.aic_count > 0
    assert c.aiv_count is not None
    if c.arch in {"2201", "3510"}:
        assert c.mix_aiv_per_aic == 2


@every_chip
def test_cube_rates_are_of_known_types_in_whole_c0_or_parts_of_it(name):
    c = chip(name)
    assert c.cube_m == 16
    assert c.cube_n in {8, 16}
    for dtype, rate in c.cube_k.items():
        c0 = ELEMENT_TYPES[dtype].c0
        assert c0 % rate == 0, f"{dtype}: {rate} a cycle against C0 = {c0}"


@every_chip
def test_any_of_a_chips_names_finds_it(name):
    for product in (name, name.lower(), name.removeprefix("Ascend"), *chip(name).products):
        assert name in expand_family(product)


@every_chip
def test_either_every_cost_is_known_or_the_unknown_ones_are_named(name):
    c = chip(name)
    missing = set(c.unknown_costs)
    if c.arch == "2201" or name.startswith("Ascend950PR"):
        assert not missing
    elif c.arch == "3510":
        assert missing == {"hbm_bytes_per_second", "hbm_row_bytes"}
    else:
        assert {"hbm_bytes_per_second", "mad_head_cycles", "gm_to_l1_bytes_per_cycle"} <= missing


@every_file
def test_every_file_says_what_it_is(path):
    assert path.read_text("utf-8").startswith("# ")


@every_file
def test_a_soc_file_holds_only_what_differs(path):
    own = tomllib.loads(path.read_text("utf-8"))
    if path.stem.startswith("arch_"):
        return
    shared = tomllib.loads((DATA / f"arch_{own['arch']}.toml").read_text("utf-8"))["facts"]
    repeated = {k for k, e in own["facts"].items() if k in shared and e == shared[k]}
    assert not repeated


@pytest.mark.parametrize("arch", sorted({chip(n).arch for n in chip_names()}))
def test_every_declared_source_of_an_architecture_is_used(arch):
    declared = tomllib.loads((DATA / f"arch_{arch}.toml").read_text("utf-8"))["sources"]
    used = {
        (f.reliability, f.source)
        for n in chip_names()
        if chip(n).arch == arch
        for f in chip(n).sources.values()
    }
    assert {
        key for key, s in declared.items() if (s["reliability"], s["text"]) not in used
    } == set()


def test_user_sizes_of_a2_and_950_are_below_the_physical_ones():
    a2, a5 = chip("Ascend910B1"), chip("Ascend950PR_9589")
    assert (a2.l1_bytes, a2.l1_user_bytes) == (524288, 524032)
    assert (a2.ub_bytes, a2.ub_user_bytes) == (196608, 196352)
    assert (a5.l1_bytes, a5.l1_user_bytes) == (524288, 524288)
    assert (a5.ub_bytes, a5.ub_user_bytes) == (262144, 253952)
    assert (a5.bt_bytes, a5.fb_bytes) == (4096, 4096)


def test_reduced_950pr_parts_have_a_scaled_inferred_memory_rate():
    full, reduced = chip("Ascend950PR_9589"), chip("Ascend950PR_957b")
    assert full.sources["hbm_bytes_per_second"].reliability == "FIT"
    assert reduced.sources["hbm_bytes_per_second"].reliability == "INF"
    assert reduced.hbm_bytes_per_second * 8 == full.hbm_bytes_per_second * 7


def test_ascend310_states_only_what_public_pages_give():
    c = chip("Ascend310")
    assert (c.aic_count, c.l0c_bytes, c.ub_bytes, c.ub_user_bytes) == (2, 262144, 262144, 253952)
    assert c.gm_bytes is c.ddr_bytes_per_cycle is c.bt_bytes is None


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("910B", ("Ascend910B", *A2)),
        ("Ascend 910B", ("Ascend910B", *A2)),
        ("A2", A2),
        ("atlas  a2", A2),
        ("Atlas A2 Training Series Product", A2),
        ("910", TRAINING),
        ("Atlas Training Series Product", TRAINING),
        ("310P", ("Ascend310P1", "Ascend310P3")),
        ("atlas 300i pro", ("Ascend310P1", "Ascend310P3")),
        ("ATLAS-300I-PRO", ("Ascend310P1", "Ascend310P3")),
        ("Atlas 200/300/500", ("Ascend310",)),
        ("Atlas 200/300/500 Inference Product", ("Ascend310",)),
        ("310B", ("Ascend310B1", "Ascend310B4")),
        ("Atlas 200I/500 A2", ("Ascend310B1", "Ascend310B4")),
        ("kirin x90", ("KirinX90",)),
        ("ascend910b3", ("Ascend910B3",)),
        ("H100", ()),
        ("", ()),
    ],
)
def test_a_family_name_means_these_socs(family, expected):
    assert expand_family(family) == expected


@pytest.mark.parametrize("family", ["A3", "910C", "Ascend 910C", "Ascend910_93", "Atlas A3"])
def test_a3_means_the_dies_of_910c(family):
    assert expand_family(family) == tuple(n for n in chip_names() if n.startswith("Ascend910_"))


@pytest.mark.parametrize("kind", ["950PR", "950DT"])
def test_950_kinds_are_told_apart(kind):
    assert expand_family(kind) == tuple(n for n in chip_names() if kind in n)
    assert set(expand_family(kind)) < set(expand_family("950"))


def test_the_full_name_ascend910b_is_a_chip_of_the_first_generation():
    assert chip("Ascend910B").arch == "1001"


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(RequestError) as error:
        chip("Ascend910B33")
    assert str(error.value) == (
        "chip must be the full name of a SoC, got 'Ascend910B33'; did you mean Ascend910B3?"
    )


def test_a_name_like_nothing_is_answered_with_where_to_look():
    with pytest.raises(RequestError) as error:
        chip("H100")
    assert str(error.value) == (
        "chip must be the full name of a SoC, got 'H100'; cubecore chips lists them"
    )


def test_a_family_name_is_answered_with_the_socs():
    with pytest.raises(RequestError) as error:
        chip("atlas 300i pro")
    assert str(error.value) == (
        "chip must be the full name of a SoC, got 'atlas 300i pro'; "
        "atlas 300i pro may mean Ascend310P1, Ascend310P3"
    )


@pytest.mark.parametrize("name", ["910B3", "ascend910b3", "Ascend 910 B3", "910b3 "])
def test_a_name_that_can_mean_one_soc_is_that_soc(name):
    assert chip(name) is chip("Ascend910B3")
    assert Problem(m=1, n=1, k=1, chip=name) == Problem(m=1, n=1, k=1, chip="Ascend910B3")


def test_the_default_chip_is_the_environments(monkeypatch):
    assert Problem.from_json({"m": 1, "n": 1, "k": 1}).chip == "Ascend910B3"
    monkeypatch.setenv("CUBECORE_CHIP", "950pr_9589")
    assert Problem.from_json({"m": 1, "n": 1, "k": 1}).chip == "Ascend950PR_9589"
    assert cubecore.plan(m=16, n=16, k=16).problem.chip == "Ascend950PR_9589"
    assert cubecore.plan(m=16, n=16, k=16, chip="910B3").problem.chip == "Ascend910B3"
    monkeypatch.setenv("CUBECORE_CHIP", "910B")
    with pytest.raises(RequestError) as error:
        cubecore.plan(m=16, n=16, k=16)
    assert str(error.value).startswith(
        "CUBECORE_CHIP must be the full name of a SoC, got '910B'; 910B may mean Ascend910B, Ascend"
    )


def opened_by(code: str) -> list[str]:
    """Return the catalogue files that a fresh interpreter opens for `code`."""
    script = (
        "import json, sys; seen = []\n"
        "def hook(event, args):\n"
        "    if event == 'open' and str(args[0]).endswith('.toml'): seen.append(str(args[0]))\n"
        f"sys.addaudithook(hook); {code}; print(json.dumps(seen))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [Path(path).stem for path in json.loads(out.stdout)]


def test_importing_reads_no_file():
    assert opened_by("import cubecore.chips as k; k.chip_names()") == []


def test_one_chip_reads_two_files():
    assert opened_by("import cubecore.chips as k; k.chip('Ascend910B3')") == [
        "Ascend910B3",
        "arch_2201",
    ]


SIZES = dict.fromkeys(REQUIRED_FACTS, 64 * 1024) | {"aic_count": 1}


def toml(facts: Mapping[str, str]) -> str:
    return "".join(f"{key} = {entry}\n" for key, entry in facts.items())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A catalogue of our own: returns a function that writes chip ``Toy`` and loads it."""

    def load(changes=None, header="", arch="0"):
        facts = {key: f'{{ value = {v}, source = "s" }}' for key, v in SIZES.items()}
        facts |= changes or {}
        kept = {key: entry for key, entry in facts.items() if entry is not None}
        source = '[sources]\ns = { reliability = "DOC", text = "a page" }\n'
        (tmp_path / "arch_0.toml").write_text(source + "[facts]\n" + toml(kept))
        (tmp_path / "Toy.toml").write_text(f'# a toy\narch = "{arch}"\n{header}')
        return catalog._load("Toy")

    monkeypatch.setattr(catalog, "_DATA", tmp_path)
    catalog._read.cache_clear()
    yield load
    catalog._read.cache_clear()


def test_a_right_file_loads(folder):
    toy = folder()
    assert (toy.l1_bytes, toy.sources["l1_bytes"].source) == (65536, "a page")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"l1_bytes": '{ value = 65536, source = "t" }'},
            "Toy.toml: l1_bytes must name one of the file's sources, got t",
        ),
        (
            {"l1_bytes": "65536"},
            "Toy.toml: l1_bytes must be a table with value and source, got 65536",
        ),
        (
            {"l1_bytes": "{ value = 65536 }"},
            "Toy.toml: l1_bytes must name one of the file's sources, got none",
        ),
        (
            {"l1_byte": '{ value = 65536, source = "s" }'},
            "Toy.toml: l1_byte must be a field of a chip, got l1_byte; did you mean l1_bytes?",
        ),
        (
            {"l1_bytes": '{ value = 65536.0, source = "s" }'},
            "Toy.toml: l1_bytes must be a whole number, got 65536.0",
        ),
        (
            {"l1_bytes": '{ source = "s" }'},
            "Toy.toml: l1_bytes must be a whole number, got None",
        ),
        (
            {"gm_to_l1_row_cycles": '{ value = "fast", source = "s" }'},
            "Toy.toml: gm_to_l1_row_cycles must be a number, got fast",
        ),
        (
            {"cube_k": '{ value = 16, source = "s" }'},
            "Toy.toml: cube_k must be a table of numbers, got 16",
        ),
        (
            {"l1_user_bytes": '{ value = 65537, source = "s" }'},
            "Toy.l1_user_bytes must be at most l1_bytes = 65536 B, got 65537",
        ),
        (
            {"ub_user_bytes": '{ value = 65537, source = "s" }'},
            "Toy.ub_user_bytes must be at most ub_bytes = 65536 B, got 65537",
        ),
        (
            {"l2_bytes": '{ value = 0, source = "s" }'},
            "Toy.l2_bytes must be greater than 0, got 0",
        ),
        (
            {"cube_k": '{ value = { int8 = -32 }, source = "s" }'},
            "Toy.cube_k must be greater than 0, got -32",
        ),
        (
            {"l0a_bytes": None, "l0b_bytes": None},
            "Toy.toml must state every size that rules need, got no l0a_bytes, l0b_bytes",
        ),
    ],
)
def test_a_bad_file_is_refused(folder, changes, message):
    with pytest.raises(RequestError) as error:
        folder(changes)
    assert str(error.value) == message


def test_a_family_that_the_architecture_lacks_is_refused(folder):
    with pytest.raises(RequestError) as error:
        folder(header='family = "X"\n')
    assert str(error.value) == "Toy.toml: family must be one of arch_0.toml: none, got X"


def test_an_architecture_without_a_file_is_refused(folder):
    with pytest.raises(RequestError) as error:
        folder(arch="9")
    assert str(error.value) == "Toy.toml: arch must have a file arch_<arch>.toml, got 9"


def test_the_more_special_statement_holds(folder):
    toy = folder(header='[facts]\nl1_bytes = { value = 131072, source = "s", note = "bigger" }\n')
    assert (toy.l1_bytes, toy.l1_user_bytes) == (131072, 65536)
    assert toy.sources["l1_bytes"].note == "bigger"

"""Damaged stores, and stores where nothing may be written."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

import cubecore
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, names_in
from workflows.folders import folder  # noqa: F401 - a fixture
from workflows.sweeps import expected, problems, stored

# ruff: noqa: F811 - fixtures are arguments

ASKED = problems(12)
LEFT_OUT = "left out; plan --queries answers anew what it is asked\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a store of answers to `ASKED`."""
    path = tmp_path_factory.mktemp("store") / "s.sqlite"
    list(cubecore.plan_many(ASKED, alternatives=0, store=str(path), processes=1))
    return path


@pytest.fixture
def store(whole, folder):
    """Return a copy of the store, in the folder to stand in."""
    return Path(shutil.copy(whole, folder / "s.sqlite"))


def change(store, statement, *values):
    connection = sqlite3.connect(store)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


CELLS = {
    "answer = x'00112233'": 0,
    "answer = 'text'": 0,
    "answer = zeroblob(0)": 0,
    "problem = '{'": 1,
    "problem = '[]'": 1,
    "problem = CAST(x'ff' AS TEXT)": 1,
    "problem = NULL": 1,
    "settings = '{\"hbm\": 1}'": 1,
    "us = 'fast'": 1,
    "us = NULL": 1,
    "cycles = 1.5": 1,
    "rule = x'00'": 1,
    "tiling = x'0011'": 1,
    "tiling = NULL": 1,
    "message = 'no'": 1,
    "limited_by = CAST(x'ff' AS TEXT)": 1,
    "key = 'other'": 1,
}
"""What one row may be set to, and whether a reader of the columns sees it."""


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.thinned(20)
def test_a_damaged_row_is_answered_anew_and_mended(store, cell):
    with sqlite3.connect(store) as connection:
        text = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'plans'").fetchone()
    connection.close()
    bare = text[0].replace(" NOT NULL", "")
    change(store, "ALTER TABLE plans RENAME TO strict")
    change(store, bare.replace("strict", "plans"))
    change(store, "INSERT INTO plans SELECT * FROM strict")
    change(store, "DROP TABLE strict")
    change(store, f"UPDATE plans SET {cell} WHERE rowid = 5")
    shown = cli("store", "show", "s.sqlite", "--limit", "99")
    if CELLS[cell]:
        assert (shown.code, shown.err) == (FOUND, f"1 damaged answer {LEFT_OUT}")
    else:
        assert (shown.code, shown.err) == (DONE, "")
    answers = cubecore.plan_many(ASKED, alternatives=0, store=str(store), processes=1)
    assert [answer.to_json() for answer in answers] == expected(ASKED)
    anew = cubecore.plan_many(ASKED, alternatives=0, store=str(store), processes=1)
    assert all(answer.stored for answer in anew)


def test_an_answer_to_another_question_is_none(store):
    rows = sqlite3.connect(store).execute("SELECT answer FROM plans ORDER BY rowid").fetchall()
    change(store, "UPDATE plans SET answer = ? WHERE rowid = 1", rows[1][0])
    made = json.loads(zlib.decompress(rows[2][0])) | {"tiling": {"M": 1}}
    change(
        store,
        "UPDATE plans SET answer = ? WHERE rowid = 3",
        zlib.compress(json.dumps(made).encode()),
    )
    answers = cubecore.plan_many(ASKED, alternatives=0, store=str(store), processes=1)
    got = [(answer.stored, answer.to_json()) for answer in answers]
    assert [made for _, made in got] == expected(ASKED)
    assert sum(not stored for stored, _ in got) == 2


def test_damaged_rows_are_left_out_of_everything(store):
    change(store, "UPDATE plans SET problem = '{' WHERE rowid IN (2, 5)")
    for command in (("show",), ("show", "--json"), ("export",)):
        answer = cli("store", command[0], "s.sqlite", *command[1:])
        assert (answer.code, answer.err) == (FOUND, f"2 damaged answers {LEFT_OUT}")
    assert len(cli("store", "export", "s.sqlite").out.splitlines()) == 1 + 10


def test_a_damaged_table_of_models_is_one_sentence(store):
    change(store, "UPDATE models SET model = CAST(x'ff00' AS TEXT)")
    line = "cannot read store s.sqlite: a damaged table of models"
    assert_refused(cli("store", "show", "s.sqlite"), line)


def test_a_store_without_its_tables_is_one_sentence(store):
    change(store, "DROP TABLE plans")
    change(store, "CREATE TABLE plans (x)")
    line = "cannot read store s.sqlite: no such column: key"
    assert_refused(cli("store", "show", "s.sqlite"), line)
    Path("q.jsonl").write_text(json.dumps(ASKED[0]) + "\n")
    line = "cannot read store s.sqlite: no such column: answer"
    assert_refused(cli("plan", "--queries", "q.jsonl", "--store", "s.sqlite"), line)


def test_flipped_bytes_never_end_in_a_traceback(store):
    data, rng = store.read_bytes(), random.Random(1)
    Path("q.jsonl").write_text("".join(json.dumps(asked) + "\n" for asked in ASKED[:3]))
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 40)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        store.write_bytes(broken)
        for command in (("store", "export", "s.sqlite"), ("store", "compare", "s.sqlite")):
            answer = cli(*command)
            assert answer.code in {DONE, FOUND, BAD_REQUEST}
            assert answer.err.count("\n") <= 1
            assert "internal error" not in answer.err
        for left in Path().glob("s.sqlite-*"):
            left.unlink()


def test_a_store_in_a_folder_that_takes_no_files_is_read(whole):
    root = Path(tempfile.mkdtemp())
    try:
        copy = Path(shutil.copy(whole, root / "s.sqlite"))
        copy.chmod(0o444)
        root.chmod(0o555)
        code = (
            "import os, sys\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "from cubecore.workflows.sweep.store import Store\n"
            "with Store.open(sys.argv[1]) as store: print(len(list(store.plans())))\n"
        )
        # What is loaded must be readable to nobody, which runs the code.
        ran = subprocess.run(
            [sys.executable, "-c", f"import cubecore.workflows.sweep.store\n{code}", str(copy)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "12\n", "")
        assert names_in(root) == ["s.sqlite"]
    finally:
        root.chmod(0o755)
        shutil.rmtree(root)


def test_a_read_store_is_left_as_it_was(store):
    before = store.read_bytes()
    assert len(stored(store)) == 12
    assert store.read_bytes() == before
    assert names_in(".") == ["s.sqlite"]


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        *(("-wal", kind) for kind in ("file", "link", "folder")),
        *(("-journal", kind) for kind in ("file", "link", "folder")),
        *(("-shm", kind) for kind in ("link", "folder")),  # a file begins as it likes
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_a_file_in_the_place_of_one_of_sqlites_is_left_alone(store, ending, kind, there):
    if not there:
        store.unlink()
    Path("precious").write_text("precious")
    other = Path(f"s.sqlite{ending}")
    if kind == "file":
        other.write_text("precious")
    elif kind == "link":
        other.symlink_to("precious")
    else:
        other.mkdir()
    Path("q.jsonl").write_text(json.dumps(ASKED[0]) + "\n")
    reason = f"s.sqlite{ending} is in the way, no file of SQLite's; move it"
    line = f"cannot write --store s.sqlite: {reason}"
    assert_refused(cli("plan", "--queries", "q.jsonl", "--store", "s.sqlite"), line)
    if there:
        assert_refused(cli("store", "show", "s.sqlite"), f"cannot read store s.sqlite: {reason}")
    assert Path("precious").read_text() == "precious"
    assert other.is_symlink() == (kind == "link")
    assert kind != "file" or other.read_text() == "precious"
    assert store.exists() == there


def test_a_model_without_a_number_is_one_sentence(store):
    change(store, "ALTER TABLE models RENAME TO numbered")
    change(store, "CREATE TABLE models (number, model)")
    change(store, "INSERT INTO models SELECT NULL, model FROM numbered")
    Path("q.jsonl").write_text(json.dumps(ASKED[0]) + "\n")
    line = "cannot read store s.sqlite: a model without a number"
    assert_refused(cli("plan", "--queries", "q.jsonl", "--store", "s.sqlite"), line)

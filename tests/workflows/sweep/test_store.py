"""A store: who may open it, versions kept apart, comparisons, CSV."""

import csv
import io
import json
import sqlite3

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.workflows.sweep import answers as answers_module
from cubecore.workflows.sweep import store as store_module
from cubecore.workflows.sweep.answers import AnswerLine, model_version
from cubecore.workflows.sweep.store import Store
from cubecore.workflows.sweep.store_compare import compare_models, write_csv
from workflows.sweeps import OPTIONS, problems, stored


def refused(path, **how):
    with pytest.raises(RequestError) as caught:
        Store.open(str(path), **how)
    return str(caught.value)


def fill(path, asked):
    list(cubecore.plan_many(asked, alternatives=0, store=str(path), processes=1))


@pytest.fixture
def as_model(monkeypatch):
    """Return what makes cubecore another version of itself."""

    def become(name):
        for module in (store_module, answers_module):
            monkeypatch.setattr(module, "model_version", lambda: name)

    return become


# --- opening


def test_a_store_is_made_where_there_is_none(tmp_path):
    path = tmp_path / "s.sqlite"
    Store.open(str(path), write=True).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA application_id").fetchone() == (0x63756265,)
    connection.close()
    assert stored(path) == []


@pytest.mark.parametrize("write", [True, False])
def test_files_that_are_no_stores(tmp_path, write):
    text = tmp_path / "text"
    text.write_text("hello, this is no database at all, whatever its name is")
    verb = "write" if write else "read"
    want = f"cannot {verb} store {text}: file is not a database"
    assert refused(text, write=write) == want
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    want = f"store {other} is no store of cubecore but another SQLite database"
    assert refused(other, write=write) == want
    later = tmp_path / "later.sqlite"
    Store.open(str(later), write=True).close()
    connection = sqlite3.connect(later)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert refused(later, write=write) == f"store {later} has store format 2; this version reads 1"


def test_a_store_that_is_not_there_cannot_be_read(tmp_path):
    path = tmp_path / "s.sqlite"
    want = f"cannot read store {path}: no such file"
    assert refused(path) == want
    assert not path.exists()
    want = f"cannot read store {tmp_path}: is a directory"
    assert refused(tmp_path) == want


def test_unwritable_places(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "s.sqlite", "/proc/s.sqlite"):
        want = f"cannot write --store {path}: unable to open database"
        assert refused(path, write=True, subject="--store").startswith(want)


def test_a_store_that_another_process_holds_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "PATIENCE_S", 0.01)
    path = tmp_path / "s.sqlite"
    Store.open(str(path), write=True).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    want = f"cannot write store {path}: database is locked"
    assert refused(path, write=True) == want
    holder.execute("ROLLBACK")
    holder.close()
    Store.open(str(path), write=True).close()


def test_a_damaged_store_is_one_sentence(tmp_path):
    path = tmp_path / "s.sqlite"
    fill(path, problems(20))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    want = r"^cannot read store .*: database disk image is malformed$"
    with pytest.raises(RequestError, match=want), Store.open(str(path)) as store:
        list(store.plans())


# --- versions


def test_models_are_kept_apart(tmp_path, as_model):
    path = tmp_path / "s.sqlite"
    asked = problems(3)
    fill(path, asked)
    ours = model_version()
    as_model("9.9.9+new")
    again = list(cubecore.plan_many(asked[:2], alternatives=0, store=str(path), processes=1))
    assert not any(answer.stored for answer in again)
    with Store.open(str(path)) as store:
        assert store.models() == {ours: 3, "9.9.9+new": 2}
        assert {made.model for made in store.plans(ours)} == {ours}
        with pytest.raises(RequestError) as caught:
            store.require_model("9.9.9+nex")
    want = f"model must be one of {ours}, 9.9.9+new, got '9.9.9+nex'; did you mean 9.9.9+new?"
    assert str(caught.value) == want


def test_the_model_is_the_version_and_what_decides():
    version, _, digest = model_version().partition("+")
    assert version == cubecore.__version__
    assert len(digest) == 8
    assert int(digest, 16) >= 0


def test_the_models_digest_covers_code_and_chips(tmp_path, monkeypatch):
    root = tmp_path / "cubecore"
    for name in ("chips/data/x.toml", "tiling/a.py", "workflows/plan.py", "dtypes.py", "units.py"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    monkeypatch.setattr(answers_module, "ROOT", root)
    seen = {model_version.__wrapped__()}
    for name in ("chips/data/x.toml", "tiling/a.py", "workflows/plan.py", "dtypes.py"):
        (root / name).write_text("2")
        seen.add(model_version.__wrapped__())
    assert len(seen) == 5
    (root / "workflows" / "run.py").write_text("3")
    assert model_version.__wrapped__() in seen


# --- what is in it


def test_plans_are_what_plan_answers(tmp_path):
    path = tmp_path / "s.sqlite"
    asked = problems(4)
    fill(path, asked)
    found = {(p["m"], p["n"], p["k"]): made for _, _, made in stored(path) for p in [made.problem]}
    for problem in asked:
        plan = cubecore.plan(problem, alternatives=0)
        made = found[problem["m"], problem["n"], problem["k"]]
        assert made.problem == plan.problem.to_json()
        assert made.tiling == plan.tiling
        assert (made.us, made.cycles) == (plan.predicted.us, plan.predicted.cycles)
        assert made.lower_bound_us == plan.lower_bound_us
        assert made.limited_by == plan.predicted.limited_by
        assert made.to_json()["tiling"] == plan.tiling.to_json()


def test_plans_may_be_chosen(tmp_path):
    path = tmp_path / "s.sqlite"
    asked = [*problems(5), {"m": 7, "n": 7, "k": 7, "chip": "Ascend910B1"}]
    fill(path, asked)
    list(
        cubecore.plan_many(asked[:1], alternatives=0, store=str(path), settings={"aic_count": "4"})
    )
    with Store.open(str(path)) as store:
        assert len(list(store.plans())) == 7
        assert len(list(store.plans(chip="Ascend910B1"))) == 1
        assert len(list(store.plans(settings={"aic_count": "4"}))) == 1
        assert len(list(store.plans(settings={}))) == 6
        assert len(list(store.plans(m=7, n=7, k=7))) == 1
        assert list(store.plans(m=7, k=8)) == []


def add(store, shape, cycles, tiling=None):
    """Put an answer into a store: cycles, or None for no plan."""
    problem = cubecore.Problem(**dict(zip("mnk", shape, strict=True)))
    made = {"problem": problem.to_json()}
    if cycles is None:
        made["error"] = {"rule": "L1-CAPACITY", "message": "no"}
    else:
        plan = cubecore.plan(m=16, n=16, k=16, alternatives=0).to_json()
        made |= {
            "tiling": plan["tiling"] | (tiling or {}),
            "predicted": {"us": cycles / 1800, "cycles": cycles, "limited_by": "M"},
            "lower_bound_us": 1.0,
        }
    store.add([AnswerLine(cycles is not None, json.dumps(made))], OPTIONS)


def test_two_models_are_compared(tmp_path, as_model):
    path = str(tmp_path / "s.sqlite")
    with Store.open(path, write=True) as store:
        as_model("old")
        add(store, (1, 1, 1), 100)
        add(store, (2, 2, 2), 100)
        add(store, (3, 3, 3), 100)
        add(store, (4, 4, 4), None)
        add(store, (5, 5, 5), 100)
        as_model("new")
        add(store, (1, 1, 1), 100)
        add(store, (2, 2, 2), 400, {"baseM": 32})
        add(store, (3, 3, 3), None)
        add(store, (4, 4, 4), 100)
        add(store, (6, 6, 6), 100)
        found = compare_models(store)
        assert (found.old, found.new) == ("old", "new")
        assert [pair.ratio for pair in found.pairs] == [4.0, 1.0]
        assert found.mean_ratio == pytest.approx(2.0)
        assert found.same_tiling == 1
        assert [pair.old.problem["m"] for pair in found.lost] == [3]
        assert [pair.new.problem["m"] for pair in found.gained] == [4]
        assert (found.only_old, found.only_new) == (1, 1)
        assert found.to_json()["pairs"][0]["problem"]["m"] == 2
        back = compare_models(store, "new", "old")
        assert [pair.ratio for pair in back.pairs] == [1.0, 0.25]
        with pytest.raises(RequestError, match=r"^model must be one of old, new, got 'none'"):
            compare_models(store, "old", "none")


def test_one_model_is_nothing_to_compare(tmp_path):
    path = tmp_path / "s.sqlite"
    fill(path, problems(1))
    with Store.open(str(path)) as store:
        want = "store must hold answers of two models to compare, got 1"
        with pytest.raises(RequestError) as caught:
            compare_models(store)
    assert str(caught.value) == want


def test_csv_reads_back(tmp_path):
    path = tmp_path / "s.sqlite"
    asked = problems(3)
    fill(path, asked)
    list(cubecore.plan_many(asked[:1], store=str(path), settings={"l0a_bytes": "256"}))
    text = io.StringIO()
    with Store.open(str(path)) as store:
        assert write_csv(store, store.plans(), text) == 4
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(rows) == 4
    planned = [row for row in rows if row["cycles"]]
    for row in planned:
        plan = cubecore.plan(m=int(row["m"]), n=int(row["n"]), k=int(row["k"]), a=row["a"],
                             cores=int(row["cores"]), alternatives=0)  # fmt: skip
        assert [int(row[name]) for name in FIELDS] == list(plan.tiling.to_json().values())
        assert float(row["us"]) == plan.predicted.us
        assert row["trans_a"] == "false"
        assert row["model"] == model_version()
    (none,) = [row for row in rows if not row["cycles"]]
    assert none["rule"] == "L0A-CAPACITY"
    assert none["settings"] == '{"l0a_bytes": "256"}'
    assert none["baseM"] == ""

"""The survey of public operators, on small repositories of our own."""

import json

import pytest

from public_tik.attempt import Attempt, build
from public_tik.attempts import OWN
from public_tik.case import BUILT_IN, VENDOR, tensor
from public_tik.run import CASES, DATA
from public_tik.survey import OTHERS_MOST, Survey, spread
from public_tik.unit_tests import TESTS, unit_test_attempts

HELPER = """
from tbe import tik


def moved(t, x):
    source = t.Tensor("float16", x["shape"], tik.scope_gm, "source")
    out = t.Tensor("float16", x["shape"], tik.scope_gm, "out")
    ub = t.Tensor("float16", x["shape"], tik.scope_ubuf, "ub")
    t.data_move(ub, source, 0, 1, 8, 0, 0)
    t.data_move(out, ub, 0, 1, 8, 0, 0)
    return source, out
"""
COPY = """
from impl import helper, unused
from tbe import tik


def copy(x, kernel_name="copy"):
    unused.is_wanted(x)
    if x["shape"] == (1,):
        raise RuntimeError("too small")
    t = tik.Tik()
    source, out = helper.moved(t, x)
    t.BuildCCE(kernel_name, [source], [out])
"""
REFUSED = """
from tbe import tik


def refused(x):
    tik.Tik().vbi(1)
"""
LANGUAGE = """
import te.lang.cce


def language(x):
    te.lang.cce.vadd(x, x)
"""
MODULES = {
    "helper": HELPER,
    "copy": COPY,
    "refused": REFUSED,
    "language": LANGUAGE,
    "unused": "def is_wanted(x):\n    return False\n",
}
HERE = {"repository": "someone/operators", "folder": "tbe"}


@pytest.fixture
def checkouts(tmp_path):
    for name, text in MODULES.items():
        path = tmp_path / HERE["repository"] / "tbe" / "impl" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def attempt(name, shape=(128,)):
    arguments = (tensor(shape),)
    return Attempt(module=f"impl.{name}", function=name, arguments=arguments, **HERE)


@pytest.mark.parametrize(
    ("name", "shape", "kind", "why"),
    [
        ("copy", (128,), "built", ""),
        ("copy", (1,), "arguments", "RuntimeError: too small"),
        ("refused", (1,), "refused", "refused.py:6: tik.vbi is not supported: it needs"),
        ("language", (1,), "tensor expressions", "language.py:6: te.lang.cce.vadd is not"),
        ("missing", (1,), "arguments", "ModuleNotFoundError: No module named 'impl.missing'"),
    ],
)
def test_an_attempt_says_what_it_came_to(checkouts, name, shape, kind, why):
    built = build(attempt(name, shape), checkouts)
    assert (built.kind, built.why.startswith(why)) == (kind, True)


def test_a_file_is_built_where_its_code_issued_instructions(checkouts):
    built = build(attempt("copy"), checkouts)
    assert built.files == {"tbe/impl/copy.py", "tbe/impl/helper.py"}  # and not unused.py


def test_a_survey_tries_each_file_and_then_those_that_import_it(checkouts):
    names = ("helper", "refused", "language", "unused", "elsewhere")
    rows = [
        {
            "repository": HERE["repository"],
            "revision": "1",
            "path": f"tbe/impl/{name}.py",
            "category": "layout",
            "outcome": "built",
        }
        for name in names
    ]
    survey = Survey(checkouts, {(row["repository"], row["path"]): "" for row in rows})
    small = attempt("copy", (1,))
    survey.run([small, attempt("copy"), attempt("refused"), attempt("language")])
    after = [survey.row(row) for row in rows]
    assert [row["outcome"] for row in after] == [
        *("built", "refused", "tensor expressions", "no arguments", "not here"),
    ]
    assert after[0]["why"] == "as part of copy.py"
    assert after[0]["attempt"] == attempt("copy").key != small.key
    again = Survey(checkouts, {(HERE["repository"], rows[0]["path"]): attempt("copy").key})
    again.run([small, attempt("copy")])
    assert [found.attempt for found in again.built.values()] == [attempt("copy")] * 2
    assert not again.failed  # what built it the last time came first


CASES_OF_THEIRS = """
import tensorflow as tf
from op_test_frame.ut import OpUT
from impl.copy import copy

ut = OpUT("CopyTwoD", "impl.copy", "copy")
expected = tf.constant(1).eval()
ut.add_case(["Ascend310"], {"params": [{"shape": (1,)}], "expect": RuntimeError})
ut.add_case("all", {"params": [{"shape": (128,)}], "expect": "success"})


def both(chip):
    copy({"shape": (128,)})
    copy({"shape": (1,)})


ut.add_cust_test_func(["Ascend310"], test_func=both)
named = OpUT("CopyTwoD")
named.add_precision_case(["Ascend910"], {"params": [], "expect": "success"})
raise SystemExit(1)
"""


def test_unit_tests_give_arguments_and_calls(tmp_path):
    for folder, files in (
        (f"{BUILT_IN}/impl", MODULES),
        (f"{TESTS}/ops_test/Copy", {"test_copy": CASES_OF_THEIRS, "plain": "x = 1\n"}),
    ):
        for name, text in files.items():
            path = tmp_path / VENDOR / folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    whole, named, call, small = unit_test_attempts(tmp_path)
    assert [a.module for a in (whole, call, small)] == ["impl.copy"] * 3
    assert (named.module, named.function) == ("impl.copy_two_d", "copy_two_d")
    assert whole.arguments == ({"shape": (128,)},)
    assert (small.soc, named.soc) == ("Ascend310", "Ascend910A")
    assert [build(a, tmp_path).kind for a in (whole, call, small)] == [
        *("built", "built", "arguments"),  # a call that fails later has built before
    ]
    assert build(call, tmp_path).files == {
        *(f"{BUILT_IN}/impl/copy.py", f"{BUILT_IN}/impl/helper.py"),
    }


def test_neighbours_are_skipped_evenly():
    many = [attempt("copy", (size,)) for size in range(1, 200)]
    kept = spread(many, OTHERS_MOST)
    assert len(kept) <= OTHERS_MOST
    assert kept[0] is many[0]
    assert spread(many[:3], OTHERS_MOST) == many[:3]


def test_attempts_differ_and_the_page_names_one_for_each_built_operator():
    keys = {a.key for a in OWN}
    assert len(keys) == len(OWN)
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    known = keys | {Attempt.of(case).key for case in CASES}
    for row in rows:
        if row["outcome"] == "built":
            assert row["attempt"] in known or row["arguments"] == "its unit tests", row["path"]
        assert (row["outcome"] in {"built", "verified"}) or row["why"], row["path"]

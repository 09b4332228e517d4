"""`compare` of two saved results: times, runs and steps of models, and what it refuses."""

import json
from dataclasses import replace

import pytest

import cubecore
from cubecore.answers.compare.figures import LaunchFigures, verdict
from workflows.command import DONE, FOUND, assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

KINDS = "compare takes two tilings, two times, two runs or two steps of models"
BASE = LaunchFigures(
    "Ascend910B3", 100.0, 180_000, "MTE2", 1000, {"S": 9000, "MTE2": 80_000, "M": 20_000},
    {("M", "flag MTE2 -> M 0"): 40_000},
    {"device memory to L2": 4_000_000, "L2 to L1": 80_000_000, "L0C to L2": 4_000_000}, 20,
)  # fmt: skip
SLOWER = replace(BASE, us=133.0, cycles=239_400)
MODEL = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000,
}  # fmt: skip


def saved(folder, name, *words):
    answer = cli(*words, "--json")
    assert answer.code in {DONE, FOUND}
    (folder / name).write_text(answer.out, encoding="utf-8")
    return name


# --- the sentence


def pipes(**busy):
    return {**BASE.pipes, **busy}


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        (replace(SLOWER, pipes=pipes(MTE2=160_000),
                 links={**BASE.links, "L2 to L1": 160_000_000}),
         ": it reads half as much from L2"),
        (replace(SLOWER, pipes=pipes(MTE2=160_000),
                 links={**BASE.links, "device memory to L2": 16_000_000}),
         ": it reads 0.25 times as much from device memory"),
        (replace(SLOWER, pipes=pipes(MTE2=160_000)),
         ": its MTE2 is busy for 80,000 against 160,000 cycles"),
        (replace(SLOWER, pipes=pipes(MTE2=160_000), cores=10),
         ": it runs on 20 cores, the other on 10"),
        (replace(SLOWER, pipes=pipes(FIX=70_000), links={**BASE.links, "L0C to L2": 8_000_000}),
         ": it writes half as much from L0C"),
        (replace(SLOWER, pipes=pipes(M=90_000)),
         ": its M is busy for 20,000 against 90,000 cycles"),
        (replace(SLOWER, stalls={("M", "flag MTE2 -> M 0"): 90_000}),
         ": its M waits 50,000 cycles less for flag MTE2 -> M 0"),
        (replace(SLOWER, cores=10), ": it runs on 20 cores, the other on 10"),
        (replace(SLOWER, issued=2000), ": it issues half the instructions"),
        (replace(SLOWER, pipes=pipes(S=90_000)), ""),
        (replace(SLOWER, chip="Ascend910B4"),
         ": it runs on Ascend910B3, the other on Ascend910B4"),
    ],
)  # fmt: skip
def test_the_cause_is_what_the_faster_does_less_of(slow, cause):
    said = f"a.json is 1.33x faster than b.json (100 us against 133 us){cause}"
    assert verdict(("a.json", "b.json"), (BASE, slow)) == said
    turned = verdict(("b.json", "a.json"), (slow, BASE))
    assert turned == said


def test_equal_times_are_called_so():
    near = replace(BASE, us=100.4)
    assert verdict("ab", (BASE, near)) == "a and b take the same time (100 us)"
    none = replace(BASE, us=0.0, cycles=0)
    assert verdict("ab", (none, none)) == "a and b take the same time (0 us)"


# --- saved files


def test_two_times_of_products(folder):
    one = saved(folder, "a.json", "time", "--m", 256, "--n", 512, "--k", 256)
    two = saved(folder, "b.json", "time", "--m", 512, "--n", 512, "--k", 256)
    answer = cli("compare", one, two)
    us = [json.loads((folder / name).read_text("utf-8"))["us"] for name in (one, two)]
    assert answer.code == DONE
    assert answer.out.startswith(f"a.json is {us[1] / us[0]:.2f}x faster than b.json (")
    made = cli("compare", one, two, "--json").json
    assert made["ratio"] == pytest.approx(us[1] / us[0])
    assert made["files"] == ["a.json", "b.json"]
    assert made["subjects"] == ["256 x 512 x 256", "512 x 512 x 256"]
    assert f"{made['difference']}." == answer.out.splitlines()[0]
    figures = {row["figure"]: row for row in made["figures"]}
    assert figures["time"]["difference"] == f"{us[1] / us[0] - 1:+.1%}"
    assert figures["chip" if "chip" in figures else "limited by"]["first"]
    lines = cli("compare", one, two, "--csv").out.splitlines()
    assert lines[0] == "figure,first,second,difference"
    assert len(lines) == len(figures) + 1


def test_two_times_of_tilings_can_still_be_drawn(folder):
    one = saved(folder, "a.json", "time", "--m", 256, "--n", 512, "--k", 256)
    answer = cli("compare", one, one, "--report", "r.html")
    assert answer.code == DONE
    assert "a.json and a.json take the same time (" in answer.out
    assert "Which of the two runs is faster?" in (folder / "r.html").read_text("utf-8")


def test_operators_and_what_they_lack(folder):
    one = saved(folder, "a.json", "time", "--op", "softmax", "--shape", "64x512")
    two = saved(folder, "b.json", "time", "--op", "softmax", "--shape", "640x512")
    answer = cli("compare", one, two)
    assert answer.code == DONE
    assert answer.out.startswith("a.json is ")
    assert_refused(
        cli("compare", one, two, "--report", "r.html"),
        "a.json and b.json are saved results without a tiling: options of a problem and files "
        "need two tilings",
    )


SCRIPT = """
import numpy as np
from cubecore import kernel

SHARE = (1 << 17) // BLOCKS

@kernel(outputs="z", types={"x": "float", "z": "float"})
def copied(core, x, z):
    a, at = core.ubuf("float", SHARE), core.block_idx * SHARE
    core.asc_copy_gm2ub_sync(a, x + at, 4 * SHARE)
    core.asc_copy_ub2gm_sync(z + at, a, 4 * SHARE)

x = np.ones(1 << 17, np.float32)
copied[BLOCKS](x, np.zeros_like(x))
"""


def test_kernels(folder):
    """The same kernel on fewer cores."""
    for name, blocks in (("many.py", 32), ("few.py", 4)):
        (folder / name).write_text(SCRIPT.replace("BLOCKS", str(blocks)), "utf-8")
    many = saved(folder, "a.json", "time", "many.py")
    few = saved(folder, "b.json", "time", "few.py")
    told = cli("compare", few, many).out.splitlines()[0]
    assert told.startswith("a.json is ")
    assert told.endswith(": it runs on 16 cores, the other on 2.")
    made = cli("compare", many, few, "--json").json
    assert (made["kind"], made["ratio"] > 1) == ("time", True)
    assert made["subjects"] == ["copied[32]", "copied[4]"]


def test_runs(folder):
    one = saved(folder, "a.json", "run", "--m", 64, "--n", 64, "--k", 64)
    answer = cli("compare", one, one)
    assert answer.out.splitlines()[0] == "a.json and a.json: both verified."
    changed = json.loads((folder / one).read_text("utf-8"))
    changed |= {"verified": False, "findings": [{"id": "RACE", "message": "m"}]}
    (folder / "b.json").write_text(json.dumps(changed), "utf-8")
    told = cli("compare", one, "b.json").out
    assert told.splitlines()[0] == ("a.json: verified; b.json: not verified; only b.json has RACE.")
    assert cli("compare", one, "b.json", "--json").json["ratio"] is None


def test_steps_of_models(folder):
    (folder / "config.json").write_text(json.dumps(MODEL), "utf-8")
    words = ("model", "config.json", "--phase", "decode", "--batch", 4)
    short = saved(folder, "a.json", *words, "--seq", 512)
    long = saved(folder, "b.json", *words, "--seq", 8192)
    bare = saved(folder, "c.json", *words)
    first = cli("compare", long, short).out.splitlines()[0]
    assert first.startswith("a.json is ")
    assert " faster than b.json (" in first
    assert "): its attention takes " in first
    told = cli("compare", short, bare).out.splitlines()[0]
    assert told == "c.json without a total: not every part has a time."


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        (("t.json", "r.json"), f"t.json holds a time and r.json a run; {KINDS}"),
        (("o.json", "p.json"), f"o.json holds a time and p.json a plan; {KINDS}"),
        (("x.json", "o.json"), f"x.json holds a tiling and o.json a time; {KINDS}"),
        (("e.json", "o.json"), f"e.json holds a refusal and o.json a time; {KINDS}"),
    ],
)
def test_results_that_cannot_be_compared_are_one_sentence(folder, pair, line):
    shape = ("--m", 64, "--n", 64, "--k", 64)
    saved(folder, "t.json", "time", *shape)
    saved(folder, "r.json", "run", *shape)
    saved(folder, "p.json", "plan", *shape)
    saved(folder, "o.json", "time", "--op", "softmax", "--shape", "64x512")
    cli("plan", *shape, "--out", "x.json")
    (folder / "e.json").write_text(cli("plan", "--m", 0, "--json").out, "utf-8")
    assert_refused(cli("compare", *pair), line)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("us", "fast", 'b.json: us must be a number from 0 on, got "fast"'),
        ("us", None, "b.json: us must be a number from 0 on, got nothing"),
        ("cycles", -1, "b.json: cycles must be a number from 0 on, got -1"),
        ("pipes", [], "b.json: pipes must be an object, got []"),
        ("pipes", {"M": 3}, "b.json: pipes: M must be an object, got 3"),
        ("stalls", {}, "b.json: stalls must be a list of objects, got {}"),
        ("links", [{"link": 3}], "b.json: links[0]: link must be a text, got 3"),
        ("cores", [{"cores": ["a"]}],
         'b.json: cores[0]: cores must be a list of whole numbers, got ["a"]'),
        ("operator", {}, "b.json: operator: op must be a text, got nothing"),
    ],
)  # fmt: skip
def test_values_that_no_result_has_are_refused(folder, key, value, line):
    one = saved(folder, "a.json", "time", "--op", "softmax", "--shape", "64x512")
    wrong = json.loads((folder / one).read_text("utf-8")) | {key: value}
    (folder / "b.json").write_text(json.dumps(wrong), "utf-8")
    assert_refused(cli("compare", one, "b.json"), line)


def test_python_calls_them_first_and_second():
    tiling = cubecore.plan(m=256, n=512, k=256).tiling
    same = cubecore.compare(tiling, tiling, m=256, n=512, k=256)
    assert same.sentence.startswith("first and second take the same time (")
    named = cubecore.compare(tiling, tiling, m=256, n=512, k=256, names=("old", "new"))
    assert named.to_json()["names"] == ["old", "new"]
    assert named.to_json()["difference"] == named.sentence
    assert named.sentence.startswith("old and new ")

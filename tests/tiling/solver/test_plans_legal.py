"""Every plan is legal, every refusal is a sentence, and none takes a second: random requests.

Requests are drawn over all chips of the catalogue, all types that each multiplies, and all options.
A plan is judged by `check` in both editions, and by sums of its buffers made here. The seed changes
with every run and is printed; CUBECORE_SEED repeats one, CUBECORE_SWEEP_PROBLEMS says how many.
"""

import os
import random
import time
from collections import Counter

import pytest

import cubecore
from cubecore.chips import chip, chip_names
from cubecore.chips.products import (
    HALF_SUM_ARCHS,
    IBSHARE_ARCHS,
    MATMUL_UNIT_FLAG_ARCHS,
    combinations,
)
from cubecore.dtypes import element_type
from cubecore.errors import NoLegalTilingError, RequestError
from cubecore.tiling.model.problem import SCALE_TYPE, SCALED_ONLY, SCALED_TYPES
from cubecore.tiling.repair.infeasibility import ConflictError
from cubecore.tiling.rules.batches import LAYOUTS_BY_ARCH

ONLY_IN_001 = {"A-INNER-EXTENT", "B-INNER-EXTENT", "BASE-K-ALIGNMENT"}
"""Plans keep to edition 000, which takes stored rows over 65535 with intrinsicsCheck, and asks for
another baseK (docs/rules.md)."""
FEW = 150
PART = 6
"""An ordinary run plans one of so many of the few requests."""
MANY = int(os.environ.get("CUBECORE_SWEEP_PROBLEMS", "5000"))
MOST_SECONDS = 1.0
NO_TILING = "no legal tiling for "
EDGES = (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 4095, 4096, 65535, 65536)


def extent(rng):
    how = rng.random()
    if how < 0.25:
        return rng.choice(EDGES)
    if how < 0.55:
        return 16 * rng.randint(1, 512)
    return int(2 ** rng.uniform(0, 17 if how < 0.97 else 26))


def drawn_fix(rng, keys):
    """Draw wishes for a few fields: numbers, ranges, multiples; most of them can be met."""
    whole = {"singleCoreM": keys["m"], "singleCoreN": keys["n"], "singleCoreK": keys["k"]}
    made = {}
    for name in rng.sample([*whole, "baseM", "baseN", "baseK", "rest"], rng.randint(1, 2)):
        if name == "rest":
            small = ("iterateOrder", "dbL0A", "dbL0B", "dbL0C", "stepKa", "stepKb", "usedCoreNum")
            rest = rng.choice(small)
            made[rest] = rng.randint(0 if rest == "iterateOrder" else 1, 2)
            continue
        value = whole.get(name, 0) // rng.randint(1, 8) or 16 * rng.randint(1, 16)
        multiple = 16 * rng.randint(1, 6)
        made[name] = rng.choice(
            [value, f"{value}..", f"..{value}", {"multiple": multiple}, f"{value // 2}..{value}"]
        )
    return made


def drawn_layout(rng, keys, soc):
    heads, groups = rng.randint(1, 6), rng.randint(1, 3)
    layout = rng.choice(LAYOUTS_BY_ARCH.get(soc.arch, ("NORMAL",)))
    if layout == "NORMAL":
        return {"layout": layout, "template": "NORM", "batch": rng.randint(1, 40)}
    keys |= {axis: min(keys[axis], 512) for axis in "mnk"}
    made = {"layout": layout, "heads": heads, "groups": groups, "template": "NORM"}
    made |= {"batch": heads * groups * rng.randint(1, 4), "trans_a": False, "trans_b": True}
    return made | dict.fromkeys(("pos_a", "pos_b", "pos_c"), "GM")


def drawn(rng):
    """Return the JSON object of a request."""
    soc = chip(rng.choice(chip_names()))
    row = rng.choice(combinations(soc.arch))
    keys = {"chip": soc.name, "m": extent(rng), "n": extent(rng), "k": extent(rng)}
    keys |= {"a": row.a, "b": row.b, "template": rng.choice(["MDL", "MDL", "NORM"])}
    if soc.arch in IBSHARE_ARCHS and rng.random() < 0.2:
        keys["template"] = "IBSHARE"
    for name in ("trans_a", "trans_b", "intrinsics_check"):
        keys[name] = rng.random() < (0.4 if name == "intrinsics_check" else 0.5)
    if row.bias_inputs and rng.random() < 0.4:
        keys["bias"] = rng.choice(row.bias_inputs)
    if row.a in SCALED_TYPES and row.a not in SCALED_ONLY and rng.random() < 0.5:
        keys["scale_a"] = SCALE_TYPE
    if soc.arch in MATMUL_UNIT_FLAG_ARCHS and rng.random() < 0.3:
        keys["unit_flag"] = rng.random() < 0.5
    if soc.aiv_count and rng.random() < 0.3:
        keys["launch"] = "mix"
    for chance, name, draw in (
        (0.3, "cores", lambda: rng.randint(1, 50)),
        (0.15, "batch", lambda: rng.randint(1, 40)),
        (0.1, "split_k", lambda: True),
        (0.1, "kb", lambda: extent(rng)),
        (0.1, "hf32", lambda: row.a == "float32" and soc.hf32_speedup is not None),
        (0.1, "epilogue", lambda: {"relu": True}),
        (0.2, "fix", lambda: drawn_fix(rng, keys)),
    ):
        if rng.random() < chance:
            keys[name] = draw()
    for x in "abc":
        if rng.random() < 0.2:
            keys[f"format_{x}"] = "NZ"
            keys |= {axis: -(-keys[axis] // 64) * 64 for axis in "mnk"}
        if rng.random() < 0.08:
            keys[f"pos_{x}"] = rng.choice(["TSCM", "VECOUT", "VECIN", "VECCALC"])
    if rng.random() < 0.1:
        buffer, own = rng.choice([("l1", soc.l1_bytes), ("l0c", soc.l0c_bytes)])
        keys["budget"] = {buffer: own // rng.choice([1, 2, 3, 5, 16, 200])}
    if rng.random() < 0.08:
        keys |= drawn_layout(rng, keys, soc)
    return keys


def fits(plan):
    """Whether a plan's blocks fit the buffers, without any padding: the least that they take."""
    t, p, soc = plan.tiling, plan.problem, plan.request.chip
    a, b = element_type(p.a).bits, element_type(p.b).bits
    c_bytes = 2 if soc.arch in HALF_SUM_ARCHS else 4
    return (
        t.dbL0A * t.baseM * t.baseK * a <= 8 * soc.l0a_bytes
        and t.dbL0B * t.baseN * t.baseK * b <= 8 * soc.l0b_bytes
        and t.dbL0C * t.baseM * t.baseN * c_bytes <= soc.l0c_bytes
        and -(-p.m // t.singleCoreM) * -(-p.n // t.singleCoreN) <= t.usedCoreNum
        and t.usedCoreNum <= (soc.aiv_count if p.launch == "mix" else soc.aic_count)
        and t.baseM % 16 == t.baseN % 16 == t.baseK % min(16, 256 // max(a, b)) == 0
        and t.depthA1 % (t.stepM * t.stepKa) == t.depthB1 % (t.stepN * t.stepKb) == 0
    )


def judged(keys):
    """Plan a request; return what kind of answer it got, after looking at it."""
    before = time.process_time()
    try:
        plan = cubecore.plan(keys, alternatives=1)
    except (NoLegalTilingError, RequestError) as error:
        kind, sentence = refusal(error), str(error)
    else:
        kind, sentence = "planned", ""
    seconds = time.process_time() - before
    if kind != "planned":
        assert sentence.startswith(NO_TILING) or " must " in sentence, sentence
        return kind, seconds
    for tiling in (plan.tiling, *(ranked.tiling for ranked in plan.alternatives)):
        for edition in ("000", "001"):
            found = cubecore.check(tiling, plan.problem, edition=edition)
            excused = only_in_001(plan.problem) if edition == "001" else set()
            broken = [x.message for x in found.findings if x.rule not in excused]
            assert not broken, (edition, broken)
    assert fits(plan)
    return kind, seconds


def only_in_001(problem):
    """Return the rules of edition 001 that plans need not keep: it knows sums of 4 bytes alone."""
    halves = chip(problem.chip).arch in HALF_SUM_ARCHS
    return ONLY_IN_001 | ({"L0C-CAPACITY"} if halves else set())


def refusal(error):
    if isinstance(error, ConflictError):
        return "conflict" if error.conflict.minimal else "conflict, not proven minimal"
    return "refused" if isinstance(error, RequestError) else "no tiling, no proof"


def sweep(count, first, every=1):
    """Plan one of `every` among `count` random requests; return how many answers of each kind."""
    seed = int(os.environ.get("CUBECORE_SEED") or first)
    print(f"seed {seed}: repeat a request with CUBECORE_SEED=<its seed>")
    kinds, failures, slow = Counter(), [], []
    for number in range(seed, seed + count, every):
        keys = drawn(random.Random(number))
        try:
            kind, seconds = judged(keys)
        except Exception as error:  # noqa: BLE001 - all failures of a sweep, not the first
            failures.append(f"CUBECORE_SEED={number}: {keys}\n{type(error).__name__}: {error}")
            continue
        kinds[kind] += 1
        if seconds > MOST_SECONDS:
            slow.append(f"CUBECORE_SEED={number}: {seconds:.2f} s, {kind}: {keys}")
    print(dict(kinds), f"{len(slow)} over {MOST_SECONDS} s of CPU", *slow[:20], sep="\n")
    assert not failures, "\n\n".join([f"{len(failures)} of {count} failed", *failures[:20]])
    return kinds


@pytest.mark.parametrize("every", [PART, pytest.param(1, marks=pytest.mark.sweep)])
def test_random_requests_are_planned_or_refused(capsys, every):
    with capsys.disabled():
        kinds = sweep(FEW, 0, every)
    assert kinds["planned"] > FEW // every // 3


@pytest.mark.sweep
def test_many_random_requests_are_planned_or_refused(capsys):
    with capsys.disabled():
        kinds = sweep(MANY, time.time_ns() % 2**40)
    assert kinds["planned"] > MANY // 3

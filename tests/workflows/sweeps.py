"""What the tests of sweeps need: small problems, their file, and what a sweep must answer."""

import json
import random
from functools import cache

import cubecore
from cubecore.workflows.sweep.answers import key_of, model_version
from cubecore.workflows.sweep.plan_many import make_options

OPTIONS = make_options(None, 0)


def problems(count, seed=0):
    """Return small problems, no two alike."""
    rng = random.Random(seed)
    made = {}
    while len(made) < count:
        shape = {name: rng.randint(1, 60) for name in "mnk"}
        made[tuple(shape.values())] = shape | {"a": rng.choice(["float16", "int8"]), "cores": 2}
    return list(made.values())


def write_queries(path, asked):
    path.write_text("".join(json.dumps(problem) + "\n" for problem in asked))
    return path


def expected(asked):
    """Return the answers that plan gives to each problem alone, without the reasons."""
    return [json.loads(_planned(json.dumps(problem))) for problem in asked]


@cache
def _planned(problem):
    return json.dumps(cubecore.plan(json.loads(problem), alternatives=0).to_json(reasons=False))


def keys_of(asked):
    """Return the keys under which a store keeps the answers."""
    return {key_of(cubecore.Problem.from_json(problem).to_json(), OPTIONS) for problem in asked}


def stored(path):
    """Return (model, key, answer) of everything in a store."""
    with cubecore.Store.open(str(path)) as store:
        return [(made.model, made.key, made) for made in store.plans()]


def assert_whole(path, asked):
    """A store holds an answer to every question, once, by this model."""
    rows = stored(path)
    models = {model for model, _, _ in rows}
    assert models == {model_version()}, (models, model_version(), model_version.__wrapped__())
    keys = [key for _, key, _ in rows]
    assert sorted(keys) == sorted(keys_of(asked))

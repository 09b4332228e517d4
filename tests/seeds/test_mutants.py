"""Mutants of the ledger: each kind changes what it says, and a stale one is refused."""

import os

import pytest

from seeds import ledger
from seeds.mutants import MutantError, apply, changed, evaluated, name_of

ROWS = [(e.id, m) for book in ledger.load_all() for e in book.entries for m in e.mutants]

MADE = {
    "text of a function": (
        {"in": "cubecore.units:align_up", "old": "-(-value", "new": "1 - (-value"},
        "cubecore.units.align_up(9, 4)",
    ),
    "text of a property": (
        {"in": "cubecore.dtypes:ElementType.c0", "old": "return", "new": "return 3 *"},
        "cubecore.dtypes.element_type('float16').c0",
    ),
    "default of an argument": (
        {
            "in": "cubecore.tiling.rules.model:RuleCase.__init__",
            "argument": "edition",
            "value": "'older'",
        },
        "cubecore.tiling.rules.model.RuleCase.__init__.__defaults__",
    ),
    "constant": (
        {"object": "cubecore.units.FRACTAL_ROWS", "value": "old + 1"},
        "cubecore.tiling.rules.buffers.FRACTAL_ROWS",
    ),
    "cell of a read-only table": (
        {"object": "cubecore.tiling.rules.advice.LEFT_IN", "cell": "'2002'", "value": "()"},
        "cubecore.tiling.rules.advice.LEFT_IN['2002']",
    ),
    "field of a frozen record": (
        {"object": "cubecore.chips.chip('Ascend910B3')", "field": "l0a_bytes", "value": "old * 2"},
        "cubecore.chips.chip('Ascend910B3').l0a_bytes",
    ),
}
REFUSED = {
    "kind": ({"in": "cubecore.units:ceil_div"}, "cubecore.units:ceil_div = ?: keys must be"),
    "text": (
        {"in": "cubecore.units:ceil_div", "old": "@", "new": "%"},
        "cubecore.units:ceil_div: the text must occur once, got 0 times: @",
    ),
    "function": (
        {"in": "cubecore.units:nothing", "old": "a", "new": "b"},
        "cubecore.units:nothing: there is no such function",
    ),
    "object": (
        {"object": "cubecore.units.NOTHING", "value": "1"},
        "cubecore.units.NOTHING: AttributeError: module 'cubecore.units' has no attribute "
        "'NOTHING'",
    ),
    "same": (
        {"object": "cubecore.units.FRACTAL_ROWS", "value": "old"},
        "cubecore.units.FRACTAL_ROWS = old: the value must differ from the old one",
    ),
}


def in_child(mutant, expression):
    """Return an expression's value before and after a mutant is made in a child process."""
    out, into = os.pipe()
    before = repr(evaluated(expression))
    child = os.fork()
    if not child:
        try:
            apply(mutant)
            os.write(into, repr(evaluated(expression)).encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out, encoding="utf-8") as pipe:
        return before, pipe.read()


@pytest.mark.parametrize("kind", MADE)
def test_a_mutant_changes_what_it_says(kind):
    mutant, expression = MADE[kind]
    before, after = in_child(mutant, expression)
    assert after
    assert before != after


@pytest.mark.parametrize("kind", REFUSED)
def test_a_stale_mutant_is_refused(kind):
    mutant, line = REFUSED[kind]
    with pytest.raises(MutantError) as refused:
        changed(mutant)
    assert str(refused.value).startswith(line)


def test_every_mutant_of_the_ledger_can_be_made():
    stale = []
    for row, mutant in ROWS:
        try:
            changed(mutant)
        except MutantError as error:
            stale.append(f"{row}: {name_of(mutant)}: {error}")
    assert stale == []

"""Every printed word can be explained."""

import re
from inspect import getsource
from pathlib import Path

import pytest

import cubecore
from cubecore.advice import reasons
from cubecore.advice.kernel_rules.advise import rules as kernel_rules
from cubecore.chips import chip_names, expand_family
from cubecore.kernels.operators.named import operator_names
from cubecore.machine.sanitizer.findings import KINDS
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules import advice
from cubecore.timing.pipes.queues import NAMES
from cubecore.workflows.glossary import glossary
from workflows.command import cli

ROOT = Path(__file__).parents[2]
PRINTED = (
    *("GM", "L1", "L0A", "L0B", "L0C", "UB", "BiasTable", "L2", *NAMES, "NZ", "ND", "fractal"),
    *("TCubeTiling", "MAD", "critical path", "stall", "what-if chip", "Limited by"),
    *("pipe busy", "link", "interval", "gap", "predicted", "issued", "verified", "tolerance", "tp"),
    *("roofline", "lane", "TFLOPS", "advice", "finding", "fused", "decode", "HBM", "FIT", "store"),
    *("MDL", "NORM", "IBSHARE", "CONSTANT", "BASIC", "blas", "lockstep", "reference", "effective"),
)
CHIPS = [name for name in chip_names() if len(expand_family(name)) == 1]


@pytest.mark.parametrize("word", PRINTED)
@pytest.mark.parametrize("case", [str, str.lower, str.upper])
def test_a_word_is_explained_in_any_case(word, case):
    assert cubecore.explain(case(word)).text.count("\n") >= 3


def test_each_piece_of_advice_has_a_meaning():
    """Ids are texts of capitals and hyphens in the module that yields them."""
    yielded = set(re.findall(r'(?:yield \(?\s*|append\(\()"([A-Z0-9-]+)"', getsource(advice)))
    assert yielded >= {"POSITION", "IDLE-CORES", "POSITION-TIME", "CORES-CAPPED"}
    assert yielded | set(advice.ROWS) == set(advice.MEANINGS)
    for name in advice.MEANINGS:
        assert cubecore.explain(name.lower()).kind == "advice"


def test_each_cause_of_a_time_is_a_term():
    causes = set(re.findall(r'Reason\(\s*"([a-z ]+)"', getsource(reasons)))
    causes |= set(re.findall(r'cause = "([a-z ]+)"', getsource(reasons)))
    assert len(causes) > 3
    assert {cubecore.explain(cause).kind for cause in causes} == {"term"}


@pytest.mark.parametrize("name", [*FIELDS, *KINDS, *CHIPS])
def test_fields_findings_and_chips_in_any_case(name):
    assert name in {cubecore.explain(name.upper()).name, cubecore.explain(name.lower()).name}


@pytest.mark.parametrize("name", operator_names())
def test_each_operator_is_explained(name):
    told = cubecore.explain(name)
    assert told.kind in {"operator", "instruction", "term"}
    if told.kind == "operator":
        assert f"cubecore time --op {name} times it" in told.text


def test_an_operator_by_rows_names_its_shape():
    assert cubecore.explain("rms_norm").text.splitlines()[-1] == (
        "  shape: rows x columns; cubecore time --op rms_norm times it"
    )


def test_a_word_is_in_one_term():
    names = [name.lower() for term in glossary() for name in term.names]
    assert len(names) == len(set(names))


def test_the_command_prints_it():
    answer = cli("explain", "mte2")
    assert answer.out == (
        "MTE1, MTE2, MTE3\n\n  memory transfer engines: L1 to L0, GM to L1 or UB, UB to GM\n"
    )


@pytest.mark.parametrize("name", kernel_rules())
def test_each_rule_of_advice_on_kernels_is_explained(name):
    told = cubecore.explain(name.upper())
    assert (told.name, told.kind) == (name, "kernel advice")
    assert told.text.startswith(f"{name}: advice on a kernel\n\n  counts ")
    assert f"## {name}\n" in (ROOT / "docs" / "advice.md").read_text("utf-8")
    assert told.page == f"advice.html#{name}"

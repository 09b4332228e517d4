"""Every printed word can be explained."""

import re
from inspect import getsource
from pathlib import Path

import pytest

import cubecore
from cubecore.advice import reasons
from cubecore.advice.kernel_rules.advise import rules as kernel_rules
from cubecore.advice.timed_changes import meanings_of_changes
from cubecore.chips import chip_names, expand_family
from cubecore.errors import RequestError
from cubecore.frontends.cpp.toolchain.api_declarations import api_declarations
from cubecore.kernels.operators.named import operator_names
from cubecore.machine.finding_kinds import KINDS
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules import advice
from cubecore.timing.pipes import flags
from cubecore.timing.pipes.queues import CROSS_CORE, DEVICE_MEMORY, ISSUE, NAMES, UNIT_FLAG
from cubecore.workflows.manual import thread_api, tik_api
from cubecore.workflows.manual.glossary import glossary
from workflows.command import cli

ROOT = Path(__file__).parents[3]
PRINTED = (
    *("GM", "L1", "L0A", "L0B", "L0C", "UB", "BiasTable", "L2", *NAMES, "NZ", "ND", "fractal"),
    *("TCubeTiling", "MAD", "critical path", "stall", "what-if chip", "Limited by"),
    *("pipe busy", "link", "interval", "gap", "predicted", "issued", "verified", "tolerance", "tp"),
    *("roofline", "lane", "TFLOPS", "advice", "finding", "fused", "decode", "HBM", "FIT", "store"),
    *("SIMT", "thread", "thread block", "__simt_vf__", "VF", "vector function", "__simd_vf__"),
    *("asc_vf_call", "vector register", "mask register", "hardware loop", "software loop", "VL"),
    *("data cache", "bank conflict", "latency", "held out", "note", "uncertain", "TPOT", "TTFT"),
    *("weights", "KV cache", "host", "blocks"),
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


# --- names of the class API, the Matmul object and TIK, from their declarations


@pytest.mark.parametrize("name", sorted(api_declarations()))
@pytest.mark.thinned(40)
def test_each_name_of_the_class_api_is_explained(name):
    told = cubecore.explain(name)
    assert told.text.count("\n") >= 3
    if told.kind == "class API":
        assert told.text.startswith(f"{told.name}: a ")
        assert told.text.splitlines()[-1].startswith("Headers: cubecore/")


@pytest.mark.parametrize("name", sorted(thread_api.names()))
@pytest.mark.thinned(10)
def test_each_name_that_threads_have_is_explained(name):
    told = cubecore.explain(name)
    assert told.text.count("\n") >= 4
    if told.kind == thread_api.KIND:
        assert told.text.startswith(f"{name}: of threads (SIMT) of Ascend 950\n\n")
        assert told.text.splitlines()[-1].startswith("Headers: cubecore")


def test_names_that_threads_have_are_those_of_their_headers():
    names = {*thread_api.names()}
    assert names >= {"asc_syncthreads", "asc_shfl", "asc_ldcg", "asc_atomic_add", "threadIdx"}
    assert names >= {"warpSize", "__syncthreads", "laneid", "acosf"}
    assert names.isdisjoint({"bits_of", "reduced", "Given"})
    assert cubecore.explain("acosf").text == (
        "acosf: of threads (SIMT) of Ascend 950\n\n"
        "  Mathematics of threads.\n\n"
        "  float acosf(float x)\n\n"
        "Headers: cubecore_thread_math.h\n"
    )


@pytest.mark.parametrize("name", sorted(tik_api.names()))
@pytest.mark.thinned(10)
def test_each_name_of_tik_is_explained(name):
    assert cubecore.explain(name).text.count("\n") >= 2


def test_a_name_of_several_instructions_lists_them():
    text = cubecore.explain("DataCopy").text
    assert {*re.findall(r"^  (copy_\w+)  ", text, re.MULTILINE)} >= {
        *("copy_gm_to_cbuf", "copy_gm_to_ubuf", "copy_ubuf_to_gm"),
        *("copy_cbuf_to_gm", "copy_cbuf_to_bt"),
    }
    assert "  template <typename T> void DataCopy(const GlobalTensor<T>& dst" in text
    assert cubecore.explain("datacopy").text == text
    assert "  copy_ubuf_to_gm    MTE3  Copy runs" in cubecore.explain("data_move").text


def test_members_of_classes_say_whose_they_are():
    tail = cubecore.explain("SetTail").text
    assert tail.startswith("SetTail: a member of Matmul, AscendC class API\n\n  SetTail sets")
    assert "void SetTail(int tailM = -1, int tailN = -1, int tailK = -1)\n" in tail
    queue = cubecore.explain("TQue").text
    members = " ".join(queue.partition("Members\n")[2].partition("\n\n")[0].split())
    assert {"AllocTensor", "EnQue", "DeQue", "FreeTensor"} <= {*members.split(", ")}
    assert "Slot" not in members
    assert cubecore.explain("EnQue").text.startswith("EnQue: a member of TBuf, TQueBind, TQue, ")
    assert cubecore.explain("VECIN").text.startswith("VECIN: a value of TPosition, ")
    with pytest.raises(RequestError):
        cubecore.explain("RequireEnabled")  # protected
    with pytest.raises(RequestError):
        cubecore.explain("MakeIdle")  # of the headers


# --- printed words


def reasons_of_stalls():
    """Return the reasons of waits as the timing spells them, with a pipe and a number in them."""
    texts = re.findall(r'f"([^"]+)"', getsource(flags))
    texts = [text for text in texts if re.match(r"queue|flag|mutex|\{CROSS_CORE", text)]
    filled = [text.replace("{CROSS_CORE}", CROSS_CORE) for text in texts]
    filled = [re.sub(r"\{(?:name|NAMES\[\w+\])\}", "MTE1", text) for text in filled]
    return [re.sub(r"\{[\w.]+\}", "3", text) for text in filled]


def test_each_reason_of_a_stall_is_a_term():
    reasons = [*reasons_of_stalls(), ISSUE, UNIT_FLAG, CROSS_CORE, DEVICE_MEMORY]
    expected = {"queue of MTE1 full", "flag MTE1 -> MTE1 3", "mutex 3", "cross-core 3"}
    assert {*reasons} >= {*expected, "scalar issue"}
    assert {cubecore.explain(reason).kind for reason in reasons} == {"term"}


@pytest.mark.parametrize("kind", meanings_of_changes())
def test_each_kind_of_change_is_explained(kind):
    assert cubecore.explain(kind).text.count("\n") >= 3


def labels(text):
    """Return the headings of a text, and the words that its lines begin with."""
    found = set()
    for line in text.splitlines():
        if line[:1].isalpha() and not re.search(r"\d", line) and len(line.split()) < 6:
            found.add(line.split(",")[0].partition(":")[0])
        if match := re.match(r"([A-Z][a-z]+): the first", line):
            found.add(match[1])
        if match := re.match(r"([A-Z][a-z]+): ", line):
            found.add(match[1])
        if match := re.match(r"  ([A-Za-z][A-Za-z' ]*?)(?::?  +)", line):
            found.add(match[1])
    return found


def test_each_label_of_an_answer_is_explained():
    problem = {"m": 512, "n": 512, "k": 512}
    plan = cubecore.plan(**problem)
    timed = cubecore.time(**problem, advise=True)
    words = labels(plan.text) | labels(timed.text) | labels(cubecore.run(**problem).text)
    assert words >= {"Alternatives", "Longest stalls", "Pipe busy", "Links", "Not tried", "policy"}
    unknown = []
    for word in sorted(words):
        try:
            cubecore.explain(word)
        except RequestError:
            unknown.append(word)
    assert unknown == []


def test_each_label_of_a_kernel_of_registers_is_explained():
    script = ROOT / "examples" / "kernels" / "reg_softmax.py"
    words = labels(cli("time", script, "--advise").out)
    assert words >= {"Hottest lines", "Links", "No gain from"}
    assert [cubecore.explain(word) for word in sorted(words)]


@pytest.mark.parametrize("word", ["verified", "FAILED", "finished", "not compared"])
def test_each_outcome_is_a_term(word):
    assert cubecore.explain(word).kind == "term"


def test_the_glossary_has_the_reasons_as_they_are_printed():
    """The site's search finds words of its pages: "queue of MTE1 full" stands in one."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| queue full, ")]
    assert len(rows) == 1
    assert all(f"queue of {name} full" in rows[0] for name in NAMES)

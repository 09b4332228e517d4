"""Advice on kernels: slow ones beside a better form, each slow for one reason that must be named.

The line that is to blame is marked in the kernel's source, and what the advice says that it saves
is held against the time of the better form.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.workflows.scripts.script import TimedLaunch, time_kernel, time_script
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler
from frontends.cpp.example_cases import CASES
from workflows.command import DONE, cli

PAIRS = Path(__file__).parent / "pairs"
MATRIX = ("matmul", "split_k", "int8_matmul", "matmul_leaky_relu", "flash_attention")
"""Examples that run on AICs."""
NEAR = 0.25
"""The share of the better form's saving by which an advice may be off."""


@dataclass(frozen=True)
class CppPair:
    """A kernel of a file, launched on x, and y or w, of so many elements a block.

    `better` are the blocks of the better form; where they are the same, it is a macro's.
    """

    blocks: int
    better: int
    share: int
    element: str = "float"
    inputs: str = "x"
    made: str = ""
    """The element and the size of z, where they are not x's; an input z is added to."""
    rule: str = ""
    """The rule that the cause breaks, where it has another name."""

    def timed(
        self, file: Path, folder: Path, *, better: bool = False, advise: bool = True
    ) -> TimedLaunch:
        """Time a form."""
        blocks = self.better if better else self.blocks
        size = self.blocks * self.share
        kinds = {"float": np.float32, "half": np.float16}
        for name in self.inputs:
            values = (np.arange(size) % 7 / 8 + 1).astype(kinds[self.element])
            np.save(folder / f"{name}.npy", values)
        given = [f"{name}={folder / name}.npy" for name in self.inputs]
        made = f"z={self.made or f'{self.element}:{size}'}:{folder / 'z.npy'}"
        asked = CppLaunchOptions(
            blocks=blocks,
            arguments=(*given, f"share={size // blocks}"),
            outputs=() if "z" in self.inputs else (made,),
            defines=("BETTER=1",) if better and self.better == self.blocks else (),
        )
        return time_script(str(file), asked=asked, advise=advise).longest


CPP = {
    "small_copies": CppPair(32, 32, 32768, "half", "xy"),
    "few_blocks": CppPair(8, 40, 5 * 32768, "half", "xy"),
    "uneven_blocks": CppPair(64, 40, 5 * 8192),
    "one_buffer": CppPair(40, 40, 8 * 4096),
    "barrier": CppPair(40, 40, 8 * 4096),
    "short_vectors": CppPair(40, 40, 8 * 4096),
    "loaded_again": CppPair(40, 40, 16 * 2048, inputs="xw"),
    "masked_lanes": CppPair(40, 40, 16 * 2048),
    "scalar_wait": CppPair(40, 40, 8 * 8192),
    "unaligned_rows": CppPair(40, 40, 8 * 64 * 128, made=f"float:{40 * 8 * 64 * 64}"),
    "small_products": CppPair(20, 20, 128 * 256, "half", made="float:327680"),
    "scalar_work": CppPair(40, 40, 8 * 1024),
    "rows_one_by_one": CppPair(40, 40, 8 * 3200),
    "strip_again": CppPair(40, 40, 8 * 8192, inputs="xw", rule="loaded_again"),
    "barrier_of_vector": CppPair(40, 40, 6 * 8192, rule="barrier"),
    "small_chunks": CppPair(20, 20, 128 * 2048, "half", made="float:327680", rule="small_copies"),
    "small_stores": CppPair(20, 20, 128 * 128, "half", made="float:327680", rule="small_copies"),
}
PYTHON = (
    "small_copies",
    "few_blocks",
    "one_buffer",
    "barrier",
    "short_vectors",
    "loaded_again",
)
TIK = ("small_copies", "few_blocks", "masked_lanes")
OPERATORS = {
    "small_copies": {"tile": 128, "part": 128},
    "few_blocks": {"blocks": 5},
    "short_vectors": {"part": 64},
}
"""Attributes by which the operator tiles badly."""
ANYWHERE = ("few_blocks", "uneven_blocks")
"""Causes that no line has: the advice is at the busiest one."""


def assert_named(cause: str, slow: TimedLaunch, better: TimedLaunch, source: Path, mark: str):
    """The first or second advice is the cause, at a marked line, with the better form's saving."""
    assert not slow.run.findings
    assert not better.run.findings
    advice = [each for each in slow.advice[:2] if each.rule == cause.replace("_", "-")]
    assert advice, [each.to_json() for each in slow.advice]
    lines = source.read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.rstrip().endswith(mark)}
    if cause not in ANYWHERE:
        assert advice[0].location.line in marked
    assert Path(advice[0].location.file).name == source.name
    saved = slow.timeline.us - better.timeline.us
    assert advice[0].saves_us == pytest.approx(saved, rel=NEAR)


@needs_compiler
@pytest.mark.thinned(9)
@pytest.mark.parametrize("cause", CPP)
def test_cpp_kernels_hear_why_they_are_slow(cause, tmp_path):
    file = PAIRS / f"{cause}.cpp"
    slow = CPP[cause].timed(file, tmp_path)
    better = CPP[cause].timed(file, tmp_path, better=True)
    assert_named(CPP[cause].rule or cause, slow, better, file, "// slow")
    assert all(each.saves_share < 0.05 for each in better.advice), better.advice


@needs_compiler
def test_mixed_kernels_hear_which_side_waits():
    file, timed = PAIRS / "one_slot.cpp", []
    x = ((np.arange(128 * 512) % 7) / 8).astype(np.float16)
    for macros in ({}, {"BETTER": 1}):
        kernel = cubecore.load(file, trace=True, defines=macros).hand_over
        places, z = (np.zeros(size * 128 * 128, np.float32) for size in (2, 1))
        timed.append(time_kernel(kernel[1](x, places, z, 0), advise=not macros))
    assert_named("one_slot", *timed, file, "// slow")


@needs_compiler
def test_mixed_kernels_hear_that_their_sides_take_turns():
    file, timed, turns = PAIRS / "ping_pong.cpp", [], 8
    for macros in ({}, {"BETTER": 1}):
        kernel = cubecore.load(file, trace=True, defines=macros).take_turns
        x = ((np.arange((1 + turns) * 128 * 256) % 7) / 8).astype(np.float16)
        w, z = (np.zeros(turns * 128 * 128, np.float32) for _ in range(2))
        timed.append(time_kernel(kernel[1](x, w, z), advise=True))
    assert_named("ping_pong", *timed, file, "// slow")
    assert "ping-pong" not in {each.rule for each in timed[1].advice}
    advice = next(each for each in timed[0].advice if each.rule == "ping-pong")
    of_sides = advice.text.partition("; in all wait ")[2]
    assert of_sides == "AICs 55% of the time for AIVs and AIVs 79% of the time for AICs"


VECTOR_FUNCTIONS = {
    "vf_chain": ("column_sums", NEAR),
    "vf_short_loops": ("add_rows", None),
    "vf_window": ("squashed", None),
    "vf_banks": ("add_ones", NEAR),
    "vf_busy": ("add_rows", 2 * NEAR),
}
"""Kernels of Ascend 950 by their causes, and how near the saving is; None: it is a bound."""


@needs_compiler
@pytest.mark.thinned(5)
@pytest.mark.parametrize("cause", VECTOR_FUNCTIONS)
def test_vector_functions_hear_what_bounds_them(cause):
    file, timed = PAIRS / f"{cause}.cpp", []
    name, near = VECTOR_FUNCTIONS[cause]
    for macros in ({}, {"BETTER": 1}):
        chip = "Ascend950PR_9589"
        kernel = getattr(cubecore.load(file, trace=True, chip=chip, defines=macros), name)
        x, z = np.ones(1 << 15, np.float32), np.zeros(1 << 21, np.float32)
        timed.append(time_kernel(kernel[64](x, z), advise=True))
    slow, better = timed
    assert not slow.run.findings
    assert not better.run.findings
    rule = cause.replace("_", "-")
    advice = next(each for each in slow.advice[:2] if each.rule == rule)
    assert file.read_text().splitlines()[advice.location.line - 1].endswith("// slow")
    saved = slow.timeline.us - better.timeline.us
    assert saved > 0
    if near is None:
        assert advice.certainty == "bound"
        assert advice.saves_us >= saved
    else:
        assert advice.saves_us == pytest.approx(saved, rel=near)


@needs_compiler
def test_values_that_find_no_register_are_named_and_charged_nothing():
    file, rules = PAIRS / "vf_spills.cpp", []
    for macros in ({}, {"BETTER": 1}):
        kernel = cubecore.load(file, trace=True, chip="Ascend950PR_9589", defines=macros).subtracted
        x, z = np.ones(1 << 15, np.float32), np.zeros(1 << 21, np.float32)
        advice = time_kernel(kernel[64](x, z), advise=True).advice
        rules.append({each.rule: each for each in advice})
    spill = rules[0]["vf-spills"]
    assert file.read_text().splitlines()[spill.location.line - 1].endswith("// slow")
    assert spill.text == "40 values are needed at a time, of which 32 are in vector registers"
    assert (spill.certainty, spill.saves_cycles) == ("not modelled", 0)
    assert "vf-spills" not in rules[1]


UNMODELLED = {
    "same_addresses": CppPair(8, 8, 8192, inputs="xw"),
    "colliding_atomics": CppPair(8, 8, 8 * 2048, inputs="xz"),
    "scalar_reads": CppPair(2, 2, 2 * 2048),
}
"""Causes that the timing model charges nothing for: the slow form takes no longer."""


@needs_compiler
@pytest.mark.parametrize("cause", UNMODELLED)
def test_what_is_not_modelled_is_said_to_be(cause, tmp_path):
    file, pair, rule = PAIRS / f"{cause}.cpp", UNMODELLED[cause], cause.replace("_", "-")
    slow = pair.timed(file, tmp_path)
    better = pair.timed(file, tmp_path, better=True)
    assert not slow.run.findings
    assert not better.run.findings
    advice = next(each for each in slow.advice if each.rule == rule)
    assert file.read_text().splitlines()[advice.location.line - 1].endswith("// slow")
    assert (advice.certainty, advice.saves_cycles) == ("not modelled", 0)
    assert advice.lines[0].endswith(f"{rule} not modelled, may be slower than shown")
    assert slow.timeline.cycles < 1.02 * better.timeline.cycles
    assert rule not in {each.rule for each in better.advice}
    where = advice.location
    line = f"  {where.file}:{where.line}: {rule}: {advice.text}"
    unadvised = pair.timed(file, tmp_path, advise=False).text
    assert f"\nNot modelled, may be slower than shown\n{line}" in unadvised


TRUE = {
    ("matmul", "matmul"): {"unaligned-rows", "uneven-blocks", "loaded-again"},
    ("vector_add_capi", "add_joined"): {"barrier"},
}
"""Advice on examples that is true: rows of 1,332 halves, 24 tiles on 20 cores, and the two tiles of
a core that load the same rows of A; and barriers in place of the flags that `add_flagged` has."""


@needs_compiler
@pytest.mark.thinned(16)
@pytest.mark.parametrize("example", CASES)
def test_examples_hear_nothing_that_is_not_true(example):
    file, name = example
    blocks = 20 if file in MATRIX else 40
    run = getattr(cubecore.load(EXAMPLES / f"{file}.cpp", trace=True), name)[blocks](
        *CASES[example](blocks, 4).arguments
    )
    advice = time_kernel(run, advise=True).advice
    heard = {each.rule for each in advice if each.saves_share >= 0.08}
    assert heard == TRUE.get(example, set()), [each.to_json() for each in advice]


@needs_compiler
def test_followed_advice_on_an_example_is_what_it_saves():
    """Its rows padded to 256 B, and then 20 tiles on 20 cores in place of 24."""
    kernel = cubecore.load(EXAMPLES / "matmul.cpp", trace=True).matmul
    timed = []
    for m, n, k in ((1500, 201, 1332), (1500, 256, 1408), (1280, 256, 1408)):
        a, b, bias = (np.ones(shape, np.float16) for shape in ((m, k), (k, n), (n,)))
        arguments = (a, b, bias.astype(np.float32), np.zeros((m, n), np.float32), m, n, k)
        timed.append(time_kernel(kernel[20](*arguments), advise=True))
    first = next(each for each in timed[0].advice if each.rule == "unaligned-rows")
    second = next(each for each in timed[1].advice if each.rule == "uneven-blocks")
    us = [each.timeline.us for each in timed]
    assert first.saves_us == pytest.approx(us[0] - us[1], rel=NEAR)
    assert second.saves_us == pytest.approx(us[1] - us[2], rel=NEAR)


@pytest.mark.parametrize("cause", PYTHON)
def test_python_kernels_hear_why_they_are_slow(cause):
    file = PAIRS / "kernels.py"
    slow = time_script(str(file), arguments=(cause,), advise=True).longest
    better = time_script(str(file), arguments=(cause, "better")).longest
    assert_named(cause, slow, better, file, f"# slow: {cause}")


def test_a_product_hears_of_the_chunks_that_are_best():
    """Twice as large; four times as large would not be as fast, though L1 has room."""
    file = PAIRS / "cube_chunks.py"
    slow = time_script(str(file), advise=True).longest
    better = time_script(str(file), arguments=("better",)).longest
    assert_named("small_copies", slow, better, file, "# slow")
    assert slow.advice[0].tried == "tiles 2 times as large"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("cause", TIK)
def test_tik_programs_hear_why_they_are_slow(cause):
    file = PAIRS / "tik_kernels.py"
    slow = time_script(str(file), arguments=(cause,), advise=True).longest
    better = time_script(str(file), arguments=(cause, "better")).longest
    assert_named(cause, slow, better, file, f"# slow: {cause}")


@pytest.fixture(scope="module")
def operators():
    return cubecore.load_op(PAIRS / "weigh", trace=True)


@needs_compiler
@pytest.mark.parametrize("cause", OPERATORS)
def test_operators_hear_why_they_are_slow(cause, operators):
    x = (np.arange(40 * 32768) % 7 / 8 + 1).astype(np.float32)
    slow = time_kernel(operators.weigh.run(x, **OPERATORS[cause]).launch, advise=True)
    better = time_kernel(operators.weigh.run(x).launch)
    assert_named(cause, slow, better, PAIRS / "weigh/op_kernel/weigh.cpp", f"// slow: {cause}")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("cause", PYTHON)
def test_better_python_kernels_hear_no_more_of_it(cause):
    """A better form is no slower when its advice is followed: it has none on that cause."""
    file = PAIRS / "kernels.py"
    better = time_script(str(file), arguments=(cause, "better"), advise=True).longest
    of_cause = [each for each in better.advice if each.rule == cause.replace("_", "-")]
    assert all(each.saves_share < 0.1 for each in of_cause), [e.to_json() for e in of_cause]


def test_the_text_has_the_advice():
    answer = cli("time", PAIRS / "kernels.py", "--advise", "barrier")
    assert answer.code == DONE, answer.err
    lines = answer.out.splitlines()
    first = lines[lines.index("Advice, the most helpful first") + 1]
    assert first.split()[1:3] == ["barrier", "saves"]
    assert first.endswith("timed with flags and two buffers")


def test_json_has_the_advice():
    answer = cli("time", PAIRS / "kernels.py", "--advise", "--json", "barrier")
    assert answer.code == DONE, answer.err
    advice = answer.json["advice"][0]
    assert set(advice) >= {
        *("rule", "file", "line", "text", "saves_us", "saves_share", "certainty", "tried"),
    }
    assert (advice["rule"], advice["certainty"]) == ("barrier", "modelled")
    assert advice["saves_us"] == pytest.approx(advice["saves_share"] * answer.json["us"])

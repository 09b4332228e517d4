"""Copies between an AIC and its AIVs in C++: flash attention of 950, its twin, and its faults."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError, DeadlockError
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler
from frontends.cpp.example_cases import twin

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
NAME, PRODUCT = "flash_attention_950", "mx_matmul_950"
TEXT = (EXAMPLES / f"{NAME}.cpp").read_text(encoding="utf-8")
BLOCKS = 2


def launched(made, **options):
    q, k, v = twin(NAME)["small"]()
    o = np.zeros_like(q)
    run = made.using(checks="all", **options)[BLOCKS](q, k, v, o, len(k))
    return run.findings, o


def multiplied(made, **options):
    a, b = twin(PRODUCT)["small"]()
    c = np.zeros((len(a), len(b)), np.float32)
    run = made.using(checks="all", **options)[BLOCKS](a, b, c)
    return run.findings, c


@pytest.mark.parametrize("order", ["program", "late", "early", "random:3"])
@pytest.mark.parametrize(("name", "launch"), [(NAME, launched), (PRODUCT, multiplied)])
@pytest.mark.sweep
def test_an_example_leaves_what_its_twin_leaves(name, launch, order):
    python = twin(name)
    compiled = cubecore.load(EXAMPLES / f"{name}.cpp", chip=CHIP)[name]
    (found, got), (also, other) = (launch(made, order=order) for made in (compiled, python[name]))
    assert (found, also) == ((), ())
    assert got.tobytes() == other.tobytes()
    given = python["small"]()
    assert (np.abs(got - python["reference"](*given)) <= python["tolerance"](*given)).all()


FAULTS = {
    # flags between the parts
    "no wait for P of AIV0": ("CrossCoreWaitFlag<4, PIPE_MTE1>(CHANCES);", ";"),
    "no wait for P of AIV1": ("CrossCoreWaitFlag<4, PIPE_MTE1>(CHANCES + AIV1);", ";"),
    "no wait for S": ("CrossCoreWaitFlag<4, PIPE_V>(SCORES);", ";"),
    "no wait for O": ("AscendC::CrossCoreWaitFlag<4, PIPE_V>(VALUES);", ";"),
    "no signal of P": ("CrossCoreSetFlag<4, PIPE_MTE3>(CHANCES);", ";"),
    "no signal to AIV0": ("CrossCoreSetFlag<4, PIPE_FIX>(flag);", ";"),
    "no signal to AIV1": ("CrossCoreSetFlag<4, PIPE_FIX>(flag + AIV1);", ";"),
    "P is signalled by V": ("CrossCoreSetFlag<4, PIPE_MTE3>(CHANCES)",
                            "CrossCoreSetFlag<4, PIPE_V>(CHANCES)"),
    "S is signalled by M": ("CrossCoreSetFlag<4, PIPE_FIX>(flag);",
                            "CrossCoreSetFlag<4, PIPE_M>(flag);"),
    "S of AIV1 is signalled by M": ("CrossCoreSetFlag<4, PIPE_FIX>(flag + AIV1);",
                                    "CrossCoreSetFlag<4, PIPE_M>(flag + AIV1);"),
    "AIV1's flag is AIV0's": ("constexpr uint16_t AIV1 = 16;", "constexpr uint16_t AIV1 = 0;"),
    "AIV1's flag is another": ("constexpr uint16_t AIV1 = 16;", "constexpr uint16_t AIV1 = 17;"),
    "flags of another mode": ("CrossCoreSetFlag<4, PIPE_MTE3>(CHANCES)",
                              "CrossCoreSetFlag<2, PIPE_MTE3>(CHANCES)"),
    "P is signalled first": ("    DataCopy(ChancesOf(slot)",
                             "    CrossCoreSetFlag<4, PIPE_MTE3>(CHANCES);\n"
                             "    if (block >= 0) DataCopy(ChancesOf(slot)"),
    # slots of what is handed over
    "one slot of S": ("slot * SCORES_BYTES, SHARE * KEYS};", "0, SHARE * KEYS};"),
    "one slot of O": ("VALUES_UB + slot * VALUES_BYTES", "VALUES_UB"),
    "one slot of P in L1": ("slot * CHANCES_L1_BYTES, ROWS", "0, ROWS"),
    "one slot of P in UB": ("CHANCES_UB + slot * CHANCES_BYTES;", "CHANCES_UB;"),
    "O begins in S": ("VALUES_UB = SLOTS * SCORES_BYTES", "VALUES_UB = SCORES_BYTES"),
    "what is kept begins in O": ("KEPT_UB = CHANCES_UB + SLOTS * CHANCES_BYTES",
                                 "KEPT_UB = VALUES_UB + VALUES_BYTES"),
    "K begins in P": ("KEPT_L1 = SLOTS * CHANCES_L1_BYTES", "KEPT_L1 = CHANCES_L1_BYTES"),
    # copies
    "one target": ("params.dualDstCtl = 1;", "params.dualDstCtl = 0;"),
    "rows too near": ("params.dstStride = columns;", "params.dstStride = columns / 2;"),
    "rows beyond UB": ("params.dstStride = columns;", "params.dstStride = 4096;"),
    "an odd number of rows": ("params.mSize = ROWS;", "params.mSize = ROWS - 1;"),
    "half of the rows": ("params.mSize = ROWS;", "params.mSize = ROWS / 2;"),
    "both AIVs store the same rows": ("ChancesOf(slot)[part_ * SHARE * EDGE]", "ChancesOf(slot)"),
    "P without gaps in L1": ("SHARE, 0, ROWS - SHARE)", "SHARE, 0, 0)"),
    "P beyond L1": ("SHARE, 0, ROWS - SHARE)", "SHARE, 0, 4000)"),
    "not aligned": ("{AscendC::TPosition::VECIN, VALUES_UB + slot",
                    "{AscendC::TPosition::VECIN, 16 + VALUES_UB + slot"),
    # flags within a part
    "no flag of V to MTE3": ("    SetFlag<HardEvent::V_MTE3>(slot);\n"
                             "    WaitFlag<HardEvent::V_MTE3>(slot);\n", ""),
    "no flag of M to FIX": ("    SetFlag<HardEvent::M_FIX>(event);\n"
                            "    WaitFlag<HardEvent::M_FIX>(event);\n", ""),
    "no flag of MTE3 to V": ("    WaitFlag<HardEvent::MTE3_V>(slot);\n", ""),
}  # fmt: skip


def found_in(text):
    made = cubecore.inline(text, chip=CHIP, auto_sync=False)[NAME]
    try:
        return {finding.id for finding in launched(made)[0]}
    except DeadlockError:
        return {"deadlock"}


def test_there_are_30_faults():
    assert len(FAULTS) >= 30
    assert all(TEXT.count(old) == 1 for old, _ in FAULTS.values())


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.thinned(40)
def test_a_fault_is_found(name):
    assert found_in(TEXT.replace(*FAULTS[name]))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("CrossCoreSetFlag<4, PIPE_MTE3>", "CrossCoreSetFlag<3, PIPE_MTE3>",
         "inline.cpp:{line}: the mode of a flag between cores must be 0, 1 or 2, or on Ascend 950 "
         "4, got another"),
        ("Fixpipe<float, float, ROWS_OF_UB>(", "Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(",
         "inline.cpp:{line} (HandOver): Fixpipe.config must have isToUB for a dst in UB, "
         "got false"),
    ],
)  # fmt: skip
def test_what_is_refused_says_so(old, new, sentence):
    assert TEXT.count(old) == 1
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    with pytest.raises(CubecoreError) as caught:
        launched(cubecore.inline(TEXT.replace(old, new), chip=CHIP, auto_sync=False)[NAME])
    assert str(caught.value) == sentence.format(line=line)


ALONE = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> xg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  LocalTensor<float> to(TPosition::VECIN, 0, 4096);
  BODY
}
"""
MISTAKES = {
    "NdDmaParams<float, 2> p{{{1, 32}, {1, 4}, {8, 4}, {0, 0}, {0, 0}}, 0.0f};\n"
    "DataCopy<float, 2>(to, xg, p);": (
        "parameter",
        "copy_gm_to_ubuf_nd.dst_stride1 must be 8 or more, what the loops of smaller strides "
        "write, got 4",
        "inline.cpp:9",
    ),
    "Mutex::Lock<PIPE_MTE2>(3);\nMutex::Lock<PIPE_MTE2>(3);\nMutex::Unlock<PIPE_MTE2>(3);": (
        "mutex-unpaired",
        "mutex 3 needs lock and unlock by turns: it is locked again at inline.cpp:9 (k) while "
        "locked since inline.cpp:8 (k)",
        "inline.cpp:9",
    ),
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_is_one_sentence_at_its_line(body):
    kind, sentence, place = MISTAKES[body]
    run = cubecore.inline(ALONE.replace("BODY", body), chip=CHIP).k[1](np.zeros(4096, np.float32))
    (found,) = run.findings
    assert (found.id, found.message) == (kind, sentence)
    assert str(found.location).startswith(place)


@pytest.mark.sweep
def test_two_targets_are_for_two_aivs():
    made = cubecore.inline(TEXT.replace("__mix__(1, 2)", "__mix__(1, 1)"), chip=CHIP)[NAME]
    try:
        findings = launched(made)[0]
    except DeadlockError as error:
        findings = error.findings
    assert findings[0].message == (
        "copy_matrix_cc_to_ub must be in a mix launch with that AIV, got AIV1 of a launch with "
        "1 AIV"
    )


# A row of 64 floats is brought as 8 x 8 transposed, one is added, and it goes out again.
PIPELINE = """
extern "C" __global__ __aicore__ void {name}(GM_ADDR x, GM_ADDR y) {{
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> xg, yg;
  xg.SetGlobalBuffer((__gm__ float*)x, 64);
  yg.SetGlobalBuffer((__gm__ float*)y, 64);
  LocalTensor<float> in(TPosition::VECIN, 0, 64), out(TPosition::VECOUT, 256, 64);
  NdDmaParams<float, 2> p{{{{{{1, 8}}, {{8, 1}}, {{8, 8}}, {{0, 0}}, {{0, 0}}}}, 0.0f}};
  NdDmaDci();
  Mutex::Lock<PIPE_MTE2>(1);
  DataCopy<float, 2>(in, xg, p);
  Mutex::Unlock<PIPE_MTE2>(1);
  Mutex::Lock<PIPE_V>(1);
  Mutex::Lock<PIPE_V>(2);
  Adds(out, in, 1.0f, 64);
  Mutex::Unlock<PIPE_V>(2);
  Mutex::Unlock<PIPE_V>(1);
  Mutex::Lock<PIPE_MTE3>(2);
  DataCopy(yg, out, 64);
  Mutex::Unlock<PIPE_MTE3>(2);
}}
"""
LOOPS = "{{{{{{1, 8}}, {{8, 1}}, {{8, 8}}, {{0, 0}}, {{0, 0}}}}, 0.0f}}"
OF_PIPELINE = {
    "right": ("", ""),
    "V holds no mutex of MTE2": ("  Mutex::Lock<PIPE_V>(1);\n  Mutex::Lock<PIPE_V>(2);",
                                 "  Mutex::Lock<PIPE_V>(3);\n  Mutex::Lock<PIPE_V>(2);"),
    "MTE3 holds another mutex": ("Lock<PIPE_MTE3>(2);\n  DataCopy",
                                 "Lock<PIPE_MTE3>(4);\n  DataCopy"),
    "MTE3 holds none": ("  Mutex::Lock<PIPE_MTE3>(2);\n", ""),
    "MTE2 does not unlock": ("  Mutex::Unlock<PIPE_MTE2>(1);\n", ""),
    "MTE2 unlocks too early": ("DataCopy<float, 2>(in, xg, p);\n  Mutex::Unlock<PIPE_MTE2>(1);\n",
                               "Mutex::Unlock<PIPE_MTE2>(1);\n  DataCopy<float, 2>(in, xg, p);\n"),
    "V locks twice": ("  Mutex::Lock<PIPE_V>(2);\n",
                      "  Mutex::Lock<PIPE_V>(2);\n  Mutex::Lock<PIPE_V>(2);\n"),
    "V unlocks twice": ("  Mutex::Unlock<PIPE_V>(2);\n",
                        "  Mutex::Unlock<PIPE_V>(2);\n  Mutex::Unlock<PIPE_V>(2);\n"),
    "an id of the system": ("Lock<PIPE_MTE3>(2);\n  DataCopy", "Lock<PIPE_MTE3>(32);\n  DataCopy"),
    "destinations interleave": (LOOPS, LOOPS.replace("{{8, 1}}", "{{4, 1}}")),
    "rows beyond x": (LOOPS, LOOPS.replace("{{1, 8}}", "{{1, 16}}")),
    "columns beyond UB's array": (LOOPS, LOOPS.replace("{{8, 1}}", "{{16, 1}}")),
    "a column less": (LOOPS, LOOPS.replace("{{8, 8}}", "{{8, 7}}")),
    "padding beyond the array": (LOOPS, LOOPS.replace("{{0, 0}}, {{0, 0}}", "{{0, 0}}, {{0, 9}}")),
}  # fmt: skip


@pytest.mark.sweep
def test_faults_of_mutexes_and_nddma_are_found():
    """13 faults beside the right kernel, in one file."""
    texts = []
    for number, (old, new) in enumerate(OF_PIPELINE.values()):
        assert old in PIPELINE
        texts.append(PIPELINE.replace(old, new, 1).format(name=f"k{number}"))
    made = cubecore.inline(
        '#include "kernel_operator.h"\nusing namespace AscendC;\n' + "".join(texts), chip=CHIP,
        auto_sync=False,
    )  # fmt: skip
    silent, x = [], np.arange(64, dtype=np.float32)
    for number, name in enumerate(OF_PIPELINE):
        y = np.zeros(64, np.float32)
        try:
            found = made[f"k{number}"].using(checks="all")[1](x, y).findings
        except CubecoreError as error:
            found = (str(error),)
        silent += [] if found else [name]
        if name == "right":
            assert np.array_equal(y.reshape(8, 8), x.reshape(8, 8).T + 1)
    assert silent == ["right"]

"""Compilations for a boxed submission: kept by content, made where none of its code runs."""

import hashlib
import json

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.toolchain.cache import folder as folder_of_cache
from cubecore.workflows.judge.boxed import own_files
from cubecore.workflows.judge.compilation import _compiled, _error
from cubecore.workflows.judge.submissions.kinds import submission_of
from cubecore.workflows.judge.values import ArrayFolder, loaded
from frontends.cpp.cpp_kernels import needs_compiler
from sandbox.machine import missing
from workflows.judge.judged_kernels import ADD, PYTHON, TASK

POISON = """
#include <cstdlib>
__attribute__((constructor)) static void poison() {
  system("for f in CACHE/* CACHE/*/*; do echo poison > $f; done; touch CACHE/poison.so");
}
"""


def kept(own):
    """Return the digests of all that is kept of a submission whose files lie in a folder."""
    records = [f for f in folder_of_cache().glob("judged-*/*.json") if str(own) in f.read_text()]
    files = [f for record in records for f in record.parent.glob(f"{record.stem}.*")]
    return {f: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@needs_compiler
@pytest.mark.skipif(bool(missing("auto")), reason=missing("auto") or "there is a box")
def test_a_second_judgement_compiles_nothing_and_the_first_cannot_change_what_it_uses(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "task.py").write_text(TASK)
    text = POISON.replace("CACHE", str(folder_of_cache())) + ADD.replace(
        "#include", '#include "a.h"\n#include', 1
    )
    (own / "kernel.cpp").write_text(text)
    (own / "a.h").write_text("// one\n")

    def judged():
        return cubecore.judge(own / "kernel.cpp", tmp_path / "task.py", blocks=4)

    first = judged()
    made = kept(own)
    assert sorted(f.suffix for f in made) == [".json", ".so"]
    assert first.correct
    assert "compilation" in first.seconds
    again = judged()
    assert "compilation" not in again.seconds
    assert kept(own) == made
    assert [case.outcome for case in again.cases] == [case.outcome for case in first.cases]
    (own / "a.h").write_text("// another\n")
    assert "compilation" in judged().seconds


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'["kernel"]', b'["rm", "/"]', b'["host", 1, 2, 3]', b"[" * 99999]
)
def test_a_question_of_a_submission_s_own_making_has_no_effect(text, tmp_path) -> None:
    told = _compiled(text, tmp_path)
    assert str(_error(told)) == "the submission asks for no library"


def test_an_error_of_the_compiler_arrives_as_it_was(tmp_path) -> None:
    (tmp_path / "k.cpp").write_text('#include "nowhere.h"\n')
    asked = ["kernel", [str(tmp_path / "k.cpp"), '#include "nowhere.h"\n', [], [], 0, []], ["f"]]
    told = _compiled(
        json.dumps([*asked, ["__NPU_ARCH__=2201", "CUBECORE_PART=2"], False]).encode(), tmp_path
    )
    error = _error(json.loads(json.dumps(told)))
    assert isinstance(error, CubecoreError)
    assert error.header == "nowhere.h"
    assert "nowhere.h" in str(error)


def test_results_that_were_changed_behind_the_judge_are_not_read(tmp_path) -> None:
    record = ArrayFolder(tmp_path, sealed=True).stored(np.arange(4))
    assert loaded(tmp_path, record).tolist() == [0, 1, 2, 3]
    np.save(tmp_path / record["array"], np.arange(4) + 1)
    with pytest.raises(ValueError, match="npy"):
        loaded(tmp_path, record)


def test_a_box_shows_the_files_that_a_submission_names_and_no_other_answers(tmp_path) -> None:
    texts = {
        "kernel.py": f"import helper\n{PYTHON}",
        "helper.py": "from constants import WIDTH\n",
        "constants.py": "WIDTH = 256\n",
        "other.py": PYTHON,
        "add.cpp": '#include "tile.h"\n__global__ __aicore__ void add(GM_ADDR x) {}\n',
        "tile.h": '#include "types.hpp"\n',
        "types.hpp": "",
        "mul.cpp": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    shown = {
        name: [each.name for each in own_files(submission_of(tmp_path / name), tmp_path / name)]
        for name in ("kernel.py", "add.cpp")
    }
    assert shown == {
        "kernel.py": ["kernel.py", "helper.py", "constants.py"],
        "add.cpp": ["add.cpp", "tile.h", "types.hpp"],
    }

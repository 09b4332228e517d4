"""Workspaces of C++ kernels, and arrays that a launch must write whole."""

import json
from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import FUNCTION, HEAD, cli, kernel, needs_compiler

pytestmark = needs_compiler
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR workspace, uint32_t n"
BODY = """\
    {before}
    auto w = (__gm__ float*){pointer};
    GlobalTensor<float> xg, yg, wg;
    xg.SetGlobalBuffer((__gm__ float*)x, 64);
    yg.SetGlobalBuffer((__gm__ float*)y, 64);
    wg.SetGlobalBuffer(w, 64);
    LocalTensor<float> a(TPosition::VECCALC, 0, 64);
    DataCopy(a, xg, n);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(wg, a, 64);
    DataCopy(yg, a, n);
"""
"""Of 64 floats n are loaded: the rest of the workspace is copied from uninitialised memory."""


def copying(pointer: str = "workspace", before: str = "", **options: Any) -> Any:
    """Return the kernel, to which a pointer is its workspace."""
    return kernel(BODY.format(pointer=pointer, before=before), PARAMETERS, **options)


def launched(made: Any) -> list[tuple[str, str]]:
    """Return the ids and sentences of a launch of 56 floats' findings."""
    x, y, w = np.arange(64, dtype=np.float32), np.zeros(56, np.float32), np.zeros(64, np.float32)
    run = made[1](x, y, w, 56)
    np.testing.assert_array_equal(y, x[:56])
    return [(finding.id, finding.message) for finding in run.findings]


LEFT = "workspace must hold what was written, got 32 of 256 B copied from uninitialised memory,"
LEFT += " the first at byte 224"
WHOLE = "workspace must be written whole, got 32 of 256 B never written or written from"
WHOLE += " uninitialised memory, the first at byte 224"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_an_array_that_is_no_workspace_must_hold_what_was_written(engine: str) -> None:
    assert launched(copying(engine=engine)) == [("uninitialised", LEFT)]


@pytest.mark.thinned(8)
@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(
    ("pointer", "before"),
    [
        ("GetUserWorkspace(workspace)", ""),
        ("workspace", "SetSysWorkspace(workspace);"),
        ("workspace", "SetSysWorkspace(workspace + 128);"),
        ("GetSysWorkSpacePtr()", "SetSysWorkSpace(workspace);"),
    ],
)
def test_a_pointer_that_the_kernel_calls_a_workspace_is_scratch(
    engine: str, pointer: str, before: str
) -> None:
    assert launched(copying(pointer, before, engine=engine)) == []


@pytest.mark.sweep
def test_a_call_for_another_array_leaves_the_workspace_as_it_is() -> None:
    assert launched(copying(before="GetUserWorkspace(x);")) == [("uninitialised", LEFT)]
    assert launched(copying(before="GetUserWorkspace(nullptr);")) == [("uninitialised", LEFT)]


@pytest.mark.sweep
def test_a_workspace_is_one_launchs() -> None:
    made = kernel(
        BODY.format(pointer="workspace", before="if (n == 48) GetUserWorkspace(workspace);"),
        PARAMETERS,
    )
    x, y, w = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    assert made[1](x, y, w, 48).clean
    assert launched(made) == [("uninitialised", LEFT)]


def test_an_output_must_be_written_whole_though_the_kernel_calls_it_a_workspace() -> None:
    made = copying("GetUserWorkspace(workspace)").using(outputs="workspace")
    assert launched(made) == [("uninitialised", WHOLE)]


def test_words_of_a_kernel_mark_its_arrays() -> None:
    made = copying()
    assert launched(made.using(scratch="workspace")) == []
    assert launched(made.using(scratch=["workspace"], outputs=("y",))) == []
    assert launched(made.using(outputs=["workspace", "y"])) == [("uninitialised", WHOLE)]
    assert launched(made.using(scratch="workspace").using(scratch=())) == [("uninitialised", LEFT)]
    assert launched(made) == [("uninitialised", LEFT)]


def test_words_of_a_file_mark_the_arrays_of_its_kernels() -> None:
    assert launched(copying(scratch="workspace", outputs="y")) == []
    assert launched(copying(outputs="workspace")) == [("uninitialised", WHOLE)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"scratch": "workspac"},
        "scratch must name a parameter of k (x, y, workspace, n), got workspac;"
        " did you mean workspace?",
    ),
    (
        {"outputs": ("y", "z")},
        "outputs must name a parameter of k (x, y, workspace, n), got z",
    ),
    (
        {"scratch": "n"},
        "scratch must name a pointer of k (x, y, workspace), got n, which is uint32",
    ),
    (
        {"outputs": ["n"]},
        "outputs must name a pointer of k (x, y, workspace), got n, which is uint32",
    ),
    ({"outputs": "y", "scratch": ("y",)}, "y must be an output or scratch, got both"),
    ({"scratch": 3}, "outputs and scratch must name parameters, got 3"),
    ({"outputs": [None]}, "outputs and scratch must name parameters, got None"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_a_mark_of_what_is_no_array_is_one_sentence(words: dict[str, Any], sentence: str) -> None:
    for work in (lambda: copying().using(**words), lambda: copying(**words)):
        with pytest.raises(cubecore.CubecoreError) as refused:
            work()
        assert str(refused.value) == sentence


# --- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a folder with the kernel's file, and arrays."""
    made = tmp_path_factory.mktemp("scratch")
    body = BODY.format(pointer="workspace", before="")
    text = HEAD.format(before="") + FUNCTION.format(name="k", parameters=PARAMETERS, body=body)
    (made / "k.cpp").write_text(text)
    np.save(made / "x.npy", np.arange(64, dtype=np.float32))
    np.save(made / "y.npy", np.zeros(56, np.float32))
    np.save(made / "w.npy", np.zeros(64, np.float32))
    return made


RUN = ["run", "k.cpp", "--blocks", "1", "--arg", "x=x.npy", "--arg", "n=56", "--arg", "y=y.npy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--arg", "workspace=w.npy"], LEFT),
        (["--arg", "workspace=w.npy", "--scratch", "workspace"], None),
        (["--scratch", "workspace:256"], None),
        (["--scratch", "workspace:65536", "--outputs", "y"], None),
        (["--arg", "workspace=w.npy", "--outputs", "workspace"], WHOLE),
        (["--out-arg", "workspace=float32:64", "--outputs", "workspace"], WHOLE),
    ],
)
def test_options_mark_arrays(folder: Any, words: list[str], said: str | None) -> None:
    code, out, err = cli(folder, *RUN, *words, "--json")
    assert (code, err) == (0 if said is None else 1, "")
    found = [finding["message"] for finding in json.loads(out)["findings"]]
    assert found == ([] if said is None else [said])


def test_a_workspace_too_small_is_out_of_bounds(folder: Any) -> None:
    code, out, _ = cli(folder, *RUN, "--scratch", "workspace:128", "--json")
    (finding,) = json.loads(out)["findings"]
    assert (code, finding["id"]) == (1, "out-of-bounds")


def test_a_timed_launch_takes_the_same_options(folder: Any) -> None:
    words = ("time", *RUN[1:], "--scratch", "workspace:256", "--json")
    code, out, err = cli(folder, *words)
    assert (code, err) == (0, "")
    assert json.loads(out)["cycles"] > 0


FORM = "--scratch must be NAME or NAME:BYTES, as workspace:65536, got"
BAD_WORDS = [
    (["--scratch", "workspace:abc"], f"{FORM} 'workspace:abc'"),
    (["--scratch", "workspace:0"], f"{FORM} 'workspace:0'"),
    (["--scratch", "workspace:-1"], f"{FORM} 'workspace:-1'"),
    (["--scratch", "workspace:1.5"], f"{FORM} 'workspace:1.5'"),
    (["--scratch", "workspace:"], f"{FORM} 'workspace:'"),
    (["--scratch", "workspace:64:64"], f"{FORM} 'workspace:64:64'"),
    (["--scratch", ":64"], f"{FORM} ':64'"),
    (["--scratch", ""], f"{FORM} ''"),
    (
        ["--scratch", "workspac:64"],
        "--scratch must name a parameter of k (x, y, workspace, n), got workspac;"
        " did you mean workspace?",
    ),
    (
        ["--scratch", "n:64"],
        "--scratch must name a pointer of k (x, y, workspace), got n, which is uint32",
    ),
    (
        ["--scratch", "workspace"],
        "--scratch workspace has no size; --scratch workspace:BYTES, or --arg workspace=FILE",
    ),
    (
        ["--scratch", "y:64"],
        "--scratch y:64 allocates y, which has an array; --scratch y marks that",
    ),
    (
        ["--scratch", "workspace:64", "--scratch", "workspace:64"],
        "--scratch workspace:64 allocates workspace, which has an array;"
        " --scratch workspace marks that",
    ),
    (
        ["--scratch", "workspace:99999999999999999999"],
        "--scratch workspace has 99999999999999999999 B, more than fit in memory",
    ),
    (
        ["--scratch", "workspace:64", "--outputs", "outpt"],
        "--outputs must name a parameter of k (x, y, workspace, n), got outpt",
    ),
    (
        ["--outputs", "n"],
        "--outputs must name a pointer of k (x, y, workspace), got n, which is uint32",
    ),
    (
        ["--outputs", "workspace"],
        "--outputs workspace has no array; give --arg workspace=FILE, or --out-arg"
        " workspace=TYPE:SHAPE alone",
    ),
    (
        ["--scratch", "workspace:64", "--outputs", "workspace"],
        "workspace must be an output or scratch, got both",
    ),
    (
        ["--out-arg", "workspace=float32:64", "--scratch", "workspace"],
        "workspace must be an output or scratch, got both",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), BAD_WORDS)
def test_a_bad_mark_is_one_sentence(folder: Any, words: list[str], sentence: str) -> None:
    assert cli(folder, *RUN, *words) == (2, "", f"{sentence}\n")
    code, out, err = cli(folder, *RUN, *words, "--json")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["message"] == sentence


@pytest.mark.parametrize("words", [["--scratch", "w:64"], ["--outputs", "y"]])
def test_a_mark_comes_with_kernels(folder: Any, words: list[str]) -> None:
    (folder / "k.py").write_text("print(1)\n")
    said = f"{words[0]} must come with a file of C++ kernels, got k.py\n"
    assert cli(folder, "run", "k.py", *words) == (2, "", said)
    assert cli(folder, "run", *words) == (2, "", f"{words[0]} needs a script\n")

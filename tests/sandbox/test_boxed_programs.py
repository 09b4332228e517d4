"""`run` and `time` of one's own kernels in a box: what the kernel reaches, and how it ends."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.sandbox import box as boxes
from cubecore.sandbox.boxed_programs import current_box, programs_boxed
from cubecore.sandbox.namespaces import NoBoxError
from cubecore.sandbox.view import BoxView
from frontends.cpp.cpp_kernels import needs_compiler
from sandbox.machine import missing
from workflows.command import cli
from workflows.judge.judged_kernels import ADD

needs_box = pytest.mark.skipif(bool(missing("auto")), reason=missing("auto"))
REACHES = """  static FILE* secret = std::fopen("SECRET", "r");
  if (get_block_idx() == 0) std::fprintf(stderr, "secret %d, network %d\\n", secret != nullptr,
                                         socket(AF_INET, SOCK_STREAM, 0) >= 0);
  TPipe pipe;
"""
CRASHES = "  if (get_block_idx() == 3) *(volatile int*)8 = 1;\n  TPipe pipe;\n"


@pytest.fixture
def launched(tmp_path, monkeypatch, capfd):
    """Return what launches a kernel by a command: its answer, and what it said on stderr."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(1024, dtype=np.float32))
    (tmp_path / "secret").write_text("mine")

    def launch(first_lines, *words, verb="run"):
        text = ADD.replace("  TPipe pipe;\n", first_lines.replace("SECRET", f"{tmp_path}/secret"))
        text = f"#include <cstdio>\n#include <sys/socket.h>\n{text}"
        (tmp_path / "kernel.cpp").write_text(text)
        arguments = ["--arg", "x=x.npy", "--arg", "y=x.npy", "--out-arg", "z=float32:1024:z.npy"]
        capfd.readouterr()
        done = cli(verb, "kernel.cpp", "--blocks", "4", *arguments, *words)
        return done, done.err + capfd.readouterr().err

    return launch


@needs_compiler
@needs_box
def test_a_boxed_kernel_reaches_neither_files_nor_the_network(launched) -> None:
    done, said = launched(REACHES, "--sandbox", "auto")
    assert (done.code, "secret 0, network 0\n" in said) == (0, True), said
    assert np.array_equal(np.load("z.npy"), 2 * np.load("x.npy"))
    done, said = launched(REACHES)
    assert (done.code, "secret 1, network 1\n" in said) == (0, True), said


@needs_compiler
@needs_box
def test_a_boxed_kernel_that_crashes_is_named_with_its_line(launched) -> None:
    plain = launched(CRASHES)[0]
    boxed = launched(CRASHES, "--sandbox", "auto")[0]
    assert "kernel.cpp:5 (add): the kernel ended with an access to address 0x8" in boxed.err
    assert (boxed.code, boxed.err) == (plain.code, plain.err)


def test_a_program_has_no_box(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.cpp").write_text("int main() { return 0; }\n")
    reason = "no sandbox for main.cpp: it is a program, whose files a box would not have"
    done = cli("run", "main.cpp", "--sandbox", "own")
    assert (done.code, done.err) == (
        2,
        f"{reason}; --sandbox none runs it with your rights\n",
    )


def test_a_machine_without_a_box(monkeypatch, capsys) -> None:
    def missing_box():
        raise NoBoxError("user namespaces are not available", "allow them")

    monkeypatch.setattr(boxes, "_require_filter", missing_box)
    with programs_boxed("auto", BoxView()):
        assert current_box() is None
    reason = "no sandbox for --sandbox {}: user namespaces are not available"
    said = f"{reason.format('auto')}: it runs with your rights\n"
    assert capsys.readouterr().err == said
    with pytest.raises(RequestError) as caught, programs_boxed("own", BoxView()):
        pass
    assert str(caught.value) == (
        f"{reason.format('own')}; allow them; --sandbox none runs it with your rights"
    )

"""Hostile submissions through `judge`: what they compile and run stays in the box."""

import hashlib
import mmap
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.cpp.toolchain.cache import folder as folder_of_cache
from cubecore.sandbox.box import opened
from cubecore.sandbox.view import BoxView
from cubecore.workflows.judge import steps
from cubecore.workflows.judge.limits import CpuBudget
from frontends.cpp.cpp_kernels import needs_compiler
from sandbox.machine import missing
from workflows.judge.judged_kernels import ADD, PYTHON, TASK

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(bool(missing("auto")), reason=missing("auto") or "there is a box"),
]
HEAD = "using namespace AscendC;"
STAGES = {
    "an endless include": '#include "/dev/zero"\n',
    "an endless template": "template <int N> struct S { static constexpr auto v = S<N - 1>::v"
    " + S<N - 2>::v; };\ntemplate <int N> struct T { static constexpr auto v = "
    "T<N * 2>::v + T<N * 2 + 1>::v; };\nstatic auto sum = T<1>::v;\n",
    "an endless constant": "constexpr long f(long n) { while (true) ++n; return n; }\n"
    "constexpr long value = f(0);\n",
    "the passwords, assembled": 'asm(".incbin \\"/etc/passwd\\"");\n',
    "the passwords, included": '#include "/etc/passwd"\n',
    "a plugin": '#pragma GCC optimize("-fplugin=/tmp/plugin.so")\n',
    "a file of the parent's": '#include "../task/task.py"\n',
}
"""Lines of a kernel's file, by what they try on the compiler."""
FEW = {"the passwords, included", "the passwords, assembled"}
RUNNING = {
    "a constructor that leaves a file": "__attribute__((constructor)) static void leave() "
    '{ if (FILE* file = fopen("OUTSIDE", "w")) fclose(file); }',
    "a constructor that stops the parent": "__attribute__((constructor)) static void leave() "
    "{ kill(getppid(), SIGSTOP); kill(-1, SIGSTOP); }",
    "a constructor that stays": "__attribute__((constructor)) static void leave() "
    "{ if (fork() == 0) { setsid(); if (fork() == 0) sleep(1000); _exit(0); } }",
    "a constructor that poisons the cache": "__attribute__((constructor)) static void leave() "
    '{ system("for f in CACHE/*; do echo x > $f; done; touch CACHE/poison.so"); }',
}
"""Constructors of a kernel's library, which run when it is loaded."""


def judged(folder, text, name="kernel.cpp", **options):
    for each in ("own", "task"):
        (folder / each).mkdir(exist_ok=True)
    (folder / "task" / "task.py").write_text(TASK)
    (folder / "own" / name).write_text(text)
    given = {"blocks": 4, "wall_s": 60, **options}
    return cubecore.judge(folder / "own" / name, folder / "task" / "task.py", **given)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.sweep) for n in STAGES]
)
def test_a_compilation_is_contained(tmp_path, name) -> None:
    begin = time.monotonic()
    verdict = judged(tmp_path, ADD.replace(HEAD, f"{STAGES[name]}{HEAD}"), wall_s=20, cpu_s=20)
    assert time.monotonic() - begin < 60
    assert "root:" not in str(verdict.to_json())
    if name != "a plugin":  # no flag of a pragma's is one
        assert not verdict.correct


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.sweep) for n in RUNNING])
def test_a_library_is_contained(tmp_path, name) -> None:
    cache, outside = folder_of_cache(), tmp_path / "outside.txt"
    text = RUNNING[name].replace("OUTSIDE", str(outside)).replace("CACHE", str(cache))
    includes = "#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"
    before = content(cache)
    judged(tmp_path, ADD.replace(HEAD, f"{includes}{HEAD}\n{text}"))
    assert not outside.exists()
    after = content(cache)
    assert {name: after.get(name) for name in before} == before
    assert "poison.so" not in after
    assert sleeping() == []


def content(folder):
    """Return the digest of each small file of a folder."""
    files = [f for f in folder.glob("*") if f.is_file() and f.suffix in {"", ".so"}]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def sleeping():
    """Return the processes that a library has left: their parent is gone, and they sleep."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"runtime-" in each.read_bytes() and int(each.parent.name) != os.getpid():
                state = (each.parent / "status").read_text()
                found += [each] if "PPid:\t1\n" in state else []
        except OSError:
            continue
    return found


def test_a_link_out_of_the_submission_is_refused(tmp_path) -> None:
    project = tmp_path / "project"
    for each in ("op_host", "op_kernel"):
        (project / each).mkdir(parents=True)
    (project / "op_host" / "secret.h").symlink_to("/etc/passwd")
    (tmp_path / "task.py").write_text(TASK)
    with pytest.raises(RequestError) as caught:
        cubecore.judge(project, tmp_path / "task.py")
    assert str(caught.value) == (
        f"{project}: op_host/secret.h must lie in the submission's folder, got a link out of it"
    )


READS = {
    "the task": "open('TASK').read()",
    "the expected results": "next(pathlib.Path('/tmp').glob('cubecore-judge-*/reference/*'))",
    "a file beside its folder": "open('TASK/../../outside.txt').read()",
}


@pytest.mark.parametrize("name", READS)
def test_python_does_not_read_what_is_not_its_own(tmp_path, name) -> None:
    (tmp_path / "outside.txt").write_text("of the caller")
    attack = READS[name].replace("TASK", str(tmp_path / "task" / "task.py"))
    text = f"import os, pathlib\n{attack}\n{PYTHON}"
    verdict = judged(tmp_path, text, "kernel.py")
    assert (verdict.correct, verdict.stage) in {(False, "run"), (False, "load")}


def test_a_result_that_is_a_link_is_not_followed(tmp_path) -> None:
    text = f"""{PYTHON}
def cheat(x, y):
    import glob, os
    (folder,) = glob.glob("/tmp/cubecore-judge-*/submission/results")
    for number in range(9):
        os.symlink(folder.replace("submission/results", f"reference/{{number}}.npy"),
                   f"{{folder}}/{{number}}.npy")
    return x + y
"""
    verdict = judged(tmp_path, text, "kernel.py", entry="cheat")
    assert verdict.cases[0].reason.startswith("its results cannot be written: ")


def filled_by_four():
    """Have four processes that hold 96 MiB each."""
    for _ in range(4):
        if os.fork() == 0:
            held = b"x" * (96 << 20)
            time.sleep(60)
            os._exit(len(held) % 2)
    time.sleep(60)
    return {}


def test_no_process_is_left_of_a_judge_that_is_ended(tmp_path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text("while True:\n    pass\n")
    words = ["judge", str(tmp_path / "kernel.py"), "--task", str(tmp_path / "task" / "task.py")]
    command = [sys.executable, "-m", "cubecore", *words, "--wall", "60"]
    left: set[int] = set()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as judging:
        end = time.monotonic() + 30
        while len(left := below(judging.pid)) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        judging.terminate()
    assert len(left) >= 3
    end = time.monotonic() + 10
    while any(Path(f"/proc/{each}").is_dir() for each in left) and time.monotonic() < end:
        time.sleep(0.1)
    assert [each for each in left if Path(f"/proc/{each}").is_dir()] == []


def below(process: int) -> set[int]:
    """Return the processes that a process has started, and those of theirs."""
    children = Path(f"/proc/{process}/task/{process}/children")
    found = set(map(int, children.read_text().split())) if children.is_file() else set()
    return found.union(*(below(each) for each in found))


def test_the_memory_of_all_processes_is_limited(monkeypatch) -> None:
    monkeypatch.setattr(steps, "TOTAL_BYTES", 320 << 20)
    with opened("auto", BoxView()) as box:
        step = steps.forked("a step", filled_by_four, CpuBudget(sum(os.times()[:2]) + 60), 50, box)
    assert step.failed == ("stopped", "a step took more than 0.3125 GiB of memory")


def behind_its_end(file: Path) -> dict[str, int]:
    """Read a mapped page that its file does not have, as one that finds no room is."""
    with file.open("r+b") as pages:
        pages.truncate(mmap.PAGESIZE)
        mapped = mmap.mmap(pages.fileno(), mmap.PAGESIZE)
        pages.truncate(0)
        return {"byte": mapped[0]}


def test_a_page_without_room_stops_a_step(tmp_path) -> None:
    (tmp_path / "pages").touch()
    read = partial(behind_its_end, tmp_path / "pages")
    step = steps.forked("a step", read, CpuBudget(sum(os.times()[:2]) + 60), 50)
    assert step.failed == ("stopped", "a step has no room left for its arrays")


def killed() -> dict[str, str]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def test_a_step_that_the_system_kills_lacks_memory() -> None:
    step = steps.forked("a step", killed, CpuBudget(sum(os.times()[:2]) + 60), 50)
    sentence = "a step was killed, as where the machine's memory does not suffice"
    assert step.failed == ("stopped", sentence)


def test_the_steps_of_a_judgement_share_its_cpu_seconds() -> None:
    own = sum(os.times()[:2])
    budget = CpuBudget(own + 1.5)
    first = steps.forked("the first", partial(busy, 1.0), budget, 50)
    assert first.failed is None
    second = steps.forked("the second", partial(busy, 60.0), budget, 50)
    third = steps.forked("the third", partial(busy, 0.0), budget, 50)
    ended = f"was ended by the limit of {own + 1.5:g} s of CPU time"
    assert second.failed == ("stopped", f"the second {ended}")
    assert third.failed == ("stopped", f"the third {ended}")
    assert own + 1.0 < budget.used_s < own + 4.0


def test_the_processes_of_a_box_share_its_cpu_seconds() -> None:
    budget = CpuBudget(sum(os.times()[:2]) + 3)
    with opened("auto", BoxView()) as box:
        step = steps.forked("a step", busy_by_four, budget, 50, box)
    assert step.failed == ("stopped", f"a step {budget.sentence}")
    assert step.wall_s < 12


def busy_by_four() -> dict[str, str]:
    """Have four processes that use a minute of CPU time each."""
    for _ in range(3):
        if os.fork() == 0:
            busy(60)
            os._exit(0)
    return busy(60)


def busy(seconds: float) -> dict[str, str]:
    """Use CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return {}


def test_the_verdict_says_which_box_held(tmp_path) -> None:
    verdict = judged(tmp_path, PYTHON, "kernel.py")
    assert verdict.sandbox in {"bwrap", "own"}
    assert verdict.limits["processes"] == 256
    assert judged(tmp_path, PYTHON, "kernel.py", sandbox="none").sandbox == "none"

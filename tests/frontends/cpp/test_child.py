"""The process of a user's code: one that does not start is one sentence, and leaves nothing."""

import gc
from pathlib import Path

import pytest

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.launch import child_process as child
from cubecore.frontends.cpp.launch.child_process import Child, ChildSubject
from cubecore.frontends.cpp.toolchain.runtime import Runtime

NAMED = "another compiler, or its flags, may be named in CUBECORE_CXX"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("echo 'no memory' >&2; exit 1", 0o700, f"the kernel does not start: no memory; {NAMED}"),
        ("exit 3", 0o700, "the kernel called exit(3); a kernel returns"),
        (
            "",
            0o600,
            "{} does not start: Permission denied; "
            "set CUBECORE_CACHE to a folder that programs may run from",
        ),
    ],
)
def test_a_process_that_does_not_start_is_one_sentence(tmp_path, monkeypatch, text, mode, said):
    program = tmp_path / "process"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(mode)
    monkeypatch.setattr(child, "runtime", lambda: Runtime(program, program))
    gc.collect()
    before = len([*Path("/dev/fd").iterdir()])
    with pytest.raises(CubecoreError) as raised:
        Child(ChildSubject("the kernel"))
    assert str(raised.value) == said.format(program)
    del raised
    gc.collect()
    assert len([*Path("/dev/fd").iterdir()]) == before

"""Boxes: every attack is contained, as root and as another user, by bubblewrap and without it."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import cubecore
from cubecore.sandbox.box import opened
from cubecore.sandbox.confinement import clean_environment
from cubecore.sandbox.view import BoxView
from sandbox.attacks import ATTACKS, CALLS, SECRET
from sandbox.machine import missing

NOBODY = 65534
SOURCE = Path(cubecore.__file__).parents[1]


def interpreter(user: int) -> str:
    """Return a Python that a user may start."""
    return sys.executable if user == os.getuid() else shutil.which("python3", path="/usr/bin") or ""


@cache
def tried(kind: str, user: int) -> dict[str, str]:
    if missing(kind):
        pytest.skip(missing(kind))
    if user != os.getuid() and (os.getuid() != 0 or not interpreter(user)):
        pytest.skip("only root can become another user")
    os.environ["CALLER"] = SECRET
    environment = {**clean_environment(), "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    del os.environ["CALLER"]
    done = subprocess.run(
        [interpreter(user), str(Path(__file__).with_name("attacks.py")), kind],
        env=environment,
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


USERS = {"caller": os.getuid(), "nobody": NOBODY}


@pytest.mark.parametrize("attack", [*ATTACKS, *CALLS])
@pytest.mark.parametrize(
    ("kind", "user"),
    [
        ("bwrap", "caller"),
        ("own", "caller"),
        pytest.param("bwrap", "nobody", marks=pytest.mark.sweep),
        pytest.param("own", "nobody", marks=pytest.mark.sweep),
    ],
)
def test_an_attack_is_contained(kind, user, attack) -> None:
    assert tried(kind, USERS[user])[attack].startswith("contained")


@pytest.mark.parametrize("kind", ["bwrap", "own"])
def test_a_box_opens_without_what_is_gone(kind, tmp_path) -> None:
    """Another process trims the cache between the list of its parts and their mounts."""
    if missing(kind):
        pytest.skip(missing(kind))
    there = tmp_path / "there"
    there.write_text("x")
    with opened(kind, BoxView(readable=(tmp_path / "gone", there))) as box:
        root = Path(f"/proc/{box.holder.process}/root{tmp_path}")
        assert (root / "there").read_text() == "x"


def test_a_machine_without_user_namespaces_refuses_and_says_why() -> None:
    kind = next((each for each in ("bwrap", "own") if not missing(each)), "")
    if not kind:
        pytest.skip("it refuses all boxes, and says why")
    sentence = tried(kind, os.getuid())["opens_another_box"]
    assert sentence == (
        "contained: no sandbox for --sandbox auto: user namespaces are not available (unshare: "
        "Operation not permitted); allow them, or run cubecore where they are; --sandbox none runs "
        "it with your rights"
    )

"""Kills, full disks, and several writers of one store."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from fuzz.judge import CODES

_LIMITED = (
    "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); "
    "from cubecore.cli.commands import main; main(sys.argv[2:])"
)
_PLAN = ("plan", "--alternatives", "0", "--queries", "many.jsonl")


def _ask(folder, count):
    rng = random.Random(1)
    asked = [{"m": rng.randint(1, 90), "n": 1 + number, "k": 32} for number in range(count)]
    (folder / "many.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked))
    return count


def _check(tally, name, told, ran):
    tally.tried[name] += 1
    tally.codes[name, ran.returncode] += 1
    if ran.returncode not in CODES or b"Traceback" in ran.stderr or b"internal" in ran.stderr:
        tally.fail(name, f"{told}: exit {ran.returncode}, {ran.stderr.decode()[-300:]}")


def try_full_disks(tally, folder, rng, count):
    """Let the files of a command grow to some size only; what was there must stay whole."""
    name = "full disks"
    _ask(folder, 12)
    shape = ("--m", "32", "--n", "32", "--k", "32")
    verbs = (
        (*_PLAN, "--processes", "1", "--out", "o.jsonl"),
        (*_PLAN, "--processes", "1", "--store", "full.sqlite"),
        ("plan", *shape, "--out", "o.json"),
        ("run", *shape, "--out", "o.npy"),
        ("time", *shape, "--report", "o.html", "--trace", "o.trace"),
    )
    for number in range(count):
        verb = verbs[number % len(verbs)]
        Path(folder / verb[-1]).unlink(missing_ok=True)
        if "--store" not in verb:
            (folder / verb[-1]).write_text("mine")
        size = rng.choice((0, 100, 3000, 20_000, 60_000))
        command = [sys.executable, "-B", "-c", _LIMITED, str(size), *verb]
        ran = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120)
        _check(tally, name, f"{size} B, {' '.join(verb)}", ran)
        if "--store" not in verb and ran.returncode and (folder / verb[-1]).read_text() != "mine":
            tally.fail(name, f"{size} B, {' '.join(verb)}: the output is neither old nor new")


def try_kills(tally, folder, rng, count):
    """Kill sweeps; the next must go on, and end with every answer once."""
    name, asked = "kills", _ask(folder, 60)
    command = [sys.executable, "-m", "cubecore", *_PLAN, "--processes", "1"]
    command += ["--store", "killed.sqlite", "--out", "killed.jsonl"]
    for _ in range(count):
        begun = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.2, 2.0))
        begun.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        begun.wait()
        ran = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
        _check(tally, name, "after a kill", ran)
        lines = (folder / "killed.jsonl").read_text().splitlines()
        if (
            len({json.loads(line)["problem"]["n"] for line in lines}) != asked
            or len(lines) != asked
        ):
            tally.fail(name, f"{len(lines)} answers to {asked} questions")
        for left in folder.glob("killed*"):
            left.unlink()


def try_killed_outputs(tally, folder, rng, count):
    """Kill commands while they write; each output must be what it was, or whole."""
    name = "kills, outputs"
    shape = ("--m", "200", "--n", "300", "--k", "64")
    verbs = (
        ("plan", *shape, "--out", "killed.json"),
        ("run", *shape, "--out", "killed.npy"),
        ("time", *shape, "--report", "killed.html"),
    )
    for verb in verbs:
        command, out = [sys.executable, "-m", "cubecore", *verb], folder / verb[-1]
        begun = time.monotonic()
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=120)
        lasts, whole = time.monotonic() - begun, out.read_bytes()
        for _ in range(count):
            out.write_text("mine")
            process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(rng.uniform(0.5, 1.1) * lasts)
            process.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
            process.wait()
            tally.tried[name] += 1
            if out.read_bytes() not in {b"mine", whole}:
                tally.fail(name, f"{' '.join(verb)}: the output is neither old nor new")
        for left in (out, *folder.glob(".cubecore?*")):
            left.unlink()


def try_writers(tally, folder, writers):
    """Let several sweeps fill one store at once; each answer must be there once."""
    name, asked = f"{writers} writers", _ask(folder, 40)
    command = [
        sys.executable,
        "-m",
        "cubecore",
        *_PLAN,
        "--processes",
        "1",
        "--store",
        "shared.sqlite",
    ]
    begun = [
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(writers)
    ]
    for process in begun:
        out, err = process.communicate(timeout=300)
        _check(
            tally,
            name,
            "a writer",
            subprocess.CompletedProcess(command, process.returncode, out, err),
        )
    shown = [sys.executable, "-m", "cubecore", "store", "export", "shared.sqlite"]
    ran = subprocess.run(shown, cwd=folder, capture_output=True, check=False, timeout=120)
    if len(ran.stdout.splitlines()) != asked + 1:
        tally.fail(name, f"{len(ran.stdout.splitlines()) - 1} answers to {asked} questions")
    for left in folder.glob("shared.sqlite*"):
        left.unlink()

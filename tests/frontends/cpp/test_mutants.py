"""Every synchronisation of the C++ examples removed, one at a time: its fault is reported."""

import re

import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler
from frontends.cpp.example_cases import BLOCKS, CASES, small

pytestmark = [needs_compiler, pytest.mark.sweep]
ORDERS = ("program", "late", "early", *(f"random:{seed}" for seed in range(1, 5)))
SYNCHRONISATION = re.compile(
    r"(?:AscendC::)?(?:CrossCore)?(?:SetFlag|WaitFlag|PipeBarrier)<[^;]*?>\([^;]*?\);|SyncAll\(\);"
    r"|\w+\.EnQue\(\w+\);|\w+\.DeQue<\w+>\(\)|asc_sync_(?:notify|wait)\([^;]*?\);|_sync(?=\()"
)


def own_part(text, name):
    """Return where the text of a kernel lies: its function, or the class before all if that syncs.

    A header is one part.
    """
    starts = [match.start() for match in re.finditer('extern "C"', text)]
    bounds = list(zip([0, *starts], [*starts, len(text)], strict=True))
    own = next((b for b in bounds[1:] if f" {name}(" in text[slice(*b)]), bounds[0])
    return own if SYNCHRONISATION.search(text, *own) else bounds[0]


def mutants(file, name):
    """Yield a description of each mutant, and its files."""
    own = (EXAMPLES / f"{file}.cpp").read_text()
    shared = [path.name for path in EXAMPLES.glob("*.h") if f'"{path.name}"' in own]
    names = [f"{file}.cpp", *shared]
    texts = {name: (EXAMPLES / name).read_text() for name in names}
    for each, text in texts.items():
        for match in SYNCHRONISATION.finditer(text, *own_part(text, name)):
            line = text.count("\n", 0, match.start()) + 1
            taken = re.search(r"DeQue(<\w+>)", match[0])
            put = f"AscendC::LocalTensor{taken[1]}()" if taken else ";"
            put = "" if match[0] == "_sync" else put
            mutated = text[: match.start()] + put + text[match.end() :]
            yield f"{each}:{line} {match[0]}", texts | {each: mutated}


def launched(made, arguments, order):
    """Return what a launch leaves, bytes or the sentence that stops it, and its findings."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        run = made.using(order=order)[BLOCKS](*own)
    except CubecoreError as error:
        return str(error), None
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)], run.findings


def outcome(made, arguments, order):
    """Return the same of a launch that does it twice if it is stopped.

    A mutant stops a launch every time, and the machine that it runs on, of its memory or its time,
    once: that is no change of a result.
    """
    left, findings = launched(made, arguments, order)
    if findings is None:
        again = launched(made, arguments, order)
        return again if again != (left, None) else (left, None)
    return left, findings


@pytest.mark.parametrize("auto_sync", [False, True])
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_fault_that_changes_a_result_is_reported(tmp_path, case, auto_sync):
    file, name = case
    arguments = small(*case).arguments
    right, none = outcome(
        cubecore.load(EXAMPLES / f"{file}.cpp", auto_sync=auto_sync)[name], arguments, "program"
    )
    assert none == ()
    reported, missed, harmless = [], [], []
    for number, (title, texts) in enumerate(mutants(file, name)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for each, text in texts.items():
            (folder / each).write_text(text)
        made = cubecore.load(folder / f"{file}.cpp", auto_sync=auto_sync)[name]
        _, findings = outcome(made, arguments, "program")
        if findings is None or findings:
            reported.append(title)
            for race in findings or ():
                if race.id.startswith("race-"):
                    lines = [access.location.line for access in race.accesses]
                    assert len(lines) == 2
                    assert all(lines)
        else:
            left = {order: outcome(made, arguments, order)[0] for order in ORDERS}
            changed = {order: got for order, got in left.items() if got != right}
            stops = [got for got in changed.values() if isinstance(got, str)]
            (missed if changed else harmless).append((title, *changed, *stops))
    print(f"{name}: {len(reported)} reported, {len(harmless)} change nothing: {harmless}")
    assert missed == []
    assert len(reported) > 2

"""racecheck of trees: a matmul whose flags are taken away, judged by the replay's own checker."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Issue
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.racecheck import Sanitizer
from cubecore.machine.tree_watch import TreeWatch
from cubecore.tiling.model.problem import Problem
from harness import A2, listing, make_tiling
from kernels.broken import changed, leaves
from kernels.queues import HappensBefore, OrderError

DOUBLED = {
    "baseM": 32,
    "baseN": 48,
    "baseK": 32,
    "stepKa": 2,
    "stepKb": 2,
    "depthA1": 4,
    "depthB1": 4,
    "dbL0A": 2,
    "dbL0B": 2,
    "dbL0C": 2,
}
PROBLEM = Problem(m=80, n=96, k=112, trans_b=True, bias="float32")


def launched():
    return matmul_launch(PROBLEM, make_tiling(PROBLEM, **DOUBLED), A2)


def watched(launch):
    """Return the findings of one walk of each tree."""
    log = FindingLog()
    sanitizer = Sanitizer(GlobalMemory(), log, [CoreId(c.core, c.sub) for c in launch.cores])
    bases = {t.name: (i + 1) << 40 for i, t in enumerate(launch.tensors)}
    for group in launch.groups(bases):
        watch = TreeWatch(sanitizer, group)
        group.program.run(watch, group.slots[0])
        watch.finish()
    return list(log)


def without(issue: Issue):
    return lambda other: None if other is issue else other


def test_the_kernel_has_no_findings():
    assert watched(launched()) == []


def in_order(launch) -> bool:
    try:
        HappensBefore(listing(launch)).require_order()
    except OrderError:
        return False
    return True


def test_without_any_one_set_or_wait_something_is_found():
    """Unless it stands in a branch that this shape never takes: the oracle knows."""
    launch = launched()
    flags = [i for i in leaves(launch) if isinstance(i.template, SetFlag | WaitFlag)]
    missed = 0
    for issue in flags:
        broken = changed(launch, without(issue))
        found = watched(broken)
        assert bool(found) != in_order(broken), issue
        assert {f.check for f in found} <= {"racecheck", "synccheck"}
        missed += not found
    assert missed < len(flags) // 5


@pytest.mark.parametrize(
    ("pair", "id_", "text"),
    [
        (("MTE2", "MTE1"), "race-raw", "set_flag(MTE2, MTE1) after the write"),
        (("MTE1", "MTE2"), "race-war", "set_flag(MTE1, MTE2) after the read"),
        (("MTE1", "M"), "race-raw", "set_flag(MTE1, M) after the write"),
        (("M", "MTE1"), "race-war", "set_flag(M, MTE1) after the read"),
        (("M", "FIX"), "race-raw", "set_flag(M, FIX) after the write"),
        (("FIX", "M"), "race-war", "set_flag(FIX, M) after the read"),
    ],
    ids=str,
)
def test_a_pair_of_pipes_without_flags_is_named(pair, id_, text):
    def change(issue):
        template = issue.template
        flag = isinstance(template, SetFlag | WaitFlag) and (template.src, template.dst) == pair
        return None if flag else issue

    found = [f for f in watched(changed(launched(), change)) if f.id == id_]
    assert any(text in f.message for f in found)
    for finding in found:
        if text in finding.message:
            assert (finding.accesses[0].pipe, finding.accesses[1].pipe) == pair


def test_small_products_without_their_barrier():
    def change(issue):
        return None if isinstance(issue.template, PipeBarrier) else issue

    assert {f.id for f in watched(changed(launched(), change))} == {"race-raw"}


def test_a_moved_slot_is_found():
    """L0A's second half in place of the first: flags alone cannot tell."""

    def change(issue):
        at = [
            address % (A2.l0a_bytes // 2) if operand.mem.name == "L0A" else address
            for operand, address in zip(issue.template.operands(), issue.addresses, strict=True)
        ]
        return replace(issue, addresses=tuple(at))

    assert {f.check for f in watched(changed(launched(), change))} == {"racecheck"}


def test_both_engines_find_the_same():
    launch = launched()
    flags = [i for i in leaves(launch) if isinstance(i.template, WaitFlag)]
    for issue in flags[::5]:
        broken = changed(launch, without(issue))
        found = []
        for engine in ("blas", "reference"):
            gm, bases = GlobalMemory(), {}
            for spec in launch.tensors:
                if spec.output:
                    bases[spec.name] = gm.allocate(spec.name, spec.size_bytes).address
                else:
                    raw = np.zeros(spec.size_bytes, np.uint8)
                    bases[spec.name] = gm.allocate_from(spec.name, raw).address
            outcome, ran_on = run_launch(broken, A2, gm, bases, engine)
            assert ran_on == engine
            found.append({(f.id, f.message) for f in outcome.findings})
        assert found[0] == found[1]

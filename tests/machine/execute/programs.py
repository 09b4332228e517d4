"""Random kernels by number: loops, branches on data, flags, signals between cores, aliases.

A number stands for one program for ever: it is drawn with `random.Random(number).random()` alone.
About half of the programs are synchronised throughout; of the others some flags, barriers or
signals are left out. All values are small integers, so that every sum is exact.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cubecore

LANES = 64
SLOT = 128
"""Elements of a local array, and of a share of a tensor."""
BYTES = 4 * SLOT
SLOTS = 6
FULL = 2**64 - 1
EDGE = 16
TENSORS = ("x", "y", "w")
MODES = {0: "inter", 1: "subblock", 2: "block"}
Step = tuple[Any, ...]


class Draw:
    """What a program is drawn with."""

    def __init__(self, number: int) -> None:
        self._source = random.Random(number)

    def below(self, most: int) -> int:
        return int(self._source.random() * most)

    def one(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]

    def odds(self, share: float) -> bool:
        return self._source.random() < share


@dataclass(frozen=True)
class Drawn:
    """A program: its kind, blocks, steps for each part; `shared`: x and y are one array."""

    kind: str
    blocks: int
    vector: tuple[Step, ...]
    cube: tuple[Step, ...]
    shared: bool


def drawn(number: int) -> Drawn:
    """Return the program of a number."""
    draw = Draw(number)
    kind = draw.one(("vector", "vector", "vector", "mix", "mix", "cube"))
    most = {"vector": 40, "mix": 8, "cube": 20}[kind]
    blocks = 1 + draw.below(draw.one((1, 2, 4, most)))
    care = draw.one((1.0, 1.0, 0.97, 0.8))
    shared, filled = draw.odds(0.2), draw.odds(0.95)
    if kind == "mix":
        vector, cube = _exchange(draw, care)
    else:
        vector = _vector(draw, care, depth=2) if kind == "vector" else []
        cube = _cube(draw, care) if kind == "cube" else []
        if kind == "vector" and blocks > 1 and draw.odds(0.3):
            vector += _neighbours(draw, care)
    if filled:
        vector = [("fill", slot, draw.below(7)) for slot in range(SLOTS)] + vector
    return Drawn(kind, blocks, tuple(vector), tuple(cube), shared)


# --- drawing


def _vector(draw: Draw, care: float, depth: int) -> list[Step]:
    """Draw an AIV's steps: loads, arithmetic, stores, loops, branches."""
    steps: list[Step] = []
    for _ in range(2 + draw.below(4)):
        kind = draw.below(14 if depth else 11)
        place = draw.below(SLOTS)
        if kind < 3:
            steps += _ordered(draw, care, ("load", place, draw.one("xxy"), draw.below(2)), "MTE2")
        elif kind < 6:
            name = draw.one(("add", "max", "mul", "count"))
            own = name, place, draw.below(SLOTS), draw.below(SLOTS), 1 + draw.below(2)
            steps += _ordered(draw, care, own, "V")
        elif kind == 6:
            steps += _ordered(draw, care, ("fill", place, draw.below(9) - 4), "V")
        elif kind < 9:
            steps += _ordered(draw, care, ("store", place, draw.one("yyyw"), draw.below(2)), "MTE3")
        elif kind == 9:
            steps += _ordered(draw, care, ("atomic", place, draw.below(2)), "MTE3")
        elif kind == 10:
            steps.append(("mask", draw.one((FULL, 0xFFFF, 0xF0F0))))
        elif kind == 11:
            body = tuple(_vector(draw, care, depth - 1))
            steps.append(("loop", 1 + draw.below(4), body))
        elif kind == 12:
            other = tuple(_vector(draw, care, depth - 1)) if draw.odds(0.5) else ()
            body = tuple(_vector(draw, care, depth - 1))
            steps.append(("if_local", place, draw.below(LANES), draw.one((0, 1)), body, other))
        else:
            body = tuple(_vector(draw, care, depth - 1))
            steps.append(("if_global", draw.below(SLOT), body, ()))
    return steps


_BEFORE = {"MTE2": ("V", "MTE3"), "V": ("MTE2", "MTE3"), "MTE3": ("V", "MTE2")}


def _ordered(draw: Draw, care: float, step: Step, pipe: str) -> list[Step]:
    """Return a step behind all that it may need: one barrier, or flags from the other pipes."""
    if draw.odds(0.5):
        return [("all",), step] if draw.odds(care) else [step]
    steps: list[Step] = []
    for other in _BEFORE[pipe]:
        event = draw.below(4)
        if draw.odds(care):
            steps.append(("set", other, pipe, event))
        if draw.odds(care):
            steps.append(("wait", other, pipe, event))
    if draw.odds(care):
        steps.append(("barrier", pipe))
    return [*steps, step]


def _neighbours(draw: Draw, care: float) -> list[Step]:
    """Draw a round in which cores read what others wrote to the workspace."""
    steps: list[Step] = []
    far, flag = 1 + draw.below(3), draw.below(4)
    for _ in range(1 + draw.below(2)):
        place = draw.below(SLOTS)
        steps += [("all",), ("fill", place, draw.below(5)), ("all",), ("store", place, "w", 0)]
        if draw.odds(care):
            steps.append(("arrive", 0, "MTE3", flag))
        if draw.odds(care):
            steps.append(("hear", 0, flag))
        steps += [("all",), ("neighbour", place, far), ("all",), ("store", place, "y", 1)]
        if draw.odds(care):
            steps += [("arrive", 0, "MTE2", flag), ("hear", 0, flag)]
    return steps


def _cube(draw: Draw, care: float) -> list[Step]:
    """Draw an AIC's steps: products of a tile, stored."""
    steps: list[Step] = []
    for turn in range(1 + draw.below(3)):
        starts = draw.below(2) if turn else draw.odds(0.95)
        chain = [("fetch", 0), ("left",), ("right",), ("mad", int(starts)), ("fix",)]
        for step, pair in zip(chain, ("MTE2", "MTE1", "MTE1", "M", "FIX"), strict=True):
            joined = draw.odds(0.3)
            if draw.odds(care) and (joined or step[0] in {"fetch", "fix"}):
                steps.append(("all",))
            elif step[0] in {"left", "mad"}:
                source = "MTE2" if step[0] == "left" else "MTE1"
                steps += [("set", source, pair, 0)] if draw.odds(care) else []
                steps += [("wait", source, pair, 0)] if draw.odds(care) else []
            steps.append(step)
    if draw.odds(0.3):
        return [("loop", 1 + draw.below(3), tuple(steps))]
    return steps


def _exchange(draw: Draw, care: float) -> tuple[list[Step], list[Step]]:
    """Draw rounds in which an AIC makes tiles, its AIVs work on them, and perhaps tell it."""
    vector: list[Step] = []
    cube: list[Step] = []
    rounds, flag, back = 1 + draw.below(4), draw.below(3), draw.odds(0.7)
    everyone, pair = draw.odds(0.3), draw.odds(0.3)
    for turn in range(rounds):
        if turn and back and draw.odds(care):
            cube.append(("hear", 2, 4 + flag))
        cube += _cube(draw, care)
        cube.append(("all",))
        if draw.odds(care):
            cube.append(("arrive", 2, "FIX", flag))
        if draw.odds(care):
            vector.append(("hear", 2, flag))
        place = draw.below(SLOTS)
        vector += [("all",), ("tile", place), ("all",)]
        vector.append(("add", place, place, place, 1))
        vector += [("all",), ("store", place, "y", turn % 2)]
        if draw.odds(0.3):
            vector += _vector(draw, care, depth=1)
        if back and turn + 1 < rounds and draw.odds(care):
            vector.append(("arrive", 2, "MTE2", 4 + flag))
        if everyone and draw.odds(care):
            vector += [("all",), ("arrive", 0, "MTE3", 3), ("hear", 0, 3)]
        if pair and draw.odds(care):
            vector += [("all",), ("arrive", 1, "MTE3", 8), ("hear", 1, 8)]
    if draw.odds(0.2):
        vector, cube = [("loop", 2, tuple(vector))], [("loop", 2, tuple(cube))]
    return vector, cube


# --- running


class Walk:
    """One core on its way through a program; each kind of step has a line of its own."""

    def __init__(self, core: Any, tensors: dict[str, Any], program: Drawn) -> None:
        self.core, self.tensors = core, tensors
        self.block = int(core.block_idx)
        self.program = program
        if core.is_aiv:
            self.slots = [core.ubuf("int32", SLOT) for _ in range(SLOTS)]
            core.asc_set_vector_mask(0, FULL)
        else:
            self.l1 = core.cbuf("half", 2 * EDGE * EDGE)
            self.l0a, self.l0b = core.ca("half", EDGE * EDGE), core.cb("half", EDGE * EDGE)
            self.l0c = core.cc("float", EDGE * EDGE)

    def run(self, steps: Sequence[Step]) -> None:
        """Go through steps."""
        for name, *given in steps:
            getattr(self, name)(*given)

    def at(self, tensor: str, part: int) -> Any:
        """Return the core's own share of a tensor."""
        return self.tensors[tensor] + (2 * self.block + part) * SLOT

    def loop(self, turns: int, body: Sequence[Step]) -> None:
        for _ in range(turns):
            self.run(body)

    def if_local(self, place: int, lane: int, bit: int, body: Any, other: Any) -> None:
        self.core.asc_sync_pipe("PIPE_ALL")
        value = self.core.load(self.slots[place] + lane)
        self.run(body if int(value) % 2 == bit else other)

    def if_global(self, lane: int, body: Any, other: Any) -> None:
        value = self.core.load(self.at("x", 0) + lane)
        self.run(body if int(value) % 3 == 0 else other)

    def load(self, place: int, tensor: str, part: int) -> None:
        self.core.asc_copy_gm2ub(self.slots[place], self.at(tensor, part), BYTES)

    def neighbour(self, place: int, far: int) -> None:
        share = 2 * ((self.block + far) % self.program.blocks) * SLOT
        self.core.asc_copy_gm2ub(self.slots[place], self.tensors["w"] + share, BYTES)

    def tile(self, place: int) -> None:
        tile = self.tensors["t"] + (self.block // 2) * EDGE * EDGE
        self.core.asc_copy_gm2ub(self.slots[place], tile, BYTES)

    def store(self, place: int, tensor: str, part: int) -> None:
        self.core.asc_copy_ub2gm(self.at(tensor, part), self.slots[place], BYTES)

    def atomic(self, place: int, part: int) -> None:
        self.core.asc_set_atomic_add_int()
        self.core.asc_copy_ub2gm(self.at("y", part), self.slots[place], BYTES)
        self.core.asc_set_atomic_none()

    def add(self, to: int, one: int, two: int, repeats: int) -> None:
        to_, one_, two_ = self.slots[to], self.slots[one], self.slots[two]
        self.core.asc_add(to_, one_, two_, repeats, 1, 1, 1, 8, 8, 8)

    def max(self, to: int, one: int, two: int, repeats: int) -> None:
        to_, one_, two_ = self.slots[to], self.slots[one], self.slots[two]
        self.core.asc_max(to_, one_, two_, repeats, 1, 1, 1, 8, 8, 8)

    def mul(self, to: int, one: int, two: int, repeats: int) -> None:
        to_, one_, two_ = self.slots[to], self.slots[one], self.slots[two]
        self.core.asc_mul(to_, one_, two_, repeats, 1, 1, 1, 8, 0, 8)

    def count(self, to: int, one: int, two: int, parts: int) -> None:
        to_, one_, two_ = self.slots[to], self.slots[one], self.slots[two]
        self.core.asc_add(to_, one_, two_, 40 * parts)
        self.core.asc_set_vector_mask(0, FULL)

    def fill(self, to: int, value: int) -> None:
        self.core.asc_duplicate(self.slots[to], value, 2, 1, 8)

    def mask(self, low: int) -> None:
        self.core.asc_set_vector_mask(0, low)

    def all(self) -> None:
        self.core.asc_sync_pipe("PIPE_ALL")

    def barrier(self, pipe: str) -> None:
        self.core.asc_sync_pipe(f"PIPE_{pipe}")

    def set(self, source: str, target: str, event: int) -> None:
        self.core.asc_sync_notify(f"PIPE_{source}", f"PIPE_{target}", event)

    def wait(self, source: str, target: str, event: int) -> None:
        self.core.asc_sync_wait(f"PIPE_{source}", f"PIPE_{target}", event)

    def arrive(self, mode: int, pipe: str, flag: int) -> None:
        getattr(self.core, f"asc_sync_{MODES[mode]}_arrive")(f"PIPE_{pipe}", flag)

    def hear(self, mode: int, flag: int) -> None:
        getattr(self.core, f"asc_sync_{MODES[mode]}_wait")("PIPE_S", flag)

    def fetch(self, which: int) -> None:
        own = self.tensors["h"] + (2 * self.block + which) * EDGE * EDGE
        self.core.asc_copy_gm2l1(self.l1 + which * EDGE * EDGE, own, 2 * EDGE * EDGE)

    def left(self) -> None:
        self.core.asc_copy_l12l0a(self.l0a, self.l1, 0, 1, 1, 0)

    def right(self) -> None:
        self.core.asc_copy_l12l0b(self.l0b, self.l1, 0, 1, 1, 0)

    def mad(self, starts: int) -> None:
        sums = self.l0c, self.l0a, self.l0b
        self.core.asc_mmad(*sums, EDGE, EDGE, EDGE, 0, False, False, bool(starts))

    def fix(self) -> None:
        to = self.tensors["t"] + self.block * EDGE * EDGE
        self.core.asc_copy_l0c2gm(
            to, self.l0c, EDGE, EDGE, EDGE, EDGE, 0, "NoQuant", False, False, True
        )


def _body(core: Any, x: Any, y: Any, w: Any, t: Any, h: Any, number: int) -> None:
    program = _PROGRAMS[int(number)]
    walk = Walk(core, {"x": x, "y": y, "w": w, "t": t, "h": h}, program)
    walk.run(program.cube if core.is_aic else program.vector)


_PROGRAMS: dict[int, Drawn] = {}
_KERNELS = {
    kind: cubecore.kernel(kind=kind, scratch=("w",))(_body) for kind in ("vector", "cube", "mix")
}


def launchable(number: int) -> tuple[Any, int, tuple[Any, ...]]:
    """Return a program's kernel, its blocks, and new arguments."""
    program = _PROGRAMS[number] = drawn(number)
    rng = random.Random(-1 - number)
    parts = 2 * program.blocks if program.kind == "mix" else program.blocks
    size = 2 * parts * SLOT

    def whole(count: int) -> list[int]:
        return [int(rng.random() * 9) - 4 for _ in range(count)]

    x = np.array(whole(size), np.int32)
    y = np.array(whole(size), np.int32)
    if program.shared:
        y = x
    w = np.zeros(size, np.int32)
    t = np.zeros(program.blocks * EDGE * EDGE, np.float32)
    h = np.array(whole(2 * program.blocks * EDGE * EDGE), np.float16)
    return _KERNELS[program.kind], program.blocks, (x, y, w, t, h, number)

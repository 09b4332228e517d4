"""Programs of vector functions: their loops, and the values that calls one by one leave."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.folding import Leaf, Loop, folded
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries
from cubecore.isa.vector.registers.vector_function import VectorFunction

FLOAT, WIDTH = element_type("float32"), element_type("uint32")
WHERE = Location("kernel.cpp", 1, "body")
BYTES = 256


class Body:
    """A body as a front end records it; values are numbers."""

    def __init__(self):
        self.table, self.lines, self.rows, self.values = {}, {}, [], 0

    def call(self, name, line, mode="", sources=(), mask=0, address=0, scalar=0, dtype=FLOAT):
        operation = operations()[name]
        call = self.table.setdefault(Call(operation, dtype, dtype, mode), len(self.table))
        place = self.lines.setdefault(line, len(self.lines))
        made = 0
        if not name.startswith("Store"):
            self.values += 1
            made = self.values
        sources = (*sources, 0, 0, 0)[:3]
        self.rows.append((call, place, (made, 0), sources, mask, address, scalar))
        return made

    def load(self, line, address):
        return self.call("LoadAlign", line, "NORM", address=address)

    def store(self, line, value, address, mask=0):
        self.call("StoreAlign", line, "NORM", sources=(value,), mask=mask, address=address)

    def count(self, line, lanes):
        return self.call("UpdateMask", line, scalar=lanes, dtype=WIDTH)

    def program(self):
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        calls, places, results, sources, masks, addresses, scalars = columns
        locations = tuple(Location("kernel.cpp", line, "body") for line in self.lines)
        unsigned = [column.astype(np.uint32) for column in (results, sources, masks)]
        entries = Entries(
            tuple(self.table),
            locations,
            calls,
            places,
            *unsigned,
            np.zeros(len(self.rows), np.uint32),
            addresses.astype(np.int64),
            scalars.astype(np.uint64),
        )
        return RegisterProgram(entries, WHERE)

    def lanes_by_steps(self, image):
        """Run the calls one after another on lanes of float: the oracle."""
        image, values = image.copy(), {}
        names = [call.operation.name for call in self.table]
        for call, _, (made, _), sources, mask, address, scalar in self.rows:
            name, part = names[call], slice(address // 4, address // 4 + 64)
            on = values[mask] if mask else np.ones(64, bool)
            if name == "LoadAlign":
                values[made] = image[part].copy()
            elif name == "StoreAlign":
                image[part] = np.where(on, values[sources[0]], image[part])
            elif name == "UpdateMask":
                values[made] = np.arange(64) < scalar
            else:
                x, y = (values[n] for n in sources[:2])
                values[made] = np.where(on, x + y if name == "Add" else np.maximum(x, y), 0)
        return image


def run(body, image, cores=2):
    """Return what a program leaves in an image of floats, which all cores have alike."""
    program = body.program()
    function, stack = VectorFunction(program=program), np.stack([image] * cores)
    raw, inputs = stack.view(np.uint8), {}
    for operand, runs in function.spans:
        if operand.access.reads:
            inputs[operand.name] = np.concatenate([raw[:, a:b] for a, b in runs], axis=1)
    out = function.compute(inputs, Registers())
    for operand, runs in function.spans:
        if operand.access.writes:
            at = 0
            for a, b in runs:
                raw[:, a:b] = out[operand.name][:, at : at + b - a]
                at += b - a
    assert all(np.array_equal(stack[0], row) for row in stack)
    return program, stack[0]


def numbers(count, seed=1):
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def tree(nodes):
    return [n.entries.size if isinstance(n, Leaf) else (n.trips, tree(n.body)) for n in nodes]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2, 1, 2, 1, 2], [(3, [3, 3])]),
        ([7, 1, 2, 2, 3, 1, 2, 2, 3], [1, (2, [2, (2, [4]), 2])]),
        ([1, 2, 1, 3, 1, 2, 1, 3], [(2, [2, 2, 2, 2])]),
        ([], []),
    ],
)
def test_loops_are_found_from_the_inside_out(kinds, expected):
    assert tree(folded(np.array(kinds, np.int64))) == expected


def test_a_loop_over_tiles_runs_its_trips_at_once_and_masks_the_last():
    body, count = Body(), 1000
    for trip in range(16):
        mask = body.count(3, min(64, count - 64 * trip))
        total = body.call(
            "Add",
            6,
            sources=(body.load(4, BYTES * trip), body.load(5, 4096 + BYTES * trip)),
            mask=mask,
        )
        body.store(7, total, 8192 + BYTES * trip, mask)
    image = numbers(3072)
    program, after = run(body, image)
    assert isinstance(program.nodes[0], Loop)
    assert program.together == {program.nodes[0].number}
    assert program.stored.runs == ((8192, 8192 + 4000),)
    assert np.array_equal(after, body.lanes_by_steps(image))


def test_a_chain_of_sums_runs_trip_by_trip_in_its_order():
    body = Body()
    for row in range(3):
        total = body.load(3, 2048 * row)
        for trip in range(1, 8):
            total = body.call("Add", 5, sources=(total, body.load(4, 2048 * row + BYTES * trip)))
        body.store(6, total, 8192 + BYTES * row)
    image = numbers(2304)
    program, after = run(body, image)
    (rows,) = program.nodes
    assert program.together == {rows.number}
    assert np.array_equal(after, body.lanes_by_steps(image))


def test_what_one_trip_stores_the_next_one_loads():
    body = Body()
    for trip in range(6):
        body.store(
            5,
            body.call(
                "Max", 4, sources=(body.load(2, BYTES * trip), body.load(3, BYTES * (trip + 1)))
            ),
            BYTES * (trip + 1),
        )
    image = numbers(64 * 8)
    program, after = run(body, image)
    assert program.together == frozenset()
    assert program.loaded.runs == ((0, 7 * BYTES),)
    assert np.array_equal(after, body.lanes_by_steps(image))


def test_a_value_that_is_stored_late_is_the_one_that_was_loaded():
    body = Body()
    held = body.load(1, 0)
    body.store(2, body.load(3, BYTES), 0)
    body.store(4, held, 2 * BYTES)
    image = numbers(192)
    _, after = run(body, image)
    assert np.array_equal(after, body.lanes_by_steps(image))


@pytest.mark.parametrize("seed", range(20))
def test_random_bodies_do_as_their_calls_one_by_one(seed):
    rng, body = np.random.default_rng(seed), Body()
    held = [body.load(1, 0)]
    for trip in range(int(rng.integers(1, 6))):
        for inner in range(int(rng.integers(1, 4))):
            loaded = body.load(2, BYTES * int(rng.integers(0, 8)))
            made = body.call("Add", 3, sources=(loaded, held[int(rng.integers(len(held)))]))
            held.append(made)
            mask = body.count(4, int(rng.integers(0, 65)))
            to = BYTES * int(rng.integers(0, 8))
            body.store(5 if inner else 7, made, to, mask if inner else 0)
        if rng.integers(2):
            held = held[-2:]
        body.store(6, held[0], BYTES * (trip % 8))
    image = numbers(64 * 8, seed)
    _, after = run(body, image)
    assert np.array_equal(after, body.lanes_by_steps(image))


def test_two_equal_calls_on_a_line_are_no_loop_of_their_own():
    """Two loads, a sum and a store behind each other on one line still run all trips at once."""
    body, trips = Body(), 5
    for trip in range(trips):
        first = body.load(1, 64 * 4 * trip)
        second = body.load(1, 8192 + 64 * 4 * trip)
        total = body.call("Add", 1, sources=(first, second))
        body.store(1, total, 16384 + 64 * 4 * trip)
    program = body.program()
    (loop,) = program.nodes
    assert (loop.trips, len(loop.body)) == (trips, 4)
    assert loop.number in program.together

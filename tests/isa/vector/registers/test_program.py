"""Programs of vector functions: their loops, and the values that calls one by one leave."""

import numpy as np
import pytest

from cubecore.isa.declare.registers import Registers
from cubecore.isa.vector.registers.folding import FoldedCall, FoldedLoop, folded
from cubecore.isa.vector.registers.vector_function import VectorFunction
from isa.vector.registers.recorded_body import Body

BYTES = 256


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
    return [n.entries.size if isinstance(n, FoldedCall) else (n.trips, tree(n.body)) for n in nodes]


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
    assert isinstance(program.nodes[0], FoldedLoop)
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

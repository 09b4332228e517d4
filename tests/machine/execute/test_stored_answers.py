"""Every engine leaves what the executor left when it was first written: hashes in tests/data."""

import pytest

from cubecore.errors import DeadlockError
from data_files import data
from machine.execute import answers

KEPT = data("executor")
DRAWN = range(0, answers.PROGRAMS, 101)
"""The programs of an ordinary run; `sweep` runs all."""


def test_all_programs_and_examples_are_kept():
    assert list(KEPT["programs"]) == [str(number) for number in range(answers.PROGRAMS)]
    assert list(KEPT["examples"]) == answers.names("kernels")
    assert list(KEPT["tik"]) == answers.names("tik")


def assert_kept(numbers):
    for number in numbers:
        words = KEPT["programs"][str(number)].split()
        in_order = [str(word) for word in answers.answer(number, "fast")]
        assert in_order == words[:3], f"program {number}"
        assert answers.program(number, "reference").split() == words, f"program {number}"


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(4))
def test_random_programs_leave_what_they_left(part):
    assert_kept(DRAWN[part::4])


def test_random_programs_that_end_run_in_lockstep():
    """Wrong ones, and those whose cores have little in common, too."""
    engines, wrong = [], 0
    for number in range(0, answers.PROGRAMS, 71):
        kernel, blocks, arguments = answers.launchable(number)
        try:
            run = kernel[blocks](*arguments)
        except DeadlockError:
            continue
        engines.append(run.engine)
        wrong += not run.clean
    assert set(engines) == {"lockstep"}
    assert wrong > len(engines) // 5


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(40))
def test_every_random_program_leaves_what_it_left(part):
    assert_kept(range(part, answers.PROGRAMS, 40))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("name", answers.names("kernels"))
@pytest.mark.thinned(20)
def test_examples_leave_what_they_left(name, engine):
    assert answers.example(name, engine) == KEPT["examples"][name]


@pytest.mark.parametrize("name", answers.names("tik"))
@pytest.mark.thinned(4)
def test_examples_of_tik_leave_what_they_left(name):
    assert answers.tik_example(name) == KEPT["tik"][name]

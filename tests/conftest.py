"""Goldens: what a test holds a timeline or a report to, in a file of the test's name.

And how Hypothesis draws: the same examples in every ordinary run, new ones in sweeps.
"""

import fcntl
import gc
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from cubecore.workflows.calibration.validation import Validation

REFRESH = "--refresh-goldens"
WHOLE = "--every-case"
ORDINARY = "not sweep"
"""The marker expression of the run without sweeps, as pyproject.toml has it."""


os.environ["LC_ALL"] = "C.UTF-8"  # answers are English, whatever the developer's system speaks
os.environ.setdefault("CUBECORE_DEBUG", "1")  # an internal error fails its test with a traceback


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(REFRESH, action="store_true", help="write what tests find as their goldens")
    parser.addoption(WHOLE, action="store_true", help="draw every case of a thinned test")


def pytest_configure(config: pytest.Config) -> None:
    ordinary = config.option.markexpr == ORDINARY
    few = {"max_examples": 25} if ordinary else {}
    settings.register_profile("chosen", deadline=None, database=None, derandomize=ordinary, **few)
    settings.load_profile("chosen")
    gc.disable()  # all that a collection makes is there to the end: half its time was gc's


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make sweeps of the cases of a thinned test that an ordinary run leaves out.

    An ordinary run does not even collect sweeps, but one of each test that it would otherwise lack:
    they are half of all tests. By its id a case is found there with `-m ""`.
    """
    yield
    config, calls = metafunc.config, metafunc._calls
    marker = metafunc.definition.get_closest_marker("thinned")
    if marker is not None and not config.getoption(WHOLE):
        name = metafunc.definition.name
        drawn = sorted(calls, key=lambda call: crc32(f"{name}[{call.id}]".encode()))
        for call in drawn[-(-len(drawn) // marker.args[0]) :]:
            call.marks.append(pytest.mark.sweep.mark)
    if config.option.markexpr == ORDINARY:
        whole = metafunc.definition.get_closest_marker("sweep") is not None
        drawn = [c for c in calls if not whole and all(m.name != "sweep" for m in c.marks)]
        calls[:] = drawn or calls[:1]


MADE_ONCE = {"published"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of the published points one after another.

    No process waits then for what one of them makes, which takes longest of all.
    """
    items.sort(key=lambda item: not MADE_ONCE & set(getattr(item, "fixturenames", ())))


@pytest.fixture(autouse=True, scope="module")
def _at_the_root(pytestconfig: pytest.Config) -> None:
    """Begin each module in the checkout, by which files are named, wherever another one went."""
    os.chdir(pytestconfig.rootpath)


@pytest.fixture
def drawn_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of what a test draws: the same in every ordinary run, a new one in sweeps."""
    ordinary = request.config.option.markexpr == ORDINARY
    seed = 0 if ordinary else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    return seed


@pytest.fixture(scope="module")
def chosen(request: pytest.FixtureRequest) -> Callable[[str], list[dict[str, Any]]]:
    """Return the parameters of each case of a test of the module that this run has.

    Kernels are compiled together, and those that no test of this run launches not at all.
    """
    items = [item for item in request.session.items if item.path == request.path]
    functions = [item for item in items if isinstance(item, pytest.Function)]
    return lambda test: [item.callspec.params for item in functions if item.originalname == test]


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Return the check of a value against the test's golden; with the flag it becomes that."""
    folder = Path(request.path).parent / "goldens"
    name = request.node.name.removeprefix("test_").replace("[", ".").rstrip("]")
    path = folder / f"{name}.json"

    def check(value: Any) -> None:
        if request.config.getoption(REFRESH):
            folder.mkdir(exist_ok=True)
            path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        assert path.exists(), f"{path.name} must exist; pytest {REFRESH} writes it"
        wanted = json.loads(path.read_text(encoding="utf-8"))
        assert value == wanted, f"{path.name} says otherwise; pytest {REFRESH} takes what is new"

    return check


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory):
    """Return what makes a value once for all processes of a run, and shares it in a file."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent

    def made(name: str, make: Callable[[], Any]) -> Any:
        path = folder / f"{name}.pickle"
        with (folder / f"{name}.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_bytes(pickle.dumps(make()))
        return pickle.loads(path.read_bytes())

    return made


DRAWN = 4
"""An ordinary run times one of so many published points."""


@pytest.fixture(scope="session")
def published(made_once, pytestconfig: pytest.Config) -> "Validation":
    """Return the validation on published points: in sweeps on all, else on a few."""
    from cubecore.workflows.calibration.measured_points import published as points
    from cubecore.workflows.calibration.validate import published_validation, validation_of

    if pytestconfig.option.markexpr == ORDINARY:
        return made_once("drawn", lambda: validation_of(points()[::DRAWN]))
    return made_once("published", published_validation)

"""A stand-in for the frame of the vendor's unit tests: it notes what a test asks for.

A test file describes cases, or functions that call operators themselves.
"""

import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FRAMES = ("OpUT", "BroadcastOpUT", "ElementwiseOpUT", "ReduceOpUT")
_ABSENT = (
    *("op_test_frame.common", "op_test_frame.common.precision_info", "op_test_frame.utils"),
    *("tensorflow", "tensorflow.python", "tensorflow.python.ops", "tensorflow.python.framework"),
    *("tensorflow.python.platform", "tensorflow.python.eager", "tensorflow.compat"),
    *("tensorflow.compat.v1", "torch", "torch.nn", "torch.nn.functional", "torch.autograd"),
    "sympy",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A case that a test describes: an operator, its chips and its arguments."""

    module: str
    function: str
    chips: Any
    case: dict[str, Any]


@dataclass(slots=True)
class Tests:
    """What a test file asks for: `functions` call operators of `modules` themselves."""

    cases: list[Asked] = field(default_factory=list)
    functions: list[Callable[..., Any]] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


class _Anything:
    """What stands in for whatever a test imports to compute what it expects."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        pass

    def __call__(self, *_args: Any, **_options: Any) -> "_Anything":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Module(types.ModuleType):
    """A module of anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def _noting(found: Tests) -> type:
    """Return the class that notes cases."""

    class Noting(_Anything):
        def __init__(
            self, name: str, module: str | None = None, function: str | None = None, *_rest: Any
        ) -> None:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name or "")
            spelt = re.sub(r"_(?=[a-z]_)", "_", words.lower())
            self.module = module or f"impl.{spelt}"
            self.function = function or self.module.rpartition(".")[2]

        def add_case(self, chips: Any = None, case: Any = None, *_rest: Any, **_more: Any) -> None:
            if isinstance(case, dict) and "params" in case:
                found.cases.append(Asked(self.module, self.function, chips, case))

        add_precision_case = add_case

        def add_cust_test_func(
            self, chips: Any = None, test_func: Any = None, *_rest: Any, **_more: Any
        ) -> None:
            if callable(function := test_func or chips):
                found.functions.append(function)
                found.modules.append(self.module)

    return Noting


def run_tests(path: Path, found: Tests) -> None:
    """Run a test file in this process, whose modules it changes; note what it asks for.

    Where it raises, what it asked for before is noted.
    """
    made = {name: _Module(name) for name in ("op_test_frame", "op_test_frame.ut", *_ABSENT)}
    for module in made.values():
        module.__path__ = []
    vars(made["op_test_frame.ut"]).update(dict.fromkeys(_FRAMES, _noting(found)))
    sys.modules.update(made)
    text = path.read_text(encoding="utf-8", errors="replace")
    exec(compile(text, str(path), "exec"), {"__name__": "cases", "__file__": str(path)})

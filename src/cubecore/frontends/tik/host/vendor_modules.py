"""The small modules that TIK programs import, provided inside one process and only on request."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Self

from cubecore.frontends.tik.host import shape_util
from cubecore.frontends.tik.host.imports import ROOTS
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.platform import platform_names
from cubecore.frontends.tik.trace import buffers, values
from cubecore.frontends.tik.trace.errors import unable
from cubecore.frontends.tik.trace.language import Dprofile
from cubecore.frontends.tik.trace.tensor import Tensor

_SCOPES = {
    "scope_gm": buffers.SCOPE_GM,
    "scope_ubuf": buffers.SCOPE_UB,
    "scope_cbuf": buffers.SCOPE_L1,
    "scope_cbuf_out": buffers.SCOPE_L1OUT,
    "scope_ca": buffers.SCOPE_L0A,
    "scope_cb": buffers.SCOPE_L0B,
    "scope_cc": buffers.SCOPE_L0C,
}


def _passes(
    *_kinds: object, **_options: object
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that leaves a function as it is, its result included."""

    def decorate(function: Callable[..., object]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            return function(*args, **kwargs)

        return call

    return decorate


def _elements(shape: Sequence[int], *_args: object, **_kwargs: object) -> int:
    """Return how many elements a shape has: what the kit's checks of a size give back."""
    return math.prod(shape)


def _nothing(*_args: object, **_kwargs: object) -> None:
    return None


def tik_names() -> dict[str, Any]:
    """Return the names of the module `tik` that programs import."""
    return {
        **_SCOPES,
        "Tik": Tik,
        "TikContainer": Tik,
        "Dprofile": Dprofile,
        "Tensor": Tensor,
        "Scalar": values.Scalar,
        "Expr": values.Value,
        "all": values.all_of,
        "any": values.any_of,
        "negate": values.negate,
    }


_PLAIN = ("INT", "FLOAT", "STR", "BOOL", "TYPE")
_KINDS = (*_PLAIN, *(f"LIST_{kind}" for kind in _PLAIN), "LIST_LIST_INT", "LIST_LIST_FLOAT")
_CHECK_CONSTANTS = (
    *("REQUIRED_INPUT", "OPTION_INPUT", "DYNAMIC_INPUT", "KERNEL_NAME"),
    *("REQUIRED_OUTPUT", "OPTION_OUTPUT", "DYNAMIC_OUTPUT"),
    *(f"{need}_ATTR_{kind}" for need in ("REQUIRED", "OPTION") for kind in _KINDS),
)
_CHECK_FUNCTIONS = (
    *("check_dtype", "check_shape", "check_shape_rule", "check_dtype_rule", "check_kernel_name"),
    "check_format",
)
_SIZE_CHECKS = ("check_shape_size", "check_tensor_shape_size")


def _unchanged(*_args: object, **_options: object) -> AbstractContextManager[None]:
    """Enter a build with other settings: nothing is built here."""
    return nullcontext()


class _Checks(ModuleType):
    """A module of checks: decorators pass, constants are their own names, functions do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.isupper():
            return name.lower()
        if name in _SIZE_CHECKS:
            return _elements
        return _passes if name in {"check_op_params", "check_input_type"} else _nothing


class _Errors(ModuleType):
    """A module of ``raise_err_*`` functions."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def fail(*args: object, **_kwargs: object) -> None:
            raise RuntimeError(f"{name}: {', '.join(str(a) for a in args)}")

        return fail


class _Refused:
    """A name of a module that there is not: it may be passed around, and refuses to be called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        language = "the vendor's tensor-expression language"
        raise unable(self._name, f"{self._name} is not supported: it needs {language}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _passes if name.startswith("register") else _Refused(f"{self._name}.{name}")


class _Placeholder:
    """A described tensor: programs make some beside their TIK kernel, without use."""

    def __init__(self, shape: Any, dtype: str = "float32", name: str = "", **_: object) -> None:
        self.shape, self.dtype, self.name = tuple(shape), dtype, name


class _Absent(ModuleType):
    """A module of the vendor's tensor-expression language: importing is fine, using is not."""

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        return _Refused(self.__name__)()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("register"):
            return _passes  # they enter an operator into the kit's tables
        return _Refused(f"{self.__name__}.{name}")


class _Package(ModuleType):
    """A package: what is asked of it and not there is a module below it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return import_module(f"{self.__name__}.{name}")


class _Platform(_Absent):
    """A platform module: constants beyond the known ones are the names that they stand for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("ASCEND_"):
            return f"Ascend{name.removeprefix('ASCEND_')}"
        return name if name.isupper() else super().__getattr__(name)


class _Fluent:
    """The stand-in for an operator's description to a framework: every call returns itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        return None

    def __call__(self, *_args: object, **_kwargs: object) -> "_Fluent":
        return self

    def __getattr__(self, name: str) -> "_Fluent":
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _module(kind: type[ModuleType], name: str, **names: object) -> ModuleType:
    module = kind(name)
    module.__path__ = []
    for key, value in names.items():
        setattr(module, key, value)
    return module


_CHECKS = (
    "te.utils.para_check",
    "tbe.common.utils.para_check",
    "te.utils.op_utils",
    "topi.cce.util",
)
_ERRORS = (
    "tbe.common.utils.errormgr",
    *(
        f"{package}.error_manager_{kind}"
        for package in ("te.utils.error_manager", "tbe.common.utils.errormgr")
        for kind in ("vector", "cube", "util", "conv2d")
    ),
)
_DSL = ("te.lang.cce", "te.tvm", "tbe.dsl", "tbe.tvm", "te.platform.fusion_manager")
_PACKAGES = (
    *(
        "te",
        "te.utils",
        "te.utils.error_manager",
        "te.lang",
        "tbe",
        "tbe.common",
        "topi",
        "topi.cce",
    ),
    *("tbe.common.utils", "tbe.common.context", "te.domain", "te.domain.rl_bank"),
)
_PLATFORMS = (
    *("te.platform", "tbe.common.platform", "te.platform.cce_conf", "te.platform.cce_params"),
    *("tbe.common.platform.platform_info", "te.platform.cce_build", "te.platform.cce_intrin"),
)


def modules() -> dict[str, ModuleType]:
    """Return every shim by its full name; packages hold their children as attributes."""
    by_name: dict[str, ModuleType] = {}
    for name in _PACKAGES:
        by_name[name] = _module(_Package, name)
    for name in ("te.tik", "tbe.tik"):
        by_name[name] = _tik_module(name)
    for name in _PLATFORMS:
        by_name[name] = _module(_Platform, name, **_SCOPES, **platform_names())
    for kind, names in ((_Checks, _CHECKS), (_Errors, _ERRORS), (_Absent, _DSL)):
        for name in names:
            by_name[name] = _module(kind, name)
    for name in _CHECKS:
        # by name too: programs import all of the module
        vars(by_name[name]).update({key: key.lower() for key in _CHECK_CONSTANTS})
        vars(by_name[name]).update(dict.fromkeys(_CHECK_FUNCTIONS, _nothing))
        vars(by_name[name]).update(dict.fromkeys(_SIZE_CHECKS, _elements))
        vars(by_name[name]).update(check_op_params=_passes, check_input_type=_passes, math=math)
    for name in ("te.tvm", "tbe.tvm"):
        by_name[name].const = lambda value, *_, **_options: value  # type: ignore[attr-defined]
        by_name[name].placeholder = _Placeholder  # type: ignore[attr-defined]
        # operators of tensor expressions that stand beside TIK's make these as they are imported
        for attribute in ("thread_axis", "var"):
            setattr(by_name[name], attribute, lambda *_, **_options: _Refused("a tvm expression"))
    build: dict[str, object] = {
        "build_config": {},
        "build_config_update": lambda *_, **_options: nullcontext(),
    }
    vars(by_name["te.platform.cce_build"]).update(build)
    for name in ("te.platform", "te.platform.cce_conf"):
        by_name[name].CceProductParams = Dprofile  # type: ignore[attr-defined]
    for name in ("te.utils.shape_util", "tbe.common.utils.shape_util"):
        by_name[name] = _module(_Absent, name, **shape_util.NAMES)
    for name in ("tbe.common.context", "tbe.common.context.op_context"):
        context: dict[str, object] = {"get_context": _Fluent(), "OpContext": _Fluent()}
        by_name[name] = _module(ModuleType, name, **context)
    by_name["tbe.common.utils.log"] = _module(_Checks, "tbe.common.utils.log")
    config: dict[str, object] = {"get_current_build_config": lambda *_: False}
    by_name["tbe.common.buildcfg"] = _module(_Absent, "tbe.common.buildcfg", **config)
    if find_spec("mindspore") is None:
        described: dict[str, object] = {
            "op_info_register": _passes,
            "TBERegOp": _Fluent(),
            "DataType": _Fluent(),
        }
        for name in ("mindspore", "mindspore.ops", "mindspore.ops.op_info_register"):
            by_name[name] = _module(ModuleType, name, **described)
    for name, module in by_name.items():
        parent, _, child = name.rpartition(".")
        if parent in by_name:
            setattr(by_name[parent], child, module)
    return by_name


def _tik_module(name: str) -> ModuleType:
    module = _module(ModuleType, name, **tik_names())
    kinds: dict[str, object] = {"Scalar": values.Scalar, "InputScalar": values.InputScalar}
    scalar = _module(ModuleType, f"{name}.api.tik_scalar", **kinds)
    tensor = _module(ModuleType, f"{name}.api.tik_tensor", Tensor=Tensor)
    module.api = _module(ModuleType, f"{name}.api", tik_scalar=scalar, tik_tensor=tensor)  # type: ignore[attr-defined]
    expr = _module(ModuleType, f"{name}.tik_lib.tik_expr", Expr=values.Value)
    module.tik_lib = _module(ModuleType, f"{name}.tik_lib", tik_expr=expr)  # type: ignore[attr-defined]
    module.ir_builder_lib = _module(ModuleType, f"{name}.ir_builder_lib")  # type: ignore[attr-defined]
    return module


class _Finder(MetaPathFinder, Loader):
    """Finds the shims; what else a kit has is there to import, and refuses to be used."""

    def __init__(self, by_name: dict[str, ModuleType]) -> None:
        self._by_name = by_name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a shim comes from."""
        if fullname.partition(".")[0] in ROOTS and fullname not in self._by_name:
            self._by_name[fullname] = _module(_Absent, fullname)
        if fullname not in self._by_name:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the shim."""
        return self._by_name[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it is complete."""


@contextmanager
def provided() -> Iterator[None]:
    """Let programs import the shims until the block ends; what was there before comes back."""
    roots = {*ROOTS, *({"mindspore"} if find_spec("mindspore") is None else ())}
    kept = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in roots}
    for name in kept:
        del sys.modules[name]
    finder = _Finder(modules())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] in roots]:
            del sys.modules[name]
        sys.modules.update(kept)

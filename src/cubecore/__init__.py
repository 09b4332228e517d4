"""cubecore: plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core.

The four questions are four functions: `plan`, `check`, `run` and `time`; `compare`, `explain` and
`chip` help; `kernel` makes a kernel of a Python function. They load what they need on first use, so
that importing cubecore costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cubecore.chips import chip
    from cubecore.errors import CubecoreError, DeadlockError, NoLegalTilingError, RequestError
    from cubecore.frontends import capi
    from cubecore.frontends.allocation import Struct
    from cubecore.frontends.debugging import Debugging, debug
    from cubecore.frontends.handle import CoreHandle
    from cubecore.frontends.kernel import Kernel, KernelRun, kernel
    from cubecore.frontends.places import KernelError
    from cubecore.frontends.pointer import Pointer
    from cubecore.tiling.export import load_tiling
    from cubecore.tiling.mx import MxTypePara
    from cubecore.tiling.problem import Problem
    from cubecore.tiling.setters import (
        BatchMatmulTiling,
        MatmulApiTiling,
        MatmulConfigParams,
        MultiCoreMatmulTiling,
    )
    from cubecore.tiling.struct import TCubeTiling
    from cubecore.workflows.check import check
    from cubecore.workflows.compare import compare
    from cubecore.workflows.explain import explain
    from cubecore.workflows.plan import plan
    from cubecore.workflows.run import run
    from cubecore.workflows.store import Store
    from cubecore.workflows.sweep import plan_many
    from cubecore.workflows.time import time
    from cubecore.workflows.validate import validate
    from cubecore.workflows.vary import sweep

__version__ = "0.1.0"

_HOMES = {
    "capi": "cubecore.frontends.capi",
    "chip": "cubecore.chips",
    "CoreHandle": "cubecore.frontends.handle",
    "CubecoreError": "cubecore.errors",
    "DeadlockError": "cubecore.errors",
    "debug": "cubecore.frontends.debugging",
    "Debugging": "cubecore.frontends.debugging",
    "NoLegalTilingError": "cubecore.errors",
    "RequestError": "cubecore.errors",
    "Kernel": "cubecore.frontends.kernel",
    "KernelError": "cubecore.frontends.places",
    "KernelRun": "cubecore.frontends.kernel",
    "Pointer": "cubecore.frontends.pointer",
    "Struct": "cubecore.frontends.allocation",
    "kernel": "cubecore.frontends.kernel",
    "load_tiling": "cubecore.tiling.export",
    "BatchMatmulTiling": "cubecore.tiling.setters",
    "MatmulApiTiling": "cubecore.tiling.setters",
    "MatmulConfigParams": "cubecore.tiling.setters",
    "MultiCoreMatmulTiling": "cubecore.tiling.setters",
    "MxTypePara": "cubecore.tiling.mx",
    "Problem": "cubecore.tiling.problem",
    "TCubeTiling": "cubecore.tiling.struct",
    "check": "cubecore.workflows.check",
    "compare": "cubecore.workflows.compare",
    "explain": "cubecore.workflows.explain",
    "plan": "cubecore.workflows.plan",
    "plan_many": "cubecore.workflows.sweep",
    "run": "cubecore.workflows.run",
    "Store": "cubecore.workflows.store",
    "sweep": "cubecore.workflows.vary",
    "time": "cubecore.workflows.time",
    "validate": "cubecore.workflows.validate",
}

_MODULES = {"capi"}

__all__ = [
    "BatchMatmulTiling",
    "CoreHandle",
    "CubecoreError",
    "DeadlockError",
    "Debugging",
    "Kernel",
    "KernelError",
    "KernelRun",
    "MatmulApiTiling",
    "MatmulConfigParams",
    "MultiCoreMatmulTiling",
    "MxTypePara",
    "NoLegalTilingError",
    "Pointer",
    "Problem",
    "RequestError",
    "Store",
    "Struct",
    "TCubeTiling",
    "capi",
    "check",
    "chip",
    "compare",
    "debug",
    "explain",
    "kernel",
    "load_tiling",
    "plan",
    "plan_many",
    "run",
    "sweep",
    "time",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module cubecore has no attribute {name}")
    home = import_module(_HOMES[name])
    value = home if name in _MODULES else getattr(home, name)
    globals()[name] = value
    return value

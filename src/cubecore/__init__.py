"""cubecore: plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core.

The four questions are four functions: `plan`, `check`, `run` and `time`; `compare`, `explain` and
`chip` help; `kernel` makes a kernel of a Python function. They load what they need on first use, so
that importing cubecore costs nothing.
"""

from cubecore.version import __version__

TYPE_CHECKING = False  # typing would be most of what importing cubecore costs
if TYPE_CHECKING:
    from cubecore.chips import chip
    from cubecore.errors import CubecoreError, DeadlockError, NoLegalTilingError, RequestError
    from cubecore.frontends.capi import constants as capi
    from cubecore.frontends.capi.allocation import Struct
    from cubecore.frontends.capi.core_handle import CoreHandle
    from cubecore.frontends.capi.pointer import Pointer
    from cubecore.frontends.cpp.launch.modules import inline, load
    from cubecore.frontends.cpp.operator_projects.operator_project import load_op
    from cubecore.frontends.kernels.debugging import Debugging, debug
    from cubecore.frontends.kernels.kernel import Kernel, kernel
    from cubecore.frontends.kernels.session import KernelRun
    from cubecore.frontends.matmul_tiling.setters import (
        BatchMatmulTiling,
        MatmulApiTiling,
        MatmulConfigParams,
        MultiCoreMatmulTiling,
    )
    from cubecore.frontends.source_locations import KernelError
    from cubecore.tiling.model.export import load_tiling
    from cubecore.tiling.model.mx_type_para import MxTypePara
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.workflows.calibration.validate import validate
    from cubecore.workflows.check import check
    from cubecore.workflows.compare import compare
    from cubecore.workflows.explain import explain
    from cubecore.workflows.model import model
    from cubecore.workflows.plan import plan
    from cubecore.workflows.run import run
    from cubecore.workflows.scripts.script import time_kernel
    from cubecore.workflows.sweep.plan_many import plan_many
    from cubecore.workflows.sweep.store import Store
    from cubecore.workflows.sweep.vary import sweep
    from cubecore.workflows.time import time
    from cubecore.workflows.tune import tune

_HOMES = {
    "capi": "cubecore.frontends.capi.constants",
    "chip": "cubecore.chips",
    "CoreHandle": "cubecore.frontends.capi.core_handle",
    "CubecoreError": "cubecore.errors",
    "DeadlockError": "cubecore.errors",
    "debug": "cubecore.frontends.kernels.debugging",
    "Debugging": "cubecore.frontends.kernels.debugging",
    "NoLegalTilingError": "cubecore.errors",
    "RequestError": "cubecore.errors",
    "Kernel": "cubecore.frontends.kernels.kernel",
    "KernelError": "cubecore.frontends.source_locations",
    "KernelRun": "cubecore.frontends.kernels.session",
    "Pointer": "cubecore.frontends.capi.pointer",
    "Struct": "cubecore.frontends.capi.allocation",
    "inline": "cubecore.frontends.cpp.launch.modules",
    "kernel": "cubecore.frontends.kernels.kernel",
    "load": "cubecore.frontends.cpp.launch.modules",
    "load_op": "cubecore.frontends.cpp.operator_projects.operator_project",
    "load_tiling": "cubecore.tiling.model.export",
    "BatchMatmulTiling": "cubecore.frontends.matmul_tiling.setters",
    "MatmulApiTiling": "cubecore.frontends.matmul_tiling.setters",
    "MatmulConfigParams": "cubecore.frontends.matmul_tiling.setters",
    "MultiCoreMatmulTiling": "cubecore.frontends.matmul_tiling.setters",
    "MxTypePara": "cubecore.tiling.model.mx_type_para",
    "Problem": "cubecore.tiling.model.problem",
    "TCubeTiling": "cubecore.tiling.model.tcubetiling",
    "check": "cubecore.workflows.check",
    "compare": "cubecore.workflows.compare",
    "explain": "cubecore.workflows.explain",
    "model": "cubecore.workflows.model",
    "plan": "cubecore.workflows.plan",
    "plan_many": "cubecore.workflows.sweep.plan_many",
    "run": "cubecore.workflows.run",
    "Store": "cubecore.workflows.sweep.store",
    "sweep": "cubecore.workflows.sweep.vary",
    "time": "cubecore.workflows.time",
    "time_kernel": "cubecore.workflows.scripts.script",
    "tune": "cubecore.workflows.tune",
    "validate": "cubecore.workflows.calibration.validate",
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
    "__version__",
    "capi",
    "check",
    "chip",
    "compare",
    "debug",
    "explain",
    "inline",
    "kernel",
    "load",
    "load_op",
    "load_tiling",
    "model",
    "plan",
    "plan_many",
    "run",
    "sweep",
    "time",
    "time_kernel",
    "tune",
    "validate",
]


def __getattr__(name: str) -> object:
    """Load a public name from where it lives."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module cubecore has no attribute {name}")
    home = import_module(_HOMES[name])
    value = home if name in _MODULES else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, and nothing that this module needs for itself."""
    return sorted(__all__)

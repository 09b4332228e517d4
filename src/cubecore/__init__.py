"""cubecore: plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core.

The four questions are four functions: `plan`, `check`, `run` and `time`; `compare`, `explain` and
`chip` help. They load what they need on first use, so that importing cubecore costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cubecore.chips import chip
    from cubecore.errors import CubecoreError, NoLegalTilingError, RequestError
    from cubecore.tiling.export import load_tiling
    from cubecore.tiling.mx import MxTypePara
    from cubecore.tiling.problem import Problem
    from cubecore.tiling.setters import BatchMatmulTiling, MatmulApiTiling, MultiCoreMatmulTiling
    from cubecore.tiling.struct import TCubeTiling
    from cubecore.workflows.check import check
    from cubecore.workflows.compare import compare
    from cubecore.workflows.explain import explain
    from cubecore.workflows.plan import plan
    from cubecore.workflows.run import run
    from cubecore.workflows.store import Store
    from cubecore.workflows.sweep import plan_many
    from cubecore.workflows.time import time

__version__ = "0.1.0"

_HOMES = {
    "chip": "cubecore.chips",
    "CubecoreError": "cubecore.errors",
    "NoLegalTilingError": "cubecore.errors",
    "RequestError": "cubecore.errors",
    "load_tiling": "cubecore.tiling.export",
    "BatchMatmulTiling": "cubecore.tiling.setters",
    "MatmulApiTiling": "cubecore.tiling.setters",
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
    "time": "cubecore.workflows.time",
}

__all__ = [
    "BatchMatmulTiling",
    "CubecoreError",
    "MatmulApiTiling",
    "MultiCoreMatmulTiling",
    "MxTypePara",
    "NoLegalTilingError",
    "Problem",
    "RequestError",
    "Store",
    "TCubeTiling",
    "check",
    "chip",
    "compare",
    "explain",
    "load_tiling",
    "plan",
    "plan_many",
    "run",
    "time",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module cubecore has no attribute {name}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value

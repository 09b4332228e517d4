"""A torch_npu without an NPU, for `kernel-bench eval --device cpu`: what its guards look up.

The suite takes a missing torch_npu for a changed clock. Nothing here measures a time; what would
need a device raises.
"""

import types

import torch

__version__ = "0"


def _none(*_, **__):
    raise RuntimeError("this torch_npu of cubecore has no NPU: run with --device cpu --no-perf")


def _device_count():
    return 0


def _is_available():
    return False


def _synchronize(*_):
    return None


class Event:
    """An event of a stream, which needs a device."""

    record = elapsed_time = _none


npu = types.ModuleType("torch_npu.npu")
npu.Event, npu.synchronize, npu.set_device = Event, _synchronize, _none
npu.device_count, npu.is_available, npu.empty_cache = _device_count, _is_available, _synchronize
profiler = types.ModuleType("torch_npu.profiler")
profiler.profile = profiler.schedule = profiler.tensorboard_trace_handler = _none
profiler._ExperimentalConfig = _none  # noqa: SLF001 - a name of the suite's list
if not hasattr(torch, "npu"):
    torch.npu = npu

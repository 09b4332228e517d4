"""A launch's tensors in global memory: one for each array that the kernel is given."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from cubecore.errors import refuse
from cubecore.frontends.kernels.host_tensors import HostTensor
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor


def private_memory(_: Sequence[int]) -> GlobalMemory:
    """Return global memory of this process."""
    return GlobalMemory()


def allocated(
    gm: GlobalMemory, hosts: Sequence[HostTensor], outputs: Iterable[str], scratch: Iterable[str]
) -> dict[str, tuple[HostTensor, GlobalTensor]]:
    """Return the tensors by name, each on the host and in global memory.

    `outputs` and `scratch` name those that the kernel finds unwritten. An array that is given twice
    has one global tensor; it holds what the array holds, unless both are outputs.

    Raises
    ------
    RequestError
        If an array that the kernel writes is read-only, or overlaps another in part.
    """
    unwritten, alone = {*outputs, *scratch}, {*scratch}
    read = {host.at for host in hosts if host.name not in unwritten}
    tensors: dict[str, tuple[HostTensor, GlobalTensor]] = {}
    for host in hosts:
        if host.name in unwritten and not host.raw.flags.writeable:
            raise refuse(host.name, "be writable", "a read-only array that the kernel writes")
        tensor = _shared(alone, host, tensors.values())
        if tensor is None and host.at in read:
            tensor = gm.allocate_from(host.name, host.raw, stays=True)
        elif tensor is None:
            tensor = gm.allocate(host.name, host.raw.size, scratch=host.name in alone)
        tensors[host.name] = host, tensor
    return tensors


def _shared(
    alone: AbstractSet[str], host: HostTensor, others: Iterable[tuple[HostTensor, GlobalTensor]]
) -> GlobalTensor | None:
    """Return the global tensor of the same array, if it has one; those `alone` share none.

    Raises
    ------
    RequestError
        If an array overlaps another in part, or a scratch array is another one as well.
    """
    for other, tensor in others:
        if not np.may_share_memory(host.raw, other.raw):
            continue
        if host.at == other.at and not {host.name, other.name} & alone:
            return tensor
        got = "the same bytes" if host.at == other.at else "some of its bytes"
        raise refuse(host.name, f"share no memory with {other.name}", got, "pass a copy")
    return None

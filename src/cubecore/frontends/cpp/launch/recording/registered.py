"""Kernels as a host program's file registers them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegisteredKernel:
    """A kernel of a host program, as its file says: name, kind, and where it is written."""

    name: str
    kind: str
    file: str
    line: int
    auto_sync: bool = True

"""A C++ file as a module of Python: its kernels by their names, each compiled when asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.frontends.cpp.launch.kernels import CppKernel, kernel_of
from cubecore.frontends.cpp.rewriting.source import Source, source_of, structs_text


class Module:
    """The kernels of a C++ file: ``module.add_custom[8](x, y, z, 16384)``.

    Each kernel is compiled when it is first asked for, and kept.
    """

    def __init__(self, source: Source, options: Mapping[str, Any]) -> None:
        self._source, self._options = source, dict(options)
        self._kernels: dict[str, CppKernel] = {}

    def __getattr__(self, name: str) -> CppKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> CppKernel:
        """Return a kernel by its name, with template arguments: ``module["mmad<256,64>"]``.

        Raises
        ------
        RequestError
            If there is no such kernel, or it does not compile.
        """
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = kernel_of(self._source, name, **self._options)
        return kernel

    def tiling(self, name: str, **fields: Any) -> NDArray[np.uint8]:
        """Return tiling data: the bytes of one of the file's structs.

        Parameters
        ----------
        name : str
            The struct's name.
        **fields : int or float or sequence
            A value for each of its fields.

        Returns
        -------
        array of uint8
            The struct's bytes, padding included, ready to be a kernel's argument.

        Raises
        ------
        RequestError
            If there is no such struct or field, or a value does not have the field's type.
        """
        from cubecore.frontends.cpp.launch.tiling_data import packed, struct_named

        return packed(*struct_named(structs_text(self._source), name), fields)

    def __dir__(self) -> list[str]:
        return [entry.name for entry in self._source.scan.entries]


def load(path: str | Path, defines: Mapping[str, object] | None = None, **options: Any) -> Module:
    """Return the kernels of a C++ file, each compiled when it is first asked for.

    Parameters
    ----------
    path : str or Path
        The file: .cpp, .cc, .c, .asc or .cce.
    defines : mapping or None
        Macros: ``{"DTYPE_X": "half"}`` is ``-D DTYPE_X=half``.
    **options : object
        Fields of `LaunchOptions`: chip, settings, checks, limit, order, trace, engine; outputs and
        scratch, names of parameters (`Kernel.using`); and auto_sync, False for kernels that are
        built with ``--cce-auto-sync=off``.

    Returns
    -------
    Module
        The kernels by their names.

    Raises
    ------
    RequestError
        If the file cannot be read.

    Examples
    --------
    >>> module = cubecore.load("kernel.cpp")  # doctest: +SKIP
    >>> module.add_custom[8](x, y, z, 16384)  # doctest: +SKIP
    """
    return Module(source_of(path, defines), options)


def inline(text: str, defines: Mapping[str, object] | None = None, **options: Any) -> Module:
    """Return the kernels of a C++ text, as `load` does those of a file.

    Parameters
    ----------
    text : str
        The C++ source. Reports call it ``inline.cpp`` and count its lines.
    defines : mapping or None
        Macros: ``{"DTYPE_X": "half"}`` is ``-D DTYPE_X=half``.
    **options : object
        Fields of `LaunchOptions`: chip, settings, checks, limit, order, trace, engine; outputs and
        scratch, names of parameters (`Kernel.using`); and auto_sync, False for kernels that are
        built with ``--cce-auto-sync=off``.

    Returns
    -------
    Module
        The kernels by their names.

    Examples
    --------
    >>> module = cubecore.inline('extern "C" __global__ __aicore__ void f(GM_ADDR x) {}')
    >>> dir(module)
    ['f']
    """
    named = tuple(k if v is None else f"{k}={v}" for k, v in (defines or {}).items())
    return Module(Source(Path("inline.cpp").absolute(), text, named), options)

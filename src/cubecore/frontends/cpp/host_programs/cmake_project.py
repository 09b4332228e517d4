"""CMake projects of kernels: the settings under which they are built with cubecore c++."""

import os
import shlex
import sys

from cubecore.frontends.cpp.files import HERE, VENDOR_LIBRARIES

_CMAKE = HERE / "cmake"
_TOOLKITS = ("ASCEND_HOME_PATH", "ASCEND_INSTALL_PATH")
"""Variables by which a project's own script finds the toolkit's folder."""


def vendor_libraries() -> tuple[str, ...]:
    """Return the names of the vendor's libraries that programs link, and cubecore stands for."""
    return VENDOR_LIBRARIES


def settings() -> dict[str, str]:
    """Return the variables under which CMake finds the package ASC, its compiler and a toolkit.

    Kernel-launch projects look for their functions below the toolkit's folder.
    """
    before = os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep)
    paths = [str(_CMAKE), *(path for path in before if path and path != str(_CMAKE))]
    return {
        "CMAKE_PREFIX_PATH": os.pathsep.join(paths),
        "CUBECORE_PYTHON": sys.executable,
        **dict.fromkeys(_TOOLKITS, str(HERE)),
    }


def environment_text() -> str:
    """Return the settings as commands of a POSIX shell."""
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in settings().items())

"""Names that kernels of an architecture do not have: refused, with what replaces them."""

import re

from cubecore.errors import unable
from cubecore.frontends.cpp.documented import of_2201
from cubecore.frontends.cpp.rewriting.threads import THREAD_VARIABLES
from cubecore.frontends.cpp.toolchain.api_names import of_3510

_GROUPS = "cooperative_groups"


def of_another_arch(text: str, name: str, arch: str, where: str) -> Exception | None:
    """Return the refusal of a name that the other architecture has; `text` holds a poisoned one.

    Of groups of threads, which no architecture has here, it is the namespace.
    """
    if _GROUPS in text:
        remedy = "use asc_syncthreads and the functions of warps"
        return unable(_GROUPS, f"{where}: {_GROUPS} is not provided", remedy)
    if "poisoned" in text:  # documented_names.txt says what replaces it
        gone = next(filter(of_2201().__contains__, re.findall(r"\w+", text)), "")
        full = f"AscendC::{gone}"
        return unable(full, f"{where}: {full} is of architecture 2201", of_2201().get(gone, ""))
    remedy = "run it with --chip Ascend950PR_9589"
    if arch != "3510" and name in THREAD_VARIABLES:
        sentence = f"{where}: {name} is of threads (SIMT), which architecture 3510 runs"
        return unable(name, sentence, remedy)
    if arch != "2201" or name not in of_3510():
        return None
    full = name if name.islower() or name.startswith("__") else f"AscendC::{name}"
    return unable(full, f"{where}: {full} is of architecture 3510", remedy)

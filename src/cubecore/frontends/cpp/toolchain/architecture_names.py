"""Names that kernels of an architecture do not have: refused, with what replaces them."""

import re
from collections.abc import Mapping
from functools import cache

from cubecore.errors import one_of, refuse, unable
from cubecore.frontends.cpp.documented import of_2201
from cubecore.frontends.cpp.rewriting.threads import THREAD_VARIABLES
from cubecore.frontends.cpp.toolchain.api_names import is_missing, of_3510, of_tensor_api

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
    if (endings := _with_an_ending(name, arch)) and is_missing(name):
        listed = one_of(endings).removeprefix("be ") if len(endings) > 1 else endings[0]
        return unable(name, f"{where}: {name} needs an ending", f"use {listed}")
    if arch == "3510" and name in of_2201():
        full = f"AscendC::{name}"
        return unable(full, f"{where}: {full} is of architecture 2201", of_2201()[name])
    if arch == "3510":
        return _lacking_conversion(name, where) or _of_the_c_api_of_2201(name, where)
    remedy = "run it with --chip Ascend950PR_9589"
    if name in THREAD_VARIABLES:
        sentence = f"{where}: {name} is of threads (SIMT), which architecture 3510 runs"
        return unable(name, sentence, remedy)
    if arch == "2201" and "'AscendC::Te'" in text and name in of_tensor_api():
        full = f"AscendC::Te::{name}"
        return unable(full, f"{where}: {full} is of architecture 3510", remedy)
    if arch != "2201" or name not in of_3510():
        return None
    full = name if name.islower() or name.startswith("__") else f"AscendC::{name}"
    return unable(full, f"{where}: {full} is of architecture 3510", remedy)


def _with_an_ending(name: str, arch: str) -> list[str]:
    """Return the functions of the C API that a name begins: those of its roundings, its types."""
    from cubecore.frontends.cpp.toolchain.generated.capi_header import names
    from cubecore.isa.vector.registers.c_api.names import c_names

    if not name.startswith("asc_"):
        return []
    known = {*names(arch), *(c_names() if arch == "3510" else ())}
    return sorted(each for each in known if re.fullmatch(rf"{name}_[a-z0-9]+", each))


def _of_the_c_api_of_2201(name: str, where: str) -> Exception | None:
    """Return the refusal of a function of the C API whose name no function of 3510 has."""
    from cubecore.frontends.capi.calls.binding import forms
    from cubecore.frontends.cpp.toolchain.generated.capi_header import names

    plain = name.removesuffix("_sync")
    if plain not in names("2201") or plain in {*names("3510"), *of_3510()}:
        return None
    remedy = "run it with --chip Ascend910B3"
    if forms(plain, "2201")[0].kind.carried:  # 3510's vector unit has no such call on memory
        remedy = "use registers in a function with __simd_vf__"
    return unable(name, f"{where}: {name} is of architecture 2201", remedy)


_TYPE = r"(?:half|float|bfloat16|u?int\d+(?:x2)?|hif8|e\dm\d(?:x2)?)"
_CONVERSION = re.compile(rf"asc_(?P<source>{_TYPE})2(?P<to>{_TYPE})(?:_[a-z0-9_]+)?")


@cache
def _conversions() -> Mapping[str, frozenset[str]]:
    """Return the types that registers of a type are converted to, as names of the C API say."""
    from cubecore.isa.vector.registers.c_api.names import c_names

    named = [match for name in c_names() if (match := _CONVERSION.fullmatch(name)) is not None]
    sources = {match["source"] for match in named}
    return {each: frozenset(m["to"] for m in named if m["source"] == each) for each in sources}


def _lacking_conversion(name: str, where: str) -> Exception | None:
    """Return the refusal of a conversion of the C API that the vector unit does not have."""
    asked = _CONVERSION.fullmatch(name)
    known = _conversions().get(asked["source"]) if asked is not None else None
    if asked is None or known is None or asked["to"] in known:
        return None
    need = f"convert {asked['source']} to {', '.join(sorted(known))}"
    return refuse(f"{where}: {name}", need, asked["to"])

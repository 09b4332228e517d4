"""Chips as TIK names them, and what a program asks about its platform."""

from cubecore.chips import chip
from cubecore.chips.model import JOINED_ARCHS, Chip
from cubecore.errors import RequestError
from cubecore.frontends.tik.trace.errors import located, refuse
from cubecore.frontends.tik.trace.run_options import run_options

DEFAULT_SOC = "Ascend310"
"""The default target of TIK (page Tik)."""
_SHORT = {
    "Ascend910": "Ascend910A",
    "Ascend310P": "Ascend310P3",
    "Ascend710": "Ascend310P3",
    "Ascend910B": "Ascend910B3",
}
_PROFILES = {
    ("v100", "mini"): "Ascend310",
    ("v100", "cloud"): "Ascend910A",
    ("v200", "aic"): "Ascend310P3",
    ("cloud", ""): "Ascend910A",
}
_ARCHS = (*JOINED_ARCHS, "2201")


def target(soc: str) -> Chip:
    """Return the chip that TIK calls `soc`, or the one that replaces it for this run.

    Raises
    ------
    RequestError
        If the chip is not in the catalogue, or its TIK calls are not known.
    """
    options = run_options()
    named = options.chip or soc
    try:
        chosen = chip(_SHORT.get(named, named)).what_if(options.settings or {})
    except RequestError as error:
        raise RequestError([located(violation) for violation in error.violations]) from None
    if chosen.arch not in _ARCHS:
        accepted = "Ascend310, Ascend310P, Ascend910 or a chip of arch 2201"
        raise refuse(
            "the target of TIK", f"be {accepted}", f"{named} of architecture {chosen.arch}"
        )
    return chosen


def profiled(arch: str, version: str) -> str:
    """Return the SoC of a ``tik.Dprofile``."""
    if (arch, version) not in _PROFILES:
        pairs = ", ".join(f"{a} {v}".strip() for a, v in _PROFILES)
        raise refuse("Dprofile", f"be one of {pairs}", f"{arch} {version}".strip())
    return _PROFILES[arch, version]


class Platform:
    """The platform set by ``set_current_compile_soc_info``: one for a process."""

    soc = DEFAULT_SOC

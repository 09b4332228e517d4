"""Names of the C API of architecture 2201 that no state of a functional model can represent."""

from collections.abc import Mapping
from types import MappingProxyType

from cubecore.errors import RequestError, refuse

NOT_MODELLED: Mapping[str, str] = MappingProxyType(
    {
        "asc_get_system_cycle": "an execution has no clock; `time` predicts cycles",
        "asc_get_status": "sticky exception flags are not kept: the page does not say which "
        "instructions raise which",
        "asc_get_sys_virtual_base": "addresses are not translated",
        "asc_get_smmu_tag_version": "the page gives no chip's number",
        "asc_get_phy_stack_base": "no scalar stack is modelled",
        "asc_get_program_counter": "programs are trees without addresses",
        "asc_load_image_to_cbuf": "its image is where AIPP's registers say, which no name of the "
        "C API sets",
        "asc_get_arch_ver": "the page gives no version's number",
    }
)
"""Each with the reason."""


def not_modelled(name: str) -> RequestError | None:
    """Return the refusal of a name that is not modelled, None of any other."""
    reason = NOT_MODELLED.get(name.removesuffix("_sync"))
    if reason is None:
        return None
    return refuse(name, "have a state that represents it to be called", "none", reason)

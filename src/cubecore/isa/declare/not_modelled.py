"""Names of the C API that do not answer, each with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

from cubecore.errors import RequestError, unable

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
"""Of architecture 2201: no state of a functional model can represent them."""

_GROUPS = {
    "it is deprecated, and asc_get_squeeze_status reads the same": "asc_get_ar_spr",
    "a register has 256 B: a constant of C++ alone": "asc_get_vf_len",
    "the page does not say whether 8-bit floats are reinterpreted or converted": "asc_enable_hif8",
    "its page says that it repeats 2D loads, and gives it the fields of 3D ones": (
        "asc_set_l3d_rpt_b"
    ),
    "which of load3d's paddings a load takes is not said; asc_set_l13d_padding sets one": (
        "asc_set_l12l0_padding_val"
    ),
    "values in caches are not modelled, so that none can be dropped": "asc_dci",
    "the names of 2201 set the same; this one is deprecated": "asc_set_store_atomic_config_v2",
}
NOT_MODELLED_3510: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _GROUPS.items() for name in names.split()}
)
"""Of architecture 3510 alone."""


def why_not(name: str) -> str | None:
    """Return why a name, or its synchronous form, is not modelled; None of any other."""
    plain = name.removesuffix("_sync")
    return NOT_MODELLED.get(plain) or NOT_MODELLED_3510.get(plain)


def not_modelled(name: str) -> RequestError | None:
    """Return the refusal of a name that is not modelled, None of any other."""
    reason = why_not(name)
    if reason is None:
        return None
    return unable(name, f"{name} is not modelled", reason)

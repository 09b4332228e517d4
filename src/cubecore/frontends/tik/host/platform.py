"""The platform as TIK programs query it: sizes, names, and the calls that exist."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.frontends.tik.trace.errors import refuse
from cubecore.frontends.tik.trace.target import Platform, target
from cubecore.isa.catalogue import instructions

_KEYS = ("CORE_NUM", "UB_SIZE", "L1_SIZE", "L0A_SIZE", "L0B_SIZE", "L0C_SIZE")
_NAMES = ("SHORT_SOC_VERSION", "SOC_VERSION", "FULL_SOC_VERSION", "AICORE_TYPE")


def set_current_compile_soc_info(soc: str, *_core_type: object, **_options: object) -> str:
    """Choose the chip that later kernels are for; programs look for "success"."""
    target(soc)
    Platform.soc = soc
    return "success"


def get_soc_spec(key: str) -> Any:
    """Return a size or a name of the current chip."""
    chip = target(Platform.soc)
    value_of = {
        "CORE_NUM": chip.aic_count,
        "UB_SIZE": chip.ub_user_bytes,
        "L1_SIZE": chip.l1_bytes,
        "L0A_SIZE": chip.l0a_bytes,
        "L0B_SIZE": chip.l0b_bytes,
        "L0C_SIZE": chip.l0c_bytes,
        "SHORT_SOC_VERSION": _short(chip.name),
        "SOC_VERSION": chip.name,
        "FULL_SOC_VERSION": chip.name,
        "AICORE_TYPE": "AiCore",
    }
    if key not in value_of:
        raise refuse("get_soc_spec", f"be one of {', '.join((*_KEYS, *_NAMES))}", repr(key))
    return value_of[key]


def _short(name: str) -> str:
    for family in ("Ascend910A", "Ascend910ProA", "Ascend910PremiumA"):
        if name == family:
            return "Ascend910"
    return (
        "Ascend910B"
        if name.startswith("Ascend910")
        else name.rstrip("13")
        if "310P" in name
        else name
    )


def api_check_support(name: str, dtype: str = "") -> bool:
    """Return whether a TIK call exists on the current chip, for an element type if one is given."""
    call = name.rpartition(".")[2]
    call = _ALIKE.get(call, call)
    arch = target(Platform.soc).arch
    if call == "set_atomic_add":
        return arch in _ATOMIC and (not dtype or dtype in _ATOMIC[arch])
    if call in {"vconv", "vec_conv"}:  # the type is a pair, "f322f16", and maybe a rounding
        call = f"vconv_{dtype.rstrip(_ROUNDING_LETTERS)}"
    instruction = instructions().get(call)
    if instruction is None:
        instruction = next((c for c in instructions().values() if c.names.get("tik") == call), None)
    if instruction is None or arch not in instruction.archs:
        return False
    return not (
        arch == "m100" and dtype == "float32" and call in {"vexp", "vln", "vec_exp", "vec_ln"}
    )


_FLOATS = frozenset({"float16", "float32", "int16"})
_ATOMIC = {
    "1001": frozenset({"float32"}),
    "2002": _FLOATS,
    "2201": _FLOATS | {"int32", "int8", "bfloat16"},
}
"""The types that global memory adds, by architecture (TIK, chips); Ascend310 adds none."""
_ALIKE = {
    "load2dv1": "load_cbuf_to_ca",
    "cast_to": "vconv",
    "vlog": "vln",
    "vcmpsel": "vsel",
    "vsubs": "vadds",
    "sum": "vcadd",
    "reduce_sum": "vcadd",
}
"""Calls, TIK's and the tensor-expression language's, by the instructions behind them."""
_INTRINSICS = {
    "data_move_l12ub": "copy_cbuf_to_ubuf",
    "data_move_ub2l1": "copy_ubuf_to_cbuf",
    "fix_pipe_l0c2out": "copy_matrix_cc_to_gm",
    "fix_pipe_l0c2ub": "",
}
"""Moves by the names that programs ask for, and the instruction that each is."""
_ROUNDING_LETTERS = "acfroz"


def intrinsic_check_support(name: str, dtype: str = "") -> bool:
    """Return whether an instruction exists, by the compiler's name for it: "Intrinsic_vconv".

    A pair of types may end in a letter for the rounding, "f322s32c".
    """
    call = name.removeprefix("Intrinsic_")
    return api_check_support(_INTRINSICS.get(call, call), dtype.rstrip(_ROUNDING_LETTERS))


def get_bit_len(dtype: str) -> int:
    """Return the bits of an element."""
    return element_type(dtype).bits


def platform_names() -> dict[str, Any]:
    """Return what the platform modules hold."""
    socs = {
        f"ASCEND_{n.upper()}": f"Ascend{n}"
        for n in ("310", "310P", "310B", "610", "615", "910", "910B")
    }
    return {
        **{key: key for key in (*_KEYS, *_NAMES)},
        **socs,
        "set_current_compile_soc_info": set_current_compile_soc_info,
        "get_soc_spec": get_soc_spec,
        "api_check_support": api_check_support,
        "intrinsic_check_support": intrinsic_check_support,
        "get_bit_len": get_bit_len,
        "te_set_version": set_current_compile_soc_info,
        "te_set_l2_mode": lambda *_: None,
        "VECTOR_INST_BLOCK_WIDTH": 256,
        "VECTOR_INST_BLOCK_NUM": 8,
        "VECTOR_INST_MAX_REPEAT_TIMES": 255,
        "ELEMENTS_VECTOR_OP_FP16": 128,
        "BLOCK_IN": 16,
        "BLOCK_OUT": 16,
        "BLOCK_VECTOR": 1,
        "BLOCK_REDUCE_INT8": 32,
        "BLOCK_REDUCE": 16,
        "C0_SIZE": 16,
    }

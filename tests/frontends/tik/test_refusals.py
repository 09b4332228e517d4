"""What TIK refuses on the way: places, targets, calls that are not here; whole sentences."""

import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB, L1, L1OUT = "global", "local.UB", "local.L1", "local.L1OUT"
V310P = Dprofile("v200", "aic")


def sentence(body):
    """Return what a body raises, without the file and line that it starts with."""
    with pytest.raises(RequestError) as caught:
        body()
    where, _, rest = str(caught.value).partition(": ")
    file, line = where.split(":")
    assert (file, line.isdigit()) == ("test_refusals.py", True)
    return rest


MISPLACED = [
    (lambda t, p: t.vadd(128, p[L1], p[UB], p[UB], 1, 1, 1, 1, 8, 8, 8), "vadd.dst", UB, L1),
    (lambda t, p: t.vec_adds(128, p[UB], p[GM], 1.0, 1, 8, 8), "vec_adds.src", UB, GM),
    (lambda t, p: t.vec_dup(128, p[L1], 1.0, 1, 8), "vec_dup.dst", UB, L1),
    (lambda t, p: t.vec_trans(p[UB], p[L1], 1, 1, 1), "vec_trans.src", UB, L1),
    (lambda t, p: t.vcadd(128, p[GM], p[UB], 1, 1, 1, 8), "vcadd.dst", UB, GM),
    (lambda t, p: t.vec_cmpv_lt(p[L1], p[UB], p[UB], 1, 8, 8), "vec_cmpv_lt.dst", UB, L1),
    (lambda t, p: t.vcmp_eq(128, p[L1], p[UB], 1, 1), "vcmp_eq.src0", UB, L1),
    (lambda t, p: t.vconcat(p[UB], p[GM], 1, 4), "vconcat.src", UB, GM),
    (lambda t, p: t.viou(p[UB], p[L1], p[UB], 1), "viou.src0", UB, L1),
    (lambda t, p: t.vtranspose(p[UB], p[L1]), "vtranspose.src", UB, L1),
]
LABELS = {GM: "GM", UB: "UB", L1: "L1"}


@pytest.mark.parametrize(("body", "operand", "wanted", "given"), MISPLACED)
def test_operands_lie_where_an_instruction_finds_them(body, operand, wanted, given):
    t = Tik(V310P)
    tensors = {scope: t.Tensor("float16", (256,), scope, LABELS[scope]) for scope in LABELS}
    expected = f"{operand} must lie in {LABELS[wanted]}, got {LABELS[given]}"
    assert sentence(lambda: body(t, tensors)) == expected


CALLS = {
    "call_module": "it needs the vendor's tensor-expression language",
    "TensorAddrList": "it needs addresses of global memory as values of a program",
    "vcbd": "it needs Hi3796CV300 or SD3403, which are not in the catalogue",
    "StartProfiling": "it needs the vendor's simulator; `cubecore time PROGRAM.py` times a program",
    "load_image": "it needs parameters of image preprocessing, which no public page of TIK "
    "documents",
    "vfancy": "no page documents it",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_not_here_says_what_it_would_take(name):
    t = Tik(V310P)
    expected = f"tik.{name} is not supported: {CALLS[name]}"
    assert sentence(lambda: getattr(t, name)) == expected


def test_the_debugger_has_one_call():
    t = Tik(V310P)
    assert sentence(lambda: t.tikdb.debug_print("x")) == (
        "tikdb.debug_print is not supported; print what start_debug returns"
    )


def test_targets_and_expressions_are_refused_at_the_users_line():
    with program_session():
        from tbe import tvm
        from tbe.common.platform import get_soc_spec, set_current_compile_soc_info

        assert set_current_compile_soc_info("Ascend310P") == "success"
        assert sentence(lambda: set_current_compile_soc_info("Ascend1")).startswith(
            "chip must be the full name of a SoC, got 'Ascend1'"
        )
        assert sentence(lambda: get_soc_spec("COLOUR")).startswith("get_soc_spec must be one")
        assert sentence(lambda: tvm.compute((1,), None)) == (
            "tbe.tvm.compute is not supported: it needs the vendor's tensor-expression language"
        )
        assert tvm.placeholder((2, 3), "float16", name="x").shape == (2, 3)


def test_what_a_program_asks_of_its_target():
    with program_session():
        from tbe import tik
        from tbe.common.platform import intrinsic_check_support, set_current_compile_soc_info
        from te.platform.cce_build import build_config, build_config_update

        names = {"Ascend310": "mini", "Ascend910A": "cloud", "Ascend310P3": "aic"}
        for soc, version in names.items():
            set_current_compile_soc_info(soc)
            assert tik.Dprofile().get_product_name() == version
            later = version != "mini"
            assert intrinsic_check_support("Intrinsic_vconv", "f322s32c") == later
            assert intrinsic_check_support("Intrinsic_data_move_l12ub")
            assert not intrinsic_check_support("Intrinsic_fix_pipe_l0c2out")
        assert tik.Dprofile("v100", "mini").getParams("Unified_Buffer") == 253952
        assert tik.Dprofile("v100", "mini").getParams("Sid_copy_gm_to_cbuf") == 0
        assert sentence(lambda: tik.Dprofile("v100", "mini").getParams("Colour")).endswith(
            "L0C_Buffer, Device_core_num, Sid_..., got 'Colour'"
        )
        with build_config_update(build_config, "status_check", value=False):
            pass

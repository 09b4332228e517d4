"""Results that fixpipe scales: verified, and refused where the request makes no sense."""

import numpy as np
import pytest

import cubecore
from cubecore.workflows.data.operands import Operands
from parts import stride
from workflows.command import cli

SHAPE = {"m": 40, "n": 48, "k": 96}
BYTES = {**SHAPE, "a": "int8"}
BAD = [
    (
        {"a": "int8", "epilogue": {"quant": "REQ8"}},
        "epilogue.scale must be one number for REQ8, got nothing",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "REQ8", "scale": [1.0, 2.0]}},
        "epilogue.scale must be one number for REQ8, got 2 numbers",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "VREQ8", "scale": [1.0] * 47}},
        "epilogue.scale must be n = 48 numbers for VREQ8, got 47 numbers",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "VREQ8", "scale": 1.0}},
        "epilogue.scale must be n = 48 numbers for VREQ8, got one number",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "VREQ8"}},
        "epilogue.scale must be n = 48 numbers for VREQ8, got nothing; or give --scale-file",
    ),
    (
        {"epilogue": {"quant": "REQ8", "scale": 1.0}},
        "epilogue.quant must be QF322B8_PRE or VQF322B8_PRE for an accumulator of float32 "
        "(Mmad, table 4), got REQ8",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "F322F16", "scale": 1.0}},
        "epilogue.quant must be DEQF16 or VDEQF16 or REQ8 or VREQ8 for an accumulator of int32 "
        "(Mmad, table 4), got F322F16",
    ),
    (
        {"a": "int8", "c": "float16", "epilogue": {"quant": "REQ8", "scale": 1.0}},
        "c must be int8, which REQ8 makes of int32 (Mmad, table 4), got float16",
    ),
    (
        {"c": "int8"},
        "c must be float32 or float16 or bfloat16 without epilogue.quant (Mmad, table 4: mad "
        "gives float32), got int8; epilogue.quant writes others: QF322B8_PRE to int8, "
        "VQF322B8_PRE to int8",
    ),
    (
        {"epilogue": {"scale": 2.0}},
        "epilogue.scale must be absent without epilogue.quant, got 2.0",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "DEQF16", "scale": 1.0, "offset": 1}},
        "epilogue.offset must be 0 for DEQF16, which has no offset, got 1",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "REQ8", "scale": 1.0, "offset": 256}},
        "epilogue.offset must be in [-256, 255], got 256",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "REQ8", "scale": 1e-40}},
        "epilogue.scale must be 0 or a number that float32 holds without becoming subnormal, got "
        "1e-40",
    ),
    (
        {"a": "int8", "epilogue": {"quant": "VREQ8", "scale": [1.0, "x"]}},
        "epilogue.scale[1] must be a number, n numbers or null, got 'x'",
    ),
    (
        {"a": "int8", "n": 40, "format_c": "NZ", "epilogue": {"quant": "REQ8", "scale": 1.0}},
        "n must be a multiple of 32 for an NZ C of int8, got 40",
    ),
    (
        {"split_k": True, "a": "int8", "epilogue": {"quant": "REQ8", "scale": 1.0}},
        "c must be int32 with split_k, got int8; split_k adds up in C\n"
        "epilogue.quant must be null with split_k, got REQ8; split_k adds up in C",
    ),
]


@pytest.mark.parametrize(("keys", "line"), BAD, ids=lambda value: str(value)[:60])
def test_a_scale_that_makes_no_sense_is_refused(keys, line):
    with pytest.raises(cubecore.RequestError) as refused:
        cubecore.run({**SHAPE, **keys})
    assert str(refused.value) == line


@pytest.mark.parametrize("mode", ["DEQF16", "REQ8", "QF322B8_PRE"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("template", ["MDL", "NORM"])
@pytest.mark.thinned(4)
def test_one_scale(mode, relu, template):
    a = "float16" if mode.startswith("Q") else "int8"
    scale = 0.003 if a == "int8" else 1.7
    epilogue = {"quant": mode, "scale": scale, "relu": relu, "offset": 0 if mode[0] == "D" else -7}
    ran = cubecore.run({**SHAPE, "a": a, "template": template, "epilogue": epilogue})
    assert ran.verified
    assert ran.request.problem.c == ("float16" if mode == "DEQF16" else "int8")
    assert len(np.unique(ran.c)) > 20


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mode", ["VDEQF16", "VREQ8"])
@pytest.mark.parametrize("format_c", ["ND", "NZ"])
def test_a_scale_for_each_column(mode, format_c):
    scales = [0.001 * (1 + i) for i in range(64)]
    keys = {**BYTES, "n": 64, "format_c": format_c, "bias": "int32"}
    ran = cubecore.run({**keys, "epilogue": {"quant": mode, "scale": scales}})
    assert ran.verified


@pytest.mark.parametrize("format_c", ["ND", "NZ"])
@pytest.mark.parametrize(
    "keys",
    [
        {"a": "int8", "epilogue": {"quant": "VDEQF16"}},
        {"a": "int8", "chip": "Ascend950PR_9589", "epilogue": {"quant": "VDEQF16"}},
        {
            "a": "float16",
            "c": "bfloat16",
            "chip": "Ascend950PR_9589",
            "epilogue": {"quant": "VQF322BF16_PRE"},
        },
    ],
    ids=["VDEQF16", "VDEQF16-3510", "VQF322BF16_PRE-3510"],
)
@pytest.mark.thinned(6)
def test_scales_of_every_last_fractal(keys, format_c):
    """A fixpipe to NZ reads the scales of whole fractals, whatever of the last one is C's."""
    for n in (*range(1, 18, stride(16)), 15, 31, 40):
        epilogue = {**keys["epilogue"], "scale": [0.5 + i % 3 for i in range(n)]}
        ran = cubecore.run({**keys, "epilogue": epilogue}, m=5, n=n, k=9, format_c=format_c)
        assert ran.verified, (n, [finding.message for finding in ran.findings])


def test_a_wrong_scale_does_not_verify():
    """The oracle scales by itself: operands with another scale give another C."""
    problem = {**BYTES, "epilogue": {"quant": "VREQ8", "scale": [0.001] * 48}}
    right = cubecore.run(problem)
    other = np.full(48, 0.002, np.float32)
    drawn = cubecore.run({**problem, "epilogue": {"quant": "VREQ8", "scale": [0.002] * 48}})
    assert not np.array_equal(right.c, drawn.c)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((40, 96), (96, 48)))
    ran = cubecore.run(problem, operands=Operands(a, b, scale=other))
    wide = a.astype(np.int64) @ b.astype(np.int64)
    factor = float((other[:1].view(np.uint32) & 0xFFFFE000).view(np.float32)[0])
    assert np.array_equal(ran.c, np.clip(np.rint(wide * factor), -128, 127))


def test_scales_from_a_file(tmp_path):
    name = tmp_path / "scale.npy"
    np.save(name, np.linspace(0.001, 0.01, 48).astype(np.float32))
    answer = cli("run", "--m", 40, "--n", 48, "--k", 96, "--a", "int8", "--quant", "VREQ8",
                 "--scale-file", name)  # fmt: skip
    assert answer.code == 0, answer.err
    np.save(name, np.full(48, np.inf, np.float32))
    answer = cli("run", "--m", 40, "--n", 48, "--k", 96, "--a", "int8", "--quant", "VREQ8",
                 "--scale-file", name)  # fmt: skip
    assert (
        answer.err
        == "the scales must hold 0 and ordinary numbers of float32, got inf for column 0\n"
    )
    answer = cli("run", "--m", 40, "--n", 48, "--k", 96, "--scale-file", name)
    assert answer.err == (
        "--scale-file needs a --quant with a scale for each column; VDEQF16, VREQ8 and "
        "VQF322B8_PRE have one\n"
    )

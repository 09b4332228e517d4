"""TIK's matmul (seed 004): table 1, table 2 and the restrictions, in programs that import `tbe`."""

from itertools import groupby

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.kernels.scripts import run_as_main
from cubecore.frontends.tik.host.program import main, program_session
from cubecore.frontends.tik.host.vendor_modules import provided
from seeds.tik_matmul import (
    A2,
    BYTES,
    CHIPS,
    INFERENCE,
    K0,
    RESULT,
    TRAINING,
    built,
    ceiling,
    instance,
    issued,
    matmul_program,
    operands,
    run_product,
    shapes,
)

CALL = "t.matmul(dst, a_l1, b_l1, 16, 48, 32)"


def refusal(folder, text):
    """Return what a program's refused line says, behind the file and the line of its matmul."""
    path = folder / "program.py"
    path.write_text(text)
    with program_session(), pytest.raises(RequestError) as caught:
        run_as_main(str(path), ())
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "t.matmul" in row)
    where, _, rest = str(caught.value).partition(": ")
    assert where == f"program.py:{line}"
    return rest


# --- products

SIZES = [
    (30, 64, 160, "int8"),
    (30, 40, 150, "int8"),
    (16, 96, 16, "int8"),
    (1, 64, 48, "int8"),
    (17, 40, 20, "int8"),
    (1, 70, 16, "float16"),
    (33, 16, 32, "float16"),
    (45, 70, 33, "float16"),
    (45, 70, 700, "float16"),
    (64, 1040, 64, "float16"),
    (2064, 16, 16, "float16"),
]


@pytest.mark.parametrize(("m", "k", "n", "dtype"), SIZES)
def test_products_in_the_layouts_of_table_1(tmp_path, m, k, n, dtype):
    """Element [i, j] of A @ B lies at dst[j // 16, i, j % 16]; all padding is poison."""
    kernel = built(tmp_path, matmul_program(m, k, n, dtype))
    a, b = operands(m, k, n, dtype)
    (_, _, _), a_shape, b_shape = shapes(m, k, n, dtype)
    poison = 99 if dtype == "int8" else np.nan
    feeds = {"a_gm": np.full(a_shape, poison, dtype), "b_gm": np.full(b_shape, poison, dtype)}
    along, rows, columns = np.arange(k), np.arange(m), np.arange(n)
    c0 = K0[dtype]
    feeds["a_gm"][along // c0, rows[:, None], along % c0] = a
    feeds["b_gm"][along // c0, columns[:, None], along % c0] = b.T
    result = kernel.launch(feeds)
    dst = result.outputs["dst_gm"]
    assert (dst.dtype, dst.shape) == (RESULT[dtype], (ceiling(n, 16), m, 16))
    got = dst[columns // 16, rows[:, None], columns % 16]
    assert np.array_equal(got, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("chip", INFERENCE)
def test_the_static_sample_on_inference_products(tmp_path, chip):
    """[16, 64] by [64, 1024]."""
    check_the_sample(tmp_path, chip)


@pytest.mark.parametrize("chip", [TRAINING, A2])
def test_the_static_sample_on_training_products(tmp_path, chip):
    check_the_sample(tmp_path, chip)


def check_the_sample(folder, chip):
    kernel = built(folder, matmul_program(16, 64, 1024, "float16"), chip)
    want, got, findings = run_product(kernel, 16, 64, 1024, "float16")
    assert findings == ()
    assert np.array_equal(got, want)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("m", "n"), [(30, 32), (32, 20), (17, 33)])
def test_rows_beyond_m_and_columns_beyond_n_are_not_computed(tmp_path, chip, m, n):
    """Both are the user's: they stay unwritten, though the operands hold numbers there."""
    kernel = built(tmp_path, matmul_program(m, 40, n, "float16", rows=32), chip)
    want, got, _ = run_product(kernel, m, 40, n, "float16", padding=7)
    assert np.array_equal(got[:m, :n], want)
    assert np.isnan(got[m:]).all()
    assert np.isnan(got[:, n:]).all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", K0)
def test_fixpipe_drops_the_padding_of_m(tmp_path, chip, dtype):
    """Of planes of 32 rows it moves 17 and leaves no gap between them in global memory."""
    kernel = built(tmp_path, matmul_program(17, 40, 48, dtype), chip)
    want, got, findings = run_product(kernel, 17, 40, 48, dtype)
    assert findings == ()
    assert got.shape == (17, 48)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("option", "factor"),
    [("", 1), (", init_l1out=True", 1), (", init_l1out=False", 2), (", True", 1), (", False", 2)],
)
def test_a_second_product_replaces_or_adds(tmp_path, chip, option, factor):
    again = f"t.matmul(dst, a_l1, b_l1, 16, 48, 32{option})"
    kernel = built(tmp_path, matmul_program(16, 48, 32, "float16", after=again), chip)
    want, got, findings = run_product(kernel, 16, 48, 32, "float16")
    assert findings == ()
    assert np.array_equal(got, want * factor)


def test_a_first_product_initialises_dst_only_if_it_is_told_to(tmp_path):
    for option, clean in (("", True), (", True", True), (", False", False)):
        call = f"t.matmul(dst, a_l1, b_l1, 16, 1040, 32{option})"
        kernel = built(tmp_path, matmul_program(16, 1040, 32, "float16", call=call))
        want, got, findings = run_product(kernel, 16, 1040, 32, "float16")
        assert np.array_equal(got, want) == clean
        assert (findings == ()) == clean


def test_matmul_returns_none(tmp_path):
    text = matmul_program(16, 48, 32, "float16", call=f"assert {CALL} is None")
    want, got, _ = run_product(built(tmp_path, text), 16, 48, 32, "float16")
    assert np.array_equal(got, want)


# --- operands

PLACES = {
    "dst": ("L1OUT", {"scope_cbuf": "L1", "scope_ubuf": "UB", "scope_gm": "GM"}),
    "a": ("L1", {"scope_cbuf_out": "L0C", "scope_ubuf": "UB", "scope_gm": "GM"}),
    "b": ("L1", {"scope_cbuf_out": "L0C", "scope_ubuf": "UB", "scope_gm": "GM"}),
}
CASES = [(name, scope) for name, (_, scopes) in PLACES.items() for scope in scopes]


@pytest.mark.parametrize(("name", "scope"), CASES)
def test_where_the_operands_lie(name, scope):
    wanted, labels = PLACES[name]
    with instance("Ascend310") as (tik, t):
        tensors = {
            "dst": t.Tensor("float32", (256,), tik.scope_cbuf_out, "c"),
            "a": t.Tensor("float16", (256,), tik.scope_cbuf, "a"),
            "b": t.Tensor("float16", (256,), tik.scope_cbuf, "b"),
        }
        t.matmul(*tensors.values(), 16, 16, 16)
        dtype = tensors[name].dtype
        tensors[name] = t.Tensor(dtype, (256,), getattr(tik, scope), "other")
        with pytest.raises(RequestError) as caught:
            t.matmul(*tensors.values(), 16, 16, 16)
    told = str(caught.value).partition(": ")[2]
    assert told == f"matmul.{name} must lie in {wanted}, got {labels[scope]}"


TABLE_2 = [("int8", "int8", "int32"), ("float16", "float16", "float32")]
SOURCES = ("int8", "uint8", "int16", "float16", "int32", "float32")


@pytest.mark.parametrize("b", SOURCES)
@pytest.mark.parametrize("a", SOURCES)
def test_types_of_table_2(a, b):
    with instance("Ascend310") as (tik, t):
        left = t.Tensor(a, (1024,), tik.scope_cbuf, "a")
        right = t.Tensor(b, (1024,), tik.scope_cbuf, "b")
        for result in ("float16", "float32", "int32"):
            dst = t.Tensor(result, (256,), tik.scope_cbuf_out, f"c_{result}")
            if (a, b, result) in TABLE_2:
                t.matmul(dst, left, right, 16, 16, 16)
                continue
            with pytest.raises(RequestError) as caught:
                t.matmul(dst, left, right, 16, 16, 16)
            assert str(caught.value).partition(": ")[2] == (
                "matmul must multiply one of int8 x int8 -> int32, float16 x float16 -> float32, "
                f"got {a} x {b} -> {result}"
            )


@pytest.mark.parametrize("name", ["dst", "a", "b"])
@pytest.mark.parametrize(("m", "k", "n", "dtype"), [*SIZES[:5], *SIZES[6:8]])
def test_tensors_hold_m_k_and_n_rounded_up(m, k, n, dtype, name):
    """Exactly what the formulas of table 1 give is enough, and 32 B less are refused."""
    extents = dict(zip(("dst", "a", "b"), shapes(m, k, n, dtype), strict=True))
    with instance("Ascend310") as (tik, t):
        scopes = {"dst": tik.scope_cbuf_out, "a": tik.scope_cbuf, "b": tik.scope_cbuf}
        tensors = {}
        for operand, shape in extents.items():
            kind = RESULT[dtype] if operand == "dst" else dtype
            tensors[operand] = t.Tensor(kind, (int(np.prod(shape)),), scopes[operand], operand)
        t.matmul(*tensors.values(), m, k, n)
        whole = tensors[name]
        short = whole.size - 32 // BYTES[whole.dtype]
        tensors[name] = t.Tensor(whole.dtype, (short,), whole.scope, "short")
        with pytest.raises(RequestError) as caught:
            t.matmul(*tensors.values(), m, k, n)
    need = whole.size * BYTES[whole.dtype]
    told = f"matmul.{name} must hold {need} B, m, k and n rounded up, got {need - 32} B"
    assert str(caught.value).partition(": ")[2] == told


# --- m, k and n

RANGES = [
    ("m", "float16", 4096),
    ("m", "int8", 4096),
    ("k", "float16", 16384),
    ("k", "int8", 32768),
    ("n", "float16", 4096),
    ("n", "int8", 4096),
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("name", "dtype", "most"), RANGES)
def test_the_ranges_of_m_k_and_n(name, dtype, most):
    with instance("Ascend310") as (tik, t):
        both = t.Tensor(dtype, (512 * 1024 // BYTES[dtype],), tik.scope_cbuf, "both")
        dst = t.Tensor(RESULT[dtype], (64 * 1024,), tik.scope_cbuf_out, "dst")
        for extent in (1, most):
            sizes = {"m": 16, "k": 16, "n": 16} | {name: extent}
            t.matmul(dst, both, both, **sizes)
        for extent in (-1, 0, most + 1):
            sizes = {"m": 16, "k": 16, "n": 16} | {name: extent}
            with pytest.raises(RequestError) as caught:
                t.matmul(dst, both, both, **sizes)
            told = f"matmul.{name} must be in [1, {most}], got {extent}"
            assert str(caught.value).partition(": ")[2] == told


@pytest.mark.parametrize("name", ["m", "k", "n"])
def test_m_k_and_n_are_immediates(name):
    with instance("Ascend310") as (tik, t):
        both = t.Tensor("float16", (256,), tik.scope_cbuf, "both")
        dst = t.Tensor("float32", (256,), tik.scope_cbuf_out, "dst")
        for value, kind in (
            (16.0, "float"),
            (t.Scalar("int32", init_value=16), "Scalar"),
            ("16", "str"),
            (True, "bool"),
        ):
            sizes = {"m": 16, "k": 16, "n": 16} | {name: value}
            with pytest.raises(RequestError) as caught:
                t.matmul(dst, both, both, **sizes)
            told = f"matmul.{name} must be an immediate of type int, got {kind}"
            assert str(caught.value).partition(": ")[2] == told


def test_init_l1out_is_a_bool(tmp_path):
    text = matmul_program(16, 48, 32, "float16", call=CALL.replace("32)", '32, "no")'))
    assert refusal(tmp_path, text) == "matmul.init_l1out must be a bool, got str"


# --- starts

STARTS = [
    ("a_l1", "float16", 2, "a must start at a multiple of 512 B, got 4 B into a_l1"),
    ("a_l1", "float16", 240, "a must start at a multiple of 512 B, got 480 B into a_l1"),
    ("b_l1", "float16", 2, "b must start at a multiple of 512 B, got 4 B into b_l1"),
    ("b_l1", "float16", 240, "b must start at a multiple of 512 B, got 480 B into b_l1"),
    ("a_l1", "int8", 256, "a must start at a multiple of 512 B, got 256 B into a_l1"),
    ("b_l1", "int8", 256, "b must start at a multiple of 512 B, got 256 B into b_l1"),
    ("dst", "int8", 2, "dst must start at a multiple of 1024 B, got 8 B into dst"),
    ("dst", "int8", 128, "dst must start at a multiple of 1024 B, got 512 B into dst"),
    ("dst", "float16", 2, "dst must start at a multiple of 1024 B, got 8 B into dst"),
    ("dst", "float16", 128, "dst must start at a multiple of 1024 B, got 512 B into dst"),
]


@pytest.mark.parametrize(("name", "dtype", "first", "message"), STARTS)
def test_starts_off_their_alignment_are_refused(tmp_path, name, dtype, first, message):
    call = "t.matmul(dst, a_l1, b_l1, 16, 16, 16)".replace(name, f"{name}[{first}:]", 1)
    text = matmul_program(48, 64, 48, dtype, call=call)
    assert refusal(tmp_path, text) == f"matmul.{message}"


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("start", ["256", "s"])
def test_aligned_slices_are_starts(tmp_path, chip, start):
    """tensor[256:] of float16 is 512 B and of int32 1024 B; the start may be a Scalar."""
    scalar = 's = t.Scalar("int32", init_value=256)'
    call = f"t.matmul(dst, a_l1[{start}:], b_l1[{start}:], 16, 16, 16)"
    text = matmul_program(16, 32, 16, "float16", before=scalar, call=call)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-6, 7, (2, 16, 16)).astype(np.float16) for _ in range(2))
    result = built(tmp_path, text, chip).launch({"a_gm": a, "b_gm": b})
    assert result.findings == ()
    want = a[1].astype(np.float64) @ b[1].astype(np.float64).T
    assert np.array_equal(result.outputs["dst_gm"][0], want)

    both = f"t.matmul(dst, a_l1, b_l1, 16, 16, 16)\nt.matmul(dst[{start}:], a_l1, b_l1, 16, 32, 16)"
    text = matmul_program(16, 32, 32, "int8", before=scalar, call=both)
    a, b = (rng.integers(-6, 7, (1, rows, 32)).astype(np.int8) for rows in (16, 32))
    result = built(tmp_path, text, chip).launch({"a_gm": a, "b_gm": b})
    assert result.findings == ()
    a, b = a[0].astype(int), b[0, :16].astype(int)
    assert np.array_equal(result.outputs["dst_gm"][0], a[:, :16] @ b[:, :16].T)
    assert np.array_equal(result.outputs["dst_gm"][1], a @ b.T)


LATE = [
    ("a_l1", "float16", 240, "matmul.a must start at a multiple of 512 B in L1, got 480"),
    ("b_l1", "float16", 240, "matmul.b must start at a multiple of 512 B in L1, got 6624"),
    ("a_l1", "int8", 256, "matmul.a must start at a multiple of 512 B in L1, got 256"),
    ("dst", "int8", 128, "mad.c must start at a multiple of 1024 B in L0C, got 512"),
]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("name", "dtype", "first", "message"), LATE)
def test_starts_that_only_the_run_knows_are_held_there(tmp_path, chip, name, dtype, first, message):
    scalar = f's = t.Scalar("int32", init_value={first})'
    call = "t.matmul(dst, a_l1, b_l1, 16, 16, 16)".replace(name, f"{name}[s:]", 1)
    text = matmul_program(48, 64, 48, dtype, before=scalar, call=call)
    _, _, findings = run_product(built(tmp_path, text, chip), 48, 64, 48, dtype)
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "t.matmul" in row)
    found = [(f.id, f.message, f.location.line) for f in findings if f.id == "misaligned"]
    assert found == [("misaligned", message, line)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "t.data_move(a_l1[8:], a_gm, 0, 1, 1, 0, 0)",
            "data_move.dst must start at a multiple of 32 B in L1, got 16 B into a_l1",
        ),
        (
            "t.fixpipe(dst_gm, dst[8:], 1, 32, 0, 0)",
            "fixpipe.src must start at a multiple of 64 B in L0C, got 32 B into dst",
        ),
    ],
)
def test_offsets_of_other_operands_are_aligned_too(tmp_path, call, message):
    text = matmul_program(16, 48, 32, "float16", call=f"{call}  # not t.matmul")
    assert refusal(tmp_path, text) == message


def test_one_index_is_one_element_and_a_slice_is_a_start():
    with instance("Ascend310") as (tik, t):
        tensor = t.Tensor("float16", (2, 4), tik.scope_ubuf, "A")
        some = t.Scalar("int32", init_value=3)
        assert (tensor[3].shape, tensor[some].shape) == ((1,), (1,))
        assert (tensor[3].offset, tensor[3:].offset) == (3, 3)
        assert (tensor[3:].shape, tensor[7:].shape) == ((5,), (1,))
        with pytest.raises(RequestError, match="an element of A cannot be indexed"):
            tensor[0][1]


# --- beside it

VECTOR = "t.vec_dup(64, ub, 0.0, 1, 8)\n"


@pytest.mark.parametrize("chip", [*INFERENCE, TRAINING])
def test_no_vector_instruction_runs_beside_it(tmp_path, chip):
    """Between a Vector instruction and what a matmul is made of stands a barrier of all pipes."""
    ub = 'ub = t.Tensor("float32", (64,), tik.scope_ubuf, "ub")\n'
    text = matmul_program(16, 48, 32, "float16", before=ub + VECTOR, after=VECTOR + CALL)
    units, seen = {"vector_dup": "vector", "mad": "matmul", "load_cbuf_to_ca": "matmul"}, []
    for node in built(tmp_path, text, chip).kernel.body:
        template = getattr(node, "template", None)
        name = getattr(template, "name", "")
        if name in units:
            seen.append(units[name])
        elif name == "pipe_barrier" and template.on == "ALL":
            seen.append("barrier")
    runs = [name for name, _ in groupby(seen)]
    want = ["vector", *(["barrier", "matmul", "barrier", "vector"] * 2)]
    assert runs[:8] == want[:8]
    assert runs.count("matmul") == 2


def test_without_fixpipe_the_output_was_never_written(tmp_path):
    text = matmul_program(16, 48, 32, "float16")
    rows = [row for row in text.splitlines() if not row.startswith("t.fixpipe")]
    kernel = built(tmp_path, "\n".join(rows))
    _, _, findings = run_product(kernel, 16, 48, 32, "float16")
    assert [finding.message for finding in findings] == [
        "dst_gm must be written whole, got 2048 of 2048 B never written, the first at byte 0"
    ]
    assert issued(kernel, "mad")


def test_interactive_debugging_runs_to_the_end(tmp_path):
    """Without a terminal there is nobody to step: slow or not, it goes to the end."""
    kernel = built(tmp_path, matmul_program(16, 48, 32, "float16"))
    feeds = {n: np.ones(kernel.gm_tensors[n].shape, np.float16) for n in ("a_gm", "b_gm")}
    (got,) = kernel.tikdb.start_debug(feeds, interactive=True)
    assert (got == 48).all()


def test_the_command(tmp_path, capsys):
    path = tmp_path / "program.py"
    text = matmul_program(30, 64, 160, "int8")
    path.write_text(text)
    assert main([str(path)]) == 0
    path.write_text(text.replace("30, 64, 160)", "30, 64, 0)"))
    assert main([str(path)]) == 2
    assert capsys.readouterr().err == "program.py:12: matmul.n must be in [1, 4096], got 0\n"


def test_the_modules_are_there_for_the_program_alone():
    with provided():
        import tbe.tik as inside

        assert inside.scope_gm == "global"
    with pytest.raises(ModuleNotFoundError):
        import tbe  # noqa: F401

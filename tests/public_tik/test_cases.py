"""The table of public operators: whole, honest with the page, and its oracles right."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from public_tik import boxes, cube, layouts, moves, values
from public_tik.case import Case, tensor
from public_tik.run import CASES, DATA, Outcome, rows_after, run_case, worst_of

CHECKOUTS = os.environ.get("CUBECORE_TIK_CHECKOUTS")
RNG = np.random.default_rng(8)


def page_rows():
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def test_an_operator_is_verified_on_the_page_exactly_if_it_has_an_oracle_here():
    verified = {(r["repository"], r["path"]) for r in page_rows() if r["outcome"] == "verified"}
    covered = {(case.repository, path) for case in CASES for path in case.files}
    assert verified == covered


def test_a_case_names_its_operators_kind_and_the_page_its_note():
    rows = {(row["repository"], row["path"]): row for row in page_rows()}
    for case in CASES:
        for path in case.files:
            row = rows[case.repository, path]
            assert case.note in row.get("why", "")
            assert case.changed in row.get("changed", "")
            assert case.covers or row["category"] == case.category


def test_every_case_draws_the_same_inputs_again_and_holds_an_output_to_something():
    assert len({(case.name, case.soc) for case in CASES}) == len(CASES)
    for case in CASES:
        if case.module.startswith("impl.distance"):
            continue  # the large ones: they draw as the others do
        drawn, again = case.inputs(), case.inputs()
        assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True)), case.name
        wanted = [np.asarray(w, float) for w in case.wanted(drawn) if w is not None]
        assert any(np.isfinite(w).any() for w in wanted), case.name


def test_a_fractal_holds_each_weight_at_its_place():
    x = RNG.integers(0, 99, (2, 3, 2, 32, 48))
    z = layouts.fractal_z_3d(x).reshape(2, 2, 3, 2, 3, 16, 16)
    for (d, h, w, c, n), value in np.ndenumerate(x):
        assert z[d, c // 16, h, w, n // 16, n % 16, c % 16] == value
    square = x[..., :32]
    assert np.array_equal(layouts.weights_of(layouts.fractal_z_3d(square)), square)


def test_the_layouts_of_a_matrix_hold_each_element_at_its_place():
    x = RNG.integers(0, 99, (32, 64))
    for (i, j), value in np.ndenumerate(x):
        assert layouts.to_nz(x)[j // 16, i // 16, i % 16, j % 16] == value
        assert layouts.fractals_of_rows(x, 32)[i // 16, j // 32, i % 16, j % 32] == value
        assert layouts.nd_to_zn(x)[i // 32, j // 16, j % 16, i % 32] == value
    assert np.array_equal(layouts.from_nz(layouts.to_nz(x)), x)
    assert np.array_equal(layouts.padded_nz(x[:20, :20])[:1, :1, :, :], layouts.to_nz(x)[:1, :1])


def test_the_layouts_of_channels_hold_each_element_at_its_place():
    x = RNG.integers(1, 99, (2, 20, 3, 4))
    by_16 = layouts.channels_by_16(x)
    for (n, c, h, w), value in np.ndenumerate(x):
        assert by_16[n, c // 16, h, w, c % 16] == value
    assert (by_16 != 0).sum() == x.size
    assert np.array_equal(layouts.channels_together(by_16, 20), x)
    assert np.array_equal(np.nan_to_num(layouts.open_channels(x)), by_16)
    assert np.isnan(layouts.open_channels(x)).sum() == by_16.size - x.size
    deep = RNG.integers(0, 99, (2, 32, 2, 3, 4))
    for (n, c, d, h, w), value in np.ndenumerate(deep):
        assert layouts.to_ndc1hwc0(deep)[n, d, c // 16, h, w, c % 16] == value
    assert np.array_equal(layouts.from_ndc1hwc0(layouts.to_ndc1hwc0(deep)), deep)


def test_blocks_of_space_and_shuffled_channels():
    x = RNG.integers(0, 99, (1, 4, 6, 5))
    out = layouts.space_to_depth(x, 2)
    for (n, h, w, c), value in np.ndenumerate(x):
        assert out[n, h // 2, w // 2, (h % 2 * 2 + w % 2) * 5 + c] == value
    assert np.array_equal(layouts.depth_to_space(out, 2), x)
    channels = np.arange(6).reshape(1, 6, 1, 1)
    assert layouts.shuffle_channel(channels, 3).reshape(-1).tolist() == [0, 2, 4, 1, 3, 5]


def test_products_along_the_diagonal():
    a, b = RNG.integers(0, 9, (3, 256)), RNG.integers(0, 9, (256, 256))
    got = cube.diagonal_products(a, b, np.array([2]))
    for i, j in np.ndindex(3, 256):
        block = slice(j // 128 * 128, j // 128 * 128 + 128)
        assert got[i, j] == 2 * (a[i, block] @ b[block, j])


def test_updates_by_an_index():
    variable, at = np.array([[1, 2], [3, 4]]), np.array([1, 1, 0])
    rows = np.array([[10, 20], [30, 40], [50, 60]])
    assert moves.added_at(variable, at, rows).tolist() == [[51, 62], [43, 64]]
    assert moves.added_along_1(variable, at, rows[:2].repeat(2, 1)[:, :3]).tolist() == [
        [21, 22],
        [43, 64],
    ]
    assert moves.replaced_at(variable, at[:1], rows[:1]).tolist() == [[1, 2], [10, 20]]
    shapes = [np.array([2, size, 7]) for size in (3, 4, 6)]
    assert [place.tolist() for place in moves.offsets(*shapes, along=1)] == [
        [0, 0, 0],
        [0, 3, 0],
        [0, 7, 0],
    ]
    bags = moves.bags(rows, np.array([0, 1, 2, 2]), np.array([0, 1]), np.ones(4))
    assert bags.tolist() == [[10, 20], [130, 160]]
    blocks = moves.diagonal_blocks(np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    assert blocks.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8]]


def test_the_gradient_of_the_state_is_the_slope_of_the_cell():
    c, dht, dct, *before = RNG.standard_normal((7, 1))

    def cell(state, gates):
        i, f, o = (1 / (1 + np.exp(-gates[at])) for at in (0, 2, 3))
        after = f * state + i * np.tanh(gates[1])
        return after, o * np.tanh(after), (i, np.tanh(gates[1]), f, o)

    def slope(step_state, step_gates):
        up = cell(c + step_state, np.stack(before) + step_gates)
        down = cell(c - step_state, np.stack(before) - step_gates)
        return (dct * (up[0] - down[0]) + dht * (up[1] - down[1])) / 2e-6

    after, _, activated = cell(c, before)
    gates, state = values.lstm_state_grad(c, dht, dct, *activated, np.tanh(after))
    steps = 1e-6 * np.eye(4)[:, :, None]
    assert state == pytest.approx(slope(1e-6, 0), rel=1e-4)
    assert gates == pytest.approx(np.concatenate([slope(0, s) for s in steps]), rel=1e-4)


def test_pooling_and_its_gradient():
    x = RNG.permutation(25).reshape(1, 1, 5, 5, 1)
    y = values.pool_windows(x, 3, 2)
    grad = np.array([1, 10, 100, 1000]).reshape(1, 1, 2, 2, 1)
    out = np.zeros((5, 5))
    for i in range(2):
        for j in range(2):
            window = [(2 * i + a, 2 * j + b) for a in range(3) for b in range(3)]
            best = max(window, key=lambda place: x[0, 0, *place, 0])
            assert y[0, 0, i, j, 0] == x[0, 0, *best, 0]
            out[best] += grad[0, 0, i, j, 0]
    assert values.pool_grad(x, y, grad, 3, 2)[0, 0, :, :, 0].tolist() == out.tolist()


def test_small_values():
    relu = values.s_shaped_relu(np.array([-4.0, 0.0, 5.0]), 3, 0.5, -2, 0.25)
    assert relu.tolist() == [-2.5, 0, 4]
    scores = np.array([[5, 1, 3], [5, 1, 3]])
    assert values.in_top(scores, np.array([1, 2]), 2).tolist() == [0, 1]
    assert values.softmax(np.log([1.0, 3.0])).tolist() == pytest.approx([0.25, 0.75])


def test_a_box_is_what_its_encoding_decodes_to():
    anchors, truths = boxes.corners(RNG, 9), boxes.corners(RNG, 9)
    assert boxes.decode(anchors, boxes.encode(anchors, truths)) == pytest.approx(
        truths.astype(float)
    )
    unit, nothing = np.array([[0.0, 0.0, 4.0, 2.0]]), np.zeros((1, 4))
    assert boxes.encode(unit, unit).tolist() == [[0, 0, 0, 0]]
    assert boxes.decode_yx(nothing, unit).tolist() == [[0, 0, 4, 2]]
    assert boxes.decode_yx(np.array([[0.5, 0, np.log(2), 0]]), unit).tolist() == [[0, 0, 8, 2]]
    assert boxes.decode_points(np.array([[0.5, -0.5, 0, 0]]), unit).tolist() == [[4, 0, 2, 1]]


def test_overlapping_boxes_are_dropped_by_those_that_are_kept():
    first, over, apart = [0, 0, 10, 10], [0, 2, 10, 12], [50, 50, 60, 60]
    over_second = [0, 4, 10, 14]  # too near the second, which is gone, and far enough of the first
    held = np.array([first, over, apart, over_second], float)
    assert boxes.kept(held, 0.5).tolist() == [1, 0, 1, 1]
    assert boxes.overlaps(held[0], held[1:]).tolist() == pytest.approx([2 / 3, 0, 3 / 7])


def test_products_and_distances():
    q, b = RNG.integers(-4, 5, (3, 8)), RNG.integers(-4, 5, (5, 8))
    apart = cube.squared_distances(q, b, (b**2).sum(1))
    for i, j in np.ndindex(3, 5):
        assert cube.dots(q, b)[i, j] == sum(q[i, k] * b[j, k] for k in range(8))
        assert apart[i, j] == sum((q[i, k] - b[j, k]) ** 2 for k in range(8))
    assert cube.signs(np.array([[0b101]], "uint8")).tolist() == [[1, -1, 1, -1, -1, -1, -1, -1]]


def test_convolution_and_attention():
    x = RNG.integers(-3, 4, (1, 2, 4, 3, 16)).astype("float16")
    weights = RNG.integers(-3, 4, (2, 3, 3, 16, 16)).astype("float16")
    out = cube.convolve(x, weights)
    for i, j, n in np.ndindex(2, 1, 16):
        places = np.ndindex(2, 3, 3, 16)
        at = sum(
            float(x[0, c, i + h, j + w, k]) * float(weights[c, h, w, n, k]) for c, h, w, k in places
        )
        assert out[0, 0, i, j, n] == at
    q, k, v = np.zeros((1, 2, 4)), np.ones((1, 3, 4)), RNG.integers(0, 9, (1, 3, 4))
    means = v.mean(1, keepdims=True).repeat(2, 1)
    assert cube.attention(q, k, v) == pytest.approx(means)


def test_a_result_is_held_to_every_number_that_is_wanted():
    got = [np.array([1.0, 5.0, 3.0]), np.array([7.0])]
    assert worst_of(got, [np.array([1.0, 2.0, 3.0]), None]) == 3
    assert worst_of(got, [np.array([1.0, np.nan, 3.5]), None]) == 0.5
    assert worst_of([np.array([np.nan])], [np.array([1.0])]) == np.inf


SMALL = Case(
    repository="someone/operators",
    folder="impl",
    module="twice",
    function="twice",
    category="elementwise",
    arguments=(tensor((128,)),),
    draw=lambda rng: [rng.integers(0, 9, 128).astype("float16")],
    oracle=lambda x: 2 * x,
)
PROGRAM = """
from tbe import tik


def twice(x):
    t = tik.Tik()
    source = t.Tensor("float16", x["shape"], tik.scope_gm, "source")
    out = t.Tensor("float16", x["shape"], tik.scope_gm, "out")
    ub = t.Tensor("float16", x["shape"], tik.scope_ubuf, "ub")
    t.data_move(ub, source, 0, 1, 8, 0, 0)
    t.vec_muls(128, ub, ub, FACTOR, 1, 8, 8)
    t.data_move(out, ub, 0, 1, 8, 0, 0)
    t.BuildCCE("twice", [source], [out])
"""


@pytest.mark.parametrize(
    ("program", "verified", "error"),
    [
        (PROGRAM.replace("FACTOR", "2"), True, ""),
        (PROGRAM.replace("FACTOR", "3"), False, ""),
        ("def twice(x):\n    raise SystemExit(3)\n", False, "SystemExit: 3"),
        ("import os\n\ndef twice(x):\n    os._exit(1)\n", False, "its process ended without"),
        ("import time\n\ndef twice(x):\n    time.sleep(60)\n", False, "took more than 1 s"),
    ],
)
def test_a_case_is_run_and_judged_in_a_process_of_its_own(tmp_path, program, verified, error):
    path = tmp_path / SMALL.repository / SMALL.path
    path.parent.mkdir(parents=True)
    path.write_text(program, encoding="utf-8")
    outcome = run_case(SMALL, tmp_path, 1 if "sleep" in program else 60)
    assert outcome.verified == verified
    assert outcome.error.startswith(error)
    assert bool(outcome.error) == bool(error)


def test_outcomes_change_the_rows_of_their_own_operators():
    row = {"repository": "someone/operators", "revision": "1", "path": "impl/twice.py"}
    row |= {"category": "elementwise"}
    other = row | {"path": "impl/thrice.py", "outcome": "refused", "why": "as it was"}
    good = Outcome(SMALL, verified=True, findings=("overlap",))
    verified = row | {"outcome": "verified", "findings": ["overlap"]}
    assert rows_after([row, other], [good]) == [verified, other]
    bad = row | {"outcome": "built", "why": "no"}
    assert rows_after([verified, other], [good, Outcome(SMALL, error="no")]) == [bad, other]


@pytest.mark.sweep
@pytest.mark.skipif(not CHECKOUTS, reason="CUBECORE_TIK_CHECKOUTS names no checkouts to run")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{Path(case.path).stem}-{case.soc}")
def test_the_operator_computes_what_its_oracle_says(case):
    outcome = run_case(case, Path(CHECKOUTS))

    assert outcome.verified, str(outcome)

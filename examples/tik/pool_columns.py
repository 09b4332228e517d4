"""Max pooling 3 x 3 by columns of the image, and its gradient added back by col2img."""

import numpy as np
from tbe import tik

SIZE, OUT = 9, 4
POINTS = OUT * OUT
t = tik.Tik(tik.Dprofile("v100", "cloud"))
x = t.Tensor("float16", (1, SIZE, SIZE, 16), name="x", scope=tik.scope_gm)
grad = t.Tensor("float16", (POINTS, 16), name="grad", scope=tik.scope_gm)
y = t.Tensor("float16", (POINTS, 16), name="y", scope=tik.scope_gm)
dx = t.Tensor("float16", (SIZE * SIZE, 16), name="dx", scope=tik.scope_gm)
image = t.Tensor("float16", (1, SIZE, SIZE, 16), name="image", scope=tik.scope_cbuf)
names = ("best", "columns", "given", "shares", "none")
best, columns, given, shares, none = (
    t.Tensor("float16", (POINTS, 16), name=name, scope=tik.scope_ubuf) for name in names
)
bits = t.Tensor("uint16", (16,), name="bits", scope=tik.scope_ubuf)
back = t.Tensor("float16", (SIZE * SIZE, 16), name="back", scope=tik.scope_ubuf)
t.data_move(image, x, 0, 1, SIZE * SIZE, 0, 0)
t.data_move(given, grad, 0, 1, POINTS, 0, 0)
t.vec_dup(128, best, -65504.0, 2, 8)
t.vec_dup(128, none, 0.0, 2, 8)
t.vec_dup(128, back, 0.0, 10, 8)
t.vec_dup(16, back[1280], 0.0, 1, 8)


def column(down: int, along: int) -> None:
    """Load what one point of the window sees from all places: stride 2, no padding."""
    place = (along, down, 0, 0, 2, 2, 3, 3, 1, 1)
    t.load3dv1(columns, image, (0, 0, 0, 0), SIZE, SIZE, 0, *place, 1, 1, 1)


for point in range(9):
    column(point // 3, point % 3)
    t.vec_max(128, best, best, columns, 2, 8, 8, 8)
for point in range(9):
    column(point // 3, point % 3)
    t.vec_cmpv_eq(bits, columns, best, 2, 8, 8)
    for half in range(2):
        start = 128 * half
        chosen = (shares[start:], bits[8 * half :], given[start:], none[start:])
        t.vec_sel(128, 0, *chosen, 1, 8, 8, 8)
    where = (point % 3, point // 3, 0, 0, 2, 2, 3, 3, 1, 1)
    t.col2img(back, shares, (0, 0, 0, 0), SIZE, SIZE, *where, 1)
t.data_move(y, best, 0, 1, POINTS, 0, 0)
t.data_move(dx, back, 0, 1, SIZE * SIZE, 0, 0)
t.BuildCCE(kernel_name="pool_columns", inputs=[x, grad], outputs=[y, dx])

numbers = np.random.default_rng(23)
pixels = np.stack([numbers.permutation(SIZE * SIZE) for _ in range(16)], 1)  # no equal ones
pixels = pixels.reshape(1, SIZE, SIZE, 16).astype(np.float16)
slopes = numbers.integers(-9, 10, (POINTS, 16)).astype(np.float16)
largest, gradient = t.tikdb.start_debug({"x": pixels, "grad": slopes})
want_y = np.zeros((POINTS, 16), np.float16)
want_dx = np.zeros((SIZE, SIZE, 16), np.float16)
for place in range(POINTS):
    top, left = 2 * (place // OUT), 2 * (place % OUT)
    window = pixels[0, top : top + 3, left : left + 3]
    want_y[place] = window.max((0, 1))
    want_dx[top : top + 3, left : left + 3] += (window == want_y[place]) * slopes[place]
assert np.array_equal(largest, want_y)
assert np.array_equal(gradient, want_dx.reshape(SIZE * SIZE, 16))
print("verified")

"""A 3 x 3 convolution with padding and dilation, and ReLU on the way out."""

import numpy as np
from tbe import tik

H, W, C1, COUT, PAD, STEP = 9, 7, 2, 32, 2, 2
t = tik.Tik(tik.Dprofile("v100", "cloud"))
image = t.Tensor("float16", (C1, H, W, 16), name="image", scope=tik.scope_gm)
weight = t.Tensor("float16", (C1, 3, 3, COUT, 16), name="weight", scope=tik.scope_gm)
out = t.Tensor("float16", (COUT // 16, H * W, 16), name="out", scope=tik.scope_gm)
image_l1 = t.Tensor("float16", (C1, H, W, 16), name="image_l1", scope=tik.scope_cbuf)
weight_l1 = t.Tensor("float16", (C1, 3, 3, COUT, 16), name="weight_l1", scope=tik.scope_cbuf)
rows = (H * W + 15) // 16 * 16
sums = t.Tensor("float32", (COUT // 16, rows, 16), name="sums", scope=tik.scope_cbuf_out)
t.data_move(image_l1, image, 0, 1, C1 * H * W, 0, 0)
t.data_move(weight_l1, weight, 0, 1, C1 * 9 * COUT, 0, 0)
# the padding is as wide as the dilated filter reaches, so that the map keeps its size
shapes = [C1, H, W, 16], [C1, 3, 3, COUT, 16]
t.conv2d(sums, image_l1, weight_l1, *shapes, [1, 1], [PAD] * 4, [STEP, STEP])
leaving = {"quantize_params": {"mode": "fp322fp16", "mode_param": None}, "relu": True}
t.fixpipe(out, sums, COUT // 16, H * W * 16 * 4 // 32, 0, 0, extend_params=leaving)
t.BuildCCE(kernel_name="conv2d", inputs=[image, weight], outputs=[out])

numbers = np.random.default_rng(22)
x = numbers.integers(-4, 5, (C1, H, W, 16)).astype(np.float16)
w = numbers.integers(-4, 5, (C1, 3, 3, COUT, 16)).astype(np.float16)
(got,) = t.tikdb.start_debug({"image": x, "weight": w})
padded = np.pad(x, ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0))).astype(np.float64)
want = np.zeros((H, W, COUT))
for i in range(3):
    for j in range(3):
        seen = padded[:, i * STEP : i * STEP + H, j * STEP : j * STEP + W]
        want += np.einsum("chwi,coi->hwo", seen, w[:, i, j].astype(np.float64))
want = np.maximum(want, 0).reshape(H * W, COUT // 16, 16).transpose(1, 0, 2)
assert np.array_equal(got, want)
print("verified")

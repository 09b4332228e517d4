"""Greedy suppression of boxes that overlap a better one by more than half, 16 at a time."""

import numpy as np
from tbe import tik

BOXES, GROUP = 64, 16
SHARE = 0.5 / 1.5  # of the sum of two areas: what an overlap of half of their union is
t = tik.Tik(tik.Dprofile("v100", "cloud"))
boxes = t.Tensor("float16", (BOXES, 8), name="boxes", scope=tik.scope_gm)
marks = t.Tensor("uint16", (BOXES,), name="marks", scope=tik.scope_gm)
held = t.Tensor("float16", (BOXES, 8), name="held", scope=tik.scope_ubuf)
areas = t.Tensor("float16", (BOXES,), name="areas", scope=tik.scope_ubuf)
common = t.Tensor("float16", (BOXES, GROUP), name="common", scope=tik.scope_ubuf)
sums = t.Tensor("float16", (BOXES, GROUP), name="sums", scope=tik.scope_ubuf)
matrix = t.Tensor("uint16", (BOXES,), name="matrix", scope=tik.scope_ubuf)
gone = t.Tensor("uint16", (BOXES,), name="gone", scope=tik.scope_ubuf)
t.data_move(held, boxes, 0, 1, BOXES // 2, 0, 0)
t.vrpac(areas, held, BOXES // GROUP)
t.vec_dup(BOXES, gone, 1, 1, 8)
with t.for_range(0, BOXES // GROUP) as group:
    before = group + 1  # groups up to this one judge it
    t.viou(common, held, held[group * GROUP, 0], before)
    t.vaadd(sums, areas, areas[group * GROUP], before)
    t.vmuls(128, sums, sums, SHARE, 2 * before, 1, 1, 8, 8)
    t.vcmpv_gt(matrix, common, sums, 2 * before, 1, 1, 8, 8)
    register = t.set_rpn_cor_ir(0)
    with t.if_scope(group > 0):
        register = t.rpn_cor(matrix, gone, 1, 1, group)
    t.rpn_cor_diag(gone[group * GROUP], matrix[group * GROUP], register)
t.data_move(marks, gone, 0, 1, BOXES // 16, 0, 0)
t.BuildCCE(kernel_name="suppression", inputs=[boxes], outputs=[marks])

numbers = np.random.default_rng(27)
corners = numbers.integers(0, 30, (BOXES, 2))
given = np.concatenate(
    [corners, corners + numbers.integers(6, 30, (BOXES, 2)), np.zeros((BOXES, 4))], axis=1
).astype(np.float16)
(got,) = t.tikdb.start_debug({"boxes": given})
x1, y1, x2, y2 = given[:, :4].astype(np.float64).T
area = (x2 - x1 + 1) * (y2 - y1 + 1)
wide = np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1) + 1
tall = np.minimum(y2[:, None], y2) - np.maximum(y1[:, None], y1) + 1
overlap = np.maximum(wide, 0) * np.maximum(tall, 0)
limit = ((area[:, None] + area).astype(np.float16) * np.float16(SHARE)).astype(np.float64)
want = np.zeros(BOXES, np.uint16)
for box in range(BOXES):
    if not want[box]:
        want[box + 1 :] |= overlap[box, box + 1 :] > limit[box, box + 1 :]
assert np.array_equal(got, want)
assert 0 < want.sum() < BOXES
print("verified")

"""What an index means: an element of the flattened tensor, a view, the same bytes renamed."""

import numpy as np
from tbe import tik

t = tik.Tik(tik.Dprofile("v200", "aic"))
x = t.Tensor("int16", (4, 32), name="x", scope=tik.scope_gm)
y = t.Tensor("int16", (7, 16), name="y", scope=tik.scope_gm)
z = t.Tensor("int32", (16,), name="z", scope=tik.scope_gm)
a = t.Tensor("int16", (4, 32), name="a", scope=tik.scope_ubuf)
t.data_move(a, x, 0, 1, 8, 0, 0)
places = (a[16], a[2, 0], a[2, 16:], a[-16], a.reshape((8, 16))[3, 0], a[32:][16], a.flatten()[48])
for row, view in enumerate(places):
    t.data_move(y[row, 0], view, 0, 1, 1, 0, 0)
wide = a.reinterpret_cast_to("int32")
t.data_move(z, wide[1, 0], 0, 1, 2, 0, 0)
t.BuildCCE(kernel_name="views", inputs=[x], outputs=[y, z])

given = np.arange(128, dtype=np.int16).reshape(4, 32)
rows, words = t.tikdb.start_debug({"x": given})
flat = given.reshape(-1)
assert rows[:, 0].tolist() == [16, 64, 80, 112, 48, 48, 48]
assert np.array_equal(words, flat.view(np.int32)[16:32])
print("verified")

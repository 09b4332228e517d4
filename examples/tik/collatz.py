"""A state machine of Scalars: loops, branches of three ways, and a loop that is left."""

from tbe import tik

N, MOST = 24, 128
t = tik.Tik()
y = t.Tensor("int32", (N,), name="y", scope=tik.scope_gm)
steps = t.Tensor("int32", (N,), name="steps", scope=tik.scope_ubuf)
number, count = t.Scalar("int32", name="number"), t.Scalar("int32", name="count")
with t.for_range(0, N) as i:
    number.set_as(i + 1)
    count.set_as(0)
    with t.for_range(0, MOST):
        with t.if_scope(number == 1):
            t.tik_break()
        with t.elif_scope(number % 2 == 0):
            number.set_as(number // 2)
        with t.else_scope():
            number.set_as(number * 3 + 1)
        count.set_as(count + 1)
    steps[i].set_as(count)
t.data_move(y, steps, 0, 1, N * 4 // 32, 0, 0)
t.BuildCCE(kernel_name="collatz", inputs=[], outputs=[y])

want = []
for start in range(1, N + 1):
    value, length = start, 0
    while value != 1:
        value, length = (value // 2 if value % 2 == 0 else 3 * value + 1), length + 1
    want.append(length)
(got,) = t.tikdb.start_debug({})
assert got.tolist() == want
print("verified")

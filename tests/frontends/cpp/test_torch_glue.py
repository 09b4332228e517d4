"""Bindings for PyTorch, called without it: their values, their operators, their kernels."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import COMPILER, RequestError
from cubecore.frontends.cpp.host_programs.torch_glue import HEADERS, compiled_binding
from cubecore.frontends.kernels.session import ScriptSession
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
VALUES = """#include <torch/extension.h>
#include <ATen/Scalar.h>
#include "pytorch_npu_helper.hpp"
#include "aclnn_turn.h"

static std::string told(const at::Tensor& x, c10::optional<at::Tensor> y, at::IntArrayRef axes,
                        const std::vector<double>& reals, bool flag, std::string text,
                        const at::Scalar& scalar) {
  std::ostringstream out;
  out << x.sizes() << ' ' << x.scalar_type() << ' ' << x.numel() << ' ' << y.has_value() << ' '
      << axes << ' ' << reals.size() << ' ' << flag << ' ' << text << ' ' << scalar.toDouble();
  return out.str();
}
static std::tuple<at::Tensor, at::Tensor> views(const at::Tensor& x) {
  return {x.transpose(0, 1).contiguous(), x.reshape({-1}).slice(0, 1, 5).to(torch::kInt)};
}
static void doubled(at::Tensor& x) { x.copy_(at::full_like(x, 2 * x.select(0, 0).item<float>())); }
static std::vector<at::Tensor> made(at::TensorList xs, int64_t count) {
  TORCH_CHECK(count <= static_cast<int64_t>(xs.size()), "count is ", count, " of ", xs.size());
  std::vector<at::Tensor> all;
  for (int64_t n = 0; n < count; ++n) all.push_back(at::empty_like(xs[n]));
  return all;
}
static double element(const at::Tensor& x, int64_t row, int64_t column) {
  return x.accessor<float, 2>()[row][column];
}
static std::vector<int64_t> counted(const at::Tensor& x) {
  return {x.sum().item<int64_t>(), x.max().item<int64_t>(), x.min().item().toLong()};
}
static at::Tensor zeros(int64_t n) { return torch::zeros({n, 2}, torch::dtype(torch::kHalf)); }
static at::Tensor run(const at::Tensor& x, at::IntArrayRef axes, c10::optional<at::Tensor> bias) {
  at::Tensor out = at::empty({x.size(1), x.size(-2)}, x.options());
  EXEC_NPU_CMD(aclnnTurn, x.transpose(0, 1), ConvertType(axes), bias, 0.5, true, out);
  return out;
}
static aclTensor* described(const at::Tensor& x) {
  return aclCreateTensor(x.sizes().data(), x.dim(), ACL_FLOAT, x.strides().data(), 0, ACL_FORMAT_ND,
                         x.sizes().data(), x.dim(), x.data_ptr());
}
static at::Tensor two_step(const at::Tensor& x, at::IntArrayRef axes) {
  at::Tensor out = at::empty({x.size(1), x.size(0)}, x.options()), turned = x.transpose(0, 1);
  aclTensor *from = described(turned), *to = described(out);
  aclIntArray* order = aclCreateIntArray(axes.data(), axes.size());
  float half = 0.5f;
  aclScalar* scale = aclCreateScalar(&half, ACL_FLOAT);
  uint64_t bytes = 1;
  aclOpExecutor* executor = nullptr;
  if (aclnnTurnGetWorkspaceSize(from, order, nullptr, scale, true, to, &bytes, &executor) != 0 ||
      bytes != 0)
    return x;
  if (aclnnTurn(nullptr, bytes, executor, c10_npu::getCurrentNPUStream()) != 0) return x;
  aclDestroyTensor(from);
  aclDestroyTensor(to);
  aclDestroyIntArray(order);
  aclDestroyScalar(scale);
  return out;
}
static void no_first_step() { aclnnTurn(nullptr, 0, nullptr, nullptr); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "values";
  m.def("two_step", &two_step);
  m.def("no_first_step", &no_first_step);
  m.def("told", &told, "told", py::arg("x"), py::arg("y") = py::none(), py::arg("axes"),
        py::arg("reals"), py::arg("flag"), py::arg("text"), py::arg("scalar") = 7);
  m.def("views", &views);
  m.def("doubled", &doubled);
  m.def("made", &made);
  m.def("element", &element);
  m.def("zeros", &zeros);
  m.def("counted", &counted);
  m.def("run", &run);
  m.def("vast", [](at::Tensor x) { return x.expand({1l << 40, 1l << 40, 2, 3}); });
  m.def("none", [] { return at::empty({0, 1l << 40, 1l << 40}, at::kFloat); });
  m.def("spread", [](at::Tensor x, at::Tensor y) { return x.expand_as(y).contiguous(); });
  m.def("lasting", [] {
    const std::array<int64_t, 2> two{2, 3};
    const std::vector<int64_t> one{4};
    at::IntArrayRef sizes(two), more = one;
    return at::empty({sizes[0], sizes.slice(1)[0], at::IntArrayRef({5, 6}).back(), more[0]});
  });
  m.def("of_array", [] { return at::empty(std::array<int64_t, 2>{2, 3}, at::kFloat); });
  m.def("of_braces", [](at::Tensor x) {
    at::IntArrayRef sizes{x.size(0), x.size(1) * 2};
    return at::empty(sizes, x.options());
  });
  m.def("of_vector", [](at::Tensor x) {
    at::IntArrayRef sizes = std::vector<int64_t>{x.size(0), 2};
    return at::empty(sizes.slice(1), x.options());
  });
  m.def("plus", [](double a, double b) { return a + b; }, py::arg("a"), py::arg("b") = 0.5);
}
"""
KERNEL = """#include "kernel_operator.h"
#include <torch/extension.h>
#include "torch_npu/csrc/core/npu/NPUStream.h"
using namespace AscendC;

__global__ __aicore__ void negate(GM_ADDR x, GM_ADDR y, uint32_t count) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 512);
  pipe.InitBuffer(out, 1, 512);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * 128, 128);
  to.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * 128, 128);
  LocalTensor<float> a = in.AllocTensor<float>(), b = out.AllocTensor<float>();
  DataCopy(a, from, 128);
  in.EnQue(a);
  a = in.DeQue<float>();
  Muls(b, a, -1.0f, 128);
  out.EnQue(b);
  b = out.DeQue<float>();
  DataCopy(to, b, count);
  in.FreeTensor(a);
  out.FreeTensor(b);
}

namespace mine {
at::Tensor run_negate(const at::Tensor& x, int64_t count) {
  at::Tensor y = at::empty_like(x);
  auto stream = c10_npu::getCurrentNPUStream().stream(false);
  negate<<<x.numel() / 128, nullptr, stream>>>(
      (uint8_t*)x.data_ptr(), (uint8_t*)y.mutable_data_ptr(), static_cast<uint32_t>(count));
  return y;
}
}
TORCH_LIBRARY(mine, m) { m.def("run_negate(Tensor x, int count) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("run_negate", TORCH_FN(mine::run_negate)); }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
TURN = ("aclnnTurn", [1, 0], None, 0.5, True, [False] * 5 + [True])
"""A call of the operator as Python gets it, by one step or by two."""


def no_operator(name, *_):
    raise AssertionError(name)


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    file = tmp_path_factory.mktemp("values") / "binding.cpp"
    file.write_text(VALUES)
    return compiled_binding([file], no_operator, arch="2201")


def test_arguments_come_as_the_types_of_the_parameters(values) -> None:
    half = X.astype(np.float16)
    got = values.call("told", [half, None, [0, 1], [0.5]], {"flag": True, "text": "a b"}).value
    assert got == "[2, 3] Half 6 0 [0, 1] 1 1 a b 7"
    got = values.call("told", [half, half, (), [], False, "", 2.5]).value
    assert got == "[2, 3] Half 6 1 [] 0 0  2.5"


def test_views_and_conversions(values) -> None:
    turned, part = values.call("views", [X]).value
    assert np.array_equal(turned, X.T)
    assert part.dtype == np.int32
    assert part.tolist() == [1, 2, 3, 4]


def test_a_tensor_is_spread_over_the_sizes_of_another(values) -> None:
    got = values.call("spread", [X[:1], np.zeros((4, 2, 3), np.float32)]).value
    assert got.tolist() == np.broadcast_to(X[:1], (4, 2, 3)).tolist()


def test_an_argument_is_changed_in_place(values) -> None:
    for kind in (np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.uint8):
        x = np.full(4, 3, kind)
        values.call("doubled", [x])
        assert x.tolist() == [6] * 4, kind


def test_what_nobody_wrote_is_known(values) -> None:
    made = values.call("made", [[X, X], 1])
    assert [mask.any() for mask in made.written] == [False]
    zeros = values.call("zeros", [3])
    assert (zeros.value.shape, zeros.value.dtype.name) == ((3, 2), "float16")
    assert zeros.written[0].all()


def test_elements_by_their_indices(values) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert values.call("element", [x, 2, 1]).value == x[2, 1]
    with pytest.raises(RequestError) as caught:
        values.call("element", [x[0], 0, 0])
    assert "accessor of 2 dimensions of a tensor of 1" in str(caught.value)


def test_sizes_that_depend_on_values(values) -> None:
    for kind in (np.int64, np.int32, np.uint8):
        assert values.call("counted", [np.array([[3, 9], [5, 2]], kind)]).value == [19, 9, 2]
    assert values.call("counted", [np.array([True, False, True])]).value == [2, 1, 0]


def test_lists_of_sizes(values) -> None:
    assert values.call("lasting", []).value.shape == (2, 3, 6, 4)
    assert values.call("of_array", []).value.shape == (2, 3)


def test_defaults_and_lambdas(values) -> None:
    assert values.call("plus", [2]).value == 2.5
    assert values.call("plus", [], {"b": 1.5, "a": 1}).value == 2.5


GONE = (
    "an ArrayRef is used after the expression that made its values, where these are gone; keep them"
    " in a std::vector"
)
REFUSED = {
    "the binding made: count <= static_cast<int64_t>(xs.size()) does not hold: count is 3 of 2": (
        ("made", [[X, X], 3])
    ),
    "the binding has no function other, only two_step no_first_step told views doubled made "
    "element zeros counted run vast none spread lasting of_array of_braces of_vector plus": (
        ("other", [])
    ),
    f"the binding of_braces: {GONE}": ("of_braces", [X]),
    f"the binding of_vector: {GONE}": ("of_vector", [X]),
    "the binding has a tensor of 4 axes, whose bytes cannot be counted": ("vast", [X]),
    "the binding has a tensor of 3 axes, whose bytes cannot be counted": ("none", []),
    "the binding plus: plus takes 2 arguments, got 3": ("plus", [1, 2, 3]),
    "the binding counted: sum(), max() and min() in a binding are for integers, got Float": (
        ("counted", [X])
    ),
    "the binding views: a Tensor is needed": ("views", [3]),
    "the binding no_first_step: aclnnTurn needs the executor of its first step": (
        ("no_first_step", [])
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_is_refused(values, sentence) -> None:
    name, arguments = REFUSED[sentence]
    with pytest.raises(RequestError) as caught:
        values.call(name, arguments)
    assert str(caught.value).replace(",", "") == sentence.replace(",", "")


def test_an_operator_gets_its_arguments_and_leaves_its_output(tmp_path: Path) -> None:
    seen = []

    def run(name, arguments, unwritten):
        x, axes, bias, half, flag, out = arguments
        seen.append((name, axes, bias, half, flag, list(unwritten)))
        out[...] = x
        mask = np.zeros(out.nbytes, np.bool_)
        mask[:8] = True
        return [None] * 5 + [mask]

    file = tmp_path / "binding.cpp"
    file.write_text(VALUES)
    binding = compiled_binding([file], run, arch="2201")
    steps = binding.call("two_step", [X, [1, 0]])
    assert (seen.pop(), steps.value.tolist()) == (TURN, X.T.tolist())
    assert steps.written[0].tolist() == [True] * 8 + [False] * 16
    got = binding.call("run", [X, [1, 0], None])
    assert seen == [TURN]
    assert np.array_equal(got.value, X.T)
    assert got.written[0].tolist() == [True] * 8 + [False] * 16


def test_a_binding_launches_kernels_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "custom_op.asc"
    file.write_text(KERNEL)
    binding = compiled_binding([file], no_operator, arch="2201")
    x = np.arange(256, dtype=np.float32)
    session = ScriptSession()
    with session.collecting():
        whole = binding.call("run_negate", [x, 128])
        part = binding.call("run_negate", [x, 64])
    assert np.array_equal(whole.value, -x)
    assert whole.written[0].all()
    assert np.count_nonzero(part.written[0]) == part.written[0].size // 2
    assert [(run.kernel, run.blocks, run.clean) for run in session.runs] == [
        ("negate", 2, True)
    ] * 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#include <torch/extension.h>\nat::Tensor f(at::Tensor x) { return y; }\n", 2),
        ("at::Tensor f(at::Tensor x) { return x; }\n", 1),  # it includes nothing of PyTorch's
    ],
)
def test_a_binding_that_does_not_compile(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "binding.cpp"
    file.write_text(text)
    with pytest.raises(RequestError, match=rf"binding\.cpp:{line} ") as caught:
        compiled_binding([file], no_operator, arch="2201")
    assert caught.value.origin == COMPILER


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("at::softmax(x, 1)", "at::softmax"),
        ("torch::nn::functional::relu(x)", "torch::nn"),
        ("x.svd()", "at::Tensor::svd"),
        ("x.sums()", "at::Tensor::sums"),
        ("x * x", "an operator of at::Tensor"),
        ("-x", "an operator of at::Tensor"),
        ("2 + x", "an operator of at::Tensor"),
    ],
)
def test_a_binding_that_computes_with_pytorch(tmp_path: Path, expression: str, name: str) -> None:
    text = "#include <torch/extension.h>\nat::Tensor f(const at::Tensor& x) {\n  return {};\n}\n"
    (tmp_path / "binding.cpp").write_text(text.replace("{}", expression))
    with pytest.raises(RequestError) as caught:
        compiled_binding([tmp_path / "binding.cpp"], no_operator, arch="2201")
    sentence = str(caught.value).partition("binding.cpp")[2]
    assert sentence == (
        f":3: {name} is not provided for bindings, which compute in kernels alone;"
        " docs/binding_names.md lists the names that are"
    )


def test_headers_have_names_of_their_own() -> None:
    assert len({*HEADERS}) == len(HEADERS)

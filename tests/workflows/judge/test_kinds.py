"""Submissions are told by their content alone, whatever their names are."""

import json

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.judge.submissions.kinds import submission_of
from cubecore.workflows.judge.submissions.packages import sources_of
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.judge.judged_kernels import ADD, PYTHON, TASK, strings

MODEL = "class ModelNew:\n    pass\n"
BINDING = """#include <torch/library.h>
at::Tensor shape(const at::Tensor& x, const at::Tensor& y) { return at::empty_like(x); }
at::Tensor run(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor z = at::empty_like(x);
  auto raw = [](const at::Tensor& one) { return (uint8_t*)one.data_ptr(); };
  add<<<4, nullptr, nullptr>>>(raw(x), raw(y), raw(z));
  return z;
}
TORCH_LIBRARY_FRAGMENT(mine, m) { m.def("plus(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, Meta, m) { m.impl("plus", shape); }
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("plus", run); }
"""
SOURCES = [{"path": "a.cpp", "content": ADD}, {"path": "m.py", "content": MODEL}]
FOLDERS = {
    "operator project": {"op_host/a.cpp": "", "op_kernel/a.cpp": ADD},
    "kernel with model": {"a.asc": ADD, "model_new.py": MODEL},
    "package of bindings": {"setup.py": "", "CMakeLists.txt": "", "csrc/a.cpp": ADD + BINDING},
    "sample": {"CMakeLists.txt": "", "a.asc": ADD},
}
FILES = {
    "six strings": ("answer.txt", strings()),
    "direct launch": ("answer.json", json.dumps({"sources": SOURCES})),
    "kernel": ("answer.cpp", ADD),
    "Python kernel": ("answer.py", PYTHON),
}


@pytest.mark.parametrize("kind", [*FOLDERS, *FILES])
def test_a_kind_is_told_by_its_content(tmp_path, kind) -> None:
    files = FOLDERS.get(kind, dict([FILES[kind]]) if kind in FILES else {})
    for name, text in files.items():
        (tmp_path / "s" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "s" / name).write_text(text)
    place = tmp_path / "s" if kind in FOLDERS else tmp_path / "s" / FILES[kind][0]
    assert submission_of(place).kind == kind


@needs_compiler
def test_a_package_of_bindings_is_called_by_an_operator_s_name(tmp_path) -> None:
    package = tmp_path / "package"
    (package / "csrc").mkdir(parents=True)
    (package / "setup.py").write_text("import os\n")
    (package / "csrc" / "a.cpp").write_text(ADD + BINDING)
    (tmp_path / "plus.py").write_text(TASK)
    verdict = cubecore.judge(package, tmp_path / "plus.py")
    assert (verdict.correct, verdict.cheating) == (True, ())
    assert verdict.coverage["bytes_written"] == verdict.coverage["bytes_expected"]
    with pytest.raises(RequestError) as caught:
        sources_of(package, "minus")
    assert str(caught.value) == (
        "entry must name an operator that the package registers (plus), got minus"
    )

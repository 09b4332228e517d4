"""Names of the documentation in one list: what is refused, and by which names headers go."""

import pytest

from cubecore.frontends.cpp import documented
from cubecore.frontends.cpp.documented import documented_names, header_names
from cubecore.frontends.cpp.files import HERE
from cubecore.frontends.cpp.toolchain import api_names
from cubecore.frontends.cpp.toolchain.api_names import is_missing, missing_names, provided

SMALL = """# names
[names]
Abs Clamp Squeeze
asc_other
[headers of kernels]
. basic_api: kernel_tensor.h
    kernel_type.h
lib/math: sin.h
lib/matmul > cubecore/matmul/names.h: matmul.h
[headers of op_hosts]
log > base: log.h
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Put a short list in the place of the package's."""
    (tmp_path / documented.LIST).write_text(SMALL)
    monkeypatch.setattr(documented, "HERE", tmp_path)
    for each in (documented_names, header_names):
        each.cache_clear()
    yield
    for each in (documented_names, header_names):
        each.cache_clear()


@pytest.mark.usefixtures("small")
def test_headers_are_listed_by_folders_with_what_they_include():
    assert header_names() == {
        "kernel_tensor.h": "",
        "basic_api/kernel_tensor.h": "",
        "kernel_type.h": "",
        "basic_api/kernel_type.h": "",
        "lib/math/sin.h": "",
        "lib/matmul/matmul.h": "cubecore/matmul/names.h",
    }
    assert header_names("op_hosts") == {"log/log.h": "base"}


@pytest.mark.usefixtures("small")
def test_a_listed_name_is_missing_unless_headers_of_every_kernel_have_it():
    assert missing_names() == {"asc_other"}
    assert is_missing("asc_other")
    assert not is_missing("Squeeze")  # of architecture 3510, as Clamp
    assert not is_missing("Abs")
    assert not is_missing("Unheard")
    names = {name for each in provided().values() for name in each}
    assert {"Abs", "Clamp", "Squeeze"} <= names  # the last two for architecture 3510 alone


def test_every_line_of_the_list_is_read():
    text = (HERE / documented.LIST).read_text("ascii")
    words = text.partition("[headers of kernels]")[2].split()
    listed = [word for word in words if word.endswith(".h") and "cubecore/" not in word]
    every = {**header_names(), **header_names("op_hosts")}
    assert set(listed) == {name.rpartition("/")[2] for name in every}
    assert len(header_names()) > 150
    assert len(documented_names()) > 1000
    assert max(map(len, text.splitlines())) <= 100


def test_the_headers_of_one_architecture_are_found():
    found = api_names._of_every_kernel()
    assert "Add" in found
    assert "BitwiseAnd" not in found

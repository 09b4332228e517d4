"""Programs of several files: cubecore c++, the environment of CMake projects, samples."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cubecore.workflows.scripts import sample
from cubecore.workflows.scripts.project_sample import ProjectSample
from cubecore.workflows.scripts.sample import steps_of
from frontends.cpp.cpp_kernels import cli, demo, needs_compiler, write_files
from frontends.cpp.test_launch import ADD
from frontends.cpp.test_program import COPY, MAIN

pytestmark = needs_compiler
DECLARED = "void add_do(uint32_t, void*, uint8_t*, uint8_t*, uint8_t*, uint32_t);\n"
HOST = "#include <cstdint>\n" + DECLARED + MAIN.replace(
    "add_queued<<<8, nullptr, stream>>>(", "add_do(8, stream, "
)  # fmt: skip
KERNEL = """#include "part/add.h"

void add_do(uint32_t blocks, void* stream, uint8_t* a, uint8_t* b, uint8_t* c, uint32_t n) {
  add_queued<<<blocks, nullptr, stream>>>(a, b, c, n);
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.16)
set(CMAKE_ASC_ARCHITECTURES "dav-2201" CACHE STRING "")
find_package(ASC REQUIRED)
project(kernels LANGUAGES ASC CXX)
add_executable(demo main.cpp kernel.asc)
target_link_libraries(demo PRIVATE tiling_api platform m dl)
target_compile_definitions(demo PRIVATE WORDS=${WORDS})
target_compile_options(demo PRIVATE
  $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES}>)
"""
README = """# A sample

```bash
source ${install_path}/set_env.sh
```

```bash
WORDS=7
mkdir -p build && cd build;    # a folder
cmake -DCMAKE_ASC_ARCHITECTURES=dav-2201 -DWORDS=$WORDS ..;make -j;
rm -rf /nowhere
python3 ../scripts/gen_data.py -n=$WORDS   # data
./demo $WORDS 2>&1 | tee run.log
python3 ../scripts/verify_result.py out.bin golden.bin
```

```bash
cmake -DCMAKE_ASC_RUN_MODE=sim ..
./demo
```
"""


@pytest.fixture
def files(tmp_path):
    """Return a folder with a host program, a kernel's file and the header that it includes."""
    written(tmp_path)
    return tmp_path


def written(folder):
    (folder / "main.cpp").write_text(HOST.replace("COPY_Y", COPY))
    (folder / "kernel.cpp").write_text(KERNEL)
    (folder / "part").mkdir()
    (folder / "part" / "add.h").write_text(ADD.read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with the two files compiled, and a program of them."""
    folder = tmp_path_factory.mktemp("built")
    written(folder)
    for name in ("main", "kernel"):
        call = ("c++", "-c", f"{name}.cpp", "-O2", "-o", f"{name}.o")
        assert cli(folder, *call) == (0, "", "")
    words = ("main.o", "kernel.o", "-lascendcl", "-ltiling_api", "-lm", "-o", "demo")
    assert cli(folder, "c++", *words) == (0, "", "")
    return folder


@pytest.mark.sweep
def test_objects_are_linked_to_a_program(built):
    done = subprocess.run(["./demo"], cwd=built, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrong: 0, words: 1\n", "")
    assert demo(built, "a", "b") == (0, "wrong: 0, words: 3\n", "")
    assert demo(built, CUBECORE_REPORT="r.html") == (0, "wrong: 0, words: 1\n", "")
    assert "add_queued" in (built / "r.html").read_text()
    code, out, err = cli(built, "run", "demo", "more")
    assert (code, err) == (0, "")
    assert out.count("add_queued[8] on Ascend910B3") == 2


def test_findings_go_to_standard_error_and_make_the_code_1(built):
    text = HOST.replace("COPY_Y", "").replace("return wrong == 0 ? 0 : 3;", "return 0;")
    (built / "other.cpp").write_text(text)
    assert cli(built, "c++", "other.cpp", "kernel.o", "-o", "other") == (0, "", "")
    code, out, err = demo(built, program="other")
    assert (code, out.startswith("wrong: ")) == (1, True)
    assert err.startswith(
        "add_queued[8] on Ascend910B3\nFindings: 1\n  uninitialised: Add (vadd) at part/add.h:55 "
    )
    assert demo(built, program="other", CUBECORE_CHECKS="none") == (0, out, "")


BAD_CALLS = [
    ((), "c++ needs a file; as in: cubecore c++ main.cpp kernel.cpp -o demo"),
    (("a.cpp",), "cannot read a.cpp: no such file"),
    (("main.cpp", "-o"), "-o needs a value"),
    (("--fast", "main.cpp"), "c++ does not know --fast; see cubecore c++ --help"),
    (
        ("--npu-arch=dav-2002", "main.cpp"),
        "--npu-arch must be dav-2201 or dav-3510 or dav-3003 or dav-3113 for C++ kernels, got "
        "dav-2002",
    ),
    (("-c", "main.cpp", "kernel.cpp", "-o", "a.o"), "-o with -c takes one file; compile the files "
     "one by one"),
    (("main.o",), "main.cpp:39 does not link: no add_do(unsigned int, void*, unsigned char*, "
     "unsigned char*, unsigned char*, unsigned int)"),
    (("main.o", "kernel.o", "-o", "no/demo"), "cannot write no/demo: no such file or "
     "directory"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), BAD_CALLS)
def test_a_bad_call_of_the_compiler_is_one_sentence(built, words, sentence):
    before = sorted(built.iterdir())
    code, out, err = cli(built, "c++", *words)
    assert (code, out, err.lower()) == (2, "", f"{sentence}\n".lower())
    assert sorted(built.iterdir()) == before


def test_a_program_of_other_headers_is_refused(built):
    raw = (built / "demo").read_bytes().split(b"\n", 3)
    (built / "old").write_bytes(b"\n".join([*raw[:2], b"# 0123", raw[3]]))
    code, out, err = demo(built, program="old")
    assert (code, out) == (2, "")
    other = "was built with other headers than those of this version; build it again"
    assert err == f"{built}/old {other}\n"


def test_steps_of_a_readme_are_those_that_build_run_and_verify():
    assert steps_of(README) == (
        ("cmake", "-DCMAKE_ASC_ARCHITECTURES=dav-2201", "-DWORDS=7", ".."),
        ("make", "-j"),
        ("python3", "../scripts/gen_data.py", "-n=7"),
        ("./demo", "7", "2>&1", "|", "tee", "run.log"),
        ("python3", "../scripts/verify_result.py", "out.bin", "golden.bin"),
    )
    assert steps_of("# none\n") == ()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake is here")
def test_a_sample_shows_notes_of_its_host_code(monkeypatch):
    note = "note: GetTiling returns -1: MultiCoreMatmulTiling: m must be at least 1, got 0"
    title = "add[8] on Ascend910B3"
    for said, told in (
        (f"{note}\nwrong: 0\n", [note]),
        (f"{note}\n{title}\n  findings none\n", [note, f"{title}\n  findings none"]),
        ("a note: none\n", []),
    ):
        monkeypatch.setattr(sample, "run_step", lambda *_, said=said: (0, said))
        steps = sample._Steps("folder", 1.0, None)
        assert steps.run(("./demo",), Path()) is None
        assert steps.told == told


def test_a_sample_is_built_run_and_verified(files):
    folder = files / "sample"
    (folder / "scripts").mkdir(parents=True)
    shutil.move(files / "part", folder / "part")
    main = (files / "main.cpp").read_text().replace(
        'printf("wrong', 'fclose(fopen("out.bin", "wb")); printf("wrong'
    )  # fmt: skip
    (folder / "main.cpp").write_text(main.replace("argc)", "argc + WORDS)"))
    (folder / "kernel.asc").write_text(KERNEL)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "README.md").write_text(README)
    (folder / "scripts" / "gen_data.py").write_text(
        "import sys, numpy\nassert sys.argv[1] == '-n=7'\n"
        "numpy.zeros(0, 'u1').tofile('golden.bin')\n"
    )
    (folder / "scripts" / "verify_result.py").write_text(
        "import sys\na, b = (open(name, 'rb').read() for name in sys.argv[1:])\n"
        "assert 'wrong' in open('run.log').read()\n"
        "print('test pass' if a == b else '[ERROR] result error')\n"
    )
    code, out, err = cli(files, "sample", "sample")
    assert (code, out.startswith("sample: verified in "), err) == (0, True, "")
    data = folder / "scripts" / "gen_data.py"
    data.write_text(data.read_text().replace("zeros(0", "zeros(3"))
    end = "sample: verify_result.py failed: [ERROR] result error\n"
    assert cli(files, "sample", "sample") == (1, end, "")


PROJECT = """cmake_minimum_required(VERSION 3.16)
set(NPU_ARCH "dav-2201" CACHE STRING "")
find_package(ASC REQUIRED)
project(samples LANGUAGES ASC CXX)
find_package(Git REQUIRED)
add_custom_target(parts COMMAND ${GIT_EXECUTABLE} submodule update --init nowhere)
add_compile_options("$<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${NPU_ARCH}>")
add_subdirectory(other)
add_subdirectory(two)
"""
PROGRAM = """#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"
extern "C" __global__ __vector__ void k(GM_ADDR x) {
  AscendC::GlobalTensor<int32_t> xg;
  xg.SetGlobalBuffer((__gm__ int32_t*)x);
  xg.SetValue(0, __NPU_ARCH__);
}
int main(int argc, char** argv) {
  uint8_t* x;
  aclrtMalloc((void**)&x, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  k<<<1, nullptr, nullptr>>>(x);
  int32_t arch = 0;
  aclrtMemcpy(&arch, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST);
  FILE* data = fopen("m.bin", "r");
  printf("%s of %d words on %d\\n", data ? "pass" : "[ERROR] no data", argc - 1, arch);
}
"""
PART = """
```bash
cmake -S . -B build -DNPU_ARCH=dav-3510
cmake --build build --target two_second
python3 gen_data.py -n 3
./two_second 3 4
python3 scripts/verify_result.py <m>
python3 scripts/verify_result.py m.bin
```
"""


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake is here")
def test_a_part_of_a_project_is_a_sample(tmp_path):
    """Its program alone is built, for the chip that its README names."""
    programs = "file(GLOB FILES src/*.asc)\nforeach(FILE ${FILES})\n"
    programs += (
        "get_filename_component(NAME ${FILE} NAME_WE)\nadd_executable(two_${NAME} ${FILE})\n"
    )
    programs += "add_dependencies(two_${NAME} parts)\n"
    programs += "set_target_properties(two_${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY out)\n"
    programs += "endforeach()\n"
    data = "import sys\nassert sys.argv[1:] == ['-n', '3']\nopen('m.bin', 'w').close()\n"
    files = {
        "CMakeLists.txt": PROJECT,
        "other/CMakeLists.txt": "nonsense()",
        "two/CMakeLists.txt": programs,
        "two/src/first.asc": "nonsense",
        "two/src/second.asc": PROGRAM,
        "two/README.md": PART,
        "two/scripts/gen_data.py": data,
        "two/scripts/verify_result.py": "import sys\nassert sys.argv[1:] == ['m.bin']\n",
    }
    write_files(tmp_path, files)
    code, out, err = cli(tmp_path, "sample", "two/src/second.asc", "--verbose")
    assert (code, err) == (0, "")
    assert "pass of 2 words on 3510" in out
    assert cli(tmp_path, "sample", "two")[0] == 2
    part = ProjectSample(tmp_path, tmp_path / "two", tmp_path, tmp_path / "two/first/main.asc")
    assert part.target("... two_main\n... first_main\n") == "first_main"
    assert part.target("... of_first\n... of_second\n") == "of_first"


def test_a_program_takes_the_words_of_the_one_that_a_readme_runs(tmp_path):
    data = "python3 ./two/scripts/gen_data.py -n 8 -k 3"
    runs = "./build/two/second 8 3"
    for lines, words in (((data, runs), ("8", "3")), ((data,), ())):
        files = {
            "two/README.md": "```bash\n" + "\n".join(lines) + "\n```\n",
            "two/scripts/gen_data.py": "",
            "two/build/two/first": "",
        }
        write_files(tmp_path, files)
        part = ProjectSample(tmp_path, tmp_path / "two", tmp_path / "two", None)
        made = ("python3", "gen_data.py", "-n", "8", "-k", "3")
        assert list(part.steps("first")) == [made, ("./first", *words)]


def test_a_verdict_may_stand_in_a_header_beside_a_sample(tmp_path):
    verdict = 'inline void say(bool ok) { printf("%s", ok ? "PASS" : "FAIL"); }\n'
    launch = "int main() { k<<<1, nullptr, nullptr>>>(x); say(z[0] == 1); return 0; }\n"
    files = {
        "src/one.asc": f'#include "common.h"\n{launch}',
        "src/two.asc": launch,
        "src/three.asc": launch.replace("return 0", "return z[0] != 1"),
        "include/common.h": '#include "say.h"\n#include "common.h"\n#include "absent.h"\n',
        "include/say.h": verdict,
    }
    write_files(tmp_path, files)
    compared = {
        name: [
            ProjectSample(tmp_path, tmp_path, tmp_path, tmp_path / "src" / name).compares(said)
            for said in ("PASS", "FAIL")
        ]
        for name in ("one.asc", "two.asc", "three.asc")
    }
    assert compared == {
        "one.asc": [True, False], "two.asc": [False, False], "three.asc": [True, True],
    }  # fmt: skip
    assert not ProjectSample(tmp_path, tmp_path, tmp_path, None).compares("PASS")


def test_a_folder_without_a_project_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert cli(tmp_path, "sample", "empty") == (2, "", "empty has no CMakeLists.txt\n")


def test_the_environment_names_the_package_and_the_interpreter(tmp_path):
    code, out, err = cli(tmp_path, "env")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split("=")[0] for line in lines] == [
        "export CMAKE_PREFIX_PATH", "export CUBECORE_PYTHON", "export ASCEND_HOME_PATH",
        "export ASCEND_INSTALL_PATH",
    ]  # fmt: skip
    assert lines[1] == f"export CUBECORE_PYTHON={sys.executable}"
    assert "tiling_api" in cli(tmp_path, "env", "--libraries")[1].split()


def test_the_host_of_a_program_is_compiled_as_plain_c_plus_plus(tmp_path):
    text = '#include "acl/acl.h"\nstruct half {};\nint main() { half h; (void)h; return 0; }\n'
    (tmp_path / "main.cpp").write_text(text)
    assert cli(tmp_path, "c++", "main.cpp", "-o", "demo") == (0, "", "")
    assert demo(tmp_path) == (0, "", "")
    assert np.fromfile(tmp_path / "demo", "u1").size > 1000


OPERATOR = """#include "lib/math/kernel_operator_tanh_intf.h"
#include "../shared/parts.h"
constexpr uint32_t PARTS = 3;  // as op_host has it

extern "C" __global__ __aicore__ void scale_all(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(facts, tiling);
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  to.SetValue(0, facts.scale + facts.parts[last()]);
}
"""
TILING = """#include "nowhere/tilingdata.h"
namespace optiling {
constexpr uint32_t PARTS = 3;
BEGIN_TILING_DATA_DEF(Other)
  TILING_DATA_FIELD_DEF(uint32_t, none);  // of another operator
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Other, Other)
BEGIN_TILING_DATA_DEF(ScaleTiling)
  TILING_DATA_FIELD_DEF(float, scale);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, PARTS, parts);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleAll, ScaleTiling)
}  // namespace optiling
"""


OTHER_CHIP = """BEGIN_TILING_DATA_DEF(ScaleTiling)
  TILING_DATA_FIELD_DEF(uint64_t, none);
END_TILING_DATA_DEF;
BEGIN_TILING_DATA_DEF(ScaleAllTiling)
  TILING_DATA_FIELD_DEF(uint64_t, none);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleAll, ScaleAllTiling)
"""
COMPUTED = "inline void fill() {\n  int rows = 1;\n  const int scale = rows;\n  (void)scale;\n}\n"


def test_a_kernel_of_an_operator_project_takes_the_structs_of_its_host_code(tmp_path):
    """Neither a function's constants, called as fields are, nor those of another chip's folder."""
    files = {
        "scale/op_kernel/scale_all.cpp": OPERATOR,
        "scale/op_host/scale_all_tiling.h": TILING + COMPUTED,
        "scale/op_host/arch35/scale_all_tiling.h": OTHER_CHIP,
        "shared/op_kernel/parts.h": "inline uint32_t last() { return PARTS_OF_ALL - 1; }\n",
    }
    write_files(tmp_path, files)
    np.save(tmp_path / "x.npy", np.zeros(8, np.float32))
    tiling = np.zeros(4, np.uint32)
    tiling[0], tiling[3] = np.float32(2.5).view(np.uint32), 40
    tiling.tofile(tmp_path / "t.bin")
    words = (
        "run",
        "scale/op_kernel/scale_all.cpp",
        "-D",
        "PARTS_OF_ALL=3",
        "--blocks",
        "1",
        "--tiling-data",
        "t.bin",
    )
    words += ("--arg", "x=x.npy", "--out-arg", "x=float32:8:z.npy")
    words += ("--arg", "workspace=x.npy")
    code, _, err = cli(tmp_path, *words)
    assert (code, err) == (0, "")
    assert np.load(tmp_path / "z.npy")[0] == 42.5
    (tmp_path / "scale" / "op_host").rename(tmp_path / "shared" / "op_host")
    (tmp_path / "z.npy").unlink()
    assert cli(tmp_path, *words)[::2] == (0, "")  # another operator's op_host registers it
    assert np.load(tmp_path / "z.npy")[0] == 42.5

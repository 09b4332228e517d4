"""The survey of public files with registers of Ascend 950: their names, and their functions.

`python -m tools.evidence.register_files CHECKOUTS names` counts the files of six repositories whose
register names all exist in cubecore's headers; a name exists if a declaration of it compiles.
`... bodies [--count N] [--seconds S]` compiles kernels of ops-nn and ops-math for architecture 3510
and counts the bodies of vector functions in the files of these projects: with machine code in the
object (by its table of lines), read and not instantiated, or refused with their kernel. A kernel
has the first data types that its op_host registers, and is instantiated for each value of its
tiling key's parameters. Repositories lie as CHECKOUTS/OWNER/NAME, opbase among them. Outcomes are
written to `register_files.jsonl` beside this file, which holds names and counts alone.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence.cpp_programs import compiled_for
from tools.evidence.operator_projects import SHARED, drawn, kernel_of

from cubecore.frontends.cpp.host_programs.executable import other_of
from cubecore.frontends.cpp.rewriting.source import overlay, source_of
from cubecore.frontends.cpp.toolchain.build import PROGRAM, macros_of, unit_command
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import ran
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

DATA = Path(__file__).with_name("register_files.jsonl")
REPOSITORIES = (
    *("hicann/ops-nn", "hicann/ops-math", "mirror-cann/ops-transformer", "hicann/ops-cv"),
    *("hicann/cann-samples", "mirror-cann/asc-devkit"),
)
PUBLIC_FILES = 1277
"""Files with registers in these repositories on 28 November, at heads of July and August."""
_ARCH = "--npu-arch=dav-3510"
_SUFFIXES = frozenset({".h", ".hpp", ".cpp", ".asc", ".cce", ".c", ".inl"})
_HAS_REGISTERS = re.compile(
    r"\b(?:RegTensor|MaskReg|__simd_vf__|__VEC_SCOPE__|vector_bool|vector_float|vector_half)\b"
)
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_NAMESPACE = r"(?:MicroAPI|(?<!\w)Reg)"
_QUALIFIED = re.compile(rf"\b{_NAMESPACE}\s*::\s*(\w+)(?:\s*::\s*([A-Z]\w*))?")
_OPENED = re.compile(rf"\busing\s+namespace\s+(?:AscendC::)?{_NAMESPACE}\s*;")
_C_NAME = re.compile(r"\b(?:asc_\w+|vector_[a-z]\w*)\b")


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by kind and name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: (row["kind"], row["name"]))


def code_of(path: Path) -> str:
    """Return a file's text with comments and strings blank, of the same lines."""
    text = path.read_text("utf-8", "replace")
    return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def files_of(repository: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a repository that have registers, with their code."""
    folder = repository / "examples" if repository.name == "asc-devkit" else repository
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            text = code_of(path)
            if _HAS_REGISTERS.search(text):
                yield path, text


def _names_of(text: str, known: frozenset[str]) -> set[str]:
    """Return the register names of a file; `known` are names that need no qualifier there."""
    found: set[str] = set()
    for name, member in _QUALIFIED.findall(text):
        found.add(name)
        if member:
            found.add(f"{name}::{member}")
    if _OPENED.search(text):
        found |= known.intersection(re.findall(r"\b[A-Z]\w+", text))
    return found | set(_C_NAME.findall(text) if "vector_bool" in text else ())


def missing(names: set[str]) -> set[str]:
    """Return the names of which a declaration does not compile for architecture 3510."""
    ordered, macros = sorted(names), macros_of("3510", "vector")
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        text = '#include "kernel_operator.h"\n' + "".join(map(_declaration, ordered))
        (work / "names.cpp").write_text(text, "utf-8")
        source = source_of(str(work / "names.cpp"))
        flags = [flag for flag in compiler().flags() if not flag.startswith("-fmax-errors")]
        unit = unit_command(source, overlay(source, work), (PROGRAM,), macros, work)
        _, said = ran([*flags, *(f"-D{each}" for each in macros), *unit, "-c"], work, work)
    lines = re.findall(r"names\.cpp:(\d+):(?:\d+:)? error:", said)
    return {ordered[(int(line) - 2) // 3] for line in lines}


def _declaration(name: str) -> str:
    """Return the three lines that compile if there is a name."""
    if name.startswith(("asc_", "vector_")):  # a function, a type, or a macro
        return f"#ifndef {name}\nnamespace cubecore_has {{ using ::{name}; }}\n#endif\n"
    if "::" in name:
        return f"static_assert(sizeof(AscendC::MicroAPI::{name}) > 0);\n\n\n"
    return f"namespace cubecore_has {{ using AscendC::MicroAPI::{name}; }}\n\n\n"


def surveyed_names(checkouts: Path) -> Iterator[dict[str, Any]]:
    """Yield for each repository its files, those with all names, and how many lack which."""
    texts = {name: [text for _, text in files_of(checkouts / name)] for name in REPOSITORIES}
    qualified = {n for each in texts.values() for text in each for n, _ in _QUALIFIED.findall(text)}
    used = {
        name: [_names_of(t, frozenset(qualified)) for t in each] for name, each in texts.items()
    }
    absent = missing({name for each in used.values() for names in each for name in names})
    for name, files in used.items():
        lacking = Counter(n for names in files for n in names & absent)
        complete = sum(not names & absent for names in files)
        yield {"name": name, "files": len(files), "complete": complete, "lacking": dict(lacking)}


_BODY = re.compile(r"\b(__simd_vf__|__VEC_SCOPE__)\b[^;{]*\{")


def bodies_of(text: str) -> list[tuple[int, int]]:
    """Return the first and the last line of each body of a vector function in a file's code."""
    found = []
    for begin in _BODY.finditer(text):
        depth, at = 1, begin.end()
        while depth and at < len(text):
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        found.append((text.count("\n", 0, begin.end()) + 1, text.count("\n", 0, at) + 1))
    return found


_ENTRY = re.compile(r"template\s*<[^{};]*>\s*__global__\s+__aicore__\s+void\s+(\w+)\s*\(")
_PARAMETER = re.compile(r"ASCENDC_TPL_(?:UINT|BOOL|DTYPE|FORMAT|DATATYPE)_SEL\s*\(([^()]*)\)")
_MOST_KEYS = 16
Line = tuple[str, int]


def _keys(path: Path) -> list[str]:
    """Return template arguments of a kernel for the values of its tiling key."""
    keys: dict[str, None] = {}
    near = [code_of(each) for each in sorted(path.parent.rglob("*.h"))]
    for text in [code_of(path), *near]:
        for group in re.split(r"ASCENDC_TPL_ARGS_SEL\b", text)[1:]:
            words = [map(str.strip, one.split(",")[1:]) for one in _PARAMETER.findall(group)]
            lists = [[v for v in each if not v.startswith("ASCENDC_TPL_UI_")] for each in words]
            if lists and all(lists):
                for number in range(max(map(len, lists))):
                    keys[", ".join(values[number % len(values)] for values in lists)] = None
    return [*keys][:_MOST_KEYS]


def _instances(path: Path) -> Iterator[str]:
    """Yield lines that instantiate a kernel's template: for all keys, then for each, then none."""
    entry = _ENTRY.search(code_of(path))
    keys = _keys(path) if entry is not None else []
    parts = [keys, *([key] for key in keys)] if len(keys) > 1 else [keys] if keys else []
    for part in parts:
        lines = (
            f"[[maybe_unused]] auto cubecore_key_{number} = &{entry[1] if entry else ''}<{key}>;\n"
            for number, key in enumerate(part)
        )
        yield "\n" + "".join(lines)


_PORT = re.compile(
    r"(?:Input|Output)\(\"(\w+)\"\)(.*?)(?=->(?:Input|Output|Attr|AICore)\(|\Z)", re.DOTALL
)
_TYPES = {
    "DT_FLOAT16": "half",
    "DT_FLOAT": "float",
    "DT_BF16": "bfloat16_t",
    "DT_BOOL": "bool",
    "DT_HIFLOAT8": "hifloat8_t",
    "DT_FLOAT8_E5M2": "fp8_e5m2_t",
    "DT_FLOAT8_E4M3FN": "fp8_e4m3fn_t",
    "DT_FLOAT8_E8M0": "fp8_e8m0_t",
    "DT_FLOAT4_E2M1": "fp4x2_e2m1_t",
    "DT_FLOAT4_E1M2": "fp4x2_e1m2_t",
    **{f"DT_INT{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"DT_UINT{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}


def _data_types(project: Path) -> list[str]:
    """Return the macros of the first type of each input and output that a project registers."""
    found: dict[str, str] = {}
    for path in sorted((project / "op_host").rglob("*_def.cpp")):
        for name, rest in _PORT.findall(path.read_text("utf-8", "replace")):
            first = re.search(r"DataType\w*\(\{?\s*(?:ge::)?(DT_\w+)", rest)
            if first is not None and first[1] in _TYPES:
                found.setdefault(f"DTYPE_{name.upper()}", _TYPES[first[1]])
    return [f"-D{name}={kind}" for name, kind in found.items()]


def _compiled(project: Path, checkouts: Path, out: Path) -> tuple[dict[str, str], set[Line]]:
    """Return the outcome of a project's kernel, and the lines that it has code of.

    It is instantiated for all keys at once, or else for those of which it compiles. The text with
    the instances stands in a file beside the kernel's, which is deleted again.
    """
    path = kernel_of(project)
    assert path is not None
    shared = (checkouts / each for each in SHARED)
    options = [_ARCH, *(f"-I{folder}" for folder in shared if folder.is_dir())]
    options += _data_types(project)
    checkout = checkouts / "/".join(project.relative_to(checkouts).parts[:2])
    copy, lines = path.with_name(f"instances_of_{path.name}"), set[Line]()
    for number, more in enumerate(_instances(path)):
        try:
            copy.write_text(path.read_text("utf-8", "replace") + more, "utf-8")
            outcome = compiled_for(copy, checkout, *options, out=out)
        finally:
            copy.unlink(missing_ok=True)
        if outcome["outcome"] == "compiles":
            lines |= _lines_of(out)
            if number == 0:
                return outcome, lines
    outcome = compiled_for(path, checkout, *options, out=out)
    return outcome, lines | (_lines_of(out) if outcome["outcome"] == "compiles" else set())


def _lines_of(out: Path) -> set[Line]:
    """Return the files and lines that an object has code of."""
    tool = shutil.which("readelf")
    assert tool is not None, "readelf is part of binutils"
    parts, other = [out], other_of(out)
    if other is not None:
        parts.append(out.with_name("other.o"))
        parts[1].write_bytes(other)
    found, file = set(), ""
    for part in parts:
        command = [tool, "--debug-dump=decodedline", "-W", str(part)]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for line in said.splitlines():
            if line.endswith((":", ":[++]")) and "/" in line:
                file = str(Path(line.removesuffix("[++]").removesuffix(":")).resolve())
            elif (row := re.match(r"\S+\s+(\d+)\s", line)) is not None:
                found.add((file, int(row[1])))
    return found


def bodies(project: Path, checkouts: Path) -> dict[str, Any]:
    """Return how the bodies of vector functions of a project's kernel files compile."""
    total = with_code = 0
    with tempfile.TemporaryDirectory() as folder:
        outcome, lines = _compiled(project, checkouts, Path(folder) / "out.o")
        for path, text in _kernel_files(project):
            here = str(path.resolve())
            for first, last in bodies_of(text):
                total += 1
                with_code += any((here, number) in lines for number in range(first, last + 1))
    return {"bodies": total, "with_code": with_code} | outcome


def _kernel_files(project: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a project's kernel with their code."""
    for path in sorted((project / "op_kernel").rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            yield path, code_of(path)


def surveyed_bodies(checkouts: Path, count: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the bodies of each project drawn that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["name"] for row in rows() if row.get("headers") == made}
    for name in drawn(checkouts, count):
        files = _kernel_files(checkouts / name)
        if name in known or not any(bodies_of(text) for _, text in files):
            continue
        if monotonic() > end:
            return
        yield {"name": name, "headers": made} | bodies(checkouts / name, checkouts)


def section() -> list[str]:
    """Return the lines on register names and vector functions of the page of names."""
    of_names = [row for row in rows() if row["kind"] == "names"]
    files, complete = (sum(row[each] for row in of_names) for each in ("files", "complete"))
    lacking = sorted({name for row in of_names for name in row["lacking"]})
    of_bodies = [row for row in rows() if row["kind"] == "bodies"]
    compiled = [row for row in of_bodies if row["outcome"] == "compiles"]
    total, read = (sum(row["bodies"] for row in each) for each in (of_bodies, compiled))
    with_code = sum(row["with_code"] for row in compiled)
    lines = [
        *("## Registers in public files", ""),
        f"Of {files} public files with registers of Ascend 950, {complete} "
        f"({100 * complete / files:.1f} %) have all their register names, enumerators included;",
        f"the others use {' and '.join(lacking)}, which no page of the documentation has.",
        *("", "| repository | files | with all names |", "|---|---|---|"),
    ]
    lines += [f"| {row['name']} | {row['files']} | {row['complete']} |" for row in of_names]
    return [
        *lines,
        "",
        f"Of {total} bodies of vector functions in {len(of_bodies)} operator projects of ops-nn",
        f"and ops-math, unmodified, {read} ({100 * read / total:.0f} %) are in projects whose",
        f"kernel compiles, {with_code} ({100 * with_code / total:.0f} %) with machine code for the",
        "first data types that the project registers. Other bodies of these are templates that the",
        "types do not reach, which are only read, or stand in files that the kernel leaves out.",
        "`tools/evidence/register_files.py` says how both are counted.",
        "",
    ]


def main() -> None:
    """Survey names or bodies, write what was found, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("kind", choices=("names", "bodies"))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=500)
    asked = parser.parse_args()
    checkouts = asked.checkouts.absolute()
    if asked.kind == "names":
        found = surveyed_names(checkouts)
    else:
        found = surveyed_bodies(checkouts, asked.count, asked.seconds)
    for row in found:
        print(row, flush=True)
        kept = [r for r in rows() if (r["kind"], r["name"]) != (asked.kind, row["name"])]
        lines = [json.dumps(each) for each in [*kept, {"kind": asked.kind} | row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

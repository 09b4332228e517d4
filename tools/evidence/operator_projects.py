"""The survey of public operator projects for Ascend 950: which kernels of arch35 compile.

`python -m tools.evidence.operator_projects CHECKOUTS [--count N] [--match REGEX] [--seconds S]`
draws N projects of ops-nn and ops-math that have kernels of arch35, by the hash of their names, and
compiles the kernel of each for architecture 3510, with the element types that its op_host declares
first. Repositories lie as CHECKOUTS/hicann/NAME, opbase
with the headers that the others share among them. What was surveyed with these headers before is
kept; S seconds later the rest waits for another call. Outcomes are written to
`operator_projects.jsonl` beside this file, which holds names alone.
"""

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence.cpp_programs import compiled_for

from cubecore.frontends.cpp.operator_projects.element_types import BY_NUMBER
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

DATA = Path(__file__).with_name("operator_projects.jsonl")
REPOSITORIES = ("hicann/ops-nn", "hicann/ops-math")
_ARCH = "--npu-arch=dav-3510"
SHARED = tuple(
    f"hicann/opbase/{folder}"
    for folder in ("include/op_common", "pkg_inc/op_common", "include", "pkg_inc")
)
"""Folders of headers that the toolkit has, beside the API's."""


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: str(row["project"]))


def drawn(checkouts: Path, count: int) -> list[str]:
    """Return the names of so many projects with kernels of arch35, in the order of their hashes."""
    found = [
        str(folder.parents[1].relative_to(checkouts))
        for repository in REPOSITORIES
        for folder in (checkouts / repository).rglob("op_kernel/arch35")
        if kernel_of(folder.parents[1]) is not None
    ]
    return sorted(found, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def kernel_of(project: Path) -> Path | None:
    """Return the file of a project's kernel for 950: that of `_apt`, where it has one."""
    names = (f"{project.name}_apt.cpp", f"{project.name}.cpp")
    paths = (project / "op_kernel" / name for name in names)
    return next((path for path in paths if path.is_file()), None)


_CODES = {
    "DT_FLOAT8_E5M2": "fp8_e5m2_t",
    "DT_FLOAT8_E4M3FN": "fp8_e4m3fn_t",
    "DT_HIFLOAT8": "hifloat8_t",
    "DT_INT4": "int4b_t",
}
"""Types that arrays have as codes."""
_LIST = re.compile(r"vector<ge::DataType>\s*(\w+)\s*=?\s*\{([^}]*)\}")
_TENSOR = re.compile(r'->(?:In|Out)put\("(\w+)"\)(.*?)(?=->(?:In|Out)put\(|->AICore|;)', re.DOTALL)
_TYPES = re.compile(r"\.DataType(?:List)?\(\s*(?:\{([^}]*)\}|(\w+))\s*\)")


def declared_types(project: Path) -> list[str]:
    """Return the macros of a project's build for the types of its tensors.

    Of the columns of types that its op_host declares it is the first of float32, or the first.
    """
    known = {**_CODES, **{one.name: one.kernel for one in BY_NUMBER.values()}}
    columns: dict[str, list[str]] = {}
    for path in sorted((project / "op_host").rglob("*_def.cpp")):
        text = path.read_text("utf-8", "replace")
        lists = dict(_LIST.findall(text))
        for name, told in _TENSOR.findall(text):
            types = _TYPES.search(told)
            of = re.findall(r"DT_\w+", (types[1] or lists.get(types[2], "")) if types else "")
            if of:
                columns.setdefault(name.upper(), of)
    first = next(iter(columns.values()), [])
    column = first.index("DT_FLOAT") if "DT_FLOAT" in first else 0
    chosen = {name: of[column if column < len(of) else 0] for name, of in columns.items()}
    return [
        f"-D{macro}={value}"
        for name, one in chosen.items()
        if one in known
        for macro, value in ((f"DTYPE_{name}", known[one]), (f"ORIG_DTYPE_{name}", one))
    ]


def surveyed(checkouts: Path, count: int, match: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each project that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["project"] for row in rows() if row["headers"] == made}
    for name in drawn(checkouts, count):
        if name in known or not re.search(match, name):
            continue
        if monotonic() > end:
            return
        path = kernel_of(checkouts / name)
        assert path is not None
        shared = (checkouts / each for each in SHARED)
        options = [f"-I{folder}" for folder in shared if folder.is_dir()]
        options += declared_types(checkouts / name)
        checkout = checkouts / "/".join(name.split("/")[:2])
        outcome = compiled_for(path, checkout, _ARCH, *options)
        yield {"project": name, "headers": made} | outcome


def main() -> None:
    """Survey projects, write what was found, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=500)
    for row in surveyed(**vars(parser.parse_args())):
        print(row["outcome"], row["project"], row.get("why", ""), flush=True)
        kept = [each for each in rows() if each["project"] != row["project"]]
        lines = [json.dumps(each) for each in [*kept, row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    print(dict(Counter(row["outcome"] for row in rows())))


if __name__ == "__main__":
    main()

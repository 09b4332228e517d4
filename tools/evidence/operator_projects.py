"""The survey of public operator projects for Ascend 950: which kernels of arch35 compile.

`python -m tools.evidence.operator_projects CHECKOUTS [--count N] [--match REGEX] [--seconds S]`
draws N projects of ops-nn and ops-math that have kernels of arch35, by the hash of their names, and
compiles the kernel of each for architecture 3510. Repositories lie as CHECKOUTS/hicann/NAME, opbase
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

"""The survey of public class-API files for A2 on Ascend 950: which of them compile there, too.

`python -m tools.evidence.class_api_950 CHECKOUTS [--seconds N]` compiles the files that the survey
of public kernels (`cpp_programs`) compiles for A2, for architecture 3510, in the order of their
names' hashes. Repositories lie as CHECKOUTS/OWNER/NAME; those that are not there are left out.
Those surveyed with these headers before are kept; N seconds later the rest waits for another call.
Outcomes are written to `class_api_950.jsonl` beside this file, which holds names alone.
"""

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from tools.evidence import cpp_programs

from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

DATA = Path(__file__).with_name("class_api_950.jsonl")
_ARCH = "--npu-arch=dav-3510"


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by name."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.is_file() else []
    return sorted(map(json.loads, lines), key=lambda row: str(row["file"]))


def drawn(checkouts: Path) -> list[tuple[str, str]]:
    """Return repositories and paths of files for A2 that are there, in the order of hashes."""
    found = [
        (str(row["repo"]), str(row["path"]))
        for row in cpp_programs.rows()
        if row["outcome"] == "compiles" and (checkouts / row["repo"] / row["path"]).is_file()
    ]
    return sorted(found, key=lambda name: hashlib.sha256("/".join(name).encode()).digest())


def surveyed(checkouts: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each file that was not surveyed before, while there is time."""
    end, made = monotonic() + seconds, headers()
    known = {row["file"] for row in rows() if row["headers"] == made}
    for repository, path in drawn(checkouts):
        name = f"{repository}/{path}"
        if name in known:
            continue
        if monotonic() > end:
            return
        checkout = checkouts / repository
        yield {"file": name, "headers": made} | cpp_programs.compiled_for(
            checkout / path, checkout, _ARCH
        )


def main() -> None:
    """Survey files, write what was found, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--seconds", type=float, default=500)
    for row in surveyed(**vars(parser.parse_args())):
        print(row["outcome"], row["file"], row.get("why", ""), flush=True)
        kept = [each for each in rows() if each["file"] != row["file"]]
        lines = [json.dumps(each) for each in [*kept, row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    print(dict(Counter(row["outcome"] for row in rows())))


if __name__ == "__main__":
    main()

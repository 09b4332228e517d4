"""The survey of public C++ kernels: which of them compile, run and verify here, and the obstacles.

`python -m tools.evidence.cpp_programs CORPUS CHECKOUTS [--kind samples|files] [--match REGEX]
[--layer REGEX] [--seconds N]` surveys a corpus: a file of JSON lines with `repo`, `path`, `commit`,
`chip`, `layer` of each kernel's file, whose repositories lie as CHECKOUTS/OWNER/NAME. What was
surveyed with these headers before is kept; N seconds later the rest waits for another call.
Outcomes are written to `cpp_programs.jsonl` beside this file, which holds no text of anyone's
kernels.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from os.path import commonpath
from pathlib import Path
from time import monotonic
from typing import Any

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.host_programs.driver import compile_and_link
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.workflows.scripts.project_sample import begins_project

DATA = Path(__file__).with_name("cpp_programs.jsonl")
OUTCOMES = {
    "verified": "a sample: built, run from its own main, and passed its own verification",
    "verified, findings": "as above, and the sanitizer reported findings",
    "not compared": "a sample: built and run without findings, by steps that compare nothing",
    "failed": "a sample: a step of its README failed",
    "compiles": "a file: compiles with no name refused",
    "refused": "a file: a name is not provided, or the compiler finds an error",
    "another chip": "it is for another chip: its build or its headers name another architecture",
    "host test": "it is a unit test of the host, which includes a test framework",
    "not here": "the file is not in the checkout",
}
"""What each outcome says."""


def rows() -> list[dict[str, Any]]:
    """Return what was surveyed, by repository and path."""
    if not DATA.is_file():
        return []
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return sorted(map(json.loads, lines), key=lambda row: (row["repo"], row["path"]))


_LACKING_HEADER = re.compile(r" includes (\S+), which is neither")


def obstacle(said: str) -> str:
    """Return the first obstacle in a message, without paths and the names of the user's own."""
    missing = re.search(r"AscendC::(\w+) is not supported", said)
    if missing is not None:
        return missing[1]
    lacking = re.search(r"'(?:AscendC::)?(\w+)' (?:was not declared|is not a member of 'AscendC'"
                        r"|does not name a type|has not been declared)", said)  # fmt: skip
    if lacking is not None:
        return lacking[1]
    header = _LACKING_HEADER.search(said)
    if header is not None:
        return f"header {header[1].split('/')[-1]}"
    text = said.partition(" does not compile: ")[2] or said
    text = re.sub(r"/\S+/", "", text.partition("; --verbose")[0])
    return " ".join(re.sub(r"\d{3,}", "N", text).split())[:90]


def sample(row: dict[str, Any], checkouts: Path) -> dict[str, str]:
    """Return the outcome of a sample, and its architecture if 3510."""
    path = checkouts / row["repo"] / row["path"]
    if _is_for_another_chip(path, checkouts / row["repo"], _SAMPLE_CHIPS):
        return {"outcome": "another chip"}
    is_late = _is_for_another_chip(path, checkouts / row["repo"])
    return verified(row, checkouts) | ({"arch": "3510"} if is_late else {})


def verified(row: dict[str, Any], checkouts: Path) -> dict[str, str]:
    """Return the outcome of a sample: built, run and verified in a copy of its folder."""
    path = checkouts / row["repo"] / row["path"]
    folder = path.parent
    with tempfile.TemporaryDirectory() as scratch:
        alone = begins_project(folder)
        copy = Path(scratch) / folder.name
        if alone:
            shutil.copytree(folder, copy)
        else:  # a part of a larger project, which is built beside it
            _stand_in_for_modules(checkouts / row["repo"])
        command = [sys.executable, "-m", "cubecore", "sample", str(copy if alone else path)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    if not alone:
        shutil.rmtree(folder / "build", ignore_errors=True)
    line = (done.stdout + done.stderr).strip().splitlines()[-1]
    line = line.replace(str(copy), folder.name).replace(f"{folder}/", "")
    if done.returncode == 0:
        return {"outcome": "verified" if ": verified in" in line else "not compared"}
    if " verified by itself in " in line:
        return {"outcome": "verified, findings"}
    if "--npu-arch must be" in line and "dav-2201" not in _text(folder / "README.md"):
        return {"outcome": "another chip"}
    return {"outcome": "failed", "why": obstacle(line.partition(" failed: ")[2] or line)}


_SAMPLE_CHIPS = frozenset({"2201", "3510"})
"""Architectures whose samples are run; other files are compiled for the first of them."""


def _stand_in_for_modules(checkout: Path) -> None:
    """Let the modules of a repository, which its checkout lacks, be folders that CMake takes."""
    for name in re.findall(r"^\s*path = (\S+)", _text(checkout / ".gitmodules"), re.MULTILINE):
        folder = checkout / name
        if folder.is_dir() and not any(folder.iterdir()):
            (folder / "CMakeLists.txt").touch()


_HOST_TEST = re.compile(r"#\s*include\s*[<\"](?:gtest/|gmock/|mockcpp)")


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _includes_another_chip(path: Path) -> bool:
    """True if a kernel's file, or a header that it includes, needs headers of another chip."""
    texts = [_text(path)]
    texts += [_text(path.parent / name) for name in re.findall(r'#\s*include\s*"(.+?)"', texts[0])]
    return path.stem.endswith("_apt") or any(re.search("arch35/|simt_api/", t) for t in texts)


def _is_for_another_chip(
    path: Path, checkout: Path, ours: frozenset[str] = frozenset({"2201"})
) -> bool:
    """True if a file is of another chip: its folders, or the build nearest to it, say so."""
    chips = re.findall(r"ascend_?(\d{3})|(mc62|kirin)", str(path.relative_to(checkout)))
    if chips:
        return not any(number == "910" for number, _ in chips)
    for folder in path.parents:
        said = "".join(_text(folder / name) for name in ("CMakeLists.txt", "README.md"))
        named = set(re.findall(r"dav-[a-z]?(\d{4})", said))
        if named or folder == checkout:
            return bool(named) and named.isdisjoint(ours)
    return False


def compiled(row: dict[str, Any], checkouts: Path) -> dict[str, str]:
    """Return the outcome of compiling a file."""
    path = checkouts / row["repo"] / row["path"]
    if _is_for_another_chip(path, checkouts / row["repo"]):
        return {"outcome": "another chip"}
    if _HOST_TEST.search(_text(path)):
        return {"outcome": "host test"}
    outcome = compiled_for(path, checkouts / row["repo"])
    if outcome["outcome"] == "refused" and _includes_another_chip(path):
        return {"outcome": "another chip"}
    return outcome


def compiled_for(
    path: Path, checkout: Path, *options: str, out: Path | None = None
) -> dict[str, str]:
    """Return the outcome of compiling a file with options, and what its own build defines.

    `out` is where the object is left.
    """
    near = [each for each in path.parent.rglob("*") if each.suffix in {".h", ".hpp"}]
    text = "\n".join(each.read_text("utf-8", "replace") for each in [path, *near])
    macros = dict.fromkeys(re.findall(r"\bDTYPE_\w+", text), "float")
    macros |= dict.fromkeys(re.findall(r"\bORIG_DTYPE_\w+", text), "0")
    defined = set(re.findall(r"(?:#\s*define|\btypename|\bclass)\s+(\w+)", text))
    defined |= set(re.findall(r"\b(DTYPE_\w+)\s*=[^=]", text))
    defined |= set(re.findall(r"\b(?:u?int\w*|bool|auto) (DTYPE_\w+)", text))
    defined |= {option[2:].partition("=")[0] for option in options if option.startswith("-D")}
    given = [f"-D{name}={value}" for name, value in macros.items() if name not in defined]
    with tempfile.TemporaryDirectory() as scratch:
        while True:
            try:
                compile_and_link(
                    ["-c", str(path), *options, *given, "-o", str(out or f"{scratch}/o")]
                )
            except CubecoreError as error:
                more = _needed(str(error), path, checkout)
                if more is None or more in given:
                    return {"outcome": "refused", "why": obstacle(str(error))}
                given.append(more)
            else:
                return {"outcome": "compiles"}


@cache
def _header_files(checkout: Path) -> dict[str, list[Path]]:
    """Return the headers of a checkout by their names."""
    found: dict[str, list[Path]] = {}
    for path in checkout.rglob("*.h*"):
        found.setdefault(path.name, []).append(path)
    return found


_STAND_INS = {"DTYPE": "float", "ORIG_DTYPE": "0", "FORMAT": "FORMAT_ND"}
"""Values for the macros of an operator's build."""


def _needed(said: str, path: Path, checkout: Path) -> str | None:
    """Return the argument that a file's own build has, if that is what the compiler lacks."""
    macro = re.search(r": (((?:ORIG_)?DTYPE|FORMAT)_\w+) must be defined", said)
    if macro is not None:
        return f"-D{macro[1]}={_STAND_INS[macro[2]]}"
    return _include(said, path, checkout)


def _include(said: str, path: Path, checkout: Path) -> str | None:
    """Return what lets the compiler find a header that its build finds: the nearest of the name."""
    match = _LACKING_HEADER.search(said)
    if match is None:
        return None
    name = re.sub(r"^(?:\.\.?/)+", "", match[1])
    known = _header_files(checkout).get(Path(name).name, [])
    fitting = [str(each) for each in known if str(each).endswith(f"/{name}")]
    if not fitting:
        return None
    near = max(fitting, key=lambda each: len(commonpath([each, path])))
    return f"-I{near.removesuffix('/' + name)}"


def is_sample(row: dict[str, Any], checkouts: Path) -> bool:
    """True if a file's folder is a project with generated data and a verification."""
    path = checkouts / row["repo"] / row["path"]
    if not (row.get("gen_data") and row.get("verify") and row.get("host_in_file")):
        return False
    if (path.parent / "CMakeLists.txt").is_file():
        return True
    above = list(path.relative_to(checkouts / row["repo"]).parents)[1:]
    texts = (_text(checkouts / row["repo"] / each / "CMakeLists.txt") for each in above)
    return any(path.name in text for text in texts)


def surveyed(
    corpus: Path, checkouts: Path, kind: str, match: str, layer: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each file that was not surveyed before, for as long as there is time."""
    end, made = monotonic() + seconds, headers()
    known = {(row["repo"], row["path"]) for row in rows() if row["headers"] == made}
    wanted = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    wanted.sort(key=lambda row: hashlib.sha256(f"{row['repo']}{row['path']}".encode()).digest())
    for row in wanted:
        name, path = f"{row['repo']}/{row['path']}", checkouts / row["repo"] / row["path"]
        if (
            not re.search(match, name)
            or not re.fullmatch(layer, row["layer"])
            or (row["repo"], row["path"]) in known
            or "3510" in row["chip"]
        ):
            continue
        if not path.is_file() or is_sample(row, checkouts) != (kind == "samples"):
            continue
        if monotonic() > end:
            return
        outcome = (sample if kind == "samples" else compiled)(row, checkouts)
        kept = {key: row[key] for key in ("repo", "path", "commit", "layer")}
        yield kept | {"headers": made} | outcome


def main() -> None:
    """Survey a corpus, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--kind", choices=("samples", "files"), default="samples")
    parser.add_argument("--match", default="")
    parser.add_argument("--layer", default=".*")
    parser.add_argument("--seconds", type=float, default=500)
    asked = parser.parse_args()
    for row in surveyed(**vars(asked)):
        print(row["outcome"], row["repo"], row["path"], row.get("why", ""), flush=True)
        kept = [r for r in rows() if (r["repo"], r["path"]) != (row["repo"], row["path"])]
        lines = [json.dumps(each) for each in [*kept, row]]
        DATA.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

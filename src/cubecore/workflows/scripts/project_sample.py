"""A sample that is a folder, or a file, of a larger CMake project: what its README runs of it."""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cubecore.errors import unable
from cubecore.frontends.cpp.files import SUFFIXES, is_file

_BLOCK = re.compile(
    r"^[ \t]*```(?P<language>[^`\n]*)\n(?P<text>.*?)^[ \t]*```", re.DOTALL | re.MULTILINE
)
"""A block of code of a README."""
_SHELLS = frozenset({"", "bash", "sh", "shell"})
_PROJECT = re.compile(r"^\s*project\s*\(", re.MULTILINE | re.IGNORECASE)
_TARGET = re.compile(r"^\.\.\. (?!install)([^\s/.]+)(?!\S)", re.MULTILINE)
"""A target in CMake's list, but files and installations."""
_NO_PROGRAM = re.compile(r"add_(?:library|custom_target)\s*\(\s*([^\s)]+)")
_OPTION = re.compile(r"-D[A-Z_]+=dav-\d{4}")
_INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"\n]+)"', re.MULTILINE)
_PLACEHOLDER = re.compile(r"^<\w+>$")
_EXTENT = "256"
"""The number that stands for a placeholder of a README, as in ``./demo <m> <k> <n>``."""
_SHARED = frozenset(
    ("all", "clean", "depend", "edit_cache", "rebuild_cache", "test", "list_install_components")
)
"""Targets that CMake makes in every folder."""


@dataclass(frozen=True, slots=True)
class ProjectSample:
    """The folder of a sample in a project, and the file of its program, if one is asked for.

    `listed` is the folder whose CMakeLists.txt has its program.
    """

    root: Path
    listed: Path
    folder: Path
    file: Path | None

    @property
    def build(self) -> Path:
        """The folder that it is built in."""
        return self.folder / "build"

    @property
    def built(self) -> Path:
        """The folder of its program."""
        return self.build / self.listed.relative_to(self.root)

    @property
    def configure(self) -> tuple[str, ...]:
        """The command that configures it alone; its git does nothing, so no network is needed."""
        said = (sorted(_OPTION.findall(text)) for text in self._texts())
        option = next((options[-1] for options in said if options), None)
        return (
            *("cmake", "-S", str(self.root), "-B", str(self.build)),
            *([] if option is None else [option]),
            f"-DCUBECORE_ONLY={self.listed}",
            f"-DGIT_EXECUTABLE={shutil.which('true') or 'true'}",
            *("-DCMAKE_C_COMPILER=cc", "-DCMAKE_CXX_COMPILER=c++"),
        )

    def target(self, listing: str) -> str:
        """Return the program of the sample among the targets of its folder.

        Raises
        ------
        RequestError
            If no target of the folder, or more than one, is the file's.
        """
        others = _SHARED.union(_NO_PROGRAM.findall(_text_of(self.listed / "CMakeLists.txt")))
        names: list[str] = [n for n in _TARGET.findall(listing) if n not in others]
        if self.file is not None and len(names) > 1:
            names = self._of_file(self.file, names)
        if len(names) != 1:
            got = ", ".join(names) or "none"
            need = f"{self.file or self.folder} must be the source of one program, got {got}"
            raise unable(str(self.folder), need, "name the file of its main")
        return names[0]

    def _of_file(self, file: Path, names: list[str]) -> list[str]:
        """Return the programs that are called as a file, else as a folder that it lies in."""
        exact = [name for name in names if name == file.stem]
        ending = exact or [name for name in names if name.endswith(file.stem)]
        if len(ending) == 1:
            return ending
        folders = set(file.relative_to(self.listed).parts[:-1])
        return [n for n in ending or names if not folders.isdisjoint(n.split("_"))] or ending

    def steps(self, target: str) -> Iterator[tuple[str, ...]]:
        """Yield what a README runs of a program: what makes its data, itself, and a comparison."""
        self._copy_scripts()
        commands = [c for text in self._texts() for c in _commands_of(text)]
        runs = [c for c in commands if Path(c[0]).name == target]
        scripts = [c for c in commands if c[0].startswith("python") and len(c) > 1]
        generators = [c for c in scripts if Path(c[1]).name.startswith("gen_")]
        maker = self._maker(target)
        named = [c for c in generators if maker and Path(c[1]).name == maker.name]
        both = [run[1:] for run in runs for data in named if run[1:] == data[2:]]
        # A README may run one of several programs that take the same words; options of the data's
        # script are no words of a program.
        beside = [c for c in commands if Path(c[0]).parent.name == self.listed.name]
        plain = [data for data in named if not any(word.startswith("-") for word in data[2:])]
        known = [*both, *(c[1:] for c in (*runs, *beside)), *(data[2:] for data in plain), ()]
        words = _filled(known[0])
        if maker is not None and named:
            given = named[0][2:]  # options of its own, or the words of the program
            of_its_own = any(word.startswith("-") for word in given)
            yield "python3", maker.name, *(_filled(given) if of_its_own else words)
        inside = sorted(path for path in self.built.rglob(target) if path.is_file())
        yield f"./{inside[0].relative_to(self.built) if inside else target}", *words
        # A placeholder of a comparison stands for a number of the run: which one, no README says,
        # where the run itself is given numbers.
        checks = [
            (Path(c[1]).name, *_filled(c[2:]))
            for c in scripts
            if "verify" in c[1] and (_has_placeholders(known[0]) or not _has_placeholders(c[2:]))
        ]
        same = [check for check in checks if check[1:] == words] or checks
        if same and (self.built / same[0][0]).is_file():
            yield "python3", *same[0]

    def compares(self, said: str) -> bool:
        """Return whether the file's program, which ended with 0, has compared its results.

        Its main may end otherwise, or it printed the good one of two verdicts, which a header
        beside it may hold.
        """
        from cubecore.frontends.cpp.host_programs.own_checks import judges_results, says_verdict

        if self.file is None:
            return False
        text = _text_of(self.file)
        own = re.search(r"\bmain\s*\(", text) is not None and judges_results(text)
        return own or any(says_verdict(each, said) for each in self._program_texts(self.file))

    def _program_texts(self, file: Path) -> Iterator[str]:
        """Yield the texts of a program's file, and of headers of the sample that it includes."""
        waiting, seen = [file], {file}
        while waiting:
            path = waiting.pop()
            text = _text_of(path)
            yield text
            for name in _INCLUDED.findall(text):
                folders = path.parent, self.listed / "include", self.listed, self.listed / "src"
                found = next((f / name for f in folders if (f / name).is_file()), None)
                if found is not None and found.resolve() not in seen:
                    seen.add(found.resolve())
                    waiting.append(found.resolve())

    def _maker(self, target: str) -> Path | None:
        """Return the script that makes a program's data: of several the one that names it best."""
        found = []
        for script in self.built.glob("gen_*.py"):
            part = script.stem.removeprefix("gen_data").strip("_")
            if not part or part in target:
                found.append((len(part), script))
        return max(found)[1] if found else None

    def _copy_scripts(self) -> None:
        for folder in self._above():
            if (folder / "scripts").is_dir():
                for script in (folder / "scripts").iterdir():
                    if script.is_file():
                        shutil.copy(script, self.built)
                return

    def _texts(self) -> Iterator[str]:
        """Yield the first README of each folder."""
        for folder in self._above():
            yield from islice(readmes_of(folder), 1)

    def _above(self) -> Iterator[Path]:
        folder = self.folder
        while folder != self.root:
            yield folder
            folder = folder.parent
        yield self.root


def _has_placeholders(words: tuple[str, ...]) -> bool:
    return any(_PLACEHOLDER.match(word) for word in words)


def _filled(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command's words with numbers for a README's placeholders."""
    return tuple(_EXTENT if _PLACEHOLDER.match(word) else word for word in words)


def readmes_of(folder: Path) -> Iterator[str]:
    """Yield the texts of a folder's READMEs, that in the authors' language first."""
    for name in ("README.md", "README_en.md"):
        if (folder / name).is_file():
            yield (folder / name).read_bytes().decode("utf-8", "replace")


def shell_blocks(readme: str) -> Iterator[list[str]]:
    """Yield the lines of each shell block of a README; a line that goes on is one."""
    for match in _BLOCK.finditer(readme.replace("\r\n", "\n")):
        if match["language"].strip() in _SHELLS:
            yield match["text"].replace("\\\n", " ").splitlines()


def _commands_of(readme: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands of all shell blocks of a README, in order."""
    for lines in shell_blocks(readme):
        for line in lines:
            try:
                words = tuple(shlex.split(line, comments=True))
            except ValueError:
                continue
            if words:
                yield words


def project_sample(named: str) -> ProjectSample | None:
    """Return a sample of a larger project; None of a folder that is a project by itself.

    Raises
    ------
    RequestError
        If there is no CMakeLists.txt.
    """
    path = Path(named).resolve()
    file = path if path.suffix in SUFFIXES and is_file(path) else None
    folder = path.parent if file is not None else path
    listed = _nearest(folder, file)
    if listed is None:
        raise unable(named, f"{named} has no CMakeLists.txt")
    root = next((f for f in (listed, *listed.parents) if begins_project(f)), listed)
    if root == folder and file is None:
        return None
    return ProjectSample(root, listed, folder, file)


def _nearest(folder: Path, file: Path | None) -> Path | None:
    """Return the folder whose CMakeLists.txt builds a file, or the nearest one with any."""
    above = [f for f in (folder, *folder.parents) if is_file(f / "CMakeLists.txt")]
    if file is not None:
        for each in above:
            if file.name in _text_of(each / "CMakeLists.txt"):
                return each
        return above[0] if above else None
    return above[0] if above and above[0] == folder else None


def begins_project(folder: Path) -> bool:
    """True if a folder is a CMake project by itself, and no part of one."""
    text = folder / "CMakeLists.txt"
    return text.is_file() and bool(_PROJECT.search(_text_of(text)))


def _text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace")

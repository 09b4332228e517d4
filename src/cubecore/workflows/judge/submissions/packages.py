"""Packages of bindings as submissions, as cann-bench builds a wheel of them: called by their names.

The package is not built: the sources that register the operator are compiled with the kernels
beside them.
"""

import re
from pathlib import Path
from typing import Any

from cubecore.chips import chip as chip_named
from cubecore.errors import CubecoreError, did_you_mean, refuse, unable
from cubecore.frontends.cpp.files import SUFFIXES
from cubecore.frontends.cpp.host_programs.torch_glue import compiled_binding
from cubecore.frontends.cpp.rewriting.source import source_of
from cubecore.frontends.kernels.session import current_session
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.calls import GivenCase, OpenSubmission, StageError
from cubecore.workflows.judge.submissions.kinds import REGISTERS

_NAME = re.compile(r"\b\w+\s*\.\s*def\(\s*\"(\w+)")
_PYTHON = re.compile(r"#\s*include\s*[<\"]Python\.h")


def opened_package(place: Path, options: JudgeOptions) -> OpenSubmission:
    """Return what calls an operator of a package, which is compiled.

    Raises
    ------
    StageError
        If a source does not compile.
    RequestError
        If it registers no operator of the name that is asked for.
    """
    sources = sources_of(place, options.entry)
    arch = chip_named(options.chip).arch
    try:
        binding = compiled_binding(sources, _no_operator, arch=arch, timeout_s=options.wall_s)
    except CubecoreError as error:
        raise StageError("binding", error) from error

    def call(case: GivenCase) -> Any:
        result = binding.call(options.entry, list(case.inputs.values()))
        session = current_session()
        if session is not None:
            session.returned += result.written
        return result.value

    kernels = tuple(entry.name for path in sources for entry in source_of(path).scan.entries)
    return OpenSubmission(kernels or (options.entry,), call)


def sources_of(place: Path, name: str) -> list[Path]:
    """Return the sources that register an operator, with the kernels of the folders beside them.

    Raises
    ------
    RequestError
        If none does.
    """
    paths = [p for p in sorted(place.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
    texts = {p: p.read_text("utf-8", "replace") for p in paths}
    texts = {p: text for p, text in texts.items() if not _PYTHON.search(text)}
    names = {p: _NAME.findall(text) for p, text in texts.items() if REGISTERS.search(text)}
    registering = [path for path, found in names.items() if name in found]
    if not registering:
        known = sorted({each for found in names.values() for each in found})
        need = f"name an operator that the package registers ({', '.join(known) or 'none'})"
        raise refuse("entry", need, name or "none", did_you_mean(name, known))
    first = registering[0]
    near = first.parent
    if not any(p.parent == near and "__global__" in text for p, text in texts.items()):
        near = near.parent if near != place else near
    return [path for path in texts if path in registering or path.is_relative_to(near)]


def _no_operator(name: str, *_: Any) -> Any:
    raise unable(name, f"the binding calls {name}, and the submission has no operator")

"""Submissions told by their content: an operator project, six strings, a kernel's file, and others.

Only the content decides: a folder with op_host and op_kernel, a file that assigns the six strings,
a JSON file with sources and a build, a file of C++ kernels, a Python file.
"""

import ast
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cubecore.errors import refuse, unable, unreadable
from cubecore.frontends.cpp.files import SUFFIXES, is_file, is_project, write_at_once
from cubecore.frontends.cpp.toolchain.cache import digest as digest_of
from cubecore.frontends.cpp.toolchain.cache import folder
from cubecore.workflows.judge.content import files_of, folder_digest

PROJECT, STRINGS, LAUNCHES = "operator project", "six strings", "direct launch"
KERNEL, PYTHON, MODEL, SAMPLE = "kernel", "Python kernel", "kernel with model", "sample"
PACKAGE = "package of bindings"
_HOST, _TILING, _KERNEL = "host_operator_src", "host_tiling_src", "kernel_src"
_BINDING, _MODEL, _DESCRIPTION = "python_bind_src", "model_src", "project_json_src"
_NEEDED = (_HOST, _TILING, _KERNEL)
_FENCE = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_TILING_INCLUDE = re.compile(r'#\s*include\s+"([\w./]*?)_?tiling\.h"')
REGISTERS = re.compile(r"\bTORCH_LIBRARY(?:_FRAGMENT|_IMPL)?\s*\(")
"""The registration of operators with PyTorch."""
_CLASS_MODEL = re.compile(r"^class\s+ModelNew\b", re.MULTILINE)
_MODEL_FILES = ("model_new.py", "ModelNew.py")


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission: its kind, where it is, and the files that it consists of.

    `texts` are files by the names that they have below the folder that they are written to; a
    folder or a file that is read where it is has none. `model` is the text of ModelNew, `bindings`
    the files of its C++ bindings.
    """

    kind: str
    path: Path
    sha256: str
    texts: tuple[tuple[str, str], ...] = ()
    model: str = ""
    bindings: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()

    def written(self, folder: Path) -> Path:
        """Write the files of the submission, and return the folder or file that has them.

        They lie in a folder named by their content: libraries in the cache are known by their path.
        """
        if not self.texts:
            return self.path
        place = folder / self.sha256[:32]
        for name, text in self.texts:
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.is_file() or file.read_text("utf-8") != text:
                write_at_once(file, text.encode())
        return place


def written_binding(text: str) -> Path:
    """Return the file of a task's binding, in a folder named by its content; it is written once."""
    file = folder().absolute().parent / "judged" / f"binding-{digest_of([text])}" / "binding.cpp"
    if not is_file(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_at_once(file, text.encode())
    return file


def submission_of(path: str | Path) -> Submission:
    """Return the submission in a file or folder.

    Raises
    ------
    RequestError
        If it cannot be read, or is none of the kinds.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return _folder(place.resolve(), str(path))
        raw = place.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(str(path), error) from None
    sha256 = hashlib.sha256(raw).hexdigest()
    text = raw.decode("utf-8", "replace")
    if place.suffix in SUFFIXES:
        return _kernel_file(place.resolve(), sha256)
    if place.suffix == ".json":
        return _direct_launch(place.resolve(), text, sha256)
    strings = _strings(text)
    if strings is not None:
        return _six_strings(place.resolve(), strings, sha256)
    if place.suffix == ".py":
        return Submission(PYTHON, place.resolve(), sha256)
    need = "be an operator project, six strings, a JSON file with sources, or a file of kernels"
    raise refuse(str(path), need, f"a file {place.suffix or 'without a suffix'} with none of them")


def _folder(folder: Path, shown: str) -> Submission:
    files = files_of(folder)
    for file in files:
        if not file.resolve().is_relative_to(folder):
            need = "lie in the submission's folder"
            raise refuse(f"{shown}: {file.relative_to(folder)}", need, "a link out of it")
    digest = folder_digest(folder, files)
    if is_project(folder):
        return Submission(PROJECT, folder, digest)
    models = [p for p in files if p.name in _MODEL_FILES]
    kernels = [p for p in files if p.suffix in SUFFIXES]
    if models and kernels:
        texts = tuple((str(p.relative_to(folder)), p.read_text("utf-8", "replace")) for p in files)
        names = tuple(str(p.relative_to(folder)) for p in kernels)
        model = models[0].read_text("utf-8", "replace")
        return Submission(MODEL, folder, digest, texts, model, names)
    if (folder / "setup.py").is_file() and any(map(_registers, kernels)):
        return Submission(PACKAGE, folder, digest)
    if (folder / "CMakeLists.txt").is_file():
        return Submission(SAMPLE, folder, digest)
    remedy = "give a folder with op_host and op_kernel, or one with kernels and model_new.py"
    raise unable(shown, f"{shown} has no kernel", remedy)


def _registers(file: Path) -> bool:
    return REGISTERS.search(file.read_text("utf-8", "replace")) is not None


def _kernel_file(path: Path, digest: str) -> Submission:
    """Return a file of kernels; beside a model it is one with bindings."""
    model = next((path.parent / n for n in _MODEL_FILES if (path.parent / n).is_file()), None)
    text = path.read_text("utf-8", "replace")
    if "__global__" not in text:
        raise unable(str(path), f"{path.name} has no kernel", "a kernel is a __global__ function")
    if model is None or not re.search(r"PYBIND11_MODULE|TORCH_LIBRARY", text):
        return Submission(KERNEL, path, digest)
    raw = model.read_bytes()
    digest = hashlib.sha256(digest.encode() + raw).hexdigest()
    texts = ((path.name, text), (model.name, raw.decode("utf-8", "replace")))
    return Submission(MODEL, path, digest, texts, texts[1][1], (path.name,))


def _direct_launch(path: Path, text: str, digest: str) -> Submission:
    try:
        found: Any = json.loads(text)
        sources = {str(s["path"]): str(s["content"]) for s in found["sources"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        need = "hold sources with a path and a content each"
        raise refuse(path.name, need, "other JSON, or none") from None
    for name in sources:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise refuse(f"{path.name}: a source", "lie in the submission's folder", name)
    entry = str(found.get("entry", {}).get("model", "")).partition("::")[0]
    model = sources.get(entry) or next((t for t in sources.values() if _CLASS_MODEL.search(t)), "")
    if not model:
        raise unable(path.name, f"{path.name} has no ModelNew", "entry.model names its file")
    names = tuple(name for name in sources if name.endswith(SUFFIXES))
    if not names:
        raise unable(path.name, f"{path.name} has no kernel", "sources need a file of kernels")
    return Submission(LAUNCHES, path, digest, tuple(sources.items()), model, names)


def _strings(text: str) -> dict[str, str] | None:
    """Return the strings that a text assigns, if they are those of an operator; else None."""
    for part in (text, *_FENCE.findall(text)):
        if _KERNEL not in part:
            continue
        try:
            tree = ast.parse(part)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        if _KERNEL in found:
            return found
    return None


def _six_strings(path: Path, strings: dict[str, str], digest: str) -> Submission:
    """Return an operator project from strings; the tiling's header has the name of its include."""
    for name in _NEEDED:
        if not strings.get(name, "").strip():
            raise unable(path.name, f"{path.name} has no {name}")
    match = _TILING_INCLUDE.search(strings[_HOST])
    stem = Path(match[1]).name if match else "operator"
    header = Path(match[0].partition('"')[2].rstrip('"')).name if match else "operator_tiling.h"
    _require_one_name(path.name, strings)
    texts = [
        (f"op_host/{stem}.cpp", strings[_HOST]),
        (f"op_host/{header}", strings[_TILING]),
        (f"op_kernel/{stem}.cpp", strings[_KERNEL]),
    ]
    model, binding = strings.get(_MODEL, ""), strings.get(_BINDING, "")
    if binding:
        texts.append(("binding/binding.cpp", binding))
    bindings = ("binding/binding.cpp",) if binding else ()
    return Submission(STRINGS, path, digest, tuple(texts), model, bindings)


def _require_one_name(shown: str, strings: dict[str, str]) -> None:
    """Require that the project's description and the registration name one operator.

    Raises
    ------
    RequestError
        If they name two.
    """
    added = re.findall(r"\bOP_ADD\(\s*(\w+)", strings[_HOST])
    try:
        described: Any = json.loads(strings.get(_DESCRIPTION) or "[]")
    except ValueError:
        described = []
    listed = described if isinstance(described, list) else [described]
    names = [str(each["op"]) for each in listed if isinstance(each, dict) and each.get("op")]
    if (
        added
        and names
        and not {n.replace("_", "").lower() for n in names}
        & {n.replace("_", "").lower() for n in added}
    ):
        need = f"name the operator that OP_ADD registers ({', '.join(added)})"
        raise refuse(f"{shown}: {_DESCRIPTION}", need, ", ".join(names))

"""An operator of a project in words: its arrays and attributes as the command line gives them."""

from collections.abc import Mapping
from typing import Any

from cubecore.errors import refuse, unable
from cubecore.frontends.cpp.launch.arguments import Output, defined, loaded, output_of, write
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.operator_projects.operator_project import Operator, OperatorProject
from cubecore.frontends.cpp.operator_projects.registration import Attribute

_ELSEWHERE = {
    "blocks": "its tiling function says how many",
    "tiling_data": "its tiling function fills it",
    "tiling_key": "its tiling function sets it",
    "marked_outputs": "its registration says which they are",
    "scratch": "its workspace is scratch",
}
"""Options of kernels that an operator's own op_host answers."""


def run_operator(path: str, asked: CppLaunchOptions, options: Mapping[str, Any]) -> None:
    """Run the operator of a project's folder that was asked for; write what it leaves.

    Raises
    ------
    RequestError
        If a file, an operator or an argument is not usable.
    CubecoreError
        If its tiling function or its kernel fails.
    """
    plain = CppLaunchOptions()
    for name, why in _ELSEWHERE.items():
        if getattr(asked, name) != getattr(plain, name):
            option = f"--{name.removeprefix('marked_').replace('_', '-')}"
            raise unable(option, f"{option} does not apply to an operator", why)
    own: dict[str, object] = {"auto_sync": asked.auto_sync == "on", "verbose": asked.verbose}
    own |= {"timeout_s": asked.timeout_s}
    project = OperatorProject(path, defined(asked.defines), (), {**options, **own})
    operator = _named(project, asked.entry)
    words: dict[str, Any] = {}
    for text in asked.arguments:
        name, sign, value = text.partition("=")
        if not sign:
            raise refuse("--arg", "be NAME=VALUE or NAME=FILE", repr(text))
        words[name] = _value(operator, name, value)
    outputs: list[Output] = []
    for text in asked.outputs:
        outputs.append(output_of(text))
        words[outputs[-1].name] = outputs[-1].values
    operator.run(**words)
    for output in outputs:
        if output.file is not None:
            write(output.file, output.values)


def _named(project: OperatorProject, entry: str | None) -> Operator:
    names = dir(project)
    if entry is None and len(names) == 1:
        return project[names[0]]
    if entry is None:
        raise refuse("--entry", "name an operator of the project", ", ".join(names))
    return project[entry]


def _value(operator: Operator, name: str, text: str) -> object:
    """Return an array from a file, or an attribute's value: of lists with colons between."""
    attributes = {one.name: one for one in operator.registration.attributes}
    one = attributes.get(name)
    if one is None:
        return loaded(name, text)
    if one.type == "str":
        return text
    several = text.split(":") if one.type.startswith("list_") else [text]
    numbers = [_number(one, part) for part in several]
    return numbers if one.type.startswith("list_") else numbers[0]


def _number(one: Attribute, text: str) -> int | float:
    words = {"true": 1, "false": 0}
    if one.type.endswith("bool") and text.lower() in words:
        return words[text.lower()]
    try:
        return float(text) if one.type.endswith("float") else int(text, 0)
    except ValueError:
        raise refuse(f"the attribute {one.name}", f"be {one.type}", repr(text)) from None

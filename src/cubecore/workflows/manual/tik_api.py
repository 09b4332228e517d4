"""Names of TIK as text: what the classes of the front end say of them, and their instructions."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from cubecore.answers.explain import Explanation
from cubecore.workflows.manual.class_api import instruction_lines

KIND = "TIK"


@cache
def names() -> Mapping[str, tuple[str, Any]]:
    """Return the names that TIK programs may use: where each is, and what it is."""
    from cubecore.frontends.tik.host.instance import Tik, TikDebugger
    from cubecore.frontends.tik.host.vendor_modules import tik_names
    from cubecore.frontends.tik.trace.tensor import Tensor
    from cubecore.frontends.tik.trace.values import Scalar

    found: dict[str, tuple[str, Any]] = {}
    owners = {"tik_instance": Tik, "tik_instance.tikdb": TikDebugger}
    owners |= {"a Tensor": Tensor, "a Scalar": Scalar}
    for owner, cls in owners.items():
        for name in dir(cls):
            value = inspect.getattr_static(cls, name)
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                found.setdefault(name, (owner, value))
    for name, value in tik_names().items():
        found.setdefault(name, ("tik", value))
    return found


def named(name: str) -> Explanation | None:
    """Return a name of TIK with its meaning; None for other words."""
    if name not in names():
        return None
    owner, value = names()[name]
    lines = [f"{name}: a name of TIK, of {owner}", ""]
    if callable(value):
        lines += [f"  {name}{_signature(value)}", ""]
    said = inspect.getdoc(value) if callable(value) or isinstance(value, property) else None
    lines += [f"  {line}".rstrip() for line in (said or f"the constant {value!r}").splitlines()]
    lines += instruction_lines("tik", name)
    return Explanation(name, KIND, "\n".join(lines) + "\n")


def _signature(value: Any) -> str:
    """Return the parameters of a call, without the object and the types."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    shown = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return f"({', '.join(map(str, shown))})"

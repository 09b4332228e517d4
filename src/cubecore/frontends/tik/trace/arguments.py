"""Arguments by the names of a table: TIK's calls take them by place or by name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cubecore.frontends.tik.trace.errors import refuse

_NONE: Mapping[str, Any] = MappingProxyType({})


def bound(
    call: str,
    names: Sequence[str],
    args: Sequence[object],
    named: Mapping[str, object],
    optional: Mapping[str, object] = _NONE,
) -> dict[str, Any]:
    """Return a call's arguments by name; those of `optional` may be absent.

    Raises
    ------
    RequestError
        If an argument is missing, unknown or given twice, or there are too many.
    """
    all_names = (*names, *optional)
    need = f"be given {', '.join(all_names)}"
    if len(args) > len(all_names):
        raise refuse(call, need, f"{len(args)} arguments")
    given = dict(zip(all_names, args, strict=False))
    for name in named:
        if name in given or name not in all_names:
            raise refuse(call, need, f"{name} {'twice' if name in given else 'too'}")
    given |= named
    for name in names:
        if name not in given:
            raise refuse(call, f"be given {', '.join(names)}", f"no {name}")
    return {**optional, **given}

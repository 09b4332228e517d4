"""A Hugging Face config.json: its fields, each read with one sentence for what is wrong."""

import json
import re
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from cubecore.aliases import JsonMapping
from cubecore.dtypes import type_name
from cubecore.errors import no_json, refuse, unable, unreadable
from cubecore.units import INT32_MAX

_FILE = "config.json"
_MOST_BYTES = 1 << 24
_NAME = re.compile(r"(?:[\w-][\w.-]*/)?[\w-][\w.-]*(?<!\.json)", re.ASCII)
"""A model's name as hubs have it: the owner's, and the model's own."""


class Config:
    """The fields of a config; `where` is the file or ``config``, which messages begin with."""

    def __init__(self, fields: JsonMapping, where: str) -> None:
        self._fields, self.where = fields, where

    def has(self, name: str) -> bool:
        """Return True if the config gives a field, and not as null."""
        return self._fields.get(name) is not None

    def text(self, name: str) -> str:
        """Return a text; the config must give it."""
        value = self._given(name)
        if not isinstance(value, str):
            raise refuse(f"{self.where}: {name}", "be a text", _spelled(value))
        return value

    def type_name(self, name: str) -> str:
        """Return the name of an element type as the config spells it; the config must give it."""
        value = type_name(self._given(name))
        if not isinstance(value, str):
            raise refuse(f"{self.where}: {name}", "be the name of an element type", _spelled(value))
        return value

    def whole(self, *names: str) -> int:
        """Return a whole number from 1 on, of the first of `names` that the config gives."""
        name = next((name for name in names if self.has(name)), names[0])
        return self._whole(name, self._given(name), 1)

    def whole_or(self, name: str, default: int, least: int = 1) -> int:
        """Return a whole number from `least` on; `default` where the config does not give it."""
        if not self.has(name):
            return default
        return self._whole(name, self._given(name), least)

    def optional(self, name: str) -> int | None:
        """Return a whole number from 1 on; None where the config does not give it."""
        return self.whole(name) if self.has(name) else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value; `default` where the config does not give it."""
        value = self._fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise refuse(f"{self.where}: {name}", "be true or false", _spelled(value))
        return value

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers from 0 on; none where the config does not give it."""
        values = self._fields.get(name)
        if values is None:
            return ()
        if not isinstance(values, list):
            raise refuse(f"{self.where}: {name}", "be a list of whole numbers", _spelled(values))
        return tuple(self._whole(name, value, 0) for value in values)

    def within(self, name: str) -> "Config":
        """Return the config of a part, as ``text_config`` of models that also see."""
        value = self._given(name)
        if not isinstance(value, Mapping):
            raise refuse(f"{self.where}: {name}", "be an object", _spelled(value))
        return Config(value, f"{self.where}: {name}")

    def _given(self, name: str) -> Any:
        if not self.has(name):
            raise unable(self.where, f"{self.where} has no field {name}")
        return self._fields[name]

    def _whole(self, name: str, value: object, least: int) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise refuse(f"{self.where}: {name}", "be a whole number", _spelled(value))
        whole = int(value)
        if not least <= whole <= INT32_MAX:
            need = f"be from {least} to {INT32_MAX}"
            raise refuse(f"{self.where}: {name}", need, _spelled(value))
        return whole


def read_config(config: object) -> Config:
    """Return a config that is given as a file, its folder, an object or a mapping of its fields.

    Raises
    ------
    RequestError
        If the file cannot be read or holds no JSON object.
    """
    if isinstance(config, Mapping):
        return Config(config, "config")
    if isinstance(config, str | Path):
        return _from_file(Path(config))
    as_fields = getattr(config, "to_dict", None)  # a configuration object of transformers
    fields = as_fields() if callable(as_fields) else None
    if isinstance(fields, Mapping):
        return Config(fields, "config")
    raise refuse("config", "be a file, a folder or a mapping", type(config).__name__)


def _no_file_of(name: str) -> str:
    """Return where the config of a model lies, of which the name alone is given."""
    on_hub = name if "/" in name else f"OWNER/{name}"
    return (
        f"cannot read {name}: no such file; if it is a model's name, give the path of its "
        f"{_FILE}, which is among the model's files on its hub (hf download {on_hub} {_FILE} "
        "fetches it and prints the path)"
    )


def _from_file(path: Path) -> Config:
    try:
        file = path / _FILE if path.is_dir() else path
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and _NAME.fullmatch(str(path)):
            raise unable(str(path), _no_file_of(str(path))) from None
        raise unreadable(str(path), error) from None
    where = str(file)
    if len(data) > _MOST_BYTES:
        raise refuse(where, f"be at most {_MOST_BYTES} B long", "a longer file")
    try:
        fields = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refuse(where, "be JSON", no_json(error)) from None
    if not isinstance(fields, dict):
        raise refuse(where, "be a JSON object", type(fields).__name__)
    return Config(fields, where)


def _spelled(value: object) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value, default=repr)

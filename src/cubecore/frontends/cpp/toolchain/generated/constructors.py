"""Constructors of parameter structs, written from fields that a header declares once.

Behind its fields a struct names those that a constructor takes, in the constructor's order. In
brackets are those that may be left out, with the field's own default; a type before a name is the
parameter's where it is not the field's. From

    struct CopyParams {
      uint16_t count = 1;
      int64_t stride = 0;
      bool pads = false;
      CUBECORE_TAKES(count, uint32_t stride, [pads])
    };

the header that is compiled has, in the place of the last line,

      CopyParams() = default;
      CopyParams(uint16_t countIn, uint32_t strideIn, bool padsIn = false)
          : count(countIn), stride(strideIn), pads(padsIn) {}
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

_TAKES = re.compile(
    r"^  (?P<constexpr>constexpr )?CUBECORE_TAKES\((?P<names>[^)]*)\)\n", re.MULTILINE
)
_STRUCT = re.compile(r"^struct (?P<name>\w+) \{\n", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*")
_FIELDS = re.compile(
    r"\s*(?:union \{\s*)?(?P<type>(?:typename )?[\w:]+(?:<\w+>)?)\s+(?P<names>.+)", re.DOTALL
)
_NAME = re.compile(
    r"(?P<name>\w+)(?:\[(?P<length>\w+)\])?(?:\s*=\s*(?P<default>\{[^}]*\}|[^,]+))?(?:,\s*|$)"
)


class _Parameter(NamedTuple):
    """A parameter of a constructor: of which field, the length of an array, the declaration."""

    field: str
    length: str
    declaration: str


def has_constructors(text: str) -> bool:
    """True of a header with constructors that are to be written."""
    return _TAKES.search(text) is not None


def with_constructors(text: str) -> str:
    """Return a header with the constructors that its structs name the fields of."""
    parts, end = [], 0
    for match in _TAKES.finditer(text):
        *_, struct = _STRUCT.finditer(text, 0, match.start())
        body = text[struct.end() : match.start()]
        parameters = list(_parameters(match["names"], _fields(body)))
        parts.append(text[end : match.start()])
        if not has_constructors(body) and not match["names"].startswith("["):
            parts.append(f"  {struct['name']}() = default;\n")
        parts.append(_constructor((match["constexpr"] or "") + struct["name"], parameters))
        end = match.end()
    return "".join((*parts, text[end:]))


def _fields(body: str) -> dict[str, tuple[str, str, str]]:
    """Return the fields in the text of a struct: type, length of an array, and default."""
    statements = _TAKES.sub("", _COMMENT.sub("", body)).split(";")
    return {
        name["name"]: (declared["type"], name["length"] or "", name["default"] or "")
        for declared in filter(None, map(_FIELDS.fullmatch, statements))
        for name in _NAME.finditer(declared["names"])
    }


def _parameters(names: str, fields: dict[str, tuple[str, str, str]]) -> Iterator[_Parameter]:
    """Yield what a constructor takes."""
    needed, _, optional = names.partition("[")
    for part in filter(None, map(str.strip, re.split(r"[,\]]", f"{needed},{optional}"))):
        other, _, field = part.rpartition(" ")
        kind, length, default = fields[field]
        kind = other or (f"const {kind}&" if "<" in kind else f"const {kind}" if length else kind)
        declaration = f"{kind} {field}In" + (f"[{length}]" if length else "")
        behind = optional.partition("]")[0].replace(",", " ").split()
        yield _Parameter(field, length, declaration + f" = {default}" * (field in behind))


def _constructor(name: str, parameters: Sequence[_Parameter]) -> str:
    """Return a constructor, which copies arrays in its body."""
    taken = _wrapped(f"  {name}(", [each.declaration for each in parameters], 6, ")")
    plain = [f"{each.field}({each.field}In)" for each in parameters if not each.length]
    set_up = _wrapped("      : ", plain, 8, " {") if plain else " {"
    loops = "".join(
        f"    for (uint32_t n = 0; n < {each.length}; ++n) {each.field}[n] = {each.field}In[n];\n"
        for each in parameters
        if each.length
    )
    between, end = "\n" if plain else "", f"\n{loops}  }}\n" if loops else "}\n"
    return taken + between + set_up + end


def _wrapped(head: str, parts: Sequence[str], indent: int, tail: str) -> str:
    """Return parts behind a head in lines of the headers' width, none of them divided."""
    text = head.replace(" ", "\0") + ", ".join(part.replace(" ", "\0") for part in parts) + tail
    lines = wrap(text, 98, subsequent_indent="\0" * indent, break_long_words=False)
    return "\n".join(lines).replace("\0", " ")

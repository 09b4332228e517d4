"""The memory diagram of the page: what moves between memories, and how much of it L2 held."""

from cubecore.aliases import Json
from cubecore.timing.records import Link, Timeline

_EDGES = {
    "device memory to L2": ("GM", "L2"),
    "L2 to L1": ("L2", "L1"),
    "L0C to L2": ("L0C", "L2"),
    "L2 to UB": ("L2", "UB"),
    "UB to L2": ("UB", "L2"),
}
"""By link of the timing model: the memories that it joins, in the direction of the bytes."""
_INSIDE = {"L1->L0A": ("L1", "L0A"), "L1->L0B": ("L1", "L0B")}
"""By name in the closed form: links inside a core."""


def memory_diagram(line: Timeline, fullest_core: Json | None = None, cores: int = 0) -> Json:
    """Return the edges with their bytes and shares of the rate, and hit rates by operand.

    `fullest_core` has the bytes that a matmul's fullest core moves inside itself, by the closed
    form; `cores` of them count. An edge's share is None where its rate is not known.
    """
    edges = [_edge(*_EDGES[link.name], link) for link in line.links if link.name in _EDGES]
    for name, (source, target) in _INSIDE.items():
        if fullest_core is not None and fullest_core.get(name):
            size = fullest_core[name] * cores
            edges.append({"from": source, "to": target, "bytes": size, "share": None})
    return {
        "edges": edges,
        "operands": [operand.to_json() for operand in line.operands],
        "inside": bool(fullest_core),
    }


def _edge(source: str, target: str, link: Link) -> Json:
    return {"from": source, "to": target, "bytes": link.bytes, "share": link.share}

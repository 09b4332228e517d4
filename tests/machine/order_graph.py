"""What is ordered, the long way: a graph of starts and ends, and everything that it reaches.

Nothing of `cubecore.machine` is used. An item is issued, starts and ends; edges are what the flags,
barriers and signals promise. Two accesses race if neither's end reaches the other's start.
"""

from collections import defaultdict
from dataclasses import dataclass, field

Bytes = tuple[str, int, int]


@dataclass(frozen=True)
class Item:
    """One thing that a core issues: `what` is work, set, wait, bar, all, signal or await."""

    what: str
    pipe: str
    flag: object = None
    reads: tuple[Bytes, ...] = ()
    writes: tuple[Bytes, ...] = ()


@dataclass
class Graph:
    edges: dict = field(default_factory=lambda: defaultdict(set))
    after: dict = field(default_factory=dict)

    def reaches(self, one, other) -> bool:
        """Whether `other` comes after `one`."""
        if one not in self.after:
            seen, stack = set(), [one]
            while stack:
                for node in self.edges[stack.pop()]:
                    if node not in seen:
                        seen.add(node)
                        stack.append(node)
            self.after[one] = seen
        return other in self.after[one]


def graph_of(cores: list[list[Item]]) -> Graph:
    """Return the order of the items of some cores; a node is (kind, core, place)."""
    graph = Graph()
    sent = defaultdict(lambda: defaultdict(list))
    heard = defaultdict(list)
    for core, items in enumerate(cores):
        _one_core(graph, core, items)
        for place, item in enumerate(items):
            if item.what == "signal":
                sent[item.flag][core].append(place)
            elif item.what == "await":
                heard[core, item.flag].append(place)
    for (core, flag), places in heard.items():
        for turn, place in enumerate(places):
            for peer in range(len(cores)):
                graph.edges["end", peer, sent[flag][peer][turn]].add(("start", core, place))
    return graph


def _one_core(graph: Graph, core: int, items: list[Item]) -> None:
    up = {}
    for place, item in enumerate(items):
        issue, start, end = ((kind, core, place) for kind in ("issue", "start", "end"))
        graph.edges[issue].add(start)
        graph.edges[start].add(end)
        if place:
            graph.edges["issue", core, place - 1].add(issue)
        if item.what == "wait":
            graph.edges["end", core, up.pop(item.flag)].add(start)
        if item.what == "set":
            up[item.flag] = place
        for earlier, other in enumerate(items[:place]):
            together = other.pipe == item.pipe
            if item.what == "all" or (together and item.what in {"set", "bar", "signal"}):
                graph.edges["end", core, earlier].add(start)
            if together and other.what not in {"set", "signal"}:  # in order, ends apart
                graph.edges["start", core, earlier].add(start)
            if together and other.what in {"wait", "bar"}:
                graph.edges["end", core, earlier].add(start)
            if other.what in {"all", "await"} or other.pipe == "S":
                graph.edges["end", core, earlier].add(issue)


def races(cores: list[list[Item]], graph: Graph) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Return every pair of (core, place) whose accesses to common bytes nothing orders."""
    places = [(core, place) for core, items in enumerate(cores) for place in range(len(items))]
    found = set()
    for number, one in enumerate(places):
        for other in places[number + 1 :]:
            if _conflict(cores, one, other) and not any(
                graph.reaches(("end", *a), ("start", *b)) for a, b in ((one, other), (other, one))
            ):
                found.add((one, other))
    return found


def _conflict(cores, one, other) -> bool:
    a, b = (cores[core][place] for core, place in (one, other))
    local = one[0] == other[0]
    return any(
        mem == mem2 and (local or mem == "GM") and low < high2 and low2 < high
        for mine, theirs in ((a.writes, b.writes), (a.writes, b.reads), (a.reads, b.writes))
        for mem, low, high in mine
        for mem2, low2, high2 in theirs
    )


def doubled(items: list[Item], graph: Graph) -> set[int]:
    """Return the places of sets that may run before the flag's last wait has."""
    last, found = {}, set()
    for place, item in enumerate(items):
        if item.what == "wait":
            last[item.flag] = place
        elif item.what == "set" and item.flag in last:
            taken = ("end", 0, last[item.flag])
            found |= set() if graph.reaches(taken, ("start", 0, place)) else {place}
    return found

"""Cache control: no instruction here changes memory in program order.

What the scalar unit's data cache holds is followed by front ends (`frontends.capi.cache_lines`), by
racecheck (`machine.sanitize.data_caches`) and, in other orders, by `machine.memory.data_cache`.
"""

from collections.abc import Iterator

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Pipe, choice, instruction, param
from cubecore.isa.declare.registers import Registers

_ADDRESS = 2**64 - 1
LINE_BYTES = 64
"""Bytes that the data cache loads, writes back and drops together (pages SetValue, asc_dcci)."""


def line_bits(line: int, low: int, high: int) -> int:
    """Return which bytes of a line lie in [low, high), as bits from its first byte on."""
    start = line * LINE_BYTES
    first, last = max(low - start, 0), min(high - start, LINE_BYTES)
    return (1 << last) - (1 << first)


def lines_between(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the lines with bytes of [low, high), and which bytes these are."""
    for line in range(low // LINE_BYTES, -(-high // LINE_BYTES)):
        yield line, line_bits(line, low, high)


_NO_CACHE = "no cache is modelled: a kernel that lacks this runs as if it had it"


@instruction(
    "dcci",
    Pipe.S,
    names={"cpp": "DataCacheCleanAndInvalid"},
    variants={
        "asc_dcci_single": {"lines": "single", "where": "out"},
        "asc_ub_dcci_single": {"lines": "single", "where": "ub"},
        **{
            f"asc_dcci_entire_{where}": {"lines": "entire", "where": where}
            for where in ("all", "ub", "out", "atomic")
        },
    },
    source="asc-devkit, asc_dcci (2201, 3510)",
    uncertain=(
        "program order has no cache: a kernel that lacks this has findings, and the values of one "
        "that has it; order late has the values of lines that stay until they are cleaned",
        "a line whose address is given inside of it is cleaned whole: a page says that only what "
        "lies behind the address is",
    ),
    archs=("2201", "3510"),
)
class Dcci(Instruction):
    """Write lines of the data cache back and drop them.

    A line is 64 B. One that the scalar unit has changed goes back to memory as a whole, with the
    bytes beside the changed ones as they were when it was loaded. The next load takes it from
    memory. Lines of UB are no lines of global memory.
    """

    lines: str = choice("one line, or all", "single", "entire", default="entire")
    where: str = choice("whose lines", "all", "ub", "out", "atomic", default="all")
    address: int = param(0, _ADDRESS, "address in the line, for a single one", default=0)

    @property
    def cleans_globally(self) -> bool:
        """True if it cleans lines of global memory."""
        return self.where != "ub"

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Architecture 3510 does not drop all lines of the Unified Buffer."""
        if chip.arch != "3510" or (self.lines, self.where) != ("entire", "ub"):
            return []
        return [Violation(f"{self.name}.where", f"not be ub for all lines on {chip.name}", "ub")]


@instruction(
    "dc_preload",
    Pipe.S,
    names={"c_api": "asc_datacache_preload", "cpp": "DataCachePreload"},
    source="asc-devkit, asc_datacache_preload (2201, 3510)",
    uncertain=(_NO_CACHE,),
    archs=("2201", "3510"),
)
class DcPreload(Instruction):
    """Load a line of global memory into the data cache. Nothing changes."""

    address: int = param(0, _ADDRESS, "where the source starts")
    offset: int = param(-(2**63), 2**63 - 1, "bytes from there")


@instruction(
    "preload",
    Pipe.S,
    names={"c_api": "asc_icache_preload", "cpp": "ICachePreLoad"},
    source="asc-devkit, asc_icache_preload (2201, 3510)",
    uncertain=(_NO_CACHE,),
    archs=("2201", "3510"),
)
class Preload(Instruction):
    """Load instructions into the instruction cache. Nothing changes."""

    address: int = param(0, _ADDRESS, "first instruction")
    prefetch_len: int = param(-(2**63), 2**63 - 1, "length")


@instruction(
    "get_icache_preload_status",
    Pipe.S,
    names={"c_api": "asc_get_icache_preload_status", "cpp": "GetICachePreloadStatus"},
    source="asc-devkit, asc_get_icache_preload_status (2201, 3510)",
    uncertain=(_NO_CACHE,),
    archs=("2201", "3510"),
)
class GetIcachePreloadStatus(Instruction):
    """Read whether the instruction cache is still loading: always 0, idle."""

    def result(self, registers: Registers) -> tuple[int, ...]:
        """Idle."""
        return (0,)

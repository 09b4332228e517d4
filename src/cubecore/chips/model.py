"""The record of a chip.

Every field is a fact with a unit in its name; an unknown fact is None and is never guessed. Where
each value comes from is in `Chip.sources`, field by field.
"""

import copyreg
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Self, get_args, get_type_hints

from cubecore.errors import did_you_mean, refuse, unable

JOINED_ARCHS = ("m100", "1001", "2002")
"""Architectures whose AI Core has Cube and Vector together (TIK: L1 and UB of one core)."""


_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def _shown(entries: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(entries)


# Records that hold read-only mappings (chips, and so plans) can then be pickled and copied.
copyreg.pickle(MappingProxyType, lambda shown: (_shown, (dict(shown),)))


@dataclass(frozen=True, slots=True)
class Fact:
    """One value as the catalogue states it: what, from where, how sure, and a remark."""

    field: str
    value: Any
    source: str
    reliability: str
    note: str = ""


def optional(doc: str) -> Any:
    """Declare a field that may be unknown; `doc` says what it is and its unit."""
    return field(default=None, metadata={"doc": doc})


def cost(doc: str) -> Any:
    """Declare a cost constant that may be unknown; timing needs it, sizes and rules do not."""
    return field(default=None, metadata={"doc": doc, "cost": True})


@dataclass(frozen=True, kw_only=True, eq=False)
class Chip:
    """One SoC; compares by identity, since the catalogue makes each once.

    What each field means is in its metadata, which the chip sheet and the manual print.
    """

    name: str
    arch: str = field(metadata={"doc": "NpuArch, the version of the AI Core's architecture"})
    products: tuple[str, ...] = field(
        default=(), metadata={"doc": "family and product names that may mean this SoC"}
    )
    sources: Mapping[str, Fact] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )

    aic_count: int = field(metadata={"doc": "AI Cores with a Cube unit that a kernel may use"})
    aiv_count: int | None = optional("Vector cores that a kernel may use")
    frequency_hz: int | None = optional("clock of the Cube and Vector units")
    l2_bytes: int | None = optional("L2 cache shared by all cores")
    gm_bytes: int | None = optional("device memory")

    l0a_bytes: int = field(metadata={"doc": "L0A buffer of one core"})
    l0b_bytes: int = field(metadata={"doc": "L0B buffer of one core"})
    l0c_bytes: int = field(metadata={"doc": "L0C buffer of one core"})
    l1_bytes: int = field(metadata={"doc": "L1 buffer of one core, physical"})
    l1_user_bytes: int = field(metadata={"doc": "L1 that a kernel may use"})
    ub_bytes: int = field(metadata={"doc": "Unified Buffer of one vector core, physical"})
    ub_user_bytes: int = field(metadata={"doc": "Unified Buffer that a kernel may use"})
    bt_bytes: int | None = optional(
        "BiasTable buffer; None where the chip has none or it is unknown"
    )
    fb_bytes: int | None = optional("Fixpipe buffer; None where the chip has none or it is unknown")

    cube_m: int | None = optional("rows of the Cube per cycle")
    cube_n: int | None = optional("columns of the Cube per cycle")
    cube_k: Mapping[str, int] | None = optional("K elements of the Cube per cycle, by element type")

    hf32_speedup: int | None = optional(
        "the Cube's rate for float32 rounded to HF32, over float32's"
    )

    ddr_bytes_per_cycle: int | None = optional("device memory to one AI Core, as configured")
    l2_read_bytes_per_cycle: int | None = optional("L2 to one AI Core, as configured")
    l2_write_bytes_per_cycle: int | None = optional("one AI Core to L2, as configured")
    l1_to_l0a_bytes_per_cycle: int | None = cost("L1 to L0A")
    l1_to_l0b_bytes_per_cycle: int | None = cost("L1 to L0B")
    l1_to_bt_bytes_per_cycle: int | None = cost("L1 to BiasTable")
    l1_to_fb_bytes_per_cycle: int | None = cost("L1 to Fixpipe buffer")
    l1_to_l0_scale_bytes_per_cycle: int | None = optional("L1 to the MX scales of L0A and L0B")
    l1_to_ub_bytes_per_cycle: int | None = optional("L1 to UB, as configured")
    l0c_to_ub_bytes_per_cycle: int | None = optional("L0C to UB, as configured")
    ub_to_l2_bytes_per_cycle: int | None = optional("UB to L2, as configured")
    ub_to_ddr_bytes_per_cycle: int | None = optional("UB to device memory, as configured")
    ub_to_l1_bytes_per_cycle: int | None = optional("UB to L1, as configured")
    aiv_ddr_bytes_per_cycle: int | None = optional(
        "device memory to one vector core, as configured"
    )
    aiv_l2_bytes_per_cycle: int | None = optional("L2 to one vector core, as configured")
    aiv_ub_to_l2_bytes_per_cycle: int | None = optional("vector core's UB to L2, as configured")
    aiv_ub_to_ddr_bytes_per_cycle: int | None = optional(
        "vector core's UB to memory, as configured"
    )

    hbm_bytes_per_second: int | None = cost("sustained reads of device memory by all cores")
    hbm_write_weight: float | None = optional("bytes read that take as long as a byte written; 1")
    l2_write_reach: float | None = optional(
        "L2s that a launch may bring in before it holds little; 1"
    )
    hbm_row_bytes: int | None = cost("bytes that each row of a transfer adds at device memory")
    hbm_ub_row_bytes: int | None = optional(
        "the same of a transfer of UB; hbm_row_bytes unless known"
    )
    hbm_slack_cycles: int | None = cost("past idle time that device memory may still serve in")
    hbm_latency_cycles: int | None = cost("first byte from device memory")
    l2_survival_power: int | None = cost("1: blocks leave L2 by chance; more: the oldest go first")
    hbm_ub_latency_cycles: int | None = optional(
        "the same into UB; hbm_latency_cycles unless known"
    )
    l2_latency_cycles: int | None = cost("first byte from L2")
    gm_to_l1_bytes_per_cycle: float | None = cost("L2 to L1 of one core within a row")
    gm_to_l1_transfer_cycles: int | None = cost("each transfer of MTE2")
    gm_to_l1_lone_row_cycles: float | None = optional(
        "the same of a row of a matrix whose rows are too far apart for one transfer"
    )
    gm_to_l1_row_cycles: float | None = cost("each row of a strided transfer")
    gm_to_l1_pitch_row_cycles: float | None = optional(
        "each row more that L2 has, if its pitch is k * 8 KiB"
    )
    gm_to_l1_turned_row_cycles: float | None = optional("each row more that DN2NZ transposes")
    gm_miss_bytes_per_cycle: float | None = optional(
        "device memory to one core: what may be on its way over its latency"
    )
    gm_miss_ub_bytes_per_cycle: float | None = optional("the same for one vector core")
    gm_to_l1_misaligned_block_cycles: Mapping[str, float] | None = optional(
        "each 32 B of a row whose start is aligned to only this many bytes"
    )
    gm_latency_overlap: float | None = cost("share of a load's latency hidden from the next load")
    gm_to_ub_bytes_per_cycle: float | None = cost("L2 to UB of one vector core")
    gm_to_ub_transfer_cycles: int | None = cost("each transfer into UB")
    ub_to_gm_bytes_per_cycle: float | None = cost("UB of one vector core to L2")
    l1_to_l0_head_cycles: int | None = cost("each L1 to L0 move that finds MTE1 idle")
    l1_to_l0_queued_cycles: int | None = cost("each L1 to L0 move right behind another")
    l1_to_l0_contention: float | None = cost("share more of an L1 to L0 move while MTE2 fills L1")
    l1_to_bt_head_cycles: int | None = cost("each L1 to BiasTable move")
    l1_to_fb_head_cycles: int | None = cost("each L1 to Fixpipe buffer move")
    mad_head_cycles: int | None = cost("each Mmad for which the Cube had to wait")
    mad_queued_cycles: int | None = cost("each Mmad right behind another")
    l0c_to_gm_bytes_per_cycle: float | None = cost("fixpipe to global memory")
    l0c_to_gm_row_cycles: float | None = cost("each row that fixpipe writes")
    l0c_to_gm_misaligned_row_cycles: float | None = optional("each row more that starts off 16 B")
    l0c_to_gm_head_cycles: int | None = cost("each fixpipe")
    l0c_to_l1_elements_per_cycle: int | None = cost("elements that fixpipe writes to L1")
    l0c_to_l1_head_cycles: int | None = cost("each fixpipe to L1")
    vector_head_cycles: int | None = cost("each vector instruction")
    vector_repeat_cycles: int | None = cost("each repeat without bank conflict")
    vector_elements_per_cycle: Mapping[str, float] | None = optional(
        "results per cycle of vector instructions slower than 256 bytes, by name[.element type]"
    )
    vf_window: int | None = optional(
        "instructions of a vector function that have entered its unit and are not done, at most"
    )
    vf_queue: int | None = optional("of these, those that compute and have not started, at most")
    vf_forward_cycles: int | None = optional(
        "last cycles of a register instruction's latency that readers of its result do not wait for"
    )
    vf_loop_cycles: int | None = optional("each start of a hardware loop of a vector function")
    vf_start_cycles: int | None = optional("each vector function for which pipe V had to wait")
    vf_drain_cycles: int | None = optional("each vector function behind its last result")
    thread_cycles: Mapping[str, float] | None = optional(
        "what threads (SIMT) do, by the names of `ThreadWork`: rough, and uncertain in each number"
    )
    ub_bank_groups: int | None = optional("bank groups of UB, which its 32 B blocks take in turn")
    scalar_issue_cycles: int | None = cost("scalar unit per issued instruction")
    scalar_step_cycles: Mapping[str, int] | None = cost("scalar unit per base-K step, by template")
    scalar_load_cycles: Mapping[str, int] | None = optional("the same per load of L1, by template")
    scalar_tile_cycles: Mapping[str, int] | None = optional("the same per tile of C, by template")
    pipe_queue_depth: int | None = cost("instructions that wait in one pipe's queue")
    cross_core_cycles: int | None = optional("from a signal to the cores that wait for it")
    start_cycles: int | None = cost("from kernel start to the first MTE2 of the Matmul API")
    short_start_cycles: Mapping[str, int] | None = optional(
        "the same for kernels that start sooner, by kind; start_cycles for the others"
    )
    launch_cycles: int | None = cost("launch of a kernel, outside the cores")
    loop_gap_cycles: int | None = optional("between kernels that a host launches in a loop")

    @property
    def joins_vector(self) -> bool:
        """True if the Vector unit is part of the AI Core: one core has all the memories."""
        return self.arch in JOINED_ARCHS

    @property
    def mix_aiv_per_aic(self) -> int:
        """Vector cores beside each AI Core in a mix launch (0 where the chip has none)."""
        return (self.aiv_count or 0) // self.aic_count

    @property
    def with_one_aiv_per_aic(self) -> Self:
        """The chip as launches use it that take one Vector core beside each AI Core."""
        return replace(self, aiv_count=self.aic_count) if self.mix_aiv_per_aic > 1 else self

    @cached_property
    def unknown_costs(self) -> tuple[str, ...]:
        """Cost constants that no source gives for this chip."""
        return tuple(
            f.name for f in fields(self) if f.metadata.get("cost") and getattr(self, f.name) is None
        )

    def _repr_html_(self) -> str:
        """Return a table of cores, clock and memories, for notebooks."""
        from cubecore.presented.card import card_page

        cores = f"{self.aic_count} AIC" + (f", {self.aiv_count} AIV" if self.aiv_count else "")
        figures = [("architecture", self.arch), ("cores", cores)]
        if self.frequency_hz is not None:
            figures.append(("clock", f"{self.frequency_hz / 1e9:g} GHz"))
        mems = {"device memory": self.gm_bytes, "L2": self.l2_bytes}
        for name in ("l1", "l0a", "l0b", "l0c", "ub", "bt", "fb"):
            mems[name.upper()] = getattr(self, f"{name}_bytes")
        for name, size in mems.items():
            if size:
                scale, unit = next(u for u in _UNITS if size >= u[0])
                figures.append((name, f"{size / scale:g} {unit}"))
        return card_page(self.name, figures, "")

    def require(self, name: str, purpose: str) -> Any:
        """Return the fact `name`; refuse with the field and the purpose when it is unknown."""
        value = getattr(self, name)
        if value is None:
            raise refuse(
                f"{self.name}.{name}",
                f"be known for {purpose}",
                "no published value",
                "" if number_type(name) is Mapping else f"give one with --set {name}=VALUE",
            )
        return value

    def microseconds(self, cycles: float) -> float | None:
        """Return `cycles` of this chip's clock in microseconds; None without a known clock."""
        return None if self.frequency_hz is None else cycles * 1e6 / self.frequency_hz

    def what_if(self, changes: Mapping[str, str]) -> Self:
        """Return this chip with fields replaced by the texts of ``--set FIELD=VALUE``.

        Raises
        ------
        RequestError
            If a field is not one of a chip's, or a text does not have its type.
        """
        if not changes:
            return self
        values: dict[str, Any] = {}
        for name, text in changes.items():
            values[name] = _parse(name, text)
        facts = {n: Fact(n, v, "--set", "WHAT-IF") for n, v in values.items()}
        changed = replace(self, **values, sources=MappingProxyType({**self.sources, **facts}))
        changed.prove()
        return changed

    def prove(self) -> None:
        """Hold the chip to what is true of every chip, both sides in the text.

        Raises
        ------
        RequestError
            If a usable size is above the physical one, or a fact is not positive.
        """
        for small, large in (("l1_user_bytes", "l1_bytes"), ("ub_user_bytes", "ub_bytes")):
            if getattr(self, small) > getattr(self, large):
                raise refuse(
                    f"{self.name}.{small}",
                    f"be at most {large} = {getattr(self, large)} B",
                    getattr(self, small),
                )
        for key in FACT_FIELDS:
            value = getattr(self, key)
            numbers = (
                value.values() if isinstance(value, Mapping) else () if value is None else (value,)
            )
            for number in numbers:
                if number < 0 or (number == 0 and key not in _MAY_BE_ZERO):
                    raise refuse(f"{self.name}.{key}", "be greater than 0", number)


_MAY_BE_ZERO = ("aiv_count", "gm_latency_overlap", "l1_to_l0_contention")
_LEAST, _LARGEST = 1e-6, 2**53
"""The range of --set: beyond these, arithmetic on a size or a rate is no longer exact."""
FACT_FIELDS: dict[str, str] = {
    f.name: f.metadata["doc"]
    for f in fields(Chip)
    if f.metadata.get("doc") and f.name not in {"arch", "products"}
}
"""Every field that a catalogue file may state, with what it means."""
REQUIRED_FACTS: tuple[str, ...] = tuple(
    f.name for f in fields(Chip) if f.name in FACT_FIELDS and f.default is MISSING
)
"""The fields that a catalogue file must state: what no rule can do without."""


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Chip)


def number_type(name: str) -> type:
    """Return ``int``, ``float`` or ``Mapping``: what the field `name` holds when it is known."""
    hint = _hints()[name]
    options = [option for option in get_args(hint) if option is not type(None)] or [hint]
    first = options[0]
    return Mapping if getattr(first, "__origin__", None) is not None else first


def _whole(text: str) -> int:
    """Return a whole number, written as one or as 3e12."""
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if not value.is_integer():
            raise
        return int(value)


def _parse(name: str, text: str) -> int | float:
    if name not in FACT_FIELDS:
        near = did_you_mean(name, FACT_FIELDS) or "`cubecore chips NAME` lists them"
        raise unable("--set", f"--set: no chip field named {name}", near)
    kind = number_type(name)
    if kind is Mapping:
        raise unable(f"--set {name}", f"--set cannot replace {name}, a table of several numbers")
    try:
        value = _whole(text) if kind is int else float(text)
    except ValueError:
        kind_name = "a whole number" if kind is int else "a number"
        raise refuse(f"--set {name}", f"be {kind_name}", repr(text)) from None
    if not 0 < value < float("inf"):
        raise refuse(f"--set {name}", "be greater than 0 and finite", text)
    if not _LEAST <= value <= _LARGEST:
        raise refuse(f"--set {name}", f"be between {_LEAST} and {_LARGEST}", text)
    return value

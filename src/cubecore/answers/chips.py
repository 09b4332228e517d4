"""The answers of `chips`: one chip with every fact and its source, or the catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cubecore.aliases import Json
from cubecore.chips import Chip
from cubecore.chips.model import FACT_FIELDS
from cubecore.presented.text import table


@dataclass(frozen=True, slots=True)
class ChipSheet:
    """One chip with every fact, its meaning and its source."""

    chip: Chip

    def to_json(self) -> Json:
        """Return the chip as JSON: unknown facts are null."""
        facts = {}
        for name, meaning in FACT_FIELDS.items():
            fact = self.chip.sources.get(name)
            value = getattr(self.chip, name)
            facts[name] = {
                "value": dict(value) if isinstance(value, Mapping) else value,
                "meaning": meaning,
                "source": fact.source if fact else None,
                "reliability": fact.reliability if fact else None,
                "note": fact.note if fact else "",
            }
        return {
            "name": self.chip.name,
            "arch": self.chip.arch,
            "products": list(self.chip.products),
            "facts": facts,
        }

    @property
    def text(self) -> str:
        """Every fact with its source."""
        chip = self.chip
        lines = [f"{chip.name}: architecture {chip.arch}"]
        lines += [f"  also {', '.join(chip.products)}"] if chip.products else []
        facts = self.to_json()["facts"]
        known = {name: fact for name, fact in facts.items() if fact["value"] is not None}
        rows: list[Sequence[object]] = []
        for name, fact in known.items():
            value = "by name" if isinstance(fact["value"], dict) else fact["value"]
            rows.append((name, value, fact["reliability"], fact["note"] or fact["source"]))
        lines.append("")
        for line, fact in zip(table(rows), known.values(), strict=True):
            lines.append(line)
            if isinstance(fact["value"], dict):
                lines.append("    " + ", ".join(f"{k} {v}" for k, v in fact["value"].items()))
        if unknown := [name for name in facts if name not in known]:
            lines += ["", f"Unknown: {', '.join(unknown)}"]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each fact."""
        return [{"field": name, **fact} for name, fact in self.to_json()["facts"].items()]


@dataclass(frozen=True, slots=True)
class ChipList:
    """The chips of the catalogue, each as a sheet."""

    sheets: tuple[ChipSheet, ...]

    def to_json(self) -> Json:
        """Return every sheet as JSON."""
        return {"chips": [sheet.to_json() for sheet in self.sheets]}

    @property
    def text(self) -> str:
        """One chip a line."""
        rows: list[Sequence[object]] = [
            ("SoC", "arch", "AIC", "AIV", "MHz", "L1 KiB", "also called")
        ]
        for sheet in self.sheets:
            c = sheet.chip
            mhz = None if c.frequency_hz is None else c.frequency_hz // 1_000_000
            also = ", ".join(c.products[:3])
            rows.append((c.name, c.arch, c.aic_count, c.aiv_count, mhz, c.l1_bytes // 1024, also))
        return "\n".join(table(rows, "")) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each chip."""
        rows = []
        for row in (sheet.to_json() for sheet in self.sheets):
            facts = {name: fact["value"] for name, fact in row["facts"].items()}
            rows.append({"name": row["name"], "arch": row["arch"], **facts})
        return rows

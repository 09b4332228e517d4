"""The chip's facts that a timed matrix matmul rests on, each with its reliability."""

from collections.abc import Mapping

from cubecore.aliases import Json
from cubecore.chips.model import FACT_FIELDS, Chip

USED_FACTS = (
    "aic_count",
    "frequency_hz",
    "cube_m",
    "cube_n",
    "cube_k",
    "l0a_bytes",
    "l0b_bytes",
    "l0c_bytes",
    "l1_bytes",
    "l1_user_bytes",
    "bt_bytes",
    "l2_bytes",
    "hbm_bytes_per_second",
    "hbm_row_bytes",
    "hbm_write_weight",
    "hbm_slack_cycles",
    "hbm_latency_cycles",
    "l2_latency_cycles",
    "l2_survival_power",
    "l2_write_reach",
    "gm_latency_overlap",
    "gm_to_l1_bytes_per_cycle",
    "gm_to_l1_transfer_cycles",
    "gm_to_l1_row_cycles",
    "gm_to_l1_pitch_row_cycles",
    "gm_to_l1_turned_row_cycles",
    "gm_to_l1_misaligned_block_cycles",
    "gm_miss_bytes_per_cycle",
    "l1_to_l0a_bytes_per_cycle",
    "l1_to_l0b_bytes_per_cycle",
    "l1_to_bt_bytes_per_cycle",
    "l1_to_bt_head_cycles",
    "l1_to_l0_head_cycles",
    "l1_to_l0_queued_cycles",
    "l1_to_l0_contention",
    "mad_head_cycles",
    "mad_queued_cycles",
    "l0c_to_gm_bytes_per_cycle",
    "l0c_to_gm_row_cycles",
    "l0c_to_gm_misaligned_row_cycles",
    "l0c_to_gm_head_cycles",
    "scalar_issue_cycles",
    "scalar_step_cycles",
    "scalar_load_cycles",
    "scalar_tile_cycles",
    "pipe_queue_depth",
    "start_cycles",
    "short_start_cycles",
    "launch_cycles",
)
"""The facts that rules and timing of a matrix matmul read; the vector side is not in it."""

RELIABILITY = {
    "DOC": "vendor documentation",
    "INI": "the vendor's platform configuration file",
    "MEAS": "published measurement",
    "CODE": "constant in the vendor's public code",
    "FIT": "derived here from published measurements",
    "INF": "inference, no measurement",
    "OWN": "stated by a chip file",
    "WHAT-IF": "set on the command line",
}
"""The meanings of the tags."""


def facts_used(chip: Chip) -> Json:
    """Return the facts with value, meaning, tag, source and note; the tags' meanings and counts."""
    rows = []
    counts: dict[str, int] = {}
    for name in USED_FACTS:
        value, fact = getattr(chip, name), chip.sources.get(name)
        if value is None or fact is None:
            continue
        counts[fact.reliability] = counts.get(fact.reliability, 0) + 1
        rows.append(
            {
                "name": name,
                "value": _shown(value),
                "meaning": FACT_FIELDS[name],
                "tag": fact.reliability,
                "source": fact.source,
                "note": fact.note,
            }
        )
    tags = [
        {"tag": tag, "meaning": RELIABILITY.get(tag, ""), "count": count}
        for tag, count in sorted(counts.items())
    ]
    return {"rows": rows, "tags": tags}


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return f"{value:,}"

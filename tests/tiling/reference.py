"""The vendor's recorded answers as our problems and tilings, and our plans beside them."""

import statistics
from dataclasses import dataclass, replace
from functools import cache

from cubecore.errors import CubecoreError
from cubecore.planning.event_ranking import can_be_timed, timed, timed_plan
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.solver.solver import Ranked, Solution, solve
from data_files import data

SIZES = {"l0a": "l0a_bytes", "l0b": "l0b_bytes", "l0c": "l0c_bytes", "bt": "bt_bytes"}
MX_MODE = 2
"""MatrixMadType::MXMODE in the record's options."""


def problem_of(record):
    given = {k: v for k, v in record["problem"].items() if k != "name"}
    if given.get("format_a") == "VECTOR" or min(given["m"], given["n"], given["k"]) < 1:
        return None  # neither is in our contract; both are unit tests of the library
    options = record.get("options") or {}
    if options.get("mad_type") == MX_MODE:
        given["scale_a"] = "float8_e8m0fnu"
    if options.get("cfg_type") == 0:
        given["template"] = "NORM"
    return Problem.from_json(given | {"split_k": bool(options.get("split_k"))})


def chip_of(record, p):
    """Return the problem's chip, with the sizes that a unit test set by hand."""
    options = record.get("options") or {}
    if "l1" not in options:
        return p.chip_record
    sizes = {ours: options[theirs] or None for theirs, ours in SIZES.items()}
    sizes |= {
        f"{name}_{kind}": options[name] for name in ("l1", "ub") for kind in ("bytes", "user_bytes")
    }
    return replace(p.chip_record, **sizes)


@cache
def recorded(kind):
    """Return the records: "answers" or "crashes"; a tiling has all of its fields."""
    names = data("reference_tilings")["constraints"]
    found = []
    for record in data("reference_tilings")[kind]:
        tiling = record.get("tiling") and dict.fromkeys(FIELDS, 0) | record["tiling"]
        breaks = {names[number] for number in record.get("breaks", ())}
        found.append(record | {"tiling": tiling, "breaks": breaks})
    return found


@cache
def answered():
    """Return the vendor's answers that our contract can express."""
    found = []
    for record in recorded("answers"):
        p = problem_of(record)
        if p is not None and record["tiling"]:
            soc = chip_of(record, p)
            found.append((record, p, soc, TCubeTiling.from_json(record["tiling"])))
    return found


@dataclass(frozen=True)
class Beside:
    """Our plan for a problem, and the vendor's legal answer to it, if there is one."""

    id: str
    problem: Problem
    chip: object
    ours: Solution
    theirs: TCubeTiling | None

    @property
    def ratio(self):
        """Their time over ours, by the closed form, which ranked ours."""
        theirs = predict(self.theirs, self.problem, self.chip).cycles
        return theirs / self.ours.best.predicted.cycles

    @property
    def timed_ratio(self):
        """Their time over that of `plan`, as `time` says; by the closed form where it cannot."""
        if not can_be_timed(self.problem, self.chip):
            return self.ratio
        ours, _ = timed_plan(self.problem, self.chip, 0)
        theirs = Ranked(self.theirs, predict(self.theirs, self.problem, self.chip))
        told = timed(theirs, self.problem, self.chip)
        return told.predicted.cycles / ours.best.predicted.cycles


@cache
def plans_beside_answers(every=1):
    """Return our plan for every recorded problem that we plan, beside the answer if it is legal.

    Of every so many records the last.
    """
    found = []
    for record in (recorded("answers") + recorded("crashes"))[every - 1 :: every]:
        p = problem_of(record)
        if p is None:
            continue
        soc = chip_of(record, p)
        if p.kb not in {None, p.k}:  # the solver plans what both operands have
            continue
        try:
            ours = solve(p, soc, count=2)
        except CubecoreError:  # types that the chip does not multiply; positions
            continue
        theirs = None
        if record.get("return_code") == 0:
            answer = TCubeTiling.from_json(record["tiling"])
            if not answer.mismatches(*p.extents) and check_tiling(answer, p, soc).legal:
                theirs = answer
        found.append(Beside(record.get("id", "a crash"), p, soc, ours, theirs))
    return found


def distribution(ratios):
    """Return how their times over ours are spread."""
    ordered = sorted(ratios)
    places = {"least": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "largest": 1.0}
    last = len(ordered) - 1
    return {
        "answers": len(ordered),
        "geometric_mean": statistics.geometric_mean(ordered),
        **{name: ordered[round(place * last)] for name, place in places.items()},
    }


def ratios_by_cores():
    """Return the distributions for products on several cores and on one."""
    legal = [b for b in plans_beside_answers() if b.theirs is not None]
    several = [b.timed_ratio for b in legal if b.problem.core_count(b.chip) > 1]
    one = [b.timed_ratio for b in legal if b.problem.core_count(b.chip) == 1]
    return {"several cores": distribution(several), "one core": distribution(one)}

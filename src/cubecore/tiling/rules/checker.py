"""Checking a tiling against every rule, and explaining a rule.

`rules` lists the registry; `check_tiling` reports all that is wrong at once; `legal_mask` is the
same rules over many candidates, for the solver.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

import numpy as np

from cubecore.aliases import Columns, Json, JsonMapping
from cubecore.arrays import Array
from cubecore.chips import Chip
from cubecore.citations import EDITIONS, cite_rows
from cubecore.errors import did_you_mean, refuse
from cubecore.manual import address_lines
from cubecore.presented import Figures, Presented
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import RESERVED_FIELDS, TCubeTiling
from cubecore.tiling.rules import (
    blocks,
    buffers,
    extents,
    formats,
    kernel,
    l1,
    mx,
    ub,
)
from cubecore.tiling.rules.advice import Advice, advise
from cubecore.tiling.rules.capabilities import validate
from cubecore.tiling.rules.model import (
    Measure,
    Remedy,
    Rule,
    RuleCase,
    registered,
    satisfied,
)
from cubecore.units import plural

RULE_MODULES = (
    extents,
    formats,
    blocks,
    mx,
    buffers,
    l1,
    ub,
    kernel,
)
"""The modules that declare rules; a rule elsewhere is one more module here."""

NOT_CHECKED: Mapping[str, str] = MappingProxyType(
    {
        f"{page}/t1/{name}": "reserved: the vendor's library writes sizes and batch counts here"
        for page in EDITIONS.values()
        for name in RESERVED_FIELDS
    }
)
"""Rows of the TCubeTiling pages that no rule checks, each with the reason."""


@dataclass(frozen=True)
class RuleFinding:
    """One violated rule: `used` and `limit` in `unit`, the whole line, the remedy, the page's row.

    `used` must stand in `relation` to `limit`, a list where the relation is ``in``. `terms` say how
    `used` comes about; `rows` are the page's rows that ask for it, in the edition that was checked
    or, where it does not, in the other. `tiling_changes` and `problem_changes` are the remedy as
    data: applied, they make this rule hold.
    """

    rule: str
    used: int
    limit: int | list[int]
    relation: str
    unit: str
    terms: str
    message: str
    remedy: str
    source: str
    rows: tuple[str, ...]
    tiling_changes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    problem_changes: JsonMapping = field(default_factory=lambda: MappingProxyType({}))

    def to_json(self) -> Json:
        """Return the public contract's keys and the changes."""
        return {
            "rule": self.rule,
            "used": self.used,
            "limit": self.limit,
            "relation": self.relation,
            "unit": self.unit,
            "terms": self.terms,
            "message": self.message,
            "remedy": self.remedy,
            "source": self.source,
            "rows": list(self.rows),
            "tiling_changes": dict(self.tiling_changes),
            "problem_changes": dict(self.problem_changes),
        }


@dataclass(frozen=True)
class Findings(Presented):
    """The result of a check: the violated rules in the registry's order, and advice.

    `letter` has the rules that hold as checked and that the documented reading violates.
    """

    findings: tuple[RuleFinding, ...]
    advice: tuple[Advice, ...]
    letter: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def legal(self) -> bool:
        """True if no rule is violated."""
        return not self.findings

    def to_json(self) -> Json:
        """Return the public contract's object."""
        return {
            "legal": self.legal,
            "findings": [finding.to_json() for finding in self.findings],
            "advice": [advice.to_json() for advice in self.advice],
            "letter": list(self.letter),
        }

    @property
    def text(self) -> str:
        """Every violated rule with its source, and the advice."""
        count = len(self.findings)
        lines = ["legal" if self.legal else f"illegal: {plural(count, 'rule')} broken"]
        for finding in self.findings:
            lines += [f"  {finding.message}", f"    {finding.source}"]
        lines += address_lines("rule", (finding.rule for finding in self.findings))
        if self.letter:
            names = ", ".join(self.letter)
            rejects = f"Read literally, the vendor's page also rejects this ({names})"
            lines.append(f"{rejects}; see --reading documented")
        lines += self._outcome_lines()
        if self.advice:
            lines += ["", "Advice", *(f"  {one.to_json()['message']}" for one in self.advice)]
        return "\n".join(lines) + "\n"

    def _outcome_lines(self) -> Iterable[str]:
        """Return what a repair came to, where one was asked for."""
        return ()

    def to_rows(self) -> list[Json]:
        """Return a row for each violated rule."""
        return [finding.to_json() for finding in self.findings]

    def _figures(self) -> Figures:
        if self.legal:
            return "legal", [("advice", str(len(self.advice)))]
        names = ", ".join(finding.rule for finding in self.findings)
        return f"illegal: {plural(len(self.findings), 'rule')} broken", [("rules", names)]

    def _remarks(self) -> list[str]:
        return [finding.message for finding in self.findings]


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of `RULE_MODULES` and of declaration."""
    order = {module.__name__: index for index, module in enumerate(RULE_MODULES)}
    return tuple(sorted(registered(), key=lambda r: order[r.measure.__module__]))


def rule_named(rule_id: str) -> Rule:
    """Return the rule `rule_id`.

    Raises
    ------
    RequestError
        If no rule has that id; the message names the nearest one.
    """
    rule_of = {r.id: r for r in rules()}
    if rule_id not in rule_of:
        raise refuse("rule", "be one of cubecore's", repr(rule_id), did_you_mean(rule_id, rule_of))
    return rule_of[rule_id]


def check_tiling(
    tiling: TCubeTiling,
    problem: Problem,
    chip: Chip,
    edition: str = "newer",
    reading: str = "effective",
) -> Findings:
    """Return every rule that `tiling` violates for `problem` on `chip`, and advice.

    Raises
    ------
    RequestError
        If the tiling's sizes differ from the problem's, the chip does not multiply the problem's
        types, or `edition` or `reading` is unknown.
    """
    case = RuleCase(tiling, problem, chip, edition, reading)
    tiling.require_match(*problem.extents)
    validate(problem, chip)
    return check_case(case)


def check_case(case: RuleCase) -> Findings:
    """Return what `check_tiling` does: the chip multiplies the problem, the sizes agree."""
    findings = tuple(
        _finding(declared, measure, case)
        for declared in rules()
        if (measure := declared.measure(case)) is not None and not measure.holds()
    )
    letter: tuple[str, ...] = ()
    if case.effective:
        documented, named = replace(case, reading="documented"), {f.rule for f in findings}
        letter = tuple(
            declared.id
            for declared in rules()
            if declared.id not in named and not satisfied(documented, declared.measure)
        )
    return Findings(findings, advise(case), letter=letter)


def legal_mask(columns: Columns, problem: Problem, chip: Chip) -> tuple[Array, dict[str, int]]:
    """Return which candidates satisfy every rule, and how many each rule excluded.

    `columns` is a struct of arrays of equal length; newer edition, effective. A candidate counts
    for every rule that it violates.
    """
    case = RuleCase(columns, problem, chip)
    count = len(columns.baseM)
    mask = np.ones(count, dtype=bool)
    excluded: dict[str, int] = {}
    for declared in rules():
        measure = declared.measure(case)
        if measure is None:
            continue
        holds = np.asarray(measure.holds())
        if not holds.all():
            kept = np.broadcast_to(holds, (count,))
            excluded[declared.id] = count - int(np.count_nonzero(kept))
            mask &= kept
    return mask, excluded


def explain(rule_id: str) -> str:
    """Return the declaration of a rule: what it holds, in both readings, and where it is from.

    Raises
    ------
    RequestError
        If no rule has that id.
    """
    rule = rule_named(rule_id)
    rows = cite_rows(rule.rows) or rule.basis
    return f"{rule.id}: {rule.title}\n\n{rule.text}\n\nFrom: {rows}\n"


def message_of(declared: Rule, measure: Measure, case: RuleCase, remedy: Remedy | None) -> str:
    """Return the whole line of a violated rule."""
    unit = f" {measure.unit}" if measure.unit else ""
    terms = measure.terms()
    text = f"{declared.id}: {terms} = {measure.used}{unit}, {_requirement(measure, case)}"
    return f"{text}; {remedy.text}" if remedy else text


def _requirement(measure: Measure, case: RuleCase) -> str:
    unit = f" {measure.unit}" if measure.unit else ""
    given = measure.authority
    authority = (given() if callable(given) else given) or case.chip.name
    limit = measure.limit
    if measure.relation == "<=":
        return f"{authority} allows {limit}{unit}: over by {measure.used - limit}{unit}"
    if measure.relation == "<":
        return f"{authority} allows less than {limit}{unit}"
    limit_terms = measure.limit_terms
    why = f"{limit_terms()} = " if limit_terms is not None else ""
    if measure.relation == ">=":
        return f"must be at least {why}{limit}{unit}"
    if measure.relation == "multiple":
        return f"must be a multiple of {limit}{unit}"
    if measure.relation == "in":
        return f"must be {why}{' or '.join(str(option) for option in limit)}{unit}"
    return f"must equal {why}{limit}{unit}"


def _finding(declared: Rule, measure: Measure, case: RuleCase) -> RuleFinding:
    remedy = measure.remedy()
    limit = measure.limit
    return RuleFinding(
        rule=declared.id,
        used=int(measure.used),
        limit=[int(x) for x in limit] if isinstance(limit, tuple) else int(limit),
        relation=measure.relation,
        unit=measure.unit,
        terms=measure.terms(),
        message=message_of(declared, measure, case, remedy),
        remedy=remedy.text if remedy else "",
        source=declared.source(case.edition),
        rows=declared.rows_in(case.edition),
        tiling_changes=remedy.tiling if remedy else MappingProxyType({}),
        problem_changes=remedy.problem if remedy else MappingProxyType({}),
    )

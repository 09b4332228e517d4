"""The values that setters were given, and the request that they make."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cubecore.aliases import Json
from cubecore.chips import Chip
from cubecore.chips.products import plain_outputs, quantising_mode
from cubecore.dtypes import element_type
from cubecore.errors import RequestError, Violation, did_you_mean, refuse
from cubecore.tiling.model.buffer_budget import BufferBudget
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.field_limits import FieldLimits, Limits
from cubecore.tiling.model.problem import SCALE_TYPE, Problem
from cubecore.tiling.repair.infeasibility import Constraint, Narrowing
from cubecore.units import INT32_MAX

NOT_SET = -1
"""The value that leaves a number to the planner."""
FORMATS = ("ND", "NZ")
FROM, INTO = ("GM", "VECOUT", "TSCM"), ("GM", "VECIN")
"""The positions of operands and C in the setters (vendor's SetAType, SetBType, SetCType)."""
_ELSEWHERE = {
    "VECTOR": "a product with a vector is asked for as ND with m = 1",
    "ND_ALIGN": "cubecore's C has no padded rows",
    "COLUMN_MAJOR": "a matrix stored by columns is a transposed one",
    "CO1": "cubecore's kernels move C out of L0C",
}
"""Enumerators that mean something else here, with the reason."""


def word(subject: str, value: object, words: tuple[str, ...]) -> str:
    """Return an enumerator, or refuse it with the nearest one or with why there is none."""
    if value in words:
        return str(value)
    why = _ELSEWHERE.get(str(value)) or did_you_mean(str(value), words)
    raise refuse(subject, f"be {' or '.join(words)}", repr(value), why)


def number(subject: str, value: object, *, may_be_open: bool = False) -> int:
    """Return an integer of at least 1, or -1 where a number may be left open."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(subject, "be an integer", repr(value))
    if not (1 <= value <= INT32_MAX or (may_be_open and value == NOT_SET)):
        need = "be at least 1, or -1" if may_be_open else "be at least 1"
        raise refuse(subject, need if value < 1 else f"be at most {INT32_MAX}", value)
    return value


@dataclass
class RequestedTiling:
    """The state behind the setters; `fixed`, `ranges` and `multiples` are by field of the tiling.

    `keys` are the problem's, `fields` are copied into the tiling. `given` names the operands whose
    type was set.
    """

    keys: Json = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    org: tuple[int, int, int, int] | None = None
    shape: tuple[int, int, int] = (NOT_SET, NOT_SET, NOT_SET)
    bias: bool = False
    bias_type: str = "float32"
    mad: str = "NORMAL"
    one_scale: bool = True
    scales_from: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    multiples: dict[str, int] = field(default_factory=dict)
    budget: dict[str, int] = field(default_factory=dict)
    """By parameter of set_buffer_space: ``l1_size``."""
    fields: dict[str, int] = field(default_factory=dict)

    def operand(self, name: str, pos: str, cube_format: str, data_type: str) -> None:
        """Set position, format and type of "a", "b" or "c"."""
        caller = f"set_{name}_type"
        words = INTO if name == "c" else FROM
        self.keys[f"pos_{name}"] = word(f"{caller}.pos", pos, words)
        self.keys[f"format_{name}"] = word(f"{caller}.cube_format", cube_format, FORMATS)
        self.keys[name] = element_type(data_type, f"{caller}.data_type").name
        self.given.add(name)

    def layout(self, operand: str, axes: Iterable[tuple[str, int]]) -> None:
        """Set the layout fields of an operand."""
        for axis, value in axes:
            subject = f"set_{operand.lower()}_layout.{axis.lower()}"
            self.fields[f"{operand}LayoutInfo{axis}"] = number(subject, value)

    def narrow(self, caller: str, kind: dict[str, int], values: Iterable[tuple[str, int]]) -> None:
        """Set `kind` (fixed values or multiples) of fields; -1 takes an earlier one back."""
        for name, value in values:
            number(f"{caller}.{name}", value, may_be_open=True)
            kind.pop(name, None)
            if value != NOT_SET:
                kind[name] = value

    def bound(self, caller: str, names: Iterable[str], tops: Any, lows: Any) -> None:
        """Set the ranges of fields; -1 leaves an end open."""
        for name, high, low in zip(names, tops, lows, strict=True):
            for what, value in (("max", high), ("min", low)):
                number(f"{caller}.{what} of {name}", value, may_be_open=True)
            if NOT_SET != high < low:
                raise refuse(f"{caller}.max of {name}", f"be at least the min {low}", high)
            self.ranges[name] = (
                0 if low == NOT_SET else low,
                INT32_MAX if high == NOT_SET else high,
            )

    def extents(self) -> tuple[int, int, int]:
        """Return M, N and K of what is computed: the shape, its open places from the originals."""
        org = self.org
        if org is None:
            if NOT_SET in self.shape:
                need = "give m, n and k, or set_org_shape be called"
                raise refuse(
                    "set_shape", need, "-1" if any(x > 0 for x in self.shape) else "neither"
                )
            return self.shape
        whole = (org[0], org[1], min(org[2], org[3]))
        wrong = []
        for name, extent, all_of_it in zip("mnk", self.shape, whole, strict=True):
            if extent > all_of_it:
                need = f"be at most the original {name.upper()} = {all_of_it}"
                wrong.append(Violation(f"set_shape.{name}", need, str(extent)))
        if wrong:
            raise RequestError(wrong)
        m, n, k = (
            w if extent == NOT_SET else extent for extent, w in zip(self.shape, whole, strict=True)
        )
        return m, n, k

    def problem(self, target: Chip, more: Json) -> Problem:
        """Return the matmul that was set; `more` are keys that the class adds."""
        m, n, k = self.extents()
        violations = list(self._violations())
        if violations:
            raise RequestError(violations)
        keys = {**self.keys, **more, "chip": target.name, "m": m, "n": n, "k": k}
        keys["hf32"] = self.mad == "HF32"
        if self.bias:
            keys["bias"] = self.bias_type
        if self.mad == "MXMODE":
            keys["scale_a"] = SCALE_TYPE
        problem = Problem(**keys)
        accumulator = problem.accumulator_type.name
        mode = quantising_mode(accumulator, problem.c, "one" if self.one_scale else "column")
        if problem.c in plain_outputs(accumulator) or mode is None:
            return problem
        return replace(
            problem, epilogue=Epilogue(quant=mode, scale=1.0 if self.one_scale else None)
        )

    def _violations(self) -> Iterator[Violation]:
        for name in "abc":
            if name not in self.given:
                call = f"set_{name}_type"
                yield Violation(call, "", "", sentence=f"{call} has not been called")
        for operand, position in self.scales_from.items():
            expected = self.keys.get(f"pos_{operand}", "GM")
            if position != expected:
                subject = f"set_scale_{operand}_type.scale_pos"
                yield Violation(subject, f"be {expected}, where {operand.upper()} lies", position)

    def wanted(self) -> FieldLimits:
        """Return what the tiling's fields are held to."""
        limits = {}
        for name in {**self.ranges, **self.multiples, **self.fixed}:
            low, high = self.ranges.get(name, (0, INT32_MAX))
            limits[name] = Limits(low, high, self.multiples.get(name, 1))
            if name in self.fixed:
                limits[name] = Limits(self.fixed[name], self.fixed[name])
        return FieldLimits(limits)

    def budgeted(self, target: Chip) -> Chip:
        """Return the chip with its buffers cut to what may be used."""
        sizes = {name.removesuffix("_size"): size for name, size in self.budget.items()}
        return BufferBudget(**sizes).applied(target, "set_buffer_space.{}_size")

    def narrowing(self, problem: Problem, target: Chip) -> Narrowing:
        """Return what buffer budgets and a number of cores leave of a request."""
        budgets = {name: f"{name} = {size}" for name, size in self.budget.items()}
        constraints = [Constraint("setting", name, text) for name, text in budgets.items()]
        if problem.cores is not None:
            constraints.append(Constraint("request", "cores", f"cores = {problem.cores}"))

        def narrowed(names: Collection[str]) -> tuple[Problem, Chip]:
            """Return the problem and the chip with some of that only."""
            kept = {name: size for name, size in self.budget.items() if name in names}
            cores = problem.cores if "cores" in names else None
            chip = replace(self, budget=kept).budgeted(target)
            return replace(problem, cores=cores), chip

        return Narrowing(tuple(constraints), narrowed)

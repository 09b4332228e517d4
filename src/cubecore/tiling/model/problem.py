"""The problem: one matrix matmul, its element types, and the cores that compute it.

The keys are the public contract's. A `Problem` that exists is well formed on its own; whether the
chip can do it is `validate`, and whether the planner can plan it yet is `require_plannable`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import (
    DEFAULT_CHIP,
    Chip,
    chip,
    default_chip,
    expand_family,
    is_chip,
    soc_name,
)
from cubecore.chips.products import (
    FIXPIPE_CONVERSIONS,
    HALF_SUM_ARCHS,
    UNIT_FLAG_ARCHS,
    FixpipeRow,
    fixpipe_row,
)
from cubecore.citations import cite
from cubecore.dtypes import ElementType, element_type, type_name
from cubecore.errors import MISSING, RequestError, Violation, did_you_mean, shown
from cubecore.tiling.model.buffer_budget import BufferBudget
from cubecore.tiling.model.choices import FORMATS, LAUNCHES, LAYOUTS, POSITIONS, TEMPLATES
from cubecore.tiling.model.epilogue import Epilogue, epilogue_of, is_integer, raise_if, wrong
from cubecore.tiling.model.field_limits import NO_LIMITS, FieldLimits
from cubecore.units import FRACTAL_ROWS, INT32_MAX, align_up, ceil_div

_CHOICES: dict[str, tuple[str, ...]] = {
    "launch": LAUNCHES,
    "template": TEMPLATES,
    **dict.fromkeys(("format_a", "format_b", "format_c"), FORMATS),
    **dict.fromkeys(("pos_a", "pos_b", "pos_c"), POSITIONS),
}
COUNTS = ("m", "n", "k", "batch", "heads", "groups")
OPTIONAL_COUNTS = ("cores", "kb", "batch_num")
"""Keys that are whole numbers from 1 on, and those of them that may be left open."""
SCALE_TYPE = "float8_e8m0fnu"
"""The element type of both scales of MxMatmul (TCubeTiling structure, newer edition, table 2)."""
SCALE_GROUP = 32
"""Elements along K that share one scale (TCubeTiling structure, newer edition, table 2)."""
SCALED_ONLY = ("float4_e2m1fn", "float4_e1m2")
"""Inputs that only MxMatmul multiplies: their scales need not be asked for."""
SCALED_TYPES = ("float8_e4m3fn", "float8_e5m2", *SCALED_ONLY)
"""Inputs of MxMatmul (vendor's Matmul pages, MatmulType)."""
MX_FORMATS = {
    "mxfp8": "float8_e4m3fn",
    "mxfp8_e4m3": "float8_e4m3fn",
    "mxfp8_e5m2": "float8_e5m2",
    "mxfp4": "float4_e2m1fn",
}
"""Formats with scales as OCP calls them (Microscaling Formats specification v1.0, table 1)."""
FLAGS = ("trans_a", "trans_b", "split_k", "hf32", "intrinsics_check")
"""Keys that are true or false."""
_DTYPES = ("a", "b", "c")
_TYPE_KEYS = (*_DTYPES, "bias", "scale_a", "scale_b")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One matmul c[m, n] = sum over k of a[m, k] * b[k, n] (+ bias[n]), and how it is launched.

    Extents are elements, at least 1 and at most 2147483647 (TCubeTiling holds int32). `trans_a`
    means that A is stored [k, m]; `trans_b` that B is stored [n, k]. `b` defaults to `a`; `c` to
    the accumulator's type: int32 for integer inputs, float32 otherwise. Vendor spellings of element
    types are normalised, and a name of the chip that can mean one SoC only becomes its full name;
    without one, JSON and keywords take CUBECORE_CHIP's. `cores` None asks for all of the chip's
    (D12).

    `kb` is B's own size along K where it is not A's, and None where it is: the matmul runs over
    the shorter of the two, and the rest of the longer one is only stored.

    `scale_a` and `scale_b` ask for MxMatmul: each 32 elements of A and of B along K share a factor
    of type float8_e8m0fnu, stored beside them ([m, k / 32] for A, [k / 32, n] for B). One given
    stands for both; float4 inputs have scales always, since no other matmul takes them. `a` and
    `b` may name the values and their scales together: `MX_FORMATS` has the names.

    `fix` is what is asked of the tiling's fields, `budget` what it may use of the buffers. `layout`
    is how the matrices of a batch lie in memory (`tiling.rules.batches`), with `heads` the N and
    `groups` the G of its name; `batch_num` matrices are computed in one call, by default as many
    as L1 holds.

    Raises
    ------
    RequestError
        One violation for each key with a value out of its domain.
    """

    chip: str = DEFAULT_CHIP
    launch: str = "cube"
    cores: int | None = None
    m: int
    n: int
    k: int
    kb: int | None = None
    a: str = "float16"
    b: str = ""
    c: str = ""
    bias: str | None = None
    scale_a: str | None = None
    scale_b: str | None = None
    trans_a: bool = False
    trans_b: bool = False
    format_a: str = "ND"
    format_b: str = "ND"
    format_c: str = "ND"
    pos_a: str = "GM"
    pos_b: str = "GM"
    pos_c: str = "GM"
    batch: int = 1
    split_k: bool = False
    template: str = "MDL"
    unit_flag: bool | None = None
    hf32: bool = False
    intrinsics_check: bool = False
    epilogue: Epilogue = field(default_factory=Epilogue)
    fix: FieldLimits = NO_LIMITS
    budget: BufferBudget = field(default_factory=BufferBudget)
    layout: str | None = None
    heads: int = 1
    groups: int = 1
    batch_num: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (
            isinstance(self.chip, str)
            and not is_chip(self.chip)
            and len(expand_family(self.chip)) == 1
        ):
            object.__setattr__(self, "chip", soc_name(self.chip))
        for name in _TYPE_KEYS:
            object.__setattr__(self, name, type_name(getattr(self, name)))
        violations = [*self._extent_violations(), *self._kind_violations()]
        violations += self._asked_violations()
        violations += self._resolve_dtypes()
        if not violations:
            violations += self._resolve_scales()
        raise_if(violations)
        for name in (*COUNTS, *OPTIONAL_COUNTS, "seed"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, int(value))

    @classmethod
    def from_json(cls, mapping: JsonMapping) -> "Problem":
        """Return the problem of a JSON object with the contract's keys; null means the default.

        Parameters
        ----------
        mapping : mapping
            The keys and values, as texts, numbers and truth values.

        Returns
        -------
        Problem
            The problem.

        Raises
        ------
        RequestError
            One violation for each unknown key (with the nearest known one), each missing extent and
            each value of the wrong kind.

        Examples
        --------
        >>> cubecore.Problem.from_json({"m": 64, "n": 64, "k": 64, "a": "half"}).a
        'float16'
        """
        if not isinstance(mapping, Mapping):
            raise RequestError([wrong("problem", "be a JSON object", mapping)])
        types = {name: type_name(mapping[name]) for name in _TYPE_KEYS if name in mapping}
        mapping = {**mapping, **types}
        names = [f.name for f in fields(cls)]
        violations = [
            Violation("problem", "have only known keys", repr(key), did_you_mean(str(key), names))
            for key in mapping
            if key not in names
        ]
        if missing := [name for name in ("m", "n", "k") if mapping.get(name) is None]:
            named = ", ".join(missing)
            violations.append(Violation(named, "", "", sentence=f"{MISSING}{named}"))
        violations += [
            wrong(name, "be an element type", "")
            for name in _DTYPES
            if isinstance(types.get(name), str) and not types[name]
        ]
        values = {k: v for k, v in mapping.items() if v is not None and k in names}
        values.setdefault("chip", default_chip())
        try:
            if "epilogue" in values:
                values["epilogue"] = epilogue_of(values["epilogue"])
            problem = cls(**({"m": 1, "n": 1, "k": 1} | values))
        except RequestError as error:
            raise RequestError([*violations, *error.violations]) from None
        raise_if(violations)
        return problem

    def _repr_html_(self) -> str:
        """Return a table of sizes, types and keys that are not at their defaults."""
        from cubecore.presented.card import card_page

        usual = type(self)(m=self.m, n=self.n, k=self.k, a=self.a)
        names = [f.name for f in fields(self)]
        given = [name for name in names if getattr(self, name) != getattr(usual, name)]
        shown = [name for name in names if name in {"m", "n", "k", "a", "b", "c", *given}]
        rows = [(name, str(getattr(self, name))) for name in shown]
        return card_page(f"{self.m} x {self.n} x {self.k} on {self.chip}", rows, "")

    def to_json(self) -> Json:
        """Return the contract's keys in its order, every default filled in.

        Returns
        -------
        dict
            The values by key, ready for `json.dumps`.
        """
        record = {f.name: getattr(self, f.name) for f in fields(self)}
        record["epilogue"] = asdict(self.epilogue)
        return record | {"fix": self.fix.to_json(), "budget": self.budget.to_json()}

    @property
    def extents(self) -> tuple[int, int, int, int | None]:
        """Return m, n, k and kb."""
        return self.m, self.n, self.k, self.kb

    @property
    def chip_record(self) -> Chip:
        """The catalogue's record of `chip`; functions take a what-if chip as an argument."""
        return chip(self.chip)

    @cached_property
    def a_type(self) -> ElementType:
        """A's element type."""
        return element_type(self.a, "a")

    @cached_property
    def b_type(self) -> ElementType:
        """B's element type."""
        return element_type(self.b, "b")

    @cached_property
    def c_type(self) -> ElementType:
        """The type in which C is written."""
        return element_type(self.c, "c")

    @property
    def bias_type(self) -> ElementType | None:
        """The type in which bias is stored; None without bias."""
        return None if self.bias is None else element_type(self.bias, "bias")

    @cached_property
    def fixpipe(self) -> FixpipeRow | None:
        """Return fixpipe's conversion of the accumulator; None if no mode does what is asked."""
        accumulator = self.accumulator_type.name
        if self.epilogue.quant is not None:
            row = fixpipe_row(self.epilogue.quant, accumulator)
            return row if row is not None and row.scaling != "none" else None
        mode = FIXPIPE_CONVERSIONS.get((accumulator, self.c))
        return None if mode is None else fixpipe_row(mode, accumulator)

    @property
    def c_fractal_columns(self) -> int:
        """Columns of a fractal of an NZ C: L0C's 16, or two of them merged for an 8-bit type."""
        return 2 * FRACTAL_ROWS if self.c_type.bits == 8 else FRACTAL_ROWS

    @property
    def scales_columns(self) -> bool:
        """True if fixpipe takes a scale for each column of C."""
        return self.fixpipe is not None and self.fixpipe.scaling == "column"

    @property
    def shares_unit_flag(self) -> bool:
        """True if Mmad and fixpipe pass L0C on by the unit flag: as asked, or the template's (D13).

        NORM and IBSHARE do where the chip has it, MDL does not.
        """
        if self.unit_flag is None:
            return self.template != "MDL" and chip(self.chip).arch in UNIT_FLAG_ARCHS
        return self.unit_flag

    @cached_property
    def accumulator_type(self) -> ElementType:
        """L0C's type: int32 for integer inputs, else float32, and half on Kirin (Mmad, tables)."""
        if self.a == "float16" and self._sums_in_half:
            return element_type("float16")
        return element_type("int32" if self.a_type.kind == "int" else "float32")

    @property
    def _sums_in_half(self) -> bool:
        return is_chip(self.chip) and chip(self.chip).arch in HALF_SUM_ARCHS

    @property
    def mx(self) -> bool:
        """True if this is MxMatmul: both inputs have scales."""
        return self.scale_a is not None

    @property
    def shared_k(self) -> int:
        """K of the product: the shorter of A's size and B's."""
        return self.k if self.kb is None else min(self.k, self.kb)

    @property
    def scale_k(self) -> int:
        """Factors along K in each scale as stored: one for 32 elements, padded to whole pairs."""
        padded: int = align_up(ceil_div(self.shared_k, SCALE_GROUP), 2)
        return padded

    def core_limit(self, chip: Chip) -> int:
        """Return the most cores that a launch of this kind may use on a chip (D12).

        Parameters
        ----------
        chip : Chip
            The chip.

        Returns
        -------
        int
            Its AICs; for a mix launch its AIVs, each a client.

        Raises
        ------
        RequestError
            If the launch is mix and the chip has no separate vector cores.
        """
        if self.launch == "cube":
            return chip.aic_count
        if not chip.aiv_count:
            remedy = "a cube launch needs none"
            raise RequestError([Violation("launch", f"be cube on {chip.name}", "mix", remedy)])
        return chip.aiv_count

    def core_count(self, chip: Chip) -> int:
        """Return the cores to plan for.

        Parameters
        ----------
        chip : Chip
            The chip.

        Returns
        -------
        int
            `cores` capped at the chip's number, or all of them.
        """
        limit = self.core_limit(chip)
        return limit if self.cores is None else min(self.cores, limit)

    def _extent_violations(self) -> Iterator[Violation]:
        for name in (*COUNTS, *OPTIONAL_COUNTS):
            value = getattr(self, name)
            if value is None and name in OPTIONAL_COUNTS:
                continue
            if not is_integer(value):
                yield wrong(name, "be an integer", value)
            elif value < 1:
                yield Violation(name, "be at least 1", shown(value, str))
            elif value > INT32_MAX:
                need = f"be at most {INT32_MAX}"
                yield Violation(name, need, shown(value, str), "TCubeTiling is int32")

    def _kind_violations(self) -> Iterator[Violation]:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                near = did_you_mean(str(value), choices)
                yield Violation(name, f"be one of {', '.join(choices)}", repr(value), near)
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                yield wrong(name, "be true or false", getattr(self, name))
        if self.layout is not None and self.layout not in LAYOUTS:
            near = did_you_mean(str(self.layout), LAYOUTS)
            yield Violation("layout", f"be one of {', '.join(LAYOUTS)}", repr(self.layout), near)
        if not (self.unit_flag is None or isinstance(self.unit_flag, bool)):
            yield wrong("unit_flag", "be true, false or null", self.unit_flag)
        if not is_integer(self.seed):
            yield wrong("seed", "be an integer", self.seed)
        elif self.seed < 0:
            yield Violation("seed", "be at least 0", shown(self.seed, str))
        if not isinstance(self.chip, str):
            yield wrong("chip", "be the full name of a SoC", self.chip)
        if not isinstance(self.epilogue, Epilogue):
            yield wrong("epilogue", "be an Epilogue", self.epilogue)

    def _asked_violations(self) -> Iterator[Violation]:
        """Read what is asked of fields and buffers; yield what is wrong with it."""
        for name, kind in (("fix", FieldLimits), ("budget", BufferBudget)):
            try:
                object.__setattr__(self, name, kind.from_json(getattr(self, name)))
            except RequestError as error:
                yield from error.violations

    def _written(self) -> str:
        """Return C's type where none is given: what the quantisation makes, or the accumulator."""
        row = None
        if isinstance(self.epilogue, Epilogue) and self.epilogue.quant is not None:
            row = fixpipe_row(self.epilogue.quant, self.accumulator_type.name)
        return self.accumulator_type.name if row is None else row.target

    def _resolve_dtypes(self) -> list[Violation]:
        violations: list[Violation] = []

        def resolve(name: str, default: Callable[[], str]) -> None:
            """Replace a type's name by ours, or by the default's."""
            value = getattr(self, name)
            if not isinstance(value, str):
                violations.append(wrong(name, "be the name of an element type", value))
                return
            if name in ("a", "b") and value in MX_FORMATS:
                value, scale = MX_FORMATS[value], f"scale_{name}"
                object.__setattr__(self, scale, getattr(self, scale) or SCALE_TYPE)
            try:
                dtype = element_type(value or default(), name)
            except RequestError as error:
                violations.extend(error.violations)
            else:
                object.__setattr__(self, name, dtype.name)

        resolve("a", lambda: "float16")
        a_valid = not violations
        if a_valid or not isinstance(self.b, str) or self.b:
            resolve("b", lambda: self.a)
        if a_valid or not isinstance(self.c, str) or self.c:
            resolve("c", self._written)
        if self.bias is not None:
            resolve("bias", lambda: "")
        for name in ("scale_a", "scale_b"):
            if getattr(self, name) is not None:
                resolve(name, lambda: "")
        return violations

    def _resolve_scales(self) -> Iterator[Violation]:
        """Give both scales where one is given or the inputs need them; judge what was given."""
        given = self.scale_a or self.scale_b
        if given is None and {self.a, self.b} & set(SCALED_ONLY):
            given = SCALE_TYPE
        for name in ("scale_a", "scale_b"):
            value = getattr(self, name) or given
            object.__setattr__(self, name, value)
            if value is not None and value != SCALE_TYPE:
                yield Violation(name, f"be {SCALE_TYPE} ({cite('000', 'table 2')})", value)
        if given is not None:
            for name in ("a", "b"):
                if getattr(self, name) not in SCALED_TYPES:
                    kinds = " or ".join(SCALED_TYPES)
                    yield Violation(name, f"be {kinds} with scales", getattr(self, name))

"""Calls in the C API's words: from arguments to instructions, by the declarations alone.

A call's forms are: operands and parameters in the documented order; operands and a count of
elements; operands and a size in bytes; operands and a struct of parameters; and each with ``_sync``
behind its name, which waits for all pipes afterwards. A newly declared instruction is callable at
once.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cubecore.dtypes import ElementType, element_type
from cubecore.errors import did_you_mean, refuse, unable
from cubecore.frontends.capi.allocation import SPACES
from cubecore.frontends.capi.calls.overloads import is_float, packed
from cubecore.frontends.capi.pointer import Pointer, pointers_among
from cubecore.isa.catalogue import spelled, spellings
from cubecore.isa.cube.fixpipe_post import NO_POST, POST_TARGETS
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.not_modelled import not_modelled
from cubecore.isa.declare.ranges import types_on
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.common.forms import counted
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated

_SYNC = "_sync"
_SCALARS = ("value", "distance")
"""Parameters that stand behind the operands and before the others."""

Step = tuple[Instruction, tuple[int | None, ...]]
"""An instruction, and for each of its addresses which argument gives it; None: address 0."""


@dataclass(frozen=True, eq=False, slots=True)
class BoundCall:
    """The instruction that a call issues.

    `masked` says that an instruction takes the mask that is set, `counted` that a count replaces
    it; `reusable` that other pointers of the same types give the same instructions. `dropped` says
    which bytes of a size are no whole unit, and are not copied.
    """

    steps: tuple[Step, ...]
    masked: bool
    counted: bool
    reusable: bool = True
    dropped: str = ""

    def issued(self, arguments: tuple[object, ...]) -> list[tuple[Instruction, tuple[int, ...]]]:
        """Return the instructions with the addresses of a call's pointers."""
        at = [pointer.address for pointer in pointers_among(arguments)]
        return [(t, tuple([0 if p is None else at[p] for p in given])) for t, given in self.steps]


@dataclass(frozen=True, eq=False)
class CallForm:
    """One instruction under one of its names."""

    call: str
    kind: type[Instruction]
    fixed: Mapping[str, Any]
    signature: tuple[str, ...]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The operands that a call gives, in order."""
        declared = {o.name for o in self.kind.declared}
        if self.signature:
            return tuple(n for n in self.signature if n in declared)
        return tuple(o.name for o in self.kind.declared)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that a call gives behind the operands, in order."""
        given = [n for n in self._fields if n not in self.fixed]
        if self.signature:
            taken = {*self.operands, *self.fixed}
            return tuple(n for n in self.signature if n not in taken)
        scalars = [n for n in given if n in _SCALARS]
        return tuple(scalars + [n for n in given if n not in _SCALARS])

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return tuple(
            f.name
            for f in fields(self.kind)  # type: ignore[arg-type]
            if "taken" not in f.metadata and "types" not in f.metadata
        )

    @cached_property
    def _types(self) -> tuple[str, ...]:
        """The element types that no default gives."""
        return tuple(
            f.name
            for f in fields(self.kind)  # type: ignore[arg-type]
            if "types" in f.metadata and f.default is MISSING and f.name not in self.fixed
        )

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The parameters that have no default."""
        return tuple(
            f.name
            for f in fields(self.kind)  # type: ignore[arg-type]
            if f.default is MISSING and "types" not in f.metadata and f.name not in self.fixed
        )

    @property
    def page(self) -> str:
        """Return the page that documents the form's operands, as a remedy."""
        return f"see {self.kind.source}"

    @cached_property
    def leading(self) -> int:
        """The parameters that a call gives before its operands."""
        if not self.signature or not self.operands:
            return 0
        return self.signature.index(self.operands[0])

    def knows(self, word: str) -> bool:
        """True if a parameter is called so."""
        return word in self._fields

    @cached_property
    def words(self) -> frozenset[str]:
        """The parameters that take any 64 bits."""
        ranges = {f.name: f.metadata for f in fields(self.kind)}  # type: ignore[arg-type]
        return frozenset(
            n for n, m in ranges.items() if (m.get("low"), m.get("high")) == (0, 2**64 - 1)
        )

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The parameters that are numbers, not words."""
        ranged = (f.name for f in fields(self.kind) if "low" in f.metadata)  # type: ignore[arg-type]
        return frozenset((*ranged, "size", "count"))

    @property
    def scalars(self) -> tuple[str, ...]:
        """The parameters that every form has."""
        return tuple(n for n in self.parameters if n in _SCALARS)

    @property
    def masked(self) -> bool:
        """True if the instruction takes the vector mask."""
        return any(f.name == "lanes" for f in fields(self.kind))  # type: ignore[arg-type]

    def typed(self, pointers: Sequence[Pointer]) -> dict[str, ElementType]:
        """Return the element types that the pointers give.

        Raises
        ------
        RequestError
            If two pointers that must share a type do not.
        """
        # The first pointer of each declared element type decides it; the others must agree with
        # that.
        types: dict[str, tuple[ElementType, str]] = {}
        declared = {o.name: o for o in self.kind.declared}
        for name, pointer in zip(self.operands, pointers, strict=True):
            element = declared[name].element
            if element not in self._types:
                continue
            first = types.setdefault(element, (pointer.dtype, name))
            if first[0] is not pointer.dtype:
                need = f"point to {first[0]}, as {first[1]} does"
                raise refuse(f"{self.call}.{name}", need, pointer.dtype.name, self.page)
        for name in self._types:
            if name not in types and pointers:
                types[name] = pointers[0].dtype, ""
        return {name: kind for name, (kind, _) in types.items()}

    def template(self, pointers: Sequence[Pointer], values: Mapping[str, object]) -> Instruction:
        """Return the instruction; what its parameters break is found when it runs."""
        values = dict(values)
        if "value" in values and pointers:
            values["value"] = scalar_bits(values["value"], pointers[-1].dtype, self.call)
        typed = self.typed(pointers)
        template = self.kind(**{**typed, **values, **self.fixed})
        if not self._takes(typed):  # a type that the instruction lacks is found when it runs
            return template
        if (wrong := template.splits_elements()) is not None:
            parameter, need, got = wrong
            raise refuse(f"{self.call}.{parameter}", need, got)
        for operand in template.operands():
            if operand.name in self.operands and operand.element not in self._types:
                self._require_type(template, operand.name, pointers)
        return template

    def _takes(self, typed: Mapping[str, ElementType]) -> bool:
        """True if the types are among those of their parameters."""
        ranges = {f.name: f.metadata for f in fields(self.kind)}  # type: ignore[arg-type]
        return all(
            kind.name in ranges[name]["types"] or kind.name in types_on(ARCH[0], ranges[name])
            for name, kind in typed.items()
        )

    def _require_type(self, template: Instruction, name: str, pointers: Sequence[Pointer]) -> None:
        """Refuse a pointer to another type than the instruction's, or than a block's may be."""
        operand = next(o for o in template.operands() if o.name == name)
        kind, pointer = template.element(operand), pointers[self.operands.index(name)]
        if self.kind.pointers and pointer.dtype.name not in self.kind.pointers:
            need = f"point to one of {', '.join(self.kind.pointers)}"
            raise refuse(f"{self.call}.{name}", need, pointer.dtype.name, self.page)
        if name in self.kind.unsigned_too and pointer.dtype.name == f"u{kind.name}":
            return
        if kind.library != "raw" and kind.name != "uint64" and pointer.dtype is not kind:
            need = f"point to {kind}"
            raise refuse(f"{self.call}.{name}", need, pointer.dtype.name, self.page)


def scalar_bits(value: object, kind: ElementType, call: str) -> int:
    """Return a scalar operand as instructions take it: integers as they are, floats as bits.

    Raises
    ------
    RequestError
        If the type is an integer and the value has a fraction.
    """
    if not isinstance(value, (int, float, np.generic)):
        raise refuse(f"{call}.value", "be a number", repr(value))
    if kind.kind != "float":
        if not np.isfinite(value) or int(value) != value:
            raise refuse(f"{call}.value", f"be an integer for {kind}", value)
        return int(value)
    with np.errstate(over="ignore"):
        converted = np.asarray(value).astype(kind.numpy)
    return int(converted.view(f"u{kind.size_bytes}"))


@lru_cache(maxsize=4096)
def forms(call: str, arch: str = "") -> tuple[CallForm, ...]:
    """Return the instructions that a call of the C API may mean, each with each of its orders.

    With `arch` they are those of an architecture, if it has any.
    """
    candidates: list[CallForm] = []
    for kind, fixed in spelled(call):
        if call in kind.orders:
            candidates.append(CallForm(call, kind, fixed, kind.orders[call]))
        elif arch in kind.by_arch:
            order, unsaid = kind.by_arch[arch]
            candidates.append(CallForm(call, kind, {**fixed, **unsaid}, order))
        else:
            orders = (kind.signature, *kind.signatures)
            candidates += [CallForm(call, kind, fixed, signature) for signature in orders]
    return tuple(form for form in candidates if arch in form.kind.archs) or tuple(candidates)


def bind(
    call: str, arguments: Sequence[object], keywords: Mapping[str, object], arch: str = ""
) -> BoundCall:
    """Return what a call issues; arguments are pointers, numbers, words, or a struct at the end.

    A list among the arguments stands for its elements. Where architectures have one name for
    different instructions, it is that of `arch`.

    Raises
    ------
    RequestError
        If the name is no instruction or not modelled, or the arguments fit none of its forms.
    """
    call, arguments = packed(call, arguments)
    name = call if forms(call) else call.removesuffix(_SYNC)
    candidates = forms(name, arch)
    if not candidates:
        if (refused := not_modelled(call)) is not None:
            raise refused
        near = did_you_mean(call, spellings())
        raise refuse(call, "be a name of the C API that an instruction has", "none", near)
    # From names to an instruction: choose a form by the numbers of pointers and of other arguments,
    # bring the operands to the front (some forms have parameters before them), bind each argument,
    # and append the barrier of ``_sync``.
    flat = _flat(arguments)
    pointers = [a for a in flat if isinstance(a, Pointer)]
    form = _fitting(candidates, pointers, len(flat) - len(pointers), keywords)
    before, count = form.leading, len(form.operands)
    flat = [*flat[before : before + count], *flat[:before], *flat[before + count :]]
    bound = _bind(form, flat, keywords)
    if name != call:
        bound = replace(bound, steps=(*bound.steps, (PipeBarrier(), ())))
    reusable = len(pointers) == len(form.operands) and not bound.dropped
    return replace(bound, reusable=reusable)


def _fitting(
    candidates: Sequence[CallForm],
    pointers: Sequence[object],
    numbers: int,
    keywords: Mapping[str, object],
) -> CallForm:
    """Return the form with so many operands that knows all keywords and takes so many numbers.

    Where none does, it is the first that meets the earlier of these three.
    """
    # Filters one after another, each of which is skipped if it would leave nothing: so that an
    # error is told about the form that the call comes nearest to.
    conditions: tuple[Callable[[CallForm], bool], ...] = (
        lambda form: len(form.operands) == len(pointers),
        lambda form: all(form.knows(word) for word in keywords),
        lambda form: len(form.parameters) == numbers,
    )
    fitting: Sequence[CallForm] = candidates
    for fits in conditions:
        fitting = [form for form in fitting if fits(form)] or fitting
    return fitting[0]


def _flat(arguments: Sequence[object]) -> list[Any]:
    numbers: list[Any] = []
    for argument in arguments:
        numbers.extend(argument if isinstance(argument, (list, tuple)) else [argument])
    return numbers


def _bind(form: CallForm, arguments: Sequence[object], keywords: Mapping[str, object]) -> BoundCall:
    pointers, rest = _operands(form, arguments)
    struct: dict[str, object] = {}
    if rest and not isinstance(rest[-1], (int, float, str, np.generic, Pointer)):
        struct = _struct(form, rest.pop())
    # One number more than the scalars of a form is a size in bytes or a count of elements,
    # whichever the instruction has. A size becomes one burst of so many units. A count replaces the
    # repeat parameters, and adds instructions that set the mask and take it back.
    words, kind = {**struct, **keywords}, form.kind
    short = len(rest) == len(form.scalars) + 1 and not words
    fixed: Mapping[str, object] | None = None
    count, dropped = 0, ""
    if kind.size_unit and (short or "size" in words):
        size = _integer(form, "size", words.pop("size") if "size" in words else rest.pop())
        words |= {"n_burst": 1, "len_burst": size // kind.size_unit}
        dropped = _dropped(form, size)
    elif kind.count_form is not None and (short or "count" in words):
        given = words.pop("count") if "count" in words else rest.pop()
        fixed, count = kind.count_form, _integer(form, "count", given)
        if count < 0:
            raise refuse(f"{form.call}.count", "be 0 or more", count)
    template = form.template(pointers, _values(form, pointers, rest, {**words, **(fixed or {})}))
    index_of = {name: index for index, name in enumerate(form.operands)}
    for operand in template.operands():
        if operand.name in kind.needed and operand.name not in index_of:
            sentence = f"{form.call} has no operand {operand.name}"
            raise unable(f"{form.call}.{operand.name}", sentence, kind.needed[operand.name])
    step = template, tuple(index_of.get(o.name) for o in template.operands())
    if fixed is None:
        return BoundCall((step,), form.masked, counted=False, dropped=dropped)
    steps = tuple((t, step[1] if type(t) is kind else ()) for t in _counted(template, count))
    return BoundCall(steps, masked=False, counted=True)


def _dropped(form: CallForm, size: int) -> str:
    """Return the sentence on what a copy of `size` bytes leaves out: it moves whole units."""
    unit, rest = form.kind.size_unit, size % form.kind.size_unit
    if not rest:
        return ""
    remedy = f"; {form.call}_align copies them" if forms(f"{form.call}_align") else ""
    need = f"{form.call}.size must be a multiple of {unit} B"
    return f"{need}, got {size}: the last {rest} B are not copied{remedy}"


def _counted(template: Instruction, count: int) -> tuple[Instruction, ...]:
    if isinstance(template, Repeated):
        return counted(template, count)
    mask = SetVectorMask(mask_high=0, mask_low=count)
    return SetMaskCount(), mask, template, SetMaskNorm()


def _operands(form: CallForm, arguments: Sequence[Any]) -> tuple[list[Pointer], list[Any]]:
    """Return the pointers, and the arguments behind them."""
    count = len(form.operands)
    declared = {o.name: o for o in form.kind.declared}
    for name, given in zip(form.operands, arguments, strict=False):
        mem = declared[name].mem
        if not isinstance(given, Pointer):
            remedy = _pointer_to(mem) if isinstance(given, int) else ""
            need = f"be a pointer into {mem.label}"
            raise refuse(f"{form.call}.{name}", need, repr(given), remedy)
        if given.mem is not mem:
            raise refuse(f"{form.call}.{name}", f"point into {mem.label}", given, form.page)
    if len(arguments) < count:
        names = ", ".join(form.operands)
        raise unable(form.call, f"{form.call} needs the operands {names}; got {len(arguments)}")
    return list(arguments[:count]), list(arguments[count:])


def _pointer_to(mem: Mem) -> str:
    """Return how an address becomes a pointer, for one who gave the address."""
    spaces = [space for space, held in SPACES.items() if held is mem]
    return f"core.{spaces[0]}.at(type, address) makes one of an address" if spaces else ""


def _struct(form: CallForm, given: object) -> dict[str, Any]:
    """Return the fields of a struct of parameters: an object's attributes, or a mapping."""
    given_fields = given if isinstance(given, Mapping) else getattr(given, "__dict__", None)
    if given_fields is None:
        raise refuse(form.call, "be given numbers or a struct of them", repr(given))
    return dict(given_fields)


def _values(
    form: CallForm, pointers: Sequence[Pointer], rest: Sequence[object], words: Mapping[str, object]
) -> dict[str, Any]:
    """Return the parameters by name, each an integer, a word or a scalar operand."""
    if len(rest) > len(form.parameters):
        names = ", ".join((*form.operands, *form.parameters))
        count = len(form.operands) + len(rest)
        raise unable(form.call, f"{form.call} takes {names}; got {count} arguments")
    given = dict(zip(form.parameters, rest, strict=False))
    parameters = {f.name for f in fields(form.kind)} - set(form.fixed)  # type: ignore[arg-type]
    for name, value in words.items():
        if name not in parameters:
            near = did_you_mean(name, parameters)
            raise unable(form.call, f"{form.call} has no parameter {name}", near)
        given[name] = value
    missing = [n for n in form.required if n not in given]
    if missing:
        raise unable(form.call, f"{form.call} needs {', '.join(missing)}")
    return {
        name: value if name == "value" and pointers else _integer(form, name, value)
        for name, value in _as_bits(form, pointers, given).items()
        if not name.startswith("_")
    }


def _as_bits(
    form: CallForm, pointers: Sequence[Pointer], given: Mapping[str, object]
) -> Mapping[str, Any]:
    """Return the parameters, floats for those that hold bits replaced by their bits."""
    bits_of = {f.name: f.metadata.get("bits_of") for f in fields(form.kind)}  # type: ignore[arg-type]
    encoded = dict(given)
    for name, value in given.items():
        whose = bits_of.get(name)
        if not whose or not is_float(value):
            continue
        typed = form.typed(pointers)
        kind = typed[whose] if whose in typed else element_type(whose)
        encoded[name] = scalar_bits(value, kind, form.call)
    return encoded


MODES = {
    "quant_pre": (
        *("NoQuant", "F322F16", "F322BF16", "DEQF16", "VDEQF16", "QF322B8_PRE", "VQF322B8_PRE"),
        *("REQ8", "VREQ8", "QF322FP8_PRE", "VQF322FP8_PRE", "QF322HIF8_PRE", "VQF322HIF8_PRE"),
        *("QF322HIF8_PRE_HYBRID", "VQF322HIF8_PRE_HYBRID", "QS322BF16_PRE", "VQS322BF16_PRE"),
        *("QF322F16_PRE", "VQF322F16_PRE", "QF322BF16_PRE", "VQF322BF16_PRE", "QF322F32_PRE"),
        "VQF322F32_PRE",
    ),
    "quant_post": (NO_POST, *POST_TARGETS),
}
"""Modes by their numbers in C, where code may cast them to numbers."""


def _integer(form: CallForm, name: str, value: Any) -> Any:
    """Return a parameter: an integer, a flag, or a word; a pipe may be called ``PIPE_V``.

    For a word of 64 bits a negative number stands for what C makes of it: -1 has all bits set.
    """
    if isinstance(value, str) and name not in form.numbers:
        return value.removeprefix("PIPE_")
    if isinstance(value, bool):
        return value
    if isinstance(value, Pointer):
        return value.address
    try:
        number = int(operator.index(value))
    except TypeError:
        raise refuse(f"{form.call}.{name}", "be an integer", repr(value)) from None
    if 0 <= number < len(modes := MODES.get(name, ())):
        return modes[number]
    if -(2**63) <= number < 0 and name in form.words:
        return number + 2**64
    return number

"""explain: a rule, field, instruction, finding, advice or word, from where it is declared."""

import re
from dataclasses import fields
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from cubecore.answers.explain import Explanation
from cubecore.chips import Chip, chip, expand_family
from cubecore.citations import cite_row
from cubecore.errors import RequestError, did_you_mean, refuse
from cubecore.tiling.model.field_meanings import FIELD_MEANINGS
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.tiling.rules.advice import MEANINGS, ROWS
from cubecore.tiling.rules.checker import explain as explain_rule
from cubecore.tiling.rules.checker import rules
from cubecore.workflows.manual.glossary import term_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cubecore.isa.declare.instruction import Instruction

_MOST_NAMES = 5


def explain(name: str, chip_name: str | None = None) -> Explanation:
    """Return what a printed name means: the declaration of what it names, or its meaning.

    Parameters
    ----------
    name : str
        A rule's id, a field, an instruction in any dialect's spelling, a finding's kind, an
        advice's id, a chip, or a term of the glossary. Case does not matter where one name is left.
    chip_name : str or None
        Full SoC name: an instruction also says whether this chip has it; of several that have
        the name it is the chip's.

    Returns
    -------
    Explanation
        The kind of thing that the name is, and its declaration as text.

    Raises
    ------
    RequestError
        If nothing has that name, or `chip_name` is not a SoC's.

    Examples
    --------
    >>> cubecore.explain("L0C-CAPACITY").kind
    'rule'
    """
    target = None if chip_name is None else chip(chip_name)
    ids = [rule.id for rule in rules()]
    if name.upper() in ids:
        return Explanation(name.upper(), "rule", explain_rule(name.upper()))
    from cubecore.isa.declare.not_modelled import why_not
    from cubecore.machine.finding_kinds import KINDS

    if (explanation := _of_several_instructions(name)) is not None:
        return explanation
    if called := _called(lambda spelling: spelling == name):
        return _about_instruction(name, called, target)
    if (explanation := _register(name)) is not None:
        return explanation
    if (reason := why_not(name)) is not None:
        text = f"{name}: not modelled\n\n{reason}\n"
        return Explanation(name, "not modelled", text)
    field = {spelling.lower(): spelling for spelling in FIELDS}.get(name.lower())
    if field is not None:
        return Explanation(field, "field", _about_field(field))
    if name.lower() in KINDS:
        return Explanation(name.lower(), "finding", _about_finding(name.lower()))
    if (explanation := _word(name) or _kernel_rule(name.lower())) is not None:
        return explanation
    if called := _called(lambda spelling: spelling.lower() == name.lower()):
        return _about_instruction(called[0].name, called, target)
    if (explanation := _operator(name.lower()) or _name_of_api(name) or _change(name)) is not None:
        return explanation
    raise _unknown(name)


def explained_names() -> "list[str]":
    """Return the names of what is declared here; words and names of the APIs are found beside."""
    from cubecore.isa.catalogue import spellings
    from cubecore.machine.finding_kinds import KINDS
    from cubecore.workflows.manual.register_manual import spellings_of_registers

    ids = [rule.id for rule in rules()]
    return [*ids, *FIELDS, *spellings(), *spellings_of_registers(), *KINDS, *MEANINGS]


def _unknown(name: str) -> RequestError:
    """Return the error about a name that nothing has, with those that it may stand for."""
    from cubecore.workflows.manual import class_api, thread_api, tik_api

    need = (
        "be a rule, a field, an instruction, a name of the class API or of TIK, a finding, advice, "
        "a chip or a term of the glossary"
    )
    of_apis = (*class_api.names().values(), *thread_api.names(), *tik_api.names())
    known = [*explained_names(), *of_apis]
    return refuse("NAME", need, repr(name), _near(name, known))


def _called(is_it: "Callable[[str], bool]") -> "list[type[Instruction]]":
    """Return the instructions with a spelling that is meant."""
    from cubecore.isa.catalogue import instructions

    return [
        cls
        for cls in instructions().values()
        if any(map(is_it, (cls.name, *cls.names.values(), *cls.variants)))
    ]


def _of_several_instructions(name: str) -> Explanation | None:
    """Return a name of the class API or of TIK that issues one of several instructions."""
    from cubecore.workflows.manual import class_api, tik_api

    for dialect, named in (("cpp", class_api.named), ("tik", tik_api.named)):
        called = class_api.instructions_called(dialect, name)
        if len({cls for _, cls in called}) > 1 and (explanation := named(called[0][0])) is not None:
            return explanation
    return None


def _name_of_api(name: str) -> Explanation | None:
    """Return a name of the class API or of TIK; None for other words."""
    from cubecore.workflows.manual import class_api, thread_api, tik_api

    small = {each.lower(): each for each in tik_api.names()}
    exact = class_api.named(name) or tik_api.named(name)
    near = thread_api.named(name) or class_api.named(class_api.names().get(name.lower(), ""))
    return exact or near or tik_api.named(small.get(name.lower(), ""))


def _change(name: str) -> Explanation | None:
    """Return the meaning of a kind of change that --advise tries; None for other words."""
    from cubecore.advice.timed_changes import meanings_of_changes

    for kind, meaning in meanings_of_changes().items():
        if kind.lower() == name.lower():
            text = f"{kind}: a change that --advise times\n\n  {meaning}\n"
            return Explanation(kind, "change", text)
    return None


def _register(name: str) -> Explanation | None:
    """Return the declarations of register instructions of a name; None for other words."""
    from cubecore.workflows.manual.register_manual import (
        describe_register,
        registers_called,
        title_of,
    )

    called = registers_called(name)
    if not called:
        return None
    text = "\n".join(map(describe_register, called))
    return Explanation(title_of(called[0]), "register instruction", text)


def _operator(name: str) -> Explanation | None:
    """Return the meaning of an operator's name; None for other words."""
    from cubecore.kernels.operators.named import counts_of, meaning_of, operator_names

    if name not in operator_names():
        return None
    shape = f"shape: {' x '.join(counts_of(name))}; cubecore time --op {name} times it"
    return Explanation(name, "operator", f"{name}: operator\n\n  {meaning_of(name)}\n  {shape}\n")


def _kernel_rule(name: str) -> Explanation | None:
    """Return a rule of advice on kernels; None for other words."""
    from cubecore.advice.kernel_rules.advise import rules as rules_of_kernels

    rule = rules_of_kernels().get(name)
    if rule is None:
        return None
    counted = f"  counts {rule.counts}; speaks from {rule.threshold}\n  {rule.remedy}"
    text = f"{name}: advice on a kernel\n\n{counted}\n\nFrom: {rule.source}\n"
    return Explanation(name, "kernel advice", text)


def _word(name: str) -> Explanation | None:
    """Return the meaning of an advice's id, a chip's name or a term; None for other words."""
    if (meaning := MEANINGS.get(name.upper())) is not None:
        rows = [cite_row(row) for row in ROWS.get(name.upper(), ())]
        source = "; ".join(dict.fromkeys(rows)) or "cubecore"
        text = f"{name.upper()}: advice\n\n  {meaning}\n\nFrom: {source}\n"
        return Explanation(name.upper(), "advice", text)
    if len(meant := expand_family(name)) == 1:
        text = f"{meant[0]}: a chip of architecture {chip(meant[0]).arch}\n\n"
        return Explanation(meant[0], "chip", f"{text}cubecore chips {meant[0]} says more\n")
    if (term := term_named(name)) is not None:
        title = ", ".join(term.names)
        return Explanation(title, "term", f"{title}\n\n  {term.meaning}\n")
    return None


def _about_finding(name: str) -> str:
    from cubecore.machine.finding_kinds import KINDS

    kind = KINDS[name]
    vendor = f"\n  msSanitizer says: {kind.vendor}" if kind.vendor else ""
    mend = f"\n  Fix: {kind.remedy}"
    return f"{name}: a finding of {kind.check}\n\n  {kind.text}{mend}{vendor}\n"


def _about_instruction(
    name: str, called: "Sequence[type[Instruction]]", target: Chip | None
) -> Explanation:
    """Return the page of the chip's instruction of that name, and what else the name is."""
    fitting = [cls for cls in called if target is None or target.arch in cls.archs]
    cls = (fitting or called)[0]
    text = describe(cls)
    for other in called:
        if other is not cls:
            where = " or ".join(other.archs)
            text += f"{name} is also {other.name}, on architecture {where}.\n"
    text += _also_on_registers(name)
    if target is not None:
        has = "has" if target.arch in cls.archs else "is not known to have"
        text += f"{target.name} {has} it.\n"
    return Explanation(cls.name, "instruction", text)


def _also_on_registers(name: str) -> str:
    """Return where the register instruction of an instruction's name is explained, if there is."""
    from cubecore.workflows.manual.register_manual import registers_called

    spelled = {each.spelling for each in registers_called(name)}
    return "".join(
        f"In a vector function of 3510 {name} works on registers: explain Reg::{one}.\n"
        for one in sorted(spelled)
    )


def _about_field(field: str) -> str:
    word = re.compile(rf"\b{field}\b")
    about = [rule for rule in rules() if word.search(f"{rule.title} {rule.text}")]
    meaning = FIELD_MEANINGS[field]
    lines = [f"{field}: a field of TCubeTiling", "", meaning.text, ""]
    if about:
        lines += [*(f"  {rule.id:<24}{rule.title}" for rule in about), "", "explain RULE says more"]
    return "\n".join([*lines, f"From: {meaning.source}"]) + "\n"


def _near(name: str, names: list[str]) -> str:
    """Return which names a wrong one may stand for: those that hold it, or one spelled alike."""
    holding = [other for other in names if len(name) > 1 and name.upper() in other.upper()]
    if not holding:
        return did_you_mean(name, names)
    return f"did you mean {' or '.join(holding[:_MOST_NAMES])}?"


def describe(cls: "type[Instruction]") -> str:
    """Return an instruction's declaration as text: the manual's page."""
    lines = [f"{cls.name}: pipe {cls.pipe.value}", "", getdoc(cls) or "", ""]
    for operand in cls.declared:
        layout = f" in {operand.layout}" if operand.layout else ""
        lines.append(
            f"  {operand.name:<22}{operand.access.value} {operand.mem.label} [{operand.axes}]"
            f"{layout}, aligned to {operand.alignment} B"
        )
    for field in fields(cls):  # type: ignore[arg-type]
        meta = field.metadata
        if "doc" in meta:
            lines.append(f"  {field.name:<22}{meta['doc']}{parameter_range(meta)}")
    named = ", ".join(f"{dialect} {name}" for dialect, name in cls.names.items())
    lines += ["", f"Names: {named}" if named else "Names: none in other dialects"]
    lines += [f"Also: {dialect} {name} with {fixed}" for dialect, name, fixed in variants_of(cls)]
    lines += [f"Uncertain: {text}" for text in cls.uncertain]
    lines.append(f"From: {cls.source}")
    return "\n".join(lines) + "\n"


def variants_of(cls: "type[Instruction]") -> list[tuple[str, str, str]]:
    """Return the names that set some parameters: dialect, name, and the parameters as text."""
    return [
        (
            "c_api" if name.startswith("asc_") else "cpp",
            name,
            ", ".join(f"{parameter} {value}" for parameter, value in fixed.items()),
        )
        for name, fixed in cls.variants.items()
    ]


def parameter_range(meta: Any) -> str:
    """Return the values that a parameter takes, from the metadata of its field."""
    if "types" in meta:
        late = meta.get("late")
        more = f"; on 3510 {', '.join(late.types)}" if late else ""
        by_count = (
            f", and by a count alone {', '.join(late.by_count)}" if late and late.by_count else ""
        )
        return f": {', '.join(meta['types'])}{more}{by_count}"
    if "options" in meta:
        return f": {', '.join(map(str, meta['options']))}"
    return f", {meta['low']} to {meta['high']}" if "low" in meta else ""

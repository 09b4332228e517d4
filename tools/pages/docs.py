"""Writes the pages under docs/ that are generated from declarations.

`python -m tools.pages.docs` writes every page, `python -m tools.pages.docs NAME` some; with
`--check` nothing is written and the exit code is 1 if a page is stale. A page is a function that
returns its text, registered with `@document("name.md")`; it reads declarations and nothing else, so
that two runs give the same bytes.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tools.pages.markdown import escaped

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

if TYPE_CHECKING:
    from cubecore.chips import Chip

Generator = Callable[[], str]
DOCUMENTS: dict[str, Generator] = {}
"""Every generated page by its file name under docs/."""


def document(name: str) -> Callable[[Generator], Generator]:
    """Register the decorated function as the generator of docs/`name`."""

    def register(generate: Generator) -> Generator:
        assert name not in DOCUMENTS, f"{name} is generated twice"
        DOCUMENTS[name] = generate
        return generate

    return register


def stale(names: Iterable[str]) -> list[str]:
    """Return the pages whose file is missing or differs from what its generator returns."""
    return [
        name
        for name in names
        if not (DOCS / name).is_file()
        or (DOCS / name).read_text(encoding="utf-8") != DOCUMENTS[name]()
    ]


def write(names: Iterable[str]) -> None:
    """Write pages."""
    DOCS.mkdir(exist_ok=True)
    for name in names:
        (DOCS / name).write_text(DOCUMENTS[name](), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write or check pages; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="tools.pages.docs", description="Generate pages under docs/."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page is stale")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(DOCUMENTS))
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in DOCUMENTS]:
        parser.error(f"NAME must be one of {', '.join(DOCUMENTS)}, got {', '.join(unknown)}")
    names = options.names or list(DOCUMENTS)
    if not options.check:
        write(names)
        return 0
    for name in (old := stale(names)):
        print(f"docs/{name} is stale; python -m tools.pages.docs {name} writes it", file=sys.stderr)
    return 1 if old else 0


_ELSEWHERE = {
    "architecture.svg": ("tools.pages.architecture", "picture"),
    "binding_names.md": ("tools.pages.binding_names", "page"),
    "decisions.md": ("tools.pages.decisions", "page"),
    "registers.md": ("cubecore.workflows.manual.register_manual", "registers_page"),
}
"""Pages that functions of other modules return, by module and function."""


def _of(module: str, function: str) -> str:
    text: str = getattr(import_module(module), function)()
    return text


for _name, _where in _ELSEWHERE.items():
    document(_name)(partial(_of, *_where))


def _in_two_languages() -> None:
    """Register what is generated in English and in Chinese."""
    from tools.pages import examples
    from tools.pages.pictures import PICTURES, picture

    document("examples.md")(examples.page)
    document("zh/examples.md")(partial(examples.page, chinese=True))

    for name in PICTURES:
        document(f"{name}.svg")(partial(picture, name))
        document(f"zh/{name}.svg")(partial(picture, name, chinese=True))


_in_two_languages()


@document("rules.md")
def rules_page() -> str:
    """Return the manual of rules: every rule's declaration."""
    from cubecore.tiling.rules.checker import explain, rules

    lines = [
        "# Rules of a TCubeTiling",
        "",
        "Generated from the rules' declarations; `cubecore explain RULE` prints one.",
        "",
    ]
    for rule in rules():
        title, _, rest = explain(rule.id).partition("\n")
        lines += [f"## {title.replace(': ', ' - ', 1)}", "", "```text", rest.strip(), "```", ""]
    return "\n".join(lines)


_AGREEMENT_INTRODUCTION = """\
# Our rules and the vendor's tiling library

The vendor's public tiling library was asked 549 times, without an NPU; 535 answers came back. For
each the record names the documented constraints that the answer itself breaks. The first table
gives for each name our rule, edition and reading, and how many answers each side calls broken;
where they differ, the answers and the reason follow. Edition 001 agrees in the same reading unless
said otherwise; "other" counts the answers that break the rule in its other reading (both editions,
where they differ). The second table has our rules that answers break under no such name. Generated
from `cubecore.tiling.agreement`; `tests/tiling/test_reference_tilings.py` holds it to the record.
"""


@document("agreement.md")
def agreement_page() -> str:
    """Return the table of names of broken constraints, and every difference with its reason."""
    from tools.evidence.vendor_agreement import AGREEMENTS, GAINS, UNNAMED

    lines = [
        _AGREEMENT_INTRODUCTION,
        "| name | rule | edition | reading | record | cubecore | other | differences |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, a in enumerate(AGREEMENTS, 1):
        mark = f"see {number}" if a.differences or a.older else "none"
        other = ", ".join(str(count) for count in dict.fromkeys(a.elsewhere))
        counts = (str(a.broken), str(a.found), other)
        cells = (escaped(a.name), f"`{a.rule}`", a.edition, a.reading, *counts, mark)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Differences", ""]
    for number, a in enumerate(AGREEMENTS, 1):
        for d in a.differences:
            names = ", ".join(f"`{answer}`" for answer in d.answers)
            lines.append(f"- {number}, `{a.rule}`: only {d.by} calls {names} broken: {d.reason}.")
        if a.older:
            lines.append(f"- {number}, `{a.rule}`: edition 001 {a.older}.")
    lines += [
        *("", "## Rules without a name in the record", ""),
        "Answers that break the rule, of 533, in both editions and readings.",
        "",
        "| rule | 000 documented | 001 documented | 000 effective | 001 effective | reason |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{u.rule}` | {u.documented[0]} | {u.documented[1]} | {u.effective[0]} | "
        f"{u.effective[1]} | {u.reason} |"
        for u in UNNAMED
    ]
    lines += [
        *("", "## Plans beside the library's", ""),
        "Time of the library's answer over that of our plan, both as `time` says, for every",
        "answer with return code 0 that breaks no rule, under the same options. The library's is",
        "faster by up to 0.5 % where the planner's rankings leave such a tiling out of what is",
        "timed. `python benchmarks/plan.py --reference` prints the ratios anew.",
        "",
        "| products on | answers | geometric mean | least | 10 % | median | 90 % | largest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for g in GAINS:
        values = (g.geometric_mean, g.least, g.p10, g.median, g.p90, g.largest)
        cells = " | ".join(f"{value:.2f}" for value in values)
        lines.append(f"| {g.cores} | {g.answers} | {cells} |")
    return "\n".join(lines) + "\n"


@document("instructions.md")
def instructions_page() -> str:
    """Return the manual of instructions: every declaration, by pipe."""
    from cubecore.isa.catalogue import instructions
    from cubecore.isa.declare.instruction import Pipe
    from cubecore.isa.declare.not_modelled import NOT_MODELLED, NOT_MODELLED_3510
    from cubecore.workflows.explain import describe

    lines = [
        "# Instructions",
        "",
        "Generated from the declarations; `cubecore explain NAME` prints one, in any dialect's",
        "spelling. A line `Uncertain` marks what no public page settles. The names `cpp` are those",
        "of the basic API's functions; a kernel in Python calls an instruction by its name in the",
        f"C API{_called_by_cpp_names()}.",
        "",
    ]
    for pipe in Pipe:
        named = [cls for cls in instructions().values() if cls.pipe is pipe]
        if not named:
            continue
        lines += [f"## Pipe {pipe.value}", ""]
        for cls in named:
            _, _, rest = describe(cls).partition("\n")
            lines += [f"### {cls.name}", "", "```text", rest.strip(), "```", ""]
    lines += ["## Names that are not modelled", "", "| C API | why |", "|---|---|"]
    named_not = NOT_MODELLED | NOT_MODELLED_3510
    lines += [f"| `{name}` | {reason} |" for name, reason in named_not.items()]
    return "\n".join([*lines, ""])


def _called_by_cpp_names() -> str:
    """Return which of the basic API's names kernels in Python have."""
    from cubecore.frontends.capi.core_handle import CoreHandle
    from cubecore.isa.catalogue import instructions

    names = {cls.names["cpp"] for cls in instructions().values() if "cpp" in cls.names}
    called = sorted(name for name in names if hasattr(CoreHandle, name))
    return f", and by these of the basic API: {', '.join(called)}" if called else ""


@document("tik_programs.md")
def public_tik_page() -> str:
    """Return the page of public TIK operators: which were built and run, and what came of it."""
    from tools.evidence.public_tik import page

    return page()


@document("cpp_programs.md")
def public_cpp_page() -> str:
    """Return the page of public C++ kernels: which compile, run and verify, and the obstacles."""
    from tools.evidence.cpp_programs_page import page

    return page()


@document("cpp_names.md")
def cpp_names_page() -> str:
    """Return the page of names of the class API in C++: provided, and refused."""
    from tools.pages.cpp_names import page

    return page()


@document("findings.md")
def findings_page() -> str:
    """Every kind of finding that `run` reports."""
    from cubecore.machine.finding_kinds import CHECKS, KINDS

    lines = [
        "# Findings",
        "",
        "Errors that `cubecore run` finds in a kernel, by check. `--checks` switches checks off, "
        "`--sarif` writes the findings for editors. A note is listed by itself, and a run with "
        "notes alone passes. A finding that follows from another is counted under it: `--all` "
        "lists it, and `caused_by` in `--json` names its cause.",
    ]
    for check in CHECKS:
        lines += ["", f"## {check}"]
        for name, kind in KINDS.items():
            if kind.check == check:
                vendor = f" msSanitizer says: {kind.vendor}." if kind.vendor else ""
                text = f"a note: {kind.text}" if kind.note else kind.text
                lines += ["", f"### {name}", "", f"{_sentence(text)}{vendor}"]
                lines += ["", f"Fix: {kind.remedy}."]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


_ADVICE_INTRODUCTION = """\
# Advice on kernels

`cubecore time KERNEL --advise` says why a kernel in Python, C++, C or TIK is slow, at its line.
Each rule counts something of the launch. Where the count passes the rule's threshold, cubecore
changes that one thing in the program that the kernel issued, and times it again: the difference
is the saving. Some causes cannot be taken out like that; their advice says "at most", and no change
of the kind saves more. Where the timing model charges nothing for a cause, its advice says "not
modelled, may be slower than shown" and stands last. `cubecore explain RULE` prints a rule.

Under each rule is a kernel that is slow for this reason alone, and with the macro `BETTER` is not.
`tests/advice/test_kernel_rules.py` runs both: the first or the second advice names the
rule at a line that is marked `slow`, and its saving is that of the better form within 25 %; what is
not modelled is named alone.
Generated from the rules' declarations and the tests' kernels.
"""


@document("advice.md")
def advice_page() -> str:
    """Return the rules of advice on kernels, each with its pair of examples."""
    from cubecore.advice.kernel_rules.advise import rules

    pairs = ROOT / "tests" / "advice" / "pairs"
    lines = [_ADVICE_INTRODUCTION, "| rule | counts | speaks from |", "|---|---|---|"]
    lines += [
        f"| [{rule.name}](#{rule.name}) | {rule.counts} | {rule.threshold} |"
        for rule in rules().values()
    ]
    for rule in rules().values():
        source = (pairs / f"{rule.name.replace('-', '_')}.cpp").read_text(encoding="utf-8")
        lines += ["", f"## {rule.name}", "", f"{rule.remedy} Threshold from: {rule.source}."]
        lines += ["", "```cpp", source.rstrip(), "```"]
    return "\n".join(lines) + "\n"


@document("architecture.md")
def architecture_page() -> str:
    """Return the page as it is written, with the glossary of `explain` as its last section."""
    from cubecore.workflows.manual.glossary import glossary

    head, title, _ = (DOCS / "architecture.md").read_text("utf-8").partition("## Glossary\n")
    named = {term: ", ".join([*term.names, *_printed(term.forms)]) for term in glossary()}
    rows = [f"| {names} | {term.meaning} |" for term, names in named.items()]
    table = ["| term | meaning |", "|---|---|", *rows]
    return "\n".join([head + title, *table]) + "\n"


def _printed(forms: Sequence[str]) -> list[str]:
    """Return forms of a term as answers print them, of each pipe: words that a search finds."""
    from cubecore.timing.pipes.queues import NAMES

    return [
        form.replace("PIPE", name)
        for form in forms
        for name in (NAMES if form.count("PIPE") == 1 else ["PIPE"])
    ]


@document("validation.md")
def validation() -> str:
    """Return the timing model's error on every published point."""
    from tools.pages.validation_page import validation_page

    from cubecore.workflows.calibration.held_out import held_out
    from cubecore.workflows.calibration.validate import published_validation

    shipped = published_validation()
    return validation_page(replace(shipped, held_out=held_out(shipped)))


_MUTATIONS_INTRODUCTION = """\
# What the sanitizers find

The example kernels with one thing wrong in what they issue. A site is a source line and the
instruction that it issues; a mutation changes it wherever it runs, and a flag or a barrier is also
dropped once: the first, the middle and the last time. Buffers are swapped in two ways: of a pair
that takes turns the other one, and the target with a source.

A mutant counts if some order that its flags permit leaves other bytes than the right kernel leaves,
or never ends: program order, late, early, and up to 1,000 drawn ones. It is reported rightly if a
finding is of a kind that fits the mutation and names the line: the site's; of a flag or a barrier
also its partner's, or those of the two accesses that it stood between; of bytes that are missing
or lie elsewhere also who uses them, or their tensor. A mutant that nothing is reported of and that
1,000 drawn orders do not change is held for equivalent. What is reported and changes nothing
(a flag that stays up, an access out of its array that nobody reads) does not count.

Every check is on, usecheck too. Generated from `tests/mutations/results.json`, which
`tests/mutations/suite.py` writes; the sweep tests hold it to the kernels.
"""


@document("mutations.md")
def mutations_page() -> str:
    """Return the table of the mutation suite: kernel by mutation."""
    import json

    found = json.loads((ROOT / "tests/mutations/results.json").read_text(encoding="utf-8"))
    total: Counter[str] = Counter()
    lines = []
    for name, table in found.items():
        lines += [
            *("", f"## {name}", "", "| mutation | mutants | count | reported | rightly | spared |"),
            "|---|---|---|---|---|---|",
        ]
        for kind, row in table["rows"].items():
            lines.append(f"| {kind} | " + " | ".join(map(str, row)) + " |")
            total.update(dict(zip(("mutants", "count", "reported", "rightly"), row, strict=False)))
        total["equivalent"] += len(table["equivalent"])
        lines += _mutants("Missed", [text for text, *_ in table["missed"]])
        lines += _mutants("Equivalent", table["equivalent"])
    share = 100 * total["rightly"] / total["count"]
    head = (
        f"All kernels: {total['mutants']} mutants, {total['count']} count, {total['reported']} of "
        f"them reported, {total['rightly']} rightly ({share:.1f} %); {total['equivalent']} are "
        "equivalent. No finding on a right kernel."
    )
    return "\n".join([_MUTATIONS_INTRODUCTION, head, *lines]) + "\n"


def _mutants(title: str, texts: list[str]) -> list[str]:
    """Return a list of mutants: line, instruction, mutation."""
    return ["", f"{title}:", "", *(f"- {escaped(text)}" for text in texts)] if texts else []


@document("mechanisms.md")
def mechanisms_page() -> str:
    """Return what each mechanism of the timing model is, and what leaving it out does."""
    from tools.calibration.mechanisms import page

    return page()


@document("chips.md")
def chips_page() -> str:
    """Return the catalogue: one line a chip, then what each architecture shares."""
    from cubecore.workflows.chips import chip_list

    listed = chip_list()
    sheets = listed.sheets
    lines = [
        "# Chips",
        "",
        "Generated from the catalogue. `cubecore chips NAME` prints every fact of one with its",
        "source and how sure it is: INI platform configuration, DOC vendor documentation, MEAS",
        "published measurement, CODE constant in vendor code, FIT derived from measurements, INF",
        "inferred. A chip that is not here is described by [a file of your own]"
        "(planning.md#a-chip-of-your-own).",
        "",
        "```text",
        listed.text.rstrip(),
        "```",
        "",
        *_buffers([sheet.chip for sheet in sheets]),
        "",
        "## Every fact of one chip",
        "",
        "The first chip of each architecture in full:",
        "",
    ]
    first = {sheet.chip.arch: sheet for sheet in reversed(sheets)}
    for arch in sorted(first):
        text = first[arch].text.rstrip()
        lines += [f"## Architecture {arch}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _buffers(chips: "list[Chip]") -> list[str]:
    """Return the table that compares buffers and rates; chips of equal ones share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for chip in chips:
        sizes = (chip.l0a_bytes, chip.l0b_bytes, chip.l0c_bytes, chip.l1_bytes, chip.ub_bytes)
        kib = [f"{size // 1024}" if size else "-" for size in sizes]
        l2 = "-" if chip.l2_bytes is None else f"{chip.l2_bytes / 2**20:g}"
        rate = chip.hbm_bytes_per_second
        memory = "-" if rate is None else f"{rate / 1e9:,.0f}"
        rows.setdefault((chip.arch, *kib, l2, memory), []).append(chip.name)
    return [
        "## L0A, L0B, L0C, L1, UB and L2 of every chip",
        "",
        "Sizes of L0A, L0B, L0C, L1 and UB in KiB, of L2 in MiB; device memory in GB/s. Chips with",
        "equal values share a row; - is not known.",
        "",
        "| chips | arch | L0A | L0B | L0C | L1 | UB | L2 | device memory |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {', '.join(names)} | {' | '.join(values)} |" for values, names in rows.items()),
    ]


@document("seeds.md")
def seeds() -> str:
    """Return the coverage ledger: which clauses of the seeds are carried, and by what."""
    sys.path.insert(0, str(ROOT / "tests"))
    from tools.pages.seeds_page import page

    from seeds import ledger

    return page(ledger.load_all(), ledger.ISSUES)


if __name__ == "__main__":
    sys.exit(main())

"""Errors that carry their data; the text is made from it.

A message is one sentence. About a value it is ``<subject> must <requirement>, got <value>[;
<remedy>]``, where the subject is what the user typed. A state or a missing ability is stated in a
sentence of its own, as ``cannot read x.json: no such file``.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def one_of(words: "Sequence[str]") -> str:
    """Return the requirement to be one of two words or more: ``be a, b or c``."""
    return f"be {', '.join(words[:-1])} or {words[-1]}"


MISSING = "missing "
"""The beginning of a sentence about names without a value and without a default."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One requirement that one value does not meet, or one reason why a request cannot be met.

    `sentence` is the text where the parts do not make it.
    """

    subject: str
    requirement: str
    value: str
    remedy: str = ""
    sentence: str = ""

    def __str__(self) -> str:
        """Return the sentence."""
        value = shortened(" ".join(self.value.split()) if "\n" in self.value else self.value)
        text = self.sentence or f"{self.subject} must {self.requirement}, got {value}"
        return printable(f"{text}; {self.remedy}" if self.remedy else text)

    def within(self, where: str) -> "Violation":
        """Return the same with `where` it is, a file or a line, in front."""
        sentence = f"{where}: {self.sentence}" if self.sentence else ""
        return replace(self, subject=f"{where}: {self.subject}", sentence=sentence)

    def to_json(self) -> dict[str, str]:
        """Return the parts and the sentence."""
        return {
            "subject": self.subject,
            "requirement": self.requirement,
            "value": self.value,
            "remedy": self.remedy,
            "message": str(self),
        }


COMPILER, TIME_LIMIT = "compiler", "time limit"
"""Origins of errors that callers tell from others."""


class CubecoreError(Exception):
    """The base of cubecore's errors: a request that is refused or cannot be met.

    Attributes
    ----------
    violations : tuple of Violation
        Every reason, in the order found.
    findings : tuple
        The findings of a run that failed (`cubecore.machine.sanitize.findings`).
    detail : str
        Lines that belong under the sentence: the line of a C++ file, and a caret; often empty.
    origin : str
        `COMPILER` where a compiler refused a file, `TIME_LIMIT` where a process was ended by its
        limit of time; else empty.
    """

    findings: "tuple[Any, ...]" = ()
    detail: str = ""
    origin: str = ""

    def __init__(self, violations: "Iterable[Violation]") -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(str(violation) for violation in self.violations))

    def to_json(self) -> dict[str, Any]:
        """Return the object that the command line prints under ``error``.

        Returns
        -------
        dict
            The kind of error, its sentence and every violation.
        """
        findings = [finding.to_json() for finding in self.findings]
        return {
            "kind": type(self).__name__,
            "message": str(self),
            "violations": [violation.to_json() for violation in self.violations],
            **({"findings": findings} if findings else {}),
            **({"detail": self.detail} if self.detail else {}),
        }


class RequestError(CubecoreError):
    """A request that cannot be carried out as it stands (exit code 2)."""


class NoLegalTilingError(CubecoreError):
    """A well-formed problem for which no tiling satisfies every rule (exit code 1)."""


class InfeasibleError(NoLegalTilingError):
    """The same, proven before a search; what excludes each other is not known yet."""


class DeadlockError(CubecoreError):
    """Cores or pipes that all wait for each other; the violation names the cycle (exit code 1)."""


_MOST_SHOWN = 400
"""Characters of a value in a sentence."""


def shortened(text: str) -> str:
    """Return a text as a sentence can hold it: of a long one the beginning, and how long it is."""
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}... ({len(text)} characters)"


def both_ends(text: str) -> str:
    """Return what a program says as a sentence can hold it: of a long text both ends."""
    if len(text) <= _MOST_SHOWN:
        return text
    half = _MOST_SHOWN // 2
    return f"{text[:half]}... ({len(text)} characters) ...{text[-half:]}"


def shown(value: object, spell: "Callable[[object], str]" = repr) -> str:
    """Return a value as Python spells it, unless that is a number of too many digits for it."""
    try:
        return spell(value)
    except ValueError:
        return "a number of too many digits"


def printable(text: str) -> str:
    """Return a text with escapes for what ends a line, steers a terminal or has no encoding.

    Names of files and ids may hold any of them; a line feed is ours and stays.
    """
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return "".join(shown)


def refuse(subject: str, requirement: str, value: object, remedy: str = "") -> RequestError:
    """Return the `RequestError` of one violation, ready to raise."""
    return RequestError([Violation(subject, requirement, shown(value, str), remedy)])


def unable(subject: str, sentence: str, remedy: str = "") -> RequestError:
    """Return the `RequestError` of one state or missing ability, stated by `sentence`."""
    return RequestError([Violation(subject, "", "", remedy, sentence)])


def missing_package(what: str, error: ModuleNotFoundError) -> RequestError | None:
    """Return the `RequestError` of a package that `what` needs and that is not installed.

    None if the module is one of our own: that it is missing is our bug.
    """
    package = (error.name or "").partition(".")[0]
    if package in {"", "cubecore"}:
        return None
    sentence = f"{what} needs the package {package}, which is not installed"
    return unable(package, sentence, "plan, check, explain, chips, tune and model need NumPy alone")


def unreadable(name: str, error: Exception | str) -> RequestError:
    """Return the `RequestError` of a file that cannot be read, with the system's reason."""
    reason = _reason(error)
    return unable(name, f"cannot read {name}: {_NO_FILE.get(reason, reason)}")


def unwritable(name: str, error: Exception | str) -> RequestError:
    """Return the `RequestError` of a file that cannot be written, with the system's reason."""
    return unable(name, f"cannot write {name}: {_reason(error)}")


_NO_FILE = {"no such file or directory": "no such file"}


def _reason(error: Exception | str) -> str:
    text = str(getattr(error, "strerror", None) or error)
    return text[:1].lower() + text[1:]


def no_json(error: Exception) -> str:
    """Return why a text is no JSON, of what a reader of JSON raises."""
    if hasattr(error, "pos"):
        return str(error).splitlines()[0]
    if isinstance(error, UnicodeDecodeError):
        return "bytes that are no UTF-8"
    if isinstance(error, RecursionError):
        return "values nested too deeply"
    return "a number of too many digits"


def did_you_mean(name: str, names: "Iterable[str]") -> str:
    """Return ``did you mean X?`` for the known name nearest to `name`, or an empty string.

    Case and the signs between words do not count: transA is nearest to trans_a.
    """
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(_fold(candidate), candidate)
    near = get_close_matches(_fold(name), list(folded), n=1, cutoff=0.6)
    return f"did you mean {folded[near[0]]}?" if near else ""


def _fold(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())

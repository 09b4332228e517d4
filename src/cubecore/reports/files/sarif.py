"""Findings as SARIF 2.1.0, which editors and code hosts show beside the source."""

import json
from collections.abc import Iterable
from urllib.parse import quote

from cubecore import manual
from cubecore.aliases import Json
from cubecore.isa.program.tree import Location
from cubecore.machine.finding_kinds import KINDS
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.version import __version__

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def sarif_bytes(findings: Iterable[SanitizerFinding]) -> bytes:
    """Return one run of the tool: every kind of finding as a rule, every finding as a result.

    A race's earlier access is a related location, and so are the calls that led to the line. A
    finding without a line has no location.
    """
    rules = [_rule(name) for name in KINDS]
    driver = {"name": "cubecore", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_result(f) for f in findings]}
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(document, indent=1) + "\n").encode()


def _rule(name: str) -> Json:
    kind = KINDS[name]
    properties = {"check": kind.check, "vendor_name": kind.vendor or None}
    rule: Json = {
        "id": name,
        "shortDescription": {"text": kind.text},
        "help": {"text": kind.remedy},
        "properties": properties,
    }
    link = manual.address("finding", name)
    return rule if link is None else rule | {"helpUri": link}


def _result(finding: SanitizerFinding) -> Json:
    related = [
        _location(access.location) | {"message": {"text": f"{access.how} on {access.pipe}"}}
        for access in finding.accesses[:-1]
    ]
    related += [
        _location(caller) | {"message": {"text": f"called by {caller.function}"}}
        for caller in finding.location.callers
    ]
    return {
        "ruleId": finding.id,
        "ruleIndex": list(KINDS).index(finding.id),
        "level": "note" if finding.is_note else "error",
        "message": {"text": finding.text or finding.message},
        "locations": [_location(finding.location)] if finding.location.line else [],
        "relatedLocations": related,
        "occurrenceCount": finding.count,
        "properties": {
            "core": finding.core,
            "instruction": finding.instruction,
            "causedBy": None if finding.cause is None else finding.cause.mark(),
            "accesses": [access.to_json() for access in finding.accesses],
        },
    }


def _location(where: Location) -> Json:
    physical = {
        "artifactLocation": {"uri": quote(where.file)},
        "region": {"startLine": where.line},
    }
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"name": where.function, "kind": "function"}],
    }

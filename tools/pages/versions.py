"""Put a built site beside other versions: ``python -m tools.pages.versions SITE PAGES REF``.

PAGES then holds a folder for each version (``0.1.0`` of the tag ``v0.1.0``, ``dev`` of a branch),
``versions.json`` for the switch of the theme, and an ``index.html`` that leads to the newest.
"""

import json
import re
import shutil
import sys
from pathlib import Path

_TAG = re.compile(r"v(\d+(?:\.\d+)*)")
DEV = "dev"


def version_of(ref: str) -> str:
    """Return the folder of a branch or a tag."""
    tag = _TAG.fullmatch(ref)
    return tag[1] if tag else DEV


def newest_first(versions: set[str]) -> list[str]:
    """Return versions, the newest release first and what is being developed last."""
    released = versions - {DEV}
    numbered = sorted(released, key=lambda v: [int(n) for n in v.split(".")], reverse=True)
    return [*numbered, *(versions & {DEV})]


def publish(site: Path, pages: Path, ref: str) -> None:
    """Put a site into its folder, and write the list of versions and the first page anew."""
    version, listed = version_of(ref), pages / "versions.json"
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(site, pages / version)
    before = json.loads(listed.read_text("utf-8")) if listed.exists() else []
    versions = newest_first({entry["version"] for entry in before} | {version})
    entries = [
        {"version": each, "title": each, "aliases": ["latest"] * (number == 0)}
        for number, each in enumerate(versions)
    ]
    listed.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
    leads = f'<!doctype html><meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
    (pages / "index.html").write_text(leads, "utf-8")
    (pages / ".nojekyll").touch()
    # Hosts answer an address that is missing in any folder by the page at their root.
    missing = pages / versions[0] / "404.html"
    if missing.exists():
        shutil.copy(missing, pages / "404.html")


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])

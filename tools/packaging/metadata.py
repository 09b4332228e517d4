"""What the package's metadata says of the repository's address: hatchling asks when it builds.

Without an address there are no URLs, and README keeps its relative links. A fork, a mirror or a
workflow gives another one in the environment: ``CUBECORE_REPOSITORY=https://... make dist``.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = ""
"""The address of the repository, as ``https://HOST/OWNER/cubecore``: the one place to set it."""
_RELATIVE_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def repository() -> str:
    """Return the address, without a slash at its end; empty if nobody has said it."""
    return (os.environ.get("CUBECORE_REPOSITORY") or REPOSITORY).rstrip("/")


def with_absolute_links(text: str, address: str, revision: str) -> str:
    """Return Markdown whose relative links lead into the repository: pictures to the raw file."""

    def absolute(link: re.Match[str]) -> str:
        picture, title, target = link.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}[{title}]({address}/{kind}/{revision}/{target})"

    return _RELATIVE_LINK.sub(absolute, text)


def urls_of(address: str) -> dict[str, str]:
    """Return the links of the package's page."""
    return {
        "Repository": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
    }


def _version(root: Path) -> str:
    """Return the version, as hatchling reads it."""
    text = (root / "src" / "cubecore" / "version.py").read_text("utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]


class RepositoryMetadata(MetadataHookInterface):
    """README and URLs of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set them."""
        root, address = Path(self.root), repository()
        text = (root / "README.md").read_text("utf-8")
        if address:
            text = with_absolute_links(text, address, f"v{_version(root)}")
            metadata["urls"] = urls_of(address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

"""The file that a run can leave: its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.lazy_dataclass import dataclass
from cubecore.workflows.data.files import require_writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cubecore.machine.sanitizer.findings import SanitizerFinding


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Path of the SARIF file with the findings; None for none."""

    sarif: str | None

    def require_writable(self) -> None:
        """Refuse a path that cannot be written, before any work is done.

        Raises
        ------
        RequestError
            If the path cannot be written.
        """
        if self.sarif is not None:
            require_writable(self.sarif, "--sarif")

    def write(self, findings: Iterable[SanitizerFinding]) -> None:
        """Write the file in one step.

        Raises
        ------
        RequestError
            If a path can no longer be written.
        """
        if self.sarif is not None:
            from cubecore.reports.files.sarif import sarif_bytes

            write_whole(self.sarif, sarif_bytes(findings), "--sarif")

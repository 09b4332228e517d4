"""The request of `judge --batch`: many submissions, with a store of verdicts."""

import os
from dataclasses import dataclass

from cubecore.aliases import Json
from cubecore.cli.console import show
from cubecore.cli.progress import counting
from cubecore.cli.streams import DONE, INTERRUPTED, say
from cubecore.errors import refuse, unable


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the command line states it: its submissions, its store, how many at a time."""

    source: str | None
    store: str | None
    jobs: int | None

    @property
    def asked(self) -> bool:
        """True if there is a batch.

        Raises
        ------
        RequestError
            If an option of batches is given without one, or a batch has no store.
        """
        if self.source is None:
            for option, value in (("--store", self.store), ("--jobs", self.jobs)):
                if value is not None:
                    raise unable(option, f"{option} needs --batch")
            return False
        if self.store is None:
            raise unable("--batch", "--batch needs --store, the file of the verdicts")
        if self.jobs is not None and self.jobs < 1:
            raise refuse("--jobs", "be a whole number above 0", self.jobs)
        return True

    def judged(self, task: str | None, keys: Json, report: str | None, form: str) -> int:
        """Judge the batch, show it, and return the exit code: 0 if each has a verdict in the store.

        What is wrong with a submission is no failure of a batch.
        """
        from cubecore.chips import default_chip
        from cubecore.output_files import require_writable, write_whole
        from cubecore.workflows.judge.batch import judge_batch
        from cubecore.workflows.judge.batch_requests import batch_requests

        assert self.source is not None
        assert self.store is not None
        if report is not None:
            require_writable(report, "--report")
        chip = keys.pop("chip", None) or default_chip()
        requests = batch_requests(self.source, task, chip, keys)
        done = 0
        with counting("judged", len(requests)) as shown:

            def on_judged(count: int) -> None:
                nonlocal done
                done = count
                shown(count)

            try:
                answer = judge_batch(requests, self.store, jobs=self.jobs, on_judged=on_judged)
            except KeyboardInterrupt:
                said = f"interrupted: {done:,} of {len(requests):,} judged"
                say(f"{said}; the same command goes on with the others", to_error=True)
                # Judgements that run end with this process; their threads would be waited for.
                os._exit(INTERRUPTED)
        if report is not None:
            from cubecore.cli.provenance import signed

            write_whole(report, signed(answer.page(), ", ".join(answer.chips)), "--report")
        show(answer, form)
        return DONE

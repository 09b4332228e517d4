"""The processes of judgements: each a new interpreter, or forked from one that has all loaded.

`python -m cubecore.workflows.judge.starts FILE` is the one that they are forked from. It takes the
folder of a judgement with the files for its output on a socket, and tells the process that it has
forked; told that number, it ends the session and takes the process's end.
"""

import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, NoReturn, Protocol, Self

from cubecore.errors import RequestError
from cubecore.frontends.cpp.toolchain.cache import folder as folder_of_cache
from cubecore.sandbox.confinement import clean_environment
from cubecore.sandbox.kernel_calls import end_with_parent

# Arrays of one case after another: glibc gives large ones back to the system, which clears their
# pages for the next, a third of a judgement's CPU time.
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 31),
    "MALLOC_TOP_PAD_": str(32 << 20),
}
_MODULES = (
    *("numpy.random", "cubecore.advice.launch_advice", "cubecore.frontends.kernels.scripts"),
    *("cubecore.frontends.launch_timing", "cubecore.timing.launch"),
    *("cubecore.isa.catalogue", "cubecore.frontends.tik.trace.run_options"),
)
"""Modules that the steps of a judgement load when they need them, with all that they import."""
_TORCH = "torch"
"""The word that has torch loaded, too."""
_WORD_BYTES = 1 << 13
"""The most bytes of a folder's path."""


class Start(Protocol):
    """A way to start the process of a judgement."""

    def started(self, folder: Path, log: IO[bytes]) -> AbstractContextManager[IO[str]]:
        """Start the process; yield what it prints, and end its whole session."""


class NewInterpreter:
    """Each process is an interpreter of its own."""

    @contextmanager
    def started(self, folder: Path, log: IO[bytes]) -> Iterator[IO[str]]:
        """Start an interpreter; yield what it prints, and end its whole session."""
        command = [sys.executable, "-m", "cubecore.workflows.judge.process", str(folder)]
        with subprocess.Popen(  # noqa: S603 - this interpreter, this package
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
                process.wait()
            finally:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)


class LoadedInterpreter:
    """Processes are forked from one that has loaded what they need.

    Cubecore takes a second of CPU time, and torch two more.
    """

    def __init__(self, *, torch: bool) -> None:
        """Start that one; it ends with this thread, which is to be the batch's."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "cubecore.workflows.judge.starts"]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
                [*command, str(theirs.fileno()), *([_TORCH] if torch else [])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._asking, self._socket = Lock(), ours

    def __enter__(self) -> Self:
        """Return itself; the process ends with the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    @contextmanager
    def started(self, folder: Path, log: IO[bytes]) -> Iterator[IO[str]]:
        """Fork a process; yield what it prints, and end its whole session."""
        read, write = os.pipe()
        with os.fdopen(read, "r", errors="replace") as said:
            try:
                process = self._asked(str(folder), [write, log.fileno()])
            except (OSError, ValueError):  # it was ended by somebody: the batch goes on
                process = ""
            finally:
                os.close(write)
            if not process:
                with NewInterpreter().started(folder, log) as others:
                    yield others
                return
            try:
                yield said
            finally:
                with suppress(OSError, ValueError):
                    self._asked(process)

    def _asked(self, word: str, files: Sequence[int] = ()) -> str:
        """Send a word, with files or without; return the number that answers it."""
        with self._asking:
            if files:
                socket.send_fds(self._socket, [word.encode()], files)
            else:
                self._socket.send(word.encode())
            return str(int(self._socket.recv(_WORD_BYTES)))


def _environment() -> dict[str, str]:
    """Return the variables of the process, which the submission may read."""
    cache = {"CUBECORE_CACHE": str(folder_of_cache().parent.absolute())}
    return clean_environment() | _ALLOCATOR | cache


def _serve(asked: socket.socket, *, torch: bool) -> None:
    """Fork processes of judgements, until nobody asks any more."""
    from cubecore.workflows.judge.process import judge_folder

    for name in _MODULES:
        import_module(name)
    if torch:
        from cubecore.workflows.judge.tasks.torch_modules import load_torch

        with suppress(RequestError):  # a judgement says so that needs it
            load_torch()
    while True:
        word, files, _, _ = socket.recv_fds(asked, _WORD_BYTES, 2)
        if not word:
            return
        text = word.decode()
        if not files:
            _end(int(text))
            asked.send(b"0")
            continue
        child = os.fork()
        if child == 0:
            asked.close()
            _judge(judge_folder, Path(text), files)
        for file in files:
            os.close(file)
        asked.send(str(child).encode())


def _judge(judge_folder: Callable[[Path], None], folder: Path, files: Sequence[int]) -> NoReturn:
    """Be the process of a judgement, whose output goes to the files."""
    code = 1
    try:
        os.setsid()
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
            os.close(file)
        judge_folder(folder)
        code = 0
    except BaseException:  # noqa: BLE001 - the log tells it, as that of an interpreter would
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end(process: int) -> None:
    """End a session whose first process is forked from this one, and take its end."""
    with suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    with suppress(OSError):
        os.waitpid(process, 0)


if __name__ == "__main__":
    end_with_parent()
    with socket.socket(fileno=int(sys.argv[1])) as _asked:
        _serve(_asked, torch=_TORCH in sys.argv[2:])

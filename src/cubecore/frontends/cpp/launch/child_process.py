"""Another process for a user's machine code: whatever it does, this one goes on.

The process is a small program of our own with the runtime's library, which loads the user's. It has
its own process group, limits of time and memory, and no core dumps. It does what it is told by
messages; a crash leaves its signal, its address and the last issue in a page that both processes
see. It ends when it is killed: until then the processes that it has begun are its own.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from cubecore.errors import TIME_LIMIT, CubecoreError, both_ends, unable
from cubecore.frontends.cpp.launch.child_stderr import HOLD_S, StandardError, one_line
from cubecore.frontends.cpp.launch.device_memory import SharedPages, file_of_pages
from cubecore.frontends.cpp.launch.launch_options import TIMEOUT_S
from cubecore.frontends.cpp.launch.messages import (
    Message,
    command,
    is_other,
    is_whole,
    text,
    words,
)
from cubecore.frontends.cpp.launch.orphan_processes import end_descendants, end_strays
from cubecore.frontends.cpp.toolchain.runtime import runtime
from cubecore.frontends.cpp.toolchain.spelling import function_as_written
from cubecore.frontends.cpp.wire import BOX_BYTES, Asks, Box, Commands, Ends, Read, Records
from cubecore.frontends.source_locations import KernelError, location_of
from cubecore.isa.program.tree import Location
from cubecore.machine.group.recorder import RanAheadError
from cubecore.sandbox.boxed_programs import current_box, started_in

MOST_MEMORY = 4 << 30
"""Bytes that the child may have beyond what it has at its start."""
_NEAR_STACK = 1 << 16
_NO_ADDRESS = 2**64 - 1
_LONGEST_WAIT_S = 1e6
_LAST_WORDS_S = 1.0
_LOOK_S = 0.001
_PART_BYTES = 1 << 16
_KINDS, _WHERES, _ADDRESSES, _READS = (
    BOX_BYTES + field.offset
    for field in (Records.kinds, Records.wheres, Records.addresses, Records.reads)
)
"""Bytes of the exchange's pages: what a core has recorded is behind the report of a crash."""
_READ_BYTES = ctypes.sizeof(Read)
_SIGNALS: dict[int, str] = {
    signal.SIGFPE: "a division by zero",
    signal.SIGILL: "an illegal instruction of the host",
    signal.SIGABRT: "abort",
    signal.SIGTRAP: "a trap",
    signal.SIGKILL: "a kill, most likely for lack of memory",
    signal.SIGXCPU: "its limit of CPU time",
}


def _unnamed(_: int) -> None:
    """Say nothing of an address."""


@dataclass(frozen=True, slots=True)
class ChildSubject:
    """The work of a child process, as the sentence about its end names it.

    `place` is its location where no line of it is known; `ends` how it should have ended; `named`
    says what an address is of, if that is known.
    """

    subject: str
    timeout_s: float = TIMEOUT_S
    cores: tuple[str, ...] = ()
    place: Location | None = None
    ends: str = "a kernel returns"
    named: Callable[[int], str | None] = _unnamed


class Child:
    """A process for a user's libraries: it does one thing at a time, and answers with one message.

    `remark` is what a sentence on its end goes on with where no line of the user's is known.
    """

    def __init__(self, asked: ChildSubject, memory: SharedPages | None = None) -> None:
        self._asked, self.remark = asked, ""
        self._end = time.monotonic() + asked.timeout_s
        self._failure: Exception | None = None
        size = BOX_BYTES + ctypes.sizeof(Records)
        file = file_of_pages(size)
        self._pages = mmap.mmap(file, size)
        self._box = Box.from_buffer(self._pages)
        # Two pipes for commands and answers, a third for what the process says on stderr, and a
        # page that both see. The child inherits its ends by number; this process closes them, so
        # that the end of the child is the end of the file here.
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()
        self._errors = StandardError()
        self._poll = select.poll()
        for watched in (self._read, self._errors.file):
            self._poll.register(watched, select.POLLIN)
        held = (theirs, answers, file) if memory is None else (theirs, answers, file, memory.file)
        numbers = (*held, -1)[:4]
        place = (0, 0) if memory is None else (memory.base, memory.size)
        # In a box nobody outside has a number: its parent's is 0.
        box = current_box()
        start = (*numbers, *place, MOST_MEMORY, os.getpid() if box is None else 0)
        program, library = runtime()
        sys.stdout.flush()
        sys.stderr.flush()
        actions = [(os.POSIX_SPAWN_DUP2, each, each) for each in held]  # they stay open in it
        actions.append((os.POSIX_SPAWN_DUP2, self._errors.source, 2))
        line = [str(program), str(library), *map(str, start)]
        try:
            if box is None:
                self._process = os.posix_spawn(
                    program, line, os.environ, file_actions=actions, setpgroup=0
                )
            else:
                self._process = started_in(box, line, held, self._errors.source)
        except OSError as error:
            sentence = f"{program} does not start: {error.strerror}"
            remedy = "set CUBECORE_CACHE to a folder that programs may run from"
            remedy = remedy if error.errno == errno.EACCES else ""
            for own in (self._read, self._write):
                os.close(own)
            self._errors.close(keep=False)
            raise unable(asked.subject, sentence, remedy) from None
        finally:
            for own in (theirs, answers, file):
                os.close(own)
            self._errors.listen()
        self._is_ready = False
        self._answer()
        self._is_ready = True

    @property
    def subject(self) -> str:
        """The work of the process, as sentences name it."""
        return self._asked.subject

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if self._failure is None:
            self._stopped()
        elif isinstance(error, Exception) and error is not self._failure:
            raise self._failure from None

    def ask(self, what: int, *parts: bytes) -> Message:
        """Tell the process what to do; return its message.

        Raises
        ------
        CubecoreError
            If the process ended, or its time is over.
        RanAheadError
            If a core went on behind a wait, and must not.
        """
        if self._failure is not None:
            raise self._failure
        raw = command(what, parts)
        with contextlib.suppress(BrokenPipeError):  # it has ended, which is read below
            while raw:
                raw = raw[os.write(self._write, raw) :]
        return self._answer()

    def recorded(self, message: Message) -> tuple[bytes, bytes, bytes, bytes]:
        """Return what a core has recorded: kinds, lines, addresses and reads."""
        pages, count = self._pages, 4 * message.recorded
        return (
            pages[_KINDS : _KINDS + count],
            pages[_WHERES : _WHERES + count],
            pages[_ADDRESSES : _ADDRESSES + 8 * message.addresses],
            pages[_READS : _READS + _READ_BYTES * message.reads],
        )

    def symbol(
        self,
        library: Path,
        name: str,
        *,
        answer_host: Callable[[Message], Message],
        copied: bool = False,
    ) -> int:
        """Return the address of a symbol of a library; of a copy with variables of its own.

        `answer_host` answers what the initialisers of its variables ask the host, and returns the
        next message.

        Raises
        ------
        CubecoreError
            If the library does not load.
        """
        given = text(os.fsencode(library)), text(name.encode())
        answer = self.ask(Commands.SYMBOL, words(copied), *given)
        while answer.what == Asks.HOST:
            answer = answer_host(answer)
        address = answer.word()
        if not address:
            subject = self.subject
            raise unable(subject, f"{subject} does not load: {both_ends(answer.said())}")
        return address

    def placed(self, raw: bytes) -> int:
        """Return the address of a copy of these bytes in the process."""
        return self.ask(Commands.PLACE, text(raw)).word()

    def tell(self, what: int, *parts: bytes) -> Message:
        """Tell the process to do what is done when it answers.

        Raises
        ------
        CubecoreError
            If the process ended, or its time is over.
        """
        answer = self.ask(what, *parts)
        assert answer.what == Asks.DONE
        return answer

    def _answer(self) -> Message:
        answer, late = self._received(self._end)
        if late or not is_whole(answer):
            self._fail(answer, late=late)
        return Message(answer)

    # --- its end

    def _received(self, end: float, raw: bytes = b"") -> tuple[bytes, bool]:
        """Return what the process wrote behind `raw`, and whether its time ran out."""
        errors = self._errors
        # Answers and stderr are polled together: a kernel that prints much must not block on a full
        # pipe. Output is held back for a moment, as it may be the reason for which the process is
        # about to end.
        while (left := end - time.monotonic()) > 0:
            wait_s = min(left, HOLD_S if errors.holds else _LONGEST_WAIT_S)
            ready = self._poll.poll(1000 * wait_s)
            if not ready:
                errors.let_go()
            for file, _ in ready:
                if file == self._read:
                    part = os.read(file, _PART_BYTES)
                    raw += part
                    if not part or is_whole(raw) or is_other(raw):
                        return raw, False
                elif not errors.pass_on():
                    self._poll.unregister(file)
        return raw, True

    def _fail(self, raw: bytes, *, late: bool) -> NoReturn:
        """Raise the sentence on a process that does not answer."""
        if late:  # let it say where it is
            with contextlib.suppress(OSError):
                os.kill(self._process, signal.SIGXCPU)
            raw, _ = self._received(time.monotonic() + _LAST_WORDS_S, raw)
            raw = b"" if is_whole(raw) else raw  # a message that came too late
        box = self._box
        silent = not late and not raw and not box.signal and _goes_on(self._process)
        status, said = self._stopped()
        if box.signal == Ends.RAN_AHEAD:
            self._failure = RanAheadError()
        elif not self._is_ready and said:
            remedy = "another compiler, or its flags, may be named in CUBECORE_CXX"
            sentence = f"{self.subject} does not start: {both_ends(said)}"
            self._failure = unable(self.subject, sentence, remedy)
        else:
            end, remedy = _end(box, status, self._asked, said, late=late, silent=silent, raw=raw)
            self._failure = _at(box, self._asked, end, remedy or self.remark)
            ends = {box.signal, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}
            self._failure.origin = TIME_LIMIT if late or signal.SIGXCPU in ends else ""
        raise self._failure

    def _stopped(self) -> tuple[int, str]:
        """End the process, and all that it has begun; return how it ended, and its last line."""
        # Descendants first, as they are found by their parent; then the group, for those that are
        # in it; then the process itself, whose number is free only once it has been waited for.
        child = self._process
        end_descendants(child)
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        end_strays(self._read)
        for own in (self._read, self._write):
            os.close(own)
        keep = not self._is_ready or self._box.signal in {signal.SIGABRT, Ends.TERMINATED}
        return status, self._errors.close(keep=keep)


def _goes_on(child: int) -> bool:
    """Return whether a process whose end of the pipe is closed does not end, either."""
    end = time.monotonic() + _LAST_WORDS_S
    if not hasattr(os, "waitid"):  # of macOS only later
        return False
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return True
        time.sleep(_LOOK_S)
    return False


def _end(
    box: Box,
    status: int,
    asked: ChildSubject,
    said: str,
    *,
    late: bool,
    silent: bool,
    raw: bytes,
) -> tuple[str, str]:
    """Return how a child ended without an answer, and the remedy; `said` is its last line."""
    number = box.signal or (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    end, remedy = "closed the pipe of its answer", ""
    if number == Ends.CLOSED:
        return end, remedy
    if silent:
        end = f"{end}, or became another program"
    elif late:
        end = f"did not end within {asked.timeout_s:g} s"
        remedy = "check its loops, or raise --timeout"
    elif raw:
        end = "wrote to the pipe of its answer"
    elif not number:
        end, remedy = f"called exit({os.WEXITSTATUS(status)})", asked.ends
    else:
        end = _crash(box, number, asked, said)
        remedy = "use GetValue and SetValue" if number == Ends.BY_POINTER else remedy
    return end, remedy


def _crash(box: Box, number: int, asked: ChildSubject, said: str) -> str:
    if number in {signal.SIGSEGV, signal.SIGBUS}:
        got = _access(box, asked)
    elif number == Ends.BY_POINTER:
        got = f"an unsupported access to byte {box.address} of UB"
    elif number == Ends.TERMINATED:
        got, said = "std::terminate", one_line(box.said) or said
    else:
        got = _SIGNALS.get(number, f"signal {number} ({signal.strsignal(number)})")
    known = box.signal and box.core < len(asked.cores)
    end = f"ended with {got}" + (f" on {asked.cores[box.core]}" if known else "")
    return f"{end}: {both_ends(said)}" if said else end


def _access(box: Box, asked: ChildSubject) -> str:
    """Return what a violation of memory was; without the runtime's words no address is known."""
    if not box.signal or box.address == _NO_ADDRESS:
        return "an access to an unmapped address"
    if abs(box.address - box.stack) < _NEAR_STACK:
        return "a stack overflow"
    return f"an access to {asked.named(box.address) or f'address {box.address:#x}'}"


def _at(box: Box, asked: ChildSubject, end: str, remedy: str) -> CubecoreError:
    place = asked.place
    if box.line:
        function = function_as_written(one_line(box.function))
        place = location_of(one_line(box.file), box.line, function)
    error = unable(asked.subject, f"{asked.subject} {end}", remedy)
    return error if place is None else KernelError.at(place, error)

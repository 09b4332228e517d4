"""Another process for a user's machine code: whatever it does, this one goes on.

The child has its own process group, limits of time and memory, and no core dumps. It answers
through a pipe; a crash leaves its signal, its address and the last issue in a page that both
processes see. It ends when it is killed: until then the processes that it has begun are its own.
"""

import contextlib
import ctypes
import errno
import gc
import io
import mmap
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

from cubecore.dtypes import ELEMENT_TYPES, ElementType, element_type
from cubecore.errors import (
    CubecoreError,
    DeadlockError,
    RequestError,
    Violation,
    shortened,
    unable,
)
from cubecore.frontends.cpp.launch_options import TIMEOUT_S
from cubecore.frontends.cpp.signature import function_as_written
from cubecore.frontends.cpp.standard_error import HOLD_S, StandardError, one_line
from cubecore.frontends.cpp.strays import end_descendants, end_strays
from cubecore.frontends.source_locations import KernelError, location_of
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.tree import Location
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.memory.allocator import begin_process

if sys.platform != "win32":
    import resource

T = TypeVar("T")
MOST_MEMORY = 4 << 30
"""Bytes that the child may have beyond what it has at its start."""
_NEAR_STACK = 1 << 16
_NO_ADDRESS = 2**64 - 1
_LONGEST_WAIT_S = 1e6
_LENGTH_BYTES = 8
_LAST_WORDS_S = 1.0
_LOOK_S = 0.001
_KINDS = (KernelError, DeadlockError, RequestError, CubecoreError)
_SIGNALS: dict[int, str] = {
    signal.SIGFPE: "a division by zero",
    signal.SIGILL: "an illegal instruction of the host",
    signal.SIGABRT: "abort",
    signal.SIGTRAP: "a trap",
    signal.SIGKILL: "a kill, most likely for lack of memory",
    signal.SIGXCPU: "its limit of CPU time",
}


_RAN_AHEAD, _TERMINATED, _UNANSWERED = 1000, 1001, 1002
"""Numbers in the place of a signal's: the first two are the runtime's (crash.h)."""


class RanAheadError(Exception):
    """A core went on behind a wait and needs what it waited for: it must run with pauses."""


class Box(ctypes.Structure):
    """The report of a crash, as the runtime writes it."""

    _fields_ = (
        ("signal", ctypes.c_int32),
        ("core", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("line", ctypes.c_uint32),
        ("pipe", ctypes.c_int32),
        ("file", ctypes.c_char * 1024),
        ("function", ctypes.c_char * 256),
        ("said", ctypes.c_char * 256),
    )


def remark(page: int, text: str) -> None:
    """Leave a remark that the sentence on a crash ends with, where no line of a kernel is known."""
    Box.from_address(page).file = text.encode()[: Box.file.size - 1]


@dataclass(frozen=True, slots=True)
class ChildSubject:
    """The work of a child process, as the sentence about its end names it.

    `place` is its location where no line of it is known; `ends` how it should have ended.
    """

    subject: str
    timeout_s: float = TIMEOUT_S
    cores: tuple[str, ...] = ()
    place: Location | None = None
    ends: str = "a kernel returns"
    alone: bool = True


def answer_of(work: Callable[[], T], subject: str, timeout_s: float = TIMEOUT_S) -> T:
    """Return what `work` returns in another process.

    Raises
    ------
    CubecoreError
        The exception of the process, or the way in which the process ended.
    """
    return answered(lambda _: work(), ChildSubject(subject, timeout_s))


def answered(work: Callable[[int], T], asked: ChildSubject) -> T:
    """Return what `work`, given the address of the page, returns in another process.

    Raises
    ------
    CubecoreError
        The exception of the process, or the way in which the process ended.
    RanAheadError
        If a core went on behind a wait, and must not.
    """
    page = mmap.mmap(-1, mmap.PAGESIZE)
    box = Box.from_buffer(page)
    read, write = os.pipe()
    errors = StandardError()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS stay behind
        child = os.fork()
    if child == 0:
        os.close(read)
        errors.take()
        _child(work, ctypes.addressof(box), write, alone=asked.alone)
    os.close(write)
    errors.listen()
    try:
        raw, late = _received(read, errors, asked.timeout_s)
        if late:  # let it say where it is
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGXCPU)
            raw, _ = _received(read, errors, _LAST_WORDS_S, raw)
        silent = not late and not _is_whole(raw) and not box.signal and _goes_on(child)
    finally:
        status = _killed(child, read, alone=asked.alone)
        said = errors.close(keep=box.signal in {signal.SIGABRT, _TERMINATED})
    if box.signal == _RAN_AHEAD:
        raise RanAheadError
    try:
        good, value = pickle.loads(raw[_LENGTH_BYTES:])  # noqa: S301 - our own process wrote it
    except Exception:  # noqa: BLE001 - it ended before it had written all
        raise _ended(box, status, asked, said, late=late, silent=silent, raw=raw) from None
    if good:
        answer: T = value
        return answer
    if value is None:  # the user quits, at a stop
        raise KeyboardInterrupt
    raise _rebuilt(*value)


def _killed(child: int, read: int, *, alone: bool) -> int:
    """End a child, and all that it has begun; return how it ended."""
    end_descendants(child)
    if alone:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    end_strays(read)
    os.close(read)
    return status


class _Packer(pickle.Pickler):
    """Knows templates by their names: their classes are made when they are declared."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how a template or an element type is made again."""
        if isinstance(obj, Instruction):
            return _template, (obj.name, {f.name: getattr(obj, f.name) for f in fields(obj)})  # type: ignore[arg-type]
        if isinstance(obj, ElementType) and ELEMENT_TYPES.get(obj.name) is obj:
            return element_type, (obj.name,)
        return NotImplemented


def _template(name: str, values: dict[str, Any]) -> Instruction:
    return instructions()[name](**values)


def packed(value: Any) -> bytes:
    """Return a value in bytes, as a process tells it to the one that began it."""
    raw = io.BytesIO()
    _Packer(raw, pickle.HIGHEST_PROTOCOL).dump(value)
    return raw.getvalue()


def _child(work: Callable[[int], Any], page: int, write: int, *, alone: bool) -> None:
    box = Box.from_address(page)
    box.pipe = write
    try:
        gc.freeze()  # the parent's objects stay: looking at them would copy their pages
        _confine(alone=alone)
        _give_back_freed_memory()
        begin_process()
        try:
            raw = packed((True, work(page)))
        except CubecoreError as error:
            kind = next(
                n for n, kind_of_error in enumerate(_KINDS) if isinstance(error, kind_of_error)
            )
            raw = packed((False, (kind, error.violations, error.findings)))
        except KeyboardInterrupt:
            raw = packed((False, None))
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run here
            sentence = _sentence(error)
            violations = (Violation("the kernel", "", "", sentence=sentence),)
            raw = packed((False, (0, violations, ())))
        sys.stdout.flush()
        sys.stderr.flush()
        raw, at = len(raw).to_bytes(_LENGTH_BYTES, "little") + raw, 0
        while at < len(raw):
            at += os.write(write, raw[at : at + (1 << 20)])
    except BaseException:  # noqa: BLE001
        box.signal = _UNANSWERED
    finally:
        _rest(write)


def _sentence(error: BaseException) -> str:
    """Return a sentence about an exception that is none of ours."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return f"the launch must run in {MOST_MEMORY >> 30} GiB of memory beside its tensors"
    return f"the kernel raised {type(error).__name__}: {error}"


def _rest(write: int) -> NoReturn:
    """Wait for the parent's kill, or for its end, which closes the other side of a pipe."""
    with contextlib.suppress(BaseException):
        ended = select.poll()
        ended.register(write, 0)
        ended.poll()
    os._exit(0)


def _give_back_freed_memory() -> None:
    """Give the system the pages of freed blocks: to write them here would copy each of them."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)


def _confine(*, alone: bool) -> None:
    if alone:
        os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        system.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what it has begun stays below it
        with open("/proc/self/statm", "rb") as state:  # noqa: PTH123
            pages = int(state.read().split()[0])
        most = pages * mmap.PAGESIZE + MOST_MEMORY
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _received(
    read: int, errors: StandardError, timeout_s: float, held: bytes = b""
) -> tuple[bytes, bool]:
    """Return what the child wrote, behind what was `held`, and whether its time ran out.

    A process that the child has begun may hold the pipe open: the length says where it ends.
    """
    end = time.monotonic() + timeout_s
    raw = bytearray(held)
    while not _is_whole(raw):
        left = end - time.monotonic()
        if left <= 0:
            return bytes(raw), True
        wait_s = min(left, HOLD_S) if errors.holds else left
        ready = select.select([read, *errors.sources], [], [], min(wait_s, _LONGEST_WAIT_S))[0]
        if not ready:
            errors.let_go()
        if errors.sources and errors.sources[0] in ready:
            errors.pass_on()
        if read in ready:
            part = os.read(read, 1 << 20)
            if not part:
                break
            raw += part
    return bytes(raw), False


def _is_whole(raw: bytes | bytearray) -> bool:
    """Return whether an answer is all there; its length comes first."""
    length = int.from_bytes(raw[:_LENGTH_BYTES], "little")
    return len(raw) >= _LENGTH_BYTES + length


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


def _rebuilt(kind: int, violations: tuple[Violation, ...], findings: Any) -> CubecoreError:
    error = _KINDS[kind](violations)
    error.findings = tuple(findings)
    return error


def _ended(
    box: Box,
    status: int,
    asked: ChildSubject,
    said: str,
    *,
    late: bool,
    silent: bool,
    raw: bytes,
) -> CubecoreError:
    """Return the sentence on a child that ended without an answer; `said` is its last line."""
    number = box.signal or (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    end, remedy = "closed the pipe of its answer", ""
    if silent:
        end = f"{end}, or became another program"
    elif number != _UNANSWERED and raw:
        end = "wrote to the pipe of its answer"
    elif late:
        end = f"did not end within {asked.timeout_s:g} s"
        remedy = "check its loops, or raise --timeout"
    elif not number:
        end, remedy = f"called exit({os.WEXITSTATUS(status)})", asked.ends
    elif number != _UNANSWERED:
        end = _crash(box, number, asked, said)
    return _at(box, asked, end, remedy)


def _crash(box: Box, number: int, asked: ChildSubject, said: str) -> str:
    if number in {signal.SIGSEGV, signal.SIGBUS}:
        got = _access(box)
    elif number == _TERMINATED:
        got, said = "std::terminate", one_line(box.said) or said
    else:
        got = _SIGNALS.get(number, f"signal {number} ({signal.strsignal(number)})")
    known = box.signal and box.core < len(asked.cores)
    end = f"ended with {got}" + (f" on {asked.cores[box.core]}" if known else "")
    return f"{end}: {shortened(said)}" if said else end


def _access(box: Box) -> str:
    """Return what a violation of memory was; without the runtime's words no address is known."""
    if not box.signal or box.address == _NO_ADDRESS:
        return "an access to an unmapped address"
    near = abs(box.address - box.stack) < _NEAR_STACK
    return "a stack overflow" if near else f"an access to address {box.address:#x}"


def _at(box: Box, asked: ChildSubject, end: str, remedy: str) -> CubecoreError:
    place = asked.place
    if box.line:
        function = function_as_written(one_line(box.function))
        place = location_of(one_line(box.file), box.line, function)
    elif box.file:
        remedy = remedy or one_line(box.file)
    error = unable(asked.subject, f"{asked.subject} {end}", remedy)
    return error if place is None else KernelError.at(place, error)

"""Attacks on a box: each returns normally only if it got through.

`python attacks.py KIND` tries all of them in a box of a kind, and prints what became of each: so
they run as another user with an interpreter that this user has, too.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.sandbox.box import opened
from cubecore.sandbox.confinement import PROCESSES
from cubecore.sandbox.view import BoxView, Scratch

SECRET = "cubecore-secret-of-the-caller"
SCRATCH = Path("/tmp")
SCRATCH_BYTES = 8 << 20
CALLS = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "mount": (165, 40),
    "chroot": (161, 51),
    "open_by_handle_at": (304, 265),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "clone3": (435, 435),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "x32": (0x40000000 + 39, None),
}
"""System calls that must not be there."""


def call(name: str) -> None:
    """Make a system call with arguments of 0: one that is there says something else than EPERM."""
    number = CALLS[name][os.uname().machine == "aarch64"]
    if number is None:
        raise PermissionError
    library = ctypes.CDLL(None, use_errno=True)
    zeros = (ctypes.c_long(0) for _ in range(6))
    library.syscall(ctypes.c_long(number), *zeros)
    if ctypes.get_errno() in {errno.EPERM, errno.ENOSYS}:
        raise PermissionError


def connects_to_the_network(_: Path) -> None:
    socket.create_connection(("127.0.0.1", 22), 1)


def asks_the_kernel_for_sockets(_: Path) -> None:
    for family in (socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 38, 40):  # AF_ALG, VSOCK
        with suppress(OSError):
            socket.socket(family, socket.SOCK_DGRAM)
            return
    raise PermissionError


def connects_to_a_socket_of_the_caller(outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as held:
        held.connect(f"\0{outside}")


def reads_a_file_of_the_caller(outside: Path) -> None:
    outside.read_text("utf-8")


def reads_the_passwords(_: Path) -> None:
    Path("/etc/shadow").read_bytes()


def reads_the_hidden_file(outside: Path) -> None:
    if not (outside.parent / "shown" / "reference.py").read_bytes():
        raise PermissionError


def writes_to_what_it_reads(outside: Path) -> None:
    (outside.parent / "shown" / "kernel.cpp").write_text("changed")


def changes_the_rights_of_what_it_reads(outside: Path) -> None:
    (outside.parent / "shown" / "kernel.cpp").chmod(0o777)


def changes_the_time_of_what_it_reads(outside: Path) -> None:
    os.utime(outside.parent / "shown" / "kernel.cpp", (1, 1))


def writes_to_the_system(_: Path) -> None:
    for folder in ("/usr", "/", "/etc", "/proc/sys/kernel", "/root", "/home", "/var", "/dev"):
        with suppress(OSError):
            Path(folder, "cubecore-attack").write_text("x")
            return
    raise PermissionError


def follows_a_link_of_the_submission(outside: Path) -> None:
    (outside.parent / "shown" / "link").read_bytes()


def makes_a_device(_: Path) -> None:
    os.mknod(SCRATCH / "disk", 0o600 | 0o060000, os.makedev(254, 0))


def fills_the_disk(_: Path) -> None:
    part = b"x" * (1 << 20)
    with (SCRATCH / "large").open("wb") as file:
        for _ in range((SCRATCH_BYTES >> 20) + 1):
            file.write(part)


def takes_all_memory(_: Path) -> None:
    held = [b"x" * (1 << 30) for _ in range(6)]
    del held


def forks_for_ever(_: Path) -> None:
    """Fork until it is refused; one more than the limit got through."""
    for _number in range(2 * PROCESSES):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)


def leaves_a_process(_: Path) -> None:
    """Leave a process in a session of its own: the runner looks if one is left."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(60)
        os._exit(0)
    raise PermissionError


def stops_the_parent(_: Path) -> None:
    os.kill(os.getppid() or 1 << 22, signal.SIGSTOP)


def kills_everybody(_: Path) -> None:
    """Kill whoever can be reached: the runner is still there."""
    os.kill(-1, signal.SIGURG)
    raise PermissionError


def signals_the_group(_: Path) -> None:
    signal.signal(signal.SIGURG, signal.SIG_IGN)
    os.killpg(0, signal.SIGURG)
    raise PermissionError


def sees_processes_of_others(_: Path) -> None:
    seen = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
    if len(seen) < 6:
        raise PermissionError


def reads_variables_of_the_caller(_: Path) -> None:
    raw = b""
    for file in Path("/proc").glob("*/environ"):
        with suppress(OSError):
            raw += file.read_bytes()
    if SECRET.encode() not in raw and SECRET not in os.environ.values():
        raise PermissionError


def reads_memory_of_the_first_process(_: Path) -> None:
    with Path("/proc/1/mem").open("r+b") as file:
        file.read(1)


def writes_memory_of_its_parent(_: Path) -> None:
    subprocess.run(["sh", "-c", "exec 3<>/proc/$PPID/mem"], capture_output=True, check=True)


def uses_files_of_its_parent(_: Path) -> None:
    """Write to an open file of the process that runs the submission, its answer for instance."""
    _, write = os.pipe()
    command = f"echo forged > /proc/$PPID/fd/{write}"
    subprocess.run(["sh", "-c", command], capture_output=True, check=True)


def becomes_root(_: Path) -> None:
    os.setuid(0)
    if os.getuid() != 0 or "CapEff:\t0000000000000000" in Path("/proc/self/status").read_text():
        raise PermissionError


def starts_a_program_of_root(_: Path) -> None:
    done = subprocess.run(["su", "-c", "id", "root"], capture_output=True, timeout=5, check=False)
    if done.returncode:
        raise PermissionError


def raises_its_limits(_: Path) -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (1 << 16, 1 << 16))


def uses_files_of_the_caller(_: Path) -> None:
    """Use an open file that it was not given: those of the runner are closed."""
    if len([*Path("/proc/self/fd").iterdir()]) <= 5:
        raise PermissionError


def sets_the_clock(_: Path) -> None:
    time.clock_settime(time.CLOCK_REALTIME, time.time() + 1)


def makes_a_namespace(_: Path) -> None:
    subprocess.run(["unshare", "-Ur", "true"], capture_output=True, timeout=5, check=True)


def opens_another_box(_: Path) -> None:
    """Open a box where user namespaces are missing: refused, with the reason."""
    with opened("auto", BoxView()):
        pass


ATTACKS = {
    function.__name__: function
    for function in (
        connects_to_the_network,
        asks_the_kernel_for_sockets,
        connects_to_a_socket_of_the_caller,
        reads_a_file_of_the_caller,
        reads_the_passwords,
        reads_the_hidden_file,
        writes_to_what_it_reads,
        changes_the_rights_of_what_it_reads,
        changes_the_time_of_what_it_reads,
        writes_to_the_system,
        follows_a_link_of_the_submission,
        makes_a_device,
        fills_the_disk,
        takes_all_memory,
        forks_for_ever,
        leaves_a_process,
        stops_the_parent,
        kills_everybody,
        signals_the_group,
        sees_processes_of_others,
        reads_variables_of_the_caller,
        reads_memory_of_the_first_process,
        writes_memory_of_its_parent,
        uses_files_of_its_parent,
        becomes_root,
        starts_a_program_of_root,
        raises_its_limits,
        uses_files_of_the_caller,
        sets_the_clock,
        makes_a_namespace,
        opens_another_box,
    )
}


def tried(kind: str) -> dict[str, str]:
    """Return what became of each attack: how it was contained, or that it was not."""
    with tempfile.TemporaryDirectory() as name:
        outside = Path(name, "outside.txt")
        outside.write_text(SECRET)
        shown = Path(name, "shown")
        shown.mkdir()
        for each in ("kernel.cpp", "reference.py"):
            (shown / each).write_text("text")
        (shown / "link").symlink_to(outside)
        with socket.socket(socket.AF_UNIX) as held:
            held.bind(f"\0{outside}")
            held.listen()
            view = BoxView((shown,), (shown / "reference.py",), (Scratch(SCRATCH, SCRATCH_BYTES),))
            found = {each: attempt(kind, view, each, outside) for each in (*ATTACKS, *CALLS)}
        assert outside.read_text() == SECRET
        assert (shown / "kernel.cpp").read_text() == "text"
        return found


def attempt(kind: str, view: BoxView, name: str, outside: Path) -> str:
    """Try one attack in a box."""
    read, write = os.pipe()
    with opened(kind, view) as box:
        assert box is not None
        namespace = Path(f"/proc/{box.holder.process}/ns/pid").readlink()
        child = os.fork()
        if child == 0:
            try:
                box.enter((write,))
                os.write(write, attacked(name, outside).encode())
            finally:
                os._exit(0)
        os.close(write)
        answer = os.read(read, 1 << 12).decode() or "ended"
        os.close(read)
        os.waitpid(child, 0)
    left = [each for each in Path("/proc").glob("[0-9]*/ns/pid") if linked(each) == namespace]
    return f"left {left}" if left else answer


def attacked(name: str, outside: Path) -> str:
    """Attack, in the box."""
    try:
        ATTACKS[name](outside) if name in ATTACKS else call(name)
    except (OSError, MemoryError, ValueError, CubecoreError, subprocess.SubprocessError) as error:
        return f"contained: {error}"
    return "got through"


def linked(path: Path) -> Path | None:
    """Return what a link of /proc leads to, if its process is still there."""
    try:
        return path.readlink()
    except OSError:
        return None


if __name__ == "__main__":
    print(json.dumps(tried(sys.argv[1])))

"""A debugger's dialogue: commands in, what they show out, at a terminal or from a script."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from linecache import getline

from cubecore.errors import CubecoreError, did_you_mean, refuse
from cubecore.frontends.kernels.debugging import look
from cubecore.frontends.source_locations import kernel_frame
from cubecore.machine.debug.breakpoints import Break, Range, Stop, evaluated
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.debug.matrix_view import LAYOUTS, MatrixView

PROMPT = "(cubecore) "
HELP = """\
  step [N]            go on to the next instruction, or the N-th next (s)
  continue            go on to the next break or watch (c)
  break WHERE         stop before asc_add, #12 or kernel.py:14 [if EXPRESSION] (b)
  watch WHERE         stop behind what touches UB:0x100+64, or c:0+64 of a tensor [/r or /w] (w)
  clear               forget every break and watch
  dump WHERE [TYPE] SHAPE [LAYOUT]
                      show x 4x16 NZ, or UB:0x100 float 4x16, as the matrix that it is (d)
  print EXPRESSION    of the kernel's variables, the instruction's parameters and operands (p)
  where               the instruction with its operands, the breaks and watches
  quit                leave; the arrays stay as they were (q)
"""
_SHORT = {"s": "step", "c": "continue", "b": "break", "w": "watch", "d": "dump", "p": "print"}
_SHORT |= {"q": "quit", "h": "help"}
_SHAPE = re.compile(r"\d+(x\d+)*")


@dataclass(frozen=True, slots=True)
class Dump:
    """The request to show elements: address, type, shape and layout, as words."""

    where: str
    dtype: str | None
    shape: tuple[int, ...]
    layout: str | None

    @classmethod
    def of(cls, text: str) -> "Dump":
        """Return what ``x 4x16 NZ`` or ``UB:0x100 float 4x16`` asks for.

        Raises
        ------
        RequestError
            If the shape is malformed, or there are too many words.
        """
        where, *words = text.split() or [""]
        shapes = [word for word in words if _SHAPE.fullmatch(word)]
        layouts = [word for word in words if word.upper() in LAYOUTS]
        kinds = [word for word in words if word not in {*shapes, *layouts}]
        if len(shapes) != 1 or len(layouts) > 1 or len(kinds) > 1:
            raise refuse("a dump", "be WHERE [TYPE] SHAPE [LAYOUT], such as x 4x16 NZ", repr(text))
        shape = tuple(int(extent) for extent in shapes[0].split("x"))
        kind, layout = (next(iter(matches), None) for matches in (kinds, layouts))
        return cls(where, kind, shape, layout)


class Dialogue:
    """Stops a script's launches and asks what to do.

    `read` gives a command without its end of line, None when there are no more: then nothing stops
    again, and what would have is told. `write` takes whole lines. `dumps` are shown at every stop;
    where nothing else is asked for, at each core's end.
    """

    def __init__(
        self,
        read: Callable[[], str | None],
        write: Callable[[str], None],
        *,
        breaks: Sequence[str] = (),
        watches: Sequence[str] = (),
        dumps: Sequence[str] = (),
        step: bool = False,
    ) -> None:
        self._read, self._write = read, write
        self._dumps = [Dump.of(text) for text in dumps]
        self._asks = True
        self.debugger = LaunchDebugger(self._stopped, kernel_frame)
        self.debugger.breaks += map(Break.of, breaks)
        self.debugger.watches += map(Range.of, watches)
        self.debugger.steps = 1 if step else None
        self.debugger.ends = not (breaks or watches or step)

    def finish(self) -> None:
        """Say which breaks and watches nothing has met."""
        for spec in self.debugger.unmet():
            kind = "break" if isinstance(spec, Break) else "watch"
            self._write(f"{kind} {spec}: nothing met it\n")

    def _stopped(self, stop: Stop) -> None:
        where = stop.location
        self._write(f"{stop}\n")
        line = getline(where.file, where.line).strip()
        if line and stop.reason != "end":
            self._write(f"  {where.line} | {line}\n")
        for dump in self._dumps:
            self._answer(partial(self._shown, stop, dump))
        while self._asks and stop.reason != "end":
            command = self._read()
            if command is None:
                self._asks = False
            elif command.strip() and self._answer(partial(self._done, command.strip(), stop)):
                return

    def _answer(self, act: Callable[[], str | None]) -> bool:
        """Show what a command answers; True if the run is to go on."""
        try:
            text = act()
        except CubecoreError as error:
            text = f"{error}\n"
        if text is not None:
            self._write(text)
        return text is None

    def _done(self, command: str, stop: Stop) -> str | None:
        """Carry out a command; None goes on with the run.

        Raises
        ------
        KeyboardInterrupt
            When the user quits.
        """
        word, _, rest = command.partition(" ")
        word, rest, debugger = _SHORT.get(word, word), rest.strip(), self.debugger
        if word == "step":
            debugger.steps = _count(rest)
            return None
        if word == "continue":
            return None
        if word == "break":
            debugger.breaks.append(Break.of(rest))
            return ""
        if word == "watch":
            debugger.watches.append(Range.of(rest))
            return ""
        if word == "clear":
            debugger.breaks.clear()
            debugger.watches.clear()
            return ""
        if word == "dump":
            return self._shown(stop, Dump.of(rest))
        if word == "print":
            return f"  {evaluated(rest, stop.names)}\n"
        if word == "where":
            asked = [f"  break {b}" for b in debugger.breaks]
            asked += [f"  watch {w}" for w in debugger.watches]
            return "\n".join([str(stop), *filter(None, [stop.about()]), *asked]) + "\n"
        if word == "quit":
            raise KeyboardInterrupt
        if word == "help":
            return HELP
        commands = ("step", "continue", "break", "watch", "clear", "dump", "print", "where", "quit")
        raise refuse(
            "a command", f"be {', '.join(commands)} or help", word, did_you_mean(word, commands)
        )

    def _shown(self, stop: Stop, dump: Dump) -> str:
        view: MatrixView = look(
            stop, self.debugger, dump.where, dump.shape, dump.layout, dump.dtype
        )
        return "\n".join(f"  {line}" for line in f"{dump.where}: {view}".splitlines()) + "\n"


def _count(text: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or int(text) < 1:
        raise refuse("step", "be given a number above 0", text)
    return int(text)

"""Dialects that kernels are written in: their names of instructions, flags and barriers.

A name comes from the instruction's own declaration, which every front end reads.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cubecore.frontends.diagnosis import register_words
from cubecore.isa.catalogue import Spelling, instructions, spelled
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev

_WORD = re.compile(r"[A-Za-z]\w*(?:::\w+)*")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect: its key among an instruction's names, and how it writes what orders pipes.

    `flag` takes a call, two pipes and an event, `barrier` a call and a pipe. `receiver` stands in
    front of each call. `behind_write` and `behind_read` say by which calls of a
    queue an access follows one, `all_cores` by which call all cores wait for each other, and
    `start_zero` what makes a matmul start from 0. `matmul_calls` compute a block of a matmul.
    `arguments` are the operands of calls that take them in another order than the instruction,
    `parameters` what calls name the instruction's parameters. `cores_signal`: the calls by which
    one vector core tells another that it has written, and waits for that.
    """

    key: str
    flag: str = ""
    barrier: str = ""
    receiver: str = ""
    behind_write: str = ""
    behind_read: str = ""
    all_cores: str = ""
    start_zero: str = ""
    matmul_calls: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cores_signal: tuple[str, str] | None = None

    def name(self, kind: type[Instruction]) -> str:
        """Return the name of an instruction; the instruction set's where the dialect has none."""
        name = kind.names.get(self.key)
        if name is None and self.key == C_API.key:
            name = next((each for each in kind.variants if each.startswith("asc_")), None)
        return (name or kind.name).partition("(")[0]

    def operands_of(self, call: str, kind: type[Instruction]) -> tuple[str, ...]:
        """Return the operands that the first arguments of a call are, as far as they are known.

        A function of the class API that takes several instructions has arguments of its own.
        """
        if call in self.arguments:
            return self.arguments[call]
        own = self.name(kind)
        composed = self.key == "cpp" and call not in {"", own} and not call.startswith("asc_")
        return () if composed else tuple(each.name for each in kind.declared)

    def set_flag(self, src: str, dst: str, event: int | None) -> str:
        """Return the call that sets a flag."""
        return self._flag(SetFlag, src, dst, event)

    def wait_flag(self, src: str, dst: str, event: int | None) -> str:
        """Return the call that waits for a flag."""
        return self._flag(WaitFlag, src, dst, event)

    def pipe_barrier(self, pipe: str) -> str:
        """Return the call that makes a pipe wait for all that it has."""
        return self.receiver + self.barrier.format(call=self.name(PipeBarrier), pipe=pipe)

    def queued(self, how: str, queue: str) -> str:
        """Return how a queue orders what follows a write or a read; nothing without queues."""
        text = self.behind_write if how == "write" else self.behind_read
        return text.format(queue=queue or "a queue")

    def signals(self, *, across_parts: bool) -> tuple[str, str]:
        """Return the calls that signal another core, maybe from AIC to AIV, and wait for it."""
        if self.cores_signal is not None and not across_parts:
            return self.cores_signal
        pair = self.name(FftsCrossCoreSync), self.name(WaitFlagDev)
        return self.receiver + pair[0], self.receiver + pair[1]

    def _flag(self, kind: type[Instruction], src: str, dst: str, event: int | None) -> str:
        number = "event" if event is None else event
        text = self.flag.format(call=self.name(kind), src=src, dst=dst, event=number)
        return self.receiver + text

    def in_words(self, sentence: str, calls: Collection[str] = ()) -> str:
        """Return a sentence in which each instruction has the dialect's name.

        A name without an underscore may be an English word, and stays. `calls` stand at the line
        that the sentence is about.
        """

        def renamed(match: re.Match[str]) -> str:
            word = match.group()
            return self._renamed(word) if "_" in word else word

        if self.key == C_API.key:
            sentence = register_words.of_c_api(sentence, self.receiver, calls)
        elif self.key == CLASS_API.key:
            sentence = register_words.of_class_api(sentence)
        return _WORD.sub(renamed, sentence)

    def _renamed(self, word: str) -> str:
        """Return the dialect's name for what has another name here, if it has just one."""
        names = {self._own(kind, fixed, word) for kind, fixed in _spelled(word)} - {""}
        return names.pop() if len(names) == 1 else word

    def _own(self, kind: type[Instruction], fixed: Mapping[str, Any], word: str) -> str:
        """Return the dialect's name for an instruction with the parameters that a name fixes."""
        of_c_api = self.key == C_API.key
        if of_c_api and word.startswith("asc_"):
            return word
        alike = (name for name, values in kind.variants.items() if fixed and values == fixed)
        own = next((name for name in alike if name.startswith("asc_") == of_c_api), "")
        return own or (self.name(kind) if self.key in kind.names or kind.variants else "")


@cache
def _spelled(word: str) -> tuple[Spelling, ...]:
    declared = instructions().get(word)
    return ((declared, {}),) if declared is not None else spelled(word)


_OF_COPIES = {
    "n_burst": "blockCount",
    "len_burst": "blockLen",
    "src_gap": "srcStride",
    "dst_gap": "dstStride",
    "left_padding_num": "leftPadding",
    "right_padding_num": "rightPadding",
}
"""Names in DataCopyParams, DataCopyExtParams and DataCopyPadExtParams."""
_FIRST_TWO = (
    *("DataCopy", "DataCopyPad", "Fixpipe", "Cast"),
    *(f"{part}Reduce{what}" for part in ("Whole", "Block") for what in ("Max", "Min", "Sum")),
    *("PairReduceSum", "RepeatReduceSum"),
)
"""Calls that take several instructions, whose first arguments are the result and its source."""
CLASS_API = Dialect(
    "cpp",
    "{call}<HardEvent::{src}_{dst}>({event})",
    "{call}<PIPE_{pipe}>()",
    behind_write="pass it through EnQue and DeQue of {queue}",
    behind_read="take it by AllocTensor of {queue} behind FreeTensor",
    all_cores="SyncAll()",
    start_zero="set cmatrixInitVal of its MmadParams to true",
    matmul_calls=("Iterate", "IterateAll", "IterateBatch", "IterateNBatch", "GetTensorC"),
    arguments={
        "Select": ("dst", "sel", "src0", "src1"),
        **dict.fromkeys(_FIRST_TWO, ("dst", "src")),
    },
    parameters={"DataCopy": _OF_COPIES, "DataCopyPad": _OF_COPIES},
    cores_signal=("IBSet", "IBWait"),
)
"""The class API of C++: DataCopy, TQue, SetFlag."""
C_API = Dialect(
    "c_api",
    "{call}(PIPE_{src}, PIPE_{dst}, {event})",
    "{call}(PIPE_{pipe})",
    start_zero="pass true as its last argument, c_matrix_init_val,",
)
"""The C API: asc_copy_gm2ub, asc_sync_notify."""
PYTHON = Dialect(
    C_API.key,
    '{call}("PIPE_{src}", "PIPE_{dst}", {event})',
    '{call}("PIPE_{pipe}")',
    receiver="core.",
    start_zero="pass True as its last argument, c_matrix_init_val,",
)
"""The C API as methods of a core, in Python."""
TIK = Dialect("tik", start_zero="use init_l1out of matmul or the last argument of mmad")
"""TIK, which sets its flags itself."""
DIALECTS = {"cpp": CLASS_API, "c": C_API, "python": PYTHON, "tik": TIK}
"""Dialects by the language that a front end has."""

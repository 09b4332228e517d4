"""Requests of cores about Matmul objects: to run a call, to send it, to serve a block's AIVs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cubecore.errors import CubecoreError, refuse
from cubecore.frontends.cpp.launch.recording.matmul_object.block_program import (
    NO_ADDRESSES,
    kinds_of,
)
from cubecore.frontends.cpp.launch.recording.matmul_object.call import matmul_call
from cubecore.frontends.cpp.launch.recording.matmul_object.cube_core import (
    CubeCore,
    OwnMove,
    Programs,
)
from cubecore.frontends.cpp.launch.recording.matmul_object.service import (
    Messages,
    answered,
    awaited,
    received_any,
    received_from,
    sent,
)
from cubecore.frontends.cpp.launch.recording.native_core import NativeCore
from cubecore.frontends.cpp.matmul_wire import OPERANDS, MatmulAsk, MatmulBits, MatmulCall
from cubecore.frontends.source_locations import KernelError
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.trace import Names

if TYPE_CHECKING:
    from cubecore.machine.memory.buffers import GlobalTensor


class MatmulRequests:
    """The Matmul objects of one launch."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._programs: Programs | None = None
        self._cubes: dict[int, CubeCore] = {}
        self._blocks: dict[tuple[int, int], Messages] = {}
        self._scratch: dict[tuple[str, int], GlobalTensor] = {}
        self._registered: set[tuple[int, int, int]] = set()
        self._gone: dict[tuple[int, int], int] = {}
        self._serving: set[tuple[int, int]] = set()
        self._working: dict[int, Iterator[OwnMove]] = {}
        self._moves: dict[int, tuple[int, ...]] = {}

    @staticmethod
    def call(raw: bytes, types: Iterable[bytes | None]) -> MatmulCall:
        """Return a call from its bytes and the names of its types."""
        return matmul_call(raw, types)

    def asked(
        self, native: NativeCore, what: int, call: MatmulCall | None, number: int, where: int
    ) -> int:
        """Do what a core asks; return the answer.

        Raises
        ------
        KernelError
            If the tiling is not legal, or the kernel does not carry what is asked.
        """
        try:
            if what == MatmulAsk.RUN and call is not None:
                return self._begin(native, self._cube(native).run(call, where))
            if what == MatmulAsk.SEND and call is not None:
                self._send(native, call, where)
            elif what == MatmulAsk.AWAIT:
                self._issue(native, [awaited(_client(native))], where)
            elif what == MatmulAsk.SERVE:
                return self._begin(native, self._serve(native, where))
            elif what == MatmulAsk.GO_ON:
                return self._go_on(native)
            elif what == MatmulAsk.FACT:
                return self._moves[native.number][number]
            elif what == MatmulAsk.FREE:
                self._cube(native).free(where)
            elif what == MatmulAsk.SCRATCH and call is not None:
                return self._scratch_at(native, OPERANDS[call.bits], number)
        except KernelError:
            raise
        except CubecoreError as error:
            raise KernelError.at(self._names.locations[where], error) from None
        return 0

    def ended(self, native: NativeCore, where: int) -> None:
        """Let go of what a core holds at its end; an AIV's block is told.

        Raises
        ------
        KernelError
            If the AIC of an AIV's block serves it, and the AIV has not registered its objects.
        """
        if native.handle.core.id.is_aic:
            cube = self._cubes.get(native.number)
            if cube is not None:
                cube.free(where)
            return
        block, client = self._blocks.get(_block(native)), _client(native)
        if (*_block(native), client) not in self._registered:
            self._gone[_block(native)] = client
            if _block(native) in self._serving:
                raise self._left(native, where)
        elif block is not None:
            block.append((client, None, where))
            self._issue(native, sent(client), where)

    def _begin(self, native: NativeCore, work: Iterator[OwnMove]) -> int:
        self._working[native.number] = work
        return self._go_on(native)

    def _go_on(self, native: NativeCore) -> int:
        """Work up to a move that the kernel makes itself; return 1 there, and 0 at the end."""
        move = next(self._working[native.number], None)
        if move is None:
            del self._working[native.number]
            return 0
        self._moves[native.number] = move.facts()
        return 1

    def _issue(self, native: NativeCore, templates: Sequence[Instruction], where: int) -> None:
        native.take(kinds_of(templates, self._names), NO_ADDRESSES, where)

    def _cube(self, native: NativeCore) -> CubeCore:
        cube = self._cubes.get(native.number)
        if cube is None:
            if self._programs is None:
                self._programs = Programs(native.handle.core.chip)
            cube = CubeCore(self._programs, self._names, native.take)
            self._cubes[native.number] = cube
        return cube

    # --- AIVs and their AIC

    def _send(self, native: NativeCore, call: MatmulCall, where: int) -> None:
        client = _client(native)
        self._blocks.setdefault(_block(native), Messages()).append((client, call, where))
        self._issue(native, sent(client), where)

    def _serve(self, native: NativeCore, where: int) -> Iterator[OwnMove]:
        """Serve the AIVs of an AIC's block until all have ended; an AIV says that it takes part."""
        block = self._blocks.setdefault(_block(native), Messages())
        if not native.handle.core.id.is_aic:
            self._registered.add((*_block(native), _client(native)))
            return
        self._serving.add(_block(native))
        if _block(native) in self._gone:
            raise self._left(native, where)
        cube, ended = self._cube(native), 0
        clients = native.handle.core.chip.mix_aiv_per_aic
        shared: dict[int, tuple[MatmulCall, int]] = {}
        begun: dict[int, list[tuple[MatmulCall, int]]] = {}  # till the store: L0C is for all
        while ended < clients:
            self._issue(native, [received_any()], where)
            client, call, at = block.popleft()
            self._issue(native, [received_from(client)], at)
            if call is None:
                ended += 1
            # Calls that both AIVs make together are computed once, as soon as both have come.
            elif call.bits & MatmulBits.SHARED:
                shared[client] = call, at
                if len(shared) == clients:
                    yield from cube.run(call, at)
                    for each in sorted(shared):
                        self._answer(native, shared[each][0], each, at)
                    shared.clear()
            elif not call.bits & MatmulBits.STORES:
                begun.setdefault(client, []).append((call, at))
            else:
                for earlier in begun.pop(client, []):
                    yield from cube.run(*earlier, client)
                yield from self._work(native, cube, call, client, at)

    def _left(self, native: NativeCore, where: int) -> KernelError:
        """Return the error of a block whose AIC would wait for an AIV that has ended."""
        got = f"AIV{self._gone[_block(native)] - 1} that ended before it"
        error = refuse(
            "REGIST_MATMUL_OBJ", "be reached by every AIV of a block", got,
            "the block's AIC waits for its calls without end",
        )  # fmt: skip
        return KernelError.at(self._names.locations[where], error)

    def _work(
        self, native: NativeCore, cube: CubeCore, call: MatmulCall, client: int, where: int
    ) -> Iterator[OwnMove]:
        if call.bits & MatmulBits.EACH:
            answers = [answered(client)]
            yield from cube.run(call, where, client, lambda: self._issue(native, answers, where))
            return
        yield from cube.run(call, where, client)
        self._answer(native, call, client, where)

    def _answer(self, native: NativeCore, call: MatmulCall, client: int, where: int) -> None:
        if call.bits & MatmulBits.ANSWERS:
            self._issue(native, [answered(client)], where)

    def _scratch_at(self, native: NativeCore, name: str, size: int) -> int:
        """Return the address of a core's part of memory that the launch's cores share."""
        launch = native.launch
        tensor = self._scratch.get((name, size))
        if tensor is None:
            title = f"the Matmul object's {name} ({len(self._scratch)})"
            whole: int = launch.at_once * launch.parts * size
            tensor = self._scratch[name, size] = native.handle.core.gm.allocate(
                title, whole, scratch=True
            )
        own: int = (launch.block % launch.at_once) * launch.parts + launch.part
        return tensor.address + own * size


def _block(native: NativeCore) -> tuple[int, int]:
    return native.handle.core.id.core, native.launch.block


def _client(native: NativeCore) -> int:
    return native.handle.core.id.sub

"""The TIK instance: every call, BuildCCE and the debugger."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from cubecore.errors import shortened
from cubecore.frontends.tik.calls.compare_select import CompareMask
from cubecore.frontends.tik.calls.data_move import DataMoveCalls
from cubecore.frontends.tik.calls.explicit import ExplicitCalls
from cubecore.frontends.tik.calls.gather import GatherCalls
from cubecore.frontends.tik.calls.high_precision import HighPrecisionCalls
from cubecore.frontends.tik.calls.img2col import Img2ColCalls
from cubecore.frontends.tik.calls.region_proposals import RegionProposalCalls
from cubecore.frontends.tik.calls.scalar import ScalarCalls
from cubecore.frontends.tik.calls.whole_tensor import WholeTensorCalls
from cubecore.frontends.tik.host.kernel import TikKernel, TikRun, sub_core
from cubecore.frontends.tik.host.session import active
from cubecore.frontends.tik.trace.errors import refuse, unable, user_location
from cubecore.frontends.tik.trace.language import Language
from cubecore.frontends.tik.trace.run_options import run_options
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.frontends.tik.trace.values import InputScalar
from cubecore.isa.declare.instruction import Mem

_MOST_OUTPUTS = 64


class Tik(
    DataMoveCalls,
    WholeTensorCalls,
    GatherCalls,
    RegionProposalCalls,
    ScalarCalls,
    ExplicitCalls,
    HighPrecisionCalls,
    Img2ColCalls,
):
    """One kernel: built by its calls, run by `tikdb` or `launch`.

    Each base holds the calls of one family, in the module of `frontends/tik/calls` of that name;
    `Language` has scopes, loops, branches and Scalars.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kernel: TikKernel | None = None
        self.launched = False
        self.tikdb = TikDebugger(self)

    def BuildCCE(  # noqa: N802 - TIK's name
        self,
        kernel_name: str,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        output_files_path: str | None = None,
        enable_l2: bool = False,
        config: Mapping[str, object] | None = None,
        flowtable: Sequence[Tensor] | None = None,
        evaluates: Mapping[object, object] | None = None,
        extend_params: Mapping[str, object] | None = None,
    ) -> "Tik":
        """Finish the kernel; returns the instance, as programs expect."""
        self.trace.sync.barrier()
        outputs = _listed(outputs)
        given = [*_listed(inputs), *_listed(flowtable or ())]
        for name, tensors in (("inputs", given), ("outputs", outputs)):
            if len(tensors) > _MOST_OUTPUTS:
                raise refuse(
                    f"BuildCCE.{name}", f"be at most {_MOST_OUTPUTS} tensors", len(tensors)
                )
            for tensor in tensors:
                if not isinstance(tensor, Tensor) or tensor.mem is not Mem.GM:
                    raise refuse(
                        f"BuildCCE.{name}", "be tensors in scope_gm", type(tensor).__name__
                    )
        named = {tensor.name for tensor in (*given, *outputs)}
        chip, memories = self.trace.chip, self.trace.memories
        sub = sub_core(chip, memories)
        physical = (chip.aiv_count or chip.aic_count) if sub else chip.aic_count
        wanted = 1 if self.blocks is None else self.blocks.constant or physical
        self.kernel = TikKernel(
            name=shortened(str(kernel_name)),
            chip=chip,
            inputs=tuple(given),
            outputs=tuple(outputs),
            others=tuple(t for n, t in self.gm_tensors.items() if n not in named),
            slots=dict(self.trace.slots),
            core=self.trace.core,
            cores=self.trace.cores,
            blocks=min(wanted, physical),
            sub=sub,
            body=self.trace.body,
            zeroed=frozenset(self.zeroed),
            constants=dict(self.constants),
            place=user_location(),
        )
        active().built.append(self)
        return self

    @property
    def built_kernel(self) -> TikKernel:
        """The kernel that BuildCCE finished.

        Raises
        ------
        RequestError
            If it has not been called.
        """
        if self.kernel is None:
            raise unable("launch", "launch before BuildCCE: the kernel is not complete")
        return self.kernel

    def launch(
        self,
        feeds: Mapping[str, object],
        outputs: Mapping[str, Any] | None = None,
        inplace: Mapping[str, str] | None = None,
    ) -> TikRun:
        """Run the built kernel; `outputs` are arrays for shapes that the program leaves open.

        `inplace` names, by output, the input whose memory the output shares.
        """
        self.launched = True
        done = self.built_kernel.launch(feeds, outputs, inplace)
        active().runs.append(done)
        return done


def _where_reached(call: Callable[..., object]) -> Callable[..., Any]:
    """Return a call that does nothing in a branch that is known never to be taken."""

    @wraps(call)
    def guarded(self: Tik, *args: object, **kwargs: object) -> Any:
        if self.trace.buffers.unreached:
            return CompareMask()
        return call(self, *args, **kwargs)

    return guarded


for _class in reversed(Tik.__mro__[1 : Tik.__mro__.index(Language)]):
    for _name, _call in list(vars(_class).items()):
        if callable(_call) and not _name.startswith("_"):
            setattr(Tik, _name, _where_reached(_call))


def _listed(tensors: Any) -> list[Tensor]:
    """Return the tensors of a list, or the one that is given without."""
    given = [tensors] if isinstance(tensors, (Tensor, InputScalar)) else list(tensors)
    return [t.tensor if isinstance(t, InputScalar) else t for t in given]


class TikDebugger:
    """``tikdb``: runs a built kernel."""

    def __init__(self, instance: Tik) -> None:
        self._instance = instance
        self.last: TikRun | None = None

    def start_debug(self, feed_dict: Mapping[str, object], interactive: bool = True) -> list[Any]:
        """Run to the end and return the outputs in order; the findings go to stderr."""
        self.last = self._instance.launch(feed_dict)
        for finding in self.last.findings if run_options().echo else ():
            sys.stderr.write(
                f"{finding.location}: {finding.text or finding.message} [{finding.id}]\n"
            )
        return list(self.last.outputs.values()) or [[0]]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        remedy = "print what start_debug returns"
        raise unable(f"tikdb.{name}", f"tikdb.{name} is not supported", remedy)

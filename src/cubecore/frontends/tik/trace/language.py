"""The language: containers, Scalars, tensors, loops, branches and scopes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from cubecore.dtypes import ElementType, element_type
from cubecore.frontends.tik.trace import tensor as views
from cubecore.frontends.tik.trace import values as scalars
from cubecore.frontends.tik.trace.buffers import MEMORIES, SCOPE_GM, TensorBuffer
from cubecore.frontends.tik.trace.errors import refuse, unable, user_location
from cubecore.frontends.tik.trace.target import Platform, profiled, target
from cubecore.frontends.tik.trace.tensor import Extent
from cubecore.frontends.tik.trace.tree import KernelTrace, touch_of
from cubecore.frontends.tik.trace.values import (
    SCALAR_TYPES,
    TikValue,
    Value,
    converted,
    integer,
    truth,
)
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import LoadScalar
from cubecore.isa.scalar.store import StoreScalar

_MOST_BLOCKS = 65535
_MOST_DIMENSIONS = 8
_STORED_AS = {"bool": "int8"}
"""Types that programs declare and whose elements are bytes."""
_SCALAR_FROM_GM = ("2002", "2201")
"""Architectures whose Scalars read elements of global memory (TIK, chips)."""


_VERSIONS = {"m100": "mini", "1001": "cloud", "2002": "aic"}
"""The version's name by architecture (page Tik)."""


_NEEDED = {
    "call_module": "the vendor's tensor-expression language",
    "TensorAddrList": "addresses of global memory as values of a program",
    "vmrgch": "the order of a channel merge, which no public page documents",
    "vbi": "a gather, a product and a sum of blocks in one instruction, which is not declared",
    "scatter_vmul": "products of blocks at up to eight addresses, whose page is not public",
    "load_image": "parameters of image preprocessing, which no public page of TIK documents",
    "vcbd": "Hi3796CV300 or SD3403, which are not in the catalogue",
    "set_overflow_status": "an overflow status of every instruction",
    "get_overflow_status": "an overflow status of every instruction",
    "StartProfiling": "the vendor's simulator; `cubecore time PROGRAM.py` times a program",
}
"""Calls of programs that are not supported, and the ability that each needs (TIK, calls)."""


class Dprofile:
    """A target named by architecture and version."""

    def __init__(self, ai_core_arch: str = "", ai_core_version: str = "") -> None:
        self.arch, self.version = ai_core_arch or "", ai_core_version or ""

    @property
    def soc(self) -> str:
        """The chip it means; the platform's where nothing is named."""
        return profiled(self.arch, self.version) if self.arch else Platform.soc

    def get_aicore_num(self) -> int:
        """Return the cores of the target."""
        return target(self.soc).aic_count

    def get_unified_buffer_size(self) -> int:
        """Return the bytes of UB that a kernel may use."""
        return target(self.soc).ub_user_bytes

    def get_l1_buffer_size(self) -> int:
        """Return the bytes of L1."""
        return target(self.soc).l1_bytes

    def getParams(self, name: str) -> int:  # noqa: N802 - the kit's name
        """Return a number of the target by the kit's name for it; 0 for a stream's number."""
        chip = target(self.soc)
        value_of = {
            "Unified_Buffer": chip.ub_user_bytes,
            "L1_Buffer": chip.l1_bytes,
            "L0A_Buffer": chip.l0a_bytes,
            "L0B_Buffer": chip.l0b_bytes,
            "L0C_Buffer": chip.l0c_bytes,
            "Device_core_num": chip.aic_count,
        }
        if name not in value_of and not name.startswith("Sid_"):
            raise refuse("getParams", f"be one of {', '.join(value_of)}, Sid_...", repr(name))
        return value_of.get(name, 0)

    def get_product_name(self) -> str:
        """Return the version's name."""
        return self.version or _VERSIONS.get(target(self.soc).arch, self.soc)


class Language:
    """One kernel under construction: what TIK calls an instance."""

    def __init__(
        self,
        profiling: Dprofile | None = None,
        disable_debug: bool = False,
        err_msg_level: int = 0,
        block_size: int = 32,
        **_options: object,
    ) -> None:
        self._profile = profiling if isinstance(profiling, Dprofile) else Dprofile()
        soc = self._profile.soc
        self.trace = KernelTrace(target(soc))
        self.gm_tensors: dict[str, views.Tensor] = {}
        self.zeroed: set[str] = set()
        self.constants: dict[str, object] = {}
        self.blocks: Expr | None = None
        self._names = 0

    @property
    def d_profiling(self) -> Dprofile:
        """The target, to be asked."""
        return self._profile

    # --- data

    def Scalar(  # noqa: N802 - TIK's name
        self, dtype: str = "int64", name: str | None = None, init_value: object = None
    ) -> scalars.Scalar:
        """Return a new Scalar."""
        if dtype not in SCALAR_TYPES:
            raise refuse("Scalar.dtype", f"be one of {', '.join(SCALAR_TYPES)}", repr(dtype))
        scalar = scalars.Scalar(
            self.trace.variable(name or "scalar"),
            element_type(dtype),
            name or "scalar",
            self._assign,
        )
        if init_value is not None:
            scalar.set_as(init_value)
        return scalar

    def InputScalar(  # noqa: N802 - TIK's name
        self, dtype: str = "int64", name: str = "input_scalar"
    ) -> scalars.InputScalar:
        """Return a Scalar whose value the launch gives; it is named among BuildCCE's inputs."""
        scalar = self.Scalar(dtype, name)
        holder = self._global(name, scalar.dtype_record, [1], SCOPE_GM)
        load = LoadScalar(scalar.var, Mem.GM, scalar.dtype_record, holder.address, user_location())
        self.trace.memories.add(Mem.GM)
        self.trace.append(load)
        return scalars.InputScalar(scalar.var, scalar.dtype_record, name, self._assign, holder)

    def ScalarArray(  # noqa: N802 - TIK's name
        self,
        dtype: str = "int64",
        length: int = 1,
        name: str | None = None,
        init_value: object = None,
    ) -> scalars.ScalarArray:
        """Return a fixed list of Scalars."""
        values = init_value if isinstance(init_value, (list, tuple)) else [init_value] * length
        elements = [self.Scalar(dtype, name, value) for value in values]
        return scalars.ScalarArray(elements, self.if_scope)

    def Tensor(  # noqa: N802 - TIK's name
        self,
        dtype: str,
        shape: Extent | Sequence[Extent],
        scope: str | None = None,
        name: str | None = None,
        enable_buffer_reuse: bool = False,
        is_workspace: bool = False,
        is_atomic_add: bool = False,
        max_mem_size: int | None = None,
        init_value: object = None,
        start_addr: int | None = None,
        **_options: object,
    ) -> views.Tensor:
        """Return a new tensor in a scope."""
        if scope not in MEMORIES:
            raise refuse("Tensor.scope", "be a scope such as tik.scope_ubuf", repr(scope))
        if not isinstance(name, str):
            raise refuse("Tensor.name", "be a string", repr(name))
        record = element_type(_STORED_AS.get(dtype, dtype), "Tensor.dtype")
        dimensions = shape if isinstance(shape, (list, tuple)) else (shape,)
        extents = [int(d) if isinstance(d, float) and d.is_integer() else d for d in dimensions]
        if len(extents) > _MOST_DIMENSIONS:
            raise refuse(
                "Tensor.shape", f"have at most {_MOST_DIMENSIONS} dimensions", len(extents)
            )
        if scope == SCOPE_GM:
            tensor = self._global(name, record, extents, scope)
            name = tensor.name
            if is_atomic_add:
                self.zeroed.add(name)
            if init_value is not None:
                self.constants[name] = (init_value, record)
            return tensor
        size, count = max_mem_size, prod(extents, start=1)
        buffers, mem = self.trace.buffers, MEMORIES[scope]
        if size is None and isinstance(count, Value) and count.expr.constant is None:
            kept = self.trace.variable(f"{name}_end")
            buffer, end = buffers.allocate_late(name, mem, count.expr * record.size_bytes)
            self.trace.assign(kept, end)
            buffers.allocated_late(mem, Expr.of(kept))
        else:
            buffer = buffers.allocate(
                name, mem, record.bytes_of(int(count)) if size is None else size
            )
        return views.Tensor(buffer, record, extents, scope, self._store, load=self._load)

    def get_available_buffer_size(self, scope: str) -> int:
        """Return the bytes of a local memory that no tensor in reach takes.

        Raises
        ------
        RequestError
            If the scope is no local memory.
        """
        if MEMORIES.get(scope, Mem.GM) is Mem.GM:
            need = "be a local scope such as tik.scope_ubuf"
            raise refuse("get_available_buffer_size.scope", need, repr(scope))
        return self.trace.buffers.free(MEMORIES[scope])[1]

    def _global(
        self, name: str, record: ElementType, extents: Sequence[Any], scope: str
    ) -> views.Tensor:
        again = sum(other.partition("#")[0] == name for other in self.gm_tensors)
        name = f"{name}#{again + 1}" if again else name
        buffer = TensorBuffer(
            name, Mem.GM, Expr.of(self.trace.slot(name)), 0, 0, owner=self.trace.buffers
        )
        tensor = views.Tensor(buffer, record, extents, scope, self._store, load=self._load)
        self.gm_tensors[name] = tensor
        return tensor

    def _assign(self, scalar: scalars.Scalar, value: Any) -> None:
        if self.trace.buffers.unreached:
            return
        if not isinstance(value, views.Tensor):
            self.trace.assign(scalar.var, converted(value, scalar.dtype_record))
            return
        arch = self.trace.chip.arch
        readable = (Mem.UB, Mem.GM) if arch in _SCALAR_FROM_GM else (Mem.UB,)
        if value.mem not in readable:
            memories = " or ".join(mem.label for mem in readable)
            need = f"read an element in {memories} on {self.trace.chip.name}"
            raise refuse(f"{scalar.name}.set_as", need, value.mem.label)
        # Equal widths are read as the Scalar's own type; a narrower or wider integer is read as
        # stored and wrapped to the Scalar's width.
        source, kind = value.record, scalar.dtype_record
        if source.bits != kind.bits and "float" in (source.kind, kind.kind):
            need = f"read an element as wide as {kind}"
            raise refuse(f"{scalar.name}.set_as", need, source)
        self.trace.touch("S", [touch_of(value, writes=False)])
        element = kind if source.bits == kind.bits else source
        load = LoadScalar(scalar.var, value.mem, element, value.address, user_location())
        self.trace.memories.add(value.mem)
        self.trace.append(load)
        if source.bits != kind.bits:
            code = kind.bits if kind.kind == "uint" else -kind.bits
            self.trace.assign(scalar.var, Expr.of(scalar.var).applied("wrap", code))

    def _load(self, tensor: views.Tensor) -> scalars.Scalar:
        return self.Scalar(tensor.dtype, tensor.name, tensor)

    def _store(self, tensor: views.Tensor, value: Any) -> None:
        if self.trace.buffers.unreached:
            return
        if tensor.mem is not Mem.UB:
            raise refuse(f"{tensor.name}.set_as", "write an element in UB", tensor.mem.label)
        if isinstance(value, views.Tensor):
            scalar = self.Scalar(tensor.dtype)
            scalar.set_as(value)
            value = scalar
        parameters = {"dtype": tensor.record, "value": converted(value, tensor.record)}
        self.trace.issue(StoreScalar, parameters, (tensor,), "set_as")

    # --- control

    @contextmanager
    def for_range(
        self,
        begint: TikValue = 0,
        endt: TikValue = 0,
        name: str = "i",
        thread_num: int = 1,
        thread_type: str = "whole",
        block_num: TikValue = 1,
        dtype: str = "int32",
        for_type: str = "serial",
        **_options: object,
    ) -> Iterator[Value]:
        """Repeat the body; it runs once in Python, whatever the trip count."""
        begin, end = integer(begint, "for_range.begint"), integer(endt, "for_range.endt")
        constant = begin.constant is not None and end.constant is not None
        if constant and end.constant < begin.constant:  # type: ignore[operator]
            raise refuse("for_range.endt", f"be at least begint = {begin.constant}", end.constant)
        many = integer(block_num, "for_range.block_num")
        if many.constant != 1:
            with self._blocks(name, begin, end, many) as index:
                yield Value(index)
            return
        begin, trips = self._once(begin), end - begin
        if trips.constant is not None and trips.constant < thread_num:
            thread_num = 1
        with self.trace.loop(name, trips) as index:
            turn = index % thread_num if thread_num > 1 else None
            self.trace.buffers.open(thread_num, turn)
            yield Value(begin + index)
            self.trace.buffers.close()

    def _once(self, bound: Expr) -> Expr:
        """Return a bound as it is now, however its Scalars change in the loop."""
        if bound.constant is not None:
            return bound
        kept = self.trace.variable("begin")
        self.trace.assign(kept, bound)
        return Expr.of(kept)

    @contextmanager
    def _blocks(self, name: str, begin: Expr, end: Expr, many: Expr) -> Iterator[Expr]:
        """Deal iterations to cores: core c runs those that are c modulo the cores (inferred)."""
        if self.blocks is not None:
            raise refuse("for_range.block_num", "be above 1 in at most one loop", "two loops")
        if many.constant is not None and not 1 <= many.constant <= _MOST_BLOCKS:
            raise refuse("for_range.block_num", f"be in [1, {_MOST_BLOCKS}]", many.constant)
        self.blocks = many
        core, cores = Expr.of(self.trace.core), Expr.of(self.trace.cores)
        # ceil((end - begin - core) / cores): how many of begin + core, begin + core + cores, ...
        # are below end.
        trips = (end - begin - core + cores - 1) // cores
        with self.trace.loop(name, trips) as index:
            self.trace.buffers.open()
            yield begin + core + index * cores
            self.trace.buffers.close()

    @contextmanager
    def if_scope(self, condition: TikValue) -> Iterator[None]:
        """Do the body if the condition holds."""
        with self._scope(), self.trace.branch(truth(condition)):
            yield

    @contextmanager
    def elif_scope(self, condition: TikValue) -> Iterator[None]:
        """Do the body if no branch before it was taken and the condition holds."""
        with self._scope(), self.trace.otherwise(truth(condition), "elif_scope"):
            yield

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Do the body if no branch before it was taken."""
        with self._scope(), self.trace.otherwise(None, "else_scope"):
            yield

    @contextmanager
    def new_stmt_scope(self, disable_sync: bool = False) -> Iterator[None]:
        """Enter a scope; with disable_sync nothing is synchronised inside."""
        if disable_sync:
            self.trace.sync.barrier()
        outer = self.trace.sync.enabled
        self.trace.sync.enabled = outer and not disable_sync
        with self._scope():
            yield
        self.trace.sync.enabled = outer
        if disable_sync:
            self.trace.join()

    new_scope = new_stmt_scope

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self.trace.buffers.open()
        yield
        self.trace.buffers.close()

    def tik_break(self) -> None:
        """Leave the innermost loop."""
        if not self.trace.buffers.unreached:
            self.trace.leave_loop()

    def tik_return(self) -> None:
        """End the kernel on this core."""
        if not self.trace.buffers.unreached:
            self.trace.leave_program()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        needs = _NEEDED.get(name)
        why = f"it needs {needs}" if needs else "no page documents it"
        raise unable(f"tik.{name}", f"tik.{name} is not supported: {why}")

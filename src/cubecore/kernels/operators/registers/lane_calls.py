"""Calls on lanes of registers, as a kernel's text has them, that make one vector function."""

from cubecore.dtypes import ElementType, element_type
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.register_calls import FunctionCalls, Issued
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.tile import LANES, float_code

FLOAT, _BITS = element_type("float32"), element_type("uint32")
_STORES_THEN_LOADS = ("VEC_STORE", 1)
"""The classes of a barrier: stores before it, and loads behind it by its number in MemType."""
_TO_BYTES = (
    ("float32", "int16", "SAT"),
    ("int16", "float16", "NO_SAT"),
    ("float16", "int8", "SAT"),
)
"""Conversions of float32 to int8, which registers have none for; half holds all such integers."""


class LaneCalls:
    """Writes calls; values are numbers, and so are masks. `all` is the mask of all lanes."""

    def __init__(self, where: Location) -> None:
        self.where = where
        self.calls = FunctionCalls(where)
        self._variables: dict[object, int] = {}
        self._halves = 0
        self.all = self.operate("CreateMask", mode="ALL", dtype=_BITS)

    @property
    def issued(self) -> Issued:
        """The vector function that the calls make."""
        issued = self.calls.issued()
        assert issued is not None
        return issued

    def operate(
        self,
        name: str,
        *sources: int,
        mode: str = "",
        dtype: ElementType = FLOAT,
        source: ElementType | None = None,
        scalar: float | None = None,
        code: int = 0,
        mask: int = 0,
        where: Location | None = None,
    ) -> int:
        """Record a call on registers; return the number of its result.

        `scalar` is a float32, `code` a scalar of another type, an integer.
        """
        result = self.calls.new_value()
        call = Call(operations()[name], dtype, source or dtype, mode)
        code = code % 2**dtype.bits if scalar is None else float_code(scalar)
        where = where or self.where
        self.calls.take(call, where, results=(result,), sources=sources, mask=mask, scalar=code)
        return result

    def count(self, lanes: int, dtype: ElementType = _BITS) -> int:
        """Return the mask of so many lanes, of 32 bits or of a type's."""
        result = self.calls.new_value()
        call = Call(operations()["UpdateMask"], dtype, dtype)
        self.calls.take(call, self.where, results=(result,), scalar=lanes)
        return result

    def masks(self, lanes: int) -> list[int]:
        """Return the masks of so many lanes, 64 at a time: whole registers, and a tail."""
        whole, rest = divmod(lanes, LANES)
        return [self.all] * whole + ([self.count(rest)] if rest else [])

    def load(self, address: int, dtype: ElementType, mode: str, of: object) -> int:
        """Load a register; loads `of` one thing go into one variable."""
        result = self.calls.new_value()
        call = Call(operations()["LoadAlign"], dtype, dtype, mode)
        variable = self._variable("load", of)
        self.calls.take(call, self.where, results=(result,), variable=variable, address=address)
        return result

    def store(
        self, address: int, value: int, dtype: ElementType, mode: str, mask: int, of: object
    ) -> None:
        """Store a register."""
        call = Call(operations()["StoreAlign"], dtype, dtype, mode)
        sources, variable = (value,), self._variable("store", of)
        self.calls.take(
            call, self.where, sources=sources, mask=mask, variable=variable, address=address
        )

    def _variable(self, *of: object) -> int:
        """Return the number of the register variable that a text would have there."""
        if of not in self._variables:
            self._variables[of] = self.calls.new_variable()
        return self._variables[of]

    def barrier(self) -> None:
        """Let loads behind wait for stores before."""
        before, behind = _STORES_THEN_LOADS
        call = Call(
            operations()["LocalMemBar"], element_type("uint8"), element_type("uint8"), before
        )
        self.calls.take(call, self.where, scalar=behind)

    def cast(self, value: int, source: str, target: str, saturation: str, mask: int) -> int:
        """Convert lanes; those of integers to float32 are rounded, other wider ones exact."""
        exact = target == "float32" and source != "int32"
        rounding = "CAST_NONE" if exact else "CAST_RINT"
        return self.operate(
            "Cast",
            value,
            mode=f"ZERO.{saturation}.{rounding}",
            dtype=element_type(target),
            source=element_type(source),
            mask=mask,
        )

    def widened(self, address: int, dtype: ElementType, mask: int, of: object) -> int:
        """Load 64 elements and return them in float32."""
        mode = "UNPACK_B16" if dtype.size_bytes == 2 else "NORM"
        lane = self.load(address, dtype, mode, of)
        return lane if dtype == FLOAT else self.cast(lane, dtype.name, "float32", "NO_SAT", mask)

    def narrowed(self, at: int, lane: int, dtype: ElementType, mask: int, of: object) -> None:
        """Convert lanes of float32 and store them."""
        # Narrow lanes stand in the low bytes of lanes of 32 bits, and the store packs them. float32
        # becomes int8 by way of int16, which rounds, and of half; the mask of lanes of 16 bits is
        # made once, so that loops fold.
        mode = "NORM"
        if dtype.name == "int8":
            for source, target, saturation in _TO_BYTES:
                on = self.all if source == "float32" else self.all_halves()
                lane = self.cast(lane, source, target, saturation, on)
            mode = "PACK4_B32"
        elif dtype != FLOAT:
            lane = self.cast(lane, "float32", dtype.name, "NO_SAT", mask)
            mode = "PACK_B32"
        self.store(at, lane, dtype, mode, mask, (of, "result"))

    def all_halves(self) -> int:
        """Return the mask of all lanes of int16 and half."""
        if not self._halves:
            self._halves = self.operate("CreateMask", mode="ALL", dtype=element_type("uint16"))
        return self._halves


def issue_in_region(builder: Builder, issued: Issued, buffers: DoubleBuffers, event: Expr) -> None:
    """Issue a vector function, written for the first region of buffers, on that of a turn."""
    region_bytes = buffers.end // 2
    builder.issue(issued.template, *(event * region_bytes + at for at in issued.addresses))

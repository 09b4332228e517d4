"""MmadParams: how the C++ basic API spells the parameters of `mad` (Mmad, table 3)."""

from dataclasses import dataclass

from cubecore.chips.model import Chip
from cubecore.chips.products import BIAS_TABLE_SOURCE_ARCHS
from cubecore.dtypes import ElementType
from cubecore.errors import RequestError, Violation
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem

_RESERVED = ("fmOffset", "enSsparse", "enWinogradA", "enWinogradB", "kDirectionAlign")


@dataclass(frozen=True, kw_only=True)
class MmadParams:
    """The fields of the vendor's structure, under their own names and with their defaults.

    m, n and k equal to 0, the default: Mmad does nothing. isBias is deprecated; true still means
    C += A * B where cmatrixInitVal and cmatrixSource say nothing else. The fields that the seed
    reserves keep their defaults; what later pages make of kDirectionAlign is
    `mad.k_direction_align`.
    """

    m: int = 0
    n: int = 0
    k: int = 0
    isBias: bool = False
    fmOffset: int = 0
    enSsparse: bool = False
    enWinogradA: bool = False
    enWinogradB: bool = False
    unitFlag: int = 0
    kDirectionAlign: bool = False
    cmatrixSource: bool = False
    cmatrixInitVal: bool = True

    def template(
        self, chip: Chip, types: tuple[ElementType, ElementType, ElementType], bias: Mem | None
    ) -> Mad:
        """Return the `mad` of Mmad(dst, fm, filter[, bias], params) on `chip`.

        `types` are those of fm, filter and dst. `bias` is where the bias operand lies, BiasTable
        (C2) or L0C (CO1), None in the form without one. With one, cmatrixSource, cmatrixInitVal and
        isBias count for nothing: C starts from it. Ranges and types are judged with the template.

        Raises
        ------
        RequestError
            One violation for each reserved field that is not at its default, for a cmatrixSource
            that the chip does not have, and for a bias in another memory.
        """
        found = [
            Violation(f"MmadParams.{name}", f"keep its default {_word(default)} (reserved)", got)
            for name in _RESERVED
            if (got := _word(getattr(self, name))) != _word(default := getattr(_DEFAULT, name))
        ]
        if bias not in {None, Mem.BT, Mem.L0C}:
            assert bias is not None
            found.append(Violation("Mmad.bias", "lie in C2 or CO1", bias.label))
        if bias is None and self.cmatrixSource and chip.arch not in BIAS_TABLE_SOURCE_ARCHS:
            found.append(Violation("MmadParams.cmatrixSource", f"be false on {chip.name}", "true"))
        if found:
            raise RequestError(found)
        left, right, result = types
        zero = bias is None and self.cmatrixInitVal and not self.isBias
        from_table = self.cmatrixSource and not self.cmatrixInitVal
        return Mad(
            a_type=left,
            b_type=right,
            c_type=result,
            m=self.m,
            k=self.k,
            n=self.n,
            c_matrix_init_val=zero,
            c_matrix_source=bias is Mem.BT or (bias is None and from_table),
            bias_in_l0c=bias is Mem.L0C,
            unit_flag=self.unitFlag,
        )


def _word(value: bool | int) -> str:
    return str(value).lower()


_DEFAULT = MmadParams()

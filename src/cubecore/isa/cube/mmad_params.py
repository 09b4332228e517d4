"""MmadParams: how the basic API spells the parameters of `mad` (Mmad, table 3)."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields

from cubecore.chips.model import Chip
from cubecore.chips.products import BIAS_TABLE_SOURCE_ARCHS, L0A_NZ_ARCHS
from cubecore.dtypes import ElementType
from cubecore.errors import RequestError, Violation, refuse
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem

_RESERVED = ("fmOffset", "enSsparse", "enWinogradA", "enWinogradB", "kDirectionAlign")


@dataclass(kw_only=True, slots=True)
class MmadParams:
    """The parameters of `core.Mmad`, under the names and with the defaults of Mmad, table 3.

    A struct as in C: fields are given when it is made, or set afterwards. m, n and k equal to 0,
    the default: Mmad does nothing. isBias is deprecated; true still means C += A * B where
    cmatrixInitVal and cmatrixSource say nothing else. The reserved fields (fmOffset, enSsparse,
    enWinogradA, enWinogradB, kDirectionAlign) keep their defaults; what later pages make of
    kDirectionAlign is `k_direction_align` of `asc_mmad`.

    Parameters
    ----------
    m, n, k : int, default 0
        Rows of A and C, columns of B and C, columns of A and rows of B: 0 to 4095.
    isBias : bool, default False
        Deprecated: C += A * B.
    unitFlag : int, default 0
        2 or 3: share L0C with fixpipe fractal by fractal; 3 hands it over.
    cmatrixInitVal : bool, default True
        C starts from 0.
    cmatrixSource : bool, default False
        With cmatrixInitVal false: C starts from the bias in C2 (BiasTable), not from CO1 (L0C).

    Examples
    --------
    >>> from cubecore import capi
    >>> params = capi.MmadParams(m=16, n=32, k=64)
    >>> params.cmatrixInitVal = False
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
        self,
        chip: Chip,
        types: Sequence[ElementType],
        bias_mem: Mem | None = None,
        bias_type: ElementType | None = None,
    ) -> Mad:
        """Return the `mad` of Mmad(dst, fm, filter[, bias], params) on `chip`.

        `types` are those of fm, filter and dst. `bias_mem` is where the bias operand lies,
        BiasTable (C2) or L0C (CO1), and `bias_type` its type; None in the form without one. With
        one, cmatrixSource, cmatrixInitVal and isBias count for nothing: C starts from it. Ranges
        and types of the product are judged with the template.

        Raises
        ------
        RequestError
            One violation for each reserved field that is not at its default, for a cmatrixSource
            that the chip does not have, and for a bias in another memory or of another type than
            C; one alone for a field that is no integer.
        """
        given = {f.name: self._integer(f.name) for f in fields(self)}
        violations = []
        for name in _RESERVED:
            default = getattr(_DEFAULT, name)
            if given[name] != default:
                need = f"keep its default {_word(default)} (reserved)"
                violations.append(Violation(f"MmadParams.{name}", need, _word(given[name])))
        left, right, result = types
        if bias_mem and bias_mem not in {Mem.BT, Mem.L0C}:
            violations.append(Violation("Mmad.bias", "lie in C2 or CO1", bias_mem.label))
        elif bias_type and bias_type is not result:
            need = f"point to {result}, as dst does"
            violations.append(Violation("Mmad.bias", need, bias_type.name))
        if not bias_mem and given["cmatrixSource"] and chip.arch not in BIAS_TABLE_SOURCE_ARCHS:
            violations.append(
                Violation("MmadParams.cmatrixSource", f"be false on {chip.name}", "true")
            )
        if violations:
            raise RequestError(violations)
        from_table = given["cmatrixSource"] and not given["cmatrixInitVal"]
        return Mad(
            a_type=left,
            b_type=right,
            c_type=result,
            m=given["m"],
            k=given["k"],
            n=given["n"],
            a_layout="NZ" if chip.arch in L0A_NZ_ARCHS else "ZZ",
            c_matrix_init_val=bool(
                not bias_mem and given["cmatrixInitVal"] and not given["isBias"]
            ),
            c_matrix_source=bool(not bias_mem and from_table),
            bias_in_c2=bias_mem is Mem.BT,
            bias_in_l0c=bias_mem is Mem.L0C,
            unit_flag=given["unitFlag"],
        )

    def _integer(self, name: str) -> int:
        value = getattr(self, name)
        try:
            return value if isinstance(value, bool) else int(operator.index(value))
        except TypeError:
            raise refuse(f"MmadParams.{name}", "be an integer", repr(value)) from None


def _word(value: bool | int) -> str:
    return str(value).lower()


_DEFAULT = MmadParams()

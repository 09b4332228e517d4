"""The registers of a core that instructions read besides memory."""

from dataclasses import dataclass, replace
from typing import Self

FULL_MASK = 2**64 - 1
CTRL_FLOAT_IEEE_BIT = 48
"""CTRL[48]: clear, half results (and conversions to half and bfloat16) stay finite; set, infinities
and NaN appear. float results are never clamped."""
CTRL_INT_SATURATE_BIT = 53
"""CTRL[53]: clear, integer arithmetic wraps; set, it saturates."""
CTRL_MASK_COUNTS_BIT = 56
"""CTRL[56]: clear, the mask gates lanes; set, it counts elements."""
CTRL_CAST_WRAPS_BIT = 59
"""CTRL[59]: under CTRL[60], clear, conversions to integers saturate; set, they keep the low
bits."""
CTRL_CAST_BIT = 60
"""CTRL[60]: whether CTRL[59] counts."""

LEFT = ("cmp_mask", "kept", "extreme", "merged", "suppressed", "stored_by_ar", "atomic_old")
"""Registers that vector instructions leave for others: values decide what they hold."""
ATOMICS = ("add", "max", "min")
"""The atomic operations of a store to global memory."""


TO_ALL = 3
"""The mode of a signal that each AIV gets for itself, whoever else has sent one."""
TO_PARTNER = 4
"""The mode of a signal of one AIV to its AIC, or of an AIC to its AIVs, through global memory."""
CROSS_CORE_FLAGS = 16
"""Flag ids between cores."""
FIRST_OF_PARTS = 2**46
"""The counters of mode 4, whose flags are its own: those of AIV1 are 16 further on at the AIC."""
TO_PART = 5
"""The mode of a signal between an AIC and one of its AIVs: mode 4 of architecture 3510."""


@dataclass(frozen=True, slots=True)
class CorePosition:
    """The position of a core's part in its launch; the default is a launch of this part alone.

    `block` of `blocks` is its core; `part` of `parts` is it among its core's AIVs. An AIC is the
    one of its kind.
    """

    block: int = 0
    blocks: int = 1
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The input of load3d: its rows and columns, and the padding around them."""

    height: int
    width: int
    left: int = 0
    right: int = 0
    top: int = 0
    bottom: int = 0


@dataclass(frozen=True, slots=True)
class Load3dRepeat:
    """The repeats of load3d's window: the distance of two in fractals, the count, along K or M.

    `dst_stride` is architecture 3510's: fractals between columns in L0A, rows in L0B; 0: not set.
    """

    stride: int = 0
    time: int = 1
    along_k: bool = False
    dst_stride: int = 0


@dataclass(frozen=True, slots=True)
class CopyLoops:
    """The two nested loops around a copy of any length on architecture 3510.

    Counts, and bytes from one turn to the next at the source and at the destination.
    """

    inner: int = 1
    outer: int = 1
    inner_src: int = 0
    inner_dst: int = 0
    outer_src: int = 0
    outer_dst: int = 0


@dataclass(frozen=True, slots=True)
class CopyDimensions:
    """The loops of a copy of five dimensions on architecture 3510, the first innermost.

    Strides count elements; `left` and `right` are the padding of loops 1 to 4. `constant` is the
    bits that pad, None before they are set.
    """

    src_strides: tuple[int, ...] = (0,) * 5
    dst_strides: tuple[int, ...] = (0,) * 5
    left: tuple[int, ...] = (0,) * 4
    right: tuple[int, ...] = (0,) * 4
    constant: int | None = None


@dataclass(frozen=True, slots=True)
class UbCheck:
    """A register that has the core stop at accesses to bytes [start, end) of UB.

    `kinds` are such as ``vector write``: a unit (scalar, vector or mte) and how it accesses.
    """

    number: int
    start: int
    end: int
    kinds: frozenset[str]


@dataclass(frozen=True)
class Registers:
    """Mask, CTRL, and what set and compare instructions leave for others.

    The defaults are the state after the vendor's initialisation: normal mode, all lanes active.
    `cmp_mask` is CMPMASK's 128 bits, `deq_scale` DEQSCALE's 64; `block_addresses` are VA0 to VA7,
    eight addresses each; `kept` is RSVD_CNT; `stored_by_ar` is AR of architecture 3510;
    `atomic_old` the bits that its scalar unit's last atomic operation met;
    `extreme` is MAX_MIN_CNT (the value's bits, its
    index); `merged` is VMS4_SR, what each queue gave; `suppressed` is the suppression register of
    region proposals and `rpn_offset` what is added to their edges, a float32's bits; `pad_value` is
    the bits that a padding copy fills with, None before they are set; `atomic` is what stores to
    global memory do ("" for a plain store) and `atomic_type` in which element type; `nd_num` and
    the strides repeat NZ2ND;
    `quant_post` is the word of fixpipe's second conversion and `relu_alpha_post` the factor of its
    leaky ReLU, a float32's bits, None before they are set;
    `quant_pre` is fixpipe's one scale and `scales_at` where it has one for each column, None before
    they are set; `relu_at` and `resets_units` are kept with it for who asks; `lrelu_alpha` is the
    factor of its leaky ReLU, a float32's bits; the next two are HF32. `place` never changes;
    `ffts_base` is kept for who asks. `fmatrix` and the next four are load3d's: its maps, what it
    reads outside of them (bits, None before they are set), its repetition, and where L1 begins anew
    for it (0: nowhere). `nz_para` is MTE2_NZ_PARA of architecture 3510, None before it is set;
    `row_stride` is CHANNEL_PARA's, 0 before it is set; `to_ub`, `from_ub` and `to_l1` are its loops
    of copies, and `dimensions` those of its copy of five dimensions. `ub_checks` are the accesses
    to UB at which the core is to stop.
    """

    mask_high: int = FULL_MASK
    mask_low: int = FULL_MASK
    ctrl: int = 0
    cmp_mask: int = 0
    deq_scale: int = 0
    block_addresses: tuple[tuple[int, ...], ...] = ((0,) * 8,) * 8
    kept: int = 0
    stored_by_ar: int = 0
    atomic_old: int = 0
    extreme: tuple[int, int] = (0, 0)
    merged: tuple[int, int, int, int] = (0, 0, 0, 0)
    suppressed: int = 0
    rpn_offset: int = 0x3F800000
    pad_value: int | None = None
    atomic: str = ""
    atomic_type: str = ""
    nd_num: int = 1
    src_nd_stride: int = 0
    dst_nd_stride: int = 0
    quant_pre: int | None = None
    scales_at: int | None = None
    relu_at: int = 0
    resets_units: bool = False
    lrelu_alpha: int | None = None
    quant_post: int | None = None
    relu_alpha_post: int | None = None
    hf32_enabled: bool = False
    hf32_toward_zero: bool = False
    position: CorePosition = CorePosition()
    ffts_base: int = 0
    fmatrix: FeatureMap | None = None
    fmatrix_b: FeatureMap | None = None
    load3d_padding: int | None = None
    load3d_repeat: Load3dRepeat = Load3dRepeat()
    load3d_boundary: int = 0
    nz_para: int | None = None
    row_stride: int = 0
    to_ub: CopyLoops = CopyLoops()
    from_ub: CopyLoops = CopyLoops()
    to_l1: CopyLoops = CopyLoops()
    dimensions: CopyDimensions = CopyDimensions()
    ub_checks: tuple[UbCheck, ...] = ()

    def leaving(self, name: str, value: object) -> Self:
        """Return them with another value in one register; quicker than `replace`."""
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed.__dict__[name] = value
        return changed

    def initialised(self) -> Self:
        """Return them with plain stores, the mask in normal mode and all lanes on."""
        return replace(
            self,
            mask_high=FULL_MASK,
            mask_low=FULL_MASK,
            ctrl=self.ctrl & ~(1 << CTRL_MASK_COUNTS_BIT),
            atomic="",
            atomic_type="",
        )

    @property
    def hf32(self) -> str:
        """Return the rounding of `mad`'s float32 inputs: ``off`` or a name of `HF32_ROUNDINGS`."""
        if not self.hf32_enabled:
            return "off"
        return "toward_zero" if self.hf32_toward_zero else "nearest_even"

    @property
    def mask_counts(self) -> bool:
        """True if the mask is an element count."""
        return bool(self.ctrl >> CTRL_MASK_COUNTS_BIT & 1)

    @property
    def float_ieee(self) -> bool:
        """True if half results may be infinite or NaN."""
        return bool(self.ctrl >> CTRL_FLOAT_IEEE_BIT & 1)

    @property
    def int_saturates(self) -> bool:
        """True if integer arithmetic clamps instead of wrapping."""
        return bool(self.ctrl >> CTRL_INT_SATURATE_BIT & 1)

    @property
    def cast_wraps(self) -> bool:
        """True if conversions to integers keep the low bits instead of clamping."""
        return self.ctrl >> CTRL_CAST_WRAPS_BIT & 3 == 3

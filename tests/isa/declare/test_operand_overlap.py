"""Operands that meet in memory, against sets of bytes (seed 003, overlap)."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.operand_overlap import relation
from isa.bench import Bench
from isa.lanes import Mask, Operand, size_of

EXCEPTIONAL = ("float16", "int32", "float32")


def touched(operand: Operand, repeat: int, width: int, mask: Mask) -> frozenset[int]:
    """The bytes of one repeat."""
    size = size_of(operand.dtype)
    return frozenset(
        operand.byte(repeat, lane) + i
        for lane in range(width)
        if mask.on(repeat, lane, width)
        for i in range(size)
    )


def judge(operands: dict[str, Operand], repeats: int, mask: Mask, accumulates: bool) -> list[str]:
    """What the seed forbids, for each source once: within a repeat first, then between two."""
    width = 256 // max(size_of(o.dtype) for o in operands.values())
    dst = [touched(operands["dst"], r, width, mask) for r in range(repeats)]
    found = []
    for name in [n for n in operands if n != "dst"]:
        src = [touched(operands[name], r, width, mask) for r in range(repeats)]
        partial = [r for r in range(repeats) if dst[r] & src[r] and dst[r] != src[r]]
        if partial:
            found.append(
                f"coincide with {name}, or keep apart from it, within a repeat, "
                f"got repeat {partial[0]}"
            )
            continue
        zero = 0 in (operands["dst"].repeat, operands[name].repeat)
        if accumulates and name == "src1" and zero:
            continue
        later = [(w, r) for r in range(repeats) for w in range(r) if dst[w] & src[r]]
        if later:
            found.append(
                f"not be {name} of a later repeat, got repeats {later[0][0]} and {later[0][1]}"
            )
    return found


def messages(name: str, operands: dict[str, Operand], repeats: int, mask: Mask) -> list[str]:
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(196352))
    kind = instruction_named(name)
    strides = {f"{n}_block_stride": o.block for n, o in operands.items()}
    strides |= {f"{n}_repeat_stride": o.repeat for n, o in operands.items()}
    types = {} if name.startswith("vconv") else {"dtype": element_type(operands["dst"].dtype)}
    extra = {"value": 0} if name == "vadds" else {}
    mask.set(bench)
    bench.do(kind(repeat=repeats, **types, **strides, **extra), *(o.at for o in operands.values()))
    return bench.messages


def random_operand(rng: np.random.Generator, dtype: str, base: int) -> Operand:
    return Operand(
        base + 32 * int(rng.choice([0, 0, 0, 8, 1, 16, 40])),
        dtype,
        int(rng.choice([1, 1, 1, 2, 0, 3])),
        int(rng.choice([8, 8, 8, 0, 4, 9, 16])),
    )


@pytest.mark.parametrize(
    ("name", "types"),
    [
        *(("vadd", (dtype,) * 3) for dtype in ("int16", *EXCEPTIONAL)),
        ("vdiv", ("float32",) * 3),
        ("vadds", ("float32",) * 2),
        ("vconv_f322f16", ("float16", "float32")),
    ],
    ids=str,
)
@pytest.mark.thinned(2)
def test_random_strides(name, types):
    """Small addresses, so that most runs meet somewhere; both answers occur."""
    rng = np.random.default_rng(151)
    names = ("dst", "src0", "src1") if len(types) == 3 else ("dst", "src")
    answers = set()
    for _ in range(60):
        operands = {n: random_operand(rng, t, 4096) for n, t in zip(names, types, strict=True)}
        mask = Mask() if rng.random() < 0.7 else Mask(low=0xFF00_0000_0000_0001, high=0)
        repeats = int(rng.integers(1, 5))
        accumulates = name == "vadd" and types[0] in EXCEPTIONAL
        wanted = judge(operands, repeats, mask, accumulates)
        got = messages(name, operands, repeats, mask)
        assert got == [f"overlap: {name}.dst must {text}" for text in wanted], operands
        answers |= {text.split(" ")[0] for text in wanted} or {"fine"}
    assert answers >= {"coincide", "fine"}


def binary(
    name: str,
    dtype: str,
    places: tuple[int, int, int],
    repeats: int = 2,
    strides: dict | None = None,
) -> list[str]:
    """The messages of dst, src0 and src1 at these places, with repeat strides of 8 or as given."""
    given = {"dst": 8, "src0": 8, "src1": 8} | (strides or {})
    at = dict(zip(given, places, strict=True))
    operands = {n: Operand(at[n], dtype, 1, given[n]) for n in at}
    return messages(name, operands, repeats, Mask())


def test_one_buffer_may_be_source_and_destination():
    """Seed 003: in place, all repeats."""
    for dtype in ("int16", *EXCEPTIONAL):
        assert binary("vadd", dtype, (4096, 4096, 65536), 4) == []
        assert binary("vadd", dtype, (4096, 65536, 4096), 4) == []
        assert binary("vadd", dtype, (4096, 4096, 4096), 4) == []


@pytest.mark.parametrize("source", ["src0", "src1"])
def test_within_a_repeat_it_is_all_or_nothing(source):
    at = {"src0": 65536, "src1": 131072} | {source: 4096 + 32}
    places = (4096, at["src0"], at["src1"])
    for dtype in ("int16", *EXCEPTIONAL):
        assert binary("vsub", dtype, places, 1) == [
            f"overlap: vsub.dst must coincide with {source}, or keep apart from it, "
            "within a repeat, got repeat 0"
        ]


def test_one_address_is_not_one_place_for_two_widths():
    """64 lanes of half end where the first 32 of float do."""
    places = {"dst": Operand(4096, "float16", 1, 4), "src": Operand(4096, "float32", 1, 8)}
    assert messages("vconv_f322f16", places, 1, Mask()) == [
        "overlap: vconv_f322f16.dst must coincide with src, or keep apart from it, "
        "within a repeat, got repeat 0"
    ]


def test_dst_of_a_repeat_is_no_later_ones_source():
    """Seed 003, figure 1: repeat N writes what repeat N + 1 reads."""
    for dtype in ("int16", *EXCEPTIONAL):
        assert binary("vmul", dtype, (4096 + 256, 4096, 65536)) == [
            "overlap: vmul.dst must not be src0 of a later repeat, got repeats 0 and 1"
        ]
        assert binary("vmul", dtype, (4096, 4096 + 256, 65536)) == []  # reads what is still old


@pytest.mark.parametrize("strides", [{"src1": 0}, {"dst": 0}, {"src1": 0, "dst": 0}], ids=str)
@pytest.mark.parametrize("name", ["vadd", "vsub", "vmul", "vmax", "vmin"])
def test_the_exception(name, strides):
    """half, int32_t and float; dst over src1; a repeat stride of 0 of either."""
    # with dst alone standing still, src1 comes by in repeat 1
    meets = 4096 if "src1" in strides else 4096 - 256
    for dtype in EXCEPTIONAL:
        assert binary(name, dtype, (4096, 65536, meets), 3, strides) == []
    assert binary(name, "int16", (4096, 65536, meets), 3, strides) == [
        f"overlap: {name}.dst must not be src1 of a later repeat, got repeats 0 and 1"
    ]
    of_src0 = {"src0" if k == "src1" else k: v for k, v in strides.items()}
    assert binary(name, "float32", (4096, meets, 65536), 3, of_src0) == [
        f"overlap: {name}.dst must not be src0 of a later repeat, got repeats 0 and 1"
    ]


def test_the_exception_needs_a_zero_stride():
    assert binary("vadd", "float32", (4096 + 256, 65536, 4096)) == [
        "overlap: vadd.dst must not be src1 of a later repeat, got repeats 0 and 1"
    ]


def test_calls_that_the_exception_does_not_name():
    assert binary("vdiv", "float32", (4096, 65536, 4096), 3, {"src1": 0}) == [
        "overlap: vdiv.dst must not be src1 of a later repeat, got repeats 0 and 1"
    ]


def test_a_call_that_forbids_overlap():
    """asc-devkit, asc_brcb: src and dst are not one memory."""
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(8192))
    template = instruction_named("vbrcb")(dtype=element_type("uint32"))
    bench.do(template, 4096, 4096)
    bench.do(template, 4096, 4096 - 32)
    assert bench.messages == [
        "overlap: vbrcb.dst must keep apart from src, got both at 4096",
    ]


def test_a_call_whose_page_says_nothing_supports_none():
    """asc-devkit, asc_gather forbids it in the basic API alone."""
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(65536))
    template = instruction_named("vgather")(dtype=element_type("float16"))
    bench.do(template, 4096, 4096, 16384)
    assert bench.messages == ["overlap: vgather.dst must keep apart from src, got both at 4096"]


def test_an_instruction_is_made_in_spite_of_the_finding():
    bench = Bench(1)
    bench.poke(Mem.UB, 0, np.arange(1024, dtype=np.float32).tobytes())
    single = element_type("float32")
    bench.do(instruction_named("vadd")(dtype=single), 32, 0, 0)
    assert len(bench.messages) == 2
    assert bench.image(Mem.UB).get(32, 8) == np.array([0, 2], np.float32).tobytes()


# --- what packs elements, and what no page describes


def packed(name: str, dst: int, src0: int, src1: int = 65536, **fields: int) -> list[str]:
    """Return the messages of two repeats of uint16, every second element kept."""
    bench = Bench(1)
    bench.poke(Mem.UB, 0, np.full(98176, 0x5555, np.uint16).tobytes())
    kind = instruction_named(name)
    places = (dst, src0) if fields.get("pattern") else (dst, src0, src1)
    bench.do(kind(dtype=element_type("uint16"), repeat=2, **fields), *places)
    return bench.messages


@pytest.mark.parametrize("name", ["vreduce", "vreducev2"])
def test_what_packs_elements_does_so_in_place_or_elsewhere(name):
    """asc_reduce and asc_squeeze refer to the general rule: wholly or not at all."""
    fields = {"pattern": 0} if name == "vreducev2" else {}
    assert packed(name, 4096, 4096, **fields) == []
    assert packed(name, 4096, 8192, **fields) == []
    assert packed(name, 4096 + 512, 4096, **fields) == []
    for dst in (4096 + 32, 4096 - 32, 4096 + 480):
        assert packed(name, dst, 4096, **fields) == [
            f"overlap: {name}.dst must coincide with src0, or keep apart from it, "
            f"got {dst} and 4096"
        ]
    assert packed(name, 65536 - 32, 4096, **fields) == [
        f"overlap: {name}.dst must keep apart from src1, got {65536 - 32} and 65536"
    ]


def test_what_packs_in_place_does_not_read_a_block_again():
    assert packed("vreducev2", 4096, 4096, pattern=1, src0_repeat_stride=0) == [
        "overlap: vreducev2.dst must not be src0 of a later element, got elements 0 and 64"
    ]


def test_a_built_in_pattern_has_no_src1_to_meet():
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(65536))
    kind = instruction_named("vreducev2")
    bench.do(kind(dtype=element_type("uint32"), pattern=7), 4096, 4096 + 128)
    assert bench.messages == [
        "overlap: vreducev2.dst must coincide with src0, or keep apart from it, got 4096 and 4224"
    ]


@pytest.mark.parametrize(("at", "said"), [(0, False), (1024, True), (2048, False)])
def test_a_bias_in_l0c_is_c_itself_or_another_tile(at, said):
    kind = instruction_named("mad")
    half, single = element_type("float16"), element_type("float32")
    bench = Bench(0)
    for mem, size in ((Mem.L0A, 512), (Mem.L0B, 1024), (Mem.L0C, 8192)):
        bench.poke(mem, 0, bytes(size))
    types = {"a_type": half, "b_type": half, "c_type": single}
    template = kind(**types, m=16, k=16, n=32, c_matrix_init_val=False, bias_in_l0c=True)
    bench.do(template, 0, 0, 0, at)
    rule = "overlap: mad.c must coincide with start, or keep apart from it, got 0 and 1024"
    assert bench.messages == ([rule] if said else [])


def test_every_instruction_that_may_overlap_has_a_policy():
    """None is what an instruction has without a word of its own."""
    for name, kind in instructions().items():
        pairs = [
            (to.name, source.name)
            for to in kind.declared
            for source in kind.declared
            if to is not source and to.mem is source.mem
            if to.access.writes and source.access.reads
        ]
        policies = {"none", "whole", "general", "accumulate"} if pairs else {""}
        assert kind.overlap in policies, (name, pairs)


def test_an_instruction_of_which_nothing_is_said_keeps_its_operands_apart():
    """TIK's rpn_cor_diag: no page describes an overlap."""
    for dst, said in ((8192, []), (4096 + 512, []), (4096, ["both at 4096"])):
        bench = Bench(1, on=chip("Ascend310P3"))
        bench.poke(Mem.UB, 0, bytes(16384))
        bench.do(instruction_named("rpn_cor_diag")(), 4096, dst)
        rule = "overlap: rpn_cor_diag.dst must keep apart from matrix, got"
        assert bench.messages == [f"{rule} {place}" for place in said]


def feeds(template, addresses):
    """Say of each repeat's bytes whether a later repeat reads what an earlier one wrote."""
    rows = {
        operand.name: [
            {at + 4 * int(lane) + byte for lane in row.reshape(-1) for byte in range(4)}
            for row in template.offsets(operand.name)
        ]
        for operand, at in zip(template.operands(), addresses, strict=True)
    }
    repeats = range(len(rows["dst"]))
    return any(
        rows["dst"][i] & rows[source][j]
        for source in ("src0", "src1")
        for i in repeats
        for j in repeats[i + 1 :]
    )


def test_repeats_feed_later_ones_only_where_they_share_bytes(drawn_seed):
    """A vadd of float32 runs at once where no repeat reads what an earlier one wrote."""
    rng, seen = np.random.default_rng(drawn_seed), set()
    kind = instruction_named("vadd")
    for _ in range(300):
        strides = {
            f"{name}_{what}_stride": int(rng.integers(low, 10))
            for name in ("dst", "src0", "src1")
            for what, low in (("block", 1), ("repeat", 8))
        } | {f"{name}_block_stride": 1 for name in ("dst", "src0", "src1")}
        template = kind(dtype=element_type("float32"), repeat=int(rng.integers(1, 5)), **strides)
        addresses = tuple(32 * int(at) for at in rng.integers(0, 20, 3))
        wanted = feeds(template, addresses)
        seen.add(wanted)
        assert relation(template, addresses)[0] == wanted, (strides, addresses)
    assert seen == {True, False}

"""The form with a count, by every name of the C API that has one, against the form with repeats.

The pages define it: the first `count` elements, without gaps. The other form says the same in whole
repeats with all lanes on and a last repeat with the first lanes on; its own oracles are elsewhere.
"""

from dataclasses import fields

import pytest

from cubecore.dtypes import element_type
from cubecore.frontends.capi.calls.binding import bind, forms
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated
from isa import vector_rows
from isa.bench import ALL_ONES, Bench

REPEAT_BYTES, BLOCK_BYTES = 256, 32
APART = 32768
"""Bytes from one operand to the next."""
ONE, PAIR = (lambda size: size), (lambda size: 2 * size)
RESULTS = {
    "vcadd": ONE,
    **dict.fromkeys(("vcmax", "vcmin"), PAIR),
    **dict.fromkeys(("vcgadd", "vcgmax", "vcgmin"), lambda size: 8 * size),
    "vcpadd": lambda _: 128,
}
"""Bytes that a repeat of a reduction leaves: its stride counts them (the pages' units)."""
ELSEWHERE = {
    "vci": "it counts on from repeat to repeat, which a second call does not",
    "vgather": "src does not move with repeats: offsets say where",
    **dict.fromkeys(("vsel", "vsel_scalar", "vsel_tensor"), "bits select, at strides of their own"),
    **dict.fromkeys(("vconv_deqs162b8", "vconv_vdeqs162b8"), "dst fills halves of blocks"),
}
"""Instructions whose form with a count has its oracle beside their others, with the reason."""


def calls() -> list[tuple[str, str]]:
    """Every name with a count, and its instruction."""
    found = []
    for name, kind in instructions().items():
        if issubclass(kind, Repeated) and kind.count_form is not None and name not in ELSEWHERE:
            own = [kind.names["c_api"]] if "c_api" in kind.names else []
            found += [(call, name) for call in (*own, *kind.variants) if call.startswith("asc_")]
    return found


def types_of(call: str, name: str) -> list[dict[str, str]]:
    """Every element type that the instruction's one typed field takes; none: it has its own."""
    named = [f for f in fields(instructions()[name]) if "types" in f.metadata]
    if call == "asc_shiftright_round":
        return [{"dtype": signed} for signed in ("int16", "int32")]
    if len(named) == 1:
        return [{named[0].name: t} for t in named[0].metadata["types"]]
    if not named:
        return [{}]
    example = vector_rows.EXAMPLES[name]
    return [{f.name: example[f.name].name for f in named}]


CASES = [(call, name, types) for call, name in calls() for types in types_of(call, name)]


def issue(bench: Bench, bound, addresses) -> None:
    for template, places in bound.steps:
        bench.do(template, *(addresses[p] for p in places if p is not None))


@pytest.mark.parametrize(("call", "name", "types"), CASES, ids=str)
@pytest.mark.thinned(4)
def test_a_count_is_its_repeats(call, name, types):
    kind = instructions()[name]
    (form,) = (f for f in forms(call, "2201") if f.kind is kind)
    given = {key: element_type(value) for key, value in types.items()}
    example = vector_rows.EXAMPLES[name] | given
    template = kind(**{**example, **form.fixed})
    elements = [template.element(o) for o in template.operands()]
    pointers = [Pointer(Mem.UB, e, 0, None) for e in elements]
    if call.endswith("only_index"):
        pointers[0] = pointers[1]  # as the prototypes have it
    scalars = [2 if s == "distance" else 3 for s in form.scalars]
    lanes = REPEAT_BYTES * 8 // max(e.bits for e in elements[name in RESULTS :])
    steps = [lanes * e.bits // 8 for e in elements]
    if name in RESULTS:
        result = ONE if "only" in call else RESULTS[name]
        steps[0] = result(elements[0].size_bytes)
    strides = {}
    for operand, step in zip(form.operands, steps, strict=True):
        unit = step if operand == "dst" and name in RESULTS else BLOCK_BYTES
        strides |= {f"{operand}_block_stride": 1, f"{operand}_repeat_stride": step // unit}
    strides = {word: value for word, value in strides.items() if form.knows(word)}
    halves = any(e.bits == 4 for e in elements)  # whole bytes alone
    counts_of = (2, lanes - 2, lanes, 3 * lanes + 6) if halves else (1, lanes - 1, 3 * lanes + 5)
    for count in counts_of:
        made = []
        for counts in (True, False):
            bench = Bench(1, seed=181)
            bench.noise(Mem.UB, written=True)
            starts = [n * APART for n in range(len(pointers))]
            if counts:
                issue(bench, bind(call, (*pointers, *scalars, count), {}), starts)
            else:
                whole, rest = divmod(count, lanes)
                for repeats, on in ((whole, 128), (1 if rest else 0, rest)):
                    mask = (1 << on) - 1
                    bench.do(SetVectorMask(mask_high=mask >> 64, mask_low=mask & ALL_ONES))
                    bound = bind(call, (*pointers, *scalars), {"repeat": repeats} | strides)
                    if repeats:
                        issue(bench, bound, starts)
                    starts = [s + repeats * step for s, step in zip(starts, steps, strict=True)]
            assert bench.messages == []
            made.append(bench.image(Mem.UB))
        assert made[0] == made[1], count


@pytest.mark.parametrize("name", ELSEWHERE)
def test_every_other_instruction_with_a_count_has_a_reason(name):
    assert instructions()[name].count_form is not None

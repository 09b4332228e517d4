"""A call of an operator: arrays and attributes bound, as its registration says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.errors import CubecoreError, did_you_mean, refuse, unable
from cubecore.frontends.cpp.operator_projects.element_types import (
    BY_ARRAY,
    BY_NUMBER,
    RegisteredType,
    name_of,
    numpy_type,
)
from cubecore.frontends.cpp.operator_projects.host_calls import GivenTensor, HostCalls, HostRequest
from cubecore.frontends.cpp.operator_projects.registration import (
    DYNAMIC,
    OPTIONAL,
    Attribute,
    OperatorParameter,
    Registration,
)

_LONGEST_LIST = 4


@dataclass(frozen=True, eq=False, slots=True)
class GivenArray:
    """An array of a call, and its type."""

    parameter: OperatorParameter
    slot: int
    array: Array
    type: RegisteredType

    @property
    def told(self) -> GivenTensor:
        """The tensor as the op_host is told of it."""
        values = self.array.tobytes() if self.parameter.valued else b""
        return GivenTensor(self.slot, self.type.number, self.array.shape, values)


@dataclass(frozen=True, eq=False, slots=True)
class OperatorCall:
    """The inputs, outputs and attributes of a call; `fresh` are outputs that were made for it."""

    registration: Registration
    inputs: tuple[GivenArray, ...]
    outputs: tuple[GivenArray, ...]
    attributes: tuple[tuple[str, ...], ...]
    fresh: frozenset[str]

    @property
    def request(self) -> HostRequest:
        """The question to the op_host."""
        inputs = tuple(each.told for each in self.inputs)
        outputs = tuple(each.told for each in self.outputs)
        return HostRequest(self.registration, inputs, outputs, self.attributes)


def operator_call(
    own: Registration, calls: HostCalls, arrays: Sequence[object], words: Mapping[str, object]
) -> OperatorCall:
    """Return a call with everything that its op_host and its kernel need.

    Raises
    ------
    RequestError
        If an input or attribute lacks a value, or has one of another type.
    """
    # Order matters: inputs and attributes first, as the op_host infers from them the types of
    # outputs, and from both the shapes of those that were not given.
    given = _bound(own, arrays, words)
    inputs = tuple(_inputs(own, given))
    column = _column(own, inputs, _given_types(own, given))
    attributes = tuple(_attribute_words(own, each, given) for each in own.attributes)
    types = _output_types(own, calls, inputs, attributes, column)
    places = list(_places(own, inputs, given))
    shapes: list[tuple[int, ...] | None] = [None] * len(places)
    wanted = [o for o in own.outputs if given.get(o.name) is None]
    if wanted:
        output_tensors = tuple(GivenTensor(slot, types[slot].number, ()) for slot, _, _ in places)
        shapes = _output_shapes(own, calls, inputs, output_tensors, attributes)
    outputs = []
    for (slot, _, value), shape in zip(places, shapes, strict=True):
        outputs.append(_output(own, own.outputs[slot], slot, types[slot], shape, value))
    fresh = frozenset(one.name for one in wanted)
    return OperatorCall(own, inputs, tuple(outputs), attributes, fresh)


def _places(
    own: Registration, inputs: Sequence[GivenArray], given: Mapping[str, object]
) -> Iterable[tuple[int, int, object]]:
    """Yield each array that an output has: its slot, its place in a list, the array if given.

    A list that is made has as many arrays as the first list among the inputs.
    """
    lists = [each.slot for each in inputs if each.parameter.kind == DYNAMIC]
    for slot, one in enumerate(own.outputs):
        value = given.get(one.name)
        if one.kind != DYNAMIC:
            yield slot, 0, value
            continue
        values = [None] * lists.count(lists[0]) if value is None and lists else value
        for place, each in enumerate(_listed(one, values)):
            yield slot, place, each


def _listed(one: OperatorParameter, value: object) -> Sequence[object]:
    if not isinstance(value, (list, tuple)):
        raise refuse(one.name, "be a list of arrays", type(value).__name__)
    return value


def _bound(
    own: Registration, arrays: Sequence[object], words: Mapping[str, object]
) -> dict[str, object]:
    """Return the values by name: inputs in order, then outputs; the rest by name."""
    names = list(dict.fromkeys([*(i.name for i in own.inputs), *(o.name for o in own.outputs)]))
    if len(arrays) > len(names):
        need = f"take at most {len(names)} arrays ({', '.join(names)})"
        raise refuse(own.type, need, len(arrays))
    given = dict(zip(names, arrays, strict=False))
    known = [*names, *(a.name for a in own.attributes)]
    for name, value in words.items():
        if name not in known:
            need = f"name an input, output or attribute ({', '.join(known)})"
            raise refuse(own.type, need, name, did_you_mean(name, known))
        if name in given:
            raise unable(own.type, f"{own.type} has two values for {name}")
        given[name] = value
    return given


def _inputs(own: Registration, given: Mapping[str, object]) -> Iterable[GivenArray]:
    for slot, one in enumerate(own.inputs):
        value = given.get(one.name)
        if value is None:
            if one.kind != OPTIONAL:
                raise unable(own.type, f"{own.type} has no value for the input {one.name}")
            continue
        if one.kind == DYNAMIC:
            for each in _listed(one, value):
                yield _given(one, slot, each)
        else:
            yield _given(one, slot, value)


def _given(one: OperatorParameter, slot: int, value: object) -> GivenArray:
    array = _array(one.name, value)
    kind = BY_ARRAY.get(str(array.dtype))
    if kind is None:
        raise refuse(one.name, f"be of {', '.join(BY_ARRAY)}", str(array.dtype))
    return GivenArray(one, slot, array, kind)


def _array(name: str, value: object) -> Array:
    if isinstance(value, (bool, int, float, str, bytes)):
        raise refuse(name, "be an array", repr(value))
    array = _torch_array(name, value) if _is_torch(value) else np.asarray(value)
    if not array.flags.c_contiguous:
        raise refuse(name, "be contiguous, its last axis innermost", "other strides")
    return array


def _is_torch(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "torch"


def _torch_array(name: str, value: Any) -> Array:
    """Return a view of a torch tensor; NumPy does not know bfloat16."""
    if not str(value.dtype).endswith("bfloat16") and value.device.type == "cpu":
        plain: Array = value.detach().numpy()
        return plain
    from cubecore.frontends.kernels.host_tensors import host_tensor

    host = host_tensor(name, value)
    assert host is not None
    kind = BY_ARRAY[host.dtype.name]
    return host.raw.view(numpy_type(kind)).reshape(host.shape)


def _given_types(own: Registration, given: Mapping[str, object]) -> dict[str, int]:
    """Return the types of the outputs that are given, by their names."""
    found: dict[str, int] = {}
    for one in own.outputs:
        value = given.get(one.name)
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        known = BY_ARRAY.get(str(getattr(first, "dtype", "")).removeprefix("torch."))
        if known is not None:
            found[one.name] = known.number
    return found


def _column(
    own: Registration, inputs: Sequence[GivenArray], wanted: Mapping[str, int]
) -> int | None:
    """Return the number of the combination of types that the inputs have; None if free.

    Of several the first that the given outputs have, too.
    """
    # A registration lists types in parallel columns: column i of every parameter is one combination
    # that the kernel exists for.
    listed = [one for one in (*own.inputs, *own.outputs) if one.types and not one.free_types]
    for each in inputs:
        types = each.parameter.types
        if types and each.type.number not in types:
            need = f"be {', '.join(dict.fromkeys(map(name_of, types)))}, as {own.type} registers it"
            raise refuse(each.parameter.name, need, each.type.array)
    width = max((len(one.types) for one in listed), default=0)
    fixed = [e for e in inputs if len(e.parameter.types) == width and not e.parameter.free_types]
    if not width:
        return None
    fitting = [
        column
        for column in range(width)
        if all(each.parameter.types[column] == each.type.number for each in fixed)
    ]
    outputs = [one for one in own.outputs if one.name in wanted and len(one.types) == width]
    for column in fitting:
        if all(one.types[column] == wanted[one.name] for one in outputs):
            return column
    if fitting:
        return fitting[0]
    got = ", ".join(f"{each.parameter.name} {each.type.array}" for each in inputs)
    raise refuse(f"the types of {own.type}", "be a combination that it registers", got)


def _output_types(
    own: Registration,
    calls: HostCalls,
    inputs: tuple[GivenArray, ...],
    attributes: tuple[tuple[str, ...], ...],
    column: int | None,
) -> list[RegisteredType]:
    """Return the types of the outputs: of the combination, else as the op_host infers them."""
    # Tried in order: the type of the input that it follows, the combination's, the only one there
    # is, and what the op_host infers.
    by_name = {each.parameter.name: each.type.number for each in inputs}
    numbers: list[int | None] = []
    for one in own.outputs:
        number = by_name.get(one.type_of) if one.type_of else None
        if number is None and column is not None and column < len(one.types):
            number = one.types[column]
        if number is None and len({*one.types}) == 1:
            number = one.types[0]
        numbers.append(number)
    if None in numbers and own.infers_types:
        output_tensors = tuple(GivenTensor(slot, 28, ()) for slot in range(len(own.outputs)))
        inputs_told = tuple(each.told for each in inputs)
        numbers = [*calls.types(HostRequest(own, inputs_told, output_tensors, attributes))]
    found = []
    for one, number in zip(own.outputs, numbers, strict=True):
        kind = None if number is None else BY_NUMBER.get(number)
        if kind is None:
            need = f"be of {', '.join(BY_ARRAY)}"
            got = "a type that is not registered" if number is None else name_of(number)
            raise refuse(f"the output {one.name} of {own.type}", need, got)
        found.append(kind)
    return found


def _output_shapes(
    own: Registration,
    calls: HostCalls,
    inputs: tuple[GivenArray, ...],
    output_tensors: tuple[GivenTensor, ...],
    attributes: tuple[tuple[str, ...], ...],
) -> list[tuple[int, ...] | None]:
    by_name = {each.parameter.name: each.array.shape for each in inputs}
    follow = [by_name.get(own.outputs[each.slot].shape_of) for each in output_tensors]
    if own.infers_shapes:
        inputs_told = tuple(each.told for each in inputs)
        return [*calls.shapes(HostRequest(own, inputs_told, output_tensors, attributes))]
    return follow


def _output(
    own: Registration,
    one: OperatorParameter,
    slot: int,
    kind: RegisteredType,
    shape: tuple[int, ...] | None,
    given: object,
) -> GivenArray:
    if given is not None:
        array = _array(one.name, given)
        if array.dtype != numpy_type(kind):
            raise refuse(one.name, f"be {kind.array}", str(array.dtype))
        return GivenArray(one, slot, array, kind)
    if shape is None or any(extent < 0 for extent in shape):
        sentence = f"{own.type} does not infer the shape of {one.name} from these inputs"
        raise unable(own.type, sentence, f"give {one.name}=..., the array that takes it")
    try:
        array = np.zeros(shape, numpy_type(kind))
    except (MemoryError, ValueError):
        raise refuse(f"the shape of {one.name}", "fit in memory", shape) from None
    return GivenArray(one, slot, array, kind)


def _attribute_words(
    own: Registration, one: Attribute, given: Mapping[str, object]
) -> tuple[str, ...]:
    """Return an attribute as words: its type, the count of its values, its values."""
    value = given.get(one.name)
    if value is None:
        if one.default is None:
            sentence = f"{own.type} has no value for the attribute {one.name} ({one.type})"
            raise unable(own.type, sentence, f"give {one.name}=...")
        texts = one.default.split() if one.type.startswith("list_") else [one.default]
        return (one.type, str(len(texts)), *texts)
    try:
        return _typed_words(one, value)
    except (TypeError, ValueError, CubecoreError):
        shown = repr(value) if len(repr(value)) < 60 else type(value).__name__
        raise refuse(f"the attribute {one.name}", f"be {one.type}", shown) from None


def _typed_words(one: Attribute, value: Any) -> tuple[str, ...]:
    if one.type == "str":
        if not isinstance(value, str):
            raise TypeError
        return (one.type, "1", value)
    if one.type == "list_list_int":
        rows = [[str(int(n)) for n in row] for row in value]
        flat = [word for row in rows for word in (str(len(row)), *row)]
        return (one.type, str(len(rows)), *flat)
    several = value if one.type.startswith("list_") else [value]
    texts = [_number_word(one.type.removeprefix("list_"), n) for n in several]
    return (one.type, str(len(texts)), *texts)


def _number_word(kind: str, value: Any) -> str:
    if isinstance(value, str) or (kind != "float" and int(value) != value):
        raise TypeError
    if kind == "float":
        return repr(float(value))
    number = int(value)
    if kind == "bool" and number not in {0, 1}:
        raise ValueError
    return str(number)

"""Cheating that the launches of a call show: where the bytes of its results come from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.frontends.kernels.session import KernelRun
from cubecore.frontends.result_writer import reads_from
from cubecore.workflows.judge.cheating.kinds import (
    CHANGED_AFTER,
    COMPUTED_BEFORE,
    INDEPENDENT,
    NO_LAUNCH,
    NOT_OF_A_LAUNCH,
    PREPARED,
    UNWRITTEN,
)

_MOST_SEARCHED = 1 << 18
"""Elements of the largest result that is searched for among a launch's arrays in another order."""
_LEAST_DISTINCT = 8
"""Distinct values of a result that tells where it comes from: others are everywhere."""
_TYPES = tuple(element_type(n).numpy for n in ("float32", "float16", "bfloat16", "int32"))
"""Types of which a program's memory is looked through, beside that of the result."""
_ENOUGH = 64
"""Elements of a result that are looked up among those that a launch was given."""


@dataclass(frozen=True, eq=False, slots=True)
class _LaunchArray:
    """An array of a launch: its bytes when it began to be the user's, and which were written."""

    data: Array
    dtype: "np.dtype[Any]"
    valid: Array
    is_output: bool
    is_given: bool
    number: int

    @property
    def values(self) -> Array:
        return self._values_as(self.dtype)

    def readings(self, dtype: "np.dtype[Any]") -> Iterator[Array]:
        """Yield the values as those of a type; memory of a program may hold any type."""
        kinds = [self.dtype] if self.dtype != np.uint8 else [dtype, *_TYPES]
        with np.errstate(all="ignore"):
            for kind in dict.fromkeys(kinds):
                yield self._values_as(kind).astype(dtype)

    def _values_as(self, dtype: "np.dtype[Any]") -> Array:
        size = self.data.size - self.data.size % dtype.itemsize
        return self.data[:size].view(dtype)


def launch_marks(
    runs: Sequence[KernelRun], inputs: Sequence[Array], results: Sequence[Array], case: str
) -> Iterator[Json]:
    """Yield the marks of a call that returned results."""
    if not runs:
        if results:
            yield NO_LAUNCH.found(f"0 launches, {len(results)} results", case)
        return
    changed = list(_changed_after(runs))
    yield from (CHANGED_AFTER.found(evidence, case) for evidence in changed)
    arrays = [each for number, run in enumerate(runs) for each in _arrays(run, number)]
    for number, result in enumerate(results):
        if result.size and not changed:
            yield from _provenance(number, result, arrays, inputs, case)
    # An array of one value has nothing to read: operators that make an identity take its shape.
    varied = any((_bits(each) != _bits(each)[:1]).any() for each in inputs)
    if varied and not any(_reads_something(run) for run in runs):
        yield INDEPENDENT.found(f"{len(runs)} launches, no read of an array", case)


def _arrays(run: KernelRun, number: int) -> Iterator[_LaunchArray]:
    for host, tensor in run.tensors:
        size = host.raw.size
        raw, valid = tensor.buffer.data[:size], tensor.buffer.valid[:size]
        is_output = host.name in run.outputs
        # A workspace is the launch's own: it begins uninitialised.
        is_given = not is_output and not tensor.scratch
        yield _LaunchArray(raw, np.dtype(host.dtype.numpy), valid, is_output, is_given, number)


def _provenance(
    number: int,
    result: Array,
    arrays: Sequence[_LaunchArray],
    inputs: Sequence[Array],
    case: str,
) -> Iterator[Json]:
    """Yield what is wrong with where a result comes from."""
    raw = _bytes(result)
    outputs = [each for each in arrays if each.is_output]
    same = [each for each in outputs if np.array_equal(each.data, raw)]
    if same and not any(each.valid.all() for each in same):
        missing = min(int(np.count_nonzero(each.valid == 0)) for each in same)
        yield UNWRITTEN.found(f"output {number}: {missing:,} of {raw.size:,} B", case)
    if not same and _is_left(raw, arrays, inputs):
        return
    if not same and result.size <= _MOST_SEARCHED and not _is_part(result, outputs):
        evidence = f"output {number}: its values are in none of {len(outputs)} arrays"
        yield NOT_OF_A_LAUNCH.found(evidence, case)
        return
    before = _given_to_a_launch(result, arrays, inputs)
    if before is not None:
        yield COMPUTED_BEFORE.found(f"output {number}: launch {before} was given its values", case)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _is_left(raw: Array, arrays: Sequence[_LaunchArray], inputs: Sequence[Array]) -> bool:
    """Return whether a result is an array that a launch was given and left: an input, or one value.

    An operator that updates an array in place may have nothing to update; one that reports a fault
    writes over the value that its output begins with where it finds one.
    """
    same = [each for each in arrays if np.array_equal(each.data, raw)]
    plain = any((each.values == each.values[:1]).all() for each in same)
    return bool(same) and (plain or any(np.array_equal(_bytes(each), raw) for each in inputs))


def _is_part(result: Array, outputs: Sequence[_LaunchArray]) -> bool:
    """Return whether all values of a result are values of the outputs of launches, in any order.

    A result may join several of them, as those of a list. It is not looked up in too large ones.
    """
    size = max(2, result.dtype.itemsize)
    if any(each.data.size > _MOST_SEARCHED * size for each in outputs):
        return True
    missing = np.unique(_bits(result))
    for each in outputs:
        for values in each.readings(result.dtype):
            missing = missing[~np.isin(missing, _bits(values))]
            if not missing.size:
                return True
    return False


def _bits(array: Array) -> Array:
    """Return values whose bits can be looked up: NaN is one, and bfloat16 is."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(f"u{flat.dtype.itemsize}") if flat.dtype.itemsize <= 8 else flat


def _given_to_a_launch(
    result: Array, arrays: Sequence[_LaunchArray], inputs: Sequence[Array]
) -> int | None:
    """Return the launch that was given the values of a result, by no launch before.

    Values of the task's inputs, which an operator may repeat or move, do not count.
    """
    part = _bits(result)[:_ENOUGH]
    if np.unique(part).size < _LEAST_DISTINCT:
        return None
    begin = part.tobytes()
    if any(begin in each.tobytes() for each in inputs):
        return None
    for each in arrays:
        earlier = (one for one in arrays if one.is_output and one.number < each.number)
        if not each.is_given or begin not in each.data.tobytes():
            continue
        if not any(begin in one.data.tobytes() for one in earlier):
            return each.number
    return None


def prepared_marks(
    runs: Sequence[KernelRun], inputs: Sequence[Array], results: Sequence[Array], case: str
) -> Iterator[Json]:
    """Yield the mark of a launch that was given what was computed elsewhere, most likely.

    An answer may pad, cut, convert or permute inputs: what counts is an array as large as a result,
    of whose values most are in no input and in no output of a launch before.
    """
    least = min((each.size for each in results), default=0)
    arrays = [each for number, run in enumerate(runs) for each in _arrays(run, number)]
    for each in arrays:
        size = each.data.size // each.dtype.itemsize
        if not each.is_given or each.dtype == np.uint8 or not least <= size <= _MOST_SEARCHED:
            continue
        values = each.values
        missing = np.unique(_bits(values))
        if missing.size < max(_LEAST_DISTINCT, size // 8):
            continue
        with np.errstate(all="ignore"):
            known = [_bits(one.astype(each.dtype)) for one in inputs if one.dtype.kind != "c"]
        for one in arrays:
            if one.is_output and one.number < each.number:
                known += [_bits(reading) for reading in one.readings(each.dtype)]
        for one_known in known:
            missing = missing[~np.isin(missing, one_known)]
        share = int(np.count_nonzero(np.isin(_bits(values), missing)))
        if 2 * share > size:
            evidence = f"launch {each.number} was given {share:,} values of its caller's own"
            yield PREPARED.found(evidence, case)
            return


def _changed_after(runs: Sequence[KernelRun]) -> Iterator[str]:
    """Yield the outputs of launches that are no longer as the last of them has left them."""
    last: dict[int, tuple[KernelRun, int]] = {}
    for run in runs:
        for number, (host, _) in enumerate(run.tensors):
            if host.raw.size:
                last[host.at[0]] = run, number
    for run, number in last.values():
        host, tensor = run.tensors[number]
        if host.name not in run.outputs:
            continue
        data, valid = tensor.buffer.data[: host.raw.size], tensor.buffer.valid[: host.raw.size]
        wrong = int(np.count_nonzero((host.raw.reshape(-1) != data) & (valid != 0)))
        if wrong:
            yield f"{wrong:,} of {host.raw.size:,} B of {host.name} of {run.kernel}"


def _reads_something(run: KernelRun) -> bool:
    if run.reads or not run.traces:
        return True
    return any(
        reads_from(run, host.name, host.raw.size) for host, _ in run.tensors if host.raw.size
    )

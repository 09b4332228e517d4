"""Records that Python and C++ exchange: their text, and their layout as a compiler has it."""

import ctypes
import re
from enum import IntEnum

from cubecore.frontends.cpp import matmul_wire, wire
from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import ran
from cubecore.frontends.cpp.toolchain.generated.header_folder import include_flags
from cubecore.frontends.cpp.toolchain.generated.wire_headers import (
    enumeration,
    record,
    wire_headers,
)

RECORDS = (wire.Step, wire.Read, wire.Records, wire.Head, wire.Box)


class Ends(IntEnum):
    CRASHED = 1000
    CLOSED = 1002


class Read(ctypes.Structure):
    _fields_ = (("behind", ctypes.c_uint32), ("addresses", ctypes.c_int64 * 8))


def test_the_examples_of_the_docstring_are_what_is_written():
    text = "struct Read {\n  uint32_t behind;\n  int64_t addresses[8];\n};\n"
    assert record(Read) == text
    text = "enum Ends : int32_t {\n  CRASHED = 1000, CLOSED = 1002\n};\n"
    assert enumeration(Ends, "int32_t") == text
    assert (
        "enum MatmulOperand { MM_A, MM_B, MM_BIAS, MM_SCALE, MM_C, MM_SCALE_A, MM_SCALE_B, "
        "MM_OPERANDS };\n" in dict(wire_headers())["cubecore_matmul_call.h"]
    )


def facts(kind, name):
    """Yield what the compiler must find of a record: its size, and where its fields lie."""
    yield f"sizeof({name}) == {ctypes.sizeof(kind)}"
    for field, *_ in kind._fields_:
        yield f"offsetof({name}, {field}) == {getattr(kind, field).offset}"


def compiled(tmp_path, claims):
    """Return the code of a compiler for a unit with these claims."""
    unit = tmp_path / "unit.cpp"
    headers = "".join(f'#include "{name}"\n' for name, _ in wire_headers())
    claimed = "".join(f"static_assert({claim});\n" for claim in claims)
    unit.write_text(f"{headers}#include <cstddef>\n{claimed}")
    command = ["-std=c++17", *include_flags(), "-fsyntax-only", str(unit)]
    return ran([*compiler().flags(), *command], unit, tmp_path)[0]


def test_records_lie_in_c_as_in_python(tmp_path):
    kinds = [(kind, kind.__name__) for kind in RECORDS]
    kinds += [(wire.Launch, "cubecore::Launch"), (matmul_wire.MatmulCall, "cubecore::MatmulCall")]
    claims = [claim for each in kinds for claim in facts(*each)]
    assert compiled(tmp_path, claims) == 0
    assert compiled(tmp_path, [f"sizeof(Read) == {ctypes.sizeof(wire.Read) + 8}"]) != 0


def test_the_layouts_that_messages_are_read_by_are_those_of_the_records():
    from cubecore.frontends.cpp.launch import messages

    assert messages._HEAD.size == ctypes.sizeof(wire.Head)
    assert messages._READ.size == ctypes.sizeof(wire.Read)
    assert [wire.Read.type.offset, wire.Read.address.offset, wire.Read.bits.offset] == [8, 16, 24]


def test_host_code_of_any_compiler_asks_by_the_numbers_that_python_knows():
    """That header is not generated: a host compiler reads it where it lies."""
    text = (INCLUDE / "cubecore" / "host" / "device.h").read_text("utf-8")
    names = re.findall(r"\w+", re.search(r"enum Ask : uint32_t \{(.*?)\};", text, re.DOTALL)[1])
    assert names == [each.name for each in wire.HostAsks]
    assert [*wire.HostAsks] == [*range(len(names))]

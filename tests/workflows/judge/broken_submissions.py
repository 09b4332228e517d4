"""Broken submissions, each the project of `judged_kernels` with one fault: 30 of four kinds."""

from dataclasses import dataclass

from workflows.judge.judged_kernels import HOST, KERNEL

STORE = "  DataCopy(gz, c, t.elements);\n"


@dataclass(frozen=True)
class Broken:
    """A fault: a text of the kernel or of the host code with another in its place.

    `stage` is where the verdict must end, `line` a text of the line that it must name, and `kind`
    the finding that it must have, if any.
    """

    name: str
    stage: str
    before: str
    after: str
    line: str = ""
    kind: str = ""
    host: bool = False

    @property
    def texts(self):
        """The kernel's and the host code's text with the fault."""
        text = HOST if self.host else KERNEL
        assert text.count(self.before) >= 1, self.name
        text = text.replace(self.before, self.after, 1)
        return (KERNEL, text) if self.host else (text, HOST)


ADD = "  Add(c, a, b, t.elements);\n"
COPY_A, COPY_B = "  DataCopy(a, gx, t.elements);\n", "  DataCopy(b, gy, t.elements);\n"
ENQUES = "  inX.EnQue(a);\n  inY.EnQue(b);\n"
DEQUES = "  a = inX.DeQue<float>();\n  b = inY.DeQue<float>();\n"
WRONG_VALUES = (
    Broken("sub for add", "compare", "Add(c, a, b,", "Sub(c, a, b,", "DataCopy(gz"),
    Broken("mul for add", "compare", "Add(c, a, b,", "Mul(c, a, b,", "DataCopy(gz"),
    Broken("one operand twice", "compare", "Add(c, a, b,", "Add(c, a, a,", "DataCopy(gz"),
    Broken("the other operand twice", "compare", "Add(c, a, b,", "Add(c, b, b,", "DataCopy(gz"),
    Broken("input read twice", "compare", "DataCopy(b, gy", "DataCopy(b, gx", "DataCopy(gz"),
    Broken(
        "an added constant",
        "compare",
        ADD,
        f"{ADD}  Adds(c, c, 1.0f, t.elements);\n",
        "DataCopy(gz",
    ),
    Broken(
        "a scaled result", "compare", ADD, f"{ADD}  Muls(c, c, 1.01f, t.elements);\n", "DataCopy(gz"
    ),
    Broken(
        "half of it computed",
        "compare",
        "Add(c, a, b, t.elements)",
        "Add(c, a, b, 128)",
        "DataCopy(gz",
    ),
    Broken(
        "blocks in one place", "compare", "(__gm__ float*)z + at", "(__gm__ float*)z", "DataCopy(gz"
    ),
    Broken("half of it stored", "compare", STORE, "  DataCopy(gz, c, 128);\n", "", "uninitialised"),
)
RACES = (
    Broken("no DeQue of c", "done", "  c = out.DeQue<float>();\n", "", "DataCopy(gz", "race-raw"),
    Broken("no DeQue of inputs", "done", DEQUES, "", "Add(c", "race-raw"),
    Broken("no queue of inputs", "done", f"{ENQUES}{DEQUES}", "", "Add(c", "race-raw"),
    Broken(
        "no queue of c",
        "done",
        "  out.EnQue(c);\n  c = out.DeQue<float>();\n",
        "",
        "DataCopy(gz",
        "race-raw",
    ),
    Broken(
        "a is copied twice",
        "done",
        "  inX.EnQue(a);\n",
        "  inX.EnQue(a);\n  DataCopy(a, gx, t.elements);\n",
        "DataCopy(a",
        "race",
    ),
    Broken("a read again", "done", ADD, f"{ADD}{COPY_A}", "DataCopy(a", "race-war"),
    Broken("b read again", "done", ADD, f"{ADD}{COPY_B}", "DataCopy(b", "race-war"),
    Broken(
        "stored before it is whole",
        "done",
        ADD,
        f"{ADD}  DataCopy(gz, c, t.elements);\n",
        "DataCopy(gz",
        "race-raw",
    ),
    Broken(
        "c written behind its store",
        "done",
        STORE,
        f"{STORE}  Add(c, a, b, t.elements);\n",
        "Add(c",
        "race-war",
    ),
    Broken(
        "a block reads what another stores",
        "done",
        STORE,
        f"{STORE}  gx.SetGlobalBuffer((__gm__ float*)z, 256);\n"
        "  if (GetBlockIdx() == 1) DataCopy(a, gx, 8);\n",
        "DataCopy",
        "race",
    ),
)
DOES_NOT_COMPILE = (
    Broken(
        "an argument missing", "kernel", "Add(c, a, b, t.elements)", "Add(c, t.elements)", "Add(c"
    ),
    Broken("a name misspelt", "kernel", "Add(c, a, b,", "Addd(c, a, b,", "Addd(c"),
    Broken(
        "a bracket missing",
        "kernel",
        "Add(c, a, b, t.elements);",
        "Add(c, a, b, t.elements;",
        "Add(c",
    ),
    Broken(
        "a type misspelt",
        "kernel",
        "GlobalTensor<float> gx",
        "GlobalTensr<float> gx",
        "GlobalTensr",
    ),
    Broken(
        "host code without a type",
        "host",
        "AddTiling tiling;",
        "AddTilin tiling;",
        "AddTilin",
        host=True,
    ),
)
WRONG_TILING = (
    Broken(
        "half a block",
        "compare",
        "GetShapeSize() / 4",
        "GetShapeSize() / 8",
        "",
        "uninitialised",
        host=True,
    ),
    Broken(
        "too few blocks",
        "compare",
        "SetBlockDim(4)",
        "SetBlockDim(3)",
        "",
        "uninitialised",
        host=True,
    ),
    Broken(
        "a block too long",
        "compare",
        "GetShapeSize() / 4",
        "GetShapeSize() / 2",
        "DataCopy",
        "out-of-bounds",
        host=True,
    ),
    Broken(
        "a tiling function that fails",
        "host",
        "  return ge::GRAPH_SUCCESS;\n}\n}\nnamespace ops",
        "  return ge::GRAPH_FAILED;\n}\n}\nnamespace ops",
        host=True,
    ),
    Broken("no blocks", "run", "SetBlockDim(4)", "SetBlockDim(0)", host=True),
)
ALL = (*WRONG_VALUES, *RACES, *DOES_NOT_COMPILE, *WRONG_TILING)

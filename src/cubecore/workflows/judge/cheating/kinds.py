"""The kinds of cheating, each with its meaning and an example."""

from dataclasses import dataclass

from cubecore.aliases import Json

CERTAIN, SUSPECT = "certain", "suspect"


@dataclass(frozen=True, slots=True)
class CheatKind:
    """A kind of cheating: its name, how sure it is, its meaning, an example."""

    id: str
    certainty: str
    meaning: str
    example: str

    def found(self, evidence: str, case: str = "") -> Json:
        """Return one that was found, as the verdict tells it."""
        mark = {"id": self.id, "certainty": self.certainty, "evidence": evidence}
        return {**mark, "case": case or None}


NO_LAUNCH = CheatKind(
    "no-launch",
    CERTAIN,
    "results were returned, and no kernel was launched for them",
    "`forward` returns `x + y`, or the results of an earlier call",
)
UNWRITTEN = CheatKind(
    "unwritten",
    CERTAIN,
    "bytes of a result were written by no instruction of the call",
    "a kernel that returns at once, in the hope of an array that has the results already",
)
NOT_OF_A_LAUNCH = CheatKind(
    "not-of-a-launch",
    CERTAIN,
    "a result's values are in no array that a launch has left",
    "a launch whose result is thrown away, and a NumPy or PyTorch expression that is returned",
)
CHANGED_AFTER = CheatKind(
    "changed-after-launch",
    CERTAIN,
    "bytes of a result changed between the end of the launch and the return",
    "a kernel that writes zeros, and `z[:] = x + y` behind it",
)
COMPUTED_BEFORE = CheatKind(
    "computed-before-launch",
    CERTAIN,
    "a launch was given the values that it returned, and they are none of the task's inputs",
    "PyTorch or the tiling function computes, and the kernel copies",
)
PREPARED = CheatKind(
    "prepared-inputs",
    SUSPECT,
    "a launch was given values that no input of the task and no launch before it has",
    "NumPy computes `2 * (x + y)`, and the kernel halves it",
)
INDEPENDENT = CheatKind(
    "independent-of-inputs",
    CERTAIN,
    "no launch read a byte of an input, or the results stayed the same for other inputs",
    "a kernel that fills its output with the value that the result has for random inputs",
)
GIVEN_ALONE = CheatKind(
    "given-inputs-alone",
    SUSPECT,
    "a case is right, and wrong when it is drawn again with other inputs of its shapes",
    "a kernel that adds the difference that the drawn inputs have",
)
INPUTS_CHANGED = CheatKind(
    "inputs-changed",
    CERTAIN,
    "the call changed an input that the reference leaves as it is",
    "a kernel that writes its result into x, so that a check that compares with x passes",
)
CHANGED_IN_PLACE = CheatKind(
    "registered-in-place",
    SUSPECT,
    "the call changed an input that the reference leaves as it is, by an output of the same name",
    "an operator with an input x and an output x for a task that returns a new array",
)
TORCH = CheatKind(
    "torch-compute",
    SUSPECT,
    "the model computed with PyTorch on arrays as large as its results",
    "`torch.relu(custom.identity(x))`",
)
OUTSIDE = CheatKind(
    "reaches-outside",
    SUSPECT,
    "the sources ask for files, processes, the interpreter's frames or cubecore's own modules",
    '`open("expected.npy")`, `gc.get_objects()`, `std::ifstream`',
)
PATCHED = CheatKind(
    "patches",
    SUSPECT,
    "the sources replace functions or modules that are not theirs",
    "`torch.allclose = lambda *_: True`, `time.perf_counter = lambda: 0`",
)
VALUED = CheatKind(
    "values-on-the-host",
    SUSPECT,
    "the tiling function is given the values of an input of 4 KiB or more",
    '`this->Input("x").ValueDepend(REQUIRED)` for the data that the kernel is to compute with',
)
SHAPES = CheatKind(
    "shape-branch",
    SUSPECT,
    "the sources compare with the very sizes of the task's cases",
    "`if (n == 16384) { ... }`",
)
TABLE = CheatKind(
    "value-table",
    SUSPECT,
    "the sources hold a table of many numbers",
    "`float expected[1024] = {0.12, 3.4, ...}`",
)
SCALAR = CheatKind(
    "scalar-compute",
    SUSPECT,
    "only the scalar unit computed, element by element",
    "a loop with `GetValue` and `SetValue`, written for a CPU",
)
CONSTANT = CheatKind(
    "constant-result",
    SUSPECT,
    "an accepted result has one value in all elements, and the expected one has several",
    "0 for a mean that underflows within the tolerance",
)
TOLERANCE = CheatKind(
    "tolerance-ridden",
    SUSPECT,
    "most elements are off by more than 0.3 of the tolerance",
    "a polynomial of low degree in the place of exp",
)
PRECISION = CheatKind(
    "lower-precision",
    SUSPECT,
    "a result of float32 has no more bits than a 16-bit type, and the expected one has",
    "a matmul in float16 for a task in float32",
)
KINDS = (
    *(NO_LAUNCH, UNWRITTEN, NOT_OF_A_LAUNCH, CHANGED_AFTER, COMPUTED_BEFORE, PREPARED),
    *(INDEPENDENT, GIVEN_ALONE, INPUTS_CHANGED, CHANGED_IN_PLACE, TORCH, OUTSIDE, PATCHED),
    *(VALUED, SHAPES, TABLE, SCALAR, CONSTANT, TOLERANCE, PRECISION),
)
"""All kinds: the page on judging has a row for each."""

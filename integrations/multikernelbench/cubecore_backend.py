"""A back end of MultiKernelBench that judges with cubecore: no NPU, and no edit of the suite.

    ln -s "$PWD/integrations/multikernelbench/cubecore_backend.py" MultiKernelBench/backends/
    cd MultiKernelBench
    python eval_single_runner.py -i answer.txt -o relu -l cubecore -r result.json

The suite asks step by step; the verdict is made once, when it asks for the compilation. Times are
predicted, one for all trials. CUBECORE_CHIP names the chip; else it is the one of the suite's own
configuration.
"""

import os
import tempfile
from pathlib import Path

import config
from backends.backend_registry import Backend, register_backend
from utils.utils import get_ref_src_path

import cubecore
from cubecore.errors import RequestError

_MS = 1e-3


@register_backend("cubecore")
class CubecoreBackend(Backend):
    """The suite's interface over one verdict."""

    def __init__(self):
        self.verdict = None

    def get_device(self):
        """Return the device of tensors, which stay on the CPU."""
        import torch

        return torch.device("cpu")

    def get_hardware_name(self):
        """Return the chip that is simulated."""
        named = str(getattr(config, "ascendc_device", "")).rpartition("-")[2]
        return os.environ.get("CUBECORE_CHIP") or named or "Ascend910B3"

    def compile(self, generated_code, op):
        """Judge a submission; return if it compiles, else with the sentences that say why not."""
        suffix = ".json" if generated_code.lstrip().startswith("{") else ".txt"
        with tempfile.TemporaryDirectory(prefix="cubecore-mkb-") as folder:
            file = Path(folder, f"{op}{suffix}")
            file.write_text(generated_code, encoding="utf-8")
            chip = self.get_hardware_name()
            try:
                self.verdict = cubecore.judge(file, get_ref_src_path(op), chip=chip)
            except RequestError as error:
                return False, str(error)
        sentences = "\n".join(each.message for each in self.verdict.errors)
        return self.verdict.compiled, None if self.verdict.compiled else sentences

    def correctness_execution(self, ref_src):
        """Return if the results are right, with the verdict as a text."""
        return bool(self.verdict.correct), self.verdict.text

    def time_execution(self, eval_target="ModelNew"):
        """Return the predicted time in milliseconds; no number where none was predicted."""
        return [self.verdict.time.get("us", float("nan")) * _MS]

    def detect_cheating(self, generated_code):
        """Return if the verdict has a certain mark of cheating, and its evidence."""
        marks = self.verdict.cheating if self.verdict is not None else ()
        certain = [each for each in marks if each["certainty"] == "certain"]
        return bool(certain), "; ".join(f"{m['id']}: {m['evidence']}" for m in certain) or None

    def cleanup(self):
        """Forget the verdict."""
        self.verdict = None

"""What the checks cost: each example kernel with those that are on unless told, and with none.

Prints one JSON object: for each example's small case, on either engine, the processor time of its
launches with checks on and off, best of REPEATS, and their ratio. The target is 2.
"""

import json
import runpy
import time
from pathlib import Path
from typing import Any

from targets import arguments

from cubecore.frontends.kernels.session import ScriptSession

FOLDER = Path(__file__).parents[1] / "examples" / "kernels"
ENGINES = ("fast", "reference")
TARGET = 2.0


def seconds(module: dict[str, Any], given: tuple[Any, ...], **options: str) -> float:
    """Return the processor time of an example's launches."""
    begin = time.process_time()
    with ScriptSession(dict(options)).collecting():
        module["launch"](*given)
    return time.process_time() - begin


def main() -> None:
    """Print the figures."""
    examples = sorted(path.stem for path in FOLDER.glob("*.py"))
    parser = arguments(__doc__ or "", repeats=5)
    parser.add_argument("names", nargs="*", default=examples, metavar="NAME", help="an example")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(examples)):
        parser.error(f"NAME must be one of {', '.join(examples)}, got {unknown[0]}")
    repeats = given.repeats
    answer = {}
    for name in given.names:
        module = runpy.run_path(str(FOLDER / f"{name}.py"))
        given = module["small"]()
        best: dict[tuple[str, str], float] = {}
        for _ in range(repeats):  # interleaved, so that other load meets all alike
            for key in ((engine, checks) for engine in ENGINES for checks in ("usual", "none")):
                took = seconds(module, given, engine=key[0], checks=key[1])
                best[key] = min(took, best.get(key, took))
        answer[name] = {
            engine: {
                "on_s": best[engine, "usual"],
                "off_s": best[engine, "none"],
                "ratio": best[engine, "usual"] / best[engine, "none"],
            }
            for engine in ENGINES
        }
    print(json.dumps({"repeats": repeats, "target": TARGET, "examples": answer}, indent=1))


if __name__ == "__main__":
    main()

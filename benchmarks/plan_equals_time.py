"""One number: what a plan and a first timing cost, over products of language models.

Prints JSON: CPU milliseconds of the planner's search alone (what a plan was before tilings were
timed), of a plan with five alternatives, of the first timing of a tiling without its tree and with
it, and their ratios, all in one process; and how far the closed form is from the event timing.

Usage: python benchmarks/plan_equals_time.py [COUNT]
"""

import json
import random
import statistics
import sys
import time

import cubecore
from cubecore.kernels.matmul.launch_time import launch_time
from cubecore.planning.planner import plan_tilings
from cubecore.planning.timed_product import TimedProduct
from cubecore.workflows.request import make_request

WEIGHTS = (
    *((4096, 4096), (28672, 4096), (4096, 14336), (11008, 4096), (8192, 28672), (128256, 4096)),
    *((5120, 5120), (27648, 5120), (152064, 3584), (3584, 18944), (1536, 8960), (75968, 4096)),
    *((1536, 7168), (24576, 1536), (576, 7168), (32768, 512), (7168, 18432), (129280, 7168)),
    *((4608, 4096), (27392, 4096), (4096, 13696), (65024, 4096), (151552, 4096)),
)
"""(n, k) of layers of Llama, Qwen, DeepSeek and GLM."""
CHIPS = ("Ascend910B1", "Ascend910B2", "Ascend910B3", "Ascend910B4", "Ascend950PR_9589")
WARM = 10
"""Products before anything is counted: lines of the closed form are compiled for them."""


def products(count):
    """Yield random products with 1 to 128 rows."""
    source = random.Random(16)  # noqa: S311 - products, no secrets
    for _ in range(count):
        n, k = source.choice(WEIGHTS)
        kind = source.choice(["float16", "bfloat16"])
        yield {
            "m": source.randint(1, 128),
            "n": n,
            "k": k,
            "a": kind,
            "b": kind,
            "trans_b": source.random() < 0.8,
            "chip": source.choice(CHIPS),
        }


def clocked(work):
    """Return what it makes, and the CPU milliseconds that it takes."""
    begin = time.process_time()
    made = work()
    return made, 1e3 * (time.process_time() - begin)


def main(count=300):
    """Measure `count` products."""
    took = {name: [] for name in ("search", "plan", "timing", "tree")}
    off = []
    for number, keys in enumerate(products(count + WARM)):
        request = make_request(None, None, keys)
        problem, chip = request.problem, request.chip
        found, search = clocked(lambda p=problem, c=chip: plan_tilings(p, c, 5))
        tiling = found.best.tiling
        _, timing = clocked(lambda p=problem, t=tiling, c=chip: launch_time(p, t, c))
        line, tree = clocked(lambda p=problem, t=tiling, c=chip: TimedProduct(p, t, c).line)
        _, plan = clocked(lambda k=keys: cubecore.plan(**k))
        if number >= WARM:
            off.append(found.best.predicted.cycles / line.cycles)
            for name, value in (("search", search), ("timing", timing), ("tree", tree)):
                took[name].append(value)
            took["plan"].append(plan)
    means = {f"{name}_ms": round(statistics.mean(values), 2) for name, values in took.items()}
    search = statistics.mean(took["search"])
    print(
        json.dumps(
            {
                "products": count,
                **means,
                "timing_over_search": round(statistics.mean(took["timing"]) / search, 3),
                "plan_over_search": round(statistics.mean(took["plan"]) / search, 2),
                "closed_form_over_events": [round(x, 3) for x in statistics.quantiles(off, n=20)],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

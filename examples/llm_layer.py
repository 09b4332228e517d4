"""A real layer's product, from its shape to its time: the output projection of Llama-2-7B.

128 tokens of 4096 features by a 4096 x 4096 weight that PyTorch keeps as [n, k], in float16, on the
20 AI Cores of an Ascend910B3: planned, executed instruction by instruction on random data, verified
against an independent product, and timed.
"""

import cubecore

LAYER = {"m": 128, "n": 4096, "k": 4096, "trans_b": True, "chip": "Ascend910B3"}


def main() -> None:
    """Plan, run, verify and time the layer."""
    plan = cubecore.plan(LAYER)
    print("1. Which tiling?\n")
    print(plan.text)
    print("2. Does the kernel that it implies compute the right thing?\n")
    run = cubecore.run(LAYER, tiling=plan.tiling)
    print(run.text)
    print("3. How fast would it be, and what limits it?\n")
    print(cubecore.time(LAYER, tiling=plan.tiling).text)
    if not run.verified:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

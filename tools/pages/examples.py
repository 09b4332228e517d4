"""The page of the example kernels, English and Chinese.

Generated from the kernels' docstrings and from the goldens of their times.
"""

import ast
import json
from pathlib import Path

from tools.pages.markdown import escaped

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "examples" / "kernels"
_GOLDENS = ROOT / "tests" / "examples" / "goldens"

_ENGLISH = """\
# Example kernels

Each file in `examples/kernels` is a script: `cubecore run examples/kernels/NAME.py` runs its
kernels with every check and compares what they leave with float64; `cubecore time` predicts how
long they take, and `--report page.html` draws it. What they take here is of the sizes in their
`main`, on an Ascend910B3, or of those whose names begin with `reg_` on an Ascend950PR_9589. Where
AICs and AIVs of Ascend 950 signal each other nothing is predicted: no cycles of that are published.
[Writing your own kernels](kernels.md) says how. Generated from their docstrings and from the
goldens of `tests/examples`.

| file | what | launch | predicted | limited by |
|---|---|---|---|---|
"""
_CHINESE = """\
# 示例核函数

`examples/kernels` 中的每个文件都是一个脚本：`cubecore run examples/kernels/NAME.py` \
打开全部检查运行其中的核函数，并把结果与 float64 比较；\
`cubecore time` 预测它们的时间，`--report page.html` 把它画出来。\
表中的时间对应各脚本 `main` 中的大小，芯片为 Ascend910B3，名字以 `reg_` 开头的为 Ascend950PR_9589。\
Ascend 950 上 AIC 与 AIV 互发信号的核函数没有预测时间，因为信号的周期数没有公开。\
写法见[编写核函数](kernels.md)。本页由各脚本的文档字符串（英文）和 `tests/examples` 的基准结果生成。

| 文件 | 内容 | 启动 | 预测时间 | 瓶颈 |
|---|---|---|---|---|
"""
CHINESE_TITLES = {
    "Flash attention, forward: O = softmax(Q K^T / sqrt(D)) V for one head, without a mask.": (
        "flash attention 前向：单个头的 O = softmax(Q K^T / sqrt(D)) V，没有 mask。"
    ),
    "Flash attention on Ascend 950: scores go from L0C to AIVs, probabilities from them to L1.": (
        "Ascend 950 上的 flash attention：分数从 L0C 到 AIV，概率从 AIV 到 L1。"
    ),
    "C = A B^T on Ascend 950 in MX: the AIVs quantise floats to float8 and make their scales.": (
        "Ascend 950 上 MX 格式的 C = A B^T：AIV 把 float 量化为 float8，并生成缩放系数。"
    ),
    "GELU of float16 in its tanh form, computed in float32.": (
        "float16 的 GELU，tanh 形式，以 float32 计算。"
    ),
    "y = W x on the Cube: a vector of halves by a matrix that is stored row by row.": (
        "Cube 上的 y = W x：half 向量乘以按行存放的矩阵。"
    ),
    "An int8 layer on the Cube: x W^T + bias, requantised to int8 with a scale for each column.": (
        "Cube 上的 int8 层：x W^T + bias，按每列的量化系数重新量化为 int8。"
    ),
    "Layer normalisation over rows of 512 halves, computed in float32.": (
        "对每行 512 个 half 做 layer normalisation，以 float32 计算。"
    ),
    "C = A B on the Cube, by hand: the flags of a double-buffered matrix product.": (
        "在 Cube 上手写 C = A B：双缓冲（double buffer）矩阵乘的标志。"
    ),
    "Y = leaky_relu(A B + bias), the product on the AIC and the activation on its two AIVs.": (
        "Y = leaky_relu(A B + bias)：矩阵乘在 AIC 上，激活在其两个 AIV 上。"
    ),
    "Quantise rows of 512 halves to int8, a scale for each row, and back.": (
        "把每行 512 个 half 量化为 int8，每行一个量化系数，再反量化。"
    ),
    "Add two vectors of floats in the registers of Ascend 950's vector unit.": (
        "在 Ascend 950 向量单元的寄存器中把两个 float 向量相加。"
    ),
    "LayerNorm over rows of 256 floats in the registers of Ascend 950's vector unit.": (
        "在 Ascend 950 向量单元的寄存器中对每行 256 个浮点数做 LayerNorm。"
    ),
    "Floats to mxfp8 in the registers of Ascend 950: float8_e4m3fn, a scale for 32.": (
        "在 Ascend 950 的寄存器中把浮点数转换为 mxfp8：float8_e4m3fn，每 32 个数共用一个缩放系数。"
    ),
    "Softmax over rows of 256 floats in the registers of Ascend 950's vector unit.": (
        "在 Ascend 950 向量单元的寄存器中对每行 256 个 float 做 softmax。"
    ),
    "The sum of a float32 vector.": "float32 向量的和。",
    "Softmax over rows of 512 halves, computed in float32.": (
        "对每行 512 个 half 做 softmax，以 float32 计算。"
    ),
    "The 64 largest of each row of 2048 floats, with their places, by sorting.": (
        "用排序求每行 2048 个 float 中最大的 64 个及其位置。"
    ),
    "Transpose a matrix of halves.": "转置 half 矩阵。",
    "z = x + y in float32, synchronised in three ways.": ("float32 的 z = x + y，用三种方式同步。"),
}
"""The first sentence of each docstring in Chinese."""


def page(*, chinese: bool = False) -> str:
    """Return the example kernels: what each says of itself, and what its launches take.

    KeyError: a kernel's first sentence is not among `CHINESE_TITLES`.
    """
    rows, sections = [], []
    for path in sorted(KERNELS.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        golden = _GOLDENS / f"the_time_and_the_report.{path.stem}.json"
        title = " ".join(text.split("\n\n")[0].split())
        shown = escaped(CHINESE_TITLES[title] if chinese else title)
        launches = [{"launch": path.stem, "us": "", "limited_by": ""}]
        if golden.is_file():
            launches = json.loads(golden.read_text(encoding="utf-8"))
        for launch in launches:
            name, us = launch["launch"].split(" ")[0], launch["us"] and f"{launch['us']} us"
            cells = (f"[{path.stem}](#{path.stem})", shown, f"`{name}`", us, launch["limited_by"])
            rows.append(f"| {' | '.join(cells)} |")
            shown = ""
        sections += [f"## {path.stem}", "", "```text", text, "```", ""]
    return (_CHINESE if chinese else _ENGLISH) + "\n".join([*rows, "", *sections])

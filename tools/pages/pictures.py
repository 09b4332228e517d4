"""The pictures of the concepts page, drawn once for every language.

A picture is a function of `Words`, which gives a label in the page's language. Colours are those
of the page that a picture is part of, else those of the reader's system: light or dark.
"""

from collections.abc import Callable
from html import escape

_STYLE = """\
.pic { --i: var(--pic-ink, #1b1f24); --s: var(--pic-soft, #57606a); --b: var(--pic-box, #eef1f4);
 --e: var(--pic-edge, #9aa5b1); --a: var(--pic-a, #0b5cad); --w: var(--pic-b, #b35900); }
@media (prefers-color-scheme: dark) { .pic { --i: var(--pic-ink, #e4e8ed);
 --s: var(--pic-soft, #9aa5b1); --b: var(--pic-box, #262d35); --e: var(--pic-edge, #5a6470);
 --a: var(--pic-a, #6cb2f5); --w: var(--pic-b, #f0a050); } }
.pic text { fill: var(--i); font: 13px sans-serif; } .pic .s { fill: var(--s); font-size: 12px; }
.pic .m { text-anchor: middle; } .pic .r { text-anchor: end; }
.pic rect { fill: var(--b); stroke: var(--e); } .pic .a { fill: var(--a); fill-opacity: .28; }
.pic .w { fill: var(--w); fill-opacity: .28; } .pic .n { fill: none; }
.pic .f { fill: none; stroke: var(--i); stroke-width: 1.6; }
.pic path { stroke: var(--a); stroke-width: 2; fill: none; } .pic .h { fill: var(--a); }
.pic .o { stroke: var(--w); } .pic .d { stroke-dasharray: 4 3; stroke: var(--s); }"""

Words = Callable[[str], str]
"""The label in the page's language."""


def _svg(width: int, height: int, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pic" viewBox="0 0 {width} {height}">\n'
        f"<style>\n{_STYLE}\n</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _box(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{named}/>'


def _text(x: float, y: float, label: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{named}>{escape(label)}</text>'


def _named_box(place: tuple[float, float, float, float], title: str, below: str = "") -> str:
    x, y, width, height = place
    middle, line = x + width / 2, y + height / 2 + (-3 if below else 5)
    parts = [_box(x, y, width, height), _text(middle, line, title, "m")]
    return "".join([*parts, _text(middle, line + 18, below, "s m")] if below else parts)


def _arrow(*points: tuple[float, float]) -> str:
    """Return a line through points, of whole steps along one axis at its end, with a head."""
    (x0, y0), (x1, y1) = points[-2:]
    line = "L".join(f"{x:g} {y:g}" for x, y in points)
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
    u, v = (x1 - x0) / length * 8, (y1 - y0) / length * 8
    head = f"{x1:.1f},{y1:.1f} {x1 - u - v / 2:.1f},{y1 - v + u / 2:.1f} "
    head += f"{x1 - u + v / 2:.1f},{y1 - v - u / 2:.1f}"
    return f'<path d="M{line}"/><polygon class="h" points="{head}"/>'


def path(word: Words) -> str:
    """Return the buffers of an AI Core's Cube side and the pipes between them."""
    return _svg(
        760,
        215,
        [
            _named_box((10, 40, 110, 120), word("GM, behind L2"), word("all cores")),
            _named_box((205, 40, 90, 120), "L1", "512 KiB"),
            _named_box((385, 30, 90, 52), "L0A", "64 KiB"),
            _named_box((385, 118, 90, 52), "L0B", "64 KiB"),
            _named_box((545, 60, 75, 80), "Cube"),
            _named_box((670, 60, 80, 80), "L0C", "128 KiB"),
            _arrow((120, 100), (205, 100)),
            _arrow((295, 80), (385, 56)),
            _arrow((295, 120), (385, 144)),
            _arrow((475, 56), (545, 85)),
            _arrow((475, 144), (545, 115)),
            _arrow((620, 100), (670, 100)),
            _arrow((710, 140), (710, 195), (65, 195), (65, 160)),
            _text(162, 90, "MTE2", "s m"),
            _text(340, 104, "MTE1", "s m"),
            _text(510, 104, "M", "s m"),
            _text(388, 188, word("FIX (fixpipe)"), "s m"),
        ],
    )


def blocks(word: Words) -> str:
    """Return A, B and C with the share of one core and a base block."""
    parts = []
    for x, y, width, height, name in (
        (70, 190, 190, 180, "A"),
        (330, 20, 300, 140, "B"),
        (330, 190, 300, 180, "C"),
    ):
        parts += [_box(x, y, width, height), _text(x + 8, y + 18, name)]
    parts += [
        _box(430, 250, 100, 60, "a"),  # one core's share of C
        _box(430, 250, 50, 30, "w"),
        _box(70, 250, 190, 60, "a"),
        _box(120, 250, 40, 30, "w"),
        _box(430, 20, 100, 140, "a"),
        _box(430, 60, 50, 30, "w"),
        _text(538, 290, "singleCoreM"),
        _text(480, 328, "singleCoreN", "m"),
        _text(424, 270, "baseM", "r"),
        _text(455, 244, "baseN", "m"),
        _text(140, 244, "baseK", "m"),
        _text(112, 270, "baseM", "r"),
        _text(424, 80, "baseK", "r"),
        _text(455, 54, "baseN", "m"),
        _text(165, 388, "K", "m"),
        _text(60, 285, "M", "r"),
        _text(480, 388, "N", "m"),
        _text(322, 95, "K", "r"),
        _box(70, 20, 14, 14, "a"),
        _text(92, 32, word("the share of one core")),
        _box(70, 44, 14, 14, "w"),
        _text(92, 56, word("a base block: one Mmad")),
    ]
    return _svg(700, 400, parts)


_BLOCK = 46


def steps(word: Words) -> str:
    """Return A's rows in GM, its blocks in L1 and in L0A: steps, depths and double buffers."""
    parts = [_text(10, 22, word("A in GM: one row of base blocks along K"))]
    for i in range(12):
        kind = "a" if i < 4 else "w" if i < 8 else ""
        parts.append(_box(10 + i * _BLOCK, 32, _BLOCK, 32, kind))
    parts += [
        _text(10 + 2 * _BLOCK, 53, "stepKa = 4", "m"),
        _text(10 + 6 * _BLOCK, 53, "stepKa = 4", "m"),
        _text(580, 53, word("next loads"), "s"),
        _arrow((100, 64), (100, 108)),
        _arrow((290, 64), (290, 108)),
        _text(110, 92, word("MTE2, one load"), "s"),
        _text(300, 92, word("MTE2, the next load, meanwhile"), "s"),
        _text(10, 132, word("A in L1: depthA1 = 8 blocks")),
    ]
    for i in range(8):
        parts.append(_box(10 + i * _BLOCK, 142, _BLOCK, 32, "a" if i < 4 else "w"))
    parts += [
        _text(395, 163, word("depthA1 = 2 x stepKa x stepM: two loads take turns"), "s"),
        _arrow((33, 174), (33, 218)),
        _text(43, 202, word("MTE1, block by block"), "s"),
        _text(10, 242, word("A in L0A: dbL0A = 2 blocks")),
        _box(10, 252, _BLOCK, 32, "a"),
        _box(10 + _BLOCK, 252, _BLOCK, 32),
        _text(120, 273, word("the Cube reads one while MTE1 fills the other"), "s"),
    ]
    return _svg(760, 300, parts)


def fractals(word: Words) -> str:
    """Return a matrix in rows (ND) and in columns of fractals (NZ)."""
    parts = []
    for x, title in ((20, word("ND: row by row")), (400, word("NZ: fractals column by column"))):
        parts += [_text(x, 20, title), _box(x, 32, 320, 128, "n")]
    for row in range(4):
        y = 48 + row * 32
        parts.append(_arrow((28, y), (330, y)))
        if row:
            parts.append(f'<path class="d" d="M330 {y - 32}L28 {y}"/>')
    for column in range(4):
        for row in range(2):
            x, y = 400 + column * 80, 32 + row * 64
            parts += [
                _box(x, y, 80, 64, "a" if column == row == 0 else "n"),
                _text(x + 40, y + 38, str(column * 2 + row), "m"),
            ]
    parts += [
        _text(400, 182, word("a fractal: 16 rows of 32 B, 512 B in one piece"), "s"),
        _text(20, 182, word("a row of a block is one short transfer"), "s"),
        _text(400, 202, word("16 x 16 float16, 16 x 32 int8, 16 x 8 float32"), "s"),
        _text(20, 202, word("numbers: the order of the fractals in memory"), "s"),
    ]
    return _svg(760, 215, parts)


def flags(word: Words) -> str:
    """Return two pipes over time: without a flag they race, with flags they take turns."""
    parts = [_text(10, 20, word("with flags"))]
    lanes = {"MTE2": 34, "M": 84}
    for name, y in lanes.items():
        parts += [_text(50, y + 21, name, "r"), _box(60, y, 620, 32, "n")]
    for x, label, kind in ((60, "load 0", "a"), (180, "load 1", "w"), (300, "load 2", "a")):
        parts += [_box(x, 34, 120, 32, kind), _text(x + 60, 55, word(label), "m")]
    for x, label, kind in ((180, "use 0", "a"), (300, "use 1", "w"), (420, "use 2", "a")):
        parts += [_box(x, 84, 80, 32, kind), _text(x + 40, 105, word(label), "m")]
    for x in (180, 300, 420):
        parts.append(_arrow((x, 66), (x, 84)))
    parts += [
        _text(120, 105, word("stall"), "s m"),
        _text(428, 79, "set_flag(MTE2, M) → wait_flag(MTE2, M)", "s"),
        _text(690, 74, word("time"), "s"),
        _text(10, 150, word("without")),
    ]
    for name, y in {"MTE2": 164, "M": 200}.items():
        parts += [_text(50, y + 21, name, "r"), _box(60, y, 620, 32, "n")]
    parts += [
        _box(60, 164, 120, 32, "a"),
        _text(120, 185, word("load 0"), "m"),
        _box(60, 200, 80, 32, "w"),
        _text(100, 221, word("use 0"), "m"),
        _text(190, 221, word("race-raw: the read may run before the write that it needs"), "s"),
    ]
    return _svg(760, 245, parts)


def fixpipe(word: Words) -> str:
    """Return the path of a finished tile out of L0C."""
    titles = (
        ("L0C", word("float32 or int32, NZ")),
        (word("scale"), "quant, relu"),
        (word("convert"), "float16, bfloat16, int8"),
        (word("layout"), "NZ → ND"),
        ("GM", word("or L1")),
    )
    parts = []
    for i, (title, below) in enumerate(titles):
        x = 10 + i * 152
        parts.append(_named_box((x, 40, 126, 70), title, below))
        if i:
            parts.append(_arrow((x - 26, 75), (x, 75)))
    parts += [_box(154, 22, 446, 104, "f"), _text(377, 146, word("fixpipe (pipe FIX)"), "m")]
    return _svg(760, 160, parts)


PICTURES: dict[str, Callable[[Words], str]] = {
    "concepts_path": path,
    "concepts_blocks": blocks,
    "concepts_steps": steps,
    "concepts_fractals": fractals,
    "concepts_flags": flags,
    "concepts_fixpipe": fixpipe,
}

CHINESE = {
    "GM, behind L2": "GM（经 L2）",
    "all cores": "所有核共享",
    "FIX (fixpipe)": "FIX（fixpipe）",
    "the share of one core": "单个核负责的部分",
    "a base block: one Mmad": "基本块：一次 Mmad",
    "A in GM: one row of base blocks along K": "GM 中的 A：沿 K 方向的一行基本块",
    "next loads": "后续搬运",
    "MTE2, one load": "MTE2 一次搬运",
    "MTE2, the next load, meanwhile": "MTE2 同时进行下一次搬运",
    "A in L1: depthA1 = 8 blocks": "L1 中的 A：depthA1 = 8 块",
    "depthA1 = 2 x stepKa x stepM: two loads take turns": (
        "depthA1 = 2 x stepKa x stepM：两次搬运交替（double buffer）"
    ),
    "MTE1, block by block": "MTE1 逐块搬运",
    "A in L0A: dbL0A = 2 blocks": "L0A 中的 A：dbL0A = 2 块",
    "the Cube reads one while MTE1 fills the other": "Cube 读取一块时，MTE1 填充另一块",
    "ND: row by row": "ND：逐行存放",
    "NZ: fractals column by column": "NZ：按列存放分形",
    "a fractal: 16 rows of 32 B, 512 B in one piece": "一个分形：16 行，每行 32 B，连续 512 B",
    "a row of a block is one short transfer": "块的每一行都是一次短搬运",
    "16 x 16 float16, 16 x 32 int8, 16 x 8 float32": (
        "16 x 16 float16，16 x 32 int8，16 x 8 float32"
    ),
    "numbers: the order of the fractals in memory": "数字：分形在内存中的顺序",
    "with flags": "有同步标志",
    "load 0": "搬入 0",
    "load 1": "搬入 1",
    "load 2": "搬入 2",
    "use 0": "计算 0",
    "use 1": "计算 1",
    "use 2": "计算 2",
    "stall": "停顿",
    "time": "时间",
    "without": "没有同步标志",
    "race-raw: the read may run before the write that it needs": (
        "race-raw：读操作可能早于它所依赖的写操作"
    ),
    "float32 or int32, NZ": "float32 或 int32，NZ",
    "scale": "量化",
    "convert": "类型转换",
    "layout": "格式转换",
    "or L1": "或 L1",
    "fixpipe (pipe FIX)": "fixpipe（FIX 流水）",
}
"""Labels of the Chinese pages."""


def picture(name: str, chinese: bool = False) -> str:
    """Return a picture by its name.

    Raises
    ------
    KeyError
        If a label has no translation.
    """
    return PICTURES[name](CHINESE.__getitem__ if chinese else str)

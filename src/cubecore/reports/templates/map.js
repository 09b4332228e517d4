// Which core computes which block of C.

const MAP = { left: 62, top: 24, right: 40, bottom: 8, most: 520 };

function drawMap() {
  const { cells, rows, columns, aggregated } = data.map;
  const m = Math.max(...cells.map((cell) => cell.m1));
  const n = Math.max(...cells.map((cell) => cell.n1));
  const ratio = Math.min(Math.max(n / m, 0.5), 5);
  const width = ratio >= 1.4 ? MAP.most : Math.max(MAP.most * ratio / 1.4, 200);
  const height = width / ratio;
  const x = (column) => MAP.left + width * column / n, y = (row) => MAP.top + height * row / m;
  const wide = width + MAP.left + MAP.right, high = height + MAP.top + MAP.bottom;
  const chart = svg("svg", {
    viewBox: `0 0 ${wide} ${high}`, width: wide, role: "img", "aria-label": "cores over C",
    "data-cells": cells.length,
  });
  for (const cell of cells) mapCell(chart, cell, x, y);
  mapEdge(chart, cells.map((cell) => cell.n0), x, 54,
    (at) => ({ x: at + 2, y: MAP.top - 8 }));
  mapEdge(chart, cells.map((cell) => cell.m0), y, 15,
    (at) => ({ x: MAP.left - 7, y: at + 11, "text-anchor": "end" }));
  section("map").append(chart, el("p", { class: "soft small" },
    `C is ${whole(m)} x ${whole(n)}, rows downwards: ${rows} x ${columns} blocks, `,
    `${aggregated ? "several to a cell" : "one a cell"}, each with its core. `,
    "Colours tell groups of equal cores apart."));
}

function mapCell(chart, cell, x, y) {
  const left = x(cell.n0), top = y(cell.m0), width = x(cell.n1) - left, height = y(cell.m1) - top;
  const fill = cell.group === null ? "var(--lane)" : `var(--g${cell.group % 4})`;
  const shape = svg("rect", { class: "cell", x: left, y: top, width, height, fill });
  const several = `cores ${cell.cores}, ${cell.blocks} blocks`;
  chart.append(hover(shape, [cell.blocks > 1 ? several : `core ${cell.cores}`,
    `rows ${whole(cell.m0)} .. ${whole(cell.m1 - 1)}`,
    `columns ${whole(cell.n0)} .. ${whole(cell.n1 - 1)}`,
    `${whole(cell.m1 - cell.m0)} x ${whole(cell.n1 - cell.n0)}`]));
  if (width < 8 * cell.cores.length + 4 || height < 14) return;
  chart.append(svg("text", {
    x: left + width / 2, y: top + height / 2 + 4, "text-anchor": "middle", "pointer-events": "none",
  }, cell.cores));
}

// Labels at the cells' first rows or columns, as many as have room.
function mapEdge(chart, starts, scale, room, where) {
  let last = -Infinity;
  for (const start of [...new Set(starts)].sort((p, q) => p - q)) {
    const at = scale(start);
    if (at - last < room) continue;
    last = at;
    chart.append(svg("text", { class: "soft", ...where(at) }, whole(start)));
  }
}

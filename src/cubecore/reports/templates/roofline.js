// The roofline: operations a second over operations a byte, both logarithmic.

const BAND_INKS = ["var(--MTE2)", "var(--FIX)"];
const ROOF = { left: 58, right: 704, top: 14, bottom: 352 };

function drawRoofline() {
  const r = data.roofline, home = section("roofline");
  if (r === null) {
    home.append(el("p", { class: "soft" }, "The chip's peak or memory rates are not known."));
    return;
  }
  const chart = svg("svg", {
    viewBox: "0 0 720 400", role: "img", "aria-label": "roofline", "data-points": r.points.length,
  });
  const scales = roofScales(r);
  roofGrid(chart, r, scales);
  roofCeilings(chart, r, scales);
  roofPoints(chart, r, scales);
  const points = r.points.map((p) =>
    `${short(p.intensity)} operations a byte read from ${p.name} (${bytes(p.bytes)})`);
  const facts = [...r.facts, ...r.bands.map((band) => band.fact)];
  home.append(chart,
    el("p", { class: "soft small" }, `${points.join("; ")}. Ceilings: ${facts.join(", ")}.`));
}

function roofScales(r) {
  const xs = [...r.points.map((p) => p.intensity), ...r.bands.map((b) => r.peak / b.tbps)];
  const x0 = Math.min(...xs) / 6, x1 = Math.max(...xs) * 3;
  const y0 = Math.min(r.tflops / 2, ...r.bands.map((b) => b.tbps * x0)), y1 = r.peak * 2.2;
  const place = (v, low, high) => Math.log10(v / low) / Math.log10(high / low);
  const x = (v) => ROOF.left + (ROOF.right - ROOF.left) * place(v, x0, x1);
  const y = (v) => ROOF.bottom + (ROOF.top - ROOF.bottom) * place(v, y0, y1);
  return { x, y, x0, x1, y0, y1 };
}

// 1, 2, 5, 10...; only powers of ten over many decades.
function roofTicks(low, high) {
  const steps = high / low > 5000 ? [1] : [1, 2, 5], found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    found.push(...steps.map((step) => step * 10 ** power).filter((v) => v >= low && v <= high));
  }
  return found;
}

function roofGrid(chart, r, { x, y, x0, x1, y0, y1 }) {
  const named = (v) => (v >= 1 ? whole(v) : String(Number(v.toPrecision(1))));
  const rule = (x1, x2, y1, y2) => svg("line", { class: "grid", x1, x2, y1, y2 });
  const words = (text, at) => svg("text", { class: "soft", "text-anchor": "middle", ...at }, text);
  for (const v of roofTicks(x0, x1)) {
    chart.append(rule(x(v), x(v), ROOF.top, ROOF.bottom),
      words(named(v), { x: x(v), y: ROOF.bottom + 17 }));
  }
  for (const v of roofTicks(y0, y1)) {
    chart.append(rule(ROOF.left, ROOF.right, y(v), y(v)),
      words(named(v), { x: ROOF.left - 7, y: y(v) + 4, "text-anchor": "end" }));
  }
  const middle = (ROOF.top + ROOF.bottom) / 2, centre = (ROOF.left + ROOF.right) / 2;
  chart.append(words("operations a byte", { x: centre, y: ROOF.bottom + 38 }),
    words(r.unit, { x: 13, y: middle, transform: `rotate(-90 13 ${middle})` }));
}

function roofCeilings(chart, r, { x, y, x0, x1, y0 }) {
  const ceiling = (from, to, stroke) => svg("line", {
    x1: from.x, y1: from.y, x2: to.x, y2: to.y, stroke, "stroke-width": 2,
  });
  const columns = r.points.map((p) => x(p.intensity));
  for (const [place, band] of r.bands.entries()) {
    const from = Math.max(x0, y0 / band.tbps), meet = r.peak / band.tbps;
    const low = { x: x(from), y: y(from * band.tbps) }, high = { x: x(meet), y: y(r.peak) };
    const name = `${band.name} ${short(band.tbps, 3)} TB/s`;
    chart.append(ceiling(low, high, BAND_INKS[place % 2]),
      alongLine(name, low, high, columns, place ? -8 : 18));
  }
  const flat = Math.min(...r.bands.map((b) => r.peak / b.tbps), x1), top = y(r.peak);
  const name = `${r.peak_name} ${short(r.peak)} ${r.unit}`;
  chart.append(ceiling({ x: x(flat), y: top }, { x: ROOF.right, y: top }, "var(--M)"),
    svg("text", { x: ROOF.right - 4, y: top - 7, "text-anchor": "end" }, name));
}

// Text along a line, as far from the points' columns as the line's length allows.
function alongLine(text, low, high, columns, dy) {
  const across = high.x - low.x, down = high.y - low.y;
  const half = Math.min(96 / Math.hypot(across, down), 0.5);
  const apart = (share) =>
    Math.min(140, ...columns.map((column) => Math.abs(low.x + across * share - column)));
  const share = [half, 0.35, 0.5, 0.65, 1 - half]
    .filter((place) => place >= half && place <= 1 - half)
    .reduce((best, place) => (apart(place) > apart(best) ? place : best));
  const x = low.x + across * share, y = low.y + down * share;
  const transform = `rotate(${Math.atan2(down, across) * 180 / Math.PI} ${x} ${y})`;
  return svg("text", { x, y, dy, class: "halo", "text-anchor": "middle", transform }, text);
}

function roofPoints(chart, r, { x, y }) {
  const height = y(r.tflops), columns = r.points.map((p) => x(p.intensity));
  const right = Math.max(...columns), roomy = right + 190 < ROOF.right;
  chart.append(svg("line", {
    x1: Math.min(...columns), x2: right, y1: height, y2: height, stroke: "var(--soft)",
    "stroke-dasharray": "4 3",
  }));
  for (const point of r.points) {
    const place = Math.max(r.bands.findIndex((band) => band.name.startsWith(point.name)), 0);
    const stroke = BAND_INKS[place % 2];
    const mark = svg("circle", {
      cx: x(point.intensity), cy: height, r: place ? 8 : 5, stroke, "stroke-width": 3,
      fill: place ? "transparent" : stroke,
    });
    chart.append(hover(mark, [`${short(r.tflops)} ${r.unit}`,
      `${short(point.intensity)} operations a byte from ${point.name}`,
      `${bytes(point.bytes)} read`]));
  }
  const at = roomy ? { x: right + 16, y: height + 4 }
    : { x: Math.min(right + 80, ROOF.right), y: height + 26 };
  chart.append(svg("text", { ...at, class: "halo", "text-anchor": roomy ? "start" : "end" },
    `this ${r.of} ${short(r.tflops)} ${r.unit}`));
}

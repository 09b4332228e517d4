// The timeline: one canvas for each group of cores, one for the whole run, one view for all.

const LEFT = 104, LANE = 24, GAP = 4, AXIS = 22, LEAST_SPAN = 12, PAPER = 700;
const clock = data.timeline;
const bounds = { from: -clock.launch, to: clock.end };
const view = { from: bounds.from, to: bounds.to };
const canvases = [];
const shown = { aside: false, critical: false, signals: false, measure: false, range: null, found: null };
const MOST_ARROWS = 400;
const lanesOf = (group) => (shown.aside ? [...group.lanes, ...group.aside] : group.lanes);

function unpack(group) {
  for (const lane of [...group.lanes, ...group.aside]) {
    let at = 0;
    lane.from = lane.start.map((step) => (at += step));
    lane.to = lane.from.map((start, place) => start + lane.length[place]);
    lane.last = lane.to.length ? lane.to[lane.to.length - 1] : 0;
    lane.marks = new Set(lane.critical || []);
    const counts = [];
    lane.turn = lane.kind.map((kind) => (counts[kind] = (counts[kind] || 0) + 1) - 1);
    lane.count = counts;
  }
}

function recorded() {
  const lanes = clock.groups.flatMap((group) => group.lanes.filter((lane) => lane.from.length));
  const from = Math.min(...lanes.map((lane) => lane.from[0]));
  const to = Math.max(...lanes.map((lane) => lane.last));
  if (!lanes.length) return { ...bounds };
  const margin = Math.max((to - from) * 0.01, LEAST_SPAN / 4);
  return { from: Math.max(from - margin, bounds.from), to: Math.min(to + margin, bounds.to) };
}

function look(from, to) {
  const span = Math.min(Math.max(to - from, LEAST_SPAN), bounds.to - bounds.from);
  const start = Math.min(Math.max((from + to - span) / 2, bounds.from), bounds.to - span);
  view.from = start;
  view.to = start + span;
  redraw();
}

function zoom(factor, centre) {
  const at = centre === undefined ? (view.from + view.to) / 2 : centre;
  look(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function pan(share) {
  const step = (view.to - view.from) * share;
  look(view.from + step, view.to + step);
}

const micro = (cycles) => cycles / clock.cycles_per_us;

function palette() {
  const names = ["ink", "soft", "line", "lane", "hatch", "card", "accent", "bad", "on-light", "on-dark",
    ...clock.pipes];
  return Object.fromEntries(names.map((name) => [name, colour(name)]));
}

function tint(paint, pipe, kind, busy = 0) {
  const alpha = [1, 0.62, 0.8][kind % 3];
  if (busy === null) return { colour: paint.soft, alpha: alpha / 2 };
  return { colour: paint[pipe] || paint.soft, alpha };
}

function hatch(ctx, paint, x, y, width, height) {
  if (width <= 0) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.strokeStyle = paint.hatch;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = x - (x % 6) - height; at < x + width; at += 6) {
    ctx.moveTo(at, y + height);
    ctx.lineTo(at + height, y);
  }
  ctx.stroke();
  ctx.restore();
}

// Sizes a canvas to its box in device pixels; returns its context and width.
function ready(canvas, height) {
  const paper = document.documentElement.hasAttribute("data-print");
  const width = paper ? PAPER : Math.max(canvas.clientWidth, 320);
  const ratio = paper ? 2 : window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  return { ctx, width };
}

function ticks(from, to, room) {
  const rough = micro(to - from) / Math.max(room / 110, 2);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let n = Math.ceil(micro(from) / step); n * step <= micro(to); n++) {
    found.push({ at: n * step * clock.cycles_per_us, text: (n * step || 0).toFixed(digits) });
  }
  return found;
}

function drawGroup(canvas, group, paint) {
  const lanes = lanesOf(group);
  const height = lanes.length * (LANE + GAP) + AXIS;
  const { ctx, width } = ready(canvas, height);
  const x = (time) => LEFT + (width - LEFT) * (time - view.from) / (view.to - view.from);
  const clip = (time) => Math.min(Math.max(x(time), LEFT), width);
  const body = height - AXIS;
  let drawn = 0;
  for (const [place, lane] of lanes.entries()) {
    const y = place * (LANE + GAP);
    ctx.fillStyle = paint.lane;
    ctx.fillRect(LEFT, y, Math.max(clip(group.end) - LEFT, 0), LANE);
    if (lane.complete === false) {
      hatch(ctx, paint, clip(lane.last), y, clip(group.end) - clip(lane.last), LANE);
    }
    drawn += drawLane(ctx, paint, lane, { x, y, clip });
    ctx.fillStyle = paint.ink;
    ctx.textAlign = "left";
    ctx.fillText(lane.label, 0, y + LANE / 2);
    ctx.fillStyle = paint.soft;
    ctx.textAlign = "right";
    const busy = lane.busy === undefined ? "" : percent(lane.busy / Math.max(lane.of || group.end, 1));
    ctx.fillText(busy, LEFT - 8, y + LANE / 2);
  }
  if (shown.signals) drawSignals(ctx, paint, group, clip);
  for (const [from, to, text] of still(group)) {
    const left = clip(from), right = clip(to);
    hatch(ctx, paint, left, 0, right - left, body);
    if (right - left > 64) caption(ctx, paint, text, (left + right) / 2, body / 2);
  }
  drawFound(ctx, paint, group, { clip, body });
  drawAxis(ctx, paint, { x, width, body });
  canvas.dataset.drawn = drawn;
}

// Arrows from who raised a flag to who waited for it; only where few are in view.
function drawSignals(ctx, paint, group, clip) {
  const seen = group.signals.filter(([lane, place, other, later]) =>
    group.lanes[other].from[later] >= view.from && group.lanes[lane].from[place] <= view.to);
  if (seen.length > MOST_ARROWS) {
    caption(ctx, paint, "zoom in for signals", (LEFT + clip(view.to)) / 2, LANE);
    return;
  }
  ctx.strokeStyle = ctx.fillStyle = paint.ink;
  ctx.lineWidth = 1;
  for (const [lane, place, other, later] of seen) {
    const down = other > lane, step = LANE + GAP;
    const from = clip(group.lanes[lane].to[place]), to = clip(group.lanes[other].from[later]);
    const top = lane * step + (down ? LANE : 0), end = other * step + (down ? 0 : LANE);
    ctx.beginPath();
    ctx.moveTo(from, top);
    ctx.lineTo(to, end);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(to, end);
    ctx.lineTo(to - 4, end + (down ? -5 : 5));
    ctx.lineTo(to + 4, end + (down ? -5 : 5));
    ctx.fill();
  }
}

// What no instruction can be in: from, to, name.
function still(group) {
  return [[-clock.launch, 0, "launch"], [0, Math.min(clock.start, group.end), "start-up"]];
}

function caption(ctx, paint, text, x, y) {
  ctx.textAlign = "center";
  const half = ctx.measureText(text).width / 2 + 5;
  ctx.fillStyle = paint.card;
  ctx.fillRect(x - half, y - 7, 2 * half, 14);
  ctx.fillStyle = paint.soft;
  ctx.fillText(text, x, y);
}

function drawAxis(ctx, paint, { x, width, body }) {
  ctx.textAlign = "center";
  for (const tick of ticks(view.from, view.to, width - LEFT)) {
    const at = x(tick.at);
    ctx.fillStyle = paint.line;
    ctx.fillRect(at, body, 1, 5);
    ctx.fillStyle = paint.soft;
    if (at - 20 > LEFT && at + 22 < width) ctx.fillText(tick.text, at, body + 13);
  }
  ctx.textAlign = "right";
  ctx.fillText("us", LEFT - 8, body + 13);
}

// Draws the instructions of a lane that are in view; neighbours within a pixel become one box.
function drawLane(ctx, paint, lane, { x, y, clip }) {
  let place = firstAfter(lane, view.from), drawn = 0, run = null;
  const flush = () => {
    if (run) box(ctx, run, y);
    run = null;
  };
  for (; place < lane.from.length && lane.from[place] <= view.to; place++, drawn++) {
    const from = clip(lane.from[place]), to = clip(lane.to[place]);
    const { colour: fillStyle, alpha } = tint(paint, lane.pipe, lane.kind[place], lane.busy === undefined ? null : 0);
    if (to - from >= 3) {
      flush();
      box(ctx, { from, to: to - (to - from > 5 ? 1 : 0), fillStyle, alpha }, y);
      ctx.fillStyle = paint[dark(fillStyle) ? "on-dark" : "on-light"];
      label(ctx, lane.names[lane.kind[place]], from, to, y);
    } else if (run && from - run.to < 0.7 && run.fillStyle === fillStyle && run.alpha === alpha) {
      run.to = Math.max(run.to, to);
    } else {
      flush();
      run = { from, to: Math.max(to, from + 0.8), fillStyle, alpha };
    }
  }
  flush();
  if (shown.critical) drawMarks(ctx, paint, lane, { y, clip });
  return drawn;
}

// A bar under each instruction that the end waited for.
function drawMarks(ctx, paint, lane, { y, clip }) {
  ctx.fillStyle = paint.bad;
  for (let at = firstAfter(lane, view.from); at < lane.from.length; at++) {
    if (lane.from[at] > view.to) break;
    if (!lane.marks.has(at)) continue;
    const from = clip(lane.from[at]);
    ctx.fillRect(from, y + LANE - 1, Math.max(clip(lane.to[at]) - from, 1), 4);
  }
}

function box(ctx, { from, to, fillStyle, alpha }, y) {
  ctx.globalAlpha = alpha;
  ctx.fillStyle = fillStyle;
  ctx.fillRect(from, y, to - from, LANE);
  ctx.globalAlpha = 1;
}

// Whether white is easier to read on a colour given as #rrggbb.
function dark(hex) {
  const part = (at) => parseInt(hex.slice(at, at + 2), 16);
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5) < 115;
}

function label(ctx, text, from, to, y) {
  if (to - from < 28) return;
  const room = to - from - 8;
  let shown = text;
  if (ctx.measureText(text).width > room) {
    const fits = Math.floor(room / (ctx.measureText(text).width / text.length)) - 1;
    if (fits < 3) return;
    shown = `${text.slice(0, fits)}\u2026`;
  }
  ctx.textAlign = "left";
  ctx.fillText(shown, from + 4, y + LANE / 2);
}

// The first instruction that ends after `time`; both ends of a lane's instructions ascend.
function firstAfter(lane, time) {
  let low = 0, high = lane.to.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.to[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function drawOverview(canvas, paint) {
  const row = clock.groups.length > 4 ? 9 : 15, height = clock.groups.length * row + 30;
  const { ctx, width } = ready(canvas, height);
  const x = (time) => LEFT + (width - LEFT - 1) * (time - bounds.from) / (bounds.to - bounds.from);
  for (const [place, group] of clock.groups.entries()) {
    const y = 4 + place * row;
    ctx.fillStyle = paint.lane;
    ctx.fillRect(x(0), y, x(group.end) - x(0), row - 2);
    const ready = x(Math.min(clock.start, group.end));
    hatch(ctx, paint, x(bounds.from), y, ready - x(bounds.from), row - 2);
    const first = Math.min(...group.lanes.filter((l) => l.from.length).map((l) => l.from[0]));
    const last = group.complete ? group.end : group.recorded_end;
    ctx.fillStyle = paint.accent;
    if (group.shown) ctx.fillRect(x(first), y, Math.max(x(last) - x(first), 2), row - 2);
    for (const [from, to, text] of row > 9 ? still(group) : []) {
      if (x(to) - x(from) > 76) caption(ctx, paint, text, (x(from) + x(to)) / 2, y + row / 2 - 1);
    }
  }
  const body = height - AXIS;
  ctx.strokeStyle = paint.ink;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(x(view.from), 1.5, Math.max(x(view.to) - x(view.from), 3), body - 2);
  ctx.fillStyle = paint.soft;
  ctx.textAlign = "left";
  ctx.fillText("whole run", 0, body / 2);
  ctx.textAlign = "center";
  for (const tick of ticks(bounds.from, bounds.to, width - LEFT)) {
    const at = x(tick.at);
    ctx.fillRect(at, body, 1, 4);
    if (at - 20 > LEFT && at + 22 < width) ctx.fillText(tick.text, at, body + 13);
  }
  ctx.textAlign = "right";
  ctx.fillText("us", LEFT - 8, body + 13);
}

function redraw() {
  const paint = palette();
  for (const { canvas, group } of canvases) {
    if (group) drawGroup(canvas, group, paint);
    else drawOverview(canvas, paint);
  }
}

// The timeline's controls, and the order in which the page is drawn.

function timeAt(canvas, event, range) {
  const box = canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - LEFT) / (box.width - LEFT);
  return range.from + (range.to - range.from) * share;
}

function onWheel(canvas, event) {
  const full = view.to - view.from >= bounds.to - bounds.from;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / 900);
    return;
  }
  if (full && event.deltaY > 0) return; // zoomed out: the page scrolls on
  event.preventDefault();
  zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 350), timeAt(canvas, event, view));
}

function onKey(event) {
  const act = {
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.6),
    "=": () => zoom(0.6), "-": () => zoom(1.6), Home: () => look(bounds.from, bounds.to), "0": fit,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function fit() {
  const { from, to } = recorded();
  look(from, to);
}

function instructionAt(canvas, group, event) {
  const box = canvas.getBoundingClientRect();
  const lane = lanesOf(group)[Math.floor((event.clientY - box.top) / (LANE + GAP))];
  if (!lane || event.clientX - box.left < LEFT) return null;
  const time = timeAt(canvas, event, view), slack = 2 * (view.to - view.from) / box.width;
  const place = firstAfter(lane, time - slack);
  for (let near = place; near < lane.from.length && lane.from[near] <= time + slack; near++) {
    if (lane.from[near] <= time && time <= lane.to[near]) return { lane, place: near };
  }
  return place < lane.from.length && lane.from[place] <= time + slack ? { lane, place } : null;
}

// The tile of C and the step along K of an instruction, where each step has as many of its kind.
function stepOf(lane, place) {
  const steps = data.steps, tiles = clock.tiles.get(lane);
  const total = lane.complete ? lane.count[lane.kind[place]] : lane.pipe === "M" ? lane.started : 0;
  if (!steps || !tiles || !total) return [];
  const turn = lane.turn[place];
  if (lane.pipe === "FIX" && total % tiles === 0) {
    return [`tile ${whole(Math.floor(turn / (total / tiles)) + 1)} of ${whole(tiles)}`];
  }
  const each = total / (tiles * steps);
  if (!Number.isInteger(each)) return [];
  const step = Math.floor(turn / each);
  return [`tile ${whole(Math.floor(step / steps) + 1)} of ${whole(tiles)}, K step ` +
    `${whole(step % steps + 1)} of ${whole(steps)}`];
}

function describe(found) {
  const { lane, place } = found;
  const from = lane.from[place], to = lane.to[place];
  const cause = lane.causes ? lane.causes[lane.cause[place]] : "";
  const line = lane.lines ? lane.lines[lane.line[place]] : "";
  return [lane.names[lane.kind[place]], ...(line ? [line] : []), ...stepOf(lane, place),
    ...(cause ? [`waited for ${cause}`] : []),
    `${lane.label}, number ${whole(place + 1)} of ${whole(lane.from.length)} shown`,
    `start ${whole(from)}, end ${whole(to)} cycles`,
    `${whole(to - from)} cycles = ${short(micro(to - from))} us`,
    `from ${micro(from).toFixed(3)} us`];
}

function listen(canvas, group) {
  let dragged = null, measured = null;
  canvas.addEventListener("wheel", (event) => onWheel(canvas, event), { passive: false });
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(canvas, event, view)));
  canvas.addEventListener("pointerdown", (event) => {
    if (event.shiftKey || shown.measure) measured = timeAt(canvas, event, view);
    else dragged = event.clientX;
    canvas.setPointerCapture(event.pointerId);
    hideTip();
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => { dragged = measured = null; });
  }
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("pointermove", (event) => {
    if (measured !== null) {
      select(group, measured, timeAt(canvas, event, view));
      return;
    }
    if (dragged !== null) {
      pan((dragged - event.clientX) / (canvas.getBoundingClientRect().width - LEFT));
      dragged = event.clientX;
      return;
    }
    const found = instructionAt(canvas, group, event);
    if (found) showTip(event, describe(found));
    else hideTip();
  });
}

function listenOverview(canvas) {
  const move = (event) => {
    const half = (view.to - view.from) / 2, at = timeAt(canvas, event, bounds);
    look(at - half, at + half);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    move(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) move(event);
  });
  canvas.addEventListener("keydown", onKey);
}

function legend() {
  const lanes = new Map();
  for (const lane of clock.groups.flatMap((group) => group.lanes)) {
    const names = lanes.get(lane.pipe) || new Set();
    lane.names.forEach((name) => names.add(name));
    lanes.set(lane.pipe, names);
  }
  const keys = [];
  for (const [pipe, names] of lanes) {
    for (const [kind, name] of [...names].entries()) {
      const { alpha } = tint({}, pipe, kind);
      const style = { background: `var(--${pipe}, var(--soft))`, opacity: alpha };
      keys.push(el("span", { class: "key" }, el("i", { style }), `${pipe} ${name}`));
    }
  }
  return el("div", {}, keys);
}

function extent(group) {
  const share = percent(Math.min(group.recorded_end / Math.max(group.end, 1), 1));
  const text = group.complete ? `complete, ${whole(group.shown)} instructions`
    : `the first ${whole(group.shown)} instructions, ${share} of the run; hatched: not recorded`;
  const scalar = percent(group.scalar / Math.max(group.end, 1));
  return `${text}; ends at ${short(micro(group.end))} us; scalar unit busy ${scalar}`;
}

// What of a long run is drawn; nothing where all is.
function recordedShare() {
  const cut = clock.groups.filter((group) => !group.complete);
  if (!cut.length) return "";
  const shares = cut.map((group) => group.recorded_end / Math.max(group.end, 1));
  const least = percent(Math.min(...shares, 1)), most = percent(Math.min(Math.max(...shares), 1));
  return el("p", { id: "recorded" }, el("b", {}, `Recorded: the first ${least === most ? least : `${least} to ${most}`} of the run. `),
    "The rest was timed and is not drawn; it is hatched.");
}

function drawTimeline() {
  clock.groups.forEach(unpack);
  clock.tiles = new Map();
  for (const group of clock.groups) {
    const cube = group.lanes.find((lane) => lane.pipe === "M");
    const tiles = cube && data.steps ? cube.started / data.steps : 0;
    for (const lane of group.lanes) clock.tiles.set(lane, Number.isInteger(tiles) ? tiles : 0);
  }
  const home = section("timeline");
  const button = (text, act) => {
    const node = el("button", { type: "button" }, text);
    node.addEventListener("click", act);
    return node;
  };
  const toggle = (text, what) => {
    const node = button(text, () => {
      shown[what] = !shown[what];
      node.setAttribute("aria-pressed", shown[what]);
      redraw();
    });
    node.setAttribute("aria-pressed", shown[what]);
    return node;
  };
  home.append(
    recordedShare(),
    el("p", { class: "soft" }, "Time 0 is the cores' start; the launch comes before it. Shares ",
      "are busy cycles of the group's run. Calls inside of vector functions, the scalar unit's own work ",
      "and each pipe's waits have ",
      "lanes that are hidden until asked for."),
    el("div", { class: "tools" },
      button("recorded part", fit), button("whole run", () => look(bounds.from, bounds.to)),
      button("zoom in", () => zoom(0.5)), button("zoom out", () => zoom(2)),
      toggle("inside of functions, scalar unit and waits", "aside"), toggle("critical path", "critical"), toggle("signals", "signals"),
      toggle("measure", "measure"), finder(),
      el("span", { class: "soft small hint" },
        "wheel zooms, drag moves, drag with Shift or Measure selects, arrow keys and + - work too")),
    findLine, legend());
  const overview = el("canvas", { class: "overview", ...drawing("the whole run") });
  home.append(overview);
  canvases.push({ canvas: overview, group: null });
  listenOverview(overview);
  for (const group of clock.groups) {
    const canvas = el("canvas",
      { class: "lanes", ...drawing(group.label), "data-segments": group.shown });
    const how = el("span", { class: "soft small" }, ` \u2014 ${extent(group)}`);
    home.append(el("h3", {}, group.label, how), canvas);
    canvases.push({ canvas, group });
    listen(canvas, group);
  }
  if (clock.left_out) {
    home.append(el("p", { class: "soft" }, `${clock.left_out} more groups are not drawn.`));
  }
  fit();
}

const drawing = (name) => ({ tabindex: 0, role: "img", "aria-label": name });

function printed(on) {
  document.documentElement.toggleAttribute("data-print", on);
  document.querySelectorAll("#facts details").forEach((node) => { node.open = on; });
  redraw();
}

const panels = [["head", "answer", drawHead], ["pair", "pair", drawPair], ["launches", "launches", drawLaunches],
  ["findings", "findings", drawFindings], ["advice", "advice", drawAdvice],
  ["source", "source", drawSource], ["tiling", "tiling", drawTiling], ["why", "verdict", drawWhy],
  ["bounds", "models", drawBounds], ["pipes", "models", drawPipes], ["memory", "memory", drawMemory],
  ["cores", "cores", drawCores],
  ["timeline", "timeline", drawTimeline], ["stalls", "stalls", drawStalls],
  ["links", "links", drawLinks], ["critical", "critical", drawCritical],
  ["changes", "changes", drawChanges], ["roofline", "roofline", drawRoofline], ["buffers", "buffers", drawBuffers],
  ["map", "map", drawMap], ["rules", "rules", drawRules], ["facts", "facts", drawFacts]];
for (const [home, key, draw] of panels) {
  if (data[key] === undefined) section(home).remove();
  else draw();
}
section("foot").append(`cubecore ${data.version}`);
redraw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", redraw);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));
document.documentElement.dataset.ready = Math.round(performance.now());

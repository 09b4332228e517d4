// The memory diagram, and the bars of the cores.

const BOXES = {
  GM: [60, 110], L2: [260, 110], L1: [480, 60], L0A: [680, 30], L0B: [680, 90], L0C: [890, 60],
  UB: [260, 235],
};
const BOX_WIDTH = 92, BOX_HEIGHT = 34;
// By edge: the points that it goes through, and where its text stands.
const PATHS = {
  "GM L2": ["M106 110H214", 160, 100, "middle"], "L2 L1": ["M306 104L434 66", 366, 62, "middle"],
  "L1 L0A": ["M526 56L634 34", 580, 28, "middle"], "L1 L0B": ["M526 64L634 86", 580, 106, "middle"],
  "L0C L2": ["M890 77V165H292V127", 620, 158, "middle"], "L2 UB": ["M242 127V218", 232, 190, "end"],
  "UB L2": ["M262 218V127", 272, 196, "start"],
};
const CUBE_EDGES = ["L1 L0A", "L1 L0B"], CUBE_LINES = ["M726 30L767 54", "M726 90L767 66", "M823 60H844"];

function drawMemory() {
  const m = data.memory, used = new Set(["GM", "L2", ...m.edges.flatMap((e) => [e.from, e.to])]);
  const most = Math.max(...m.edges.map((e) => e.bytes), 1);
  const shapes = m.edges.map((edge) => edgeLine(edge, most));
  if (used.has("L1") || used.has("L0C")) {
    const silent = CUBE_EDGES.filter((name) => !m.edges.some((e) => `${e.from} ${e.to}` === name));
    const lines = [...CUBE_LINES, ...silent.map((name) => PATHS[name][0])];
    shapes.push(...lines.map((d) => svg("path", { class: "edge", "stroke-width": 1.5, d })),
      memoryBox(795, 60, 56, "Cube"));
    for (const name of ["L1", "L0A", "L0B", "L0C"]) used.add(name);
  }
  for (const name of used) shapes.push(memoryBox(...BOXES[name], BOX_WIDTH, name));
  shapes.push(...m.edges.map(edgeText));
  const height = used.has("UB") ? 262 : 190;
  section("memory").append(
    svg("svg", { viewBox: `0 0 940 ${height}`, role: "img", "aria-label": "bytes between memories" }, shapes),
    el("p", { class: "soft small" }, "GM is device memory. All cores together; a line is as thick as its bytes are many, ",
      "and a percentage is the share of the link's rate that the run used.",
      m.inside ? " Bytes inside cores are the closed form's, of the fullest core times the cores." : ""));
  if (m.operands.length) {
    section("memory").append(table([["operand"], ["read from L2", "n"], ["from device memory", "n"],
      ["L2 hit rate"], ["", "n"]], m.operands.map((o) => [[o.operand], [bytes(o.read_bytes), "n"],
      [bytes(o.missed_bytes), "n"], [bar(o.l2_hit_rate), "wide"], [percent(o.l2_hit_rate), "n"]])));
  }
}

function edgeLine(edge, most) {
  const width = 1.5 + 5 * Math.sqrt(edge.bytes / most);
  return svg("path", { class: "edge", d: PATHS[`${edge.from} ${edge.to}`][0], "stroke-width": width.toFixed(1) });
}

function edgeText(edge) {
  const [, x, y, anchor] = PATHS[`${edge.from} ${edge.to}`];
  const share = edge.share === null ? "" : `, ${percent(edge.share)}`;
  return svg("text", { class: "halo", x, y, "text-anchor": anchor }, `${bytes(edge.bytes)}${share}`);
}

function memoryBox(x, y, width, text) {
  return svg("g", {}, svg("rect", { class: "memory", x: x - width / 2, y: y - BOX_HEIGHT / 2, width,
    height: BOX_HEIGHT, rx: 5 }), svg("text", { x, y: y + 4, "text-anchor": "middle" }, text));
}

function drawCores() {
  const c = data.cores, end = Math.max(c.end, 1);
  const idle = data.chip.aic === null ? 0
    : data.chip.aic - new Set(c.rows.flatMap((row) => row.cores)).size;
  section("cores").append(
    el("p", { class: "soft" }, "Start-up, then the cycles of the core's busiest pipe, then those in ",
      "which it waits; a bar ends when its core does.",
      idle > 0 ? ` ${idle} of ${data.chip.aic} AI Cores have no work.` : ""),
    el("div", { class: "cores" }, c.rows.map((row) => coreBar(row, c.start, end))),
    el("p", {}, [["start", "start-up"], ["busy", "busiest pipe"], ["waits", "waits"]].map(
      ([kind, text]) => el("span", { class: "key" }, el("i", { class: kind }), text))));
}

function coreBar(row, start, end) {
  const wide = (cycles) => ({ style: { width: `${100 * cycles / end}%` } });
  const before = Math.min(start, row.end), busy = Math.min(row.busy, row.end - before);
  const waits = Math.max(row.end - before - busy, 0);
  const part = row.part === "core" ? "" : ` ${row.part}`;
  const name = row.cores.length > 1 ? `${row.cores.length} cores${part}` : `${row.cores[0]}${part}`;
  const node = el("div", { class: "core" }, el("span", { class: "small" }, name),
    el("div", { class: "track" }, el("i", { class: "start", ...wide(before) }),
      el("i", { class: "busy", ...wide(busy) }), el("i", { class: "waits", ...wide(waits) })),
    el("span", { class: "small soft" }, `${short(micro(row.end))} us`));
  return hover(node, [`core ${name}`, `ends at ${whole(row.end)} cycles`,
    `${row.pipe} busy ${whole(row.busy)} cycles, ${percent(row.busy / end)}`,
    `waits ${whole(waits)} cycles, ${percent(waits / end)}`,
    `idle at the end ${whole(end - row.end)} cycles`]);
}

// Find an instruction of the timeline by its name or line, and measure a selection of it.

const LEAST_FOUND = 40;
const found = { text: "", hits: [], at: -1 };
const findLine = el("span", { class: "soft small", id: "selection", role: "status" });

function hitsOf(text) {
  const hits = [];
  for (const group of clock.groups) {
    for (const lane of group.lanes) {
      const named = lane.names.map((name) => name.toLowerCase().includes(text));
      const lined = (lane.lines || []).map((line) => line.toLowerCase().includes(text));
      for (let place = 0; place < lane.from.length; place++) {
        if (named[lane.kind[place]] || (lane.line && lined[lane.line[place]])) hits.push({ lane, place });
      }
    }
  }
  return hits.sort((a, b) => a.lane.from[a.place] - b.lane.from[b.place]);
}

function find(text, step) {
  const wanted = text.trim().toLowerCase();
  if (wanted !== found.text) Object.assign(found, { text: wanted, hits: wanted ? hitsOf(wanted) : [], at: -1 });
  if (!found.hits.length) {
    shown.found = null;
    findLine.textContent = wanted ? `no instruction that is shown has ${text.trim()}` : "";
    redraw();
    return;
  }
  found.at = (found.at + step + found.hits.length) % found.hits.length;
  const hit = found.hits[found.at], from = hit.lane.from[hit.place], to = hit.lane.to[hit.place];
  shown.found = hit;
  const span = Math.min(view.to - view.from, Math.max(LEAST_FOUND * (to - from), LEAST_SPAN));
  look((from + to - span) / 2, (from + to + span) / 2);
  findLine.textContent = `${whole(found.at + 1)} of ${whole(found.hits.length)}: ${hit.lane.names[hit.lane.kind[hit.place]]}, ` +
    `${short(micro(to - from))} us from ${micro(from).toFixed(3)} us`;
}

function finder() {
  const field = el("input", { type: "search", placeholder: "find a name or a line",
    "aria-label": "find an instruction by its name or line" });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    find(field.value, event.shiftKey ? -1 : 1);
  });
  field.addEventListener("search", () => { if (!field.value) find("", 1); });
  return field;
}

// Instructions that lie in a range in whole or in part, and the busy share of the pipe that works most.
function select(group, a, b) {
  const from = Math.max(Math.min(a, b), bounds.from), to = Math.min(Math.max(a, b), bounds.to);
  let count = 0, most = { busy: -1, label: "" };
  for (const lane of group.lanes) {
    let busy = 0;
    for (let place = firstAfter(lane, from); place < lane.from.length && lane.from[place] < to; place++) {
      count++;
      busy += Math.min(lane.to[place], to) - Math.max(lane.from[place], from);
    }
    if (busy > most.busy) most = { busy, label: lane.label };
  }
  shown.range = { from, to };
  findLine.textContent = `selection: ${short(micro(to - from))} us (${whole(to - from)} cycles), ` +
    `${whole(count)} instructions` +
    (most.busy > 0 ? `; ${most.label} is busy for ${percent(most.busy / Math.max(to - from, 1))}` : "");
  redraw();
}

// The found instruction's frame and the selection's band, over what a group has drawn.
function drawFound(ctx, paint, group, { clip, body }) {
  if (shown.range) {
    const left = clip(shown.range.from), width = clip(shown.range.to) - left;
    ctx.globalAlpha = 0.18;
    ctx.fillStyle = paint.accent;
    ctx.fillRect(left, 0, width, body);
    ctx.globalAlpha = 1;
  }
  const hit = shown.found, place = hit ? lanesOf(group).indexOf(hit.lane) : -1;
  if (place < 0) return;
  const left = clip(hit.lane.from[hit.place]), right = clip(hit.lane.to[hit.place]);
  ctx.strokeStyle = paint.bad;
  ctx.lineWidth = 2;
  ctx.strokeRect(left - 1, place * (LANE + GAP) - 1, Math.max(right - left, 2) + 2, LANE + 2);
}

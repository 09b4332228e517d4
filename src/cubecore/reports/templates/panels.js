// The panels that are words, tables and bars.

function drawHead() {
  const a = data.answer, c = data.chip;
  const figures = [[duration(a.us), `${whole(a.cycles)} cycles`]];
  if (a.tflops !== null) {
    figures.push([`${short(a.tflops)} TFLOPS`, "multiply and add, 10\u00b9\u00b2 a second"]);
  }
  if (a.utilisation !== null) figures.push([percent(a.utilisation), "of the chip's peak"]);
  figures.push([a.limited_by, "sets the time"]);
  const chip = [`architecture ${c.arch}`, `${c.aic} AI Cores`];
  if (c.mhz !== null) chip.push(`${whole(c.mhz)} MHz`);
  if (c.l2 !== null) chip.push(`L2 ${whole(c.l2 / 2 ** 20)} MiB`);
  if (c.tbps !== null) chip.push(`device memory ${short(c.tbps, 3)} TB/s`);
  const served = a.read ? percent(a.hbm_read / a.read) : "none";
  section("head").append(
    el("h1", {}, data.problem),
    el("div", { class: "answer" }, figures.map(([value, text]) =>
      el("div", { class: "figure" }, el("b", {}, value), el("span", { class: "soft" }, text)))),
    data.likely ? el("div", { class: "soft" }, data.likely) : "",
    el("div", { class: "soft" }, `${c.name}: ${chip.join(", ")}`,
      c.what_if.length ? `; what if: ${c.what_if.join(", ")}` : ""),
    el("div", { class: "soft" }, `${whole(a.issued)} instructions; read ${bytes(a.read)}, `,
      `${served} of it from device memory; wrote ${bytes(a.written)}`,
      a.simulated < 1 ? `; ${percent(a.simulated)} of the run simulated, the rest recurs` : ""));
}

function drawPair() {
  section("pair").append(
    el("p", {}, el("b", {}, `${data.pair.sentence}.`)), el("p", { class: "soft" }, data.pair.title),
    table([[""], ...data.pair.names.map((name, at) => [`${at + 1}: ${name}`, "n"]), ["difference", "n"]],
      data.pair.rows.map(([name, ...values]) => [[name], ...values.map((v) => [v, "n"])])));
}

function drawLaunches() {
  const all = data.launches, longest = Math.max(...all.map((l) => l.cycles));
  section("launches").append(
    el("p", { class: "soft" }, "All that the script launched, in order. This page is about the ",
      "longest, in bold."),
    table([["launch"], ["time", "n"], [""], ["limited by"], ["findings", "n"]], all.map((l) => [
      [l.shown ? el("b", {}, l.title) : l.title], [duration(l.us), "n"],
      [bar(l.cycles / longest), "wide"], [l.limited_by], [whole(l.findings), "n"]])));
}

function drawFindings() {
  if (!data.findings.length) {
    section("findings").append(el("p", { class: "soft" }, "None."));
    return;
  }
  const said = (f) => el("div", {}, f.message, el("p", { class: "soft small" }, `Fix: ${f.remedy}.`));
  const named = (f) => (f.link ? el("a", { href: f.link }, f.id) : f.id);
  section("findings").append(table([["id"], ["message"], ["location"], ["count", "n"]],
    data.findings.map((f) => [[named(f)], [said(f)], [f.location, "soft"], [whole(f.count), "n"]])));
}

function drawTiling() {
  const t = data.tiling;
  const field = ([name, value]) =>
    el("span", { class: "field" }, `${name} `, el("b", {}, String(value)));
  const rows = t.rows.map(({ fields, means }) =>
    [[el("span", {}, fields.map(field))], [means, "soft"]]);
  section("tiling").append(
    el("p", { class: "soft wrap", id: "tiling-from" },
      `Template ${t.template}, launch ${t.launch}; `, t.from ? `from ${t.from}` : "the plan's own"),
    table([["field"], ["meaning here"]], rows),
    el("details", {}, el("summary", {}, "All 50 fields, as JSON"),
      el("pre", {}, JSON.stringify(t.fields, null, 2))));
}

function drawWhy() {
  section("why").append(el("p", {}, data.models ? data.models.verdict : data.verdict),
    data.models ? reasonsTable() : "");
}

function drawBounds() {
  const m = data.models;
  const longest = Math.max(...m.estimates.map((e) => e.cycles));
  const estimates = m.estimates.map((e) => [
    [e.name], [e.us === null ? `${whole(e.cycles)} cycles` : duration(e.us), "n"],
    [bar(e.cycles / longest), "wide"], [e.note, "soft small"]]);
  section("bounds").append(table([["model"], ["time", "n"], [""], ["what it is; limited by"]], estimates));
}

function drawPipes() {
  const m = data.models;
  const shown = (cycles) => (cycles === null ? "" : whole(cycles));
  const pipes = m.pipes.map((p) => {
    const share = (p.event === null ? p.closed : p.event) / m.cycles;
    return [[el("span", {}, `${p.name} `, el("span", { class: "soft small" }, p.work))],
      [shown(p.closed), "n"], [shown(p.event), "n"],
      [bar(share, share > 1 ? "over" : ""), "wide"], [percent(share), "n"]];
  });
  const heads = [["pipe"], ["closed form", "n"], ["event timing", "n"], ["share of the run"],
    ["", "n"]];
  section("pipes").append(
    table(heads, pipes),
    el("p", { class: "soft small" },
      "Busy cycles. The closed form counts the fullest core, the event timing averages over the cores."));
}

function reasonsTable() {
  if (!data.reasons.length) return "";
  const all = data.answer.cycles;
  const share = (r) => (r.cycles === null ? "" : percent(r.cycles / all));
  const note = (r) => (r.rough ? " (rough: no measurement has a cost of this size)" : "");
  return table([["saved without it", "n"], ["reason"]], data.reasons.map((r) => [
    [share(r), "n"], [el("span", {}, el("b", {}, `${r.cause}: `), r.text + note(r))]]));
}

function drawStalls() {
  const all = data.stalls, cycles = data.answer.cycles;
  if (!all.length) {
    section("stalls").append(el("p", { class: "soft" }, "No pipe stood still for another."));
    return;
  }
  const rows = all.slice(0, 12).map((s) => [
    [s.pipe], [s.reason], [whole(s.cycles), "n"], [bar(s.cycles / cycles), "wide"],
    [percent(s.cycles / cycles), "n"]]);
  const rest = all.slice(12).reduce((sum, s) => sum + s.cycles, 0);
  if (rest) {
    rows.push([["others", "soft"], [`${all.length - 12} more`, "soft"], [whole(rest), "n"],
      [""], [""]]);
  }
  section("stalls").append(
    el("p", { class: "soft" }, "Cycles that a pipe stood still, by what it waited for, averaged ",
      "over the cores; the first wait counts from the cores' start. Pipes wait side by side, so ",
      "the shares do not add up to 100%."),
    table([["pipe"], ["waited for"], ["cycles", "n"], ["share of the run"], ["", "n"]], rows));
}

function drawLinks() {
  const rate = (value) => (value === null ? "unknown" : `${short(value / 1e9)} GB/s`);
  const rows = data.links.map((l) => [
    [l.link], [bytes(l.bytes), "n"], [rate(l.bytes_per_second), "n"],
    [rate(l.peak_bytes_per_second), "n"], [l.share === null ? "" : bar(l.share), "wide"],
    [l.share === null ? "" : percent(l.share), "n"]]);
  section("links").append(
    el("p", { class: "soft" }, "All cores together, over the whole run without the launch."),
    table([["link"], ["moved", "n"], ["achieved", "n"], ["possible", "n"], [""], ["", "n"]], rows));
}

function drawCritical() {
  const c = data.critical, parts = Object.entries(c.cycles).sort((a, b) => b[1] - a[1]);
  const all = parts.reduce((sum, part) => sum + part[1], 0);
  section("critical").append(
    el("p", { class: "soft" }, "Causes of the end of the slowest cores, ",
      `${whole(c.steps)} ${c.steps === 1 ? "step" : "steps"} back to the start`,
      c.complete ? "." : ", in the part of the run that was recorded.",
      " The timeline marks them on request."),
    table([["on"], ["cycles", "n"], [""], ["", "n"]], parts.map(([name, cycles]) => [
      [name], [whole(cycles), "n"], [bar(cycles / all), "wide"], [percent(cycles / all), "n"]])));
}

function drawChanges() {
  const most = Math.max(...data.changes.map((c) => c.gain), 0.01);
  const asked = (c) => [
    ...Object.entries(c.set).map(([name, value]) => `--set ${name}=${value}`),
    ...Object.entries(c.problem).map(([name, value]) => `${name} = ${value}`)].join(", ");
  const saves = (gain) => (gain > 0 ? percent(gain) : gain < 0 ? `\u2212${percent(-gain)}` : "0%");
  const row = (c) => [
    [saves(c.gain), "n"], [bar(c.gain / most), "wide"], [duration(c.us), "n"],
    [c.kind], [c.of, "soft"],
    [el("span", {}, c.what, el("div", { class: "soft small" }, asked(c)))],
    [c.limited_by, "soft"]];
  const heads = [["saves", "n"], [""], ["then", "n"], ["change"], ["of"], ["what"],
    ["then limited by"]];
  const own = data.changes.filter((c) => c.of !== "chip");
  const wider = data.changes.filter((c) => c.of === "chip");
  section("changes").append(
    el("p", { class: "soft" }, "Each change was made and the whole launch timed again; the most ",
      "helpful first. Changes are told one by one, and do not add up."));
  if (own.length) section("changes").append(table(heads, own.map(row)));
  if (wider.length) {
    section("changes").append(el("h3", {}, "A chip that has more"), table(heads, wider.map(row)));
  }
  if (data.untried.length) {
    section("changes").append(el("p", { class: "soft small" }, "Not tried: ",
      data.untried.map((u) => `${u.kind} (${u.reason})`).join("; "), "."));
  }
}

function drawBuffers() {
  section("buffers").append(...data.buffers.map(bufferRow), el("p", { class: "soft small" },
    "Each bar is its whole buffer, to its own scale; thin lines part base blocks."));
}

function bufferRow(buffer) {
  const held = new Set(buffer.parts.map((part) => {
    const alike = buffer.parts.filter((other) => other.kind === part.kind).length;
    const name = part.kind === "bias" ? "bias" : part.kind.toUpperCase();
    return `${name}: ${alike > 1 ? `${alike} x ` : ""}${part.detail}`;
  }));
  const used = `${percent(buffer.used / buffer.size)} used, ${kib(buffer.size - buffer.used)} left`;
  const note = buffer.used ? `${used}; ${[...held].join("; ")}` : "not used";
  return el("div", { class: "buffer", "data-used": buffer.used },
    el("div", {}, el("b", {}, buffer.name), el("div", { class: "soft small" }, kib(buffer.size))),
    el("div", { class: "store" }, buffer.parts.map((part) => bufferPart(part, buffer.size))),
    el("div", { class: "note soft small" }, note));
}

function bufferPart(part, size) {
  const width = 100 * part.size / size;
  const style = { left: `${100 * part.start / size}%`, width: `${width}%` };
  if (part.blocks > 1 && part.blocks <= 96) {
    style.backgroundImage =
      "linear-gradient(to right, transparent calc(100% - 1px), var(--card) 0)";
    style.backgroundSize = `${100 / part.blocks}% 100%`;
  }
  const span = `${whole(part.start)} .. ${whole(part.start + part.size)} B`;
  const node = el("div", { class: `part ${part.kind}`, style }, width > 9 ? part.label : "");
  return hover(node, [part.label, part.detail, `${kib(part.size)} at ${span}`]);
}

function drawRules() {
  const bounds = data.rules.filter((r) => r.share !== null);
  const exact = data.rules.filter((r) => r.share === null && r.holds !== null);
  const silent = data.rules.filter((r) => r.holds === null);
  const broken = data.rules.filter((r) => r.holds === false).length;
  const held = bounds.length + exact.length - broken;
  section("rules").append(
    el("p", { class: "soft" }, `${held} rules hold, ${broken} broken, ${silent.length} do not `,
      "apply. A bar is what the tiling uses of the rule's limit."),
    el("h3", {}, "Limits"), el("div", { class: "rules" }, bounds.map(ruleRow)),
    el("h3", {}, "Exact and least values"), el("div", { class: "rules" }, exact.map(ruleRow)));
  if (silent.length) {
    section("rules").append(el("h3", {}, "Do not apply"),
      el("p", { class: "soft small" }, silent.map((r) => r.rule).join(", ")));
  }
}

function ruleRow(rule) {
  const unit = rule.unit ? ` ${rule.unit}` : "";
  const share = rule.share === null ? "" : `, ${percent(rule.share)}`;
  return el("div", { class: "rule", "data-rule": rule.rule, "data-holds": rule.holds },
    el("span", { class: rule.holds ? "yes" : "no" }, rule.holds ? "\u2713" : "\u2717"),
    el("span", {}, el("code", {}, rule.rule), " ",
      el("span", { class: "soft small" }, rule.title)),
    el("span", { class: "number" }, `${rule.used}${rule.relation} ${rule.limit}${unit}${share}`),
    rule.share === null ? null : bar(rule.share, rule.share > 1 ? "over" : ""),
    rule.terms === "" ? null : el("span", { class: "terms soft small" }, rule.terms));
}

function drawFacts() {
  const f = data.facts;
  const rows = f.rows.map((row) => [
    [el("code", {}, row.name)], [row.value, "v"], [el("span", { class: "tag" }, row.tag)],
    [row.meaning], [row.note ? `${row.source}; ${row.note}` : row.source, "soft small"]]);
  const summary = `The ${f.rows.length} facts of ${data.chip.name} that this rests on`;
  section("facts").append(
    ...data.assumptions.map((text) => el("p", {}, text)),
    el("p", { class: "soft" },
      f.tags.map((t) => `${t.count} ${t.tag} (${t.meaning})`).join(", ")),
    el("details", {}, el("summary", {}, summary),
      table([["fact"], ["value", "n"], ["tag"], ["meaning"], ["source"]], rows)));
}

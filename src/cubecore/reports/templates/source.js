// Advice on a kernel, and its source: each line with the cycles that it takes.
function drawAdvice() {
  if (!data.advice.length) {
    section("advice").append(
      el("p", { class: "soft" }, "Nothing that a rule counts costs 2% or more."));
    return;
  }
  const rows = data.advice.map((a) => [
    [saving(a), "n"], [a.certainty === "not modelled" ? "" : duration(a.saves_us), "n"],
    [el("code", {}, a.rule)], [place(a.file, a.line)],
    [el("span", {}, a.text, el("div", { class: "soft small" }, a.remedy))]]);
  section("advice").append(
    el("p", { class: "soft" }, "What makes the kernel slow, the most helpful first. Each saving is ",
      "the model's for the same program with this one thing fixed; they do not add up."),
    table([["saves", "n"], ["", "n"], ["rule"], ["line"], ["why, and what to do"]], rows));
}

function saving(a) {
  if (a.certainty === "not modelled") return a.certainty;
  return `${a.certainty === "bound" ? "at most " : ""}${percent(a.saves_share)}`;
}

function place(file, line) {
  return el("a", { href: `#${lineId(file, line)}` }, `${file.split("/").pop()}:${line}`);
}

const lineId = (file, line) => `line-${data.source.findIndex((f) => f.file === file)}-${line}`;

function drawSource() {
  section("source").append(el("p", { class: "soft" },
    "Busy cycles of the pipes by line, and cycles that pipes stood still before what the line ",
    "issues, averaged over the cores. They add up to the pipes' and the stalls' of the launch."));
  for (const file of data.source) {
    section("source").append(el("h3", {}, file.file), sourceTable(file));
  }
}

function sourceTable(file) {
  const all = data.answer.cycles, heads = [["line", "n"], ["source"], ["busy"], [""],
    ["waits", "n"], ["instructions", "n"], ["bytes", "n"]];
  const rows = file.rows.map((row) => sourceRow(row, all));
  const made = table(heads, rows);
  made.classList.add("source");
  const lines = [...made.querySelectorAll("tr")].slice(-rows.length);
  lines.forEach((node, at) => { node.id = lineId(file.file, file.rows[at].line); });
  return made;
}

function sourceRow(row, all) {
  const code = el("code", { class: "line" }, row.text);
  if (!row.busy) return [[row.line, "n"], [code], [""], [""], [""], [""], [""]];
  const pipes = Object.entries(row.busy).sort((a, b) => b[1] - a[1]);
  const most = pipes.length ? pipes[0][1] : 0;
  const told = pipes.map(([pipe, cycles]) => `${pipe} ${whole(cycles)}`);
  const waits = row.stalls.map(([pipe, reason, n]) => `${pipe} waits for ${reason}: ${whole(n)}`);
  hover(code, [row.text.trim(), ...told, ...waits, ...row.paths.map((p) => `called at ${p}`)]);
  return [[row.line, "n"], [code], [told.join(", "), "soft"],
    [most ? bar(most / all) : "", "wide"], [row.stalled ? whole(row.stalled) : "", "n"],
    [whole(row.instructions), "n"], [row.bytes ? bytes(row.bytes) : "", "n"]];
}

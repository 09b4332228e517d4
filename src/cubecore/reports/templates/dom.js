"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

// Makes an element. Strings become text nodes, so nothing from the data is ever parsed as markup.
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== ""));
  return node;
}

const section = (id) => document.getElementById(id);
const styles = getComputedStyle(document.documentElement);
const colour = (name) => styles.getPropertyValue(`--${name}`).trim();

function whole(value) {
  return Math.round(value).toLocaleString("en-US");
}

// Four significant digits, as the command line prints them.
function short(value, digits = 4) {
  if (value === null || value === undefined) return "unknown";
  if (value === 0) return "0";
  if (Math.abs(value) >= 10 ** (digits - 1)) return whole(value);
  return String(Number(value.toPrecision(digits)));
}

// A time of so many microseconds in the unit that fits, as the command line prints it.
function duration(us) {
  if (us >= 1e6) return `${short(us / 1e6)} s`;
  return us >= 1e3 ? `${short(us / 1e3)} ms` : `${short(us)} us`;
}

function percent(share) {
  const value = 100 * share;
  if (value < 10) return `${Number(value.toPrecision(2))}%`;
  return `${Number(value.toFixed(1))}%`;
}

function bytes(size) {
  if (size >= 1e9) return `${short(size / 1e9)} GB`;
  if (size >= 1e6) return `${short(size / 1e6)} MB`;
  if (size >= 1e3) return `${short(size / 1e3)} kB`;
  return `${size} B`;
}

function kib(size) {
  return size < 1024 ? `${size} B` : `${short(size / 1024)} KiB`;
}

function bar(share, classes = "") {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return el("div", { class: "bar" }, el("i", { class: classes, style: { width } }));
}

function table(heads, rows) {
  const cell = (tag, [text, classes]) => el(tag, classes ? { class: classes } : {}, text);
  return el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => cell("th", head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((entry) => cell("td", entry))))));
}

// --- one tooltip for the page

const tip = document.getElementById("tip");

function showTip(event, lines) {
  tip.replaceChildren(...lines.map((line, place) =>
    el("div", place ? {} : { style: { fontWeight: 650 } }, line)));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  const beside = (at, size, room) => Math.max(at + 14 + size > room ? at - size - 10 : at + 14, 4);
  tip.style.left = `${beside(event.clientX, width, innerWidth)}px`;
  tip.style.top = `${beside(event.clientY, height, innerHeight)}px`;
}

function hideTip() {
  tip.hidden = true;
}

function hover(node, lines) {
  node.addEventListener("pointermove", (event) => showTip(event, lines));
  node.addEventListener("pointerleave", hideTip);
  return node;
}

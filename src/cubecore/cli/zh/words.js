"use strict";
// Texts of a page in Chinese: those that are there, and those that its script adds or draws later.
// Whole texts come first; then templates, whose places stand for whatever is there. Findings and
// advice have many templates that would fit other texts too: theirs count in their places alone.
{
  const given = JSON.parse(document.getElementById("words").textContent);
  const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const [OF_PAGE, OF_FINDINGS] = ["page", "findings"].map((name) => ({
    whole: new Map(given[name].whole),
    templates: given[name].templates.map(([english, chinese]) => {
      const names = [...english.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
      const parts = english.split(/\{\w+\}/).map(escaped);
      return [new RegExp(`^${parts.join("([^]+?)")}$`), names, chinese];
    }),
    known: new Map(),
  }));
  const FINDINGS = "#findings, #advice, #why, #changes, .long";

  function translated(text, words) {
    if (words.whole.has(text)) return words.whole.get(text);
    for (const [pattern, names, chinese] of words.templates) {
      const found = pattern.exec(text);
      if (found === null) continue;
      return chinese.replace(/\{(\w+)\}/g, (_, name) => say(found[names.indexOf(name) + 1], words));
    }
    return text;
  }

  function say(text, words = OF_PAGE) {
    if (!/[a-z]/i.test(text)) return text;
    if (!words.known.has(text)) {
      const [, before, inside, behind] = /^(\s*)([^]*?)(\s*)$/.exec(text);
      const put = before + translated(inside.replace(/\s+/g, " "), words) + behind;
      words.known.set(text, put);
      words.known.set(put, put);
    }
    return words.known.get(text);
  }

  // The user's code and the command line are no texts of ours.
  const isOurs = (node) => !(node.parentElement ?? node).closest("script, style, pre, code, .code");

  function put(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (!isOurs(node)) return;
      const text = say(node.data, node.parentElement?.closest(FINDINGS) ? OF_FINDINGS : OF_PAGE);
      if (text !== node.data) node.data = text;
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || !isOurs(node)) return;
    for (const name of ["aria-label", "title", "placeholder"]) {
      const text = node.getAttribute(name);
      if (text !== null && say(text) !== text) node.setAttribute(name, say(text));
    }
    node.normalize(); // texts that a script puts side by side are one sentence
    node.childNodes.forEach(put);
  }

  for (const name of ["fillText", "measureText"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (text, ...rest) {
      return draw.call(this, say(String(text)), ...rest);
    };
  }
  document.documentElement.lang = "zh-CN";
  put(document.body);
  new MutationObserver((changes) => {
    for (const change of changes) {
      change.addedNodes.forEach(put);
      if (change.type === "characterData") put(change.target);
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}

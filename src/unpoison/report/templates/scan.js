"use strict";
const articles = [...document.querySelectorAll("article")];
const idOf = (article) => JSON.parse(article.dataset.id);
const storage = "unpoison-scan-" + document.body.dataset.scan;
let decisions = {};
try { decisions = JSON.parse(localStorage.getItem(storage)) || {}; } catch { decisions = {}; }

function shown(article) {
  const filter = document.getElementById("filter").value, decision = article.dataset.decision || "";
  return filter === "all" || (filter === "open" && !decision) || filter === decision
    || (filter === "flagged" && article.dataset.flagged === "true");
}

function draw() {
  for (const article of articles) {
    const decision = Object.hasOwn(decisions, idOf(article)) ? decisions[idOf(article)] : "";
    article.dataset.decision = decision;
    for (const choice of article.querySelectorAll("input")) choice.checked = choice.value === decision;
    article.hidden = !shown(article);
  }
  const done = articles.filter((article) => article.dataset.decision).length;
  document.getElementById("progress").textContent = `${done} of ${articles.length} decided`;
}

function decide(article, decision) {
  decisions[idOf(article)] = decision;
  try { localStorage.setItem(storage, JSON.stringify(decisions)); } catch { /* private windows may keep nothing */ }
  draw();
}

function exported() {
  const rows = articles.filter((article) => article.dataset.decision)
    .map((article) => ({ id: idOf(article), decision: article.dataset.decision }));
  return JSON.stringify({ format: "unpoison-decisions", version: 1, decisions: rows }, null, 1);
}

function move(article, step) {
  const visible = articles.filter((one) => !one.hidden);
  const next = visible[Math.max(0, Math.min(visible.length - 1, visible.indexOf(article) + step))];
  if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
}

document.addEventListener("change", (event) => {
  const article = event.target.closest("article");
  if (article) decide(article, event.target.value);
  else draw();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  const article = document.activeElement.closest("article"), key = event.key;
  const decision = { q: "quarantine", k: "keep", u: "unsure" }[key];
  if (key === "j" || key === "p") move(article, key === "j" ? 1 : -1);
  else if (article && decision) decide(article, decision);
});
document.getElementById("export").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exported()], { type: "application/json" }));
  link.download = "decisions.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
document.getElementById("clear").addEventListener("click", () => {
  if (!confirm("Forget all decisions of this page?")) return;
  decisions = {};
  try { localStorage.removeItem(storage); } catch { /* nothing was kept */ }
  draw();
});
draw();

"use strict";
// The inspector. Texts of passages reach the page escaped by the server; nothing is ever parsed as markup here but its
// reply, and the page's policy runs no script but this file.
(() => {
  const at = (id) => document.getElementById(id);
  const form = at("ask");
  const status = at("status");
  const problem = at("problem");
  const result = at("result");
  const buttons = form.querySelectorAll("button");

  const tell = (message) => {
    problem.textContent = message;
    problem.hidden = !message;
  };

  // A list of passages or a whole row as JSON, or texts with empty lines between them.
  const read = (text) => {
    if (/^\s*[[{]/.test(text)) {
      try {
        const data = JSON.parse(text);
        return Array.isArray(data) ? { passages: data } : data;
      } catch {
        // a text that begins with a bracket
      }
    }
    return { passages: text.split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean) };
  };

  const body = () => {
    const row = read(at("passages").value);
    const query = at("query").value || row.query || row.question || "";
    const embedding = row.embedding ?? row.query_embedding ?? null;
    return { query, passages: row.passages ?? [], defense: at("defense").value, embedding };
  };

  const refusal = async (response) => {
    try {
      return (await response.json()).error.message;
    } catch {
      return `the service replied with status ${response.status}`;
    }
  };

  const screen = async (path) => {
    const headers = { "Content-Type": "application/json" };
    const key = at("key")?.value;
    if (key) headers.Authorization = `Bearer ${key}`;
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body()) });
    if (!response.ok) throw new Error(await refusal(response));
    const reply = new DOMParser().parseFromString(await response.text(), "text/html");
    result.replaceChildren(document.adoptNode(reply.querySelector("section")));
    follow();
    result.focus();
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    tell("");
    const answer = event.submitter?.value === "answer";
    status.textContent = answer ? "answering…" : "screening…";
    for (const button of buttons) button.disabled = true;
    try {
      await screen(answer ? "inspect/answer" : "inspect");
      status.textContent = "done";
    } catch (error) {
      result.replaceChildren();
      status.textContent = "";
      tell(error.message);
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  });

  at("passages").addEventListener("input", () => {
    const row = read(at("passages").value);
    if (row.query ?? row.question) at("query").value = row.query ?? row.question;
  });

  at("sample").addEventListener("change", async (event) => {
    if (event.target.value === "") return;
    tell("");
    try {
      const response = await fetch(`sample/${event.target.value}`);
      if (!response.ok) throw new Error(await refusal(response));
      const row = await response.json();
      at("query").value = row.query;
      at("passages").value = row.passages.join("\n\n");
    } catch (error) {
      tell(error.message);
    }
  });

  // The threshold moves what is known already; nothing is computed again.
  const follow = () => {
    const slider = at("threshold");
    if (!slider) return;
    slider.addEventListener("input", () => move(Number(slider.value)));
    at("threshold-reset").addEventListener("click", () => {
      slider.value = slider.dataset.threshold;
      move(Number(slider.dataset.threshold));
    });
  };

  const move = (threshold) => {
    at("threshold-value").textContent = threshold.toFixed(3);
    let place = 0;
    const cards = [...result.querySelectorAll("[data-probability]")];
    for (const card of cards) {
      const kept = Number(card.dataset.probability) <= threshold;
      card.className = kept ? "kept" : "dropped";
      const meter = card.querySelector("meter");
      meter.low = meter.high = threshold;
      const state = card.querySelector(".state");
      state.textContent = kept ? `kept, place ${(place += 1)}${state.dataset.cut}` : "dropped";
      const node = result.querySelector(`svg a[href="#${card.id}"]`);
      if (node) redraw(node, kept);
    }
    at("kept-count").textContent = place;
    at("dropped-count").textContent = cards.length - place;
  };

  // A circle for kept, a square for dropped, as the server draws them.
  const redraw = (node, kept) => {
    node.setAttribute("class", kept ? "kept" : "dropped");
    const title = node.querySelector("title");
    title.textContent = title.textContent.replace(/, (kept|dropped):/, `, ${kept ? "kept" : "dropped"}:`);
    const old = node.querySelector("circle, rect");
    if ((old.tagName === "circle") === kept) return;
    const number = (name) => Number(old.getAttribute(name));
    const shape = document.createElementNS("http://www.w3.org/2000/svg", kept ? "circle" : "rect");
    const side = kept ? number("width") : 1.8 * number("r");
    const [x, y] = kept ? [number("x") + side / 2, number("y") + side / 2] : [number("cx"), number("cy")];
    const values = kept
      ? { cx: x, cy: y, r: side / 1.8 }
      : { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 3 };
    for (const [name, value] of Object.entries(values)) shape.setAttribute(name, value.toFixed(1));
    old.replaceWith(shape);
  };
})();

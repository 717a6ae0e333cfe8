"use strict";
// The drill-down. Everything from the run is put on the page as text; nothing is ever parsed as markup.
(() => {
  const place = document.getElementById("drill-down");
  if (!place) return;
  const data = JSON.parse(document.getElementById("questions-data").textContent);
  const STEP = 25;
  const OUTCOMES = {
    failed: ["failed", "bad"],
    poisoned: ["poison in context", "bad"],
    attacked: ["states the attacker's answer", "bad"],
    right: ["answered correctly", ""],
    wrong: ["not answered correctly", "bad"],
    "gold-lost": ["gold lost", "bad"],
    damaged: ["clean passage dropped", "plain"],
    emptied: ["nothing left", "bad"],
    abstained: ["declined to answer", "plain"],
    clean: ["no poison in context", ""],
  };
  const rows = data.cells.flatMap((cell) => cell.records.map((record) => ({ cell, record })));
  const state = { defense: "", scenario: "", outcome: "", search: "", shown: STEP };

  const make = (tag, className = "", text = "") => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text) node.textContent = text;
    return node;
  };
  const line = (className, text) => {
    const node = make("p", className, text);
    node.dir = "auto";
    return node;
  };

  const choose = (name, title, values) => {
    const select = make("select");
    select.name = name;
    const option = (value, text) => {
      const node = make("option", "", text);
      node.value = value;
      select.append(node);
    };
    option("", "all");
    for (const [value, text] of values) option(value, text);
    select.addEventListener("change", () => {
      state[name] = select.value;
      state.shown = STEP;
      draw();
    });
    const field = make("label", "", title);
    field.append(select);
    return field;
  };

  const distinct = (values) => [...new Set(values)].map((value) => [value, value]);
  const filters = make("form", "filters");
  filters.addEventListener("submit", (event) => event.preventDefault());
  const present = new Set(rows.flatMap(({ record }) => record.outcomes));
  const search = make("input");
  search.type = "search";
  search.name = "search";
  search.addEventListener("input", () => {
    state.search = search.value.toLowerCase();
    state.shown = STEP;
    draw();
  });
  const searching = make("label", "", "search");
  searching.append(search);
  filters.append(
    choose("defense", "defense", distinct(data.cells.map((cell) => cell.defense))),
    choose("scenario", "scenario", distinct(data.cells.map((cell) => cell.scenario))),
    choose("outcome", "outcome", Object.keys(OUTCOMES).filter((o) => present.has(o)).map((o) => [o, OUTCOMES[o][0]])),
    searching,
  );
  const found = make("p", "found");
  found.setAttribute("role", "status");
  const list = make("div", "questions");
  const more = make("button", "more", "Show more");
  more.type = "button";
  more.addEventListener("click", () => {
    state.shown += STEP;
    draw();
  });
  place.append(filters, found, list, more);

  const wanted = ({ cell, record }) =>
    (!state.defense || cell.defense === state.defense) &&
    (!state.scenario || cell.scenario === state.scenario) &&
    (!state.outcome || record.outcomes.includes(state.outcome)) &&
    (!state.search || text(record).includes(state.search));
  const text = (record) =>
    `${record.id} ${data.contexts[record.context].query} ${record.answer ?? ""} ${record.error ?? ""}`.toLowerCase();

  const passage = (record, index) => {
    const shown = data.contexts[record.context].passages[index] ?? { text: "(not kept)", title: "", kind: "" };
    const { text: words, title, kind } = shown;
    const [kept, score, rank, reason] = record.verdicts[index];
    const item = make("li", `${kept ? "kept" : "dropped"}${kind === "poison" ? " planted" : ""}`);
    const verdict = make("p", "verdict");
    verdict.append(make("b", "", String(index)), make("strong", "", kept ? `kept, place ${rank + 1}` : "dropped"));
    if (kind) verdict.append(make("em", kind === "poison" ? "tag bad" : "tag", kind));
    verdict.append(make("span", "", `score ${score}`));
    item.append(verdict, line("reason", reason));
    if (title) item.append(line("origin", title));
    const quote = make("blockquote", "", words);
    quote.dir = "auto";
    item.append(quote);
    return item;
  };

  const body = (record) => {
    const inner = make("div");
    if (record.error) inner.append(line("error", record.error));
    if (record.correct.length) inner.append(line("", `right: ${record.correct.join(" | ")}`));
    if (record.wanted.length) inner.append(line("", `the attacker wants: ${record.wanted.join(" | ")}`));
    if (record.answer !== null) inner.append(line("answer", record.answer || "(an empty reply)"));
    for (const note of record.notes) inner.append(line("origin", note));
    const verdicts = make("ol", "verdicts");
    for (const index of record.order) verdicts.append(passage(record, index));
    inner.append(verdicts);
    return inner;
  };

  const question = ({ cell, record }) => {
    const item = make("details", "question");
    const summary = make("summary");
    const asked = make("span", "asked", data.contexts[record.context].query || record.id);
    asked.dir = "auto";
    summary.append(asked);
    for (const outcome of record.outcomes) {
      const [words, kind] = OUTCOMES[outcome];
      summary.append(make("span", `tag ${kind}`, words));
    }
    summary.append(make("span", "where", `${cell.defense} · ${cell.scenario} · ${record.id}`));
    item.append(summary);
    item.addEventListener("toggle", () => {
      if (item.open && item.children.length === 1) item.append(body(record));
    });
    return item;
  };

  const draw = () => {
    const matching = rows.filter(wanted);
    list.replaceChildren(...matching.slice(0, state.shown).map(question));
    more.hidden = matching.length <= state.shown;
    const left = data.left_out ? `; ${data.left_out} of the run are left out of this page` : "";
    found.textContent = `${matching.length} of ${rows.length} questions${left}`;
  };

  // report.html#defense=grada&outcome=poisoned&search=paris&open shows just that, the first question unfolded.
  const follow = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const named = ["defense", "scenario", "outcome", "search"].filter((name) => asked.has(name));
    for (const name of named) {
      filters.elements[name].value = asked.get(name);
      state[name] = name === "search" ? asked.get(name).toLowerCase() : filters.elements[name].value;
    }
    draw();
    if (asked.has("open") && list.firstChild) {
      list.firstChild.open = true;
      list.firstChild.dispatchEvent(new Event("toggle"));
    }
    if (named.length) {
      place.scrollIntoView();
    }
  };
  addEventListener("hashchange", follow);
  follow();
})();

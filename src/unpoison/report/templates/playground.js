"use strict";
// The playground. Texts of passages reach the page escaped by the server; nothing is ever parsed as markup here but its
// reply, and the page's policy runs no script but this file.
(() => {
  const PAUSE = 350; // milliseconds without a key before a request; there is never more than one on its way
  const at = (id) => document.getElementById(id);
  const form = at("ask");
  const list = at("cards");
  const result = at("result");
  const most = Number(form.dataset.most);
  const rest = new WeakMap(); // of a card: the fields of its passage that have no input of their own
  let trust = new Map(); // what the page changes: where sources stand
  let embedding = null; // of the question, where a row brought one
  let version = 0; // of what was typed; a reply to an older one is not shown
  let waiting = 0;
  let busy = false;

  const say = (message) => {
    if (at("status").textContent !== message) at("status").textContent = message;
  };
  const tell = (message) => {
    at("problem").textContent = message;
    at("problem").hidden = !message;
  };
  const chosen = () => at("defense").selectedOptions[0].dataset;
  const live = () => "live" in chosen() && at("live").checked && !(at("key") && !at("key").value);

  // Cards: a passage each.
  const number = () => {
    [...list.children].forEach((card, i) => {
      card.querySelector(".number").textContent = `Passage ${i}`;
      card.querySelector(".remove").setAttribute("aria-label", `Remove passage ${i}`);
      card.querySelector("textarea").setAttribute("aria-label", `Text of passage ${i}`);
      card.querySelector("input").setAttribute("aria-label", `Source of passage ${i}`);
    });
    at("add").disabled = list.children.length >= most;
  };

  const add = (passage) => {
    const fields = typeof passage === "string" ? { text: passage } : { ...passage };
    const text = fields.text ?? fields.content ?? fields.page_content;
    if (typeof text !== "string") throw new Error("a passage is a text, or an object with text; correct the row");
    delete fields.content;
    delete fields.page_content;
    const card = at("card").content.firstElementChild.cloneNode(true);
    card.querySelector("textarea").value = fields.text = text;
    card.querySelector("input").value = fields.source ?? (typeof fields.url === "string" ? fields.url : "");
    card.querySelector(".origin").textContent = [fields.title, fields.id].filter((one) => one != null).join(" · ");
    rest.set(card, fields);
    list.append(card);
    return card;
  };

  const filled = () => [...list.children].filter((card) => card.querySelector("textarea").value.trim());

  const passage = (card) => {
    const fields = { ...rest.get(card), text: card.querySelector("textarea").value };
    return Object.keys(fields).length === 1 ? fields.text : fields;
  };

  const body = () => ({
    query: at("query").value,
    passages: filled().map(passage),
    defense: at("defense").value,
    embedding,
    trust: Object.fromEntries(trust),
  });

  const load = (row) => {
    const passages = row.passages ?? row.documents ?? [];
    const before = [...list.children];
    try {
      passages.slice(0, most).forEach(add);
    } catch (error) {
      [...list.children].filter((card) => !before.includes(card)).forEach((card) => card.remove());
      throw error;
    }
    before.forEach((card) => card.remove());
    at("query").value = row.query ?? row.question ?? at("query").value;
    at("about").textContent = row.about ?? "";
    at("about").hidden = !row.about;
    embedding = row.embedding ?? row.query_embedding ?? null;
    trust = new Map(Object.entries(row.trust ?? {}));
    number();
    tell(passages.length > most ? `the first ${most} of ${passages.length} passages are shown` : "");
    changed(0);
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

  // Requests: one after a pause, and never two at once.
  const changed = (pause = PAUSE) => {
    version += 1;
    clearTimeout(waiting);
    if (live()) waiting = setTimeout(() => send("answers" in chosen()), pause);
    else say("changed; press Screen");
  };

  const refusal = async (response) => {
    try {
      return (await response.json()).error.message;
    } catch {
      return `the service replied with status ${response.status}`;
    }
  };

  const send = async (answers) => {
    const asked = version;
    if (busy) return;
    if (!at("query").value.trim() || !filled().length) {
      clear();
      say("a question and a passage are needed");
      return;
    }
    busy = true;
    result.setAttribute("aria-busy", "true");
    const headers = { "Content-Type": "application/json" };
    if (at("key")?.value) headers.Authorization = `Bearer ${at("key").value}`;
    try {
      const path = answers ? "play/answer" : "play";
      const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body()) });
      const problem = response.ok ? "" : await refusal(response);
      const reply = response.ok ? await response.text() : "";
      if (asked !== version) return;
      tell(problem);
      if (problem) clear();
      else show(new DOMParser().parseFromString(reply, "text/html").querySelector("section"));
    } catch (error) {
      if (asked === version) tell(error.message);
    } finally {
      busy = false;
      result.removeAttribute("aria-busy");
      if (asked !== version && live()) changed(0);
    }
  };

  const slots = () => ["counts", "answers", "claims", "sources", "notes"].map(at);

  const clear = () => {
    for (const slot of [...slots(), ...list.querySelectorAll(".outcome")]) slot.replaceChildren();
    say("");
  };

  const show = (reply) => {
    const focused = document.activeElement.id;
    const cards = filled();
    for (const card of list.children) card.querySelector(".outcome").replaceChildren();
    for (const piece of reply.querySelectorAll("[data-slot]")) {
      const place = /^outcome-(\d+)$/.exec(piece.dataset.slot);
      const slot = place ? cards[Number(place[1])].querySelector(".outcome") : at(piece.dataset.slot);
      slot.replaceChildren(...[...piece.childNodes].map((node) => document.adoptNode(node)));
    }
    // who reads with the ears hears the verdict with the text
    cards.forEach((card, i) => card.querySelector("textarea").setAttribute("aria-describedby", `preview-passage-${i}`));
    if (focused && document.activeElement === document.body) at(focused)?.focus();
    say(reply.dataset.summary);
  };

  // What somebody does.
  const choose = () => {
    at("answer").hidden = !("answers" in chosen());
    at("live-choice").hidden = !("live" in chosen());
  };

  const fetched = async (path) => {
    try {
      const response = await fetch(path);
      if (!response.ok) throw new Error(await refusal(response));
      load(await response.json());
      at("example").value = path;
    } catch (error) {
      tell(error.message);
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    version += 1;
    clearTimeout(waiting);
    send(event.submitter?.value === "answer" || (live() && "answers" in chosen()));
  });
  form.addEventListener("input", (event) => {
    if (event.target.id === "query") embedding = null;
    if (event.target.id === "query" || event.target.id === "live" || event.target.id === "key") changed();
  });
  at("defense").addEventListener("change", () => {
    choose();
    changed(0);
  });
  at("example").addEventListener("change", (event) => event.target.value && fetched(event.target.value));
  list.addEventListener("input", (event) => {
    const card = event.target.closest(".card");
    const { embedding: old, ...fields } = rest.get(card); // the vector is of another text now
    if (event.target.tagName === "INPUT") {
      delete fields.url;
      delete fields.source;
      if (event.target.value.trim()) fields.source = event.target.value;
    }
    rest.set(card, fields);
    changed();
  });
  list.addEventListener("click", (event) => {
    if (!event.target.matches(".remove")) return;
    const card = event.target.closest(".card");
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.remove();
    number();
    (next?.querySelector("textarea") ?? at("add")).focus();
    changed(0);
  });
  at("add").addEventListener("click", () => {
    const card = add("");
    number();
    card.querySelector("textarea").focus();
  });
  at("take").addEventListener("click", () => {
    try {
      load(read(at("paste").value));
    } catch (error) {
      tell(error.message);
    }
  });
  at("sources").addEventListener("change", (event) => {
    const { origin } = event.target.dataset;
    if (event.target.value) trust.set(origin, event.target.value);
    else trust.delete(origin);
    changed(0);
  });
  choose();
  fetched("examples/0");
})();

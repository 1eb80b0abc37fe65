// The menu on narrow screens, and the search: full text, offline, by lunr (https://lunrjs.com).
"use strict";
(() => {
  const button = document.getElementById("menu-button"), body = document.body;
  button.hidden = false;
  button.addEventListener("click", () => {
    const open = body.classList.toggle("menu-open");
    button.setAttribute("aria-expanded", open);
    if (open) document.querySelector("#menu a").focus();
  });
  body.classList.add("scripted");

  const form = document.getElementById("search"), field = form.querySelector("input"), list = document.getElementById("found");
  if (!form.dataset.index) return;
  form.hidden = false;
  const MOST = 25;
  let index = null, chosen = -1;

  function load(then) {  // the index is read when somebody searches; a script may be read from file://, other data may not
    if (index) { then(); return; }
    const scripts = [form.dataset.lunr, form.dataset.index];
    const next = () => {
      const source = scripts.shift();
      if (!source) { index = lunr.Index.load(SEARCH.index); then(); return; }
      const script = document.createElement("script");
      script.src = source;
      script.onload = next;
      document.head.append(script);
    };
    next();
  }

  function matches(text) {
    const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    if (!words.length) return [];
    const last = words.length - 1;
    const query = all => index.query(q => words.forEach((word, i) => {
      const presence = all ? lunr.Query.presence.REQUIRED : lunr.Query.presence.OPTIONAL;
      if (i < last || word.length < 2) q.term(lunr.tokenizer(word), { presence });
      else q.term(lunr.stemmer(new lunr.Token(word, {})).toString(), { presence, wildcard: lunr.Query.wildcard.TRAILING, usePipeline: false });
      if (i === last) q.term(lunr.tokenizer(word), { boost: 5 });
    }));
    const found = query(true);
    return found.length ? found : query(false);
  }

  function show() {
    const text = field.value.trim();
    list.replaceChildren();
    chosen = -1;
    list.hidden = !text;
    field.setAttribute("aria-expanded", Boolean(text));
    if (!text) return;
    const found = matches(text);
    for (const { ref } of found.slice(0, MOST)) {
      const [page, title, beside] = SEARCH.pages[ref];
      const item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
      link.href = page;
      link.textContent = title;
      small.textContent = beside;
      link.append(" ", small);
      item.append(link);
      list.append(item);
    }
    const item = document.createElement("li");
    item.className = "count";
    item.textContent = !found.length ? "Nothing was found." : found.length > MOST ? `${MOST} of ${found.length} pages and terms` : "";
    if (item.textContent) list.append(item);
  }

  field.addEventListener("focus", () => load(() => {}), { once: true });
  field.addEventListener("input", () => load(show));
  form.addEventListener("submit", event => {
    event.preventDefault();
    load(() => { show(); const link = list.querySelector("a"); if (link) location.href = link.href; });
  });
  form.addEventListener("keydown", event => {
    const links = [...list.querySelectorAll("a")];
    if (event.key === "Escape") { list.hidden = true; field.focus(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || !links.length) return;
    event.preventDefault();
    chosen = Math.max(-1, Math.min(links.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
    (chosen < 0 ? field : links[chosen]).focus();
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !/^(input|select|textarea)$/i.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
  });
  const asked = new URLSearchParams(location.search).get("search");
  if (asked) { field.value = asked; load(show); }
})();

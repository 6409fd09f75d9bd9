"use strict";
// Filters what is shown. Everything can be read without it, and it remembers nothing.
(() => {
  const controls = document.getElementById("controls");
  if (!controls) return;
  const entries = [...document.querySelectorAll("details.entry")];
  const rows = new Map([...document.querySelectorAll("tr[data-tag]")].map((row) => [row.dataset.tag, row]));
  const find = document.getElementById("find");
  const kinds = ["proof", "status", "verdict"];
  const choices = kinds.map((kind) => document.getElementById("by-" + kind));
  const texts = new Map();
  const textOf = (entry) => {
    if (!texts.has(entry)) texts.set(entry, entry.textContent.toLowerCase());
    return texts.get(entry);
  };
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of entries) {
      const fits = kinds.every((kind, n) => !choices[n].value || entry.dataset[kind] === choices[n].value)
        && words.every((word) => textOf(entry).includes(word));
      entry.hidden = rows.get(entry.dataset.tag).hidden = !fits;
      shown += fits;
    }
    document.getElementById("shown").textContent = `${shown} of ${entries.length} proofs shown`;
    document.getElementById("none-shown").hidden = shown > 0;
  };
  const openAll = (open) => {
    for (const entry of entries) if (!entry.hidden) entry.open = open;
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const entry = target && target.closest("details.entry");
    if (!entry) return;
    entry.open = true;
    entry.querySelector("summary").focus();
    entry.scrollIntoView();
  };
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
  addEventListener("hashchange", follow);
  controls.addEventListener("input", filter);
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open-all").addEventListener("click", () => openAll(true));
  document.getElementById("close-all").addEventListener("click", () => openAll(false));
  controls.reset();
  controls.hidden = false;
  filter();
  follow();
})();

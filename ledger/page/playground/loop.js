// The loop: numbers of its steps, and whether each exit works at the entry's load.
const VERDICTS = { 1: ["yes", "works"], 0: ["no", "does not"] };
const UNKNOWN = ["unknown", "not known"];

function loopWords({ cell, workload, load, at, of }) {
  const where = `${cell}, ${workload} workload, load ${shown(load)}`;
  if (at("exit_alone")) {
    const after = at("alone_s") ? ` ${shown(data.backlog)} sessions are through after ${shown(at("alone_s"))} s.` : "";
    return `${where}: the loop does not hold. The load is at or below the all-miss capacity, ${shown(of.capacity)}, so a trap drains by itself.${after}`;
  }
  const measured = shown(at("completions_over_lambda_ref"));
  return `${where}: the loop holds. Work comes at ${shown(at("rho"))} times what the engine can do. ` +
    `It is seen to complete ${measured} times the reference rate; arrivals must go below ${shown(of.capacity)} to free it.`;
}

follow((entry) => {
  for (const place of document.querySelectorAll("[data-const]")) {
    place.textContent = entry.of.engine ? shown(entry.of.engine[place.dataset.const]) : "not known";
  }
  for (const place of document.querySelectorAll("[data-verdict]")) {
    const [kind, word] = VERDICTS[entry.at(place.dataset.verdict)] || UNKNOWN;
    place.classList.remove("yes", "no", "unknown");
    place.classList.add(kind);
    place.textContent = word;
  }
  for (const place of document.querySelectorAll(".capacity")) place.textContent = shown(entry.of.capacity);
  byId("problem").textContent = entry.of.problem || "";
  return loopWords(entry);
});

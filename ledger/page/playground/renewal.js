// The renewal cycle: survival, net maternity and the stable age distribution of one entry.
function growthWords({ cell, workload, load, at, of }) {
  const where = `${cell}, ${workload} workload, load ${shown(load)}`;
  if (at("growth") === null) {
    return `${where}: the load is at or below the all-miss capacity, ${shown(of.capacity)}. Each cycle is no longer than the one before, and the queue empties.`;
  }
  return `${where}: each cycle is ${shown(at("growth"))} times as long as the one before. ` +
    `The mean turn served is number ${shown(at("mean_turn"))}, in the normal mix ${shown(data.normal[workload].mean_turn)}.`;
}

follow((entry) => {
  const { workload, index, of } = entry, normal = data.normal[workload];
  const none = normal.mix.map(() => 0);
  turnBars(byId("survival"), data.survival[workload], "fill-green", null, 100 * data.per_percent);
  turnBars(byId("maternity"), of.discounted[index] || none, "fill-orange", of.maternity[index], entry.at("maternity_top") * data.per_percent);
  turnBars(byId("mix"), of.mix[index] || none, "fill-blue", normal.mix, entry.at("mix_top") * data.per_percent);
  const cycles = of.cycles[index] || [];
  byId("cycles").closest("figure").hidden = cycles.length === 0;
  turnBars(byId("cycles"), cycles, "fill-purple", null, cycles[cycles.length - 1]);
  for (const place of document.querySelectorAll(".last-turn")) place.textContent = `turn ${none.length}`;
  for (const place of document.querySelectorAll(".last-cycle")) place.textContent = `${none.length} cycles later`;
  byId("maternity-top").textContent = `${entry.at("maternity_top")}%`;
  byId("mix-top").textContent = `${entry.at("mix_top")}%`;
  byId("normal-turn").textContent = shown(normal.mean_turn);
  byId("capacity").textContent = shown(of.capacity);
  return growthWords(entry);
});

// The calculator: shows one entry, draws its turn mix and where it lies among all loads.
const PREMIUM_TOP = 2.5;

function premiumWords({ cell, workload, load, at, of }) {
  const where = `${cell}, ${workload} workload, load ${shown(load)}`;
  const premium = at("completions_over_lambda_miss");
  if (premium === null) {
    return `${where}: no trapped state. The arrivals are at or below the all-miss capacity, ${shown(of.capacity)}, so every trap drains.`;
  }
  const side = premium > 1 ? "above" : "below";
  return `${where}: a trapped engine completes ${shown(premium)} times its all-miss capacity, ${side} 1. ` +
    `Its turns have ${shown(at("mean_prompt_tokens"))} prompt tokens on average, ${shown(of.normal_prompt)} in the normal mix.`;
}

follow((entry) => {
  const { workload, index, of } = entry, normal = data.normal[workload];
  const mix = of.mix[index] || normal.mix.map(() => 0);
  turnBars(byId("mix"), mix, "fill-blue", normal.mix, entry.at("mix_top") * data.per_percent);
  byId("mix-top").textContent = `${entry.at("mix_top")}%`;
  byId("last-turn").textContent = `turn ${normal.mix.length}`;
  for (const cell of document.querySelectorAll("[data-group]")) {
    const group = of.groups[index];
    cell.textContent = group ? group[Number(cell.dataset.group)] : "none";
  }
  for (const cell of document.querySelectorAll("[data-normal]")) cell.textContent = normal.groups[Number(cell.dataset.normal)];
  const premium = of.columns.completions_over_lambda_miss, part = (value) => value / PREMIUM_TOP;
  overLoads(byId("premium"), [[premium, "line-blue"], [premium.map(() => 1), "line-grey"]], index, part);
  byId("capacity").textContent = shown(of.capacity);
  byId("scale").textContent = of.scale;
  byId("origin").textContent = of.origin;
  return premiumWords(entry);
});

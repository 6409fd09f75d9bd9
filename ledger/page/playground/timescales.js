// Gap against pool turnover on one logarithmic axis, simulated.
const DECADES = 4;
const TICKS = ["1 s", "10 s", "100 s", "1000 s", "10,000 s"];
const ANCHORS = { 0: "start", [DECADES]: "end" };
const place = (seconds) => Math.min(1, Math.max(0, Math.log10(seconds) / DECADES));

function scaleBars(picture, gap, turnover) {
  const ticks = TICKS.flatMap((words, decade) => {
    const x = `${(100 * decade) / DECADES}%`;
    return [
      drawn("line", { x1: x, x2: x, y1: 0, y2: 104 }),
      drawn("text", { x, y: 122, "text-anchor": ANCHORS[decade] || "middle", class: "faint" }, words),
    ];
  });
  const bars = [["gap", gap, 8, "fill-orange"], ["turnover", turnover, 56, "fill-blue"]].flatMap(([name, seconds, y, kind]) => {
    if (seconds === null || seconds === undefined) return [];
    return [
      drawn("rect", { x: 0, y, height: 22, width: `${100 * place(seconds)}%`, class: kind }),
      drawn("text", { x: 2, y: y + 37 }, `${name} ${shown(seconds)} s`),
    ];
  });
  picture.replaceChildren(...ticks, ...bars);
}

function scaleWords({ cell, workload, load, at, of }) {
  const where = `${cell}, ${workload} workload, load ${shown(load)}`;
  if (of.problem) return `${where}: ${of.problem}`;
  const state = (arm) => `a session comes back after ${shown(at(`${arm}_gap_s`))} s, the pool turns over in ${shown(at(`${arm}_turnover_s`))} s, hit fraction ${shown(at(`${arm}_hits`))}`;
  return `Simulated, ${where}. Without a burst ${state("calm")}. After the burst ${state("burst")}.`;
}

follow((entry) => {
  for (const arm of ["calm", "burst"]) scaleBars(byId(arm), entry.at(`${arm}_gap_s`), entry.at(`${arm}_turnover_s`));
  const columns = [["burst_gap_s", "line-orange"], ["burst_turnover_s", "line-blue"]];
  overLoads(byId("lines"), columns.map(([name, kind]) => [entry.of.columns[name] || [], kind]), entry.index, place);
  return scaleWords(entry);
});

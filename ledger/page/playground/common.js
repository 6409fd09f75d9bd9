"use strict";
// What the pages with a load slider share. Every number is an entry of the data block; none is computed here.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const SVG = "http://www.w3.org/2000/svg";

function shown(value) {
  if (value === null || value === undefined) return "none";
  return Math.abs(value) >= 10000 ? value.toLocaleString("en-US") : String(value);
}

// An element of a picture; attributes alone, since the page's policy allows no style attribute.
function drawn(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// A line over a picture whose width and height are 100 each; it stretches, its stroke does not.
function line(points, kind) {
  const frame = drawn("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%" });
  let path = "", pen = "M";
  for (const [x, y] of points) {
    if (y === null) { pen = "M"; continue; }
    path += `${pen}${x.toFixed(2)} ${y.toFixed(2)}`;
    pen = "L";
  }
  frame.append(drawn("path", { d: path, class: `line ${kind}` }));
  return frame;
}

// Bars of shares by turn, and a line of other shares over them; `most` is the top of the picture.
function turnBars(picture, bars, kind, over, most) {
  const width = 100 / bars.length, height = (share) => (100 * share) / most;
  picture.replaceChildren(...bars.map((share, turn) => drawn("rect", {
    x: `${turn * width + width * 0.1}%`, width: `${width * 0.8}%`,
    y: `${100 - height(share)}%`, height: `${height(share)}%`, class: kind,
  })));
  if (over) picture.append(line(over.map((share, turn) => [(turn + 0.5) * width, 100 - height(share)]), "line-grey"));
}

// One column over all loads, and a mark at the load chosen. `scale` maps a value to 0 .. 1.
function overLoads(picture, columns, index, scale) {
  const last = data.loads.length - 1, at = (i) => (100 * (data.loads[i] - data.loads[0])) / (data.loads[last] - data.loads[0]);
  const mark = `${at(index)}%`;
  picture.replaceChildren(
    ...columns.map(([column, kind]) => line(column.map((value, i) => [at(i), value === null ? null : 100 - 100 * scale(value)]), kind)),
    drawn("line", { x1: mark, x2: mark, y1: "0", y2: "100%", class: "mark" }),
  );
}

// The sliders' state as one entry: `at(name)` is the number of a column.
function chosenEntry() {
  const workload = byId("workload").value, cell = byId("cell").value, index = Number(byId("load").value);
  const of = data.cells[cell].workloads[workload];
  const at = (name) => (of.columns[name] ? of.columns[name][index] : undefined);
  return { cell, workload, index, load: data.loads[index], of, at };
}

// Shows the entry in every element that names a column, then calls `draw`, which returns the sentence to be read out.
function follow(draw) {
  const controls = [byId("cell"), byId("workload"), byId("load")];
  const update = () => {
    const entry = chosenEntry();
    byId("load-shown").textContent = shown(entry.load);
    byId("load").setAttribute("aria-valuetext", `${shown(entry.load)} times the reference rate`);
    byId("cell-words").textContent = data.cells[entry.cell].words;
    for (const place of document.querySelectorAll("[data-value]")) {
      const value = entry.at(place.dataset.value);
      place.textContent = value === undefined ? "not known" : shown(value);
    }
    const words = draw(entry);
    if (byId("words").textContent !== words) byId("words").textContent = words;
  };
  for (const control of controls) control.addEventListener("input", update);
  byId("controls").hidden = false;
  byId("without-script").hidden = true;
  for (const figure of document.querySelectorAll("figure[hidden]")) figure.hidden = false;
  update();
}

"use strict";
// Replays two simulated engines from states that were computed beforehand, bin by bin.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const SVG = "http://www.w3.org/2000/svg";
const ARMS = ["alone", "rescued"], COUNTS = ["engine", "tools", "gate"];
const TICK_MS = 50, CALM_TICK_MS = 1000;
let timer = null, reached = 0;

const shown = (value) => (value === null ? "none" : Math.abs(value) >= 10000 ? value.toLocaleString("en-US") : String(value));
const scenario = () => data.scenarios[Number(byId("scenario").value)];
const bin = () => Number(byId("time").value);
const last = () => Number(byId("time").max);

function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function curve(values, most, kind) {
  const frame = drawn("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%" });
  let path = "", pen = "M";
  values.forEach((value, i) => {
    if (value === null) return;
    path += `${pen}${((100 * i) / last()).toFixed(2)} ${(98 - (96 * value) / most).toFixed(2)}`;
    pen = "L";
  });
  frame.append(drawn("path", { d: path, class: `line ${kind}` }));
  return frame;
}

const across = (seconds) => `${(100 * seconds) / data.horizon_s}%`;

// The pictures of a scenario; the mark alone moves afterwards.
function drawScenario() {
  const { most } = scenario();
  for (const arm of ARMS) {
    const run = scenario()[arm], parts = [];
    if (run.engaged_s !== null) {
      const until = run.release_s === null ? data.horizon_s : run.release_s;
      parts.push(drawn("rect", { x: across(run.engaged_s), width: across(until - run.engaged_s), y: 0, height: "100%", class: "fill-shade" }));
    }
    parts.push(curve(run.engine, most, "line-red"), curve(run.hits, 1, "line-green"));
    parts.push(drawn("line", { id: `${arm}-mark`, y1: "0", y2: "100%", class: "mark" }));
    byId(`${arm}-line`).replaceChildren(...parts);
  }
  for (const place of document.querySelectorAll(".most")) place.textContent = shown(most);
}

function stateWords(run, i) {
  const now = (i + 0.5) * data.bin_s, { cap } = scenario();
  if (run.engaged_s === null || now < run.engaged_s) return now < data.burst.start_s ? "No cap. The burst is still to come." : "No cap.";
  if (run.release_s !== null && now >= run.release_s) return `The cap came off at ${shown(run.release_s)} s.`;
  return `Cap engaged: at most ${cap} sessions admitted.`;
}

function showBin() {
  const i = bin(), { most } = scenario();
  byId("time-shown").textContent = `${shown(i * data.bin_s)} to ${shown(Math.min((i + 1) * data.bin_s, data.horizon_s))} s`;
  byId("time").setAttribute("aria-valuetext", byId("time-shown").textContent);
  for (const arm of ARMS) {
    const run = scenario()[arm], x = `${(100 * i) / last()}%`;
    byId(`${arm}-hits`).textContent = shown(run.hits[i]);
    byId(`${arm}-hits-bar`).setAttribute("width", `${100 * (run.hits[i] || 0)}%`);
    for (const name of COUNTS) {
      byId(`${arm}-${name}`).textContent = shown(run[name][i]);
      byId(`${arm}-${name}-bar`).setAttribute("width", `${(100 * run[name][i]) / most}%`);
    }
    byId(`${arm}-state`).textContent = stateWords(run, i);
    byId(`${arm}-mark`).setAttribute("x1", x);
    byId(`${arm}-mark`).setAttribute("x2", x);
  }
}

// Said when the replay rests, and not at every bin of it.
function sayBin() {
  const i = bin(), engine = (arm) => {
    const run = scenario()[arm];
    return `hit fraction ${shown(run.hits[i])}, ${shown(run.engine[i])} sessions at the engine, ${shown(run.gate[i])} at the gate`;
  };
  byId("words").textContent = `Simulated, at ${byId("time-shown").textContent}. Left alone: ${engine("alone")}. With the cap: ${engine("rescued")}.`;
}

function pause() {
  clearInterval(timer);
  timer = null;
  byId("play").textContent = "Play";
  sayBin();
}

// With reduced motion asked for, the replay moves once a second, by as much.
function play() {
  const tick_ms = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM_TICK_MS : TICK_MS;
  if (bin() === last()) byId("time").value = 0;
  reached = bin();
  byId("play").textContent = "Pause";
  timer = setInterval(() => {
    reached = Math.min(last(), reached + (Number(byId("speed").value) * tick_ms) / 1000 / data.bin_s);
    byId("time").value = Math.floor(reached);
    showBin();
    if (reached >= last()) pause();
  }, tick_ms);
  showBin();
}

byId("play").addEventListener("click", () => (timer === null ? play() : pause()));
byId("time").addEventListener("input", () => { reached = bin(); showBin(); if (timer === null) sayBin(); });
byId("scenario").addEventListener("input", () => { drawScenario(); showBin(); if (timer === null) sayBin(); });
byId("controls").hidden = false;
byId("without-script").hidden = true;
for (const figure of document.querySelectorAll("figure[hidden]")) figure.hidden = false;
drawScenario();
showBin();
sayBin();

// The page follows the commits of a flow. The server escapes all names and values; this file only puts its HTML in place.
"use strict";

const part = (name, values) => `/part/${name}?${new URLSearchParams(values)}`;
const byId = (id) => document.getElementById(id);
const state = { node: null, view: null, epoch: null, against: null, turn: 0, isBusy: false, isStale: false };

async function load(address) {
  const answer = await fetch(address, { credentials: "same-origin" });
  return { html: await answer.text(), isKnown: answer.headers.get("content-type").startsWith("text/html") };
}

function place(target, html) {
  const inner = new DOMParser().parseFromString(html, "text/html");
  target.replaceChildren(...inner.body.childNodes);
}

async function fill(target, address) {
  try {
    const { html, isKnown } = await load(address);
    if (isKnown) place(target, html); else target.textContent = html;
  } catch {
    target.textContent = "The server of this page does not answer.";
  }
}

// -- theme -------------------------------------------------------------------------------------------------------------

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
}

applyTheme(localStorage.getItem("theme"));
byId("theme").addEventListener("click", () => {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = isDark ? ["", "light", "dark"] : ["", "dark", "light"];
  const theme = order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % 3];
  localStorage.setItem("theme", theme);
  applyTheme(theme);
});

// -- graph -------------------------------------------------------------------------------------------------------------

function reach(edges, key, from, to) {
  const reached = new Set([key]);
  const more = [key];
  while (more.length) {
    const node = more.pop();
    for (const edge of edges) {
      if (edge.dataset[from] === node && !reached.has(edge.dataset[to])) {
        reached.add(edge.dataset[to]);
        more.push(edge.dataset[to]);
      }
    }
  }
  return reached;
}

function highlight() {
  const graph = document.querySelector("#graph svg.graph");
  if (!graph) return;
  const edges = [...graph.querySelectorAll(".edges path")];
  graph.classList.toggle("chosen", state.node !== null);
  const after = reach(edges, state.node, "from", "to");
  const before = reach(edges, state.node, "to", "from");
  for (const edge of edges) {
    const { from, to } = edge.dataset;
    edge.classList.toggle("lit", (after.has(from) && after.has(to)) || (before.has(from) && before.has(to)));
  }
  for (const node of graph.querySelectorAll(".node")) {
    node.classList.toggle("lit", after.has(node.dataset.key) || before.has(node.dataset.key));
    node.classList.toggle("picked", node.dataset.key === state.node);
  }
}

function choose(key) {
  state.node = key === state.node ? null : key;
  highlight();
  if (state.node) fill(byId("node"), part("node", { key: state.node }));
}

function neighbour(node, key) {
  const nodes = [...document.querySelectorAll("#graph .node")];
  const place = (each) => each.getBoundingClientRect();
  const own = place(node);
  const isAcross = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const distance = (each) => {
    const dx = place(each).x - own.x;
    const dy = place(each).y - own.y;
    const ahead = (isAcross ? dx : dy) * sign;
    return ahead > 1 ? ahead + 3 * Math.abs(isAcross ? dy : dx) : Infinity;
  };
  const ordered = nodes.filter((each) => distance(each) < Infinity).sort((a, b) => distance(a) - distance(b));
  return ordered[0];
}

// -- view --------------------------------------------------------------------------------------------------------------

async function showView() {
  if (!state.view) return;
  const turn = ++state.turn;
  const focused = document.activeElement && document.activeElement.id;
  const values = { name: state.view };
  if (state.epoch !== null) values.epoch = state.epoch;
  if (state.against !== null) values.against = state.against;
  try {
    const { html } = await load(part("view", values));
    if (turn !== state.turn) return; // a later position was asked for meanwhile
    place(byId("view"), html);
  } catch {
    byId("view").textContent = "The server of this page does not answer.";
  }
  if (focused && byId(focused)) byId(focused).focus();
}

function openView(name) {
  Object.assign(state, { view: name, epoch: null, against: null });
  showView();
  byId("view").scrollIntoView({ block: "nearest" });
}

let waiting = 0;
function move(input) {
  const value = Number(input.value);
  input.previousElementSibling.textContent = value;
  if (input.id === "position") state.epoch = value === Number(input.max) ? null : value;
  else state.against = value;
  if (state.against !== null && state.against >= (state.epoch ?? Number(input.max))) state.against = null;
  clearTimeout(waiting);
  waiting = setTimeout(showView, 80);
}

// -- query -------------------------------------------------------------------------------------------------------------

function ask(prefix) {
  const sql = byId("sql").value.trim();
  if (!sql) return;
  byId("answer").textContent = "Reading…";
  fill(byId("answer"), part("query", { sql: prefix + sql }));
}

byId("run").addEventListener("click", () => ask(""));
byId("explain").addEventListener("click", () => ask(/^explain\b/i.test(byId("sql").value.trim()) ? "" : "EXPLAIN "));
byId("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask("");
});

// -- events of the page --------------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-view], [data-node], #graph .node, #live");
  if (!target || target.classList.contains("sliders")) return;
  if (target.id === "live") { Object.assign(state, { epoch: null, against: null }); showView(); }
  else if (target.dataset.node) { state.node = null; choose(target.dataset.node); }
  else if (target.dataset.view) openView(target.dataset.view);
  else choose(target.dataset.key);
});
document.addEventListener("keydown", (event) => {
  const node = event.target.closest && event.target.closest("#graph .node");
  if (event.key === "Escape" && state.node) { choose(state.node); return; }
  if (!node) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(node.dataset.key); }
  if (event.key.startsWith("Arrow")) {
    const next = neighbour(node, event.key);
    if (next) { event.preventDefault(); next.focus(); }
  }
});
document.addEventListener("input", (event) => {
  if (event.target.matches("#position, #against")) move(event.target);
});

// -- commits -------------------------------------------------------------------------------------------------------------

async function refresh() {
  if (state.isBusy) { state.isStale = true; return; }
  state.isBusy = true;
  try {
    const { html } = await load("/part/status");
    const inner = new DOMParser().parseFromString(html, "text/html");
    const focused = document.activeElement && document.activeElement.dataset && document.activeElement.dataset.key;
    for (const section of inner.body.querySelectorAll("section[id]")) {
      const target = byId(section.id);
      const { scrollLeft, scrollTop } = target;
      target.replaceChildren(...section.childNodes);
      Object.assign(target, { scrollLeft, scrollTop });
    }
    if (!inner.body.querySelector("section[id]")) place(byId("graph"), html);
    if (focused) document.querySelector(`.node[data-key="${CSS.escape(focused)}"]`)?.focus();
    highlight();
    ages();
    if (state.epoch === null && state.against === null) await showView();
  } finally {
    state.isBusy = false;
    if (state.isStale) { state.isStale = false; setTimeout(refresh, 300); }
  }
}

function ages() {
  for (const time of document.querySelectorAll("time.commit")) {
    const seconds = Math.max(0, (Date.now() - Number(time.dataset.ms)) / 1000);
    if (!Number(time.dataset.ms)) continue;
    const [unit, size] = seconds < 120 ? ["s", 1] : seconds < 7200 ? ["min", 60] : seconds < 172800 ? ["h", 3600] : ["d", 86400];
    time.title = `${time.title || time.textContent} UTC`.replace(/( UTC)+$/, " UTC");
    time.textContent = `${Math.floor(seconds / size)} ${unit} ago`;
  }
}

function connected(text, kind) {
  byId("live-state").textContent = text;
  byId("live-state").className = kind;
}

let seen = null;
const events = new EventSource("/events");
events.addEventListener("commit", (event) => {
  connected("following", "on");
  if (seen !== null && seen !== event.data) refresh();
  seen = event.data;
});
events.addEventListener("trouble", () => { connected("state not readable", "off"); seen = ""; refresh(); });
events.addEventListener("error", () => connected("disconnected", "off"));
addEventListener("pagehide", () => events.close());
ages();
setInterval(ages, 1000);

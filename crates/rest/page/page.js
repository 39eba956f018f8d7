// The controller's page: topology, one switch in detail, events. It asks the REST endpoints that
// scripts ask too, and reads /events. It needs nothing from another host and keeps nothing on disk
// but the choice of light or dark.
"use strict";

const POLL_PORTS_MS = 1000, POLL_FLOWS_MS = 2000, POLL_NETWORK_MS = 5000;
const SPARK_POINTS = 60, ROWS_MAX = 500, EVENTS_MAX = 300, MANY_NODES = 60;
// So long a link that has failed is shown in red.
const FAILED_MS = 30000;
// Below this scale of the map its nodes do not become smaller any more.
const LEAST_SCALE = 0.34;
// So far from a node a finger still means it, in pixels.
const FINGER_PX = 18;
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

const state = {
  switches: new Map(),      // dpid as 16 hex digits -> {dpid, ports}
  links: [], hosts: [],
  selected: null, tab: "ports",
  history: new Map(),       // "dpid/port" -> {at, rx, tx, points: [[rx_bps, tx_bps]..]}
  counts: new Map(),        // key of a flow entry -> {at, packets, rate}
  flows: [], seen: new Set(), token: sessionStorage.getItem("weir-token"),
};

// ---- asking -------------------------------------------------------------------------------------

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  const reply = await fetch(path, { ...options, headers, cache: "no-store" });
  if (reply.status === 401) {
    const token = window.prompt("This controller asks for its token (--rest-token-file):");
    if (token) {
      state.token = token.trim();
      sessionStorage.setItem("weir-token", state.token);
      return ask(path, options);
    }
  }
  if (!reply.ok) throw new Error(await failure(reply));
  return reply;
}

async function failure(reply) {
  const text = await reply.text();
  try {
    const body = JSON.parse(text);
    return body.error && typeof body.error === "string" ? body.error : (body.message || text);
  } catch {
    return text || `${reply.status} ${reply.statusText}`;
  }
}

async function json(path, options) { return (await ask(path, options)).json(); }

// A statistics reply is {"<dpid>": rows}.
async function stats(kind, dpid) {
  return Object.values(await json(`stats/${kind}/0x${dpid}`))[0] || [];
}

function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

// A 64-bit number in JSON text, since JavaScript's own numbers have 53 bits.
function withDpid(body, dpid) {
  return JSON.stringify({ dpid: "@", ...body }).replace('"@"', BigInt(`0x${dpid}`).toString());
}

// ---- words --------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function svg(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const short = (dpid) => dpid.replace(/^0+(?=.)/, "");
// A text in which each switch has the name that it has everywhere on the page.
const named = (text) => text.replace(/\b[0-9a-f]{16}\b/g, short);
const whole = new Intl.NumberFormat("en");

function rate(value, unit) {
  if (value === undefined || Number.isNaN(value)) return "";
  const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, prefix] = steps.find(([least]) => value >= least) || [1, ""];
  return `${(value / size).toFixed(size === 1 ? 0 : 2)} ${prefix}${unit}`;
}

// A text of words with commas between, which stay whole where the line is long enough.
function words(text, nothing) {
  const list = text ? text.split(",") : [];
  const parts = document.createDocumentFragment();
  list.forEach((word, index) => {
    parts.append(element("span", { class: "word" }, index + 1 < list.length ? `${word},` : word), " ");
  });
  if (!list.length) parts.append(nothing);
  return parts;
}

function problem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? String(error.message || error) : "";
}

// ---- the network ----------------------------------------------------------------------------------

async function refreshNetwork() {
  const optional = (path) => json(path).catch(() => []);
  let switches;
  try {
    switches = await json("v1.0/topology/switches");
  } catch (error) {
    live(false);
    return;
  }
  const [links, hosts] =
    await Promise.all([optional("v1.0/topology/links"), optional("v1.0/topology/hosts")]);
  state.switches = new Map(switches.map((one) => [one.dpid, one]));
  state.links = links;
  state.hosts = hosts;
  $("total-switches").textContent = whole.format(switches.length);
  $("total-links").textContent = whole.format(graph.both(links).size);
  $("total-hosts").textContent = whole.format(hosts.length);
  $("nothing").hidden = switches.length > 0;
  listSwitches();
  graph.update();
  refreshLoads();
  if (!state.switches.has(state.selected)) {
    select(state.switches.keys().next().value || null);
  }
}

// The rates of the links, where the network is small enough to ask all its switches.
async function refreshLoads() {
  if (state.switches.size > MANY_NODES) return;
  const linked = new Set(state.links.map((link) => link.src.dpid));
  if (state.tab === "ports") linked.delete(state.selected);
  await Promise.all([...linked].map(async (dpid) => {
    const counted = await stats("port", dpid).catch(() => []);
    const now = performance.now();
    for (const count of counted) remember(dpid, count, count, now);
  }));
  graph.loads();
}

function listSwitches() {
  const dpids = [...state.switches.keys()].sort();
  const old = [...$("choose").options].map((option) => option.value).join();
  if (old === dpids.join()) return;
  const options = dpids.map((dpid) => element("option", { value: dpid }, `switch ${short(dpid)}`));
  $("choose").replaceChildren(...options);
  $("choose").value = state.selected || "";
}

function select(dpid) {
  if (state.selected === dpid) return;
  state.selected = dpid;
  $("choose").value = dpid || "";
  $("described").textContent = "";
  state.flows = [];
  $("table").replaceChildren();
  graph.mark();
  problem(null);
  if (!dpid) return;
  json(`stats/desc/0x${dpid}`).then((reply) => {
    if (state.selected !== dpid) return;
    const about = Object.values(reply)[0] || {};
    $("described").textContent = [about.mfr_desc, about.hw_desc, about.sw_desc, about.dp_desc]
      .filter((word) => word && word.toLowerCase() !== "none").join(" · ");
  }).catch(problem);
  refreshTab();
}

// The map: nodes repel each other, edges pull, until it is at rest; people move and zoom it.
const graph = {
  nodes: new Map(), edges: [], known: new Map(), failed: new Map(), heat: 0, view: { x: 0, y: 0, k: 1 }, touched: false,

  // Each link once, whichever of its directions is known.
  both(links) {
    const seen = new Map();
    for (const { src, dst } of links) {
      const ends = [src, dst].map((end) => ({ dpid: end.dpid, port: parseInt(end.port_no, 16), name: end.name }));
      ends.sort((a, b) => `${a.dpid}/${a.port}` < `${b.dpid}/${b.port}` ? -1 : 1);
      const key = ends.map((end) => `${end.dpid}/${end.port}`).join("-");
      seen.set(key, { key, from: ends[0].dpid, to: ends[1].dpid, ends });
    }
    return seen;
  },

  // The links, with those that have failed a short time ago.
  links() {
    const [now, links] = [performance.now(), this.both(state.links)];
    for (const [key, link] of this.known) {
      if (!links.has(key) && !this.failed.has(key)) this.failed.set(key, { ...link, failed: true, at: now });
    }
    this.known = links;
    for (const [key, link] of this.failed) {
      if (links.has(key) || now - link.at > FAILED_MS) this.failed.delete(key);
    }
    const both = [...links.values(), ...this.failed.values()];
    return both.filter(({ from, to }) => this.nodes.has(from) && this.nodes.has(to));
  },

  update() {
    const wanted = new Map();
    for (const dpid of state.switches.keys()) wanted.set(dpid, { kind: "switch", name: short(dpid) });
    for (const host of state.hosts) {
      if (!state.switches.has(host.port.dpid)) continue;
      wanted.set(host.mac, { kind: "host", name: host.ipv4[0] || host.mac, near: host.port.dpid });
    }
    let changed = false;
    for (const id of this.nodes.keys()) {
      if (!wanted.has(id)) { this.nodes.delete(id); changed = true; }
    }
    let index = 0;
    for (const [id, what] of wanted) {
      index += 1;
      const known = this.nodes.get(id);
      if (known) { Object.assign(known, what); continue; }
      const near = this.nodes.get(what.near);
      // A sunflower's places: even, and the same at each load.
      const turn = index * 2.39996, away = near ? 40 : 22 * Math.sqrt(index);
      const x = (near ? near.x : 0) + away * Math.cos(turn), y = (near ? near.y : 0) + away * Math.sin(turn);
      this.nodes.set(id, { ...what, id, x, y, dx: 0, dy: 0 });
      changed = true;
    }
    const edges = this.links();
    for (const node of this.nodes.values()) {
      if (node.near) edges.push({ key: node.id, from: node.near, to: node.id, ends: [] });
    }
    const key = (list) => list.map((edge) => `${edge.key}${edge.failed ? "!" : ""}`).sort().join(";");
    const [before, now] = [key(this.edges), key(edges)];
    if (!changed && before === now) return this.names();
    this.edges = edges;
    this.draw();
    // A link that fails or comes back leaves the nodes where they are.
    if (changed || before.replaceAll("!", "") !== now.replaceAll("!", "")) this.warm(1);
    else this.place();
  },

  draw() {
    const made = [...this.nodes.values()].map((node) => {
      const group = svg("g", { class: node.kind, "data-id": node.id, tabindex: 0, role: "button" });
      if (node.kind === "switch") group.append(svg("rect", { x: -11, y: -8, width: 22, height: 16, rx: 3 }));
      else group.append(svg("circle", { r: 6 }));
      const text = svg("text", { y: 20 });
      group.append(svg("title"), text);
      node.group = group;
      return group;
    });
    $("nodes").replaceChildren(...made);
    for (const edge of this.edges) {
      const kind = this.nodes.get(edge.to).kind === "host" ? "to-host" : edge.failed ? "failed" : "";
      edge.line = svg("line", { class: kind });
      edge.line.append(svg("title"));
      // The ports at its ends, and its load between them.
      edge.texts = edge.ends.map(() => svg("text", { class: "port" }));
      edge.ends.forEach((end, index) => { edge.texts[index].textContent = end.port; });
      if (edge.ends.length) edge.texts.push(svg("text", { class: edge.failed ? "load failed" : "load" }));
    }
    $("edges").replaceChildren(...this.edges.flatMap((edge) => [edge.line, ...edge.texts]));
    this.loads();
    $("map").classList.toggle("many", this.nodes.size > MANY_NODES);
    this.names();
    this.mark();
  },

  names() {
    for (const node of this.nodes.values()) {
      const [title, text] = [node.group.querySelector("title"), node.group.querySelector("text")];
      const long = node.kind === "switch" ? `switch ${node.name}` : `host ${node.id} ${node.name}`;
      if (title.textContent !== long) title.textContent = long;
      if (text.textContent !== node.name) text.textContent = node.name;
    }
  },

  // Writes the rate of each link at it: that of its busier direction.
  loads() {
    for (const { line, texts, ends, failed } of this.edges) {
      if (!line || !ends.length) continue;
      const rates = ends.map((end) => lastRate(end.dpid, end.port, 1));
      const most = Math.max(0, ...rates.filter((one) => one !== undefined));
      const load = failed ? "failed" : most >= 1000 ? rate(most, "b/s") : "";
      const ways = ends.map((end, index) =>
        `switch ${short(end.dpid)} port ${end.port} (${end.name}) sends ${rate(rates[index], "b/s") || "nothing known"}`);
      texts[2].textContent = load;
      line.firstChild.textContent = (failed ? ["failed", ...ways] : ways).join("\n");
      // From 10 kb/s on a tenfold load is one pixel more.
      line.style.strokeWidth = failed ? "" : Math.min(6, 1 + Math.max(0, Math.log10(most / 1e4))).toFixed(1);
    }
  },

  mark() {
    const wanted = $("find").value.trim().toLowerCase();
    for (const node of this.nodes.values()) {
      node.group.classList.toggle("selected", node.id === state.selected);
      const found = wanted !== "" && `${node.id} ${node.name}`.toLowerCase().includes(wanted);
      node.group.classList.toggle("found", found);
    }
  },

  warm(heat) {
    const resting = this.heat <= 0.02;
    this.heat = Math.max(this.heat, heat);
    if (resting) requestAnimationFrame(() => this.step());
  },

  step() {
    const nodes = [...this.nodes.values()];
    const rounds = nodes.length > 150 ? 2 : 4;
    for (let round = 0; round < rounds && this.heat > 0.02; round += 1) this.push(nodes);
    this.place();
    if (!this.touched) this.fit();
    if (this.heat > 0.02) requestAnimationFrame(() => this.step());
  },

  push(nodes) {
    for (let i = 0; i < nodes.length; i += 1) {
      const a = nodes[i];
      for (let j = i + 1; j < nodes.length; j += 1) {
        const b = nodes[j];
        const x = a.x - b.x, y = a.y - b.y, square = x * x + y * y + 0.01;
        if (square > 90000) continue;
        const force = 900 / square;
        a.dx += x * force; a.dy += y * force; b.dx -= x * force; b.dy -= y * force;
      }
      a.dx -= a.x * 0.012; a.dy -= a.y * 0.012;
    }
    for (const { from, to } of this.edges) {
      const a = this.nodes.get(from), b = this.nodes.get(to);
      const x = b.x - a.x, y = b.y - a.y, long = Math.hypot(x, y) + 0.01;
      const rest = b.kind === "host" ? 34 : this.nodes.size > MANY_NODES ? 62 : 96;
      const force = 0.08 * (long - rest) / long;
      a.dx += x * force; a.dy += y * force; b.dx -= x * force; b.dy -= y * force;
    }
    for (const node of nodes) {
      const long = Math.hypot(node.dx, node.dy), most = 24 * this.heat;
      const scale = long > most ? most / long : 1;
      if (!node.held) { node.x += node.dx * scale; node.y += node.dy * scale; }
      node.dx = 0; node.dy = 0;
    }
    this.heat *= 0.985;
  },

  place() {
    for (const node of this.nodes.values()) {
      node.group.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
    }
    for (const { from, to, line, texts } of this.edges) {
      const a = this.nodes.get(from), b = this.nodes.get(to);
      line.setAttribute("x1", a.x.toFixed(1)); line.setAttribute("y1", a.y.toFixed(1));
      line.setAttribute("x2", b.x.toFixed(1)); line.setAttribute("y2", b.y.toFixed(1));
      // Ports stand beside the line, just off the switches; the load is in the middle.
      const x = b.x - a.x, y = b.y - a.y, long = Math.hypot(x, y) + 0.01;
      [28 / long, 1 - 28 / long, 0.5].forEach((share, index) => {
        if (!texts[index]) return;
        texts[index].setAttribute("x", (a.x + share * x - 6 * y / long).toFixed(1));
        texts[index].setAttribute("y", (a.y + share * y + 6 * x / long + 3).toFixed(1));
      });
    }
  },

  fit() {
    const nodes = [...this.nodes.values()];
    if (!nodes.length) return;
    const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
    const [left, right] = [Math.min(...xs) - 40, Math.max(...xs) + 40];
    const [top, bottom] = [Math.min(...ys) - 30, Math.max(...ys) + 36];
    const box = $("map").getBoundingClientRect();
    if (!box.width) return;
    const k = Math.min(box.width / (right - left), box.height / (bottom - top), 1.6);
    this.view = { k, x: box.width / 2 - k * (left + right) / 2, y: box.height / 2 - k * (top + bottom) / 2 };
    this.show();
  },

  show() {
    const { x, y, k } = this.view;
    $("view").setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${k.toFixed(3)})`);
    $("map").classList.toggle("near", k > 0.9);
    // However far away: what is drawn stays large enough to be seen, and what is named to be read.
    $("nodes").style.setProperty("--grow", Math.max(1, LEAST_SCALE / k).toFixed(3));
    $("nodes").style.setProperty("--read", Math.max(1, 1 / k).toFixed(3));
  },

  // Zooms by a factor around a point of the screen.
  zoom(factor, clientX, clientY) {
    const box = $("map").getBoundingClientRect(), { x, y, k } = this.view;
    const to = Math.min(6, Math.max(0.05, k * factor));
    const [px, py] = [clientX - box.left, clientY - box.top];
    this.view = { k: to, x: px - (px - x) * to / k, y: py - (py - y) * to / k };
    this.touched = true;
    this.show();
  },

  // The node nearest to a point of the screen, if a finger could mean it.
  nearest(clientX, clientY) {
    const box = $("map").getBoundingClientRect(), { x, y, k } = this.view;
    let [best, least] = [null, FINGER_PX];
    for (const node of this.nodes.values()) {
      const away = Math.hypot(node.x * k + x + box.left - clientX, node.y * k + y + box.top - clientY);
      if (away < least) [best, least] = [node, away];
    }
    return best;
  },
};

function mapControls() {
  const map = $("map");
  let grip = null, pinch = null;
  const fingers = new Map();
  map.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    if (fingers.size === 2) {
      // Two fingers zoom; neither of them moves a node.
      if (grip && grip.node) grip.node.held = false;
      [grip, pinch] = [null, spread(fingers)];
      return;
    }
    const group = event.target.closest("#nodes g");
    grip = { x: event.clientX, y: event.clientY, moved: false, node: group && graph.nodes.get(group.dataset.id) };
    map.setPointerCapture(event.pointerId);
    map.classList.add("moving");
  });
  map.addEventListener("pointermove", (event) => {
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event);
    if (pinch && fingers.size === 2) {
      const now = spread(fingers);
      graph.zoom(now.long / Math.max(pinch.long, 1), now.x, now.y);
      pinch = now;
      return;
    }
    if (!grip) return;
    const x = event.clientX - grip.x, y = event.clientY - grip.y;
    if (!grip.moved && Math.hypot(x, y) < 4) return;
    Object.assign(grip, { moved: true, x: event.clientX, y: event.clientY });
    graph.touched = true;
    if (grip.node) {
      grip.node.x += x / graph.view.k; grip.node.y += y / graph.view.k; grip.node.held = true;
      graph.warm(0.3);
    } else {
      graph.view.x += x; graph.view.y += y;
      graph.show();
    }
  });
  map.addEventListener("pointerup", (event) => {
    if (grip && !grip.moved) {
      const node = grip.node || graph.nearest(event.clientX, event.clientY);
      if (node) choose(node);
    }
    letGo(event);
  });
  map.addEventListener("pointercancel", letGo);
  function letGo(event) {
    fingers.delete(event.pointerId);
    if (grip && grip.node) grip.node.held = false;
    [grip, pinch] = [null, null];
    map.classList.remove("moving");
  }
  map.addEventListener("keydown", (event) => {
    const group = event.target.closest("#nodes g");
    if (group && (event.key === "Enter" || event.key === " ")) choose(graph.nodes.get(group.dataset.id));
  });
  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    graph.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX, event.clientY);
  }, { passive: false });
  $("fit").addEventListener("click", () => { graph.touched = false; graph.fit(); });
  $("find").addEventListener("input", () => graph.mark());
  $("find").addEventListener("keydown", (event) => {
    const first = [...graph.nodes.values()].find((node) => node.group.classList.contains("found"));
    if (event.key === "Enter" && first) choose(first);
  });
  window.addEventListener("resize", () => { if (!graph.touched) graph.fit(); });
}

// How far two fingers are from each other, and the point between them.
function spread(fingers) {
  const [a, b] = [...fingers.values()];
  const long = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  return { long, x: (a.clientX + b.clientX) / 2, y: (a.clientY + b.clientY) / 2 };
}

function choose(node) { select(node.kind === "switch" ? node.id : node.near); }

// ---- one switch -----------------------------------------------------------------------------------

function table(columns, rows, nothing) {
  if (!rows.length) {
    $("table").replaceChildren(element("p", { class: "empty" }, nothing));
    return;
  }
  const head = element("tr", {}, ...columns.map(([name, kind]) => element("th", { class: kind || "" }, name)));
  const body = rows.map((row) => {
    const cells = columns.map(([name, kind, value]) => {
      const cell = element("td", { class: kind || "", "data-label": name });
      cell.append(value(row));
      return cell;
    });
    return element("tr", {}, ...cells);
  });
  $("table").replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

let turn = 0;
async function refreshTab() {
  const [dpid, tab] = [state.selected, state.tab];
  if (!dpid) return;
  turn += 1;
  const mine = turn;
  try {
    const show = await ({ ports: askPorts, flows: askFlows, groups: askGroups, meters: askMeters })[tab](dpid);
    if (mine !== turn || state.selected !== dpid || state.tab !== tab) return;
    show();
    if (!$("problem").dataset.keep) problem(null);
  } catch (error) {
    if (mine === turn) problem(error);
  }
}

async function askPorts(dpid) {
  const [described, counted] = await Promise.all([stats("portdesc", dpid), stats("port", dpid)]);
  const now = performance.now();
  const counts = new Map(counted.map((row) => [String(row.port_no), row]));
  const rows = described.map((port) => ({ port, count: counts.get(String(port.port_no)) || {} }));
  for (const { port, count } of rows) remember(dpid, port, count, now);
  return () => table([
    ["Port", "number", ({ port }) => String(port.port_no)],
    ["Name", "code", ({ port }) => port.name],
    ["State", "", ({ port }) => isDown(port) ? element("span", { class: "down" }, "down") : "up"],
    ["Rates", "", ({ port }) => spark(state.history.get(`${dpid}/${port.port_no}`))],
    ["In", "number rx-word", ({ port }) => rate(lastRate(dpid, port.port_no, 0), "b/s")],
    ["Out", "number tx-word", ({ port }) => rate(lastRate(dpid, port.port_no, 1), "b/s")],
    ["Packets in", "number", ({ count }) => whole.format(count.rx_packets || 0)],
    ["Packets out", "number", ({ count }) => whole.format(count.tx_packets || 0)],
    ["Drops", "number", ({ count }) => whole.format((count.rx_dropped || 0) + (count.tx_dropped || 0))],
    ["Errors", "number", ({ count }) => whole.format((count.rx_errors || 0) + (count.tx_errors || 0))],
  ], rows, "The switch has no ports.");
}

const isDown = (port) => (Number(port.state) & 1) === 1 || (Number(port.config) & 1) === 1;

function remember(dpid, port, count, now) {
  const key = `${dpid}/${port.port_no}`;
  const last = state.history.get(key) || { points: [] };
  const seconds = (now - last.at) / 1000;
  if (last.at !== undefined && seconds > 0.2) {
    const bits = (after, before) => Math.max(0, (after - before) * 8 / seconds);
    last.points.push([bits(count.rx_bytes || 0, last.rx), bits(count.tx_bytes || 0, last.tx)]);
    if (last.points.length > SPARK_POINTS) last.points.shift();
  }
  Object.assign(last, { at: now, rx: count.rx_bytes || 0, tx: count.tx_bytes || 0 });
  state.history.set(key, last);
}

// Bits a second that come in by a port (side 0) or leave by it (side 1), where they are known.
const lastRate = (dpid, port, side) => state.history.get(`${dpid}/${port}`)?.points.at(-1)?.[side];

function spark(history) {
  const made = svg("svg", { class: "spark", viewBox: `0 0 ${SPARK_POINTS} 20`, preserveAspectRatio: "none" });
  const points = history ? history.points : [];
  const most = Math.max(1, ...points.flat());
  ["rx", "tx"].forEach((name, side) => {
    const line = points.map((point, index) => {
      const x = SPARK_POINTS - points.length + index;
      return `${x},${(19 - 18 * point[side] / most).toFixed(1)}`;
    });
    made.append(svg("polyline", { class: name, points: line.join(" ") }));
  });
  return made;
}

async function askFlows(dpid) {
  const rows = await stats("flowtext", dpid);
  const now = performance.now();
  for (const row of rows) countFlow(dpid, row, now);
  state.flows = rows;
  return () => showFlows();
}

function countFlow(dpid, row, now) {
  const key = `${dpid}/${row.table_id}/${row.priority}/${JSON.stringify(row.match)}`;
  const last = state.counts.get(key);
  if (last && now - last.at > 200) {
    row.rate = Math.max(0, (row.packet_count - last.packets) * 1000 / (now - last.at));
  } else if (last) {
    row.rate = last.rate;
  }
  if (state.counts.size > 50000) state.counts.clear();
  state.counts.set(key, { at: now, packets: row.packet_count, rate: row.rate });
}

function showFlows() {
  const wanted = $("search").value.trim().toLowerCase();
  const text = (row) => `table=${row.table_id} priority=${row.priority} ${row.text.match} ${row.text.actions} cookie=0x${Number(row.cookie).toString(16)}`;
  const found = state.flows.filter((row) => text(row).toLowerCase().includes(wanted));
  const rows = found.slice(0, ROWS_MAX);
  $("shown").textContent = rows.length < state.flows.length
    ? `${whole.format(rows.length)} of ${whole.format(state.flows.length)}` : `${whole.format(rows.length)} entries`;
  const scroll = $("table").scrollTop;
  table([
    ["Table", "number", (row) => String(row.table_id)],
    ["Priority", "number", (row) => String(row.priority)],
    ["Match", "code", (row) => words(row.text.match, "any")],
    ["Actions", "code", (row) => words(row.text.actions, "drop")],
    ["Packets", "number", (row) => whole.format(row.packet_count)],
    ["Rate", "number", (row) => rate(row.rate, "pps")],
    ["Bytes", "number", (row) => whole.format(row.byte_count)],
    ["Age", "number", (row) => `${whole.format(row.duration_sec)} s`],
    ["", "", (row) => element("button", {
      class: "remove", type: "button", title: "Delete this entry", onclick: () => removeFlow(row),
    }, "×")],
  ], rows, state.flows.length ? "No entry fits the search." : "The switch has no flow entries.");
  $("table").scrollTop = scroll;
}

async function askGroups(dpid) {
  const [described, counted] = await Promise.all([stats("grouptext", dpid), stats("group", dpid)]);
  const counts = new Map(counted.map((row) => [row.group_id, row]));
  return () => table([
    ["Group", "number", (row) => String(row.group_id)],
    ["Type", "", (row) => row.type],
    ["Buckets", "code", (row) => row.text.join(" | ")],
    ["Packets", "number", (row) => whole.format((counts.get(row.group_id) || {}).packet_count || 0)],
    ["Bytes", "number", (row) => whole.format((counts.get(row.group_id) || {}).byte_count || 0)],
  ], described, "The switch has no groups.");
}

async function askMeters(dpid) {
  const [configured, counted] = await Promise.all([stats("meterconfig", dpid), stats("meter", dpid)]);
  const counts = new Map(counted.map((row) => [row.meter_id, row]));
  const band = (row) => `${row.type} at ${row.rate}`;
  return () => table([
    ["Meter", "number", (row) => String(row.meter_id)],
    ["Flags", "", (row) => row.flags.join(", ")],
    ["Bands", "code", (row) => row.bands.map(band).join(" | ")],
    ["Packets", "number", (row) => whole.format((counts.get(row.meter_id) || {}).packet_in_count || 0)],
    ["Bytes", "number", (row) => whole.format((counts.get(row.meter_id) || {}).byte_in_count || 0)],
  ], configured, "The switch has no meters.");
}

// ---- changes --------------------------------------------------------------------------------------

async function change(what, body) {
  try {
    await ask(`stats/flowentry/${what}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: withDpid(body, state.selected),
    });
    delete $("problem").dataset.keep;
    problem(null);
  } catch (error) {
    $("problem").dataset.keep = "yes";
    problem(error);
    throw error;
  } finally {
    refreshTab();
  }
}

function removeFlow(row) {
  const { table_id, priority, match } = row;
  change("delete_strict", { table_id, priority, match }).catch(() => {});
}

function number(text) { return /^(0x[0-9a-f]+|\d+)$/i.test(text) ? Number(text) : text; }

function parsePairs(text) {
  const match = {};
  for (const part of text.split(",").map((one) => one.trim()).filter(Boolean)) {
    const at = part.indexOf("=");
    if (at < 1) throw new Error(`match: "${part}" is no FIELD=VALUE`);
    match[part.slice(0, at).trim()] = number(part.slice(at + 1).trim());
  }
  return match;
}

const ARGUMENTS = {
  OUTPUT: "port", GROUP: "group_id", SET_QUEUE: "queue_id", PUSH_VLAN: "ethertype", PUSH_MPLS: "ethertype",
  POP_MPLS: "ethertype", SET_MPLS_TTL: "mpls_ttl", SET_NW_TTL: "nw_ttl", GOTO_TABLE: "table_id", METER: "meter_id",
};

function parseActions(text) {
  return text.split(",").map((one) => one.trim()).filter(Boolean).map((part) => {
    const [type, ...rest] = part.split(":");
    const name = type.trim().toUpperCase(), argument = rest.join(":").trim();
    if (name === "SET_FIELD") {
      const at = argument.indexOf("=");
      if (at < 1) throw new Error(`actions: "${part}" is no SET_FIELD:FIELD=VALUE`);
      return { type: name, field: argument.slice(0, at), value: number(argument.slice(at + 1)) };
    }
    if (argument === "") return { type: name };
    if (!ARGUMENTS[name]) throw new Error(`actions: ${name} takes no argument here`);
    return { type: name, [ARGUMENTS[name]]: number(argument) };
  });
}

async function addFlow(event) {
  event.preventDefault();
  const form = new FormData($("add"));
  let body;
  try {
    body = {
      table_id: Number(form.get("table_id")), priority: Number(form.get("priority")),
      idle_timeout: Number(form.get("idle_timeout")),
      match: parsePairs(form.get("match")), actions: parseActions(form.get("actions")),
    };
  } catch (error) {
    $("problem").dataset.keep = "yes";
    return problem(error);
  }
  await change("add", body).then(() => { $("add").hidden = true; }).catch(() => {});
}

// ---- events ---------------------------------------------------------------------------------------

function live(on, text) {
  $("live").className = on ? "on" : "off";
  $("live").textContent = text || (on ? "live" : "no answer from the controller");
}

function log({ kind, text, at_ms }) {
  // A new connection brings the last events again.
  const key = `${at_ms} ${text}`;
  if (state.seen.has(key)) return;
  state.seen.add(key);
  if (state.seen.size > 2 * EVENTS_MAX) state.seen.delete(state.seen.values().next().value);
  const time = new Date(at_ms);
  const line = element("li", { class: /down|error|gone/.test(kind) ? "bad" : "" },
    element("time", { datetime: time.toISOString() }, time.toTimeString().slice(0, 8)),
    element("span", {}, named(text)));
  $("events").prepend(line);
  while ($("events").childElementCount > EVENTS_MAX) $("events").lastChild.remove();
}

let due = null;
function networkChanged() {
  if (due) return;
  due = setTimeout(() => { due = null; refreshNetwork(); }, 300);
}

async function follow() {
  for (;;) {
    try {
      const reply = await ask("events");
      live(true);
      networkChanged();
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        parts.forEach(take);
      }
    } catch { /* said by live(false) */ }
    live(false);
    await new Promise((wake) => setTimeout(wake, 1000));
  }
}

function take(part) {
  const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
  if (!data) return;
  const event = JSON.parse(data);
  log(event);
  if (/^(switch|port|link|host|lagged)/.test(event.kind)) networkChanged();
}

// ---- start ----------------------------------------------------------------------------------------

function theme(name) {
  document.documentElement.classList.toggle("dark", name === "dark");
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme(localStorage.getItem("weir-theme") || (dark.matches ? "dark" : "light"));
  $("theme").addEventListener("click", () => {
    const next = document.documentElement.classList.contains("dark") ? "light" : "dark";
    localStorage.setItem("weir-theme", next);
    theme(next);
  });
  document.querySelectorAll("[data-tab]").forEach((button) => button.addEventListener("click", () => {
    state.tab = button.dataset.tab;
    document.querySelectorAll("[data-tab]").forEach((one) => one.setAttribute("aria-selected", one === button));
    $("flow-tools").hidden = state.tab !== "flows";
    $("table").replaceChildren();
    delete $("problem").dataset.keep;
    problem(null);
    refreshTab();
  }));
  $("choose").addEventListener("change", () => select($("choose").value));
  $("search").addEventListener("input", showFlows);
  $("add-open").addEventListener("click", () => { $("add").hidden = !$("add").hidden; });
  $("add-cancel").addEventListener("click", () => { $("add").hidden = true; });
  $("add").addEventListener("submit", addFlow);
  mapControls();
  refreshNetwork();
  follow();
  setInterval(refreshNetwork, POLL_NETWORK_MS);
  setInterval(() => { if (state.tab === "ports") refreshTab(); }, POLL_PORTS_MS);
  setInterval(() => { if (state.tab !== "ports") refreshTab(); }, POLL_FLOWS_MS);
}

start();

/* What all charts share: the data, numbers, legends, and a uPlot that follows its place. */
let results = JSON.parse(document.getElementById("results").textContent);
let view = JSON.parse(document.getElementById("view").textContent);
const charts = [];

/* The data of a scenario, as text. */
function dataOf(index) {
  return JSON.stringify([results.scenarios[index], view.scenarios[index]]);
}

/* Takes the data of another page, and gives those that were there. */
function takeData(page) {
  const before = results.scenarios.map((_, index) => dataOf(index));
  for (const id of ["results", "view"]) {
    document.getElementById(id).textContent = page.getElementById(id).textContent;
  }
  results = JSON.parse(document.getElementById("results").textContent);
  view = JSON.parse(document.getElementById("view").textContent);
  return { scenario: (index) => before[index] };
}

window.weirLab = { charts };

/* Colours repeat after eight switches; the dashes differ too, for eyes that see less of colour. */
const DASHES = [[], [7, 3], [2, 3], [11, 3, 2, 3], [4, 4], [14, 4], [2, 6], [7, 3, 2, 3, 2, 3]];
const FONT = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const HINT = "Drag over a plot to zoom, double-click to see all of it; in a plot that has the focus " +
  "the arrow keys move along, and plus, minus and 0 zoom.";
const NOTHING = "\u00a0";

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function dutNumber(dut) {
  return Math.max(0, view.duts.indexOf(dut)) % 8;
}

function dutColour(dut) {
  return colour(`--c${dutNumber(dut)}`);
}

/* The value with the metric's decimals, its digits in groups of three. */
function shown(value, decimals) {
  if (value === null || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  const needed = size > 0 && size < 1 ? Math.min(8, Math.ceil(-Math.log10(size))) : 0;
  const digits = Math.max(Math.min(decimals, 9), needed);
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/* For axes: 1.5M, 250k. */
function compact(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  for (const [scale, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= scale * (scale === 1e3 ? 10 : 1)) {
      return `${Number((value / scale).toPrecision(4))}${letter}`;
    }
  }
  return String(Number(value.toPrecision(4)));
}

function withUnit(text, unit) {
  return unit ? `${text} ${unit}` : text;
}

/* Where a set of rows lies on the axes that a plot leaves open. */
function combinations(axes, rows) {
  const seen = new Map();
  for (const row of rows) {
    const at = {};
    for (const axis of axes) at[axis.name] = row.at[axis.name];
    seen.set(JSON.stringify(axes.map((axis) => at[axis.name])), at);
  }
  const order = (at) => axes.map((axis) => axis.values.indexOf(at[axis.name]));
  return [...seen.values()].sort((a, b) => {
    const [left, right] = [order(a), order(b)];
    const differs = left.findIndex((place, index) => place !== right[index]);
    return differs < 0 ? 0 : left[differs] - right[differs];
  });
}

function isAt(row, at) {
  return Object.entries(at).every(([axis, value]) => row.at[axis] === value);
}

function placeText(axes, at) {
  return axes
    .filter((axis) => at[axis.name] !== undefined)
    .map((axis) => withUnit(`${axis.label} ${at[axis.name]}`, axis.unit))
    .join(", ");
}

/* The published figures that belong to a place, by switch. */
function publishedAt(scenario, metric, at) {
  const found = new Map();
  for (const figure of scenario.published) {
    if (figure.metric !== metric) continue;
    if (!Object.entries(figure.at).every(([axis, value]) => at[axis] === undefined || at[axis] === value)) {
      continue;
    }
    if (!found.has(figure.switch)) found.set(figure.switch, []);
    found.get(figure.switch).push(figure);
  }
  return found;
}

/* A legend whose entries are buttons that show and hide their lines. */
function legend(entries) {
  const list = make("div", { class: "legend", role: "group", "aria-label": "Lines" });
  for (const entry of entries) {
    const dash = entry.dash.join(" ");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 28 8");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", "M1 4h26");
    path.setAttribute("stroke", entry.colour);
    path.setAttribute("stroke-width", "3");
    if (dash) path.setAttribute("stroke-dasharray", dash);
    svg.append(path);
    const button = make("button", { type: "button", "aria-pressed": "true" }, svg,
      make("span", { text: entry.label }));
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      entry.toggle(on);
    });
    list.append(button);
  }
  return list;
}

function toggleButton(label, isOn, change) {
  const button = make("button", { type: "button", "aria-pressed": String(isOn), text: label });
  button.addEventListener("click", () => change(button.getAttribute("aria-pressed") !== "true"));
  return button;
}

function axisStyle() {
  const soft = colour("--soft");
  return {
    stroke: soft,
    font: FONT,
    labelFont: FONT,
    labelGap: 2,
    filter: (u, splits) => splits,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1, size: 5 },
  };
}

function rgba(of, alpha) {
  const probe = make("i", { style: `color:${of};display:none` });
  document.body.append(probe);
  const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
  probe.remove();
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}

/* Labels that do not run into each other. */
function spaced(u, splits, texts, axis) {
  let last = -Infinity;
  return splits.map((split, index) => {
    const at = u.valToPos(split, axis);
    if (Math.abs(at - last) < 8 * (String(texts[index]).length + 1)) return "";
    last = at;
    return texts[index];
  });
}

/* A uPlot in its place: it follows the width, zooms by drag, buttons and keys, and says what is
   under the cursor. `spec` has kind, label, height, options, data, describe(index). */
function plotIn(place, spec) {
  const box = make("div", {
    class: "plot", tabindex: "0", role: "group", "aria-roledescription": "chart",
    "aria-label": `${spec.label}. ${HINT}`,
  });
  const readout = make("p", { class: "readout", "aria-live": "polite", text: NOTHING });
  const bar = make("div", { class: "zoom", role: "group", "aria-label": "Zoom" });
  place.append(box, bar, readout);
  const width = () => Math.max(200, Math.floor(box.clientWidth));
  let whole = null;
  const u = new uPlot({
    width: width(),
    height: spec.height,
    legend: { show: false },
    padding: [10, 12, 0, 0],
    ...spec.options,
    cursor: {
      drag: { x: true, y: true, uni: 24, dist: 6 },
      points: { size: 8 },
      focus: { prox: 24 },
      ...spec.options.cursor,
    },
    hooks: {
      ready: [(self) => { whole = { min: self.scales.x.min, max: self.scales.x.max }; }],
      setCursor: [(self) => {
        const index = self.cursor.idx;
        readout.textContent = index === null || index === undefined ? NOTHING : spec.describe(index);
      }],
      setScale: [(self, key) => {
        if (key === "x" && whole) {
          const { min, max } = self.scales.x;
          reset.hidden = min <= whole.min && max >= whole.max;
        }
      }],
      ...spec.options.hooks,
    },
  }, spec.data, box);
  const isLog = u.scales.x.distr === 3;
  const zoom = (factor) => {
    if (!whole) return;
    const { min, max } = u.scales.x;
    const [from, to] = isLog ? [Math.log(min), Math.log(max)] : [min, max];
    const half = (to - from) * factor / 2;
    const middle = (from + to) / 2;
    const back = isLog ? Math.exp : (value) => value;
    u.setScale("x", {
      min: Math.max(back(middle - half), whole.min), max: Math.min(back(middle + half), whole.max),
    });
  };
  const all = () => whole && u.setScale("x", { ...whole });
  const reset = make("button", { type: "button", text: "Show all", onclick: all });
  reset.hidden = true;
  bar.append(
    make("button", { type: "button", text: "+", "aria-label": "Zoom in", onclick: () => zoom(0.5) }),
    make("button", { type: "button", text: "−", "aria-label": "Zoom out", onclick: () => zoom(2) }),
    reset,
  );
  box.addEventListener("keydown", (event) => {
    const xs = u.data[0];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const from = u.cursor.idx ?? (step > 0 ? -1 : xs.length);
      const index = Math.min(xs.length - 1, Math.max(0, from + step));
      u.setCursor({ left: u.valToPos(xs[index], "x"), top: u.over.clientHeight / 2 });
    } else if (event.key === "+") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") all();
    else return;
    event.preventDefault();
  });
  const observer = new ResizeObserver(() => {
    if (Math.abs(width() - u.width) > 1) u.setSize({ width: width(), height: spec.height });
  });
  observer.observe(box);
  const chart = { kind: spec.kind, u, box };
  charts.push(chart);
  return () => {
    observer.disconnect();
    charts.splice(charts.indexOf(chart), 1);
    u.destroy();
  };
}

/* Draws every chart in its place, saves the data, follows the reader through the contents. */
const DRAW = { sweep: drawSweep, cdf: drawCdf, bars: drawBars, "heat-map": drawHeat };

/* Up to so many combinations of the other axes stand beside each other; more are chosen from. */
const FACETS = 4;

const CDF_NOTE = "Thick: all starts together, with the band that holds the true curve at 95 % if the " +
  "values are independent (Dvoretzky, Kiefer, Wolfowitz). Thin: the single starts.";

const choices = new Map();
const built = new Map();

function build(figure) {
  const scenario = results.scenarios[Number(figure.dataset.scenario)];
  const section = view.scenarios[Number(figure.dataset.scenario)];
  const plot = section.plots[Number(figure.dataset.plot)];
  const metric = scenario.metrics.find((one) => one.id === plot.metric);
  const place = figure.querySelector(".plots");
  const rows = section.rows.filter((row) => row.metric === plot.metric);
  const used = plot.kind === "cdf" ? [] : [plot.x, plot.y];
  const open = section.axes.filter((axis) => !used.includes(axis.name));
  const combos = combinations(open, rows);
  /* A chart that is built anew has the choices of the one before. */
  const key = `${figure.dataset.scenario} ${figure.dataset.plot}`;
  const chosen = choices.get(key);
  const known = chosen && combos.find((at) => JSON.stringify(at) === JSON.stringify(chosen.at));
  const state = { ...chosen, at: known || combos[0] };
  choices.set(key, state);
  const controls = make("div", { class: "controls" });
  place.before(controls);
  if (plot.kind === "sweep" || plot.kind === "cdf") {
    figure.append(make("p", { class: "hint", text: plot.kind === "cdf" ? `${HINT} ${CDF_NOTE}` : HINT }));
  }
  let drawn = [];

  function draw() {
    for (const one of drawn) one.destroy();
    place.replaceChildren();
    const shownAt = combos.length > FACETS ? [state.at] : combos;
    place.className = shownAt.length > 1 ? "plots facets" : "plots";
    drawn = shownAt.map((at) => {
      const cell = make("div", { class: "facet" });
      if (shownAt.length > 1) cell.append(make("h4", { text: placeText(open, at) }));
      const inner = make("div");
      cell.append(inner);
      place.append(cell);
      const own = rows.filter((row) => isAt(row, at));
      return DRAW[plot.kind](inner, { scenario, section, plot, metric, rows: own, at, state });
    });
    control();
  }

  function control() {
    controls.replaceChildren();
    if (combos.length > FACETS) {
      for (const axis of open) {
        const select = make("select");
        for (const value of axis.values) {
          select.append(make("option", { value, text: withUnit(value, axis.unit) }));
        }
        select.value = state.at[axis.name];
        select.addEventListener("change", () => {
          const wish = { ...state.at, [axis.name]: select.value };
          /* Not every combination was measured: the nearest that has the chosen value. */
          const fits = combos.filter((at) => at[axis.name] === select.value);
          const alike = (at) => open.filter((one) => at[one.name] === wish[one.name]).length;
          state.at = fits.sort((a, b) => alike(b) - alike(a))[0];
          draw();
        });
        controls.append(make("label", {}, `${axis.label} `, select));
      }
    }
    if (plot.kind === "cdf" && drawn.length) {
      controls.append(toggleButton("Tail", Boolean(state.tail), (on) => { state.tail = on; draw(); }));
    }
    const logs = drawn.map((one) => one.log).filter((log) => log !== null);
    if (logs.length) {
      const label = plot.kind === "heat-map" ? "Logarithmic colours" : "Logarithmic";
      controls.append(toggleButton(label, logs.some(Boolean), (on) => { state.log = on; draw(); }));
    }
  }

  draw();
  redraws.add(draw);
  built.set(figure, () => {
    for (const one of drawn) one.destroy();
    redraws.delete(draw);
  });
}

/* Ends a chart whose place goes. */
function forget(figure) {
  const end = built.get(figure);
  if (end) end();
  built.delete(figure);
}

for (const figure of document.querySelectorAll("figure.chart")) build(figure);

/* Saving. */
function save(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/* The part with the buttons may be replaced while a campaign runs. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("#save-json, #print");
  if (!button) return;
  if (button.id === "print") window.print();
  else save("results.json", "application/json", document.getElementById("results").textContent);
});

/* Large data are thinned for the page, and its button says so. */
function nameSave() {
  if (!view.thinned) return;
  const button = document.getElementById("save-json");
  button.title = "Thinned for the page: results.json beside it has every quantile";
  button.textContent = "Save the data (JSON, thinned)";
}
nameSave();

/* A claim's row may lie in what is folded. */
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let at = target.parentElement; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
  }
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
}
addEventListener("hashchange", reveal);
reveal();

/* Paper is white, and shows what is folded. */
let beforePrint = null;
addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("main details:not([open])")];
  beforePrint = { theme: root.dataset.theme || "auto", closed };
  for (const one of closed) one.open = true;
  showTheme("light");
  redrawAll();
});
addEventListener("afterprint", () => {
  if (!beforePrint) return;
  for (const one of beforePrint.closed) one.open = false;
  showTheme(beforePrint.theme);
  beforePrint = null;
  redrawAll();
});

/* The contents: folded on a phone, marked where the reader is. */
const contents = document.querySelector(".contents details");
const wide = matchMedia("(min-width: 1080px)");
const fold = () => { contents.open = wide.matches; };
fold();
wide.addEventListener("change", fold);
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && !wide.matches) contents.open = false;
});
const links = new Map([...contents.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (!one.isIntersecting) continue;
    for (const link of links.values()) link.removeAttribute("aria-current");
    const link = links.get(one.target.id);
    if (link) link.setAttribute("aria-current", "true");
  }
}, { rootMargin: "-12% 0px -78% 0px" });
for (const part of document.querySelectorAll("main > section")) watcher.observe(part);

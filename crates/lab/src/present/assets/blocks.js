/* Bars and heat maps: elements, so that they print, fold and grow with the page. */

/* A bar for each switch and value of x: fill to the figure, line for its interval, dots for the
   starts; published figures are hollow. On a logarithmic scale a dot stands for the bar, because
   a bar's length would mean nothing. */
function drawBars(place, context) {
  const { scenario, section, plot, metric, rows, at, state } = context;
  const axis = section.axes.find((one) => one.name === plot.x);
  const values = axis
    ? axis.values.filter((value) => rows.some((row) => row.at[axis.name] === value))
    : [null];
  const groups = values.map((value) => {
    const here = axis ? { ...at, [axis.name]: value } : at;
    const own = rows.filter((row) => !axis || row.at[axis.name] === value);
    const old = [...publishedAt(scenario, metric.id, here)].map(([name, [figure]]) => ({ name, figure }));
    return { value, own, old };
  });
  /* Published figures that hold everywhere stand once, at the end. */
  const same = axis && groups.length > 1
    && groups.every((group) => JSON.stringify(group.old) === JSON.stringify(groups[0].old));
  if (same && groups[0].old.length) {
    const old = groups[0].old;
    for (const group of groups) group.old = [];
    groups.push({ value: null, own: [], old, isPublished: true });
  }
  const numbers = groups.flatMap((group) => [
    ...group.own.flatMap((row) => [row.value, ...(row.interval || []), ...row.samples,
      /* A limit that is far away would leave the bars no length. */
      ...(row.bound !== null && row.bound < 3 * row.value ? [row.bound] : [])]),
    ...group.old.flatMap(({ figure }) => [figure.value, figure.to ?? figure.value]),
  ]).filter((value) => Number.isFinite(value));
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const canLog = numbers.length > 0 && least > 0;
  const isLog = canLog && (state.log ?? (most / least < 1e6 && (plot.log || most / least > 25)));
  const low = Math.min(0, least);
  const [from, to] = isLog ? [Math.log(least / 1.15), Math.log(most * 1.15)] : [low, most || 1];
  const scaleEnd = isLog ? Math.exp(to) : to;
  const share = (value) => {
    const where = ((isLog ? Math.log(Math.max(value, Number.MIN_VALUE)) : value) - from) / (to - from);
    return `${(Math.min(1, Math.max(0, where)) * 100).toFixed(3)}%`;
  };
  const span = (a, b) => `left:${share(a)};width:calc(${share(b)} - ${share(a)})`;
  const list = make("div", { class: isLog ? "bars log" : "bars" });
  for (const group of groups) {
    if (axis) {
      const title = group.isPublished
        ? "published, everywhere"
        : withUnit(`${axis.label} ${group.value}`, axis.unit);
      list.append(make("h5", { text: title }));
    }
    for (const row of group.own) {
      const track = make("span", { class: "track" });
      track.append(make("i", { class: "fill", style: isLog ? `left:${share(row.value)}` : `width:${share(row.value)}` }));
      if (row.interval) track.append(make("i", { class: "whisker", style: span(...row.interval) }));
      if (row.bound !== null && row.bound <= scaleEnd) {
        track.append(make("i", {
          class: "bound", style: `left:${share(row.bound)}`,
          title: `at most ${shown(row.bound, metric.decimals)}, by arithmetic`,
        }));
      }
      for (const sample of row.samples) {
        track.append(make("i", { class: "dot", style: `left:${share(sample)}` }));
      }
      const number = make("span", { class: "number", text: row.text });
      if (row.limit) number.append(make("span", { class: "why", text: `limit: ${row.limit}` }));
      list.append(make("a", { class: `barline b${dutNumber(row.dut)}`, href: `#${row.row}` },
        make("span", { class: "name", text: row.dut }), track, number));
    }
    for (const { name, figure } of group.old) {
      const end = figure.to ?? figure.value;
      const track = make("span", { class: "track" });
      track.append(make("i", {
        class: "fill old",
        style: isLog ? `${span(figure.value, end)};min-width:8px` : `width:${share(end)}`,
      }));
      const range = figure.to ? `${shown(figure.value, metric.decimals)}–${shown(end, metric.decimals)}`
        : shown(figure.value, metric.decimals);
      list.append(make("div", { class: "barline published" },
        make("span", { class: "name", text: name }), track,
        make("span", { class: "number", text: range })));
    }
  }
  if (isLog) list.append(make("p", { class: "soft", text: "Logarithmic scale." }));
  place.append(list);
  return { destroy: () => {}, log: canLog ? isLog : null };
}

/* A heat map for each switch, all of one scale. */
function drawHeat(place, context) {
  const { section, plot, metric, rows, state } = context;
  const [across, down] = [plot.x, plot.y].map((name) => section.axes.find((one) => one.name === name));
  const values = rows.map((row) => row.value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const canLog = least > 0;
  const isLog = canLog && (state.log ?? (plot.log || most / least > 20));
  const scale = isLog ? Math.log : (value) => value;
  const depth = (value) => (most > least ? (scale(value) - scale(least)) / (scale(most) - scale(least)) : 0.5);
  const maps = make("div", { class: "heats" });
  for (const dut of section.duts) {
    const own = rows.filter((row) => row.dut === dut);
    if (!own.length) continue;
    const head = make("tr", {}, make("td"),
      ...across.values.map((value) => make("th", { scope: "col", text: value })));
    const body = make("tbody");
    for (const value of down.values) {
      const line = make("tr", {}, make("th", { scope: "row", text: value }));
      for (const column of across.values) {
        const row = own.find((one) => one.at[across.name] === column && one.at[down.name] === value);
        if (!row) {
          line.append(make("td", { class: "gap", title: "no figure: see the table" }, "–"));
          continue;
        }
        const deep = depth(row.value);
        line.append(make("td", {
          class: deep > 0.55 ? "deep" : "",
          style: `--depth:${(deep * 100).toFixed(1)}%`,
          title: `${row.text} ${metric.unit}`,
        }, make("a", { href: `#${row.row}`, text: compact(row.value) })));
      }
      body.append(line);
    }
    maps.append(make("div", { class: "heat scroll", tabindex: "0", role: "region", "aria-label": dut },
      make("table", {}, make("caption", {}, make("i", { class: `swatch c${dutNumber(dut)}` }), dut),
        make("thead", {}, head), body)));
  }
  place.append(maps, make("p", { class: "ramp soft" },
    make("span", { text: shown(least, metric.decimals) }), make("i"),
    make("span", { text: withUnit(shown(most, metric.decimals), metric.unit) }),
    make("span", { text: `across: ${across.label}, down: ${down.label}${isLog ? "; logarithmic colours" : ""}` })));
  return { destroy: () => {}, log: canLog ? isLog : null };
}

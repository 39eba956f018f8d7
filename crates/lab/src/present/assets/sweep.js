/* A metric over an axis: a line for each switch, its range as a band, its starts as dots,
   published figures in grey. */
function drawSweep(place, context) {
  const { scenario, section, plot, metric, rows, at, state } = context;
  const axis = section.axes.find((one) => one.name === plot.x);
  const present = axis.values.filter((value) => rows.some((row) => row.at[axis.name] === value));
  const number = (value) => (axis.numeric ? Number(value) : axis.values.indexOf(value));
  const order = [...present].sort((a, b) => number(a) - number(b));
  const xs = order.map(number);
  const names = new Map(order.map((value) => [number(value), value]));
  const duts = section.duts.filter((dut) => rows.some((row) => row.dut === dut));
  const old = publishedAt(scenario, metric.id, at);
  const data = [xs];
  const series = [{}];
  const bands = [];
  const entries = [];
  const told = [];
  for (const dut of duts) {
    const own = order.map((value) => rows.find((row) => row.dut === dut && row.at[axis.name] === value));
    const first = data.length;
    data.push(own.map((row) => (row ? row.value : null)));
    data.push(own.map((row) => (row && row.interval ? row.interval[1] : null)));
    data.push(own.map((row) => (row && row.interval ? row.interval[0] : null)));
    const stroke = dutColour(dut);
    const dash = DASHES[dutNumber(dut)];
    series.push({ stroke, width: 2, dash, points: { show: true, size: 7, fill: colour("--card"), stroke } });
    series.push({ stroke: "transparent", points: { show: false } });
    series.push({ stroke: "transparent", points: { show: false } });
    bands.push({ series: [first + 1, first + 2], fill: rgba(stroke, 0.16) });
    told.push((index) => own[index] && `${dut} ${own[index].text}`);
    entries.push({ label: dut, colour: stroke, dash, first, count: 3 });
  }
  [...old].slice(0, 4).forEach(([name, figures], index) => {
    const values = order.map((value) => {
      const figure = figures.find((one) => (one.at[axis.name] ?? value) === value);
      return figure ? (figure.to ? (figure.value + figure.to) / 2 : figure.value) : null;
    });
    if (values.every((value) => value === null)) return;
    const stroke = colour("--faint");
    const dash = DASHES[(index + 4) % 8];
    entries.push({ label: `published: ${name}`, colour: stroke, dash, first: data.length, count: 1 });
    told.push((place) => values[place] !== null && `${name} ${shown(values[place], metric.decimals)}`);
    data.push(values);
    series.push({ stroke, width: 1.5, dash, points: { show: true, size: 6, fill: stroke, stroke } });
  });
  const all = data.slice(1).flat().filter((value) => value !== null);
  const canLog = all.length > 0 && all.every((value) => value > 0);
  const logY = canLog && (state.log ?? plot.log);
  const logX = axis.numeric && xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 8;
  const spread = xs.length > 1 ? xs[xs.length - 1] - xs[0] : 1;
  const padX = logX
    ? [xs[0] / 1.12, xs[xs.length - 1] * 1.12]
    : [xs[0] - spread * 0.04, xs[xs.length - 1] + spread * 0.04];
  const top = Math.max(...all, 0) * 1.06 || 1;
  const low = Math.min(...all, 0);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const style = axisStyle();
  const destroy = plotIn(place, {
    kind: "sweep",
    label: `${metric.label} by ${axis.label}`,
    height: 300,
    data,
    describe: (index) => {
      const where = withUnit(`${axis.label} ${names.get(xs[index])}`, axis.unit);
      return `${where}: ${told.map((tell) => tell(index)).filter(Boolean).join(" · ")}`;
    },
    options: {
      series,
      bands,
      scales: {
        x: { time: false, distr: logX ? 3 : 1, range: (u, min, max) => (min === max || (min === xs[0] && max === xs[xs.length - 1]) ? padX : [min, max]) },
        y: logY
          ? { distr: 3, range: () => [least / 1.25, most * 1.25] }
          : { range: () => [low, top] },
      },
      axes: [
        {
          ...style,
          label: withUnit(axis.label, axis.unit && `(${axis.unit})`),
          size: 30,
          labelSize: 20,
          splits: (u) => xs.filter((x) => x >= u.scales.x.min && x <= u.scales.x.max),
          values: (u, splits) => spaced(u, splits, splits.map((split) => names.get(split) ?? ""), "x"),
        },
        {
          ...style,
          size: (u, texts) => Math.max(36, ...(texts || []).map((text) => String(text).length * 7 + 14)),
          values: (u, splits) => splits.map((split) => compact(split)),
          ...(logY ? { splits: () => logSplits(least / 1.25, most * 1.25) } : {}),
        },
      ],
    },
  });
  const chart = charts[charts.length - 1];
  place.prepend(legend(entries.map((entry) => ({
    ...entry,
    toggle: (on) => {
      for (let index = 0; index < entry.count; index++) {
        chart.u.setSeries(entry.first + index, { show: on });
      }
    },
  }))));
  return { destroy, log: canLog ? logY : null };
}

/* Places on a logarithmic axis: 1, 2 and 5 of each decade; only 1 where there are many. */
function logSplits(from, to) {
  const splits = [];
  const decades = Math.log10(to / from);
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
    for (const digit of decades > 4 ? [1] : [1, 2, 5]) {
      const value = Number(`${digit}e${power}`);
      if (value >= from && value <= to) splits.push(value);
    }
  }
  return splits;
}

/* Distributions: for each switch the share of values up to x over all starts, with its band, and
   each start as a thin line. The tail shows the share above x, logarithmically. */
function shareAt(quantiles, x) {
  let low = 0;
  let high = quantiles.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (quantiles[middle][1] <= x) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  if (low === quantiles.length) return quantiles[low - 1][0];
  const [before, after] = [quantiles[low - 1], quantiles[low]];
  const part = (x - before[1]) / (after[1] - before[1]);
  return before[0] + part * (after[0] - before[0]);
}

const TAIL_LEAST = 1e-5;

function drawCdf(place, context) {
  const { scenario, section, metric, at, state } = context;
  const curves = [];
  scenario.cells.forEach((cell, index) => {
    const starts = cell.distributions.filter((one) => one.metric === metric.id && one.quantiles.length);
    if (!starts.length || !isAt(cell, at)) return;
    const band = section.bands.find((one) => one.cell === index && one.metric === metric.id);
    curves.push({ dut: cell.dut, starts, half: band && band.half !== null ? band.half : 0 });
  });
  if (!curves.length) return { destroy: () => {}, log: null };
  let xs = [...new Set(curves.flatMap((curve) => curve.starts.flatMap(
    (start) => start.quantiles.map(([, value]) => value))))].sort((a, b) => a - b);
  const every = Math.ceil(xs.length / 500);
  if (every > 1) xs = xs.filter((x, index) => index % every === 0 || index === xs.length - 1);
  const isTail = Boolean(state.tail);
  const tail = (share) => (1 - share < TAIL_LEAST ? null : 1 - share);
  const put = isTail ? tail : (share) => share;
  const data = [xs];
  const series = [{}];
  const bands = [];
  const entries = [];
  for (const curve of curves) {
    const stroke = dutColour(curve.dut);
    const dash = DASHES[dutNumber(curve.dut)];
    const count = curve.starts.reduce((sum, start) => sum + start.count, 0) || 1;
    curve.pooled = xs.map((x) => curve.starts.reduce(
      (sum, start) => sum + shareAt(start.quantiles, x) * start.count, 0) / count);
    const first = data.length;
    data.push(curve.pooled.map(put));
    series.push({ stroke, width: 2.25, dash, points: { show: false } });
    const upper = curve.pooled.map((share) => Math.min(1, share + curve.half));
    const lower = curve.pooled.map((share) => Math.max(0, share - curve.half));
    data.push((isTail ? lower : upper).map(put), (isTail ? upper : lower).map(put));
    series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
    bands.push({ series: [first + 1, first + 2], fill: rgba(stroke, 0.18) });
    for (const start of curve.starts.length > 1 ? curve.starts.slice(0, 12) : []) {
      data.push(xs.map((x) => put(shareAt(start.quantiles, x))));
      series.push({ stroke: rgba(stroke, 0.35), width: 0.75, points: { show: false } });
    }
    entries.push({ label: curve.dut, colour: stroke, dash, first, count: data.length - first });
  }
  const [least, most] = [xs[0], xs[xs.length - 1]];
  const canLog = least > 0 && most > least;
  const logX = canLog && (state.log ?? (context.plot.log || most / least > 8));
  const style = axisStyle();
  const percent = (share) => `${Number((share * 100).toPrecision(4))} %`;
  const destroy = plotIn(place, {
    kind: "cdf",
    label: `Distribution of ${metric.label}`,
    height: 320,
    data,
    describe: (index) => {
      const shares = curves.map((curve) => {
        const share = isTail ? 1 - curve.pooled[index] : curve.pooled[index];
        return `${curve.dut} ${percent(share)}`;
      });
      const side = isTail ? "above" : "up to";
      return `${side} ${withUnit(shown(xs[index], metric.decimals), metric.unit)}: ${shares.join(" · ")}`;
    },
    options: {
      series,
      bands,
      cursor: { focus: { prox: -1 } },
      scales: {
        x: { time: false, distr: logX ? 3 : 1, ...(logX ? { range: (u, min, max) => [min, max] } : {}) },
        y: isTail ? { distr: 3, range: () => [TAIL_LEAST, 1] } : { range: () => [0, 1] },
      },
      axes: [
        {
          ...style,
          label: withUnit(metric.label, metric.unit && `(${metric.unit})`),
          size: 30,
          labelSize: 20,
          values: (u, splits) => spaced(u, splits, splits.map((split) => compact(split)), "x"),
          ...(logX ? { splits: (u) => logSplits(u.scales.x.min, u.scales.x.max) } : {}),
        },
        {
          ...style,
          size: 62,
          values: (u, splits) => splits.map((split) => percent(split)),
          ...(isTail
            ? { splits: () => [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1] }
            : { splits: () => [0, 0.25, 0.5, 0.75, 0.9, 0.99] }),
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
  return { destroy, log: canLog ? logX : null };
}

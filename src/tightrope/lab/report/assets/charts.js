"use strict";

/** Whether values may be drawn on a logarithmic axis: all are positive. */
function positive(figure) {
  return figure.curves.every((curve) => [...curve.mean, ...curve.low].every((value) => value === null || value > 0));
}

/** Where an axis is linear although it is logarithmic further out: up to 1, or less where all is small. */
function threshold(figure) {
  const largest = Math.max(0, ...figure.curves.flatMap((curve) => curve.mean.map(Math.abs)));
  return largest >= 10 || largest === 0 ? 1 : 10 ** Math.floor(Math.log10(largest / 10));
}

/** How the vertical axis is drawn: "linear", "log", or "both", which is linear around zero. */
function vertical(figure, powers) {
  if (!powers || figure.axes !== "powers") return "linear";
  return positive(figure) ? "log" : "both";
}

/** Powers of ten from low to high; 2 and 5 times them too where there are few. */
function decades(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const steps = Math.log10(high / low) < 1.7 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((last - first) / 7));
  const ticks = [];
  for (let k = first; k <= last; k += steps.length > 1 ? 1 : every) ticks.push(...steps.map((step) => step * 10 ** k));
  return ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
}

function decadesAroundZero(low, high, start) {
  const first = low < -start ? 10 * start : start; // so that its labels do not crowd around zero
  const up = high > first ? decades(first, high) : [], down = low < -first ? decades(first, -low) : [];
  return [...down.map((tick) => -tick).reverse(), 0, ...up];
}

const WAYS = {
  linear: {
    scale: () => ({ distr: 1, range: (u, low, high) => padded(low, high) }),
    axis: () => ({}),
  },
  log: {
    scale: () => ({ distr: 3, log: 10, range: (u, low, high) => [low / 1.25, high * 1.25] }),
    axis: () => ({ splits: (u, k, low, high) => decades(low, high), filter: (u, splits) => splits }),
  },
  both: {
    scale: (start) => ({
      distr: 4,
      asinh: start,
      range: (u, low, high) => [low < 0 ? 1.4 * low : -0.15 * start, Math.max(1.4 * high, start)],
    }),
    axis: (start) => ({ splits: (u, k, low, high) => decadesAroundZero(low, high, start), filter: (u, splits) => splits }),
  },
};

function padded(low, high) {
  if (low === null) return [0, 1];
  const room = 0.08 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low >= 0 && low < room ? 0 : low - room, high + room];
}

/** The episodes from low to high; a single one has some to either side. */
function around(low, high, way) {
  if (low < high) return [low, high];
  return way === "log" ? [low / 2, 2 * low] : [low - 1, low + 1];
}

/** Of an axis of episodes: no tick is between two of them. */
const EPISODES = {
  linear: { incrs: Array.from({ length: 16 }, (_, k) => [10 ** k, 2 * 10 ** k, 5 * 10 ** k]).flat() },
  log: { ...WAYS.log.axis(), splits: (u, k, low, high) => decades(Math.max(1, low), high) },
};

/** Whether four digits are enough for all of them. */
function exact(values) {
  return values.every((value) => Number(value.toPrecision(4)) === value);
}

/** Draw a figure into `host`. `view`: {powers, hidden, key} says how; returns the chart of uPlot. */
function chart(host, figure, section, view) {
  const way = vertical(figure, view.powers), start = threshold(figure);
  const data = [section.episodes], series = [{}], bands = [];
  figure.curves.forEach((curve, k) => {
    const show = !view.hidden.has(section.curves[k].label), at = series.length;
    const line = { show, stroke: () => colour(k), dash: dash(k), width: 2, points: { show: curve.mean.filter((one) => one !== null).length < 3 } };
    const edge = { show, stroke: "transparent", width: 0, points: { show: false } };
    series.push(line, edge, edge);
    data.push(curve.mean, curve.low, curve.high);
    bands.push({ series: [at + 2, at + 1], fill: () => colour(k) + "2e" });
  });
  const axis = { stroke: () => tone("muted"), font: "12px system-ui, sans-serif", grid: { stroke: () => tone("rule"), width: 1 }, ticks: { show: false } };
  const across = view.powers ? "log" : "linear";
  const [first, last] = [section.episodes[0], section.episodes.at(-1)], home = around(first, last, across);
  const limits = [figure.limit].flat();
  const hover = element("div", { class: "hover", hidden: true });
  const options = {
    width: Math.max(200, host.clientWidth),
    height: host.clientWidth < 420 ? 220 : 270,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.25 },
    scales: {
      x: { time: false, distr: across === "log" ? 3 : 1, range: (u, low, high) => (first < last ? around(low, high, across) : home) },
      y: { ...WAYS[way].scale(start), ...(figure.limit === null || way !== "linear" ? {} : { range: (u, low, high) => padded(Math.min(low ?? Infinity, ...limits), Math.max(high ?? -Infinity, ...limits)) }) },
    },
    axes: [
      { ...axis, ...EPISODES[across], size: 30, label: "episodes", labelFont: axis.font, labelSize: 18, values: (u, splits) => splits.map(exact(splits) ? short : shown) },
      { ...axis, ...WAYS[way].axis(start), size: 54, values: (u, splits) => splits.map((one) => short(one).replace("-", "−")) },
    ],
    series,
    bands,
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false }, sync: { key: view.key } },
    hooks: {
      drawAxes: [(u) => limit(u, figure, section)],
      draw: [(u) => fits(u, figure, section, view, way)],
      setCursor: [(u) => point(u, hover, figure, section, view)],
      ready: [(u) => u.over.append(hover)],
    },
  };
  const made = new uPlot(options, data, host);
  made.home = home;
  return made;
}

/** The limit of a budget, one or one for each episode, behind the curves, with the ground above it coloured. */
function limit(u, figure, section) {
  if (figure.limit === null) return;
  const { left, top, width, height } = u.bbox, ink = u.ctx;
  ink.save();
  ink.beginPath();
  ink.rect(left, top, width, height);
  ink.clip();
  const limits = [figure.limit].flat(), right = left + width;
  const across = limits.length > 1 ? section.episodes.map((episode) => u.valToPos(episode, "x", true)) : [left, right];
  const places = across.map((x, k) => [x, u.valToPos(limits[k] ?? limits[0], "y", true)]);
  stroke(ink, tone("ink"), 1.2 * devicePixelRatio, [], places);
  ink.lineTo(across.at(-1), top);
  ink.lineTo(across[0], top);
  ink.fillStyle = "rgb(213 94 0 / 9%)";
  ink.fill();
  ink.fillStyle = tone("ink");
  ink.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const label = `${Array.isArray(figure.limit) ? "allowed so far" : "limit"} ${shown(limits.at(-1))} ${figure.unit}`;
  [ink.textAlign, ink.textBaseline] = [limits.length > 1 ? "right" : "left", "alphabetic"];
  ink.fillText(label, ...(limits.length > 1 ? free(u, figure, places, ink.measureText(label).width) : [left + 6 * devicePixelRatio, places[0][1] - 5 * devicePixelRatio]));
  ink.restore();
}

/** Where words so wide can end beside a limit that changes: above all lines, or below them if a curve ends above it. */
function free(u, { curves, limit: limits }, places, wide) {
  const last = places.length - 1, from = Math.max(0, places.findIndex(([x]) => x >= places[last][0] - wide - 6 * devicePixelRatio) - 1);
  const lines = curves.flatMap(({ mean }) => mean.slice(from).map((value) => u.valToPos(value, "y", true))).concat(places.slice(from).map(([, y]) => y));
  const below = curves.some(({ mean }) => mean[last] > limits[last]);
  return [places[last][0] - 6 * devicePixelRatio, below ? Math.max(...lines) + 14 * devicePixelRatio : Math.min(...lines) - 5 * devicePixelRatio];
}

/** The fitted powers, thin and dashed over their curves. */
function fits(u, figure, section, view, way) {
  if (way === "linear") return;
  const { left, top, width, height } = u.bbox, ink = u.ctx;
  ink.save();
  ink.beginPath();
  ink.rect(left, top, width, height);
  ink.clip();
  figure.curves.forEach(({ power }, k) => {
    if (!power || view.hidden.has(section.curves[k].label)) return;
    const last = section.episodes.at(-1), places = [];
    for (let i = 0; i <= 20; i++) {
      const t = power.first * (last / power.first) ** (i / 20);
      places.push([u.valToPos(t, "x", true), u.valToPos(power.factor * t ** power.exponent, "y", true)]);
    }
    stroke(ink, tone("ink"), devicePixelRatio, [4 * devicePixelRatio, 4 * devicePixelRatio], places);
  });
  ink.restore();
}

function stroke(ink, style, width, dashes, places) {
  ink.strokeStyle = style;
  ink.lineWidth = width;
  ink.setLineDash(dashes);
  ink.beginPath();
  places.forEach(([x, y], i) => (i ? ink.lineTo(x, y) : ink.moveTo(x, y)));
  ink.stroke();
}

/** What the visible curves are at a record, largest first: [[k, mean, low, high], …]. */
function readings(figure, section, view, at) {
  return figure.curves
    .map((curve, k) => [k, curve.mean[at], curve.low[at], curve.high[at]])
    .filter(([k, mean]) => mean !== null && !view.hidden.has(section.curves[k].label))
    .sort((a, b) => b[1] - a[1]);
}

/** The values under the pointer, beside it; the other charts of the section show only the line. */
function point(u, hover, figure, section, view) {
  const at = u.cursor.idx, here = u.root.matches(":hover") || u.root.parentElement === document.activeElement;
  hover.hidden = !here || at === null || at === undefined || u.cursor.left < 0;
  if (hover.hidden) return;
  hover.replaceChildren(
    element("strong", {}, `episode ${shown(section.episodes[at])}`),
    element("table", {}, readings(figure, section, view, at).map(([k, mean, low, high]) =>
      element("tr", {}, element("td", {}, swatch(k), " ", section.curves[k].label), element("td", {}, shown(mean)), element("td", { class: "muted" }, interval(low, high))))),
  );
  const room = u.over.clientWidth - hover.offsetWidth, x = u.cursor.left;
  hover.style.left = `${x + 14 <= room ? x + 14 : Math.max(Math.min(0, room), x - 14 - hover.offsetWidth)}px`;
  hover.style.top = "6px";
}

/** Show the episodes from low to high, or a part or a multiple of those that are shown. */
function zoom(u, factor) {
  const log = u.scales.x.distr === 3, to = log ? Math.log : Number, from = log ? Math.exp : Number;
  if (factor === null) return u.setScale("x", { min: u.home[0], max: u.home[1] });
  const [low, high] = [to(u.scales.x.min), to(u.scales.x.max)], middle = (low + high) / 2, half = ((high - low) / 2) * factor;
  return u.setScale("x", { min: Math.max(u.home[0], from(middle - half)), max: Math.min(u.home[1], from(middle + half)) });
}

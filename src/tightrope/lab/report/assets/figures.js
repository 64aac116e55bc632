"use strict";

/** Every figure on the page. */
const charts = new Set();

/** Say something to those who hear the page. */
function say(text) {
  document.getElementById("said").textContent = text;
}

/** Made when it is opened. */
function later(title, make) {
  const details = element("details", {}, element("summary", {}, title));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(make()); });
  return details;
}

/** A figure of the page: heading, chart, fitted powers, and the numbers behind it. */
class Drawn {
  constructor(figure, section, view, id) {
    Object.assign(this, { content: figure, section, view, chart: null });
    this.host = element("div", {
      class: "chart", id, tabindex: 0, role: "img",
      "aria-label": `${figure.title} against the episode, ${count(section.curves.length, "curve")}. Left and right arrows read the values, plus and minus zoom, 0 shows all; the numbers are in the table below.`,
      onkeydown: (event) => this.key(event),
      onclick: (event) => this.tap(event),
    });
    this.note = element("p", { class: "muted small" });
    this.powers = element("ul", { class: "powers" });
    this.figure = element("figure", {},
      element("h3", {}, figure.title),
      element("figcaption", {}, figure.unit ? `${figure.meaning}; ${figure.unit}` : figure.meaning),
      this.host, this.powers, this.note, later("Numbers", () => numbers(figure, section)));
  }

  draw() {
    const { content, section, view } = this;
    this.chart?.destroy();
    this.chart = chart(this.host, content, section, view);
    const way = vertical(content, view.powers), start = threshold(content);
    this.note.textContent = way === "both" ? `Vertical axis linear between ${positiveOnly(content) ? 0 : short(-start).replace("-", "−")} and ${short(start)}, logarithmic beyond.` : "";
    this.caption();
  }

  /** The powers of T that were fitted to the curves that are shown. */
  caption() {
    const { content, section, view } = this;
    const fitted = content.curves.map(({ power }, k) => ({ power, k })).filter(({ power, k }) => power && !view.hidden.has(section.curves[k].label));
    this.powers.replaceChildren(...(fitted.length ? [element("li", { class: "muted" }, "dashed, in the last decade:")] : []),
      ...fitted.map(({ power, k }) => element("li", { title: section.curves[k].label }, swatch(k), element("span", { class: "unseen" }, section.curves[k].label), element("span", {}, "T", element("sup", {}, exponent(power.exponent))))));
  }

  toggle(k, shows) {
    for (const at of [3 * k + 1, 3 * k + 2, 3 * k + 3]) this.chart.setSeries(at, { show: shows });
    this.caption();
  }

  /** A finger does not hover: where it taps, the values are shown. */
  tap(event) {
    const { left, top } = this.chart.over.getBoundingClientRect();
    this.chart.setCursor({ left: event.clientX - left, top: event.clientY - top });
  }

  key(event) {
    const { content, section, view, chart: u } = this, last = section.episodes.length - 1;
    const from = u.cursor.idx ?? last;
    const to = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last }[event.key];
    const factor = { "+": 0.5, "=": 0.5, "-": 2, 0: null }[event.key];
    if (to === undefined && factor === undefined) return;
    event.preventDefault();
    if (to === undefined) return zoom(u, factor);
    u.setCursor({ left: u.valToPos(section.episodes[to], "x"), top: 0 });
    say(`episode ${section.episodes[to]}: ` + readings(content, section, view, to).map(([k, mean, low, high]) => `${section.curves[k].label} ${shown(mean)} ${interval(low, high)}`).join("; "));
  }
}

function positiveOnly(figure) {
  return figure.curves.every(({ low, mean }) => [...low, ...mean].every((value) => value === null || value >= 0));
}

function redraw() {
  document.querySelectorAll(".legend").forEach((legend) => legend.querySelectorAll("svg").forEach((svg, k) => svg.replaceWith(swatch(k))));
  charts.forEach((one) => one.draw());
}

/** Whether somebody reads a table, or zooms, or points at a figure. */
function inUse() {
  const zoomed = [...charts].some(({ chart: u }) => u.scales.x.min > u.home[0] || u.scales.x.max < u.home[1]);
  return zoomed || document.querySelector("details[open], .u-over:hover, .chart:focus") !== null;
}

prefersDark.addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts.forEach((one) => one.draw()); } });

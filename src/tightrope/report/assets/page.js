"use strict";

const report = document.getElementById("report");

/** What the reader has chosen, section by section: it outlasts a refresh. */
const views = new Map();
const charts = new Set();

/** Say something to those who hear the page. */
function say(text) {
  document.getElementById("said").textContent = text;
}

function show(content) {
  charts.forEach((one) => one.chart?.destroy());
  charts.clear();
  report.replaceChildren(header(content), ...content.sections.map((section, k) => sectionOf(section, k, content)),
    element("footer", { class: "muted small" }, `Made by tightrope ${content.version}; drawn with uPlot.`));
  charts.forEach((one) => one.draw());
}

function header({ title, spread, sections, progress, live }) {
  const { finished, running, failed } = progress, runs = Object.keys(running), wrong = Object.entries(failed);
  const counts = [`${finished} run${finished === 1 ? "" : "s"} finished`, runs.length && `${runs.length} ${live ? "under way" : "not finished"}`, wrong.length && `${wrong.length} failed`];
  return element("header", {},
    element("h1", {}, title),
    element("p", { class: "muted" }, `${counts.filter(Boolean).join(", ")}. All numbers are exact expectations under the true model, up to the episode they stand at. Lines are means over seeds, bands the ${spread}.`),
    live ? element("p", { class: "muted", id: "live" }, "Live: the page follows the study.") : null,
    wrong.map(([run, why]) => element("p", { class: "failed" }, element("strong", {}, run), `: ${why}`)),
    sections.length === 0 ? element("p", {}, "Nothing has been recorded yet.") : null,
    sections.length > 1 ? element("nav", { "aria-label": "Sections" }, element("ul", {}, sections.map((section, k) =>
      element("li", {}, element("a", { href: `#section-${k}` }, headline(section)))))) : null);
}

function headline({ title, horizon }) {
  return `${title} · ${shown(horizon)} episodes`;
}

function sectionOf(section, k, content) {
  const name = headline(section);
  if (!views.has(name)) views.set(name, { powers: true, hidden: new Set(), key: name });
  const view = views.get(name), mine = [];
  const figures = section.figures.map((figure, i) => {
    const one = new Drawn(figure, section, view, `figure-${k}-${i}`);
    mine.push(one);
    charts.add(one);
    return one.figure;
  });
  return element("section", { id: `section-${k}`, "aria-labelledby": `title-${k}` },
    element("h2", { id: `title-${k}` }, name),
    section.units ? element("p", { class: "muted small" }, `Units: ${section.units}.`) : null,
    summary(section, content.spread),
    bar(section, view, mine),
    element("div", { class: "figures" }, figures),
    policies(section, view),
    later("Every run", () => everyRun(section)),
    later("Parameters", () => parameters(section)));
}

/** Made when it is opened. */
function later(title, make) {
  const details = element("details", {}, element("summary", {}, title));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(make()); });
  return details;
}

/** Which curves are shown, and on which axes. */
function bar(section, view, mine) {
  const legend = section.curves.map(({ label }, k) => element("button", {
    type: "button", "aria-pressed": String(!view.hidden.has(label)),
    onclick: (event) => {
      if (!view.hidden.delete(label)) view.hidden.add(label);
      const shows = !view.hidden.has(label);
      event.currentTarget.setAttribute("aria-pressed", String(shows));
      mine.forEach((one) => one.toggle(k, shows));
    },
  }, swatch(k), label));
  const axes = [["log–log", true], ["linear", false]].map(([words_, powers]) => element("button", {
    type: "button", "aria-pressed": String(view.powers === powers),
    onclick: () => {
      view.powers = powers;
      axes.forEach((button, i) => button.setAttribute("aria-pressed", String((i === 0) === powers)));
      mine.forEach((one) => one.draw());
    },
  }, words_));
  const zooms = [["−", "Zoom out", 2], ["+", "Zoom in", 0.5], ["all", "Show all episodes", null]].map(([words_, label, factor]) =>
    element("button", { type: "button", "aria-label": label, title: label, onclick: () => mine.forEach((one) => zoom(one.chart, factor)) }, words_));
  return element("div", { class: "bar" },
    element("div", { class: "legend", role: "group", "aria-label": "Curves" }, legend),
    element("div", { class: "tools" },
      element("div", { class: "group", role: "group", "aria-label": "Axes" }, axes),
      element("div", { class: "group", role: "group", "aria-label": "Zoom" }, zooms)));
}

/** A figure of the page: heading, chart, fitted powers, and the numbers behind it. */
class Drawn {
  constructor(figure, section, view, id) {
    Object.assign(this, { content: figure, section, view, chart: null });
    this.host = element("div", {
      class: "chart", id, tabindex: 0, role: "img",
      "aria-label": `${figure.title} against the episode, ${section.curves.length} curves. Left and right arrows read the values, plus and minus zoom, 0 shows all; the numbers are in the table below.`,
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

/** Ask for what is new until nobody answers any more. While somebody reads a table or zooms, the figures wait. */
function follow(drawn) {
  setTimeout(async () => {
    try {
      const answer = await fetch("content.json", { cache: "no-store" });
      if (!answer.ok) return follow(drawn);
      const found = await answer.json(), sections = JSON.stringify(found.sections);
      if (sections !== drawn && !inUse()) {
        show(found);
        drawn = sections;
      } else {
        report.querySelector("header").replaceWith(header(found));
      }
      follow(drawn);
    } catch {
      document.getElementById("live").textContent = "The command that served this page has ended; this is the last that it said.";
    }
  }, 2000);
}

function inUse() {
  const zoomed = [...charts].some(({ chart: u }) => u.scales.x.min > u.home[0] || u.scales.x.max < u.home[1]);
  return zoomed || report.querySelector("details[open], .u-over:hover, .chart:focus") !== null;
}

prefersDark.addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts.forEach((one) => one.draw()); } });

const content = JSON.parse(document.getElementById("content").textContent);
show(content);
if (content.live) follow(JSON.stringify(content.sections));

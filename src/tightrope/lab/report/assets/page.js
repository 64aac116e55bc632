"use strict";

const report = document.getElementById("report");

/** What the reader has chosen, section by section: it outlasts a refresh. */
const views = new Map();

function show(content) {
  charts.forEach((one) => one.chart?.destroy());
  charts.clear();
  report.replaceChildren(header(content), ...content.sections.map((section, k) => sectionOf(section, k, content)),
    element("footer", { class: "muted small" }, `Made by tightrope ${content.version}; drawn with uPlot.`));
  charts.forEach((one) => one.draw());
}

function header({ title, spread, sections, progress, live }) {
  const { finished, running, failed } = progress, runs = Object.keys(running), wrong = Object.entries(failed);
  const counts = [`${count(finished, "run")} finished`, runs.length && `${runs.length} ${live ? "under way" : "not finished"}`, wrong.length && `${wrong.length} failed`];
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
  return `${title} · ${count(horizon, "episode")}`;
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
    ...section.warnings.map((words) => element("p", { class: "failed" }, `Warning: ${words}`)),
    section.units ? element("p", { class: "muted small" }, `Units: ${section.units}.`) : null,
    summary(section, content.spread),
    bar(section, view, mine),
    element("div", { class: "figures" }, figures),
    policies(section, view),
    later("Every run", () => everyRun(section)),
    later("Parameters", () => parameters(section)));
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
    wide(element("div", { class: "legend", role: "group", "aria-label": "Curves" }, legend)),
    element("div", { class: "tools" },
      element("div", { class: "group", role: "group", "aria-label": "Axes" }, axes),
      element("div", { class: "group", role: "group", "aria-label": "Zoom" }, zooms)));
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

const content = JSON.parse(document.getElementById("content").textContent);
show(content);
if (content.live) follow(JSON.stringify(content.sections));

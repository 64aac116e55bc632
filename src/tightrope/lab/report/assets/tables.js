"use strict";

/**
 * A table that sorts by any of its columns, from the keyboard too.
 * `headings`: words; `rows`: cells as {text, value, note, over}, the first of each row its heading.
 */
function sortable(caption, headings, rows) {
  const body = element("tbody");
  const heads = headings.map((heading, k) =>
    element("th", { scope: "col", "aria-sort": "none" }, element("button", { type: "button", onclick: () => sort(k) }, heading)));
  const fill = (lines) => body.replaceChildren(...lines.map((cells) => element("tr", {}, cells.map(cell))));
  const sort = (k) => {
    const falling = heads[k].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[k].setAttribute("aria-sort", falling ? "descending" : "ascending");
    fill([...rows].sort((a, b) => (falling ? -1 : 1) * order(a[k].value, b[k].value)));
  };
  fill(rows);
  return scrolling(element("table", {}, element("caption", {}, element("span", {}, caption)), element("thead", {}, element("tr", {}, heads)), body), caption);
}

function cell({ text, note, over }, k) {
  return element(k ? "td" : "th", k ? { class: over ? "over" : null } : { scope: "row" }, text, note ? element("span", { class: "interval" }, ` ${note}`) : null);
}

/** Numbers by size, words by the alphabet; what is not known comes last, however it is sorted. */
function order(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  return (a === null) - (b === null);
}

/** A table that may be wider than the screen can be scrolled with the keyboard. */
function scrolling(table, label) {
  return wide(element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, table));
}

function lastKnown(values) {
  return values.findLastIndex((value) => value !== null);
}

const amount = (value, note = "") => ({ text: shown(value), value: value ?? null, note });
const words = (text) => ({ text, value: text });

/** A line for each learner: where every figure ended, and with which powers of T. */
function summary(section, spread) {
  const headings = ["learner", "seeds"];
  for (const figure of section.figures) {
    headings.push(figure.limit === null ? named(figure) : `${named(figure)} (limit ${shown(figure.limit)})`);
    if (figure.axes === "powers") headings.push("power of T");
  }
  const rows = section.curves.map((curve, k) => {
    const cells = [words(curve.label), amount(curve.seeds.length)];
    for (const figure of section.figures) {
      const { mean, low, high, power } = figure.curves[k], at = lastKnown(mean);
      const value = amount(mean[at], interval(low[at], high[at]));
      cells.push({ ...value, over: over(mean[at], figure.limit) });
      if (figure.axes === "powers") cells.push(power ? { text: exponent(power.exponent), value: power.exponent, note: exponents(power) } : amount(null));
    }
    return cells;
  });
  return sortable(`After ${count(section.episodes.at(-1), "episode")}: mean over seeds, in brackets the ${spread}. Power of T: how the mean grew in the last decade of episodes.`, headings, rows);
}

/** Two decimals, and no minus before zero. */
function exponent(value) {
  return (Math.round(100 * value) / 100 + 0).toFixed(2).replace("-", "−");
}

function exponents({ low, high }) {
  return low === null ? "" : `[${exponent(low)}, ${exponent(high)}]`;
}

function named(figure) {
  return figure.unit ? `${figure.title.toLowerCase()}, ${figure.unit}` : figure.title.toLowerCase();
}

/** Over its limit, beyond rounding. */
function over(value, limit) {
  return limit !== null && value !== null && value !== undefined && value > limit + 1e-9 * Math.abs(limit);
}

/** A line for each run. */
function everyRun(section) {
  const rows = section.curves.flatMap((curve, k) => curve.seeds.map((seed, i) => [
    words(curve.label), amount(seed),
    ...section.figures.map((figure) => ({ ...amount(figure.curves[k].last[i]), over: over(figure.curves[k].last[i], figure.limit) })),
  ]));
  return sortable("The last record of every run.", ["learner", "seed", ...section.figures.map(named)], rows);
}

/** What a figure shows, in numbers. */
function numbers(figure, section) {
  const limits = Array.isArray(figure.limit) ? figure.limit : null;
  const rows = section.episodes.map((episode, at) => [
    amount(episode), ...figure.curves.map(({ mean, low, high }) => amount(mean[at], interval(low[at], high[at]))), ...(limits ? [amount(limits[at])] : [])]);
  return sortable(`${figure.title}: ${figure.meaning}`, ["episode", ...section.curves.map(({ label }) => label), ...(limits ? ["allowed so far"] : [])], rows);
}

/** What the learners ran with: a line for each parameter. */
function parameters(section) {
  const names = [...new Set(section.curves.flatMap(({ settings }) => Object.keys(settings)))];
  const rows = names.map((name) => [words(name), ...section.curves.map(({ settings }) => {
    const value = settings[name];
    return typeof value === "number" ? amount(value) : { text: value === undefined ? "–" : String(value), value: value === undefined ? null : String(value) };
  })]);
  return sortable("Every parameter that the learners ran with.", ["parameter", ...section.curves.map(({ label }) => label)], rows);
}

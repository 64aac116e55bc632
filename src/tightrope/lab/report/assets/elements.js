"use strict";

/** An element: element("td", {class: "over"}, "words", another). Words are text, never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** What may be wider than the screen, marked while there is more of it to the right. */
function wide(made) {
  const look = () => made.classList.toggle("more", made.scrollLeft + made.clientWidth < made.scrollWidth - 1);
  made.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(made);
  return made;
}

/** Four digits, thousands set apart by thin spaces. */
function shown(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  let text;
  if (size >= 1000) text = Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u2009");
  else if (size !== 0 && size < 1e-3) text = value.toExponential(2);
  else text = Number(value.toPrecision(4)).toString();
  return text.replace("-", "−");
}

/** So many of them: "1 episode", "2 episodes". */
function count(n, thing) {
  return `${shown(n)} ${thing}${n === 1 ? "" : "s"}`;
}

/** A tick: 1, 10, 100, 1k, 10k, 1M. */
function short(value) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= unit) return Number((value / unit).toPrecision(4)) + name;
  }
  return Number(value.toPrecision(4)).toString();
}

/** The interval around a mean, in words; nothing for a single seed. */
function interval(low, high) {
  return low === null || low === undefined || high === null ? "" : `[${shown(low)}, ${shown(high)}]`;
}

/** The colours of Okabe and Ito, which colour-blind readers tell apart; beyond them, the lines change. */
const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
const DARK = ["#4AA3DF", "#F07F3C", "#2BBF96", "#E29CC6", "#F0B23C", "#8FD3FF", "#E8E8E8"];
const DASHES = [[], [8, 4], [2, 3]];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function colour(k) {
  const colours = prefersDark.matches && !printing ? DARK : LIGHT;
  return colours[k % colours.length];
}

function dash(k) {
  return DASHES[Math.floor(k / LIGHT.length) % DASHES.length];
}

/** What the style sheet calls --name, as it is now. */
function tone(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A piece of the line of curve k. */
function swatch(k) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "line");
  for (const [key, value] of Object.entries({ width: 22, height: 10, "aria-hidden": "true" })) svg.setAttribute(key, value);
  for (const [key, value] of Object.entries({ x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour(k), "stroke-width": 3, "stroke-dasharray": dash(k).join(" ") })) {
    line.setAttribute(key, value);
  }
  svg.append(line);
  return svg;
}

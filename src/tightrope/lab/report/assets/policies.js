"use strict";

/** On a grid, moves that are called so are drawn as arrows. */
const ARROWS = { up: "↑", right: "→", down: "↓", left: "←" };

/** States of more names than this are not set in rows by name. */
const MOST_ROWS = 40;

/** The colour of action k of n. */
function actionColour(k, n) {
  return n <= LIGHT.length ? LIGHT[k] : `hsl(${Math.round((360 * k) / n)} 60% 55%)`;
}

/** What is chosen in a state, in words: "up 70 %, left 30 %". */
function choices(chosen, actions) {
  return [...chosen].sort((a, b) => b[1] - a[1]).map(([k, share]) => `${actions[k]} ${Math.round(100 * share)} %`).join(", ");
}

/**
 * A state as a box: its colours are what is chosen, in their shares; the fainter, the less often it is visited.
 * Where nobody knows how often that is, `visits` is null.
 */
function state({ name, cell }, [visits, chosen], actions) {
  let from = 0;
  const stops = chosen.map(([k, share]) => {
    const to = from + 100 * share, stop = `${actionColour(k, actions.length)} ${from}% ${to}%`;
    from = to;
    return stop;
  });
  const often = visits === null ? "" : `${shown(Number((100 * visits).toPrecision(3)))} % of episodes; `;
  const words = `${name}: ${often}${choices(chosen, actions)}`;
  const box = element("div", { class: "state", role: "listitem", title: words, "aria-label": words });
  box.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const unseen = visits !== null && visits < 5e-4;
  box.style.opacity = unseen ? 0.1 : 0.3 + 0.7 * Math.sqrt(Math.min(1, visits ?? 1));
  if (cell) {
    [box.style.gridRow, box.style.gridColumn] = cell;
    const [most] = [...chosen].sort((a, b) => b[1] - a[1]);
    box.textContent = unseen ? "" : (ARROWS[actions[most[0]]] ?? "");
  }
  return box;
}

/** What a state is called whatever the step. */
const anyStep = ({ name }) => name.replace(/, step \d+$/, "");

/** All layers of one policy, side by side, a row for each name; layers of cells as grids. */
function layers(of, { layers: all, actions }, label) {
  let at = 0;
  const found = [...new Set(all.flat().map(anyStep))];
  const rows = found.length <= MOST_ROWS && !all.flat().some(({ cell }) => cell) ? found : [];
  const called = element("div", { class: "called", "aria-hidden": "true" }, element("h4", {}, "\u00a0"), element("div", { class: "states" }, rows.map((name) => element("div", { title: name }, name))));
  return wide(element("div", { class: "layers", tabindex: 0, role: "group", "aria-label": label }, rows.length ? called : null, all.map((states, k) => {
    const grid = states.every(({ cell }) => cell);
    const boxes = states.map((one) => {
      const box = state(one, of[at++], actions);
      if (rows.length) box.style.gridRow = rows.indexOf(anyStep(one)) + 1;
      return box;
    });
    return element("div", { class: grid ? "layer grid" : "layer" }, element("h4", {}, `step ${k}`), element("div", { class: "states", role: "list" }, boxes));
  })));
}

/** Which colour is which action. */
function actionLegend(actions) {
  return element("ul", { class: "powers" }, actions.map((name, k) => {
    const mark = element("span", { class: "mark" });
    mark.style.background = actionColour(k, actions.length);
    return element("li", {}, mark, name);
  }));
}

/** What a learner plays, next to the best fixed policy in hindsight. */
function policies({ policies: found, horizon }, view) {
  if (found.words) return element("div", {}, element("h3", {}, "Policies"), element("p", { class: "muted" }, found.words));
  const learned = element("div"), table = element("div");
  const choose = (k) => {
    const { label, episode, states } = found.learned[k];
    view.policy = label;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === k)));
    const when = episode === horizon ? "at the end" : `after ${count(episode, "episode")}`;
    learned.replaceChildren(element("h3", {}, `${label}, ${when}`), layers(states, found, `Policy of ${label}`));
    table.replaceChildren(later("Numbers", () => policyNumbers(found, k)));
  };
  const buttons = found.learned.map(({ label }, k) => element("button", { type: "button", onclick: () => choose(k) }, label));
  choose(Math.max(0, found.learned.findIndex(({ label }) => label === view.policy)));
  return element("figure", { class: "wide" },
    element("h3", {}, "Policies"),
    element("figcaption", {}, `What is chosen in each state, step by step (seed ${found.seed}); the fainter a state, the fewer episodes come by.`),
    actionLegend(found.actions),
    wide(element("div", { class: "legend", role: "group", "aria-label": "Learner" }, buttons)),
    element("div", { class: "policies" }, learned, element("div", {}, element("h3", {}, "best fixed policy in hindsight"), layers(found.hindsight, found, "Best fixed policy in hindsight"))),
    table);
}

function policyNumbers(found, k) {
  const { label, states } = found.learned[k];
  let at = 0;
  const share = (visits) => amount(Number((100 * visits).toPrecision(3)));
  const rows = found.layers.flatMap((layer, step) => layer.map(({ name }) => {
    const [mine, best] = [states[at], found.hindsight[at++]];
    return [words(name), amount(step), share(mine[0]), words(choices(mine[1], found.actions)), share(best[0]), words(choices(best[1], found.actions))];
  }));
  return sortable(`${label} and the best fixed policy in hindsight, state by state; visits in per cent of the episodes.`,
    ["state", "step", "visits", label, "visits in hindsight", "in hindsight"], rows);
}

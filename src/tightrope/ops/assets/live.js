"use strict";

/** Seconds between two looks, and states beyond which nobody looks at them one by one. */
const EVERY = 2, MOST_STATES = 1500;

const host = document.getElementById("report");
const { learners, version } = JSON.parse(document.getElementById("content").textContent);

/** What is answered at a place of this service. */
async function get(place) {
  const answer = await fetch(place, { cache: "no-store" });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail);
  return found;
}

/** A learner on the page: its section, and what was last drawn of it. */
class Learner {
  constructor(name, k) {
    this.name = name;
    this.place = `/learners/${encodeURIComponent(name)}`;
    this.missing = element("div");
    this.head = element("div");
    this.spending = element("div");
    this.standings = element("div");
    this.corrected = element("div");
    this.since = element("p", { class: "muted small" });
    this.figures = element("div", { class: "figures" });
    this.policy = element("figure", { class: "wide" });
    this.section = element("section", { id: `learner-${k}`, "aria-labelledby": `name-${k}` },
      element("h2", { id: `name-${k}` }, name), this.missing, this.head, this.spending, this.standings, this.corrected, this.since, this.figures, this.policy);
    this.drawn = [];
    this.event = -1;
  }

  /** Look, or say why that is not to be had; returns whether it was. */
  async follow() {
    try {
      await this.look();
      this.missing.replaceChildren();
      return true;
    } catch (error) {
      const words = `No answer: ${error.message}.${this.event < 0 ? "" : " This is the last that was heard."}`;
      this.missing.replaceChildren(element("p", { class: "failed" }, words));
      return false;
    }
  }

  /** Ask what is new; the figures wait while somebody reads them. */
  async look() {
    const state = await get(`${this.place}/state`);
    this.space ??= await get(`${this.place}/space`);
    const stays = state.event === this.event || (this.event >= 0 && inUse());
    const [series, policy, standings, { corrections = [] } = {}] = stays ? [] : await Promise.all(["series", "policy", "challengers", "corrections"].map((what) => get(`${this.place}/${what}`)));
    this.head.replaceChildren(...this.headline(state));
    if (stays) return;
    this.event = state.event;
    this.spending.replaceChildren(this.table(state));
    this.standings.replaceChildren(...this.others(state, standings));
    this.corrected.replaceChildren(...this.corrections(corrections));
    this.draw(state, series);
    this.policy.replaceChildren(...this.states(policy));
  }

  headline({ learner, told, open, given_up, expired, retracted, left_out, correcting, epoch, loss, loss_unit, spending, trouble }) {
    const counts = [`${count(told, "episode")} learned`, `${shown(open)} open`, given_up && `${shown(given_up)} given up${expired ? ` (${shown(expired)} expired since the start)` : ""}`,
      retracted && `${shown(retracted)} retracted`, left_out && `${shown(left_out)} left out`, `epoch ${shown(epoch)}`];
    return [
      element("p", { class: "muted" }, `${learner.learner}: ${counts.filter(Boolean).join(", ")}. Loss so far ${[shown(loss), loss_unit].filter(Boolean).join(" ")}.`),
      ...spending.filter(({ stopped }) => stopped).map(({ name }) => element("p", { class: "failed" }, `The stop-loss of ${name} has the safe policy played.`)),
      correcting ? element("p", {}, "A correction is in progress; policies are those of before.") : null,
      trouble ? element("p", { class: "failed" }, element("strong", {}, "Trouble"), `: ${trouble}`) : null,
    ].filter(Boolean);
  }

  table({ spending, told }) {
    const rows = spending.map((one) => [
      words(one.unit ? `${one.name}, ${one.unit}` : one.name),
      amount(one.spent), amount(one.allowed),
      { text: one.share === null ? "–" : `${shown(100 * one.share)} %`, value: one.share, over: over(one.spent, one.allowed) },
      { ...amount(told ? one.spent / told : null), over: told > 0 && over(one.spent, one.allowed) },
      amount(one.budget), amount(one.price, one.price_unit)]);
    return sortable("What was spent along all paths that were told, in the units of each budget; allowed so far is, for each episode, the budget when it was told.",
      ["budget", "spent", "allowed so far", "share spent", "average per\u00a0episode", "budget now, per\u00a0episode", "price of one unit"], rows);
  }

  /** The champion and, by name, its challengers, if there are any; and why one learns no more. */
  others({ loss_unit, spending }, standings) {
    if (standings.length < 2) return [];
    const named = (what, unit) => (unit ? `${what}, ${unit}` : what);
    standings.sort((a, b) => b.champion - a.champion || order(a.name, b.name));
    const average = (sum, { weighed }, error = null) => amount(weighed ? sum / weighed : null, weighed > 1 && error !== null ? `± ${shown(error / weighed)}` : "");
    const rows = standings.map((one) => [
      words(one.name), words(one.champion ? "champion" : one.failed ? "failed" : "challenger"), amount(one.weighed, one.uncovered ? `${shown(one.uncovered)} left out` : ""), average(one.would_have_lost, one),
      ...spending.map(({ name }) => average(one.would_have_spent[name], one, one.standard_errors[name]))]);
    return [
      sortable("What each learner would have lost and spent per episode, had its policy been played: averages over the episodes weighed, estimated by importance, ± their standard errors; left out are those whose policy may not do all that this one may.",
        ["learner", "is", "episodes weighed", named("loss", loss_unit), ...spending.map(({ name, unit }) => named(`use of ${name}`, unit))], rows),
      ...standings.filter(({ failed }) => failed).map(({ name, failed }) => element("p", { class: "failed" }, element("strong", {}, name), ` learns no more: ${failed}`)),
    ];
  }

  /** What was retracted and amended, by whom and why; the newest first. */
  corrections(found) {
    if (!found.length) return [];
    const what = ({ kind, episodes, undoes }) => {
      if (kind === "retract") return `retracts ${count(episodes.length, "episode")}`;
      return kind === "amend" ? `amends episode ${episodes[0]}` : `undoes event ${undoes[0]}`;
    };
    const rows = found.toReversed().map((one) => [
      amount(one.event), words(new Date(1000 * one.time).toISOString().slice(0, 19).replace("T", " ")), words(one.author || "–"),
      words(what(one)), amount(one.left_out.length), words(one.undone_by === null ? "holds" : `undone by event ${one.undone_by}`), words(one.reason || "–")]);
    return [sortable("Corrections of what was learned.", ["event", "time, UTC", "by", "what", "left out", "state", "reason"], rows)];
  }

  /** For each budget what is used and what it costs the learner, since the service was started. */
  draw({ spending }, series) {
    const from = series.told.findIndex((told) => told > 0);
    this.drawn.forEach((one) => { one.chart?.destroy(); charts.delete(one); });
    this.drawn = [];
    this.since.textContent = from < 0 ? "" : `Charts begin when the service was started, ${series.told[0] ? `after ${count(series.told[0], "episode")}` : "before the first episode"}.`;
    if (from < 0) return this.figures.replaceChildren(element("p", { class: "muted" }, "Nothing has been told yet."));
    const section = { episodes: series.told.slice(from), curves: [{ label: this.name }] };
    const view = { powers: false, hidden: new Set(), key: this.name };
    const none = section.episodes.map(() => null);
    const figure = (title, meaning, unit, limit, column, i) => ({
      title, meaning, unit, limit, axes: "plain", curves: [{ mean: column.slice(from).map((row) => row[i]), low: none, high: none, power: null }],
    });
    spending.forEach(({ name, unit, price_unit }, i) => {
      for (const one of [
        figure(`Use of ${name}`, "per episode, on average so far, and what was allowed at the time", unit, series.allowed.slice(from).map((row) => row[i]), series.use, i),
        figure(`Price of ${name}`, "what a unit of it is worth to the learner", price_unit, null, series.price, i),
      ]) {
        const made = new Drawn(one, section, view, `${this.section.id}-${this.drawn.length}`);
        this.drawn.push(made);
        charts.add(made);
      }
    });
    this.figures.replaceChildren(...this.drawn.map((one) => one.figure));
    this.drawn.forEach((one) => one.draw());
  }

  /** What would be done in each state, were an episode asked for now. */
  states(policy) {
    const { states, layers: sizes, actions } = this.space, chosen = states.map(() => []);
    policy.state.forEach((s, i) => { if (policy.probability[i] >= 0.005) chosen[s].push([policy.action[i], policy.probability[i]]); });
    const title = [element("h3", {}, "Policy"), element("figcaption", {}, "What would be done in each state, step by step, in an episode asked for now.")];
    if (states.length > MOST_STATES) return [...title, element("p", { class: "muted" }, `There are ${shown(states.length)} states, too many to show here.`)];
    let at = 0;
    const found = { actions, layers: sizes.slice(0, -1).map((size) => Array.from({ length: size }, () => ({ name: states[at++], cell: null }))) };
    const rows = found.layers.flatMap((layer, step) => layer.map(({ name }) => [words(name), amount(step)]));
    rows.forEach((row, s) => row.push(words(choices(chosen[s], actions))));
    return [...title, actionLegend(actions), layers(chosen.slice(0, at).map((one) => [null, one]), found, "Policy"),
      later("Numbers", () => sortable("What would be done in each state.", ["state", "step", "choices"], rows))];
  }
}

const shownLearners = learners.map((name, k) => new Learner(name, k));
const following = element("p", { class: "muted", id: "following" }, "Live: the page follows the service.");
host.replaceChildren(
  element("header", {}, element("h1", {}, "tightrope, live"), following,
    element("nav", { "aria-label": "Learners" }, element("ul", {},
      learners.length > 1 ? learners.map((name, k) => element("li", {}, element("a", { href: `#learner-${k}` }, name))) : null,
      element("li", {}, element("a", { href: "/docs" }, "calls")), element("li", {}, element("a", { href: "/metrics" }, "metrics"))))),
  ...shownLearners.map(({ section }) => section),
  element("footer", { class: "muted small" }, `tightrope ${version}; drawn with uPlot.`));

/** Each for itself: who is being opened keeps nobody from being shown. */
async function follow() {
  const heard = await Promise.all(shownLearners.map((one) => one.follow()));
  following.textContent = heard.some(Boolean) ? "Live: the page follows the service." : "No answer; the page asks again.";
  setTimeout(follow, 1000 * EVERY);
}
follow();

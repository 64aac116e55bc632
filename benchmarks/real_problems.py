"""Learners, rules of thumb and hindsight on recorded days: `python -m benchmarks.real_problems` writes
docs/explanation/real-problems.md's tables and pictures (seed 0; about a minute).

Everything is an exact expectation under the model of the problem and the recorded losses, in the problem's own units.
"""

from collections.abc import Callable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import tightrope as tr
from benchmarks.page import DOCS, table, write
from tightrope.lab import figures
from tightrope.lab.figures import INK, MUTED, PALETTE, STYLE
from tightrope.learners.base import Episode
from tightrope.planning.hindsight import HindsightLP
from tightrope.problems import PROBLEMS
from tightrope.problems.losses import Replay
from tightrope.problems.suite import ev_charging, low_carbon_compute
from tightrope.problems.traces import read_rows
from tightrope.space import FloatArray

PAGE = DOCS / "explanation" / "real-problems.md"
LEARNERS = ("ucpd-practical", "ucpd-practical-0.2", "ucpd", "follow-the-leader", "opt-cmdp")

#: Returns the action in each state, given the problem, the losses of the day before (None on the first), and the day.
Plan = Callable[[tr.Problem, FloatArray | None, int], dict[int, str]]


class Rule:
    """A rule of thumb as a learner: it uses the losses of the day before, and learns nothing else."""

    feedback = "full"
    epoch = 1

    def __init__(self, problem: tr.Problem, name: str, plan: Plan) -> None:
        self.problem, self.plan, self.space, self.budgets = problem, plan, problem.space, problem.budgets
        self.multipliers = np.zeros(len(self.budgets))
        self.settings: dict[str, float | str] = {"learner": name}
        self.day = 1
        self.policy = self._policy(None)

    def observe(self, episode: Episode) -> None:
        self.day += 1
        self.policy = self._policy(np.asarray(episode.loss) * self.problem.loss_scale + self.problem.loss_offset)

    def _policy(self, yesterday: FloatArray | None) -> tr.Policy:
        chosen = self.plan(self.problem, yesterday, self.day)
        names = self.problem.action_names
        first = np.append(True, np.diff(self.space.pairs[:, 0]) != 0)
        probabilities = np.zeros(self.space.n_pairs)
        for i, (s, a) in enumerate(self.space.pairs.tolist()):
            probabilities[i] = names[a] == chosen[s] if s in chosen else first[i]
        return tr.Policy(self.space, probabilities)


def states(problem: tr.Problem) -> list[tuple[int, str, int]]:
    """Return number, name and step of every state with a choice."""
    found = []
    for s, name in enumerate(problem.state_names[:-1]):
        base, _, step = name.rpartition(", step ")
        if base and base not in ("away", "done"):
            found.append((s, base, int(step)))
    return found


def hourly(problem: tr.Problem, yesterday: FloatArray, action: str) -> FloatArray:
    """Return the cost of an action the day before, (n_steps,), in the first state of each step that has it."""
    cost = np.full(problem.space.n_layers, np.nan)
    number = problem.action_names.index(action)
    for j, (s, a, _) in enumerate(problem.space.tuples.tolist()):
        step = problem.state_name(s).rpartition(", step ")[2]
        if a == number and step.isdigit() and np.isnan(cost[int(step)]):
            cost[int(step)] = yesterday[j]
    return cost


def charge_at_once(problem: tr.Problem, yesterday: FloatArray | None, day: int) -> dict[int, str]:
    """Charge at full power from arrival until the car is full."""
    return {s: _rate(float(name.split()[0])) for s, name, _ in states(problem)}


def cheapest_hours(problem: tr.Problem, yesterday: FloatArray | None, night: int) -> dict[int, str]:
    """Charge at full power in as many hours as needed: of those left, the cheapest of the night before."""
    return _cheapest(problem, yesterday)


def selling(problem: tr.Problem, yesterday: FloatArray | None, night: int) -> dict[int, str]:
    """As `cheapest_hours`, and sell a unit in each of the two dearest hours before midnight of the night before."""
    return _cheapest(problem, yesterday, sell=2)


def sparing(problem: tr.Problem, yesterday: FloatArray | None, night: int) -> dict[int, str]:
    """As `selling`, but every other night leave the last unit out, which uses the budget of missing energy."""
    return _cheapest(problem, yesterday, sell=2, spare=night % 2 == 1)


def _cheapest(
    problem: tr.Problem, yesterday: FloatArray | None, *, sell: int = 0, spare: bool = False
) -> dict[int, str]:
    if yesterday is None:
        return charge_at_once(problem, None, 1)
    price, plan = hourly(problem, yesterday, "3.7 kW"), {}
    dearest = np.argsort(-np.nan_to_num(price[:8], nan=-np.inf), kind="stable")[:sell]
    for s, name, step in states(problem):
        there = float(name.split()[0])
        missing = max(0.0, there - spare * ev_charging.UNIT)
        hours = int(np.ceil(round(missing / ev_charging.UNIT) / 3))
        left = np.arange(step, len(price))
        chosen = left[np.argsort(price[left], kind="stable")[:hours]]
        plan[s] = _rate(missing) if step in chosen else "off"
        if step in dearest and there < ev_charging.UNIT * ev_charging.MOST - 1:
            plan[s] = "discharge"
    return plan


def _rate(missing: float) -> str:
    units = min(3, round(missing / ev_charging.UNIT))
    return ("off", "3.7 kW", "7.4 kW", "11 kW")[units]


def run_at_once(problem: tr.Problem, yesterday: FloatArray | None, day: int) -> dict[int, str]:
    """Run all jobs that are waiting, at once."""
    return {s: f"run {min(int(name.split()[0]), 3)}" for s, name, _ in states(problem)}


def cleanest_hours(problem: tr.Problem, yesterday: FloatArray | None, day: int) -> dict[int, str]:
    """Run what fits in the 14 cleanest off-peak hours of yesterday and from 22:00 on; else one job, once 7 wait."""
    if yesterday is None:
        return run_at_once(problem, None, day)
    emitted = np.nan_to_num(hourly(problem, yesterday, "run 1"), nan=np.inf)
    emitted[list(low_carbon_compute.PEAK)] = np.inf
    clean = set(np.argsort(emitted, kind="stable")[:14].tolist())
    plan = {}
    for s, name, step in states(problem):
        waiting = int(name.split()[0])
        all_of_it = step in clean or step >= 22
        plan[s] = f"run {min(waiting, 3) if all_of_it else int(waiting >= 7)}"
    return plan


def nothing_special(problem: tr.Problem, yesterday: FloatArray | None, day: int) -> dict[int, str]:
    """Use a standard turnaround always."""
    return {s: "standard" for s, _, _ in states(problem)}


def by_the_clock(problem: tr.Problem, yesterday: FloatArray | None, day: int) -> dict[int, str]:
    """Use a second crew from 30 minutes of delay on, and the spare aircraft from 150 on, but not in the evening."""
    plan = {}
    for s, name, step in states(problem):
        late = int(name.split()[0])
        plan[s] = "spare" if late >= 150 and step < 3 else "quick" if late >= 30 else "standard"
    return plan


@dataclass(frozen=True)
class Setting:
    """A problem, its rules of thumb (learners are compared with the last one), and the words for its page."""

    name: str
    rules: dict[str, Plan]
    days: str
    one: str


SETTINGS = (
    Setting(
        "ev-charging",
        {
            "charge at once": charge_at_once,
            "cheapest hours of last night": cheapest_hours,
            "the same, and sell in the two dearest": selling,
            "the same, and save the last 3.7 kWh every other night": sparing,
        },
        "3,659 nights",
        "night",
    ),
    Setting(
        "low-carbon-compute",
        {"run at once": run_at_once, "cleanest hours of yesterday": cleanest_hours},
        "854 days",
        "day",
    ),
    Setting(
        "flight-turnaround",
        {"standard turnarounds": nothing_special, "by the clock": by_the_clock},
        "363 days",
        "day",
    ),
)


@dataclass(frozen=True)
class Played:
    """Loss and uses of each episode, in own units."""

    loss: FloatArray  # (T,)
    uses: FloatArray  # (I, T)


def play(problem: tr.Problem, learner: object, episodes: int) -> Played:
    """Play all recorded days."""
    history = tr.run(problem, learner, episodes=episodes, records=episodes, spacing="linear", regret="never")  # type: ignore[arg-type]
    columns = history.table(problem)
    loss = np.diff(np.array(columns["loss"]), prepend=0.0)
    uses = [np.diff(np.array(columns[name]), prepend=0.0) for name in columns if name.startswith("use_")]
    return Played(loss, np.array(uses))


def hindsight(problem: tr.Problem) -> tuple[Played, Played]:
    """Return the best fixed policy of all days within the budgets, and the best of every day within them every day."""
    assert isinstance(problem.losses, Replay)
    f, g = problem.losses.scenarios, problem.constraints.mean
    program = HindsightLP(problem.mdp, g, problem.budgets)

    def uses(theta: FloatArray) -> FloatArray:
        return problem.use_in_units(g @ theta)

    best = program.solve(f.mean(axis=0)).occupancy
    fixed = Played(
        np.array([problem.loss_in_units(float(x), 1.0) for x in f @ best]),
        np.repeat(uses(best)[:, None], len(f), axis=1),
    )
    daily = [program.solve(row) for row in f]
    known = Played(
        np.array([problem.loss_in_units(solution.value, 1.0) for solution in daily]),
        np.array([uses(solution.occupancy) for solution in daily]).T,
    )
    return fixed, known


def all_of(setting: Setting) -> tuple[tr.Problem, dict[str, Played]]:
    """Play learners, rules and hindsight on the recorded days of a problem."""
    problem = tr.make(setting.name)
    episodes = PROBLEMS[setting.name].episodes
    assert episodes is not None
    found = {name: play(problem, Rule(problem, name, plan), episodes) for name, plan in setting.rules.items()}
    found |= {name: play(problem, name, episodes) for name in LEARNERS}
    found["best fixed policy in hindsight"], found[f"best for every {setting.one}, known beforehand"] = hindsight(
        problem
    )
    return problem, found


def table_of(setting: Setting, problem: tr.Problem, found: dict[str, Played]) -> str:
    """Return the table: a row for each of them."""
    unit, limits = problem.loss_unit, problem.use_in_units(problem.budgets)
    rule = found[list(setting.rules)[-1]]
    budgets = [
        f"{name} ({limit:g} {u})"
        for name, limit, u in zip(problem.constraint_names, limits, problem.constraint_units, strict=True)
    ]
    head = ("", f"{unit} a {setting.one}", f"{unit} in all", *budgets, f"saved against the rule, {unit}")
    rows = []
    for name, played in found.items():
        uses = [
            f"{round(use, 2) + 0.0:.2f}{' **over**' if use > 1.005 * limit else ''}"
            for use, limit in zip(played.uses.mean(axis=1), limits, strict=True)
        ]
        saved = (rule.loss - played.loss).sum()
        rows.append(
            (
                name,
                f"{played.loss.mean():.3f}",
                f"{played.loss.sum():,.0f}",
                *uses,
                "" if played is rule else f"{saved:+,.0f}",
            )
        )
    return table(head, rows)


def yearly(found: dict[str, Played]) -> str:
    """Return euros a night, year by year, of ev-charging."""
    _, rows = read_rows("dutch-day-ahead-prices")
    years = np.array([int(row[0][:4]) for row in rows[:-1]])
    names = [
        "cheapest hours of last night",
        list(SETTINGS[0].rules)[-1],
        "ucpd-practical",
        "ucpd-practical-0.2",
        "follow-the-leader",
        "best fixed policy in hindsight",
    ]
    lines = [
        (str(year), *(f"{found[name].loss[years == year].mean():.2f}" for name in names)) for year in range(2015, 2025)
    ]
    return table(("year", *names), lines)


def draw(setting: Setting, problem: tr.Problem, found: dict[str, Played]) -> None:
    """Draw the savings against the rule so far (left), and the share of each budget used so far (right)."""
    rule = found[list(setting.rules)[-1]]
    drawn = [*LEARNERS, "best fixed policy in hindsight"]
    limits = problem.use_in_units(problem.budgets)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.9), layout="constrained")
        axes = figure.subplots(1, 1 + len(limits), width_ratios=[1.6, *[1] * len(limits)])
        t = np.arange(1, len(rule.loss) + 1)
        for name, colour in zip(drawn, (*PALETTE[:5], MUTED), strict=True):
            dashed = {"linestyle": (0, (4, 2))} if colour == MUTED else {}
            axes[0].plot(t, np.cumsum(rule.loss - found[name].loss), color=colour, label=name, **dashed)
            for i, axis in enumerate(axes[1:]):
                axis.plot(t, np.cumsum(found[name].uses[i]) / t / limits[i], color=colour, **dashed)
        axes[0].set_title(f"{problem.loss_unit} saved so far, against the rule", loc="left", color=INK, fontsize=9.5)
        axes[0].axhline(0, color=INK, linewidth=0.8)
        for name, axis in zip(problem.constraint_names, axes[1:], strict=True):
            axis.set_title(f"{name}, share of its budget so far", loc="left", color=INK, fontsize=9.5)
            axis.axhline(1, color=INK, linewidth=0.8)
            axis.set_ylim(0, 2)
        for axis in axes:
            axis.set_xlabel(f"{setting.one}s")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8.5)
        figures.write(figure, DOCS / "images" / f"real-{setting.name}.png")


def repeated(years: int = 6) -> str:
    """Return minutes a day of flight-turnaround, with the year 2013 repeated."""
    problem, days = tr.make("flight-turnaround"), 363
    names = ("ucpd-practical", "ucpd-practical-0.2", "follow-the-leader")
    played = [play(problem, name, years * days).loss.reshape(years, days).mean(axis=1) for name in names]
    rule = play(problem, Rule(problem, "by the clock", by_the_clock), days).loss.mean()
    rows = [(f"{k + 1}", f"{rule:.1f}", *(f"{loss[k]:.1f}" for loss in played)) for k in range(years)]
    return table(("time through 2013", "by the clock", *names), rows)


def main() -> None:
    """Write the page's tables and pictures."""
    for setting in SETTINGS:
        problem, found = all_of(setting)
        write(setting.name, table_of(setting, problem, found), PAGE)
        draw(setting, problem, found)
        if setting.name == "ev-charging":
            write("years", yearly(found), PAGE)
    write("repeated", repeated(), PAGE)


if __name__ == "__main__":
    main()

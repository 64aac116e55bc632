"""A check as a page of text, as plain data for other programs, and as a figure (`draw`)."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.errors import InfeasibleError
from tightrope.lab.figures import INK, MUTED, PALETTE, STYLE, drawable, entitle, grouped, head
from tightrope.lab.tables import aligned
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.space import FloatArray
from tightrope.theory.budgets import Conflict, Curve
from tightrope.theory.check import Check
from tightrope.units import BOUND_TOLERANCE

WIDTH = 80

#: The width of the amounts that budgets can spare.
SPARE = 40


def page(check: Check) -> list[str]:
    """Return the lines of the page, at most 80 characters wide unless names are long."""
    problem, seen = check.problem, check.windows
    title = [f"{problem.name}, {check.sequences}", f"T = {check.episodes} episodes, seed {check.seed}"]
    parts = [[one] if len(one := ", ".join(title)) <= WIDTH else title]
    parts += [textwrap.wrap(f"WARNING: {words}", WIDTH) for words in problem.warnings]
    parts += [_verdicts(check)]
    if len(problem.budgets):
        parts += [_budgets(check)]
    if check.slater and len(problem.budgets):
        parts += [_constants(check)]
    if check.bounds:
        parts += [_bounds(check)]
    parts += [_curve(problem, curve, check) for curve in check.curves]
    if seen.learner:
        told = f"The losses depend on the policies played: these are those of a run of {seen.learner} with this seed."
        parts += [textwrap.wrap(told, WIDTH)]
    todo = [textwrap.wrap(item, WIDTH, initial_indent="- ", subsequent_indent="  ") for item in remedies(check)]
    parts += [["What to do", *(line for item in todo for line in item)]] if todo else []
    return [line for part in parts for line in [*part, ""]][:-1]


def _verdicts(check: Check) -> list[str]:
    """A line for each requirement of the theorem."""
    L, c = check.problem.space.n_layers, check.problem.budgets
    slack, constants, level = check.slack.slack, check.constants, check.largest_level
    sizes = f"{_n(check.windows.largest)}, {_n(check.largest_constraints)}, {_n(np.abs(c).sum())} of {L}"
    spare = "there is none"
    if len(c):
        amounts = _each(check.problem, max(slack, 0.0) if check.feasible else -slack)
        spare = f"spare: {', '.join(amounts)}" if check.feasible else f"over by: {_listed(amounts, 'or')}"
    bound = f"{_n(constants.B)}, whatever the losses" if constants else "no policy leaves slack in each"
    first, *more = textwrap.wrap(spare, SPARE)
    rows = [
        ("1 all budgets can be met", "holds" if check.feasible else "FAILS", first),
        *(("", "", line) for line in more),
        ("2 |f|, Σ|g| <= 1, Σ|c| <= L", "holds" if check.bounded else "FAILS", sizes),
        ("3 multipliers have a bound", "holds" if check.slater else "FAILS", bound),
    ]
    if not check.drawn:
        rows.append(("g^t drawn from one law", "FAILS", "they change from episode to episode"))
    few = check.episodes < check.least_episodes
    rows.append(("T >= |S||A|", "too small" if few else "holds", f"{check.episodes} and {check.least_episodes}"))
    if level is not None:
        verdict = "holds" if check.level <= level else "too large"
        rows.append(("ζ <= 1/(4 + 8L/σ̄)", verdict, f"{_n(check.level)} and {_n(level)}"))
    headings = ("the theorem asks for", "", "here")
    return [
        *aligned(headings, rows, text=headings),
        "Sizes (2) and bound (3) are in the learner's units: |f| <= 1, Σ|g| <= 1.",
    ]


def _each(problem: Problem, slack: float) -> list[str]:
    """The slack of every budget, in its own units."""
    amounts = zip(problem.constraint_names, problem.constraint_scales * slack, strict=True)
    return [f"{name} {_n(amount)} {_unit(problem, i)}".rstrip() for i, (name, amount) in enumerate(amounts)]


def _budgets(check: Check) -> list[str]:
    """Limit, least use, use of the safest policy and multiplier of each budget, in the problem's own units."""
    problem = check.problem
    least = problem.use_in_units(check.least)
    safe = problem.use_in_units(problem.constraints.mean @ problem.mdp.occupancy(check.slack.policy))
    limits, rows = problem.use_in_units(problem.budgets), []
    for i, name in enumerate(problem.constraint_names):
        row = [name, f"{_n(limits[i])} {_unit(problem, i)}".rstrip(), _n(least[i]), _n(safe[i])]
        rows.append([*row, _range(_priced(problem, check.multipliers.values, i)) if check.multipliers else "no bound"])
    headings = ("budget", "limit", "least use", "safest policy", "multiplier")
    unit = f" in {problem.loss_unit}" if problem.loss_unit else ""
    note = (
        "For an episode. The safest policy leaves the most of all budgets at once. The multiplier is what one more "
        f"unit of the budget gains{unit}, over windows of √T = {check.windows.length} episodes."
    )
    return [*aligned(headings, rows, text=headings[:2]), *textwrap.wrap(note, WIDTH)]


def _priced(problem: Problem, multipliers: FloatArray, i: int) -> FloatArray:
    """Multipliers (…, I) of one constraint, in the problem's own units."""
    return problem.regret_in_units(multipliers[..., i] / problem.constraint_scales[i])


def _constants(check: Check) -> list[str]:
    """The constants of the bounds, in the learner's units."""
    columns = [("any losses", check.constants), ("these losses", check.constants_here)]
    if check.constants_exact:
        columns.append(("these, exactly", check.constants_exact))
    meanings = (
        ("ε   Slater's slack", "slack"),
        ("B   no multiplier is larger", "B"),
        ("σ̄   slope of the dual function", "sigma"),
        ("ϑ̄   from this distance on", "vartheta"),
    )
    rows = [[what, *(_n(getattr(values, name)) for _, values in columns)] for what, name in meanings]
    scaled = "In the learner's units."
    count = check.windows.count
    note = f"{scaled} These losses: those of {count} window{'s' * (count != 1)}, one after another."
    return [
        *aligned(("constant", *(name for name, _ in columns)), rows, text=("constant",)),
        *textwrap.wrap(note, WIDTH),
    ]


def _bounds(check: Check) -> list[str]:
    """Return the bounds on regret and violation after T episodes, in the learner's units."""
    terms = [("regret", "regret"), ("violation", "violation"), ("strong violation", "strong_violation")]
    if not len(check.problem.budgets):
        terms = terms[:1]
    rows = []
    for words, term in terms:
        values = [found[term].value if term in found else math.inf for found in check.bounds.values()]
        anyway = check.bounds["ucpd-inside"][term].trivial
        rows.append([words, *(_n(value) if math.isfinite(value) else "no bound" for value in values), _n(anyway)])
    failure = max(bound.failure for found in check.bounds.values() for bound in found.values())
    note = (
        f"What is proved: each is exceeded with a probability of {_n(failure)} at most. In the learner's units. A "
        "bound above what holds anyway says nothing yet."
    )
    heading = f"after {check.episodes} episodes"
    return [*aligned((heading, *check.bounds, "holds anyway"), rows, text=(heading,)), *textwrap.wrap(note, WIDTH)]


def _curve(problem: Problem, curve: Curve, check: Check) -> list[str]:
    """The table of a budget curve."""
    i = curve.constraint
    unit, loss_unit = _unit(problem, i), problem.loss_unit
    headings = (f"{problem.constraint_names[i]} budget", "best loss", "one more gains", "")
    rows = [
        [
            _n(budget),
            _n(loss),
            _n(price) if math.isfinite(price) else "no bound",
            "<- yours" if k == curve.yours else "",
        ]
        for k, (budget, loss, price) in enumerate(zip(curve.budgets, curve.losses, curve.multipliers, strict=True))
    ]
    units = ", ".join(filter(None, [unit and f"budget in {unit}", loss_unit and f"loss in {loss_unit}"]))
    others = ", the other budgets as they are" if len(problem.budgets) > 1 else ""
    note = f"For the average loss of the {check.episodes} episodes{others}{units and '; ' + units}."
    return [*aligned(headings, rows, text=("",)), *textwrap.wrap(note, WIDTH)]


def remedies(check: Check) -> Iterator[str]:
    """A remedy for each requirement that fails."""
    problem, T, L = check.problem, check.episodes, check.problem.space.n_layers
    if check.conflict:
        yield _resolve(problem, check.conflict)
    if not check.drawn:
        yield (
            "The theorem is about constraints that are drawn independently from one law; these change, and it says "
            "nothing about them. The numbers of budgets are for the mean of the problem. What can be promised where "
            "constraints change, and what cannot: docs/explanation/changing-budgets.md."
        )
    if not check.windows.largest <= 1 + BOUND_TOLERANCE:
        yield (
            f"The loss of episode {check.windows.worst} reaches {_n(check.windows.largest)} in absolute value, more "
            "than 1: make the problem with Problem.from_units(loss_bounds=…), which scales losses."
        )
    if not check.largest_constraints <= 1 + BOUND_TOLERANCE:
        yield (
            f"Some draw of the constraints reaches {_n(check.largest_constraints)} in sum, more than 1: make the "
            "problem with Problem.from_units(use_bounds=…), which scales uses and budgets."
        )
    if check.feasible and not check.slater:
        names = _listed([problem.constraint_names[i] for i in np.flatnonzero(check.slack.weights > 1e-9)], "and")
        yield (
            f"The budgets can only just be met: no policy leaves slack in {names}, so the multipliers have no bound. "
            "Raise the budgets: with ε more of each, no multiplier is above 2L/ε."
        )
    if check.least_episodes > T:
        yield f"The theorem is about T from |S||A| = {check.least_episodes} on: play as many episodes (--episodes)."
    level = check.largest_level
    if level is not None and check.level > level:
        needed = 16 * L / (1 / check.level - 4) if check.level < 0.25 else math.inf
        enough = _listed(_each(problem, needed), "and") if math.isfinite(needed) else ""
        yield (
            f"A level of {_n(check.level)} is outside of the theorem. Make the learner with a smaller one, "
            f'tr.make_learner("ucpd", problem, episodes={T}, level={_below(level)})'
            f"{enough and f', or raise the budgets until all can spare this at once: {enough}'}."
        )


def _resolve(problem: Problem, conflict: Conflict) -> str:
    names = [repr(problem.constraint_names[i]) for i in conflict.members]
    units, scales = [_unit(problem, i) for i in conflict.members], problem.constraint_scales[list(conflict.members)]
    enough = [f"{_n(e)} {u}".rstrip() for e, u in zip(_up(conflict.enough * scales), units, strict=True)]
    if len(names) == 1:
        return (
            f"The budget of {names[0]} cannot be met: every policy uses {enough[0]} or more an episode. Raise it to "
            "that at least, and by more to leave some slack."
        )
    over = _listed([f"{_n(conflict.excess * s)} {u}".rstrip() for s, u in zip(scales, units, strict=True)], "or")
    raised = _listed([f"{name} to {value}" for name, value in zip(names, enough, strict=True)], "or")
    return (
        f"The budgets of {_listed(names, 'and')} exclude each other: every policy exceeds one of them, by at least "
        f"{over}. Raise {raised}, the others as they are, and by more to leave some slack."
    )


def _unit(problem: Problem, i: int) -> str:
    return problem.constraint_units[i] if problem.constraint_units else ""


def _listed(words: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _n(value: float) -> str:
    """Four digits; zero without a minus."""
    return f"{value + 0.0:.4g}"


def _range(values: FloatArray) -> str:
    low, high = _n(values.min()), _n(values.max())
    return low if low == high else f"{low} to {high}"


def _up(values: FloatArray) -> list[float]:
    """Round up to four digits, so that the rounded value is enough."""
    return [math.ceil(v / step) * step for v in values for step in [10.0 ** (math.floor(math.log10(abs(v) or 1)) - 3)]]


def _below(value: float) -> str:
    """Round down to two digits, so that the rounded value is small enough."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / step) * step:.2g}"


def facts(check: Check) -> dict[str, Any]:
    """The numbers of a page as plain data, in own units and in the learner's; None where there is no bound."""
    windows = check.windows
    found: dict[str, Any] = _plain(
        {
            "problem": check.problem.name,
            "losses": check.problem.losses.name,
            "noise": check.problem.noise,
            "episodes": check.episodes,
            "seed": check.seed,
            "level": check.level,
            "holds": check.holds,
            "feasible": check.feasible,
            "bounded": check.bounded,
            "slater": check.slater,
            "drawn": check.drawn,
            "least_episodes": check.least_episodes,
            "largest_level": check.largest_level,
            "windows": {"length": windows.length, "count": windows.count, "played_by": windows.learner},
            "safest_policy": _choices(check.slack.policy),
            "own_units": _in_own_units(check),
            "learner_units": _in_units_of_the_learner(check),
            "what_to_do": list(remedies(check)),
            "warnings": list(check.problem.warnings),
        }
    )
    return found


def _in_own_units(check: Check) -> dict[str, Any]:
    """The budgets and curves in the problem's own units."""
    problem, scales, clash = check.problem, check.problem.constraint_scales, check.conflict
    names, units = problem.constraint_names, problem.constraint_units or [""] * len(scales)
    limits, least = problem.use_in_units(problem.budgets), problem.use_in_units(check.least)
    prices = None if check.multipliers is None else problem.regret_in_units(check.multipliers.values / scales)
    return {
        "loss_unit": problem.loss_unit,
        "budgets": [
            {
                "name": names[i],
                "unit": units[i],
                "limit": limits[i],
                "least_use": least[i],
                "slack": check.slack.slack * scales[i],
                "multipliers": None if prices is None else prices[:, i],
            }
            for i in range(len(scales))
        ],
        "conflict": clash
        and {
            "budgets": [names[i] for i in clash.members],
            "excess": [clash.excess * scales[i] for i in clash.members],
            "enough": clash.enough * scales[list(clash.members)],
        },
        "curves": [vars(curve) | {"constraint": names[curve.constraint]} for curve in check.curves],
    }


def _in_units_of_the_learner(check: Check) -> dict[str, Any]:
    """The quantities of the theorem, in the learner's units."""
    constants = {
        "any_losses": check.constants,
        "these_losses": check.constants_here,
        "these_losses_exactly": check.constants_exact,
    }
    return {
        "largest_loss": check.windows.largest,
        "largest_constraints": check.largest_constraints,
        "bounds": {
            learner: {term: bound._asdict() for term, bound in found.items()} for learner, found in check.bounds.items()
        },
        "slack": check.slack.slack,
        "budgets": check.problem.budgets,
        "least_use": check.least,
        "multipliers": check.multipliers and check.multipliers.values,
        "constants": {name: values and vars(values) for name, values in constants.items()},
    }


def _choices(policy: Policy) -> list[tuple[str, str, float]]:
    """Return state, action and probability of every action with positive probability."""
    table = policy.table()
    rows = zip(table["state_name"], table["action_name"], table["probability"], strict=True)
    return [row for row in rows if row[2] > 0]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


CURVE, SLOPE = PALETTE[0], PALETTE[1]

#: Inches: the width and height of a panel, its margins (left, right, below, above), and the gap between two panels.
PANEL_WIDTH, PANEL_HEIGHT, LEFT, RIGHT, BELOW, ABOVE, BETWEEN = 3.9, 2.9, 0.75, 0.3, 0.6, 1.25, 0.85


def draw(check: Check) -> Figure:
    """Draw a panel for each budget that has a curve."""
    if not check.curves:
        raise InfeasibleError("there is no curve to draw: no budget, or budgets that exclude each other")
    n = len(check.curves)
    width, height = LEFT + n * PANEL_WIDTH + (n - 1) * BETWEEN + RIGHT, BELOW + PANEL_HEIGHT + ABOVE
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(width, 6.4), height), dpi=150)
        width = figure.get_figwidth()
        grid = figure.add_gridspec(
            1, n, left=LEFT / width, right=1 - RIGHT / width, bottom=BELOW / height, top=1 - ABOVE / height,
            wspace=BETWEEN / PANEL_WIDTH,
        )  # fmt: skip
        told = f"least loss of a policy, an episode, on average over T = {grouped(check.episodes)}"
        entitle(figure, f"{check.problem.name}, {check.sequences}", told)
        for k, curve in enumerate(check.curves):
            _panel(figure.add_subplot(grid[0, k]), check.problem, curve)
    return figure


def _panel(axes: Axes, problem: Problem, curve: Curve) -> None:
    """Draw the curve, and at the problem's own budget a point and the slope."""
    i = curve.constraint
    unit = problem.constraint_units[i] if problem.constraint_units else ""
    name = drawable(problem.constraint_names[i])
    b, v = curve.budgets, curve.losses
    axes.plot(b, v, color=CURVE, linewidth=2.0, marker="o", markersize=3)
    limit = problem.use_in_units(problem.budgets)[i]
    low, high = min(b[0], limit), max(b[-1], limit)
    room = 0.06 * (high - low or 1.0)
    axes.set_xlim(low - room, high + room)
    axes.axvspan(low - room, b[0], color=MUTED, alpha=0.12, linewidth=0)
    axes.axvline(limit, color=INK, linewidth=0.8, dashes=(2, 2), zorder=1)
    side = "left" if limit < (low + high) / 2 else "right"
    axes.annotate(
        f"yours: {limit:.4g}",
        (limit, 1),
        (4 if side == "left" else -4, -2),
        ("data", "axes fraction"),
        "offset points",
        ha=side,
        va="top",
        size=8.5,
    )
    if curve.yours is not None and np.isfinite(curve.multipliers[curve.yours]):
        _tangent(axes, curve, curve.yours, side)
    axes.set_xlabel(drawable(", ".join(filter(None, [f"budget of {name}", unit]))), loc="left", color=MUTED)
    loss = f"best loss, {problem.loss_unit}" if problem.loss_unit else "best loss"
    head(axes, drawable(f"{name}"), drawable(f"{loss}; grey: cannot be met"))


def _tangent(axes: Axes, curve: Curve, k: int, side: str) -> None:
    """Draw the slope at point k, with its label on the free side of the convex curve."""
    b, v, price = curve.budgets[k], curve.losses[k], curve.multipliers[k]
    step = np.array([-0.18, 0.18]) * (curve.budgets[-1] - curve.budgets[0])
    low, high = axes.get_ylim()
    axes.plot(b + step, v - price * step, color=SLOPE, linewidth=1.4, zorder=3)
    axes.plot(b, v, "o", color=SLOPE, markersize=5, zorder=4)
    axes.set_ylim(low - (0.12 * (high - low) if side == "right" else 0.0), high)
    axes.annotate(
        f"one more gains {price:.3g}",
        (b, v),
        (8, 8) if side == "left" else (-8, -8),
        textcoords="offset points",
        ha=side,
        va="bottom" if side == "left" else "top",
        color=SLOPE,
        size=8.5,
        weight="bold",
    )

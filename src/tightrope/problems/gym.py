"""A tabular Gymnasium environment as a problem: its table of transitions, cost functions, and budgets.

Gymnasium's toy-text environments (and many others) have their model in `env.unwrapped.P`: `P[state][action]` is a list
of (probability, next_state, reward, terminated). It is unrolled over `n_steps` steps. Entries with the same next state
are added up, and their rewards averaged; a terminated episode waits until the last step, with loss and uses 0. The loss
of a move is −reward, and the cost functions give its uses.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tightrope.arguments import function, instance, listed, shown, text, texts
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Start
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll

#: The loss or use of a move: function(state, action, next_state) -> value, with the environment's numbers.
Charge = Callable[[int, int, int], float]


def problem_from_gym(
    env: Any,
    *,
    n_steps: int,
    cost: Mapping[str, Charge],
    budgets: Mapping[str, float],
    scenarios: Sequence[Charge] = (),
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
    start: Start | None = None,
    loss_bounds: tuple[float, float] | None = None,
    name: str | None = None,
    loss_unit: str = "",
    constraint_units: Sequence[str] = (),
    state_names: Sequence[str] = (),
    action_names: Sequence[str] = (),
) -> Problem:
    """Return the problem of playing `env` for `n_steps` steps within budgets.

    Parameters
    ----------
    env : an environment whose `unwrapped.P` is a table as above.
    cost, budgets : by the name of a constraint, the use of each move, and the limit per episode on average.
    scenarios : more loss scenarios for an adversary, besides the first, which is −reward.
    losses : a loss sequence on the scenarios (`make_losses`).
    noise : the noise of the costs (`make_constraints`).
    start : a state, or {state: probability}; None: `env.unwrapped.initial_state_distrib`.
    loss_bounds : the least and the largest possible loss; None: losses are divided by the largest one.

    Raises
    ------
    InvalidInputError : if `env` has no such table, or the names of costs and budgets differ.
    """
    P = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(P, Mapping):
        raise InvalidInputError(
            f"{shown(env)} has no table unwrapped.P; play it live instead (tightrope.interop.play_live)"
        )
    if name is not None:
        text(name, "name")
    names = _checked_names(cost, budgets, scenarios)
    n_states, rows = _merged_rows(P)
    layout = unroll(
        list(rows),
        [p for p, _ in rows.values()],
        n_steps=n_steps,
        start=_start(env) if start is None else start,
        terminal=range(n_states, 2 * n_states),
    )

    def charges(charge: Charge) -> list[float]:
        return [float(charge(s, a, s_next % n_states)) for s, a, s_next in rows]

    own = [-p_reward / p for p, p_reward in rows.values()]
    return Problem.from_units(
        name=name or _name(env),
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[layout.lay_out(own), *(layout.lay_out(charges(charge)) for charge in scenarios)],
        losses=losses,
        uses=np.array([layout.lay_out(charges(cost[i])) for i in names]).reshape(len(names), layout.space.n_tuples),
        noise=noise,
        budgets=[budgets[i] for i in names],
        constraint_names=names,
        loss_bounds=loss_bounds,
        loss_unit=loss_unit,
        constraint_units=constraint_units,
        state_names=layout.state_names(state_names),
        action_names=action_names,
    )


def _checked_names(
    cost: Mapping[str, Charge], budgets: Mapping[str, float], scenarios: Sequence[Charge]
) -> Sequence[str]:
    """Return the names of the constraints, after checking that costs and budgets agree and can be called."""
    names = texts(list(instance(cost, "cost", Mapping)), "cost")  # type: ignore[type-abstract]
    limits = texts(list(instance(budgets, "budgets", Mapping)), "budgets")  # type: ignore[type-abstract]
    if set(names) != set(limits):
        raise InvalidInputError(f"cost is for {sorted(names)} and budgets for {sorted(limits)}; the names must agree")
    for name in names:
        function(cost[name], f"cost[{name!r}]")
    for k, scenario in enumerate(listed(scenarios, "scenarios")):
        function(scenario, f"scenarios[{k}]")
    return names


def _merged_rows(P: Mapping[int, Any]) -> tuple[int, dict[tuple[int, int, int], tuple[float, float]]]:
    """Return the number of states, and for each (state, action, next_state) its probability and probability · reward.

    A state s has two copies: s, where the episode continues, and s + n_states, where it ends.
    """
    entries = _entries(P)
    n_states = 1 + max((s for row in entries for s in row[:3:2]), default=0)
    merged: dict[tuple[int, int, int], tuple[float, float]] = {}
    for state, action, next_state, probability, reward, terminated in entries:
        key = (state, action, next_state + n_states * terminated)
        p, p_reward = merged.get(key, (0.0, 0.0))
        merged[key] = p + probability, p_reward + probability * reward
    return n_states, {row: entry for row, entry in merged.items() if entry[0] > 0}


def _entries(P: Mapping[int, Any]) -> "list[tuple[int, int, int, float, float, bool]]":
    """Return (state, action, next_state, probability, reward, terminated) of every entry of the table."""
    try:
        return [
            (int(state), int(action), int(next_state), float(probability), float(reward), bool(terminated))
            for state, actions in P.items()
            for action, outcomes in actions.items()
            for probability, next_state, reward, terminated in outcomes
        ]
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(
            "unwrapped.P is not of the form P[state][action] = [(probability, next_state, reward, terminated), …]: "
            f"{error}"
        ) from error


def _start(env: Any) -> Start:
    chances = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    if chances is None:
        raise InvalidInputError(f"{env} has no initial_state_distrib; give start, a state or {{state: probability}}")
    states = np.flatnonzero(chances).tolist()
    return states[0] if len(states) == 1 else {s: float(chances[s]) for s in states}


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return type(getattr(env, "unwrapped", env)).__name__ if spec is None else str(spec.id)

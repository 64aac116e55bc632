"""Random CMDP: a generator of varied instances, for evaluation.

Everything that an option does not fix is drawn from the seed, each quantity from a stream of its own: fixing one option
leaves the other draws unchanged.

    n_steps         log-uniform, 2 to 12
    n_states        log-uniform, 2 to 16; reduced where there would be more than 2,000 tuples
    n_actions       uniform, 2 to 5
    n_successors    2, 3, 4 or all states, with equal chances
    stationary      the same model in all steps (with ties), or another in each step, with equal chances
    n_constraints   uniform, 1 to 5
    rarity          of each constraint: log-uniform, 1e-4 to 1
    slack           log-uniform, 0.005 to 1.2
    losses          fixed, iid, switching, drifting, waves, square-waves, random-walk, bursts or chaser, with random
                    options; periods are log-uniform, 2 to 5,000 episodes
    noise           none, scaled, correlated, beta or bernoulli, with random options

*Model.* Every (state, action) pair has n_successors successors with Dirichlet(1, …, 1) probabilities. For each
constraint a share of the pairs (uniform, 0.3 to 1) is risky: one successor costs an amount uniform on [0.5, 1], and its
probability is the constraint's rarity times a log-uniform factor from 1/3 to 3, at most 0.9. A pair that is risky for
several constraints has a different successor for each, as long as there are enough. The states after the last step are
merged (`unroll`), where a pair is charged the expected cost.

*Losses.* There are 2 to 5 scenarios f_k = h ((1 − m) v_k − m r): v_k uniform on [-1, 1] for every pair; r in [0, 1] the
risk of the pair, its expected cost divided by that of the most expensive pair, the largest over the constraints; m
uniform on [0, 0.7], the reward of risk; h log-uniform on [0.1, 1].

*Budgets.* Let u_i be the use of the policy that is best for the mean of the scenarios, or a tenth of the use of the
uniform policy if that is more, and σ the largest share of all u_i that some policy saves at once (rounded down to eight
digits). One constraint has the budget u_i (1 − σ + σ slack), the others the same with a larger slack, log-uniform up to
1.2. So some policy stays below every budget by at least σ slack u_i; with a slack above 1 a budget does not bind on
average. If σ is below 0.01, the budgets are (1 + slack / 10) u_i.

A seed gives the same bits on every machine: draws are whole numbers or uniform on [0, 1), the rest is arithmetic.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tightrope.arguments import number, room, shown, whole
from tightrope.arithmetic import exp, log
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy, inner
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Layout
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: Drawn sizes lead to no more tuples than this: an episode of a learner then takes less than a millisecond.
MOST_TUPLES = 2000

#: With a smaller σ hardly any policy saves anything, and budgets are above the use.
NO_CHOICE = 0.01

#: One random stream for each of these; append new ones, so that the instances of old seeds do not change.
STREAMS = (
    "n_steps",
    "n_states",
    "n_actions",
    "n_successors",
    "stationary",
    "n_constraints",
    "rarity",
    "slack",
    "losses",
    "noise",
    "moves",
    "risks",
    "charges",
    "waves",
)


def random_cmdp(
    *,
    seed: int = 17,
    n_steps: int | None = None,
    n_states: int | None = None,
    n_actions: int | None = None,
    n_successors: int | None = None,
    stationary: bool | None = None,
    n_constraints: int | None = None,
    rarity: float | None = None,
    slack: float | None = None,
    losses: LossChoice | None = None,
    noise: NoiseChoice | None = None,
) -> Problem:
    """Options that are None are drawn from the `seed`, as the docstring of the module describes.

    `rarity` is that of all constraints; `slack` that of the tightest budget, as a share of what can be saved.
    """
    seeds = np.random.SeedSequence(whole(seed, "seed", at_least=0)).spawn(len(STREAMS))
    rng = {name: np.random.default_rng(of) for name, of in zip(STREAMS, seeds, strict=True)}

    steps = _asked(n_steps, "n_steps", 1, rng["n_steps"], lambda draw: _whole_log(draw, 2, 12))
    actions = _asked(n_actions, "n_actions", 1, rng["n_actions"], lambda draw: int(draw.integers(2, 6)))
    width = _asked(n_successors, "n_successors", 1, rng["n_successors"], lambda draw: int(draw.choice([2, 3, 4, 99])))
    states = _asked(n_states, "n_states", 1, rng["n_states"], lambda draw: _whole_log(draw, 2, 16))
    while n_states is None and states > 2 and steps * states * actions * min(width, states) > MOST_TUPLES:
        states -= 1
    budgets = _asked(n_constraints, "n_constraints", 1, rng["n_constraints"], lambda draw: int(draw.integers(1, 6)))
    if stationary is not None and not isinstance(stationary, bool):
        raise InvalidInputError(f"stationary is {shown(stationary)}; it must be True, False, or None to draw it")
    tables = 1 if (rng["stationary"].random() < 0.5 if stationary is None else stationary) else steps
    width = min(width, states)
    room(steps * states * max(actions * width * (1 + budgets), states), "a problem of these sizes")
    rarities = _log_uniform(rng["rarity"], 1e-4, 1, budgets)
    if rarity is not None:
        rarities = np.full(budgets, number(rarity, "rarity", 1e-12, 1))

    shape = (tables, states, actions, width)
    weights = -log(1 - rng["moves"].random(shape)) + 1e-300  # exponential
    successors = rng["moves"].random((*shape[:3], states)).argsort(axis=3)[..., :width]
    P, uses = _risky(weights, rarities, rng["risks"])
    table, state, action, _ = np.indices(shape).reshape(4, -1)
    rows = np.stack([table, state, action, successors.ravel()], axis=1)
    layout = unroll(rows[:, 1:], P.ravel(), n_steps=steps, steps=None if tables == 1 else rows[:, 0])
    g = np.array([layout.lay_out(use.ravel()) for use in uses])
    scenarios = _scenarios(layout, g, rng["charges"])
    c = _budgets(layout.mdp, scenarios.mean(axis=0), g, slack, rng["slack"])
    sequence = _losses(rng["losses"], rng["waves"], layout.space.n_tuples)
    return Problem.from_units(
        name="random-cmdp",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=scenarios,
        losses=sequence if losses is None else losses,
        uses=g,
        noise=_noise(rng["noise"]) if noise is None else noise,
        budgets=c,
        constraint_names=tuple(f"constraint {i}" for i in range(budgets)),
        state_names=layout.state_names(),
    )


def _asked(
    value: int | None, name: str, at_least: int, rng: np.random.Generator, draw: Callable[[np.random.Generator], int]
) -> int:
    """Return `value`, checked, or a draw if it is None."""
    return draw(rng) if value is None else whole(value, name, at_least=at_least)


def _uniform(rng: np.random.Generator, low: float, high: float, size: int | tuple[int, ...] | None = None) -> Any:
    return low + (high - low) * rng.random(size)


def _log_uniform(rng: np.random.Generator, low: float, high: float, size: int | tuple[int, ...] | None = None) -> Any:
    return exp(_uniform(rng, log(low), log(high), size))


def _whole_log(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`, log-uniform but for rounding."""
    return int(np.floor(_log_uniform(rng, low, high + 1)))


def _risky(weights: FloatArray, rarities: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw the probabilities of the successors of every pair and their costs; the last axis is over successors.

    Parameters
    ----------
    weights : (..., width) positive; the probabilities of successors without risk are proportional to them.
    rarities : (I,) in (0, 1].

    Returns
    -------
    chances : (..., width), probabilities.
    costs : (I, ..., width).
    """
    pairs, width = weights.shape[:-1], weights.shape[-1]
    costs, risky = np.zeros((len(rarities), *weights.shape)), np.zeros(weights.shape)
    first = rng.integers(width, size=pairs)  # the constraints take the successors in turn, from this one on
    for i, rarity in enumerate(rarities):
        chosen = rng.random(pairs) < _uniform(rng, 0.3, 1)
        amount, chance = _uniform(rng, 0.5, 1, pairs), np.minimum(0.9, rarity * _log_uniform(rng, 1 / 3, 3, pairs))
        here = np.arange(width) == ((first + i) % width)[..., None]
        costs[i] = here * (chosen * amount)[..., None]
        risky = np.where(here & chosen[..., None] & (risky == 0), chance[..., None], risky)
    calm = np.where(risky == 0, weights, 0.0)
    left = 1 - risky.sum(axis=-1, keepdims=True)
    total = calm.sum(axis=-1, keepdims=True)
    chances = risky + calm * np.maximum(left, 0.1) / np.where(total > 0, total, 1.0)
    return chances / chances.sum(axis=-1, keepdims=True), costs


def _scenarios(layout: Layout, g: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the loss scenarios, (K, n_tuples): risky pairs are charged less."""
    space = layout.space
    expected = np.array([space.sum_over_successors(row * layout.mdp.transitions) for row in g])
    dearest = expected.max(axis=1, keepdims=True)
    risk = (expected / np.where(dearest > 0, dearest, 1.0)).max(axis=0)
    K, gain, height = int(rng.integers(2, 6)), _uniform(rng, 0, 0.7), _log_uniform(rng, 0.1, 1)
    pairs = _uniform(rng, -1, 1, (K, space.n_pairs))
    return np.array([space.expand_to_tuples(height * ((1 - gain) * row - gain * risk)) for row in pairs])


def _budgets(
    mdp: LayeredMDP, loss: FloatArray, g: FloatArray, slack: float | None, rng: np.random.Generator
) -> FloatArray:
    """Return the budgets, (I,), as at the top of the module."""
    tightest = float(_log_uniform(rng, 0.005, 1.2))
    if slack is not None:
        tightest = number(slack, "slack", 0, 100)
    wider = exp(_uniform(rng, log(max(tightest, 0.005)), log(max(tightest, 1.2)), len(g)))
    wider[rng.integers(len(g))] = tightest
    _, best = best_policy(mdp, loss)
    used = np.maximum(inner(g, mdp.occupancy(best)), 0.1 * inner(g, mdp.occupancy(Policy.uniform(mdp.space))))
    used = np.where(used > 0, used, 0.1)  # no pair costs anything: any budget does
    spared = math.floor(1e8 * slater_slack(mdp, g / used[:, None], np.ones(len(g)))) / 1e8  # last bits may differ
    budgets: FloatArray = used * (1 + wider / 10 if spared <= NO_CHOICE else 1 - spared + spared * wider)
    return budgets


def _losses(rng: np.random.Generator, for_waves: np.random.Generator, n_tuples: int) -> Mapping[str, Any]:
    """Draw a loss sequence, by name, and its options."""
    period = float(_log_uniform(rng, 2, 5000))
    step, rate = float(_log_uniform(rng, 0.003, 0.3)), float(_log_uniform(rng, 0.001, 0.1))
    weight, memory = float(_uniform(rng, 0.2, 1)), _whole_log(rng, 5, 1000)
    wave = {
        "period": _log_uniform(for_waves, 2, 5000, n_tuples) if for_waves.random() < 0.5 else period,
        "phase": for_waves.random(n_tuples) if for_waves.random() < 0.5 else float(for_waves.random()),
    }
    whole_period = {"period": max(1, round(period))}
    choices: list[dict[str, Any]] = [
        {"name": "fixed"},
        {"name": "iid"},
        {"name": "switching", **whole_period},
        {"name": "drifting", **whole_period},
        {"name": "waves", **wave},
        {"name": "square-waves", **wave},
        {"name": "random-walk", "step": step},
        {"name": "bursts", "rate": rate, "length": max(1, round(period))},
        {"name": "chaser", "weight": weight, "memory": memory},
    ]
    return choices[int(rng.integers(len(choices)))]


def _noise(rng: np.random.Generator) -> Mapping[str, Any]:
    """Draw a noise, by name, and its options."""
    spread, height = float(_uniform(rng, 0, 1)), float(_uniform(rng, 1.2, 4))
    choices: list[dict[str, Any]] = [
        {"name": "none"},
        {"name": "scaled", "spread": spread},
        {"name": "correlated", "spread": spread, "correlation": float(rng.random())},
        {"name": "beta", "height": height, "concentration": float(_log_uniform(rng, 0.5, 10))},
        {"name": "bernoulli", "height": height},
    ]
    return choices[int(rng.integers(len(choices)))]

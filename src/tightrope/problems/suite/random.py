"""Random problems of any size: Dirichlet transitions, uniform losses, budgets half-way to what is possible.

    P(·|s,a)      uniform on the simplex over the successors of (s,a), that is Dirichlet(1, …, 1)
    f_k(s,a,s')   uniform on [-1, 1], k = 0..n_scenarios-1
    g_i(s,a,s')   uniform on [0, 1] / (n_constraints · factor), so that Σ_i max |g_i^t| ≤ 1 with the noise, whose
                  draws exceed their mean by that factor at most (1.25 by default)

Let u_i be the uses of the policy that is best for the mean of the scenarios, and σ the largest amount by which
another policy is below all u_i at once. The budgets are c_i = u_i − σ/2: that policy is over every budget by σ/2, so
some budget binds, and another policy has slack σ/2 in all of them (Slater). With one constraint this is half-way
between the least possible use and u.

With `make("random", seed=5)` and its other defaults: u = 1.192, least 0.758, budget 0.975, slack 0.217; the
best mean loss is -0.556 without the budget and -0.428 with it (multiplier 1.71).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tightrope.arguments import listed, room, whole
from tightrope.model import LayeredMDP, inner
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice, largest_factor, make_constraints
from tightrope.problems.layout import Indices
from tightrope.problems.losses import LossChoice, make_losses
from tightrope.space import FloatArray, LayeredSpace

#: A smaller σ is rounding: no policy uses less than the best one, and there is no half-way.
NO_CHOICE = 1e-9


def random(
    *,
    layer_sizes: Sequence[int] = (1, 10, 10, 1),
    n_actions: int = 4,
    n_successors: int | None = None,
    n_scenarios: int = 4,
    n_constraints: int = 1,
    losses: LossChoice = "switching",
    noise: NoiseChoice = "scaled",
    seed: int = 0,
) -> Problem:
    """`n_successors`: to how many states of the next layer each (state, action) can lead; None: to all."""
    sizes = [whole(n, f"layer_sizes[{k}]", at_least=1) for k, n in enumerate(listed(layer_sizes, "layer_sizes"))]
    n_actions = whole(n_actions, "n_actions", at_least=1)
    n_scenarios = whole(n_scenarios, "n_scenarios", at_least=1)
    n_constraints = whole(n_constraints, "n_constraints", at_least=1)
    room(sum(n * n_actions * (m if n_successors is None else 1) for n, m in pairwise(sizes)), "a space of these sizes")
    # a stream for each part: asking for more scenarios does not change the model
    streams = np.random.SeedSequence(whole(seed, "seed", at_least=0)).spawn(4)
    for_space, for_model, for_losses, for_constraints = (np.random.default_rng(stream) for stream in streams)

    if n_successors is None:
        space = LayeredSpace.dense(sizes, n_actions)
    else:
        width = whole(n_successors, "n_successors", at_least=1)
        room(n_actions * sum(n * min(width, m) for n, m in pairwise(sizes)), "a space of these sizes")
        space = LayeredSpace.from_tuples(sizes, n_actions, _sparse_tuples(for_space, sizes, n_actions, width))
    # exponential weights, normalised over the successors of each pair, are Dirichlet(1, …, 1)
    mdp = LayeredMDP.from_occupancy(space, for_model.exponential(size=space.n_tuples))
    room((n_scenarios + n_constraints) * space.n_tuples, "that many scenarios and constraints")
    scenarios = for_losses.uniform(-1, 1, size=(n_scenarios, space.n_tuples))
    mean = for_constraints.random((n_constraints, space.n_tuples)) / (n_constraints * largest_factor(noise))
    constraints = make_constraints(noise, mean, mdp)
    return Problem(
        name="random",
        mdp=mdp,
        losses=make_losses(losses, scenarios, mdp),
        constraints=constraints,
        budgets=_middle_budgets(mdp, scenarios.mean(axis=0), constraints.mean),
        constraint_names=tuple(f"constraint {i}" for i in range(n_constraints)),
    )


def _middle_budgets(mdp: LayeredMDP, loss: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the budgets c = u − σ/2 as above, or a tenth more than u if no policy uses less."""
    _, policy = best_policy(mdp, loss)
    usage: FloatArray = inner(mean, mdp.occupancy(policy))
    slack = slater_slack(mdp, mean, usage)
    return usage - slack / 2 if slack > NO_CHOICE else 1.1 * usage


def _sparse_tuples(rng: np.random.Generator, sizes: list[int], n_actions: int, n_successors: int) -> Indices:
    """Each pair leads to `n_successors` states of the next layer; to more if some could not be reached."""
    blocks = [np.empty((0, 3), dtype=np.int64)]
    start = 0
    for size, n_next in pairwise(sizes):
        n_pairs = size * n_actions
        width = min(n_next, max(n_successors, -(-n_next // n_pairs)))
        successors = np.stack([rng.choice(n_next, width, replace=False) for _ in range(n_pairs)])
        # some of the pairs share out the whole next layer among them, so that every state can be reached
        sharing = rng.permutation(n_pairs)[: -(-n_next // width)]
        successors[sharing] = np.resize(rng.permutation(n_next), (len(sharing), width))
        state, action, _ = np.indices((size, n_actions, width)).reshape(3, -1)
        blocks.append(np.stack([start + state, action, start + size + successors.ravel()], axis=1))
        start += size
    return np.concatenate(blocks)

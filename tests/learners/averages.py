"""What learners of stochastic costs know after some plays, as it is published: sums, radii, values, by loops."""

import numpy as np

from tests.conftest import FloatArray, pair_of_tuple
from tightrope import BanditEpisode, LayeredSpace, Problem


def averages(problem: Problem, plays: list[BanditEpisode]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """N, M and the sums of (f + 1)/2 and (g + 1)/2, step by step."""
    space, n_constraints, pair = problem.space, len(problem.budgets), pair_of_tuple(problem.space)
    N, M, sums = np.zeros(space.n_pairs), np.zeros(space.n_tuples), np.zeros((1 + n_constraints, space.n_pairs))
    for play in plays:
        for k, j in enumerate(space.path(play.states, play.actions)):
            i = pair[j]
            N[i] += 1
            M[j] += 1
            sums[:, i] += (np.append(np.asarray(play.losses)[k], np.asarray(play.constraints)[:, k]) + 1) / 2
    return N, M, sums


def radii(problem: Problem, N: FloatArray, M: FloatArray, K: int, scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """β^c (n_pairs,) and β^p (n_tuples,), at most 1, as they are published (δ = 0.01), times `scale`."""
    space, n = problem.space, np.maximum(N, 1)
    beta_c = scale * np.sqrt(2 * np.log(6 * space.n_pairs * max(1, len(problem.budgets)) * K / 0.01) / n)
    n, log_term = space.expand_to_tuples(n), np.log(6 * space.n_tuples * K / 0.01)
    P = M / n
    return beta_c, np.minimum(scale * (np.sqrt(4 * P * (1 - P) * log_term / n) + 14 * log_term / (3 * n)), 1)


def backwards(
    space: LayeredSpace, pi: FloatArray, P: FloatArray, r: FloatArray, most: float
) -> tuple[FloatArray, FloatArray]:
    """V and Q of a policy by loops, Q between 0 and `most` for each step left."""
    V, Q, pair = np.zeros(space.n_states), np.zeros(space.n_pairs), pair_of_tuple(space)
    for s in range(space.n_states - 2, -1, -1):
        for i in np.flatnonzero(space.pairs[:, 0] == s):
            to = np.flatnonzero(pair == i)
            left = space.n_layers - space.layer_of(s)
            Q[i] = np.clip(r[i] + P[to] @ V[space.tuples[to, 2]], 0, most * left)
            V[s] += pi[i] * Q[i]
    return V, Q

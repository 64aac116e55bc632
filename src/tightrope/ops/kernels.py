"""What a path that was told met, and what another policy is to be expected to have met."""

from tightrope.kernels.compile import jit


@jit
def meet(steps, f, g, budgets, costs, sums):
    """Write the loss and the constraints of each step into costs (1 + I, L); add what they come to to sums[0] (1 + I,).

    steps (L,) says where in f and in every g_i the steps are. What is allowed is added to sums[1], of the loss nothing.
    """
    for i in range(costs.shape[0]):
        met = 0.0
        for k in range(steps.size):
            costs[i, k] = f[steps[k]] if i == 0 else g[i - 1, steps[k]]
            met += costs[i, k]
        sums[0, i] += met
    for i in range(budgets.size):
        sums[1, 1 + i] += budgets[i]


@jit
def covers(mu, pi):
    """Whether μ may do all that π may: (n_pairs,) both."""
    missing = 0
    for pair in range(pi.size):
        missing += pi[pair] > 0.0 and not mu[pair] > 0.0
    return missing == 0


@jit
def weigh(path, pair_of, pi, mu, largest, costs, sums):
    """Add Σ_k ρ_k costs[:, k] and its square to sums[:2] (·, 1 + I), ρ_k = Π_{h <= k} π/μ at the pairs of a path (L,).

    A ρ is at most `largest`. What π does not do weighs nothing, and so does all that came of it, whether μ does it or
    not.
    """
    for i in range(costs.shape[0]):
        product, estimate = 1.0, 0.0
        for k in range(path.size):
            pair = pair_of[path[k]]
            own, played = pi[pair], mu[pair]
            product = product * (own / played) if own > 0.0 and played > 0.0 else 0.0
            estimate += min(product, largest) * costs[i, k]
        sums[0, i] += estimate
        sums[1, i] += estimate * estimate

"""One simulated episode: the trajectory, and what the policy played costs in exact expectation."""

import numpy as np

from tightrope.kernels.compile import jit
from tightrope.kernels.occupancy import occupancy
from tightrope.kernels.paths import sample_path


@jit
def play(csr, pi, P, uniforms, f, g, mean_g, budgets, states, actions, steps, d, theta, total_f, over):
    """Sample a path; return <f, θ̄> and ‖[<E g, θ̄> − c]_+‖₂, θ̄ the true occupancy measure of pi.

    Writes the path into states, actions, steps and θ̄ into theta; adds f to total_f and <g, θ̄> − c to over.
    """
    sample_path(csr, pi, P, uniforms, states, actions, steps)
    occupancy(csr, pi, P, d, theta)
    loss = 0.0
    for j in range(theta.size):
        loss += f[j] * theta[j]
        total_f[j] += f[j]
    squares = 0.0
    for i in range(over.size):
        usage, mean_usage = 0.0, 0.0
        for j in range(theta.size):
            usage += g[i, j] * theta[j]
            mean_usage += mean_g[i, j] * theta[j]
        over[i] += usage - budgets[i]
        squares += max(mean_usage - budgets[i], 0.0) ** 2
    return loss, np.sqrt(squares)

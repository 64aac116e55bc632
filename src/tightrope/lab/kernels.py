"""One simulated episode: the trajectory, and what the policy played costs in exact expectation."""

import numpy as np

from tightrope.kernels.arithmetic import dot
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
    n, squares = theta.size, 0.0
    for j in range(n):
        total_f[j] += f[j]
    for i in range(over.size):
        over[i] += dot(g[i], 0, theta, 0, n) - budgets[i]
        squares += max(dot(mean_g[i], 0, theta, 0, n) - budgets[i], 0.0) ** 2
    return dot(f, 0, theta, 0, n), np.sqrt(squares)

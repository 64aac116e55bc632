"""One simulated episode: the trajectory, and what the policy played costs in exact expectation."""

from tightrope.kernels.compile import jit
from tightrope.kernels.occupancy import occupancy
from tightrope.kernels.paths import sample_path


@jit
def play(csr, pi, P, uniforms, f, g, mean_g, states, actions, steps, d, theta, usage, mean_usage, total_f):
    """Sample a path and return <f, θ̄>, θ̄ the true occupancy measure of pi.

    Writes the path into states, actions, steps; θ̄ into theta; <g_i, θ̄> and <E g_i, θ̄> into usage and mean_usage;
    adds f to total_f.
    """
    sample_path(csr, pi, P, uniforms, states, actions, steps)
    occupancy(csr, pi, P, d, theta)
    loss = 0.0
    for j in range(theta.size):
        loss += f[j] * theta[j]
        total_f[j] += f[j]
    for i in range(usage.size):
        usage[i] = 0.0
        mean_usage[i] = 0.0
        for j in range(theta.size):
            usage[i] += g[i, j] * theta[j]
            mean_usage[i] += mean_g[i, j] * theta[j]
    return loss

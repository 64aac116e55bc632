"""Loss functions estimated from what one episode met."""

from tightrope.kernels.compile import jit


@jit
def importance_weighted(pair_ptr, path, losses, weight, gamma, estimate):
    """ℓ̂(s,a) = ℓ_k / (weight_k + γ) at the pair of step k, for every k, and 0 elsewhere; the same at every successor.

    `path` (L,) holds the tuple of each step. With weight the probability of passing (s,a) and γ = 0, ℓ̂ is unbiased for
    the mean loss of (s,a); a larger weight or γ > 0 (implicit exploration) makes it smaller. Writes estimate, by tuple.
    """
    estimate[:] = 0.0
    i = 0
    for k in range(path.size):
        while pair_ptr[i + 1] <= path[k]:
            i += 1
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            estimate[j] = losses[k] / (weight[k] + gamma)

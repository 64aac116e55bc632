"""Plain NumPy twins of the kernels: the equations over `space.tuples`, without compressed rows."""

import numpy as np

from tests.conftest import FloatArray, pair_of_tuple
from tightrope import LayeredSpace


def layer_of_state(space: LayeredSpace) -> np.ndarray:
    return np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)


def occupancy(space: LayeredSpace, pi: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(d, θ): how often each state is passed, θ(s,a,s') = d(s) π(a|s) P(s'|s,a)."""
    s, _, s_next = space.tuples.T
    d, theta = np.zeros(space.n_states), np.zeros(space.n_tuples)
    d[0] = 1.0
    for k in range(space.n_layers):
        here = layer_of_state(space)[s] == k
        theta[here] = d[s[here]] * pi[pair_of_tuple(space)[here]] * P[here]
        d += np.bincount(s_next[here], theta[here], minlength=space.n_states)
    return d, theta


def policy_of(space: LayeredSpace, theta: FloatArray) -> FloatArray:
    """π(a|s) ∝ Σ_s' θ(s,a,s'), uniform where θ has no mass."""
    return _shares(np.bincount(pair_of_tuple(space), theta), space.pairs[:, 0])


def model_of(space: LayeredSpace, theta: FloatArray) -> FloatArray:
    """P(s'|s,a) ∝ θ(s,a,s'), uniform where θ has no mass."""
    return _shares(theta, pair_of_tuple(space))


def _shares(weights: np.ndarray, groups: np.ndarray) -> FloatArray:
    mass, size = np.bincount(groups, weights)[groups], np.bincount(groups)[groups]
    return np.where(mass > 0, weights / np.where(mass > 0, mass, 1.0), 1.0 / size)


def pair_values(space: LayeredSpace, P: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(V, q): q(s,a) = Σ_s' P(s'|s,a) (f(s,a,s') + V(s')), V(s) = min_a q(s,a), V = 0 at the last state."""
    V = np.zeros(space.n_states)
    q = np.zeros(space.n_pairs)
    for s in reversed(range(space.n_states - 1)):
        for i in np.flatnonzero(space.pairs[:, 0] == s):
            j = pair_of_tuple(space) == i
            q[i] = P[j] @ (f[j] + V[space.tuples[j, 2]])
        V[s] = q[space.pairs[:, 0] == s].min()
    return V, q


def find_path(space: LayeredSpace, states: np.ndarray, actions: np.ndarray) -> list[int] | None:
    """The tuple index of each step, or nothing if some step is no tuple of its layer."""
    index = {tuple(row): j for j, row in enumerate(space.tuples.tolist())}
    if states[0] != 0:
        return None
    steps = [index.get(row) for row in zip(states[:-1].tolist(), actions.tolist(), states[1:].tolist(), strict=True)]
    return None if None in steps else [j for j in steps if j is not None]


def draw(p: FloatArray, lo: int, hi: int, u: float) -> int:
    """Inversion: the first index in lo:hi at which the running sum exceeds u, else the last with p > 0."""
    passed = np.flatnonzero((np.cumsum(p[lo:hi]) > u) & (p[lo:hi] > 0))
    return lo + int(passed[0] if len(passed) else np.flatnonzero(p[lo:hi] > 0)[-1])


def sample_path(
    space: LayeredSpace, pi: FloatArray, P: FloatArray, uniforms: FloatArray
) -> tuple[list[int], list[int], list[int]]:
    """(states, actions, steps) of an episode: uniforms[2k] picks the action, uniforms[2k+1] the successor."""
    states, actions, steps = [0], [], []
    for u_action, u_next in uniforms.reshape(-1, 2):
        pairs = np.flatnonzero(space.pairs[:, 0] == states[-1])
        i = draw(pi, pairs[0], pairs[-1] + 1, u_action)
        tuples = np.flatnonzero(pair_of_tuple(space) == i)
        steps.append(draw(P, tuples[0], tuples[-1] + 1, u_next))
        actions.append(int(space.pairs[i, 1]))
        states.append(int(space.tuples[steps[-1], 2]))
    return states, actions, steps


def play(
    space: LayeredSpace,
    pi: FloatArray,
    P: FloatArray,
    uniforms: FloatArray,
    f: FloatArray,
    g: FloatArray,
    mean_g: FloatArray,
) -> tuple[float, tuple[list[int], list[int], list[int]], FloatArray, FloatArray, FloatArray]:
    """(<f, θ̄>, the path, θ̄, <g_i, θ̄>, <E g_i, θ̄>) of one episode."""
    _, theta = occupancy(space, pi, P)
    path = sample_path(space, pi, P, uniforms)
    return float(f @ theta), path, theta, g @ theta, mean_g @ theta


def first_measure(space: LayeredSpace) -> FloatArray:
    """Walk on from state 0: as many go to every action, and from there to every successor."""
    mass, theta = np.eye(1, space.n_states)[0], np.zeros(space.n_tuples)
    for s in range(space.n_states - 1):
        tuples = np.flatnonzero(space.tuples[:, 0] == s)
        actions = set(space.tuples[tuples, 1])
        for a in actions:
            here = tuples[space.tuples[tuples, 1] == a]
            theta[here] = mass[s] / len(actions) / len(here)
            np.add.at(mass, space.tuples[here, 2], theta[here])
    return theta


def mixed(space: LayeredSpace, theta: FloatArray, share: float) -> FloatArray:
    """θ with a share of its mass spread evenly over the tuples of every layer."""
    layer = layer_of_state(space)[space.tuples[:, 0]]
    spread: FloatArray = (1 - share) * theta + share / np.bincount(layer)[layer]
    return spread


def divergence(theta: FloatArray, other: FloatArray) -> float:
    """Return the divergence D(θ, θ')."""
    here = theta > 0
    return float(theta[here] @ np.log(theta[here] / other[here]) - theta.sum() + other.sum())

"""Policies with exponential weights: an expert algorithm in every state, and softmax policies with their gradient.

An expert algorithm in every state has exponential weights over its actions, fed with action values:

    π(a|s) ∝ exp(−η Σ_t Q_t(s,a)).

A learner that plays π_t in episode t and feeds it the Q_t of π_t has regret Σ_s d*(s) R(s), where d*(s) is how often
the comparator passes s and R(s) the regret of the expert algorithm at s (the performance difference lemma). Losses are
ℓ = (f + 1)/2 in [0, 1], so Q lies between 0 and L.
"""

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arithmetic import exp, log
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import State, numbers, state


@state
class ExpertsState(State):
    """The sum of the action values so far."""

    total_values: FloatArray = numbers(least=0)  #: (n_pairs,) Σ_t Q_t


def exponential_weights(space: LayeredSpace, total_values: FloatArray, learning_rate: float) -> Policy:
    """Return π(a|s) ∝ exp(−η Σ_t Q_t(s,a)) for total values (n_pairs,)."""
    uniform = Policy.uniform(space).probabilities
    return Policy.unchecked(space, core.mirror_step(space.native, uniform, total_values, learning_rate))


def hedge_rate(space: LayeredSpace, rounds: float) -> float:
    """η = √(8 log|A| / rounds) / L, at which the regret of exponential weights is least: L √(rounds log|A| / 2)."""
    return float(np.sqrt(8 * log(space.n_actions) / rounds)) / space.n_layers


def action_values(model: LayeredMDP, policy: Policy, losses: FloatArray) -> FloatArray:
    """Q(s,a) = ℓ(s,a) + Σ_s' P(s'|s,a) V(s'), V(s) = Σ_a π(a|s) Q(s,a), of losses (n_pairs,) that are not negative."""
    space, unit = model.space, max(1.0, float(losses.max()))  # the kernel knows losses in [0, 1]
    P, ones = model.transitions, np.ones(space.n_pairs)
    _, Q = core.evaluate(space.native, policy.probabilities, P, ones, losses[np.newaxis] / unit)
    values: FloatArray = unit * Q[0]
    return values


def softmax(space: LayeredSpace, w: FloatArray) -> Policy:
    """Return π(a|s) ∝ exp w(s,a) for preferences w (n_pairs,)."""
    state, first = space.pairs[:, 0], space.csr.state_ptr[:-2]
    weights = exp(w - np.maximum.reduceat(w, first)[state])
    return Policy.unchecked(space, weights / np.add.reduceat(weights, first)[state])


def log_gradient(policy: Policy, path: NDArray[np.int64], delta: FloatArray) -> FloatArray:
    """Return Σ_k δ_k ∇ log π(a_k|s_k) (n_pairs,): δ_k (1[a = a_k] − π(a|s_k)) at the pairs (s_k,a), 0 elsewhere."""
    space = policy.space
    met = np.zeros(space.n_states)
    met[space.tuples[path, 0]] = delta
    gradient: FloatArray = -met[space.pairs[:, 0]] * policy.probabilities
    gradient[space.pair_of_tuple[path]] += delta
    return gradient

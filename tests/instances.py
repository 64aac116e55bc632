"""Subproblems to solve, from ordinary to nasty, all from one seed each."""

from typing import NamedTuple

import numpy as np

from tests.conftest import pair_of_tuple, random_sparse_space
from tightrope.confidence import L1Ball
from tightrope.space import FloatArray, LayeredSpace


class Instance(NamedTuple):
    space: LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: L1Ball


def random_instance(seed: int, max_steps: int = 5, max_width: int = 6, max_actions: int = 4) -> Instance:
    """One-state layers, one action, sparse rows, zero and near-deterministic centres, radii from 0 to free,
    costs up to 50, reference mass down to 1e-12: each of them in a good share of the seeds, alone and together."""
    rng = np.random.default_rng([seed, 2604])
    sizes = [1, *rng.integers(1, max_width + 1, size=rng.integers(0, max_steps)), 1]
    n_actions = int(rng.integers(1, max_actions + 1))
    dense = rng.random() < 0.5
    space = LayeredSpace.dense(sizes, n_actions) if dense else random_sparse_space(rng, sizes, n_actions, 0.4)
    pair = pair_of_tuple(space)

    center = rng.gamma(rng.choice([0.02, 0.3, 1.0, 20.0]), size=space.n_tuples) + 1e-290
    if rng.random() < 0.5:
        center *= rng.random(space.n_tuples) < 0.5
    empty = np.bincount(pair, center)[pair] == 0
    center = np.where(empty, 1.0, center) / np.bincount(pair, np.where(empty, 1.0, center))[pair]
    radii = rng.choice([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.9, 2.0, np.inf], size=rng.integers(1, 4))
    radius = rng.choice(radii, size=space.n_pairs) * np.where(rng.random(space.n_pairs) < 0.5, 1.0, rng.random())

    floor = rng.choice([1e-12, 1e-6, 1e-2, 0.5])
    reference = np.exp(rng.uniform(np.log(floor), 0.0, space.n_tuples))
    if rng.random() < 0.5:
        reference = np.where(rng.random(space.n_tuples) < 0.3, floor, reference)
    cost = rng.choice([0.01, 1.0, 10.0, 50.0]) * rng.uniform(-1, 1, space.n_tuples)
    return Instance(space, reference, cost, L1Ball(center, np.nan_to_num(radius, nan=np.inf, posinf=np.inf)))


def objective(instance: Instance, theta: FloatArray) -> float:
    """<cost, θ> + D(θ, reference), straight from the definition."""
    logs = np.log(np.where(theta > 0, theta, 1.0) / instance.reference)
    entropy = np.where(theta > 0, theta * logs, 0.0) - theta + instance.reference
    return float(np.sum(instance.cost * theta + entropy))


def flow_residual(space: LayeredSpace, theta: FloatArray) -> float:
    """Σ |inflow − outflow| over inner states plus |mass − 1| over layers, without the compressed rows."""
    outflow = np.bincount(space.tuples[:, 0], theta, minlength=space.n_states)
    inflow = np.bincount(space.tuples[:, 2], theta, minlength=space.n_states)
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    mass = np.bincount(layer[space.tuples[:, 0]], theta)
    return float(np.abs(inflow - outflow)[1:-1].sum() + np.abs(mass - 1).sum())


def set_violation(instance: Instance, theta: FloatArray) -> float:
    """The most by which a conditional leaves its ball, without the compressed rows."""
    pair = pair_of_tuple(instance.space)
    mass = np.bincount(pair, theta)[pair]
    off = np.bincount(
        pair,
        np.abs(np.divide(theta, mass, where=mass > 0, out=np.zeros_like(theta)) - instance.confidence.center),
    )
    return float(np.max(np.where(np.bincount(pair, theta) > 0, off - instance.confidence.radius, 0.0), initial=0.0))
